/*
 * parking.h - the keys of a shard that wait for a retry, and the tasks behind them.
 *
 *      by key (map)      by due (heap)
 *      "a" ──┐             │
 *            v             v
 *           [a: failed, due 12:05] -> [a] -> [a]     the first leads; those that
 *           [k: failed, due 12:07]                   come later are held behind it
 *
 * A key is parked from the first failure of one of its tasks until the last task
 * behind it has ended; meanwhile every task of the key joins its line, so the order
 * inside the key is kept and the other keys of the shard go on. A leader that has
 * been taken to run keeps its line.
 *
 * Pure: no lock, no clock; room for all slots is reserved at init, so nothing here
 * fails later. The lane says which thread may call what.
 */
#ifndef EXEC_PARKING_H
#define EXEC_PARKING_H

#include "base/heap.h"
#include "base/map.h"
#include "exec/slot.h"

struct parking {
	const struct slab *slots;
	struct heap by_due; /* leaders that wait */
	struct map by_key;  /* leaders, running ones too */
	uint32_t tasks;     /* waiting: leaders in by_due, and all that are held */
	uint32_t taken;     /* the leader that was taken last and still leads */
};

/* For up to max slots. SLU_ENOMEM. */
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

/* n tasks of a parked key were accepted, from seq on; they are on their way to its
 * line and count as held. */
void parking_expect(struct parking *p, uint32_t leader, uint64_t seq, uint32_t n);

/* A task of a parked key waits behind its leader. */
void parking_hold(struct parking *p, uint32_t leader, uint32_t slot);

/* A task that failed waits until due and leads its key. */
void parking_park(struct parking *p, uint32_t slot, slu_time due);

/* The leader whose due is earliest and not after now, or SLAB_NONE. */
uint32_t parking_due(const struct parking *p, slu_time now);
slu_time parking_next_due(const struct parking *p); /* or SLU_NEVER */

/* The handle of a leader that waits. */
static inline uint32_t
parking_handle(const struct parking *p, const struct slot *s)
{
	return p->by_due.nodes[s->pos].handle;
}

/* A leader is taken to run (or to be reported). */
void parking_take(struct parking *p, uint32_t slot);

/* A leader that was taken has ended: the one behind it leads, due at once, or the
 * key is no longer parked. */
void parking_end(struct parking *p, uint32_t slot, slu_time now);

#endif
