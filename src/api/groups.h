/*
 * groups.h - which messages of a request are enqueued together.
 *
 *      queues   a b a c b           a on shard 0; b and c on shard 1, a cluster
 *      group    0 2 0 3 2           the shard, or a number above the shards for each queue
 *
 * A shard accepts an op whole or not at all. A shard that keeps its queues in several places
 * cannot do so: there each queue is a group (engine_found.one_queue).
 */
#ifndef API_GROUPS_H
#define API_GROUPS_H

#include "form/arena.h"
#include "broker/broker.h"

/* Returns true if a shard keeps its queues in several places. */
bool groups_any(const struct broker *b);

/* Sets group[i] < *n_groups for each of the n puts, by the routes r. Returns SLU_ENOMEM or
 * SLU_EDOWN. */
int groups_make(const struct broker *b, const struct routes *r, struct arena *a,
		const struct op_put *puts, uint32_t n, uint32_t *group, uint32_t *n_groups);

#endif
