/*
 * The broker with its threads. Real time, but nothing depends on how long it takes.
 */
#include "test.h"

#include "broker/broker.h"
#include "engine/memory.h"

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

/* An op whose caller waits for it. */
struct call {
	struct op op;
	struct op_put put;
	struct op_item item;
	struct op_row rows[10];
	struct op_queue queues[10];
	pthread_mutex_t mtx;
	pthread_cond_t ended;
	int done;
	char name[32];
};

static struct broker *b;

static void
on_done(struct op *op)
{
	struct call *c = op->owner;

	pthread_mutex_lock(&c->mtx);
	c->done++;
	pthread_cond_signal(&c->ended);
	pthread_mutex_unlock(&c->mtx);
}

static void
start(uint32_t shards)
{
	const struct broker_conf conf = { .engine = &engine_memory, .shards = shards };
	struct slu_err err;

	if (broker_open(&b, &conf, &err))
		test_fail(__FILE__, __LINE__, "%s", err.text);
}

static struct call *
call(struct call *c, enum op_verb verb, const char *queue)
{
	memset(c, 0, sizeof *c);
	pthread_mutex_init(&c->mtx, NULL);
	pthread_cond_init(&c->ended, NULL);
	op_init(&c->op, verb, SLICE("ns"), slice_of(queue), on_done, c);
	c->op.puts = &c->put;
	c->op.n_puts = verb == OP_ENQUEUE;
	c->op.items = &c->item;
	c->op.n_items = verb >= OP_ACK && verb <= OP_DELETE;
	c->op.rows = c->rows;
	c->op.max_rows = 1;
	c->op.queues = c->queues;
	c->op.max_queues = COUNT(c->queues);
	return c;
}

static void
await(struct call *c, int times)
{
	pthread_mutex_lock(&c->mtx);
	while (c->done < times)
		pthread_cond_wait(&c->ended, &c->mtx);
	CHECK_EQ(times, c->done);
	pthread_mutex_unlock(&c->mtx);
}

static int
run(struct call *c)
{
	CHECK_EQ(0, broker_post(b, &c->op));
	await(c, 1);
	return c->op.rc;
}

static uint64_t
push(const char *queue)
{
	struct call c;

	CHECK_EQ(0, run(call(&c, OP_ENQUEUE, queue)));
	return c.put.m.id;
}

static uint32_t
count(const char *queue, enum msg_state state)
{
	struct call c;

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
		struct call c;

		call(&c, OP_ENQUEUE, "q");
		c.put.m.key = slice_of(keys[me]);
		c.put.m.prio = (int32_t)(i % 3);
		snprintf(c.name, sizeof c.name, "%u", me * EACH_PUTS + i);
		c.put.m.payload = slice_of(c.name);
		CHECK_EQ(0, run(&c));
	}
	return NULL;
}

/* Which of all messages a row is. */
static uint32_t
which(const struct call *c, uint32_t row)
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
deliver(const struct call *c, uint32_t row, uint64_t *random)
{
	const uint32_t i = which(c, row);
	struct call s;

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
		struct call c;

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
	broker_close(b);
}

/* ---- Clients that hang up ---- */

static struct call claimers[CLAIMERS];

/* Ends its call as an API does for a connection that is gone. */
static void
hang_up(struct call *c)
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
TEST_LIMIT(who_hangs_up_costs_no_message_an_attempt, 120)
{
	pthread_t leavers[2];
	struct call c;

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
	broker_close(b);
}

TEST(a_part_of_what_was_granted_can_be_returned)
{
	struct call c;
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
	broker_close(b);
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
	broker_close(b);
}

/* ---- Stop ---- */

static _Atomic bool go_on;
static _Atomic uint64_t taken, refused;

static void *
push_until_refused(void *arg)
{
	(void)arg;
	while (go_on) {
		struct call c;

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
	struct call late;

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
	broker_close(b);
}

TEST(a_drain_refuses_new_work_and_lets_holders_finish)
{
	struct call c, held, s;

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
	broker_close(b);
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
	CHECK_EQ(7, broker_shards(b));
	EACH(i, cases)
		CHECK_EQ(cases[i].hash % 7,
			 broker_shard_of(b, slice_of(cases[i].space), slice_of(cases[i].queue)));
	push("q0");
	push("q1");
	for (uint32_t i = 0; i < 7; i++)
		CHECK_EQ((i == cases[0].hash % 7) + (i == cases[1].hash % 7), totals(i).accepted);
	broker_close(b);
}

TEST(topics_and_lists_go_over_all_shards)
{
	uint32_t queues = 0, messages = 0;
	struct call c;
	char name[8];

	start(5);
	for (int i = 0; i < 30; i++) {
		snprintf(name, sizeof name, "q%d", i);
		push(name);
	}
	call(&c, OP_TOPICS, "");
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
	broker_close(b);
}

TEST(what_belongs_to_two_shards_is_refused)
{
	struct op_put puts[8] = { 0 };
	char names[8][8];
	struct call c;

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
	broker_close(b);
}

/* ---- Open ---- */

TORTURE(opening_survives_every_failed_allocation)
{
	const struct broker_conf conf = { .engine = &engine_memory, .shards = 3 };
	int rc;

	rc = broker_open(&b, &conf, NULL);
	CHECK(rc == 0 || rc == SLU_ENOMEM);
	if (!rc)
		broker_close(b);
}
