/*
 * ledger_model.h - a ledger as an array that is searched: what every answer, state
 * and counter of a real one must be.
 *
 * It knows no heaps, sequences or marks; from the fields of the messages it derives which
 * message is ready, which heads a key, which is held.
 */
#ifndef TESTS_LEDGER_MODEL_H
#define TESTS_LEDGER_MODEL_H

#include "ledger_circuits.h"
#include "test.h"

#include "core/ledger/ledger.h"
#include "core/queue/gates.h"
#include "core/queue/shares.h"

#include <limits.h>

enum {
	MODEL_MSGS = 300,
	MODEL_QUEUES = 4, /* two of each of two namespaces */
	MODEL_KEYS = 3,
	MODEL_SHARES = 4, /* the first has the messages without a share */
	MODEL_KINDS = 3,  /* the first stands for messages without a kind */
	MODEL_VALUES = 4, /* the first stands for messages without a value */
	MODEL_PRIOS = 3,  /* -1, 0 and 1 */
	MODEL_IDEMS = 6,
	MODEL_BATCHES = 5, /* the first stands for messages that are no members */
	MODEL_RESULTS = 4000
};

enum model_state {
	M_FREE,
	M_WAIT,
	M_LEASED,
	M_DEAD
};

struct ledger_model_msg {
	enum model_state state;
	uint64_t id, number, token, where, error;
	unsigned queue;
	int key;        /* or -1 */
	int idem;       /* or -1 */
	unsigned share; /* 0 with a kind: LEDGERKIND-3 */
	unsigned kind;
	unsigned value;
	int32_t prio;
	slu_time due, first_due, expires, claimed, until, died, keep;
	unsigned attempts, failures, max_attempts;
	bool holds, extended, spared;
	enum dead_reason reason;
	uint64_t unique; /* enum unique */
	slu_time unique_end;
	unsigned batch;
};

struct ledger_model_idem {
	uint64_t id; /* 0: not known */
	bool live;
	slu_time until;
};

struct ledger_model_result {
	uint64_t id, where;
	unsigned queue;
	slu_time until;
};

/* The tags of a priority of a queue: core/queue/shares.h. */
struct ledger_model_level {
	uint64_t v;
	uint64_t tag[MODEL_SHARES];
	uint32_t rest[MODEL_SHARES]; /* SHARES-8 */
	bool active[MODEL_SHARES];   /* of messages without a share: also while they are limited */
};

struct ledger_model {
	struct ledger_model_level levels[MODEL_QUEUES][MODEL_PRIOS];
	struct ledger_model_msg msgs[MODEL_MSGS];
	struct policy policies[MODEL_QUEUES];
	struct ledger_model_idem idems[MODEL_QUEUES][MODEL_IDEMS];
	struct ledger_model_result results[MODEL_RESULTS];
	unsigned n_results;

	/* The states of the buckets, and when they were all empty: core/queue/gates.h. */
	slu_time queue_full[MODEL_QUEUES];
	slu_time share_full[MODEL_QUEUES][MODEL_SHARES];
	slu_time key_full[MODEL_QUEUES][MODEL_KEYS];
	slu_time value_full[MODEL_QUEUES][MODEL_VALUES];
	slu_time start[MODEL_QUEUES];

	/* The ends of holds. */
	slu_time queue_hold[MODEL_QUEUES];
	slu_time share_hold[MODEL_QUEUES][MODEL_SHARES];
	slu_time key_hold[MODEL_QUEUES][MODEL_KEYS];
	slu_time value_hold[MODEL_QUEUES][MODEL_VALUES];

	struct ledger_model_circuits circuits[MODEL_QUEUES];
};

static inline void
model_init(struct ledger_model *m)
{
	*m = (struct ledger_model){ 0 };
	EACH(q, m->policies)
		m->policies[q] = policy_default;
}

static inline struct ledger_model_msg *
model_find(struct ledger_model *m, uint64_t id)
{
	EACH(i, m->msgs)
		if (m->msgs[i].state != M_FREE && m->msgs[i].id == id)
			return &m->msgs[i];
	return NULL;
}

static inline struct ledger_model_msg *
model_free_slot(struct ledger_model *m)
{
	EACH(i, m->msgs)
		if (m->msgs[i].state == M_FREE)
			return &m->msgs[i];
	return NULL;
}

/* LEDGER-3: the head of a key at the moment now, or NULL. */
static inline struct ledger_model_msg *
model_head(struct ledger_model *m, unsigned queue, int key, slu_time now)
{
	struct ledger_model_msg *best = NULL;

	EACH(i, m->msgs) {
		struct ledger_model_msg *x = &m->msgs[i];

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
model_state(struct ledger_model *m, struct ledger_model_msg *x, slu_time now)
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

static inline struct ledger_model_level *
model_level(struct ledger_model *m, const struct ledger_model_msg *x)
{
	return &m->levels[x->queue][x->prio + 1];
}

static inline uint32_t
model_leased(const struct ledger_model *m, unsigned queue, int share)
{
	uint32_t n = 0;

	EACH(i, m->msgs)
		n += m->msgs[i].state == M_LEASED && m->msgs[i].queue == queue &&
		     (share < 0 || m->msgs[i].share == (unsigned)share);
	return n;
}

/* ---- Rates ---- */

static inline struct bucket_rule
model_rule(const struct ledger_model *m, unsigned queue, enum gate_kind kind)
{
	const struct policy *p = &m->policies[queue];

	if (kind == GATE_QUEUE)
		return (struct bucket_rule){ p->rate, p->rate_burst };
	if (kind == GATE_VALUE)
		return (struct bucket_rule){ p->attribute_rate, p->attribute_rate_burst };
	return kind == GATE_SHARE ? (struct bucket_rule){ p->share_rate, p->share_rate_burst }
				  : (struct bucket_rule){ p->key_rate, p->key_rate_burst };
}

/* A bucket that was used up long ago is what it would be if it had only filled since the start. */
static inline slu_time
model_full(const struct ledger_model *m, unsigned queue, struct bucket_rule r, slu_time full, slu_time now)
{
	const slu_time burst = r.burst ? r.burst : r.rate;

	return full > now || !m->start[queue] ? full : m->start[queue] + burst * SLU_SEC / r.rate;
}

static inline bool
model_is_empty(const struct ledger_model *m, unsigned queue, enum gate_kind kind, slu_time full, slu_time now)
{
	const struct bucket_rule r = model_rule(m, queue, kind);

	return r.rate && bucket_wait(&r, model_full(m, queue, r, full, now), 1, now) > 0;
}

/* After a start the queue waits for a token in each bucket. */
static inline bool
model_is_closed(const struct ledger_model *m, unsigned queue, slu_time now)
{
	for (enum gate_kind k = GATE_QUEUE; k < GATE_KINDS; k++) {
		const uint32_t rate = model_rule(m, queue, k).rate;

		if (rate && m->start[queue] && m->start[queue] + SLU_SEC / rate > now)
			return true;
	}
	if (circuits_shut(&m->circuits[queue], GATE_QUEUE, 0, now))
		return true;
	return m->queue_hold[queue] > now || model_is_empty(m, queue, GATE_QUEUE, m->queue_full[queue], now);
}

static inline void
model_take(const struct ledger_model *m, unsigned queue, enum gate_kind kind, slu_time *full, slu_time now)
{
	const struct bucket_rule r = model_rule(m, queue, kind);

	if (r.rate)
		*full = bucket_take(&r, model_full(m, queue, r, *full, now), 1, now);
}

static inline void
model_take_tokens(struct ledger_model *m, const struct ledger_model_msg *x, slu_time now)
{
	model_take(m, x->queue, GATE_QUEUE, &m->queue_full[x->queue], now);
	model_take(m, x->queue, GATE_SHARE, &m->share_full[x->queue][x->share], now);
	if (x->key >= 0)
		model_take(m, x->queue, GATE_KEY, &m->key_full[x->queue][x->key], now);
	if (x->value)
		model_take(m, x->queue, GATE_VALUE, &m->value_full[x->queue][x->value], now);
}

/* A rate that is gone leaves no state. */
static inline void
model_set_rates(struct ledger_model *m, unsigned queue)
{
	const struct policy *p = &m->policies[queue];

	if (!p->rate)
		m->queue_full[queue] = 0;
	if (!p->share_rate)
		memset(m->share_full[queue], 0, sizeof m->share_full[queue]);
	if (!p->key_rate)
		memset(m->key_full[queue], 0, sizeof m->key_full[queue]);
	if (!p->attribute_rate)
		memset(m->value_full[queue], 0, sizeof m->value_full[queue]);
	if (!p->rate && !p->share_rate && !p->key_rate && !p->attribute_rate)
		m->start[queue] = 0;
}

/* LEDGERGATE-2 */
static inline void
model_start(struct ledger_model *m, slu_time now)
{
	memset(m->queue_full, 0, sizeof m->queue_full);
	memset(m->share_full, 0, sizeof m->share_full);
	memset(m->key_full, 0, sizeof m->key_full);
	memset(m->value_full, 0, sizeof m->value_full);
	for (unsigned q = 0; q < MODEL_QUEUES; q++) {
		m->start[q] = now;
		model_set_rates(m, q);
	}
}

static inline bool
model_is_limited(const struct ledger_model *m, unsigned queue, unsigned share, slu_time now)
{
	const struct policy *p = &m->policies[queue];

	if (circuits_shut(&m->circuits[queue], GATE_SHARE, share, now))
		return true;
	if (m->share_hold[queue][share] > now || model_is_empty(m, queue, GATE_SHARE, m->share_full[queue][share], now))
		return true;
	return p->share_concurrency && model_leased(m, queue, (int)share) >= p->share_concurrency;
}

static inline uint32_t
model_leased_of(const struct ledger_model *m, unsigned queue, unsigned value)
{
	uint32_t n = 0;

	EACH(i, m->msgs)
		n += m->msgs[i].state == M_LEASED && m->msgs[i].queue == queue && m->msgs[i].value == value;
	return n;
}

/* VALUES-2 */
static inline bool
model_value_is_blocked(const struct ledger_model *m, unsigned queue, unsigned value, slu_time now)
{
	const struct policy *p = &m->policies[queue];

	if (!value)
		return false;
	if (circuits_shut(&m->circuits[queue], GATE_VALUE, value, now))
		return true;
	if (m->value_hold[queue][value] > now || model_is_empty(m, queue, GATE_VALUE, m->value_full[queue][value], now))
		return true;
	return p->attribute_concurrency && model_leased_of(m, queue, value) >= p->attribute_concurrency;
}

static inline bool
model_key_is_blocked(const struct ledger_model *m, unsigned queue, int key, slu_time now)
{
	return key >= 0 && (m->key_hold[queue][key] > now || circuits_shut(&m->circuits[queue], GATE_KEY, (unsigned)key, now) ||
			    model_is_empty(m, queue, GATE_KEY, m->key_full[queue][key], now));
}

/* The scopes of a message, or -1. */
static inline void
model_scopes(const struct ledger_model_msg *x, int out[GATE_KINDS])
{
	out[GATE_QUEUE] = 0;
	out[GATE_SHARE] = (int)x->share;
	out[GATE_KEY] = x->key;
	out[GATE_VALUE] = x->value ? (int)x->value : -1;
}

/* The first message of a share, or NULL; kinds: a bit for each kind that counts. */
static inline struct ledger_model_msg *
model_first(struct ledger_model *m, unsigned queue, unsigned share, unsigned kinds, slu_time now)
{
	struct ledger_model_msg *best = NULL;

	EACH(i, m->msgs) {
		struct ledger_model_msg *x = &m->msgs[i];

		if (x->state != M_WAIT || x->queue != queue || x->share != share || !(kinds >> x->kind & 1) ||
		    model_state(m, x, now) != MSG_READY || model_value_is_blocked(m, queue, x->value, now) ||
		    model_key_is_blocked(m, queue, x->key, now))
			continue;
		if (!best || x->prio < best->prio ||
		    (x->prio == best->prio &&
		     (x->due < best->due ||
		      (x->due == best->due && x->number < best->number))))
			best = x;
	}
	return best;
}

static inline uint64_t
model_tag(const struct ledger_model_level *l, unsigned share)
{
	return l->tag[share] > l->v ? l->tag[share] : l->v;
}

/* LEDGER-2, SHARES-1, KIND-2: what is handed out next to a claim of these kinds, or NULL. */
static inline struct ledger_model_msg *
model_best_of(struct ledger_model *m, unsigned queue, unsigned kinds, slu_time now)
{
	struct ledger_model_msg *best = NULL;

	if (model_is_closed(m, queue, now))
		return NULL;
	if (m->policies[queue].concurrency && model_leased(m, queue, -1) >= m->policies[queue].concurrency)
		return NULL;
	for (unsigned s = 0; s < MODEL_SHARES; s++) {
		struct ledger_model_msg *x = model_is_limited(m, queue, s, now) ? NULL : model_first(m, queue, s, kinds, now);
		const uint64_t tag = x ? model_tag(model_level(m, x), s) : 0;
		const uint64_t lowest = best ? model_tag(model_level(m, best), best->share) : 0;

		if (!x || (best && x->prio > best->prio))
			continue;
		if (!best || x->prio < best->prio || tag < lowest || (tag == lowest && x->number < best->number))
			best = x;
	}
	return best;
}

static inline struct ledger_model_msg *
model_best(struct ledger_model *m, unsigned queue, slu_time now)
{
	return model_best_of(m, queue, UINT_MAX, now);
}

/* SHARES-2: m is delivered. */
static inline void
model_charge(struct ledger_model *m, const struct ledger_model_msg *x, uint32_t weight, slu_time now)
{
	struct ledger_model_level *l = model_level(m, x);

	const uint64_t own = model_tag(l, x->share);
	uint64_t lowest = own;

	for (unsigned s = 0; s < MODEL_SHARES; s++)
		if (l->active[s] && (s || !model_is_limited(m, x->queue, 0, now)) && model_tag(l, s) < lowest)
			lowest = model_tag(l, s);
	l->v = lowest;
	l->rest[x->share] += SHARES_UNIT;
	l->tag[x->share] = own + l->rest[x->share] / weight;
	l->rest[x->share] %= weight;
}

/* SHARES-2, SHARES-3: the shares that have candidates now. waits: messages without a share wait behind a value. */
static inline void
model_set_active(struct ledger_model_level *l, const bool active[MODEL_SHARES], bool waits)
{
	bool any = waits;

	for (unsigned s = 0; s < MODEL_SHARES; s++) {
		if (active[s] && !l->active[s] && l->tag[s] <= l->v) {
			l->tag[s] = l->v;
			l->rest[s] = 0;
		}
		l->active[s] = active[s];
		any |= active[s];
	}
	if (!any)
		*l = (struct ledger_model_level){ 0 };
}

static inline void
model_count(struct ledger_model *m, unsigned queue, slu_time now, uint32_t count[MSG_STATES])
{
	memset(count, 0, MSG_STATES * sizeof *count);
	EACH(i, m->msgs)
		if (m->msgs[i].state != M_FREE && m->msgs[i].queue == queue)
			count[model_state(m, &m->msgs[i], now)]++;
}

static inline unsigned
model_max(const struct ledger_model *m, const struct ledger_model_msg *x)
{
	return x->max_attempts ? x->max_attempts : m->policies[x->queue].max_attempts;
}

/* LEDGER-8 */
static inline enum dead_reason
model_over(const struct ledger_model *m, const struct ledger_model_msg *x, slu_time now)
{
	if (x->expires <= now)
		return DEAD_EXPIRED;
	return x->failures >= model_max(m, x) ? DEAD_MAX_ATTEMPTS : DEAD_NOT;
}

/* LEDGER-16 */
static inline void
model_lose_key(struct ledger_model *m, struct ledger_model_msg *x)
{
	if (x->idem >= 0)
		m->idems[x->queue][x->idem] = (struct ledger_model_idem){ 0 };
	x->idem = -1;
}

/* Returns whether the key of a message that is there is not taken any more. */
static inline bool
model_key_is_over(struct ledger_model *m, const struct ledger_model_idem *i, slu_time now)
{
	const struct ledger_model_msg *x = i->live ? model_find(m, i->id) : NULL;

	return x && x->unique == UNIQUE_TIME && x->unique_end <= now;
}

static inline void
model_die(struct ledger_model *m, struct ledger_model_msg *x, enum dead_reason reason, slu_time now)
{
	if (x->unique && x->unique != UNIQUE_TIME)
		model_lose_key(m, x);
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
model_end(struct ledger_model *m, struct ledger_model_msg *x, slu_time now)
{
	const slu_time window = m->policies[x->queue].window;

	if (x->idem >= 0) {
		struct ledger_model_idem *i = &m->idems[x->queue][x->idem];

		i->live = false;
		i->until = model_until(now, x->unique ? x->unique_end - now : window);
		if (x->unique && x->unique_end <= now)
			*i = (struct ledger_model_idem){ 0 };
	}
	x->state = M_FREE;
}

static inline struct ledger_model_msg *
model_oldest_dead(struct ledger_model *m, unsigned queue)
{
	struct ledger_model_msg *best = NULL;

	EACH(i, m->msgs) {
		struct ledger_model_msg *x = &m->msgs[i];

		if (x->state == M_DEAD && x->queue == queue &&
		    (!best || x->died < best->died ||
		     (x->died == best->died && x->number < best->number)))
			best = x;
	}
	return best;
}

/* What an ack, nack, extend or return must answer. */
static inline int
model_right(struct ledger_model *m, const struct ledger_ref *ref, unsigned space, int queue,
	    slu_time now, struct ledger_model_msg **out)
{
	struct ledger_model_msg *x = model_find(m, ref->id);

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
