/*
 * shardload.h - the tools of bench/shards/run, besides sluiced and `sluice bench`.
 *
 *      proxy   delays bytes: simulates a store that is far away, or slow
 *      bare    the Redis engine without a server: batches of enqueues, one connection, one pipeline
 *              a run. The reference for a server on the same Redis
 *      map     the cost of finding the shard of a queue, and the memory of the map
 */
#ifndef BENCH_SHARDS_SHARDLOAD_H
#define BENCH_SHARDS_SHARDLOAD_H

#include <sluice/err.h>

struct shardload {
	const char *to; /* host:port of a Redis */
	slu_time delay; /* proxy */
	bool slow;      /* proxy: the store handles one call at a time */
	slu_time duration;
	uint64_t batch, size; /* bare: messages of an op, bytes of a payload */
	uint64_t ops;         /* bare: of a run, in one pipeline */
	uint64_t rules;       /* map */
};

/* Each prints a line of JSON. proxy prints its port, then serves until it is killed. */
int shardload_proxy(const struct shardload *o, struct slu_err *err);
int shardload_bare(const struct shardload *o, struct slu_err *err);
int shardload_map(const struct shardload *o, struct slu_err *err);

#endif
