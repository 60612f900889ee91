/*
 * follow_fixture.h - a broker without threads, with two shards between which queues move, or three.
 *
 * Queue "q" lives on "old" by the first map, and on "new" by the second, which knows of the
 * old one. "other" lives on "new" by both. No map has a queue on "third", but marks may.
 */
#ifndef TESTS_FOLLOW_FIXTURE_H
#define TESTS_FOLLOW_FIXTURE_H

#include "broker_kit.h"

#include "broker/move/follow.h"

enum {
	OLD, /* lanes */
	NEW,
	THIRD,
	SHARDS
};

static struct broker_shard_conf shards[SHARDS] = {
	{ .name = "old", .engine = &engine_memory },
	{ .name = "new", .engine = &engine_memory },
	{ .name = "third", .engine = &engine_memory },
};
static unsigned n_shards = 2;

static inline struct supplier *
lives_on(const char *shard)
{
	const struct supplier_rule rules[] = {
		{ SUPPLIER_COMMAND, "q", shard },
		{ SUPPLIER_COMMAND, "other", "new" },
	};

	return new_supplier("old", rules, COUNT(rules));
}

static inline struct shardmap *
map_of(uint64_t version, const char *now, const char *before)
{
	static const char *const names[SHARDS] = { "old", "new", "third" };

	return new_map(names, n_shards, version, lives_on(now), before ? lives_on(before) : NULL);
}

static inline void
start(void)
{
	const struct broker_conf conf = {
		.shards = shards,
		.n_shards = n_shards,
		.map = map_of(1, "old", NULL),
		.clock = &fake.clock,
		.by_hand = true,
	};

	by_hand = true;
	fakeclock_init(&fake, SLU_SEC, SLU_HOUR);
	open_broker(&conf);
}

static inline void
end(void)
{
	close_broker();
	fakeclock_release(&fake);
}

/* The map says so from now on. */
static inline void
reroute(uint64_t version, const char *now, const char *before)
{
	CHECK_EQ(0, try_reroute(map_of(version, now, before), shards, n_shards, NULL));
}

static inline void
pass(slu_time by)
{
	fakeclock_advance(&fake, by);
	turn();
}

static inline void
wait_for(struct op_call *c, enum op_verb verb, slu_time wait)
{
	call(c, verb, "q");
	c->op.wait = wait;
	post(c);
}

static inline uint64_t
push_with(const char *queue, const char *key, const char *idem, slu_time delay)
{
	struct op_call c;

	call(&c, OP_ENQUEUE, queue);
	c.put.m.key = key ? slice_of(key) : (struct slice){ 0 };
	c.put.m.idem = idem ? slice_of(idem) : (struct slice){ 0 };
	c.put.delay = delay;
	CHECK_EQ(0, run(&c), c.op.err.text);
	return c.put.m.id;
}

static inline uint64_t
push(const char *queue)
{
	return push_with(queue, NULL, NULL, 0);
}

static inline uint32_t
count_at(uint32_t lane, const char *queue, enum msg_state state)
{
	struct op_call c;

	return run_at(call(&c, OP_STATS, queue), lane) ? 0 : c.queue.count[state];
}

static inline uint64_t
ops_of(uint32_t lane)
{
	struct broker_totals t;

	broker_totals(b, lane, &t);
	return t.ops;
}

static inline const char *
lives(uint32_t lane)
{
	static struct op_move move;

	move = look_at(lane);
	return move.lives;
}

#endif
