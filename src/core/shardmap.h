/*
 * shardmap.h - from the names of a queue to the number of its shard.
 *
 *      namespace, queue ──> supplier ──> "heavy" ──> 2
 *                           supplier of the map before ──> "primary" ──> 0
 *
 * What a server routes by: the shards it has, by name, the supplier that chooses among
 * them, and while queues move, the supplier that was asked before. A queue whose former
 * shard differs from its current one is found on both, whichever two they are, until
 * the map is replaced by one that names no former supplier.
 *
 *  R1  Immutable: an operation that was routed by a map keeps it. A change is a new map,
 *      with a higher version.
 *  R2  Maps with the same shards, suppliers and version have the same hash, on every
 *      node; others differ.
 *  R3  A shard that a supplier names and nobody configured is refused, and never taken
 *      for the default one.
 *
 * Pure; any thread may ask.
 */
#ifndef CORE_SHARDMAP_H
#define CORE_SHARDMAP_H

#include "core/supplier.h"

enum {
	SHARDMAP_SHARDS = 1024,
	SHARDMAP_NAME = 64 /* bytes of a shard's name, with the end */
};

struct shardmap;

struct shardmap_conf {
	const char *const *shards; /* their names; a shard's number is its place here */
	unsigned n_shards;
	struct supplier *now;
	struct supplier *before; /* NULL: nothing moves */
	uint64_t version;
};

/* A shard, and the rule that chose it. */
struct shard_choice {
	uint32_t shard;
	const char *rule; /* "tenant"; of a former shard "previous" */
};

/*
 * Takes both suppliers, also when it fails.
 *   SLU_EINVAL  no shards, too many, a name that is not one or is there twice
 *   SLU_ENOMEM
 */
int shardmap_new(struct shardmap **out, const struct shardmap_conf *conf,
		 struct slu_err *err);
void shardmap_free(struct shardmap *m); /* NULL is fine */

/*
 * The shard for new messages.
 *   SLU_EDOWN  "unknown shard: x" (R3)
 *   else       the supplier's own code: "shard resolution: ..."
 */
int shardmap_current(const struct shardmap *m, struct slice space, struct slice queue,
		     struct shard_choice *out, struct slu_err *err);

/* The current one first, then those that may still hold messages. */
int shardmap_all(const struct shardmap *m, struct slice space, struct slice queue,
		 struct shard_choice out[SUPPLIED_MAX], unsigned *n, struct slu_err *err);

/* Its number, or UINT32_MAX. */
uint32_t shardmap_find(const struct shardmap *m, const char *shard);

unsigned shardmap_count(const struct shardmap *m);
const char *shardmap_name(const struct shardmap *m, uint32_t shard);
uint64_t shardmap_version(const struct shardmap *m);
uint64_t shardmap_hash(const struct shardmap *m); /* R2 */

#endif
