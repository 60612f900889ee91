/*
 * mover_fixture.h - a broker with threads, and two or three shards between which the queue "q"
 * moves: a, b and c. By the map it lives on a.
 */
#ifndef TESTS_MOVER_FIXTURE_H
#define TESTS_MOVER_FIXTURE_H

#include "test.h"

#include "broker/mover.h"
#include "engine/log.h"
#include "engine/memory.h"

#include <pthread.h>
#include <stdio.h>

enum {
	A, /* lanes */
	B,
	C,
	SHARDS,
	KEYS = 7
};

struct call {
	struct op op;
	struct op_put put;
	struct op_item item;
	struct op_row row;
	struct op_queue queue;
	pthread_mutex_t mtx;
	pthread_cond_t ended;
	int done;
};

static const char *const names[SHARDS] = { "a", "b", "c" };
static struct broker_shard_conf shards[SHARDS];
static unsigned n_shards;
static struct broker *b;

static inline void
on_done(struct op *op)
{
	struct call *c = op->owner;

	pthread_mutex_lock(&c->mtx);
	c->done++;
	pthread_cond_signal(&c->ended);
	pthread_mutex_unlock(&c->mtx);
}

static inline struct shardmap *
map_of(uint64_t version, const char *now, const char *before)
{
	const struct supplier_conf is = { .standard = now }, was = { .standard = before };
	struct shardmap_conf conf = { .shards = names, .n_shards = n_shards, .version = version };
	struct shardmap *m;

	CHECK_EQ(0, supplier_new(&conf.now, &is, NULL));
	if (before)
		CHECK_EQ(0, supplier_new(&conf.before, &was, NULL));
	CHECK_EQ(0, shardmap_new(&m, &conf, NULL));
	return m;
}

static inline void
start_all(const struct engine_ops *const kinds[], unsigned n)
{
	struct broker_conf conf = { .shards = shards, .n_shards = n };
	struct slu_err err;

	n_shards = n;
	conf.map = map_of(1, "a", NULL);
	for (unsigned i = 0; i < n; i++) {
		shards[i] = (struct broker_shard_conf){ .name = names[i], .engine = kinds[i] };
		shards[i].storage.folder = kinds[i]->durable ? names[i] : NULL;
	}
	if (broker_open(&b, &conf, &err))
		test_fail(__FILE__, __LINE__, "%s", err.text);
}

static inline void
start(const struct engine_ops *a, const struct engine_ops *to)
{
	start_all((const struct engine_ops *const[]){ a, to }, 2);
}

static inline void
start_three(void)
{
	start_all((const struct engine_ops *const[]){ &engine_memory, &engine_log, &engine_memory }, SHARDS);
}

static inline void
reroute(uint64_t version, const char *now, const char *before)
{
	struct routes *r;

	CHECK_EQ(0, broker_routes_new(b, map_of(version, now, before), shards, n_shards, &r, NULL));
	broker_routes_use(b, r);
}

static inline struct call *
call(struct call *c, enum op_verb verb)
{
	memset(c, 0, sizeof *c);
	pthread_mutex_init(&c->mtx, NULL);
	pthread_cond_init(&c->ended, NULL);
	op_init(&c->op, verb, SLICE("ns"), SLICE("q"), on_done, c);
	c->op.puts = &c->put;
	c->op.n_puts = verb == OP_ENQUEUE;
	c->op.items = &c->item;
	c->op.n_items = verb >= OP_ACK && verb <= OP_DELETE;
	c->op.rows = &c->row;
	c->op.max_rows = 1;
	c->op.queues = &c->queue;
	c->op.max_queues = 1;
	return c;
}

static inline int
wait_for_end(struct call *c)
{
	pthread_mutex_lock(&c->mtx);
	while (!c->done)
		pthread_cond_wait(&c->ended, &c->mtx);
	pthread_mutex_unlock(&c->mtx);
	return c->op.rc;
}

static inline int
run(struct call *c)
{
	CHECK_EQ(0, broker_post(b, &c->op));
	return wait_for_end(c);
}

static inline int
run_at(struct call *c, uint32_t lane)
{
	CHECK_EQ(0, broker_post_at(b, lane, &c->op));
	return wait_for_end(c);
}

static inline uint64_t
push(const char *key, int32_t prio, const char *text)
{
	struct call c;

	call(&c, OP_ENQUEUE);
	c.put.m.key = key ? slice_of(key) : (struct slice){ 0 };
	c.put.m.prio = prio;
	c.put.m.payload = slice_of(text);
	c.put.m.payload_size = strlen(text);
	CHECK_EQ(0, run(&c), c.op.err.text);
	return c.put.m.id;
}

static inline uint64_t
claim(struct call *c)
{
	CHECK_EQ(0, run(call(c, OP_CLAIM)));
	return c->op.n_rows ? c->row.id : 0;
}

static inline int
ack(uint64_t id, uint64_t token)
{
	struct call c;

	call(&c, OP_ACK);
	c.item.id = id;
	c.item.token = token;
	CHECK_EQ(0, run(&c));
	return c.item.rc;
}

static inline struct op_move
look_at(uint32_t lane)
{
	struct call c;

	call(&c, OP_MOVE);
	c.op.move.step = MOVE_LOOK;
	CHECK_EQ(0, run_at(&c, lane));
	return c.op.move;
}

static inline uint64_t
messages_at(uint32_t lane)
{
	return look_at(lane).messages;
}

static inline struct move_told
move(const char *from, const char *to, struct move_ask ask)
{
	struct move_told told;
	struct slu_err err = { 0 };

	ask.from = from;
	ask.to = to;
	ask.space = SLICE("ns");
	ask.queue = ask.queue.n ? ask.queue : SLICE("q");
	ask.budget = ask.budget ? ask.budget : SLU_HOUR;
	CHECK_EQ(0, mover_move(b, &ask, &told, &err), err.text);
	return told;
}

static inline void
push_mixed(int n)
{
	for (int i = 0; i < n; i++) {
		char key[8];

		(void)snprintf(key, sizeof key, "k%d", i % KEYS);
		push(i % 2 ? key : NULL, i % 3, "text");
	}
}

#endif
