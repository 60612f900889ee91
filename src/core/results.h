/*
 * results.h - what acked messages left behind: where each result is, until when.
 *
 * Inner part of the ledger.
 */
#ifndef CORE_RESULTS_H
#define CORE_RESULTS_H

#include "base/heap.h"
#include "base/map.h"
#include "core/ledger.h"

struct result {
	uint64_t id;
	uint64_t where;
	uint32_t queue;
	uint32_t pos; /* in by_until */
};

struct results {
	struct slab slab;
	struct map by_id;
	struct heap by_until;

	/* Those of a queue are counted there; NULL: nobody wants to know. */
	uint32_t *(*count)(void *arg, uint32_t queue);
	void *arg;
};

void results_init(struct results *r);
void results_release(struct results *r);

/* Room for one more. SLU_ENOMEM. */
int results_reserve(struct results *r);

/* When there is one of this id, it has moved. Room was reserved. Returns a place that
 * is named no more, or 0, as do all that return one. */
uint64_t results_add(struct results *r, uint64_t id, const struct ledger_result *result);

bool results_find(const struct results *r, uint64_t id, struct ledger_result *out);
uint64_t results_move(struct results *r, uint64_t id, uint64_t where);

/* It is not kept any more. */
uint64_t results_remove(struct results *r, uint64_t id);

/* One of a queue that has some. Looks at those of the shard from *from on (0 at first), and
 * goes round. */
uint64_t results_remove_of(struct results *r, uint32_t queue, uint32_t *from);

/* Drop one whose time is over, if there is any. */
uint64_t results_expire(struct results *r, slu_time now);
slu_time results_next_due(const struct results *r); /* or SLU_NEVER */

static inline uint32_t
results_count(const struct results *r)
{
	return map_count(&r->by_id);
}

#endif
