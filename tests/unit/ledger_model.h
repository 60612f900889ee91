/*
 * ledger_model.h - a ledger as an array that is searched: what every answer, state
 * and counter of a real one must be.
 *
 * It knows no heaps, lines or marks; from the fields of the messages it derives who
 * is ready, who heads a key, who is held.
 */
#ifndef TESTS_LEDGER_MODEL_H
#define TESTS_LEDGER_MODEL_H

#include "test.h"

#include "core/ledger.h"

enum {
	MODEL_MSGS = 300,
	MODEL_QUEUES = 4, /* two of each of two namespaces */
	MODEL_KEYS = 3,
	MODEL_IDEMS = 6,
	MODEL_RESULTS = 4000
};

enum model_state {
	M_FREE,
	M_WAIT,
	M_LEASED,
	M_DEAD
};

struct model_msg {
	enum model_state state;
	uint64_t id, number, token, where, error;
	unsigned queue;
	int key;  /* or -1 */
	int idem; /* or -1 */
	int32_t prio;
	slu_time due, first_due, expires, claimed, until, died, keep;
	unsigned attempts, failures, max_attempts;
	bool holds, extended, spared;
	enum dead_reason reason;
};

struct model_idem {
	uint64_t id; /* 0: not known */
	bool live;
	slu_time until;
};

struct model_result {
	uint64_t id, where;
	unsigned queue;
	slu_time until;
};

struct model {
	struct model_msg msgs[MODEL_MSGS];
	struct policy policies[MODEL_QUEUES];
	struct model_idem idems[MODEL_QUEUES][MODEL_IDEMS];
	struct model_result results[MODEL_RESULTS];
	unsigned n_results;
};

static inline void
model_init(struct model *m)
{
	*m = (struct model){ 0 };
	EACH(q, m->policies)
		m->policies[q] = policy_default;
}

static inline struct model_msg *
model_find(struct model *m, uint64_t id)
{
	EACH(i, m->msgs)
		if (m->msgs[i].state != M_FREE && m->msgs[i].id == id)
			return &m->msgs[i];
	return NULL;
}

static inline struct model_msg *
model_free_slot(struct model *m)
{
	EACH(i, m->msgs)
		if (m->msgs[i].state == M_FREE)
			return &m->msgs[i];
	return NULL;
}

/* L3: the head of a key at the moment now, or NULL. */
static inline struct model_msg *
model_head(struct model *m, unsigned queue, int key, slu_time now)
{
	struct model_msg *best = NULL;

	EACH(i, m->msgs) {
		struct model_msg *x = &m->msgs[i];

		if ((x->state != M_WAIT && x->state != M_LEASED) || x->queue != queue ||
		    x->key != key)
			continue;
		if (x->holds)
			return x;
		if (x->due > now)
			continue;
		if (!best || x->first_due < best->first_due ||
		    (x->first_due == best->first_due && x->number < best->number))
			best = x;
	}
	return best;
}

static inline enum msg_state
model_state(struct model *m, struct model_msg *x, slu_time now)
{
	if (x->state == M_LEASED)
		return MSG_LEASED;
	if (x->state == M_DEAD)
		return MSG_DEAD;
	if (x->due > now)
		return MSG_DELAYED;
	if (x->key >= 0 && model_head(m, x->queue, x->key, now) != x)
		return MSG_HELD;
	return MSG_READY;
}

/* L2: what is handed out next, or NULL. */
static inline struct model_msg *
model_best(struct model *m, unsigned queue, slu_time now)
{
	struct model_msg *best = NULL;

	EACH(i, m->msgs) {
		struct model_msg *x = &m->msgs[i];

		if (x->state != M_WAIT || x->queue != queue ||
		    model_state(m, x, now) != MSG_READY)
			continue;
		if (!best || x->prio < best->prio ||
		    (x->prio == best->prio &&
		     (x->due < best->due ||
		      (x->due == best->due && x->number < best->number))))
			best = x;
	}
	return best;
}

static inline void
model_count(struct model *m, unsigned queue, slu_time now, uint32_t count[MSG_STATES])
{
	memset(count, 0, MSG_STATES * sizeof *count);
	EACH(i, m->msgs)
		if (m->msgs[i].state != M_FREE && m->msgs[i].queue == queue)
			count[model_state(m, &m->msgs[i], now)]++;
}

static inline unsigned
model_max(const struct model *m, const struct model_msg *x)
{
	return x->max_attempts ? x->max_attempts : m->policies[x->queue].max_attempts;
}

/* L8 */
static inline enum dead_reason
model_over(const struct model *m, const struct model_msg *x, slu_time now)
{
	if (x->expires <= now)
		return DEAD_EXPIRED;
	return x->failures >= model_max(m, x) ? DEAD_MAX_ATTEMPTS : DEAD_NOT;
}

static inline void
model_die(struct model_msg *x, enum dead_reason reason, slu_time now)
{
	x->state = M_DEAD;
	x->reason = reason;
	x->died = now;
	x->expires = SLU_NEVER;
	x->holds = x->extended = x->spared = false;
}

/* IDEM-1: to the second up to two hours ahead, else to the end of an hour. 15 bits of ones
 * mean something else. */
static inline slu_time
model_until(slu_time now, slu_time window)
{
	const slu_time until = now + window;
	slu_time second = (until + SLU_SEC - 1) / SLU_SEC * SLU_SEC;

	if (window == 0)
		return now;
	if (second / SLU_SEC % 0x8000 == 0x7fff)
		second += SLU_SEC;
	if (window <= 2 * SLU_HOUR && second % SLU_HOUR)
		return second;
	return (until + SLU_HOUR - 1) / SLU_HOUR * SLU_HOUR;
}

/* Gone: its idempotency key is remembered for the window. */
static inline void
model_end(struct model *m, struct model_msg *x, slu_time now)
{
	const slu_time window = m->policies[x->queue].window;

	if (x->idem >= 0) {
		struct model_idem *i = &m->idems[x->queue][x->idem];

		i->live = false;
		i->until = model_until(now, window);
	}
	x->state = M_FREE;
}

static inline struct model_msg *
model_oldest_dead(struct model *m, unsigned queue)
{
	struct model_msg *best = NULL;

	EACH(i, m->msgs) {
		struct model_msg *x = &m->msgs[i];

		if (x->state == M_DEAD && x->queue == queue &&
		    (!best || x->died < best->died ||
		     (x->died == best->died && x->number < best->number)))
			best = x;
	}
	return best;
}

/* What an ack, nack, extend or return must answer. */
static inline int
model_right(struct model *m, const struct ledger_ref *ref, unsigned space, int queue,
	    slu_time now, struct model_msg **out)
{
	struct model_msg *x = model_find(m, ref->id);

	*out = x;
	if (!x || x->queue / 2 != space || (queue >= 0 && x->queue != (unsigned)queue))
		return SLU_ENOTFOUND;
	if (x->state != M_LEASED || x->until <= now)
		return SLU_ELEASE;
	if (ref->token == 0)
		return m->policies[x->queue].require_lease ? SLU_ELEASE : 0;
	return ref->token == x->token ? 0 : SLU_ELEASE;
}

#endif
