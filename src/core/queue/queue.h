/*
 * queue.h - the two heaps of a queue: items that are ready, and items that wait for a moment.
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
 *          |      +--------- queue_take ---------|------+--> out: a consumer
 *          |                                     |           has it
 *          +------ queue_wait: a retry ----------+
 *
 * Items live in a slab of the owner, which may serve many queues, and begin with a struct
 * queue_item; the queue stores their handles. An item belongs to the queue from queue_put
 * to queue_drop, also while it is out of both heaps: the queue keeps room for it in both,
 * so that no later call can fail.
 *
 * Ageing: `age` is how long a wait outweighs one step of priority. The order of ready items
 * is due + prio * age, so an item of priority p goes before one of priority p + d only if
 * it became due less than d * age later. With QUEUE_STRICT the order is prio, due, seq.
 *
 * Index: an indexed queue can take and drop any item. For that its heaps write their
 * positions into the items, so that a change touches about a dozen of them. A queue that
 * only takes the items of queue_best and queue_first_timed needs no index, and with
 * millions of items is up to twice as fast without.
 *
 * Order: a ready item of an indexed queue that goes after all items of `fifo` joins that,
 * which costs 4 bytes and no comparison but this one. Other ready items are in the heap.
 * The best item is the first of the two. Most queues are worked off in order, so their
 * items are in `fifo`. There is room for all items in the heap: `fifo` may be without room.
 *
 * Pure: no I/O, no locks, no clock. The caller passes `now`.
 */
#ifndef CORE_QUEUE_QUEUE_H
#define CORE_QUEUE_QUEUE_H

#include "base/heap.h"
#include "core/queue/fifo.h"

#include <sluice/api.h>

#define QUEUE_STRICT SLU_NEVER

enum queue_place {
	QUEUE_OUT, /* in neither heap: new, or taken */
	QUEUE_READY,
	QUEUE_TIMED,
	QUEUE_IN_ORDER /* ready, in `fifo` */
};

/* First member of the owner's item. */
struct queue_item {
	slu_time due;
	uint64_t seq; /* order of arrival; set by the owner */
	int32_t prio;
	uint32_t pos;   /* in its heap; free for the owner while the item is out */
	uint8_t place;  /* enum queue_place */
	uint8_t own8;   /* free for the owner */
	uint16_t own16; /* the same */
	uint32_t own32; /* the same */
};

struct queue {
	const struct slab *items;
	struct fifo fifo;  /* ready items in order */
	struct heap ready; /* the other ready items */
	struct heap timed;
	uint32_t held; /* items put and not dropped */
	slu_time age;  /* or QUEUE_STRICT */
	bool indexed;
	bool by_arrival; /* queue_time_by_arrival */
};

void queue_init(struct queue *q, const struct slab *items, slu_time age, bool indexed);
void queue_release(struct queue *q); /* the items stay with their owner */

/* Timed items with the same due fall due in the order of seq, not of priority. Call it while the
 * queue is empty. */
void queue_time_by_arrival(struct queue *q);

/* Whether there is room for one more item. */
static inline bool
queue_has_room(const struct queue *q)
{
	return q->held < q->ready.max && q->held < q->timed.max && (!q->indexed || fifo_has_room(&q->fifo));
}

/* Makes room for one more item. Returns SLU_ENOMEM and changes nothing if memory is out. */
int queue_grow(struct queue *q);

/* Bytes that this allocates. */
size_t queue_growth(const struct queue *q);

/* Adds an item that is out, and reserves room for it. Returns SLU_ENOMEM and changes nothing if
 * memory is out. */
int queue_hold(struct queue *q);

/* Adds a new item, with due, seq and prio set, to its heap. Returns SLU_ENOMEM and changes nothing if
 * memory is out. */
int queue_put(struct queue *q, uint32_t item, slu_time now);

/* The first ready item, which stays in its heap, or SLAB_NONE. Does not tick. */
uint32_t queue_best(const struct queue *q);

/* The number of ready items, and whether this item is one of them. */
static inline uint32_t
queue_ready(const struct queue *q)
{
	return q->fifo.n + q->ready.n;
}

bool queue_has_ready(const struct queue *q, uint32_t item);

/* All ready items, in no order: calls each with them until it returns false. */
typedef bool queue_look_fn(void *arg, uint32_t item);
void queue_look(const struct queue *q, queue_look_fn *each, void *arg);

/* Fills items with the first ready items in order, up to max, and *n with their number. Returns SLU_ENOMEM. */
int queue_peek(const struct queue *q, uint32_t *items, uint32_t max, uint32_t *n);

/* The rank of an item while it is ready. */
struct rank queue_rank(const struct queue *q, uint32_t item);

/* Removes some ready item that no other item moves for, and returns it: the owner sets its place. There must be one. */
uint32_t queue_pop_any(struct queue *q);

/* The timed item that falls due next, which stays in its heap, or SLAB_NONE. */
uint32_t queue_first_timed(const struct queue *q);

/* Removes an item from its heap; the queue keeps its room. Call queue_wait or queue_drop next. */
void queue_take(struct queue *q, uint32_t item);

/* Puts an item that is out into `timed`, or into `ready` if due has come. */
void queue_wait(struct queue *q, uint32_t item, slu_time due, slu_time now);

/* Removes the item from the queue, in or out of a heap. The owner frees it. */
void queue_drop(struct queue *q, uint32_t item);

/* Frees memory if the queue has far more than its items need. Returns whether it did. */
bool queue_trim(struct queue *q);

static inline size_t
queue_bytes(const struct queue *q)
{
	return fifo_bytes(&q->fifo) + heap_bytes(&q->ready) + heap_bytes(&q->timed);
}

/* Drops all items of both heaps, in no order, and calls dropped for each. */
typedef void queue_each_fn(void *arg, uint32_t item);
void queue_clear(struct queue *q, queue_each_fn *dropped, void *arg);

/* Makes up to max timed items ready whose due has come. Returns their number. */
uint32_t queue_tick(struct queue *q, slu_time now, uint32_t max);

/* The due of the next timed item, or SLU_NEVER. */
slu_time queue_next_due(const struct queue *q);

#endif
