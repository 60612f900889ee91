/*
 * movecopy_fixture.h - a broker with threads, and two or three shards between which the queue "q"
 * moves: a, b and c. By the map it lives on a. The harness closes the broker.
 */
#ifndef TESTS_COPY_FIXTURE_H
#define TESTS_COPY_FIXTURE_H

#include "broker_kit.h"

#include "broker/move/copy.h"
#include "engine/log/logengine.h"

#include <stdio.h>

enum {
	A, /* lanes */
	B,
	C,
	SHARDS,
	KEYS = 7
};

static const char *const names[SHARDS] = { "a", "b", "c" };
static struct broker_shard_conf shards[SHARDS];
static const uint8_t *stores[SHARDS]; /* of start_all: broker_shard_conf.store */
static unsigned n_shards;

FIXTURE(NULL, close_broker);

static inline struct shardmap *
map_of(uint64_t version, const char *now, const char *before)
{
	return new_map(names, n_shards, version, new_supplier(now, NULL, 0),
		       before ? new_supplier(before, NULL, 0) : NULL);
}

/* Replaces the broker that was started before. */
static inline void
start_all(const struct engine_ops *const kinds[], unsigned n)
{
	struct broker_conf conf = { .shards = shards, .n_shards = n };

	close_broker();
	n_shards = n;
	conf.map = map_of(1, "a", NULL);
	for (unsigned i = 0; i < n; i++) {
		shards[i] = (struct broker_shard_conf){
			.name = names[i], .engine = kinds[i], .store = stores[i]
		};
		shards[i].storage.folder = kinds[i]->durable ? names[i] : NULL;
	}
	open_broker(&conf);
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
	CHECK_EQ(0, try_reroute(map_of(version, now, before), shards, n_shards, NULL));
}

static inline uint64_t
push(const char *key, int32_t prio, const char *text)
{
	struct op_call c;

	call(&c, OP_ENQUEUE, "q");
	c.put.m.key = key ? slice_of(key) : (struct slice){ 0 };
	c.put.m.prio = prio;
	c.put.m.payload = slice_of(text);
	c.put.m.payload_size = strlen(text);
	CHECK_EQ(0, run(&c), c.op.err.text);
	return c.put.m.id;
}

static inline int
ack(uint64_t id, uint64_t token)
{
	struct op_call c;

	return settle(&c, OP_ACK, id, token);
}

static inline uint64_t
messages_at(uint32_t lane)
{
	return look_at(lane).messages;
}

static inline int
try_move(const char *from, const char *to, struct move_request ask, struct move_report *told,
	 struct slu_err *err)
{
	ask.from = from;
	ask.to = to;
	ask.space = SLICE("ns");
	ask.queue = ask.queue.n ? ask.queue : SLICE("q");
	return movecopy_move(b, &ask, told, err);
}

static inline struct move_report
move(const char *from, const char *to, struct move_request ask)
{
	struct move_report told;
	struct slu_err err = { 0 };

	ask.budget = ask.budget ? ask.budget : SLU_HOUR;
	CHECK_EQ(0, try_move(from, to, ask, &told, &err), err.text);
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
