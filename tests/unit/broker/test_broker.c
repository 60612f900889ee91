/*
 * The broker with its threads. Real time, but nothing depends on how long it takes.
 */
#include "broker_kit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	PRODUCERS = 4,
	CONSUMERS = 8,
	EACH_PUTS = 2000,
	TOTAL = PRODUCERS * EACH_PUTS,
	KEYS = 5,
	CLAIMERS = 1000,
	LEAVERS = 200
};

FIXTURE(NULL, close_broker);

/* Replaces the broker that was started before. */
static void
start(uint32_t lanes)
{
	const struct broker_shard_conf shard = { .engine = &engine_memory, .lanes = lanes };

	close_broker();
	open_broker(&(struct broker_conf){ .shards = &shard, .n_shards = 1 });
}

static uint64_t
push(const char *queue)
{
	struct op_call c;

	CHECK_EQ(0, run(call(&c, OP_ENQUEUE, queue)));
	return c.put.m.id;
}

static uint32_t
count(const char *queue, enum msg_state state)
{
	struct op_call c;

	return run(call(&c, OP_STATS, queue)) ? 0 : c.queues[0].count[state];
}

static struct broker_totals
totals(uint32_t shard)
{
	struct broker_totals t;

	broker_totals(b, shard, &t);
	return t;
}

/* ---- Many producers, many consumers ---- */

struct seen {
	_Atomic int first; /* deliveries */
	_Atomic int acked;
	_Atomic uint64_t order; /* of its first delivery, from 1 */
};

static struct seen seen[TOTAL];
static _Atomic uint64_t deliveries, acked;
static _Atomic int in_flight[KEYS]; /* of a key: one at a time */

static const char *const keys[KEYS] = { "a", "b", "c", "d", "e" };

/* A producer has a key of its own, so its order is the order of that key. */
static void *
produce(void *arg)
{
	const uint32_t me = (uint32_t)(uintptr_t)arg;

	for (uint32_t i = 0; i < EACH_PUTS; i++) {
		struct op_call c;
		char name[32];

		call(&c, OP_ENQUEUE, "q");
		c.put.m.key = slice_of(keys[me]);
		c.put.m.prio = (int32_t)(i % 3);
		snprintf(name, sizeof name, "%u", me * EACH_PUTS + i);
		c.put.m.payload = slice_of(name);
		CHECK_EQ(0, run(&c));
	}
	return NULL;
}

/* Which of all messages a row is. */
static uint32_t
which(const struct op_call *c, uint32_t row)
{
	const struct op_ref *ref = &c->rows[row].record;
	char bytes[512], text[16] = "";
	struct message m;

	CHECK(ref->size < sizeof bytes);
	CHECK_EQ(0, engine_read(c->op.engine, ref, 0, ref->size, bytes, false, NULL));
	CHECK_EQ(0, message_decode((struct slice){ bytes, ref->size }, &m, NULL));
	memcpy(text, m.payload.p, m.payload.n);
	return (uint32_t)atoi(text);
}

static void
deliver(const struct op_call *c, uint32_t row, uint64_t *random)
{
	const uint32_t i = which(c, row);
	struct op_call s;

	CHECK_EQ(0, atomic_fetch_add(&in_flight[i / EACH_PUTS], 1));
	if (atomic_fetch_add(&seen[i].first, 1) == 0)
		seen[i].order = ++deliveries;
	CHECK_EQ(0, seen[i].acked);
	call(&s, test_random(random) % 10 ? OP_ACK : OP_NACK, "q");
	s.item.id = c->rows[row].id;
	s.item.token = c->rows[row].token;
	s.item.defer = true;
	seen[i].acked = s.op.verb == OP_ACK;
	atomic_fetch_sub(&in_flight[i / EACH_PUTS], 1);
	CHECK_EQ(0, run(&s));
	CHECK_EQ(0, s.item.rc);
	if (s.op.verb == OP_ACK)
		acked++;
}

static void *
consume(void *arg)
{
	uint64_t random = test_seed() + (uintptr_t)arg;

	while (acked < TOTAL) {
		struct op_call c;

		call(&c, OP_CLAIM, "q");
		c.op.max_rows = 1 + (uint32_t)(test_random(&random) % 4);
		c.op.wait = 20 * SLU_MS;
		CHECK_EQ(0, run(&c));
		for (uint32_t i = 0; i < c.op.n_rows; i++)
			deliver(&c, i, &random);
		op_unpin(&c.op);
	}
	return NULL;
}

static void
check_order(void)
{
	for (uint32_t i = 0; i < TOTAL; i++) {
		CHECK(seen[i].first >= 1);
		CHECK_EQ(1, seen[i].acked);
		if (i % EACH_PUTS > 0)
			CHECK(seen[i - 1].order < seen[i].order);
	}
}

/* MQ-21; I1, I3, I4 and I6 of the checker. */
TEST_LIMIT(each_message_goes_to_one_consumer_at_a_time_in_order_of_its_key, 240)
{
	pthread_t producers[PRODUCERS], consumers[CONSUMERS];

	start(1);
	for (uintptr_t i = 0; i < PRODUCERS; i++)
		pthread_create(&producers[i], NULL, produce, (void *)i);
	for (uintptr_t i = 0; i < CONSUMERS; i++)
		pthread_create(&consumers[i], NULL, consume, (void *)i);
	for (int i = 0; i < PRODUCERS; i++)
		pthread_join(producers[i], NULL);
	for (int i = 0; i < CONSUMERS; i++)
		pthread_join(consumers[i], NULL);
	check_order();
	CHECK_EQ(TOTAL, totals(0).accepted);
	CHECK_EQ(TOTAL, totals(0).acked);
}

/* ---- Clients that hang up ---- */

static struct op_call claimers[CLAIMERS];

/* Ends its call as an API does for a connection that is gone. */
static void
hang_up(struct op_call *c)
{
	broker_cancel(b, &c->op);
	await(c, 1);
	if (c->op.rc == SLU_ECANCELED || c->op.n_rows == 0)
		return;
	CHECK_EQ(0, c->op.rc);
	CHECK_EQ(0, broker_return(b, &c->op, 0));
	await(c, 2);
}

static void *
hang_up_all(void *arg)
{
	for (uintptr_t i = (uintptr_t)arg; i < CLAIMERS; i += 2)
		hang_up(&claimers[i]);
	return NULL;
}

/* Invariant 13: a thousand claimers that leave at any moment. */
TEST_LIMIT(a_client_that_hangs_up_costs_no_message_an_attempt, 120)
{
	pthread_t leavers[2];
	static struct op_call c;

	start(1);
	for (int i = 0; i < CLAIMERS; i++) {
		call(&claimers[i], OP_CLAIM, "q");
		claimers[i].op.wait = SLU_NEVER;
		CHECK_EQ(0, broker_post(b, &claimers[i].op));
	}
	for (uintptr_t i = 0; i < 2; i++)
		pthread_create(&leavers[i], NULL, hang_up_all, (void *)i);
	for (int i = 0; i < LEAVERS; i++)
		push("q");
	for (int i = 0; i < 2; i++)
		pthread_join(leavers[i], NULL);
	CHECK_EQ(LEAVERS, count("q", MSG_READY));
	CHECK_EQ(0, count("q", MSG_LEASED));
	for (int i = 0; i < LEAVERS; i++) {
		CHECK_EQ(0, run(call(&c, OP_CLAIM, "q")));
		CHECK_EQ(1, c.op.n_rows);
		CHECK_EQ(1, c.rows[0].attempts);
		CHECK_EQ(0, c.rows[0].failures);
		op_unpin(&c.op);
	}
}

TEST(a_part_of_what_was_granted_can_be_returned)
{
	static struct op_call c;
	uint64_t first, second;

	start(1);
	first = push("q");
	second = push("q");
	call(&c, OP_CLAIM, "q");
	c.op.max_rows = 2;
	CHECK_EQ(0, run(&c));
	CHECK_EQ(first, c.rows[0].id);
	engine_unpin(c.op.engine, &c.rows[0].record);
	CHECK_EQ(0, broker_return(b, &c.op, 1));
	await(&c, 2);
	CHECK_EQ(1, count("q", MSG_LEASED));
	CHECK_EQ(0, run(call(&c, OP_CLAIM, "q")));
	CHECK_EQ(second, c.rows[0].id);
	op_unpin(&c.op);
}

/* ---- Waiting ---- */

static int
threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	int n = 0;

	CHECK(tasks);
	while (readdir(tasks))
		n++;
	closedir(tasks);
	return n;
}

/* LQ-13, LQ-41: idle waiters cost no work and no threads. */
TEST(a_thousand_idle_waiters_cause_no_work)
{
	static char names[CLAIMERS][8];
	uint64_t batches;
	int before;

	start(1);
	before = threads();
	for (int i = 0; i < CLAIMERS; i++) {
		snprintf(names[i], sizeof names[i], "q%d", i % 100);
		call(&claimers[i], OP_CLAIM, names[i]);
		claimers[i].op.wait = SLU_NEVER;
		CHECK_EQ(0, broker_post(b, &claimers[i].op));
	}
	WAIT_UNTIL(totals(0).waiting == CLAIMERS);
	batches = totals(0).batches;
	for (int i = 0; i < 100; i++)
		push("q");
	CHECK(totals(0).batches <= batches + 100);
	CHECK_EQ(before, threads());
	broker_stop(b);
	for (int i = 0; i < CLAIMERS; i++)
		CHECK_EQ(1, claimers[i].done);
}

/* ---- Stop ---- */

static _Atomic bool go_on;
static _Atomic uint64_t taken, refused;

static void *
push_until_refused(void *arg)
{
	(void)arg;
	while (go_on) {
		struct op_call c;

		call(&c, OP_ENQUEUE, "q");
		if (broker_post(b, &c.op)) {
			refused++;
			return NULL;
		}
		await(&c, 1);
		taken += c.op.rc == 0;
	}
	return NULL;
}

static void *
stop(void *arg)
{
	(void)arg;
	broker_stop(b);
	return NULL;
}

/* Invariant 10. */
TEST(a_stop_answers_everything_and_refuses_the_rest)
{
	pthread_t pushers[PRODUCERS], stoppers[2];
	static struct op_call late;

	start(1);
	go_on = true;
	for (int i = 0; i < PRODUCERS; i++)
		pthread_create(&pushers[i], NULL, push_until_refused, NULL);
	WAIT_UNTIL(taken > 100);
	for (int i = 0; i < 2; i++)
		pthread_create(&stoppers[i], NULL, stop, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(stoppers[i], NULL);
	for (int i = 0; i < PRODUCERS; i++)
		pthread_join(pushers[i], NULL);
	CHECK_EQ(PRODUCERS, refused);
	CHECK_EQ(taken, totals(0).accepted);
	CHECK_EQ(SLU_ECLOSED, broker_post(b, &call(&late, OP_ENQUEUE, "q")->op));
}

TEST(a_drain_refuses_new_work_and_lets_holders_finish)
{
	static struct op_call c, held, s;

	start(1);
	push("q");
	CHECK_EQ(0, run(call(&held, OP_CLAIM, "q")));
	broker_drain(b);
	CHECK_EQ(SLU_ECLOSED, broker_post(b, &call(&c, OP_ENQUEUE, "q")->op));
	CHECK_EQ(SLU_ECLOSED, broker_post(b, &call(&c, OP_CLAIM, "q")->op));
	call(&s, OP_ACK, "q");
	s.item.id = held.rows[0].id;
	s.item.token = held.rows[0].token;
	CHECK_EQ(0, run(&s));
	CHECK_EQ(0, s.item.rc);
	op_unpin(&held.op);
}

/* ---- Shards ---- */

/* MQ-44, MQ-45: FNV-1a of namespace, separator, queue; the numbers are another program's. */
TEST(a_queue_is_on_the_shard_its_hash_names)
{
	static const struct {
		const char *space, *queue;
		uint32_t hash;
	} cases[] = {
		{ "ns", "q0", 0x0118927a },
		{ "ns", "q1", 0x0218940d },
		{ "n", "sq0", 0x8a8684fa },
	};

	start(7);
	CHECK_EQ(7, broker_lanes(b));
	EACH(i, cases)
		CHECK_EQ(cases[i].hash % 7,
			 broker_lane_of(b, NULL, slice_of(cases[i].space),
					slice_of(cases[i].queue)));
	push("q0");
	push("q1");
	for (uint32_t i = 0; i < 7; i++)
		CHECK_EQ((i == cases[0].hash % 7) + (i == cases[1].hash % 7), totals(i).accepted);
}

TEST(topics_and_lists_go_over_all_shards)
{
	uint32_t queues = 0, messages = 0;
	static struct op_call c;
	char name[8];

	start(5);
	for (int i = 0; i < 30; i++) {
		snprintf(name, sizeof name, "q%d", i);
		push(name);
	}
	call(&c, OP_QUEUES, "");
	do {
		c.done = 0;
		CHECK_EQ(0, run(&c));
		queues += c.op.n_queues;
	} while (c.op.cursor);
	CHECK_EQ(30, queues);
	call(&c, OP_LIST, "");
	c.op.max_rows = COUNT(c.rows);
	do {
		c.done = 0;
		CHECK_EQ(0, run(&c));
		messages += c.op.n_rows;
		op_unpin(&c.op);
	} while (c.op.cursor);
	CHECK_EQ(30, messages);
}

TEST(what_belongs_to_two_shards_is_refused)
{
	struct op_put puts[8] = { 0 };
	char names[8][8];
	static struct op_call c;

	start(5);
	call(&c, OP_ENQUEUE, "q");
	EACH(i, puts) {
		snprintf(names[i], sizeof names[i], "q%zu", i);
		puts[i].m.queue = slice_of(names[i]);
	}
	c.op.puts = puts;
	c.op.n_puts = COUNT(puts);
	CHECK_EQ(SLU_EINVAL, broker_post(b, &c.op));
	call(&c, OP_ACK, "");
	CHECK_EQ(SLU_EINVAL, broker_post(b, &c.op));
	call(&c, OP_CLAIM, "");
	CHECK_EQ(SLU_EINVAL, broker_post(b, &c.op));
}

/* ---- Named shards ---- */

static const struct broker_shard_conf named[] = {
	{ .name = "default", .engine = &engine_memory, .lanes = 2 },
	{ .name = "heavy", .engine = &engine_memory },
	{ .name = "new", .engine = &engine_memory, .lanes = 3 },
};

static struct supplier *
by_table(const char *standard, const char *command, const char *shard)
{
	const struct supplier_rule rule = { SUPPLIER_COMMAND, command, shard };

	return new_supplier(standard, &rule, command ? 1 : 0);
}

/* Of the first n shards; queue `render` lives on the last of them, `ghost` on none. */
static struct shardmap *
map_of(unsigned n, uint64_t version, const char *command, const char *before)
{
	const char *const names[] = { "default", "heavy", "new" };

	return new_map(names, n, version, by_table("default", command, n ? names[n - 1] : ""),
		       before ? by_table(before, NULL, NULL) : NULL);
}

static void
start_named(struct shardmap *map)
{
	open_broker(&(struct broker_conf){ .shards = named, .n_shards = 2, .map = map });
}

static struct broker_place
place(const char *queue)
{
	struct broker_place p = { 0 };
	struct slu_err err = { 0 };

	CHECK_EQ(0, broker_place(b, NULL, SLICE("ns"), slice_of(queue), &p, &err), err.text);
	return p;
}

/* SH-14, SH-18, SH-23: the shard by the map, the lane by the hash. */
TEST(a_queue_is_on_a_lane_of_the_shard_that_the_map_names)
{
	start_named(map_of(2, 1, "render", NULL));
	CHECK_EQ(3, broker_lanes(b));
	CHECK_STR("heavy", place("render").shard);
	CHECK_STR("command", place("render").rule);
	CHECK_EQ(2, place("render").lane);
	CHECK_STR("default", place("q0").shard);
	CHECK_STR("default", place("q0").rule);
	CHECK_EQ(supplier_hash(SLICE("ns"), SLICE("q0")) % 2, place("q0").lane);
	CHECK_EQ(supplier_hash(SLICE("ns"), SLICE("q1")) % 2, place("q1").lane);
	CHECK_STR("default", broker_shard_name(b, 1));
	CHECK_STR("heavy", broker_shard_name(b, 2));
	CHECK_STR("shard=\"default\",lane=\"1\"", broker_lane_labels(b, 1));
	push("render");
	CHECK_EQ(1, totals(2).accepted);
}

TEST(an_op_says_the_epoch_of_its_map)
{
	static struct op_call c;

	start_named(map_of(2, 7, "render", NULL));
	call(&c, OP_CLAIM, "render");
	CHECK_EQ(0, run(&c));
	CHECK_EQ(7ull << MOVE_EPOCH_BITS, c.op.home.epoch);
	start(1);
	call(&c, OP_CLAIM, "render");
	CHECK_EQ(0, run(&c));
	CHECK_EQ(0, c.op.home.epoch);
}

TEST(former_shards_follow_the_current_one)
{
	struct broker_place all[SUPPLIED_MAX];
	struct slu_err err = { 0 };
	unsigned n;

	start_named(map_of(2, 2, "render", "default"));
	CHECK_EQ(0, broker_places(b, NULL, SLICE("ns"), SLICE("render"), all, &n, &err));
	CHECK_EQ(2, n);
	CHECK_STR("heavy", all[0].shard);
	CHECK_STR("default", all[1].shard);
	CHECK_STR("previous", all[1].rule);
	CHECK_EQ(0, broker_places(b, NULL, SLICE("ns"), SLICE("q0"), all, &n, &err));
	CHECK_EQ(1, n);
}

/* Names an unknown shard, or refuses. */
static int
broken_current(const struct supplier *s, struct slice space, struct slice queue,
	       struct supplied *out, struct slu_err *err)
{
	(void)s;
	(void)space;
	if (queue.n == 5)
		return slu_fail(err, SLU_EDOWN, "the registry is away");
	*out = (struct supplied){ queue.n == 2 ? "default" : "nowhere", "broken" };
	return 0;
}

static int
broken_all(const struct supplier *s, struct slice space, struct slice queue,
	   struct supplied out[SUPPLIED_MAX], unsigned *n, struct slu_err *err)
{
	*n = 1;
	return broken_current(s, space, queue, out, err);
}

static void
broken_describe(const struct supplier *s, struct buf *out)
{
	(void)s;
	buf_puts(out, "broken\n");
}

static void
broken_free(struct supplier *s)
{
	(void)s;
}

/* SH-31, SH-32: said as it is, and nothing is written anywhere. */
TEST(a_queue_without_a_shard_is_refused)
{
	static const struct supplier_ops ops = { "broken", broken_current, broken_all,
						 broken_describe, broken_free };
	static struct supplier broken = { &ops };
	const char *const names[] = { "default", "heavy" };
	const struct shardmap_conf conf = { .shards = names, .n_shards = 2, .now = &broken };
	struct shardmap *m;
	static struct op_call c;

	CHECK_EQ(0, shardmap_new(&m, &conf, NULL));
	start_named(m);
	push("q0");
	call(&c, OP_ENQUEUE, "lost");
	CHECK_EQ(SLU_EDOWN, broker_post(b, &c.op));
	CHECK_STR("unknown shard: nowhere", c.op.err.text);
	call(&c, OP_ENQUEUE, "fails");
	CHECK_EQ(SLU_EDOWN, broker_post(b, &c.op));
	CHECK_STR("shard resolution: the registry is away", c.op.err.text);
	CHECK_EQ(1, totals(0).accepted + totals(1).accepted + totals(2).accepted);
}

/* BROKER-3: what was routed by the old map goes where that says. */
TEST(a_new_map_opens_what_is_new_and_leaves_ops_their_own)
{
	const struct routes *old;
	struct slu_err err = { 0 };
	static struct op_call c;

	start_named(map_of(2, 1, "render", NULL));
	old = broker_routes(b);
	CHECK_EQ(0, try_reroute(map_of(3, 2, "render", "heavy"), named, 3, &err), err.text);
	CHECK_EQ(6, broker_lanes(b));
	CHECK_STR("new", place("render").shard);
	CHECK_EQ(2, shardmap_version(broker_map(broker_routes(b))));
	call(&c, OP_ENQUEUE, "render");
	c.op.route.routes = old;
	CHECK_EQ(0, run(&c));
	CHECK_EQ(1, totals(2).accepted);
	CHECK_EQ(1ull << MOVE_EPOCH_BITS, c.op.home.epoch);
	push("render");
	CHECK_EQ(1, totals(place("render").lane).accepted);
}

TEST(a_map_that_names_what_is_not_there_changes_nothing)
{
	struct slu_err err = { 0 };

	start_named(map_of(2, 1, "render", NULL));
	CHECK_EQ(SLU_EINVAL, try_reroute(map_of(3, 2, "render", NULL), named, 2, &err));
	CHECK_STR("unknown shard: new", err.text);
	CHECK_STR("heavy", place("render").shard);
	CHECK_EQ(3, broker_lanes(b));
	broker_stop(b);
	CHECK_EQ(SLU_ECLOSED, try_reroute(map_of(3, 2, "render", NULL), named, 3, &err));
}

/* NULL: there is no memory. */
static struct shardmap *
try_map(unsigned n)
{
	static const char *const names[] = { "default", "heavy", "new" };
	const struct supplier_conf by = { .standard = names[n - 1] };
	struct shardmap_conf conf = { .shards = names, .n_shards = n, .version = n };
	struct shardmap *m;

	if (supplier_new(&conf.now, &by, NULL) || shardmap_new(&m, &conf, NULL))
		return NULL;
	return m;
}

TORTURE(a_new_map_survives_every_failed_allocation)
{
	struct broker_conf conf = { .shards = named, .n_shards = 2, .map = try_map(2) };
	struct shardmap *next;
	int rc;

	if (!conf.map || broker_open(&b, &conf, NULL))
		return;
	next = try_map(3);
	rc = next ? try_reroute(next, named, 3, NULL) : SLU_ENOMEM;
	CHECK(rc == 0 || rc == SLU_ENOMEM);
	CHECK_EQ(rc ? 2 : 3, shardmap_version(broker_map(broker_routes(b))));
	broker_close(b);
}

/* ---- Open ---- */

TORTURE(opening_survives_every_failed_allocation)
{
	const struct broker_shard_conf shard = { .engine = &engine_memory, .lanes = 3 };
	const struct broker_conf conf = { .shards = &shard, .n_shards = 1 };
	int rc;

	rc = broker_open(&b, &conf, NULL);
	CHECK(rc == 0 || rc == SLU_ENOMEM);
	if (!rc)
		broker_close(b);
}
