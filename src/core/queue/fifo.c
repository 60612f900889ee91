#include "core/queue/fifo.h"

#include "base/mem.h"

#include <assert.h>
#include <string.h>

enum {
	FIRST_MAX = 8,   /* slots at first: most queues are small */
	LARGE = 4096,    /* slots: a larger array grows by a quarter, a smaller one doubles */
	TRIM_LEAST = 64, /* slots: fifo_trim leaves a smaller array */
	TRIM_PART = 8    /* fifo_trim frees if less than 1/8 is needed */
};

void
fifo_release(struct fifo *o)
{
	mem_free(o->slots);
	*o = (struct fifo){ 0 };
}

/* Moves the handles to the beginning. Their places stay the same. */
static void
slide(struct fifo *o)
{
	if (o->at)
		memmove(o->slots, o->slots + o->at, fifo_span(o) * sizeof *o->slots);
	o->base += o->at;
	o->end -= o->at;
	o->at = 0;
}

static bool
is_sparse(const struct fifo *o)
{
	return o->n < fifo_span(o) / 2;
}

/* 0: it grows no more. */
static uint32_t
next_max(const struct fifo *o)
{
	const uint64_t max = !o->max ? FIRST_MAX : o->max < LARGE ? 2ull * o->max
								  : o->max + o->max / 4ull;

	return is_sparse(o) || max > UINT32_MAX ? 0 : (uint32_t)max;
}

size_t
fifo_growth(const struct fifo *o)
{
	const uint32_t max = fifo_has_room(o) ? 0 : next_max(o);

	return max ? (max - o->max) * sizeof *o->slots : 0;
}

/* By realloc: for a large array the kernel then moves pages and copies nothing. */
static void
resize(struct fifo *o, uint32_t max)
{
	uint32_t *const slots = mem_realloc(o->slots, max * sizeof *slots);

	if (!slots)
		return;
	o->slots = slots;
	o->max = max;
}

void
fifo_grow(struct fifo *o)
{
	const uint32_t max = next_max(o);

	if (max)
		resize(o, max);
}

void
fifo_trim(struct fifo *o, uint32_t n)
{
	uint32_t max = o->max;

	while (max > TRIM_LEAST && max / TRIM_PART > n)
		max /= 2;
	if (max >= o->max || max < fifo_span(o))
		return;
	slide(o);
	resize(o, max);
}

uint32_t
fifo_add(struct fifo *o, uint32_t handle)
{
	assert(handle != FIFO_NONE && fifo_has_room(o));
	if (o->end == o->max)
		slide(o);
	o->slots[o->end] = handle;
	o->n++;
	return o->base + o->end++;
}

void
fifo_remove(struct fifo *o, uint32_t place)
{
	const uint32_t i = place - o->base;

	assert(i >= o->at && i < o->end && o->slots[i] != FIFO_NONE);
	o->slots[i] = FIFO_NONE;
	o->n--;
	while (o->at < o->end && o->slots[o->at] == FIFO_NONE)
		o->at++;
	while (o->at < o->end && o->slots[o->end - 1] == FIFO_NONE)
		o->end--;
	if (o->n == 0)
		o->at = o->end = 0;
}

uint32_t
fifo_drop_last(struct fifo *o)
{
	const uint32_t handle = fifo_last(o);

	assert(o->n);
	fifo_remove(o, o->base + o->end - 1);
	return handle;
}
