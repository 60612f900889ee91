/*
 * apart.h - which of the messages of a call are taken together.
 *
 *      queues   a b a c b           a on shard 0; b and c on shard 1, a cluster
 *      group    0 2 0 3 2           its shard, or beyond the shards one for each queue
 *
 * A shard takes what it gets whole or not at all. One whose queues live in several places
 * cannot: there every queue stands for itself (engine_ops.apart).
 */
#ifndef API_APART_H
#define API_APART_H

#include "api/arena.h"
#include "broker/broker.h"

/* Is there such a shard? */
bool apart_any(const struct broker *b);

/* group[i] < *n_groups for each of the n puts, by that map. SLU_ENOMEM, SLU_EDOWN. */
int apart_groups(const struct broker *b, const struct routes *r, struct arena *a,
		 const struct op_put *puts, uint32_t n, uint32_t *group, uint32_t *n_groups);

#endif
