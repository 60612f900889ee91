/*
 * A queue is carried from shard to shard while it is in use: broker/move/copy.h. With threads;
 * nothing depends on how long anything takes.
 */
#include "copy_fixture.h"

#include "engine/payload.h"

#include <stdlib.h>
#include <time.h>

enum {
	MANY = 3000,
	WORKERS = 3,
	LARGE = 3 << 20
};

/* ---- Alone ---- */

/* SH-63, SH-68: batch by batch, in the order they would have been handed out. */
TEST(a_queue_moves_in_its_order)
{
	uint64_t ids[60];
	static struct op_call c;

	start(&engine_memory, &engine_memory);
	EACH(i, ids)
		ids[i] = push(NULL, 5, "x");
	CHECK_EQ(60, move("a", "b", (struct move_request){ .batch = 7 }).moved);
	CHECK_EQ(0, messages_at(A));
	CHECK_EQ(60, messages_at(B));
	EACH(i, ids) {
		CHECK_EQ(ids[i], claim(&c, "q"));
	}
}

/* SH-71: the second time there is nothing to do. */
TEST(a_move_that_is_done_again_moves_nothing)
{
	struct move_report told;

	start(&engine_memory, &engine_log);
	push_mixed(40);
	told = move("a", "b", (struct move_request){ .batch = 9 });
	CHECK_EQ(40, told.moved);
	CHECK(told.done && told.by_hand);
	told = move("a", "b", (struct move_request){ 0 });
	CHECK_EQ(0, told.moved);
	CHECK_EQ(0, told.batches);
	CHECK_EQ(40, told.there);
}

/* SH-67 */
TEST(a_dry_run_changes_nothing)
{
	struct move_report told;
	static struct op_call c;

	start(&engine_memory, &engine_memory);
	push_mixed(20);
	CHECK(claim(&c, "q") != 0);
	told = move("a", "b", (struct move_request){ .dry = true });
	CHECK_EQ(20, told.left);
	CHECK(told.leased > 0);
	CHECK_EQ(0, told.there);
	CHECK_EQ(0, told.moved);
	push(NULL, 5, "x");
	CHECK_EQ(21, messages_at(A));
}

/* SH-74, SH-75: what is leased waits for its lease, or loses it. */
TEST(a_leased_message_moves_only_when_its_lease_is_taken_from_it)
{
	static struct op_call c;
	struct move_report told;
	uint64_t id;

	start(&engine_memory, &engine_memory);
	id = push(NULL, 5, "x");
	CHECK_EQ(id, claim(&c, "q"));
	told = move("a", "b", (struct move_request){ 0 });
	CHECK_EQ(1, told.left);
	CHECK_EQ(1, told.leased);
	CHECK(!told.done);
	told = move("a", "b", (struct move_request){ .force = true });
	CHECK_EQ(1, told.moved);
	CHECK(told.done);
	CHECK(ack(id, c.row.token) != 0);
	CHECK_EQ(id, claim(&c, "q"));
	CHECK_EQ(0, ack(id, c.row.token));
}

/* SH-76: there and back, against the map. */
TEST(a_move_is_taken_back_by_one_in_the_other_direction)
{
	uint64_t ids[30];
	struct move_report told;
	static struct op_call c;

	start(&engine_memory, &engine_memory);
	EACH(i, ids)
		ids[i] = push(i % 2 ? "k" : NULL, 5, "x");
	move("a", "b", (struct move_request){ .batch = 10 });
	told = move("b", "a", (struct move_request){ .batch = 10 });
	CHECK_EQ(30, told.moved);
	CHECK_EQ(0, messages_at(B));
	push(NULL, 9, "last");
	CHECK_EQ(31, messages_at(A));
	EACH(i, ids) {
		const uint64_t id = claim(&c, "q");

		CHECK(id != 0);
		CHECK_EQ(0, ack(id, c.row.token));
	}
}

/* A payload that has a file of its own, with attributes and all. */
TEST(large_payloads_are_carried_in_pieces)
{
	static const struct engine_ops *const ends[][2] = {
		{ &engine_log, &engine_log },
		{ &engine_log, &engine_memory },
		{ &engine_memory, &engine_log },
	};
	char *large = malloc(LARGE), *back = malloc(LARGE);

	for (int i = 0; i < LARGE; i++)
		large[i] = (char)(i * 31 + i / 977);
	EACH(i, ends) {
		struct payload *stored = NULL;
		struct message m;
		char head[512];
		struct op_call c;

		CHECK_EQ(0, system("rm -rf a b"));
		start(ends[i][0], ends[i][1]);
		call(&c, OP_ENQUEUE, "q");
		c.put.m.payload = (struct slice){ large, LARGE };
		c.put.m.payload_size = LARGE;
		c.put.m.attributes = SLICE("{\"a\":1}");
		CHECK_EQ(0, payload_store(broker_engine_of(b, NULL, SLICE("ns"), SLICE("q")),
					  &c.put.m, &stored, NULL));
		CHECK_EQ(0, run(&c));
		payload_close(stored);
		CHECK_EQ(1, move("a", "b", (struct move_request){ 0 }).moved);
		CHECK_EQ(0, run(call(&c, OP_CLAIM, "q")));
		CHECK_EQ(1, c.op.n_rows);
		CHECK_EQ(B, c.op.route.lane);
		if (c.row.payload.pin) {
			CHECK_EQ(0, engine_read(c.op.engine, &c.row.payload, 0, LARGE, back, true, NULL));
		} else {
			const uint32_t at = c.row.record.size - LARGE;

			CHECK_EQ(0, engine_read(c.op.engine, &c.row.record, at, LARGE, back, true, NULL));
		}
		CHECK_EQ(0, memcmp(large, back, LARGE));
		CHECK_EQ(0, engine_read(c.op.engine, &c.row.record, 0,
					c.row.record.size < sizeof head ? c.row.record.size : sizeof head,
					head, true, NULL));
		CHECK_EQ(0, message_decode_head((struct slice){ head, sizeof head }, &m, NULL));
		CHECK_EQ(7, m.attributes.n);
		op_unpin(&c.op);
	}
	free(large);
	free(back);
}

/* A large payload is where the queue lives, and is not carried to the sequence of its key. */
TEST(a_large_payload_waits_for_its_key_and_no_other)
{
	static char large[2 << 20];
	static struct op_call first, same, other;
	struct op_call *const calls[] = { &other, &same };
	struct payload *stored[2];

	start(&engine_log, &engine_log);
	push("k", 5, "x");
	reroute(2, "b", "a");
	CHECK(claim(&first, "q") != 0); /* its way is known */
	CHECK_EQ(A, first.op.route.lane);
	EACH(i, calls) {
		call(calls[i], OP_ENQUEUE, "q");
		calls[i]->put.m.key = i ? SLICE("k") : SLICE("j");
		calls[i]->put.m.payload = (struct slice){ large, sizeof large };
		calls[i]->put.m.payload_size = sizeof large;
		CHECK_EQ(0, payload_store(broker_engine_of(b, NULL, SLICE("ns"), SLICE("q")),
					  &calls[i]->put.m, &stored[i], NULL));
	}
	CHECK_EQ(0, run(&other), other.op.err.text);
	CHECK_EQ(B, other.op.route.lane);
	CHECK_EQ(0, broker_post(b, &same.op));
	CHECK_EQ(0, ack(first.row.id, first.row.token));
	await(&same, 1);
	CHECK_EQ(0, same.op.rc, same.op.err.text);
	CHECK_EQ(B, same.op.route.lane);
	EACH(i, stored)
		payload_close(stored[i]);
}

/* ---- Lock keys ---- */

/* As the holder of `lease`, which an acquire fills. */
static int
lock(enum op_verb verb, struct op_call *lease, const char *key, const char *name)
{
	static struct op_call c;

	call(&c, verb, "q");
	c.op.queue = SLICE(LOCK_QUEUE);
	c.op.lock.key = slice_of(key);
	c.op.lock.holder = SLICE("me");
	c.op.lock.name = slice_of(name);
	if (verb != OP_ACQUIRE) {
		c.op.lock.token = lease->op.lock.token;
		memcpy(c.op.lock.txn, lease->op.lock.txn, LOCK_TXN);
	}
	c.op.n_puts = verb == OP_STATE_PUT;
	c.put.m.payload = SLICE("text");
	c.put.m.payload_size = 4;
	CHECK_EQ(0, run(&c), c.op.err.text);
	if (verb == OP_ACQUIRE)
		*lease = c;
	return (int)c.op.lock.version;
}

/* However few rows are asked for at a time. */
TEST(lock_keys_move_and_a_move_is_not_done_while_one_is_held)
{
	const struct move_request ask = { .queue = SLICE(LOCK_QUEUE), .batch = 1 };
	static struct op_call free, held;
	struct move_report told;
	uint64_t token;

	start(&engine_log, &engine_memory);
	lock(OP_ACQUIRE, &free, "free", "");
	lock(OP_STATE_PUT, &free, "free", "");
	lock(OP_STATE_PUT, &free, "free", "attached");
	lock(OP_RELEASE, &free, "free", "");
	lock(OP_ACQUIRE, &held, "held", "");
	lock(OP_STATE_PUT, &held, "held", "");
	told = move("a", "b", ask);
	CHECK_EQ(2, told.taken);
	CHECK_EQ(1, told.moved);
	CHECK_EQ(1, told.leased);
	CHECK(!told.done);
	lock(OP_RELEASE, &held, "held", "");
	token = held.op.lock.token;
	told = move("a", "b", ask);
	CHECK_EQ(1, told.taken);
	CHECK(told.done);
	CHECK_EQ(1, lock(OP_ACQUIRE, &held, "held", ""));
	CHECK(held.op.lock.token > token);
	CHECK_EQ(1, lock(OP_ACQUIRE, &free, "free", ""));
}

TEST(a_move_of_lock_keys_is_not_done_when_its_time_is_over)
{
	const struct move_request ask = { .queue = SLICE(LOCK_QUEUE), .batch = 1, .budget = 1 };
	static const char *const keys[] = { "one", "two" };
	struct move_report told;
	static struct op_call c;

	start(&engine_memory, &engine_memory);
	EACH(i, keys) {
		lock(OP_ACQUIRE, &c, keys[i], "");
		lock(OP_STATE_PUT, &c, keys[i], "");
		lock(OP_RELEASE, &c, keys[i], "");
	}
	told = move("a", "b", ask);
	CHECK_EQ(1, told.moved);
	CHECK_EQ(1, told.left);
	CHECK(!told.done);
	told = move("a", "b", ask);
	CHECK_EQ(1, told.moved);
	CHECK_EQ(2, told.there);
	CHECK(told.done);
}

TEST(shards_that_are_none_are_refused)
{
	static const struct {
		const char *from, *to;
		int want;
	} rows[] = { { "a", "a", SLU_EINVAL }, { "a", "x", SLU_ENOTFOUND }, { "x", "b", SLU_ENOTFOUND } };
	struct move_report told;
	struct slu_err err;

	start(&engine_memory, &engine_memory);
	EACH(i, rows) {
		const struct move_request ask = {
			.from = rows[i].from,
			.to = rows[i].to,
			.space = SLICE("ns"),
			.queue = SLICE("q"),
		};

		CHECK_EQ(rows[i].want, movecopy_move(b, &ask, &told, &err));
	}
}

/* ---- In use ---- */

struct load {
	_Atomic bool stop;
	_Atomic int pushed, acked;
	pthread_mutex_t mtx;
	int next[KEYS];       /* of each key, what comes next */
	uint64_t token[KEYS]; /* and its last one */
};

static struct load load;

static void *
produce(void *arg)
{
	int counts[KEYS] = { 0 };

	(void)arg;
	for (int i = 0; i < MANY; i++) {
		const int k = i % KEYS;
		char key[8], text[16];

		(void)snprintf(key, sizeof key, "k%d", k);
		(void)snprintf(text, sizeof text, "%d %d", k, counts[k]++);
		push(key, i % 3, text);
		load.pushed++;
	}
	return NULL;
}

/* One of a key at a time, and in its order. */
static void
check_order(const struct op_call *c)
{
	char record[512], text[16] = "";
	struct message m;
	int k, n;

	CHECK_EQ(0, engine_read(c->op.engine, &c->row.record, 0, c->row.record.size, record, true, NULL));
	CHECK_EQ(0, message_decode((struct slice){ record, c->row.record.size }, &m, NULL));
	CHECK(m.payload.n < sizeof text);
	memcpy(text, m.payload.p, m.payload.n);
	CHECK_EQ(2, sscanf(text, "%d %d", &k, &n));
	pthread_mutex_lock(&load.mtx);
	CHECK_EQ(load.next[k], n);
	CHECK(c->row.token > load.token[k]);
	load.token[k] = c->row.token;
	load.next[k]++;
	pthread_mutex_unlock(&load.mtx);
}

static void *
consume(void *arg)
{
	struct op_call c;

	(void)arg;
	while (!load.stop) {
		call(&c, OP_CLAIM, "q");
		c.op.wait = 50 * SLU_MS;
		CHECK_EQ(0, run(&c));
		if (c.op.n_rows == 0)
			continue;
		check_order(&c);
		op_unpin(&c.op);
		CHECK_EQ(0, ack(c.row.id, c.row.token));
		if (++load.acked == MANY)
			load.stop = true;
	}
	return NULL;
}

/* SH-52, SH-77, SH-78: there and back again and again, while producers and workers go on:
 * nothing lost, nothing doubled, the order of each key kept. */
static void
move_under_load(const struct engine_ops *a, const struct engine_ops *to)
{
	pthread_t producer, workers[WORKERS];
	uint64_t version = 2;

	start(a, to);
	pthread_mutex_init(&load.mtx, NULL);
	CHECK_EQ(0, pthread_create(&producer, NULL, produce, NULL));
	EACH(i, workers)
		CHECK_EQ(0, pthread_create(&workers[i], NULL, consume, NULL));
	while (load.acked < MANY) {
		move("a", "b", (struct move_request){ .batch = 50 });
		if (version < 6) {
			reroute(version, version % 2 ? "a" : "b", version % 2 ? "b" : "a");
			version++;
		}
		move("b", "a", (struct move_request){ .batch = 50 });
	}
	pthread_join(producer, NULL);
	EACH(i, workers)
		pthread_join(workers[i], NULL);
	CHECK_EQ(MANY, load.acked);
	CHECK_EQ(0, messages_at(A) + messages_at(B));
}

/* Sends the queue from any shard to any other, whatever others do. */
static void *
send_about(void *arg)
{
	uint64_t *const dice = arg;

	while (!load.stop) {
		const uint64_t from = test_random(dice) % SHARDS;
		const struct move_request ask = {
			.from = names[from],
			.to = names[(from + 1 + test_random(dice) % (SHARDS - 1)) % SHARDS],
			.space = SLICE("ns"),
			.queue = test_random(dice) % 4 ? SLICE("q") : SLICE("other"),
			.batch = (uint32_t)(1 + test_random(dice) % 60),
			.budget = (slu_time)(test_random(dice) % 20) * SLU_MS,
		};
		struct move_report told;
		struct slu_err err;
		const int rc = movecopy_move(b, &ask, &told, &err);

		if (rc && rc != SLU_ECONFLICT && rc != SLU_EMOVED)
			test_fail(__FILE__, __LINE__, "%d: %s", rc, err.text);
	}
	return NULL;
}

/* The map, too, names one shard after the other. */
static void *
map_about(void *arg)
{
	uint64_t *const dice = arg;
	uint64_t now = 0;

	for (uint64_t version = 2; !load.stop; version++) {
		const uint64_t next = (now + 1 + test_random(dice) % (SHARDS - 1)) % SHARDS;
		const struct timespec pause = { .tv_nsec = (long)(test_random(dice) % 100000000) };

		reroute(version, names[next], names[now]);
		now = next;
		(void)nanosleep(&pause, NULL);
	}
	return NULL;
}

/* MOVE-1 to MOVE-12: several movers at once that do not know of each other. */
TEST_LIMIT(a_queue_that_several_send_about_loses_and_doubles_nothing, 240)
{
	pthread_t producer, workers[WORKERS], movecopies[4];
	uint64_t dice[COUNT(movecopies)];

	stores[A] = (const uint8_t *)"the uuid of one.";
	stores[B] = (const uint8_t *)"the uuid of two.";
	start_three();
	pthread_mutex_init(&load.mtx, NULL);
	CHECK_EQ(0, pthread_create(&producer, NULL, produce, NULL));
	EACH(i, workers)
		CHECK_EQ(0, pthread_create(&workers[i], NULL, consume, NULL));
	EACH(i, movecopies) {
		dice[i] = test_seed() + i;
		CHECK_EQ(0, pthread_create(&movecopies[i], NULL, i ? send_about : map_about, &dice[i]));
	}
	pthread_join(producer, NULL);
	EACH(i, workers)
		pthread_join(workers[i], NULL);
	EACH(i, movecopies)
		pthread_join(movecopies[i], NULL);
	CHECK_EQ(MANY, load.acked);
	CHECK_EQ(0, messages_at(A) + messages_at(B) + messages_at(C));
}

TEST_LIMIT(a_queue_in_use_moves_between_memory_shards, 120)
{
	move_under_load(&engine_memory, &engine_memory);
}

TEST_LIMIT(a_queue_in_use_moves_between_log_and_memory, 240)
{
	move_under_load(&engine_log, &engine_memory);
}

/* The mover that set it aside is dead: any node that serves the queue goes on with it. */
TEST_LIMIT(an_abandoned_batch_is_finished_by_a_node_that_serves_the_queue, 60)
{
	static struct op_call c;
	uint64_t id = 0;

	start(&engine_memory, &engine_memory);
	push(NULL, 5, "x");
	reroute(2, "b", "a");
	call(&c, OP_ENQUEUE, "q");
	c.put.m.key = SLICE("other");
	CHECK_EQ(0, run(&c)); /* sets the mark */
	CHECK_EQ(0, run_at(take_step(&c, MOVE_TAKE), A));
	CHECK_EQ(1, c.op.n_rows);
	op_unpin(&c.op);
	for (int got = 0; got < 2;) {
		call(&c, OP_CLAIM, "q");
		c.op.wait = SLU_SEC;
		CHECK_EQ(0, run(&c));
		got += (int)c.op.n_rows;
		id = c.op.n_rows ? c.row.id : id;
		op_unpin(&c.op);
	}
	CHECK_EQ(B, c.op.route.lane);
}
