/*
 * fifo.h - handles in the order in which they came. Any of them may leave.
 *
 *      slots:   | . . h h h . h . h |         4 bytes a handle; . : a slot without a handle
 *                     ^ at           ^ end
 *
 * An item stores the place of its handle. A place stays the same until the handle leaves. The first and the last slot
 * between `at` and `end` have a handle; a handle that leaves between others leaves an empty slot. Zeroed: empty. One
 * thread at a time.
 */
#ifndef CORE_QUEUE_FIFO_H
#define CORE_QUEUE_FIFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIFO_NONE UINT32_MAX /* no handle; the same as SLAB_NONE */

enum {
	FIFO_SLIDE = 16 /* handles slide to the beginning if more than 1/16 of the slots before them are empty */
};

struct fifo {
	uint32_t *slots;
	uint32_t max;  /* slots */
	uint32_t at;   /* the slot of the first handle */
	uint32_t end;  /* behind the slot of the last handle */
	uint32_t n;    /* handles */
	uint32_t base; /* place of slot 0 */
};

void fifo_release(struct fifo *o);

/* Whether one more handle fits. */
static inline bool
fifo_has_room(const struct fifo *o)
{
	return o->end < o->max || o->at > o->max / FIFO_SLIDE;
}

/* Bytes that fifo_reserve allocates. */
size_t fifo_growth(const struct fifo *o);

/* Makes room for one more handle, unless memory is out or most slots between the first and the last handle are empty: then
 * there is room when the first handles have left. */
void fifo_grow(struct fifo *o);

static inline void
fifo_reserve(struct fifo *o)
{
	if (!fifo_has_room(o))
		fifo_grow(o);
}

/* Frees memory if there are more than eight times n slots. */
void fifo_trim(struct fifo *o, uint32_t n);

static inline size_t
fifo_bytes(const struct fifo *o)
{
	return (size_t)o->max * sizeof *o->slots;
}

/* The first and the last handle, or FIFO_NONE. */
static inline uint32_t
fifo_first(const struct fifo *o)
{
	return o->n ? o->slots[o->at] : FIFO_NONE;
}

static inline uint32_t
fifo_last(const struct fifo *o)
{
	return o->n ? o->slots[o->end - 1] : FIFO_NONE;
}

/* Adds a handle behind the others and returns its place. There must be room. */
uint32_t fifo_add(struct fifo *o, uint32_t handle);

/* Removes the handle at a place. */
void fifo_remove(struct fifo *o, uint32_t place);

/* Removes the last handle and returns it. There must be one. */
uint32_t fifo_drop_last(struct fifo *o);

/* Whether the handle is at this place. */
static inline bool
fifo_has(const struct fifo *o, uint32_t place, uint32_t handle)
{
	const uint32_t i = place - o->base;

	return i >= o->at && i < o->end && o->slots[i] == handle;
}

/* The slots from the first to the last handle, and the handle in slot i of them or FIFO_NONE. */
static inline uint32_t
fifo_span(const struct fifo *o)
{
	return o->end - o->at;
}

static inline uint32_t
fifo_slot(const struct fifo *o, uint32_t i)
{
	return o->slots[o->at + i];
}

#endif
