/*
 * parking.h - keys that wait for a retry, and the tasks behind them.
 *
 *      by key (map)      by due (heap)
 *      "a" ──┐             │
 *            v             v
 *           [a: failed, due 12:05] -> [a] -> [a]     the first task of a key leads;
 *           [k: failed, due 12:07]                   it holds the later ones
 *
 * A key is parked from the first failure of one of its tasks until the last task behind it
 * has ended. Meanwhile every task of the key joins its line, which keeps the order in the
 * key, and other keys of the shard go on. A leader keeps its place while it runs.
 *
 * Pure: no lock, no clock. parking_init reserves room for all slots, so no other function
 * fails. exec_shard.h has the rules for threads.
 */
#ifndef EXEC_PARKING_H
#define EXEC_PARKING_H

#include "base/heap.h"
#include "base/map.h"
#include "exec/slot.h"

struct parking {
	const struct slab *slots;
	struct heap by_due; /* leaders that wait */
	struct map by_key;  /* all leaders, also running ones */
	uint32_t tasks;     /* leaders in by_due, and held tasks */
	uint32_t taken;     /* the leader taken last, while it leads; or SLAB_NONE */
};

/* Reserves room for max slots. Returns SLU_ENOMEM if memory is out. */
int parking_init(struct parking *p, const struct slab *slots, uint32_t max);
void parking_release(struct parking *p);
size_t parking_bytes(const struct parking *p);

static inline bool
parking_is_empty(const struct parking *p)
{
	return map_count(&p->by_key) == 0;
}

/* The leader of a parked key, or SLAB_NONE. */
uint32_t parking_find(const struct parking *p, const char *key, uint32_t hash);

/* Counts n accepted tasks of a parked key, from seq on, as held: they are still in the ring. */
void parking_expect(struct parking *p, uint32_t leader, uint64_t seq, uint32_t n);

/* Adds a task to the line behind its leader. */
void parking_hold(struct parking *p, uint32_t leader, uint32_t slot);

/* Lets a failed task wait until due, as the leader of its key. */
void parking_park(struct parking *p, uint32_t slot, slu_time due);

/* The leader with the earliest due up to now, or SLAB_NONE. */
uint32_t parking_due(const struct parking *p, slu_time now);
slu_time parking_next_due(const struct parking *p); /* or SLU_NEVER */

/* The handle of a waiting leader. */
static inline uint32_t
parking_handle(const struct parking *p, const struct task_slot *s)
{
	return heap_at(&p->by_due, s->pos)->handle;
}

/* Takes a leader out of by_due, to run it or to report it. */
void parking_take(struct parking *p, uint32_t slot);

/* Ends a taken leader: the next task of its line leads, due at once; without one the key is not
 * parked any more. */
void parking_end(struct parking *p, uint32_t slot, slu_time now);

#endif
