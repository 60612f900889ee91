/*
 * shardload.h - what bench/shards/run measures with, beside sluiced and `sluice bench`.
 *
 *      proxy   passes bytes on, so much later: a store that is far away, or slow
 *      bare    the Redis engine without a server around it: batches of enqueues, one
 *              connection, one pipeline a run. What a server on the same Redis is held to
 *      map     what it costs to find the shard of a queue, and to hold the map
 */
#ifndef BENCH_SHARDS_SHARDLOAD_H
#define BENCH_SHARDS_SHARDLOAD_H

#include <sluice/err.h>

struct shardload {
	const char *to; /* host:port of a Redis */
	slu_time delay; /* proxy */
	bool slow;      /* proxy: each call takes so long, one after the other */
	slu_time duration;
	uint64_t batch, size; /* bare: messages of an op, bytes of a payload */
	uint64_t ops;         /* bare: of a run, in one pipeline */
	uint64_t rules;       /* map */
};

/* Each prints a line of JSON; proxy one with its port, and then it serves until it is killed. */
int shardload_proxy(const struct shardload *o, struct slu_err *err);
int shardload_bare(const struct shardload *o, struct slu_err *err);
int shardload_map(const struct shardload *o, struct slu_err *err);

#endif
