/*
 * quota.h - limits that shards apply to queues and consumers.
 *
 * The server writes the limits at any time, and shard threads read them. They hold for queues
 * whose policy has no limit of its own. 0: no limit, in every field. The shards write the sums:
 * each adds its own changes at the end of a run.
 */
#ifndef ENGINE_QUOTA_H
#define ENGINE_QUOTA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct spaces;

struct quota {
	_Atomic uint32_t depth; /* messages in a queue, without dead letters */
	_Atomic uint32_t rate;  /* messages per second into a queue */
	_Atomic uint32_t burst;
	_Atomic uint32_t queue_waiting; /* ops that wait for one queue */
	_Atomic uint32_t waiting;       /* ops that wait, in total */
	_Atomic uint32_t shares;        /* shares of all queues of a shard */
	_Atomic uint32_t trends;        /* queues of a shard with a trend (core/queue/trend.h); 0: none */
	_Atomic uint32_t outbox;        /* entries of a line: OUTBOX-5 of engine/outbox.h */
	_Atomic int64_t hold;           /* slu_time that a hold lasts at most; 0: the time of the ledger */
	_Atomic int64_t idle;           /* slu_time after which an unused queue is forgotten */

	_Atomic uint32_t waits; /* ops that wait now; a sum */

	_Atomic uint32_t max_queues;       /* in all namespaces */
	_Atomic uint32_t max_space_queues; /* in one namespace */
	_Atomic int64_t queues;            /* in all namespaces; a sum */

	/* Memory for messages, keys and documents: base/footprint.h. */
	_Atomic uint64_t index_limit;
	_Atomic uint64_t index_held; /* a sum, like index_used */
	_Atomic uint64_t index_used;
	_Atomic uint64_t index_full; /* index_used at the last refusal of new work; 0: none */
	_Atomic bool index_warns;    /* index_held is near the limit; set by the shards */

	struct spaces *spaces;   /* engine/spaces.h; NULL: namespaces have no quotas */
	_Atomic bool has_quotas; /* a namespace has a quota */
};

static inline uint64_t
quota_bytes(const _Atomic uint64_t *knob)
{
	return atomic_load_explicit(knob, memory_order_relaxed);
}

static inline uint32_t
quota_get(const _Atomic uint32_t *knob)
{
	return atomic_load_explicit(knob, memory_order_relaxed);
}

static inline void
quota_set(_Atomic uint32_t *knob, uint32_t value)
{
	atomic_store_explicit(knob, value, memory_order_relaxed);
}

#endif
