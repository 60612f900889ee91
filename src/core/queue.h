/*
 * queue.h - one queue in memory: what is ready, and what waits for a moment.
 *
 *      put, due later                          put, due now
 *            |                                       |
 *            v              queue_tick               v
 *      +--------------+    (due has come)    +---------------+
 *      |    timed     | -------------------> |     ready     |
 *      |  min-heap by |                      |  min-heap by  |
 *      | due,prio,seq |                      | prio,due,seq  |
 *      +--------------+                      +---------------+
 *          ^      |                              ^      |
 *          |      +--------- queue_take ---------|------+--> out: handed to
 *          |                                     |           somebody
 *          +--- queue_wait: lease, or retry -----+
 *
 * Delayed and leased items share `timed`: both only wait for their `due`. A lease
 * that runs out is not a special case, it is an item whose moment has come.
 *
 * Items live in a slab of the owner, which may serve many queues, and begin with a
 * struct queue_item; the queue holds their handles. An item that was put belongs to
 * the queue until queue_drop, also while it is out of both heaps: room for it is
 * kept in both, so that no later move of it can fail.
 *
 * Ageing: `age` is how much waiting one step of priority is worth. Ready items are
 * then ordered by due + prio * age, so an item of priority p goes before one of
 * priority p + d only as long as it became due less than d * age later. QUEUE_STRICT
 * is worth more than any wait: the order is prio, due, seq.
 *
 * Index: an indexed queue takes and drops any item; for that its heaps tell each item
 * where it stands, so that moving one touches a dozen others. A queue that only ever
 * takes what queue_best or queue_first_timed names needs no index, and with millions
 * of items it is up to twice as fast without.
 *
 * Pure: no I/O, no locks, no clock. The caller passes `now`, so a test owns time.
 */
#ifndef CORE_QUEUE_H
#define CORE_QUEUE_H

#include "base/heap.h"

#include <sluice/api.h>

#define QUEUE_STRICT SLU_NEVER

enum queue_place {
	QUEUE_OUT, /* in no heap: new, or taken */
	QUEUE_READY,
	QUEUE_TIMED
};

/* First member of the owner's item. */
struct queue_item {
	slu_time due;
	uint64_t seq; /* the owner gives it: arrival order */
	int32_t prio;
	uint32_t pos;  /* in its heap; the owner's to use while the item is out */
	uint8_t place; /* enum queue_place */
	uint8_t own8;  /* the owner's, these three: else they were a gap */
	uint16_t own16;
	uint32_t own32;
};

struct queue {
	const struct slab *items;
	struct heap ready;
	struct heap timed;
	uint32_t held; /* items put and not dropped */
	slu_time age;
	bool indexed;
	bool by_arrival;
};

void queue_init(struct queue *q, const struct slab *items, slu_time age, bool indexed);
void queue_release(struct queue *q); /* the items stay with their owner */

/* Timed items of one due fall due by seq, whatever their priority. While it is
 * empty. */
void queue_time_by_arrival(struct queue *q);

/* The queue holds one more item, which is out: room for it is kept. SLU_ENOMEM:
 * nothing changed. */
int queue_hold(struct queue *q);

/* Put a new item, whose due, seq and prio are set, into the heap it belongs to.
 * SLU_ENOMEM: nothing changed, the item is still the caller's alone. */
int queue_put(struct queue *q, uint32_t item, slu_time now);

/* The best ready item, left where it is, or SLAB_NONE. Does not tick. */
uint32_t queue_best(const struct queue *q);

/* The timed item that falls due next, left where it is, or SLAB_NONE. */
uint32_t queue_first_timed(const struct queue *q);

/* Take an item out of its heap; it stays held. Then either queue_wait or
 * queue_drop it. */
void queue_take(struct queue *q, uint32_t item);

/* Let an item that is out wait until due, or be ready if that has come. */
void queue_wait(struct queue *q, uint32_t item, slu_time due, slu_time now);

/* The queue forgets the item, wherever it is; the owner frees it. */
void queue_drop(struct queue *q, uint32_t item);

/* Give memory back that the queue needs for a few of its items no more: true when it has. */
bool queue_trim(struct queue *q);

static inline size_t
queue_bytes(const struct queue *q)
{
	return heap_bytes(&q->ready) + heap_bytes(&q->timed);
}

/* Drop all that is in either heap, in no order, and tell the owner of each. */
typedef void queue_each_fn(void *arg, uint32_t item);
void queue_clear(struct queue *q, queue_each_fn *dropped, void *arg);

/* Make up to max timed items whose due has come ready; returns how many. */
uint32_t queue_tick(struct queue *q, slu_time now, uint32_t max);

/* When the next timed item falls due, or SLU_NEVER. */
slu_time queue_next_due(const struct queue *q);

#endif
