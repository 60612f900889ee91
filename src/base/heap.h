/*
 * heap.h - a 4-ary min-heap of handles, with removal, and as fast as a list while nodes come in order.
 *
 *      nodes:  [0]                       node i has children 4i+1 .. 4i+4;
 *              [1] [2] [3] [4]           four of them are 96 bytes, so going
 *              [5] [6] ...               down a level costs about one miss
 *
 *      array:  | skipped |0 1 2 ... n-1|     |        nodes in order: the first leaves by a step of `nodes`,
 *                         ^ nodes                      the next one comes behind the last
 *
 * A node carries the rank it is ordered by, so that a comparison reads only the
 * array: (a, b, c) as one 160-bit number, lowest first. The caller packs its order
 * into the rank, for example priority, due time and number; rank_i32 and rank_time
 * convert signed values. The order of equal ranks is undefined.
 *
 * For heap_remove, each item stores the position of its node: the item with handle h
 * in `slab` has a uint32_t at `pos_offset`, and the heap writes the position
 * there, or HEAP_OUT after a pop or a remove. The caller writes HEAP_OUT into an item
 * that it has never pushed. With slab NULL, handles may be any numbers, the heap
 * writes no positions, and heap_remove is not available. One thread at a time.
 *
 *  HEAP-1  Nodes in order are a heap. While all are (`mixed` is false), pushing the highest rank and taking the
 *          first node cost one step; so does nearly the highest, and nearly the first. Anything else mixes the
 *          nodes until one or none is left.
 *  HEAP-2  The position of a node is its index + `first`. A node keeps it when the first one leaves, and when the
 *          nodes move within the array. first + max <= HEAP_OUT.
 */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include "base/slab.h"

#include <stdbool.h>

#define HEAP_OUT UINT32_MAX

/* a is the most significant part, then b, then c. */
struct rank {
	uint64_t b, c;
	uint32_t a;
};

struct heap_node {
	uint64_t b, c; /* as in struct rank, here without a gap behind `a` */
	uint32_t a;
	uint32_t handle;
};

struct heap {
	struct heap_node *nodes; /* the first one; behind `skipped` nodes of the array */
	uint32_t n;              /* nodes in the heap */
	uint32_t max;            /* nodes that fit into the array */
	const struct slab *slab; /* borrowed; NULL: write no positions */
	uint32_t pos_offset;     /* of the position in an item of slab */
	uint32_t skipped;
	uint32_t first; /* HEAP-2 */
	bool mixed;     /* HEAP-1 */
};

void heap_init(struct heap *h, const struct slab *slab, size_t pos_offset);
void heap_release(struct heap *h);

/* heap_reserve when the array is too small. */
int heap_grow(struct heap *h, uint32_t n);

/* Makes room for n nodes in all, so that pushes up to n cannot fail. Grows by a part of the present
 * size, so reserving one more each time is cheap. Returns SLU_ENOMEM and changes nothing if memory
 * is out. */
static inline int
heap_reserve(struct heap *h, uint32_t n)
{
	return n <= h->max ? 0 : heap_grow(h, n);
}

/* The same for exactly n nodes: for a heap that never holds more. */
int heap_reserve_just(struct heap *h, uint32_t n);

/* Frees memory if more than eight times n nodes fit. n: the nodes that the owner has reserved,
 * not less than the heap holds. */
void heap_trim(struct heap *h, uint32_t n);

/* Bytes that the heap has allocated. */
static inline size_t
heap_bytes(const struct heap *h)
{
	return (size_t)h->max * sizeof *h->nodes;
}

/* Bytes that heap_reserve(h, n) would allocate; n is more than fits. */
size_t heap_grows_by(const struct heap *h, uint32_t n);

/* The same for any n. */
static inline size_t
heap_growth(const struct heap *h, uint32_t n)
{
	return n <= h->max ? 0 : heap_grows_by(h, n);
}

/* The caller has reserved room. */
void heap_push(struct heap *h, struct rank rank, uint32_t handle);

/* The lowest node, valid until the heap changes; NULL if the heap is empty. */
static inline const struct heap_node *
heap_first(const struct heap *h)
{
	return h->n ? h->nodes : NULL;
}

/* Removes the lowest node and returns its handle. The heap must not be empty. */
uint32_t heap_pop(struct heap *h);

/* Removes the node at the position that its item stores. */
void heap_remove(struct heap *h, uint32_t pos);

/* Gives the node at the position that its item stores another rank: heap_remove and heap_push at once. */
void heap_move(struct heap *h, uint32_t pos, struct rank rank);

/* Removes the last node of the array, some high one, and returns its handle: no other node moves. */
uint32_t heap_drop_last(struct heap *h);

/* The index of the node at the position that its item stores. */
static inline uint32_t
heap_index(const struct heap *h, uint32_t pos)
{
	return pos - h->first;
}

static inline const struct heap_node *
heap_at(const struct heap *h, uint32_t pos)
{
	return &h->nodes[heap_index(h, pos)];
}

/* Whether the item with this handle, which stores pos, has a node here. */
static inline bool
heap_has(const struct heap *h, uint32_t pos, uint32_t handle)
{
	return heap_index(h, pos) < h->n && heap_at(h, pos)->handle == handle;
}

/* Fills handles with the first nodes in order, up to max, and *n with their number. Returns SLU_ENOMEM
 * if memory is out. */
int heap_peek(const struct heap *h, uint32_t *handles, uint32_t max, uint32_t *n);

/* Signed values as unsigned ones of the same order. */
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
