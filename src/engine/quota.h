/*
 * quota.h - limits that shards hold queues and their consumers to.
 *
 * Whoever reads the settings writes them, at any time; shard threads read them. They
 * count for queues whose policy says nothing else. 0: no limit, everywhere. The sums are
 * the shards': each adds what has changed of its own at the end of a run.
 */
#ifndef ENGINE_QUOTA_H
#define ENGINE_QUOTA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct spaces;

struct quota {
	_Atomic uint32_t depth; /* messages of a queue, dead letters aside */
	_Atomic uint32_t rate;  /* messages a second into a queue */
	_Atomic uint32_t burst;
	_Atomic uint32_t queue_waiting; /* ops that wait for one queue */
	_Atomic uint32_t waiting;       /* and in all */
	_Atomic int64_t idle;           /* slu_time: unused queues are forgotten after it */

	_Atomic uint32_t waits; /* how many do now; the shards' */

	_Atomic uint32_t max_queues;       /* of all namespaces */
	_Atomic uint32_t max_space_queues; /* of one */
	_Atomic int64_t queues;            /* a sum */

	/* Memory of what is known of messages, keys and documents: base/footprint.h. */
	_Atomic uint64_t index_limit;
	_Atomic uint64_t index_held; /* a sum, as the next */
	_Atomic uint64_t index_used;
	_Atomic uint64_t index_full; /* index_used when a message was refused last; 0: none was */
	_Atomic bool index_warns;    /* it is nearly all of the limit; the shards' */

	struct spaces *spaces;   /* engine/spaces.h; NULL: namespaces have no quotas */
	_Atomic bool has_quotas; /* some namespace has one */
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
