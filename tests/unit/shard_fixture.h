/*
 * shard_fixture.h - a shard without its thread: the test turns the crank and owns the clock.
 */
#ifndef TESTS_SHARD_FIXTURE_H
#define TESTS_SHARD_FIXTURE_H

#include "test.h"

#include "broker/shard.h"
#include "engine/memory.h"
#include "fakeclock.h"

enum {
	ROWS = 10,
	MANY = 6000
};

/* An op with room for its answer, and whether it was given. */
struct call {
	struct op op;
	struct op_put put;
	struct op_item item;
	struct op_row rows[ROWS];
	struct op_queue queue;
	int done;
	int order; /* the how many-eth answer it was */
};

static struct fakeclock fake;
static struct shard s;
static int answers;

static inline void
on_done(struct op *op)
{
	struct call *c = op->owner;

	c->done++;
	c->order = ++answers;
	op_unpin(op);
}

static inline void
start_with(const struct engine_ops *ops)
{
	static const _Atomic uint32_t one = 1;
	const struct engine_conf conf = { 0 };

	fakeclock_init(&fake, SLU_SEC, SLU_HOUR);
	CHECK_EQ(0, shard_open(&s, ops, &conf, &fake.clock, 0, &one, NULL));
}

static inline void
start(void)
{
	start_with(&engine_memory);
}

/* Everything that can happen now has happened. */
static inline void
turn(void)
{
	for (int i = 0; i < 8; i++) {
		inbox_poke(&s.inbox);
		shard_round(&s);
	}
}

static inline void
pass(slu_time by)
{
	fakeclock_advance(&fake, by);
	turn();
}

static inline void
end(void)
{
	shard_close(&s);
	while (shard_round(&s))
		;
	shard_release(&s);
	fakeclock_release(&fake);
}

static inline struct call *
call(struct call *c, enum op_verb verb, const char *space, const char *queue)
{
	memset(c, 0, sizeof *c);
	op_init(&c->op, verb, slice_of(space), slice_of(queue), on_done, c);
	c->op.cost = 1;
	c->op.bytes = 100;
	c->op.rows = c->rows;
	c->op.max_rows = 1;
	return c;
}

static inline void
post(struct call *c)
{
	CHECK_EQ(0, shard_post(&s, &c->op));
}

static inline uint64_t
push(struct call *c, const char *queue, slu_time delay)
{
	static uint64_t next = 1;

	call(c, OP_ENQUEUE, "ns", queue);
	c->put.m.id = next++;
	c->put.delay = delay;
	c->op.puts = &c->put;
	c->op.n_puts = 1;
	post(c);
	return c->put.m.id;
}

static inline void
claim(struct call *c, const char *queue, slu_time wait)
{
	call(c, OP_CLAIM, "ns", queue);
	c->op.wait = wait;
	post(c);
}

static inline void
settle(struct call *c, enum op_verb verb, const struct op_row *row, slu_time time)
{
	call(c, verb, "ns", "q");
	c->item = (struct op_item){ .id = row->id, .token = row->token, .time = time };
	c->op.items = &c->item;
	c->op.n_items = 1;
	post(c);
}

/* Which message a claim got, or 0. */
static inline uint64_t
got(const struct call *c)
{
	CHECK_EQ(1, c->done);
	CHECK_EQ(0, c->op.rc);
	return c->op.n_rows ? c->rows[0].id : 0;
}

#endif
