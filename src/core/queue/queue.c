/*
 * queue.c - ranks of the two heaps.
 *
 * The 160 bits of a rank, highest first:
 *
 *              a, 32 bits     b, 64 bits              c, 64 bits
 *   ready      prio           due                     seq
 *   aged       due + prio * age, all 96 bits of it    seq
 *   timed      due, high 32   due, low 32 | prio      seq
 *   by arrival due, high 32   due, low 32 | 0         seq
 *
 * Signed values are biased, so that they have the same order as unsigned ones.
 */
#include "core/queue/queue.h"

#include <sluice/err.h>

#include <assert.h>

void
queue_init(struct queue *q, const struct slab *items, slu_time age, bool indexed)
{
	const struct slab *index = indexed ? items : NULL;
	const size_t pos = offsetof(struct queue_item, pos);

	assert(age >= 0);
	*q = (struct queue){ .items = items, .age = age, .indexed = indexed };
	heap_init(&q->ready, index, pos);
	heap_init(&q->timed, index, pos);
}

void
queue_release(struct queue *q)
{
	heap_release(&q->ready);
	heap_release(&q->timed);
	q->held = 0;
}

void
queue_time_by_arrival(struct queue *q)
{
	assert(q->timed.n == 0);
	q->by_arrival = true;
}

static struct queue_item *
item_at(const struct queue *q, uint32_t item)
{
	return slab_at(q->items, item);
}

/* due + prio * age in 96 bits. No product of 32 and 64 bits is too large for that,
 * so extreme priorities and ages keep their exact order. Done in halves of 32 bits:
 * low * prio + 32 bits just fits into 63. */
static struct rank
aged_rank(const struct queue *q, const struct queue_item *it)
{
	const int64_t low = it->prio * (q->age & UINT32_MAX) + (it->due & UINT32_MAX);
	const int64_t high = it->prio * (q->age >> 32) + (it->due >> 32) + (low >> 32);

	return (struct rank){
		.a = (uint32_t)(rank_time(high) >> 32),
		.b = (uint64_t)high << 32 | (uint32_t)low,
		.c = it->seq,
	};
}

static struct rank
ready_rank(const struct queue *q, const struct queue_item *it)
{
	if (q->age != QUEUE_STRICT)
		return aged_rank(q, it);
	return (struct rank){
		.a = rank_i32(it->prio),
		.b = rank_time(it->due),
		.c = it->seq,
	};
}

static struct rank
timed_rank(const struct queue *q, const struct queue_item *it)
{
	const uint64_t due = rank_time(it->due);
	const uint32_t prio = q->by_arrival ? 0 : rank_i32(it->prio);

	return (struct rank){
		.a = (uint32_t)(due >> 32),
		.b = due << 32 | prio,
		.c = it->seq,
	};
}

static void
enter_ready(struct queue *q, uint32_t item, struct queue_item *it)
{
	it->place = QUEUE_READY;
	heap_push(&q->ready, ready_rank(q, it), item);
}

static void
enter(struct queue *q, uint32_t item, struct queue_item *it, slu_time now)
{
	assert(it->place == QUEUE_OUT);
	if (it->due <= now) {
		enter_ready(q, item, it);
		return;
	}
	it->place = QUEUE_TIMED;
	heap_push(&q->timed, timed_rank(q, it), item);
}

int
queue_hold(struct queue *q)
{
	int rc;

	rc = heap_reserve(&q->ready, q->held + 1);
	if (!rc)
		rc = heap_reserve(&q->timed, q->held + 1);
	if (!rc)
		q->held++;
	return rc;
}

int
queue_put(struct queue *q, uint32_t item, slu_time now)
{
	const int rc = queue_hold(q);

	if (!rc)
		enter(q, item, item_at(q, item), now);
	return rc;
}

static uint32_t
first_of(const struct heap *h)
{
	const struct heap_node *first = heap_first(h);

	return first ? first->handle : SLAB_NONE;
}

uint32_t
queue_best(const struct queue *q)
{
	return first_of(&q->ready);
}

uint32_t
queue_first_timed(const struct queue *q)
{
	return first_of(&q->timed);
}

void
queue_take(struct queue *q, uint32_t item)
{
	struct queue_item *it = item_at(q, item);
	struct heap *h = it->place == QUEUE_READY ? &q->ready : &q->timed;

	assert(it->place != QUEUE_OUT);
	it->place = QUEUE_OUT;
	if (first_of(h) == item) {
		(void)heap_pop(h); /* the same item */
		return;
	}
	assert(q->indexed);
	heap_remove(h, it->pos);
}

void
queue_wait(struct queue *q, uint32_t item, slu_time due, slu_time now)
{
	struct queue_item *it = item_at(q, item);

	it->due = due;
	enter(q, item, it, now);
}

void
queue_drop(struct queue *q, uint32_t item)
{
	if (item_at(q, item)->place != QUEUE_OUT)
		queue_take(q, item);
	assert(q->held > 0);
	q->held--;
}

bool
queue_trim(struct queue *q)
{
	const size_t before = queue_bytes(q);

	if (before / sizeof(struct heap_node) / 16 <= q->held)
		return false; /* nearly always */
	heap_trim(&q->ready, q->held);
	heap_trim(&q->timed, q->held);
	return queue_bytes(q) < before;
}

/* Drops the last node of a heap: no other node changes its place. */
static void
clear_heap(struct queue *q, struct heap *h, queue_each_fn *dropped, void *arg)
{
	while (h->n > 0) {
		const uint32_t item = heap_drop_last(h);

		item_at(q, item)->place = QUEUE_OUT;
		q->held--;
		dropped(arg, item);
	}
}

void
queue_clear(struct queue *q, queue_each_fn *dropped, void *arg)
{
	clear_heap(q, &q->ready, dropped, arg);
	clear_heap(q, &q->timed, dropped, arg);
}

uint32_t
queue_tick(struct queue *q, slu_time now, uint32_t max)
{
	uint32_t n = 0;

	while (n < max && queue_next_due(q) <= now && q->timed.n > 0) {
		const uint32_t item = heap_pop(&q->timed);

		enter_ready(q, item, item_at(q, item));
		n++;
	}
	return n;
}

slu_time
queue_next_due(const struct queue *q)
{
	const struct heap_node *first = heap_first(&q->timed);

	if (!first)
		return SLU_NEVER;

	const uint64_t due = (uint64_t)first->a << 32 | first->b >> 32;

	return (slu_time)rank_time((int64_t)due);
}
