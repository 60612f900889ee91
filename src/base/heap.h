/*
 * heap.h - a 4-ary min-heap of handles, with removal.
 *
 *      nodes:  [0]                       node i has children 4i+1 .. 4i+4;
 *              [1] [2] [3] [4]           four of them are 96 bytes, so going
 *              [5] [6] ...               down a level costs about one miss
 *
 * A node carries the rank it is ordered by, so that comparing never leaves the
 * array: (a, b, c) as one 160-bit number, lowest first. The caller packs what it
 * orders by, for example priority, due time and number; two equal ranks come out
 * in any order. See rank_i32 and rank_time for signed values.
 *
 * To remove from the middle, the heap tells each item where its node is: the item
 * with handle h in `slab` has a uint32_t at `pos_offset`, and the heap keeps the
 * node's index there. An item that was popped or removed has HEAP_OUT; the caller
 * sets that itself in an item that was never pushed, where it wants to ask. With
 * slab NULL the handles may be any numbers and no positions are kept, so there is
 * only push, first and pop. One thread at a time.
 */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include "base/slab.h"

#include <stdbool.h>

#define HEAP_OUT UINT32_MAX

struct rank {
	uint64_t b, c;
	uint32_t a; /* the most significant part */
};

struct heap_node {
	uint64_t b, c; /* as in struct rank, laid out without a gap */
	uint32_t a;
	uint32_t handle;
};

struct heap {
	struct heap_node *nodes;
	uint32_t n;
	uint32_t max;
	const struct slab *slab; /* borrowed; NULL: keep no positions */
	size_t pos_offset;
};

void heap_init(struct heap *h, const struct slab *slab, size_t pos_offset);
void heap_release(struct heap *h);

/* Make room for n nodes in all, so that pushes up to there cannot fail. Grows by a part of what
 * there is, so asking for one more each time is cheap. SLU_ENOMEM changes nothing. */
int heap_reserve(struct heap *h, uint32_t n);

/* The same without room for more: for a heap that never holds more than n. */
int heap_reserve_just(struct heap *h, uint32_t n);

/* Give memory back if there is room for more than eight times n nodes, which are all that
 * the owner has promised room for. n is at least the number of nodes. */
void heap_trim(struct heap *h, uint32_t n);

/* How many bytes the heap has allocated, and how many more heap_reserve(h, n) takes. */
static inline size_t
heap_bytes(const struct heap *h)
{
	return (size_t)h->max * sizeof *h->nodes;
}

size_t heap_grows_by(const struct heap *h, uint32_t n); /* n is more than there is room for */

static inline size_t
heap_growth(const struct heap *h, uint32_t n)
{
	return n <= h->max ? 0 : heap_grows_by(h, n);
}

/* Room must have been reserved. */
void heap_push(struct heap *h, struct rank rank, uint32_t handle);

/* The lowest node, or NULL when empty. Valid until the heap changes. */
static inline const struct heap_node *
heap_first(const struct heap *h)
{
	return h->n ? h->nodes : NULL;
}

/* Take the lowest out and return its handle; the heap must not be empty. */
uint32_t heap_pop(struct heap *h);

/* Take the node at index pos out; pos is what the item's position says. */
void heap_remove(struct heap *h, uint32_t pos);

/* Signed values in unsigned order. */
static inline uint32_t
rank_i32(int32_t v)
{
	return (uint32_t)v ^ 0x80000000u;
}

static inline uint64_t
rank_time(int64_t v)
{
	return (uint64_t)v ^ 0x8000000000000000u;
}

#endif
