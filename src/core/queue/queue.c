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

#include "base/mem.h"

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
	fifo_release(&q->fifo);
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

static bool
is_before(const struct rank *x, const struct rank *y)
{
	if (x->a != y->a)
		return x->a < y->a;
	return x->b != y->b ? x->b < y->b : x->c < y->c;
}

struct rank
queue_rank(const struct queue *q, uint32_t item)
{
	return ready_rank(q, item_at(q, item));
}

/* Whether a ready item with this rank goes after all that are in order, and they have room for it. */
static bool
is_in_order(const struct queue *q, const struct rank *rank)
{
	const uint32_t last = fifo_last(&q->fifo);
	struct rank before;

	if (!q->indexed || !fifo_has_room(&q->fifo))
		return false;
	if (last == FIFO_NONE)
		return true;
	before = queue_rank(q, last);
	return is_before(&before, rank);
}

static void
enter_ready(struct queue *q, uint32_t item, struct queue_item *it)
{
	const struct rank rank = ready_rank(q, it);

	if (is_in_order(q, &rank)) {
		it->place = QUEUE_IN_ORDER;
		it->pos = fifo_add(&q->fifo, item);
		return;
	}
	it->place = QUEUE_READY;
	heap_push(&q->ready, rank, item);
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

/* Without memory for `fifo` its items go into the heap. */
int
queue_grow(struct queue *q)
{
	int rc;

	rc = heap_reserve(&q->ready, q->held + 1);
	if (!rc)
		rc = heap_reserve(&q->timed, q->held + 1);
	if (!rc && q->indexed)
		fifo_reserve(&q->fifo);
	return rc;
}

size_t
queue_growth(const struct queue *q)
{
	return heap_growth(&q->ready, q->held + 1) + heap_growth(&q->timed, q->held + 1) + (q->indexed ? fifo_growth(&q->fifo) : 0);
}

int
queue_hold(struct queue *q)
{
	const int rc = queue_has_room(q) ? 0 : queue_grow(q);

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
	const uint32_t first = fifo_first(&q->fifo);
	const struct heap_node *const other = heap_first(&q->ready);
	struct rank rank;

	if (!other || first == FIFO_NONE)
		return other ? other->handle : first;
	rank = queue_rank(q, first);
	return is_before(&rank, &(struct rank){ .a = other->a, .b = other->b, .c = other->c }) ? first : other->handle;
}

bool
queue_has_ready(const struct queue *q, uint32_t item)
{
	const struct queue_item *const it = item_at(q, item);

	if (it->place == QUEUE_IN_ORDER)
		return fifo_has(&q->fifo, it->pos, item);
	return it->place == QUEUE_READY && heap_has(&q->ready, it->pos, item);
}

void
queue_look(const struct queue *q, queue_look_fn *each, void *arg)
{
	bool more = true;

	for (uint32_t i = 0; more && i < fifo_span(&q->fifo); i++)
		if (fifo_slot(&q->fifo, i) != FIFO_NONE)
			more = each(arg, fifo_slot(&q->fifo, i));
	for (uint32_t i = 0; more && i < q->ready.n; i++)
		more = each(arg, q->ready.nodes[i].handle);
}

/* Whether item x goes before item y; SLAB_NONE: no item, which goes last. */
static bool
goes_before(const struct queue *q, uint32_t x, uint32_t y)
{
	struct rank rank_x, rank_y;

	if (x == SLAB_NONE || y == SLAB_NONE)
		return x != SLAB_NONE;
	rank_x = queue_rank(q, x);
	rank_y = queue_rank(q, y);
	return is_before(&rank_x, &rank_y);
}

/* Merges the items in order with the first n others. */
static uint32_t
merge(const struct queue *q, const uint32_t *others, uint32_t n_others, uint32_t *items, uint32_t max)
{
	uint32_t n = 0, at = 0, other = 0;

	while (n < max) {
		const uint32_t x = at < fifo_span(&q->fifo) ? fifo_slot(&q->fifo, at) : SLAB_NONE;
		const uint32_t y = other < n_others ? others[other] : SLAB_NONE;

		if (x == FIFO_NONE && at < fifo_span(&q->fifo)) {
			at++;
		} else if (goes_before(q, x, y)) {
			items[n++] = x;
			at++;
		} else if (y != SLAB_NONE) {
			items[n++] = y;
			other++;
		} else {
			break;
		}
	}
	return n;
}

int
queue_peek(const struct queue *q, uint32_t *items, uint32_t max, uint32_t *n)
{
	uint32_t *others;
	uint32_t n_others;
	int rc;

	*n = 0;
	if (q->fifo.n == 0)
		return heap_peek(&q->ready, items, max, n);
	others = mem_array(max + 1, sizeof *others);
	if (!others)
		return SLU_ENOMEM;
	rc = heap_peek(&q->ready, others, max, &n_others);
	if (!rc)
		*n = merge(q, others, n_others, items, max);
	mem_free(others);
	return rc;
}

uint32_t
queue_pop_any(struct queue *q)
{
	return q->fifo.n ? fifo_drop_last(&q->fifo) : heap_drop_last(&q->ready);
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
	if (it->place == QUEUE_IN_ORDER) {
		fifo_remove(&q->fifo, it->pos);
		it->place = QUEUE_OUT;
		return;
	}
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
	fifo_trim(&q->fifo, q->held);
	heap_trim(&q->ready, q->held);
	heap_trim(&q->timed, q->held);
	return queue_bytes(q) < before;
}

static void
clear_item(struct queue *q, uint32_t item, queue_each_fn *dropped, void *arg)
{
	item_at(q, item)->place = QUEUE_OUT;
	q->held--;
	dropped(arg, item);
}

void
queue_clear(struct queue *q, queue_each_fn *dropped, void *arg)
{
	while (queue_ready(q) > 0)
		clear_item(q, queue_pop_any(q), dropped, arg);
	while (q->timed.n > 0)
		clear_item(q, heap_drop_last(&q->timed), dropped, arg);
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
