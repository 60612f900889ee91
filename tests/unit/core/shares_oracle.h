/*
 * shares_oracle.h - the rule of core/queue/shares.h, recomputed from a plain list of messages.
 *
 * Slow and simple: every question looks at all messages. Share 0 has the plain messages. The caller
 * changes the list or `blocked`, and then calls oracle_sync.
 */
#ifndef TESTS_SHARES_ORACLE_H
#define TESTS_SHARES_ORACLE_H

#include "core/queue/shares.h"

enum {
	ORACLE_SHARES = 8,
	ORACLE_PRIOS = 4,
	ORACLE_MSGS = 256
};

struct oracle_msg {
	uint32_t share;
	int32_t prio; /* 0 .. ORACLE_PRIOS - 1 */
	slu_time due;
	uint64_t seq;
	uint32_t item; /* of the caller */
	uint32_t flow; /* the same */
	bool exists;
	bool candidate; /* unless its share is blocked */
};

struct oracle {
	struct oracle_msg msgs[ORACLE_MSGS];
	uint64_t v[ORACLE_PRIOS];
	uint64_t tag[ORACLE_PRIOS][ORACLE_SHARES];
	uint32_t rest[ORACLE_PRIOS][ORACLE_SHARES]; /* SHARES-8 */
	bool active[ORACLE_PRIOS][ORACLE_SHARES];
	uint32_t weight[ORACLE_SHARES];
	bool blocked[ORACLE_SHARES];
};

static inline void
oracle_init(struct oracle *o)
{
	*o = (struct oracle){ 0 };
	for (int i = 0; i < ORACLE_SHARES; i++)
		o->weight[i] = 1;
}

/* The first message of a share, or NULL. */
static inline struct oracle_msg *
oracle_first(struct oracle *o, int32_t prio, uint32_t share)
{
	struct oracle_msg *first = NULL;

	for (int i = 0; i < ORACLE_MSGS; i++) {
		struct oracle_msg *m = &o->msgs[i];

		if (!m->exists || !m->candidate || o->blocked[m->share] || m->prio != prio || m->share != share)
			continue;
		if (!first || m->due < first->due || (m->due == first->due && m->seq < first->seq))
			first = m;
	}
	return first;
}

static inline void
oracle_sync(struct oracle *o)
{
	for (int p = 0; p < ORACLE_PRIOS; p++) {
		bool any = false;

		for (uint32_t s = 0; s < ORACLE_SHARES; s++) {
			const bool active = oracle_first(o, p, s);

			if (active && !o->active[p][s] && o->tag[p][s] <= o->v[p]) {
				o->tag[p][s] = o->v[p];
				o->rest[p][s] = 0;
			}
			o->active[p][s] = active;
			any |= active;
		}
		if (any)
			continue;
		o->v[p] = 0;
		memset(o->tag[p], 0, sizeof o->tag[p]);
		memset(o->rest[p], 0, sizeof o->rest[p]);
	}
}

/* The next message, or NULL. */
static inline struct oracle_msg *
oracle_best(struct oracle *o)
{
	for (int p = 0; p < ORACLE_PRIOS; p++) {
		struct oracle_msg *best = NULL;

		for (uint32_t s = 0; s < ORACLE_SHARES; s++) {
			struct oracle_msg *m = oracle_first(o, p, s);

			if (m && (!best || o->tag[p][s] < o->tag[p][best->share] ||
				  (o->tag[p][s] == o->tag[p][best->share] && m->seq < best->seq)))
				best = m;
		}
		if (best)
			return best;
	}
	return NULL;
}

/* m is a candidate, not necessarily the best one. */
static inline void
oracle_deliver(struct oracle *o, struct oracle_msg *m)
{
	uint64_t *const tag = &o->tag[m->prio][m->share];
	uint32_t *const rest = &o->rest[m->prio][m->share];
	uint64_t lowest = *tag;

	for (uint32_t s = 0; s < ORACLE_SHARES; s++)
		if (o->active[m->prio][s] && o->tag[m->prio][s] < lowest)
			lowest = o->tag[m->prio][s];
	o->v[m->prio] = lowest;
	*rest += SHARES_UNIT;
	*tag += *rest / o->weight[m->share];
	*rest %= o->weight[m->share];
	m->candidate = false;
	oracle_sync(o);
}

#endif
