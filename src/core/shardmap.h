/*
 * shardmap.h - from the names of a queue to the number of its shard.
 *
 *      namespace, queue ──> supplier ──> "heavy" ──> 2
 *                           supplier of the map before ──> "primary" ──> 0
 *
 * A server routes by a map: its shards by name, the supplier that chooses among them, and,
 * while queues move, the supplier before it. A queue whose former shard differs from its
 * current one may have messages on both, until a map without a former supplier replaces
 * this one.
 *
 *  SHARDMAP-1  A map never changes: an operation keeps the map it was routed by. A change is
 *              a new map with a higher version.
 *  SHARDMAP-2  Maps with the same shards, suppliers and version have the same hash, on every
 *              node; others differ.
 *  SHARDMAP-3  A shard that a supplier names and the settings do not have is refused; the
 *              default shard does not replace it.
 *
 * Pure; any thread.
 */
#ifndef CORE_SHARDMAP_H
#define CORE_SHARDMAP_H

#include "core/supplier.h"

enum {
	SHARDMAP_SHARDS = 1024,
	SHARDMAP_NAME = 64 /* bytes of a shard's name, with the NUL */
};

struct shardmap;

struct shardmap_conf {
	const char *const *shards; /* their names; the number of a shard is its index */
	unsigned n_shards;
	struct supplier *now;
	struct supplier *before; /* NULL: no queue moves */
	uint64_t version;
};

/* A shard, and the rule that chose it. */
struct shard_choice {
	uint32_t shard;
	const char *rule; /* "tenant"; of a former shard "previous" */
};

/*
 * Takes both suppliers, also if it fails. Returns SLU_ENOMEM, or SLU_EINVAL if there are no shards
 * or too many, or a name is not valid or not unique.
 */
int shardmap_new(struct shardmap **out, const struct shardmap_conf *conf,
		 struct slu_err *err);
void shardmap_free(struct shardmap *m); /* NULL is fine */

/*
 * The shard for new messages. Returns SLU_EDOWN, "unknown shard: x" (SHARDMAP-3), or the code of
 * the supplier, "shard resolution: ...".
 */
int shardmap_current(const struct shardmap *m, struct slice space, struct slice queue,
		     struct shard_choice *out, struct slu_err *err);

/* The current shard first, then shards that may still have messages of the queue. */
int shardmap_all(const struct shardmap *m, struct slice space, struct slice queue,
		 struct shard_choice out[SUPPLIED_MAX], unsigned *n, struct slu_err *err);

unsigned shardmap_count(const struct shardmap *m);
const char *shardmap_name(const struct shardmap *m, uint32_t shard);
uint64_t shardmap_version(const struct shardmap *m);
uint64_t shardmap_hash(const struct shardmap *m); /* SHARDMAP-2 */

#endif
