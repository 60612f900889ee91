/*
 * relay_fixture.h - a broker without threads, with two shards between which queues move, or three.
 *
 * Queue "q" lives on "old" by the first map, and on "new" by the second, which knows of the
 * old one. "other" lives on "new" by both. No map has a queue on "third", but marks may.
 */
#ifndef TESTS_RELAY_FIXTURE_H
#define TESTS_RELAY_FIXTURE_H

#include "test.h"

#include "broker/broker.h"
#include "broker/relay.h"
#include "engine/memory.h"
#include "fakeclock.h"

enum {
	OLD, /* lanes */
	NEW,
	THIRD,
	SHARDS,
	ROWS = 10
};

/* An op with room for its answer, and whether it was given. */
struct call {
	struct op op;
	struct op_put puts[4];
	struct op_item items[4];
	struct op_row rows[ROWS];
	struct op_queue queue;
	int done;
};

static struct fakeclock fake;
static struct broker *b;
static struct broker_shard_conf shards[SHARDS] = {
	{ .name = "old", .engine = &engine_memory },
	{ .name = "new", .engine = &engine_memory },
	{ .name = "third", .engine = &engine_memory },
};
static unsigned n_shards = 2;

static inline void
on_done(struct op *op)
{
	struct call *c = op->owner;

	c->done++;
}

static inline struct supplier *
lives_on(const char *shard)
{
	const struct supplier_rule rules[] = {
		{ SUPPLIER_COMMAND, "q", shard },
		{ SUPPLIER_COMMAND, "other", "new" },
	};
	const struct supplier_conf conf = {
		.kind = "static",
		.standard = "old",
		.rules = rules,
		.n_rules = COUNT(rules),
	};
	struct supplier *s;

	CHECK_EQ(0, supplier_new(&s, &conf, NULL));
	return s;
}

static inline struct shardmap *
map_of(uint64_t version, const char *now, const char *before)
{
	static const char *const names[SHARDS] = { "old", "new", "third" };
	const struct shardmap_conf conf = {
		.shards = names,
		.n_shards = n_shards,
		.now = lives_on(now),
		.before = before ? lives_on(before) : NULL,
		.version = version,
	};
	struct shardmap *m;

	CHECK_EQ(0, shardmap_new(&m, &conf, NULL));
	return m;
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

	fakeclock_init(&fake, SLU_SEC, SLU_HOUR);
	CHECK_EQ(0, broker_open(&b, &conf, NULL));
}

/* The map says so from now on. */
static inline void
reroute(uint64_t version, const char *now, const char *before)
{
	struct routes *r;

	CHECK_EQ(0, broker_routes_new(b, map_of(version, now, before), shards, n_shards, &r, NULL));
	broker_routes_use(b, r);
}

/* Everything that can happen now has happened. */
static inline void
turn(void)
{
	while (broker_round(b) <= clock_boot(&fake.clock))
		;
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
	CHECK_EQ(0, broker_close(b));
	fakeclock_release(&fake);
}

static inline struct call *
call(struct call *c, enum op_verb verb, const char *queue)
{
	memset(c, 0, sizeof *c);
	op_init(&c->op, verb, SLICE("ns"), slice_of(queue), on_done, c);
	c->op.puts = c->puts;
	c->op.n_puts = verb == OP_ENQUEUE;
	c->op.items = c->items;
	c->op.n_items = (verb >= OP_ACK && verb <= OP_DELETE) || verb == OP_ASIDE;
	c->op.rows = c->rows;
	c->op.max_rows = 1;
	c->op.queues = &c->queue;
	c->op.max_queues = 1;
	return c;
}

static inline void
post(struct call *c)
{
	c->done = 0;
	CHECK_EQ(0, broker_post(b, &c->op));
	turn();
}

static inline int
run(struct call *c)
{
	post(c);
	CHECK_EQ(1, c->done);
	return c->op.rc;
}

/* The same on one lane alone, whatever the map says. */
static inline int
run_at(struct call *c, uint32_t lane)
{
	c->done = 0;
	CHECK_EQ(0, broker_post_at(b, lane, &c->op));
	turn();
	CHECK_EQ(1, c->done);
	return c->op.rc;
}

static inline uint64_t
push_with(const char *queue, const char *key, const char *idem, slu_time delay)
{
	struct call c;

	call(&c, OP_ENQUEUE, queue);
	c.puts[0].m.key = key ? slice_of(key) : (struct slice){ 0 };
	c.puts[0].m.idem = idem ? slice_of(idem) : (struct slice){ 0 };
	c.puts[0].delay = delay;
	CHECK_EQ(0, run(&c), c.op.err.text);
	return c.puts[0].m.id;
}

static inline uint64_t
push(const char *queue)
{
	return push_with(queue, NULL, NULL, 0);
}

static inline uint32_t
count_at(uint32_t lane, const char *queue, enum msg_state state)
{
	struct call c;

	return run_at(call(&c, OP_STATS, queue), lane) ? 0 : c.queue.count[state];
}

/* A message that a claim was granted, or 0. */
static inline uint64_t
claimed(struct call *c)
{
	const uint64_t id = c->op.n_rows ? c->rows[0].id : 0;

	op_unpin(&c->op);
	return id;
}

static inline uint64_t
claim(struct call *c, const char *queue)
{
	CHECK_EQ(0, run(call(c, OP_CLAIM, queue)));
	return claimed(c);
}

static inline uint64_t
ops_of(uint32_t lane)
{
	struct broker_totals t;

	broker_totals(b, lane, &t);
	return t.ops;
}

static inline int
settle(struct call *c, enum op_verb verb, uint64_t id, uint64_t token)
{
	call(c, verb, "q");
	c->items[0].id = id;
	c->items[0].token = token;
	c->items[0].time = LEDGER_BY_POLICY;
	CHECK_EQ(0, run(c));
	return c->items[0].rc;
}

/* A step of a move, on one lane. */
static inline int
move_step(struct call *c, uint32_t lane, enum move_step step, uint64_t batch)
{
	call(c, OP_MOVE, "q");
	c->op.max_rows = ROWS;
	c->op.move.step = step;
	c->op.move.batch = batch;
	return run_at(c, lane);
}

/* The mark of q there, as somebody else would set it. */
static inline int
mark_by_hand(uint32_t lane, uint64_t epoch, const char *shard)
{
	struct call c;

	call(&c, OP_MOVE, "q");
	c.op.move.step = MOVE_MARK;
	c.op.epoch = epoch;
	c.op.lives = shard;
	return run_at(&c, lane);
}

static inline const char *
lives(uint32_t lane)
{
	static char name[MOVE_SHARD];
	struct call c;

	CHECK_EQ(0, move_step(&c, lane, MOVE_LOOK, 0));
	return memcpy(name, c.op.move.lives, sizeof name);
}

#endif
