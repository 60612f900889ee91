/*
 * lane_fixture.h - a shard without its thread: the test runs its rounds and owns the clock.
 *
 * push(), claim(), settle() and run() post an op and let the shard run until nothing is left to
 * do. post_push() and so on only post it: what is posted together is one batch.
 */
#ifndef TESTS_SHARD_FIXTURE_H
#define TESTS_SHARD_FIXTURE_H

#include "op_call.h"

#include "broker/lane.h"
#include "engine/memory/memory.h"
#include "fakeclock.h"

enum {
	MANY = 6000
};

static struct fakeclock fake;
static struct lane s;
static bool is_open;

static inline void
on_shard_done(struct op *op)
{
	op_unpin(op);
	on_done(op);
}

static inline void
end(void)
{
	if (!is_open)
		return;
	lane_close(&s);
	while (lane_round(&s))
		;
	lane_release(&s);
	fakeclock_release(&fake);
	is_open = false;
}

/* Replaces the shard that a test begins with. */
static inline void
start_with(const struct engine_ops *ops)
{
	static const _Atomic uint32_t one = 1;
	const struct engine_conf conf = { 0 };

	end();
	fakeclock_init(&fake, SLU_SEC, SLU_HOUR);
	CHECK_EQ(0, lane_open(&s, ops, &conf, &fake.clock, 0, &one, NULL));
	is_open = true;
}

static inline void
start(void)
{
	start_with(&engine_memory);
}

FIXTURE(start, end);

/* Everything that can happen now has happened. */
static inline void
turn(void)
{
	for (int i = 0; i < 8; i++) {
		mailbox_poke(&s.mailbox);
		lane_round(&s);
	}
}

static inline void
pass(slu_time by)
{
	fakeclock_advance(&fake, by);
	turn();
}

static inline struct op_call *
call(struct op_call *c, enum op_verb verb, const char *space, const char *queue)
{
	op_call_init(c, verb, space, queue, on_shard_done);
	c->op.route.cost = 1;
	c->op.route.bytes = 100;
	return c;
}

static inline void
post(struct op_call *c)
{
	CHECK_EQ(0, lane_post(&s, &c->op));
}

static inline void
run(struct op_call *c)
{
	post(c);
	turn();
}

static inline uint64_t
post_push(struct op_call *c, const char *queue, slu_time delay)
{
	static uint64_t next = 1;

	call(c, OP_ENQUEUE, "ns", queue);
	c->put.m.id = next++;
	c->put.delay = delay;
	post(c);
	return c->put.m.id;
}

static inline uint64_t
push(struct op_call *c, const char *queue, slu_time delay)
{
	const uint64_t id = post_push(c, queue, delay);

	turn();
	return id;
}

static inline void
post_claim(struct op_call *c, const char *queue, slu_time wait)
{
	call(c, OP_CLAIM, "ns", queue);
	c->op.wait = wait;
	post(c);
}

static inline void
claim(struct op_call *c, const char *queue, slu_time wait)
{
	post_claim(c, queue, wait);
	turn();
}

static inline void
post_settle(struct op_call *c, enum op_verb verb, const struct op_row *row, slu_time time)
{
	call(c, verb, "ns", "q");
	c->item = (struct op_item){ .id = row->id, .token = row->token, .time = time };
	post(c);
}

static inline void
settle(struct op_call *c, enum op_verb verb, const struct op_row *row, slu_time time)
{
	post_settle(c, verb, row, time);
	turn();
}

/* Which message a claim got, or 0. */
static inline uint64_t
got(const struct op_call *c)
{
	CHECK_EQ(0, rc_of(c));
	return c->op.n_rows ? c->rows[0].id : 0;
}

#endif
