/*
 * quota.h - limits that shards hold queues and their consumers to.
 *
 * Whoever reads the settings writes them, at any time; shard threads read them. They
 * count for queues whose policy says nothing else. 0: no limit, everywhere.
 */
#ifndef ENGINE_QUOTA_H
#define ENGINE_QUOTA_H

#include <stdatomic.h>
#include <stdint.h>

struct quota {
	_Atomic uint32_t depth; /* messages of a queue, dead letters aside */
	_Atomic uint32_t rate;  /* messages a second into a queue */
	_Atomic uint32_t burst;
	_Atomic uint32_t queue_waiting; /* ops that wait for one queue */
	_Atomic uint32_t waiting;       /* and in all */

	_Atomic uint32_t waits; /* how many do now; the shards' */
};

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
