/*
 * heap.c - sifting shifts a hole: each node on the way is written once, and the new node is
 * written at the end. Nodes in order are not sifted (HEAP-1).
 *
 * With millions of nodes the cost is cache misses. So a comparison reads only the array, and
 * while one level is compared, the level below is prefetched (a third off a pop from ten
 * million nodes).
 */
#include "base/heap.h"

#include "base/cpu.h"
#include "base/mem.h"

#include <sluice/err.h>

#include <assert.h>
#include <string.h>

enum {
	ARITY = 4,
	CACHE_LINE = 64,
	FIRST_MAX = 4,   /* nodes of a new array: most queues are small */
	LARGE = 4096,    /* nodes: a larger array grows by a quarter, a smaller one doubles */
	DEEP = 1 << 15,  /* nodes: a smaller array is in the cache, and is not prefetched */
	TRIM_LEAST = 32, /* nodes: heap_trim leaves a smaller array */
	TRIM_PART = 8,   /* heap_trim frees if less than 1/8 is needed */
	NEAR = 8,        /* HEAP-1: steps of a node in order */
	SLIDE_PART = 16, /* nodes in order slide only if as many as 1/16 of them are skipped */
	SLIDE_LEAST = 64
};

void
heap_init(struct heap *h, const struct slab *slab, size_t pos_offset)
{
	*h = (struct heap){ .slab = slab, .pos_offset = (uint32_t)pos_offset };
}

static struct heap_node *
array_of(const struct heap *h)
{
	return h->skipped ? h->nodes - h->skipped : h->nodes;
}

void
heap_release(struct heap *h)
{
	mem_free(array_of(h));
	heap_init(h, h->slab, h->pos_offset);
}

static inline void
set_pos(const struct heap *h, uint32_t handle, uint32_t pos)
{
	if (h->slab)
		memcpy((char *)slab_at(h->slab, handle) + h->pos_offset, &pos, sizeof pos);
}

static inline void
place(struct heap *h, uint32_t i, const struct heap_node *node)
{
	h->nodes[i] = *node;
	set_pos(h, node->handle, h->first + i);
}

/* HEAP-2: positions begin at 0 again. */
static void
renumber(struct heap *h)
{
	h->first = 0;
	for (uint32_t i = 0; i < h->n; i++)
		set_pos(h, h->nodes[i].handle, i);
}

/* Moves the nodes to the beginning of the array. */
static void
slide(struct heap *h)
{
	struct heap_node *const array = array_of(h);

	if (h->skipped)
		memmove(array, h->nodes, h->n * sizeof *array);
	h->nodes = array;
	h->skipped = 0;
}

/* The size of the array after n nodes are reserved. */
static uint32_t
room_for(const struct heap *h, uint32_t n)
{
	size_t max = h->max ? h->max : FIRST_MAX;

	while (max < n)
		max += max < LARGE ? max : max / 4;
	return max > HEAP_OUT ? HEAP_OUT : (uint32_t)max;
}

/* By realloc: for a large array the kernel then moves pages and copies nothing. */
static int
resize(struct heap *h, uint32_t max)
{
	struct heap_node *nodes;

	slide(h);
	nodes = mem_realloc(h->nodes, max * sizeof *nodes);
	if (!nodes)
		return SLU_ENOMEM;
	h->nodes = nodes;
	h->max = max;
	if (h->first > HEAP_OUT - max)
		renumber(h);
	return 0;
}

int
heap_grow(struct heap *h, uint32_t n)
{
	return resize(h, room_for(h, n));
}

int
heap_reserve_just(struct heap *h, uint32_t n)
{
	return n <= h->max ? 0 : resize(h, n);
}

size_t
heap_grows_by(const struct heap *h, uint32_t n)
{
	return (room_for(h, n) - h->max) * sizeof *h->nodes;
}

void
heap_trim(struct heap *h, uint32_t n)
{
	uint32_t max = h->max;

	assert(n >= h->n);
	while (max > TRIM_LEAST && max / TRIM_PART > n)
		max /= 2;
	if (max < h->max)
		(void)resize(h, max); /* if memory is out it keeps its size */
}

/* x < y as numbers of 160 bits. The low 128 give a borrow, which decides between
 * equal high parts: nothing to mispredict. */
static inline bool
before(const struct heap_node *x, const struct heap_node *y)
{
	const unsigned __int128 low_x = (unsigned __int128)x->b << 64 | x->c;
	const unsigned __int128 low_y = (unsigned __int128)y->b << 64 | y->c;

	return x->a < (uint64_t)y->a + (low_x < low_y);
}

static void
sift_up(struct heap *h, uint32_t hole, const struct heap_node *node)
{
	while (hole > 0) {
		const uint32_t parent = (hole - 1) / ARITY;

		if (!before(node, &h->nodes[parent]))
			break;
		place(h, hole, &h->nodes[parent]);
		hole = parent;
	}
	place(h, hole, node);
}

/* The children of four siblings are adjacent. Always inline, because gcc removes calls of a function
 * that only prefetches. */
__attribute__((always_inline)) static inline void
fetch_children_of_4(const struct heap *h, uint64_t first)
{
	const uint64_t child = first * ARITY + 1;
	const char *p = (const char *)(h->nodes + child);

	if (h->n < DEEP || child >= h->n)
		return;
	for (size_t i = 0; i < ARITY * ARITY * sizeof *h->nodes; i += CACHE_LINE)
		cpu_prefetch(p + i); /* may be past the end: a prefetch never faults */
}

static inline uint32_t
lowest_of_4(const struct heap_node *nodes, uint32_t first)
{
	const struct heap_node *p = nodes + first;
	const uint32_t left = before(&p[1], &p[0]);
	const uint32_t right = 2 + before(&p[3], &p[2]);

	return first + (before(&p[right], &p[left]) ? right : left);
}

/* The lowest of up to four siblings; the first exists. */
static inline uint32_t
lowest_sibling(const struct heap *h, uint32_t first)
{
	uint32_t best = first;

	if (h->n - first >= ARITY)
		return lowest_of_4(h->nodes, first);
	for (uint32_t i = first + 1; i < h->n; i++)
		if (before(&h->nodes[i], &h->nodes[best]))
			best = i;
	return best;
}

/* Moves the hole down to a leaf, then the node up from there. The node was the last one, so it
 * nearly always belongs to the leaves: comparing it on the way down would cost more. */
static void
sift_down(struct heap *h, uint32_t hole, const struct heap_node *node)
{
	uint64_t first = (uint64_t)hole * ARITY + 1;

	while (first < h->n) {
		uint32_t best;

		fetch_children_of_4(h, first);
		best = lowest_sibling(h, (uint32_t)first);
		place(h, hole, &h->nodes[best]);
		hole = best;
		first = (uint64_t)hole * ARITY + 1;
	}
	sift_up(h, hole, node);
}

/* ---- Nodes in order (HEAP-1) ---- */

/* Returns whether there is no room behind the last node, or few nodes have wandered far into a large array. */
static inline bool
should_slide(const struct heap *h)
{
	return h->skipped + h->n == h->max || h->skipped > 2 * (uint64_t)h->n + SLIDE_LEAST;
}

/* If few nodes are skipped, the others would soon slide again: mixed nodes skip none. */
static void
slide_in_order(struct heap *h)
{
	h->mixed |= h->skipped < h->n / SLIDE_PART;
	slide(h);
}

/* Puts a node behind those that are lower. Sets `mixed` if it does not belong near the end. */
static void
put_in_order(struct heap *h, const struct heap_node *node)
{
	uint32_t hole = h->n++;

	for (unsigned steps = 0; hole > 0 && before(node, &h->nodes[hole - 1]); steps++) {
		if (steps == NEAR) {
			h->mixed = true;
			sift_up(h, hole, node);
			return;
		}
		place(h, hole, &h->nodes[hole - 1]);
		hole--;
	}
	place(h, hole, node);
}

/* The first node leaves: the nodes before index i, which is near, move up. */
static void
remove_near_first(struct heap *h, uint32_t i)
{
	for (; i > 0; i--)
		place(h, i, &h->nodes[i - 1]);
	h->nodes++;
	h->skipped++;
	h->first++;
	h->n--;
	if (h->first > HEAP_OUT - h->max)
		renumber(h);
}

static void
remove_near_last(struct heap *h, uint32_t i)
{
	h->n--;
	for (; i < h->n; i++)
		place(h, i, &h->nodes[i + 1]);
}

static void
remove_mixed(struct heap *h, uint32_t i)
{
	const struct heap_node last = h->nodes[--h->n];

	if (i == h->n)
		return;
	h->mixed = true;
	if (i > 0 && before(&last, &h->nodes[(i - 1) / ARITY]))
		sift_up(h, i, &last);
	else
		sift_down(h, i, &last);
}

/* ---- Push and remove ---- */

void
heap_push(struct heap *h, struct rank rank, uint32_t handle)
{
	const struct heap_node node = {
		.a = rank.a,
		.b = rank.b,
		.c = rank.c,
		.handle = handle,
	};

	assert(h->n < h->max);
	if (should_slide(h))
		slide_in_order(h);
	if (h->mixed)
		sift_up(h, h->n++, &node);
	else
		put_in_order(h, &node);
}

/* One node is in order, and none begins at the array. */
static inline void
note_removal(struct heap *h)
{
	if (h->n > 1)
		return;
	h->mixed = false;
	if (h->n == 0)
		slide(h);
}

static void
remove_at(struct heap *h, uint32_t i)
{
	assert(i < h->n);
	set_pos(h, h->nodes[i].handle, HEAP_OUT);
	if (!h->mixed && i < NEAR)
		remove_near_first(h, i);
	else if (!h->mixed && h->n - i <= NEAR)
		remove_near_last(h, i);
	else
		remove_mixed(h, i);
	note_removal(h);
}

void
heap_remove(struct heap *h, uint32_t pos)
{
	remove_at(h, heap_index(h, pos));
}

/* Nodes in order: it leaves, and comes again. */
static void
move_in_order(struct heap *h, uint32_t i, const struct heap_node *node)
{
	remove_at(h, i);
	heap_push(h, (struct rank){ .a = node->a, .b = node->b, .c = node->c }, node->handle);
}

void
heap_move(struct heap *h, uint32_t pos, struct rank rank)
{
	const uint32_t i = heap_index(h, pos);
	const struct heap_node node = { .a = rank.a, .b = rank.b, .c = rank.c, .handle = h->nodes[i].handle };

	assert(i < h->n);
	if (!h->mixed)
		move_in_order(h, i, &node);
	else if (i > 0 && before(&node, &h->nodes[(i - 1) / ARITY]))
		sift_up(h, i, &node);
	else
		sift_down(h, i, &node);
}

uint32_t
heap_pop(struct heap *h)
{
	uint32_t handle;

	assert(h->n > 0);
	handle = h->nodes[0].handle;
	remove_at(h, 0);
	return handle;
}

uint32_t
heap_drop_last(struct heap *h)
{
	uint32_t handle;

	assert(h->n > 0);
	handle = h->nodes[h->n - 1].handle;
	set_pos(h, handle, HEAP_OUT);
	h->n--;
	note_removal(h);
	return handle;
}

/* Takes the first nodes in order from a heap of candidates: at first the root, then the children of each
 * node taken. */
static void
add_candidates(struct heap *candidates, const struct heap *h, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to && i < h->n; i++) {
		const struct heap_node *n = &h->nodes[i];

		heap_push(candidates, (struct rank){ .a = n->a, .b = n->b, .c = n->c }, (uint32_t)i);
	}
}

int
heap_peek(const struct heap *h, uint32_t *handles, uint32_t max, uint32_t *n)
{
	struct heap candidates;
	int rc;

	*n = 0;
	if (max > h->n)
		max = h->n;
	heap_init(&candidates, NULL, 0);
	rc = max ? heap_reserve(&candidates, max * (ARITY - 1) + 1) : 0;
	if (rc)
		return rc;
	add_candidates(&candidates, h, 0, 1);
	while (*n < max) {
		const uint64_t i = heap_pop(&candidates);

		handles[(*n)++] = h->nodes[i].handle;
		add_candidates(&candidates, h, i * ARITY + 1, i * ARITY + ARITY + 1);
	}
	heap_release(&candidates);
	return 0;
}
