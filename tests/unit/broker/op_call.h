/*
 * op_call.h - an op with room for its answer, which tests post and look at.
 */
#ifndef TESTS_OP_CALL_H
#define TESTS_OP_CALL_H

#include "test.h"

#include "engine/engine.h"

#include <pthread.h>

enum {
	ROWS = 10
};

/* In a test it is static: an op that waits is answered when the broker closes, after the test
 * returned. */
struct op_call {
	struct op op;
	union {
		struct op_put put, puts[4];
	};
	union {
		struct op_item item, items[4];
	};
	union {
		struct op_row row, rows[ROWS];
	};
	union {
		struct op_queue queue, queues[ROWS];
	};
	pthread_mutex_t mtx;
	pthread_cond_t ended;
	int done;  /* how often it was answered */
	int order; /* the number of its last answer among all */
};

static inline void
on_done(struct op *op)
{
	static _Atomic int answers;
	struct op_call *c = op->owner;

	pthread_mutex_lock(&c->mtx);
	c->done++;
	c->order = ++answers;
	pthread_cond_signal(&c->ended);
	pthread_mutex_unlock(&c->mtx);
}

static inline struct op_call *
op_call_init(struct op_call *c, enum op_verb verb, const char *space, const char *queue,
	     void (*done)(struct op *op))
{
	memset(c, 0, sizeof *c);
	pthread_mutex_init(&c->mtx, NULL);
	pthread_cond_init(&c->ended, NULL);
	op_init(&c->op, verb, slice_of(space), slice_of(queue), done, c);
	c->op.puts = c->puts;
	c->op.n_puts = verb == OP_ENQUEUE;
	c->op.items = c->items;
	c->op.n_items = (verb >= OP_ACK && verb <= OP_DELETE) || verb == OP_QUARANTINE;
	c->op.rows = c->rows;
	c->op.max_rows = 1;
	c->op.queues = c->queues;
	c->op.max_queues = ROWS;
	return c;
}

/* How an op ended that was posted before. */
static inline int
rc_of(const struct op_call *c)
{
	CHECK_EQ(1, c->done);
	return c->op.rc;
}

#endif
