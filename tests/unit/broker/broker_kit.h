/*
 * broker_kit.h - what the tests of brokers share: a broker that ops are posted to and waited for.
 *
 * A broker runs in threads of its own, or the test runs its rounds (by_hand) and owns its clock.
 * The helpers are the same for both.
 */
#ifndef TESTS_BROKER_KIT_H
#define TESTS_BROKER_KIT_H

#include "op_call.h"

#include "broker/broker.h"
#include "engine/memory/memory.h"
#include "fakeclock.h"

static struct fakeclock fake;
static struct broker *b;
static bool by_hand;

static inline struct op_call *
call(struct op_call *c, enum op_verb verb, const char *queue)
{
	return op_call_init(c, verb, "ns", queue, on_done);
}

static inline void
open_broker(const struct broker_conf *conf)
{
	struct slu_err err;

	if (broker_open(&b, conf, &err))
		test_fail(__FILE__, __LINE__, "%s", err.text);
}

static inline void
close_broker(void)
{
	if (b)
		CHECK_EQ(0, broker_close(b));
	b = NULL;
}

/* By hand: everything that can happen now has happened. */
static inline void
turn(void)
{
	while (by_hand && broker_round(b) <= clock_boot(&fake.clock))
		;
}

static inline void
post(struct op_call *c)
{
	c->done = 0;
	CHECK_EQ(0, broker_post(b, &c->op));
	turn();
}

static inline void
await(struct op_call *c, int times)
{
	pthread_mutex_lock(&c->mtx);
	while (!by_hand && c->done < times)
		pthread_cond_wait(&c->ended, &c->mtx);
	CHECK_EQ(times, c->done);
	pthread_mutex_unlock(&c->mtx);
}

static inline int
run(struct op_call *c)
{
	post(c);
	await(c, 1);
	return c->op.rc;
}

/* The same on one lane alone, whatever the map says. */
static inline int
run_at(struct op_call *c, uint32_t lane)
{
	c->done = 0;
	CHECK_EQ(0, broker_post_at(b, lane, &c->op));
	turn();
	await(c, 1);
	return c->op.rc;
}

/* The message that a claim was granted, or 0. */
static inline uint64_t
claimed(struct op_call *c)
{
	const uint64_t id = c->op.n_rows ? c->rows[0].id : 0;

	op_unpin(&c->op);
	return id;
}

static inline uint64_t
claim(struct op_call *c, const char *queue)
{
	CHECK_EQ(0, run(call(c, OP_CLAIM, queue)));
	return claimed(c);
}

/* The rc of the item. */
static inline int
settle(struct op_call *c, enum op_verb verb, uint64_t id, uint64_t token)
{
	call(c, verb, "q");
	c->item.id = id;
	c->item.token = token;
	c->item.time = LEDGER_BY_POLICY;
	CHECK_EQ(0, run(c));
	return c->item.rc;
}

static inline struct op_call *
with_policy(struct op_call *c, uint16_t max_attempts)
{
	call(c, OP_POLICY_SET, "q");
	c->op.policy = policy_default;
	c->op.policy.max_attempts = max_attempts;
	return c;
}

static inline struct policy
policy_at(uint32_t lane)
{
	struct op_call c;

	CHECK_EQ(0, run_at(call(&c, OP_POLICY_GET, "q"), lane));
	return c.op.policy;
}

/* ---- Maps, and steps of a move ---- */

static inline struct supplier *
new_supplier(const char *standard, const struct supplier_rule *rules, size_t n)
{
	const struct supplier_conf conf = {
		.kind = "static",
		.standard = standard,
		.rules = rules,
		.n_rules = n,
	};
	struct supplier *s;

	CHECK_EQ(0, supplier_new(&s, &conf, NULL));
	return s;
}

/* before may be NULL. Takes both. */
static inline struct shardmap *
new_map(const char *const *names, unsigned n, uint64_t version, struct supplier *now,
	struct supplier *before)
{
	const struct shardmap_conf conf = {
		.shards = names,
		.n_shards = n,
		.now = now,
		.before = before,
		.version = version,
	};
	struct shardmap *m;

	CHECK_EQ(0, shardmap_new(&m, &conf, NULL));
	return m;
}

static inline int
try_reroute(struct shardmap *map, const struct broker_shard_conf *shards, unsigned n,
	    struct slu_err *err)
{
	struct routes *r;
	const int rc = broker_routes_new(b, map, shards, n, &r, err);

	if (!rc)
		broker_routes_use(b, r);
	return rc;
}

/* One step on one lane, of queue "q". */
static inline struct op_call *
take_step(struct op_call *c, enum move_step which)
{
	call(c, OP_MOVE, "q");
	c->op.max_rows = ROWS;
	c->op.move.step = which;
	return c;
}

/* Sets the mark of q there, as another node would. */
static inline int
mark_at(uint32_t lane, uint64_t epoch, const char *lives)
{
	struct op_call c;

	take_step(&c, MOVE_MARK);
	c.op.home.epoch = epoch;
	c.op.home.lives = lives;
	return run_at(&c, lane);
}

static inline struct op_move
look_at(uint32_t lane)
{
	struct op_call c;

	CHECK_EQ(0, run_at(take_step(&c, MOVE_LOOK), lane));
	return c.op.move;
}

#endif
