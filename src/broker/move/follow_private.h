/*
 * follow_private.h - what the files of broker/move/ share, copy*.c aside.
 */
#ifndef BROKER_MOVE_FOLLOW_PRIVATE_H
#define BROKER_MOVE_FOLLOW_PRIVATE_H

#include "broker/broker_private.h"
#include "broker/move/table.h"

#include <limits.h>

/* What happens to an op after the answer of a shard. */
enum follow_next {
	FOLLOW_DONE,  /* it ends with this answer */
	FOLLOW_ON,    /* it asks the next shard of the path */
	FOLLOW_AGAIN, /* it starts again with the first shard */
	FOLLOW_STAY,  /* it asks the same shard again, a little later */
	FOLLOW_LEARN  /* the queue lives elsewhere: discover where */
};

/* An op that follows a path. */
struct follow {
	struct follows *all;
	struct op *op;
	struct movetable_row *m;
	struct list node;        /* in m->held */
	struct list waiting;     /* in m->waiting */
	struct follow_path path; /* as of the start */
	unsigned at;             /* the lane of the path that is asked */
	unsigned hops;           /* how often the op had to learn the path */
	bool known;              /* the marks are set: path.epoch counts */

	/* The question of the maker; the op has another one for each shard. */
	enum op_verb verb;
	slu_time wait;
	uint32_t max_rows;
	uint32_t max_keys;
	uint64_t id;
	uint64_t cursor;
	slu_time until; /* the end of the wait, by clock_boot */

	/* The state so far. */
	slu_time patient;                /* when FOLLOW_STAY ends, by clock_boot; 0: not met */
	uint64_t above;                  /* MOVE-9: highest counter of the shards without it */
	bool took;                       /* a part of the op is done */
	bool unknown;                    /* a part may be done: a shard failed */
	bool recalls;                    /* PUTS: asks which shard knows the idempotency keys */
	bool waited;                     /* CLAIM: has waited for a slice */
	bool some;                       /* a shard has had something to add */
	bool same;                       /* WATCH: a former shard has the head that the maker knows */
	bool paging;                     /* KEYS: the first keys of all shards are known */
	unsigned key_at;                 /* KEYS: the lane of the path with the first key of all */
	int why;                         /* code of the first shard that failed, or 0 */
	struct slu_err err;              /* explains `why` */
	struct op_queue sum;             /* SUM */
	uint64_t count;                  /* sum of op->count */
	char key[LOCK_KEY_MAX + 1];      /* KEYS: the first key of all */
	char next_key[LOCK_KEY_MAX + 1]; /* KEYS: the first key of any other shard, or empty */
};

/* How an op follows a path, by enum op_follow. */
struct follow_rule {
	/* Optional. Prepares the op for the shard r->at. */
	void (*ask)(struct follow *r);

	/* Looks at the answer of the shard r->at. */
	enum follow_next (*answered)(struct follow *r);
};

/* follow_verbs.c: the rule of an op; NULL: the op never follows. */
const struct follow_rule *follow_rule_of(const struct op *op);

static inline enum op_follow
follow_kind(const struct op *op)
{
	return op_verbs[op->verb].follows;
}

/* Returns true if the op asks the shard that the queue lives on, the last one. */
static inline bool
follow_is_home(const struct follow *r)
{
	return r->at == 0;
}

static inline slu_time
follow_now(const struct follow *r)
{
	return clock_boot(r->all->b->clock);
}

/* follow.c: starts the ops that were held; rc: the path could not be discovered. Without mtx. */
void follow_begin_all(struct list *held, int rc, const struct slu_err *err);

/* follow_verbs.c: returns true if the op was refused because its key is set aside (MOVE-7). */
bool follow_in_move(const struct op *op);

/* follow_split.c: returns true if the op is about several queues; sets the names of the first. */
bool follow_is_mixed(const struct op *op, struct slice *space, struct slice *queue);

/* follow_split.c: posts the open puts or items of an op as one op for each queue. SLU_ENOMEM: nothing was
 * posted. */
int follow_split(struct follows *rs, struct op *op);

/* The same after the answer of a shard. Returns false if there is nothing to split. */
bool follow_split_rest(struct follows *rs, struct op *op);

/* follow_verbs.c: the lane of the path at which a page of a list begins, by its cursor. */
unsigned follow_list_at(const struct follow *r);

/* follow_verbs.c: the engine's part of the cursor of a list. */
uint64_t follow_list_cursor(uint64_t cursor);

#endif
