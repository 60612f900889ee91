/*
 * results.h - the results of acked messages: the place of each, and its end.
 *
 * Part of the ledger.
 */
#ifndef CORE_QUEUE_RESULTS_H
#define CORE_QUEUE_RESULTS_H

#include "base/heap.h"
#include "base/map.h"
#include "core/ledger/ledger.h"

struct result {
	uint64_t id;    /* of the message */
	uint64_t where; /* place of the result */
	uint32_t queue;
	uint32_t pos; /* in by_until */
};

struct results {
	struct slab slab;
	struct map by_id;
	struct heap by_until;

	/* Returns the counter of results of a queue; NULL: no such counters. */
	uint32_t *(*count)(void *arg, uint32_t queue);
	void *arg;
};

void results_init(struct results *r);
void results_release(struct results *r);

/* Reserves room for one more result. Returns SLU_ENOMEM if memory is out. */
int results_reserve(struct results *r);

/* The functions that return a uint64_t return a place that no result refers to any more, or 0. */

/* Adds a result, for which room was reserved. A result with this id gets the new place. */
uint64_t results_add(struct results *r, uint64_t id, const struct ledger_result *result);

bool results_find(const struct results *r, uint64_t id, struct ledger_result *out);
uint64_t results_relocate(struct results *r, uint64_t id, uint64_t where);

uint64_t results_remove(struct results *r, uint64_t id);

/* Removes one result of a queue, which has some. Scans the results of the shard in a circle, from
 * *from on (0 at first). */
uint64_t results_remove_of(struct results *r, uint32_t queue, uint32_t *from);

/* Removes an expired result, if there is one. */
uint64_t results_expire(struct results *r, slu_time now);
slu_time results_next_due(const struct results *r); /* or SLU_NEVER */

static inline uint32_t
results_count(const struct results *r)
{
	return map_count(&r->by_id);
}

#endif
