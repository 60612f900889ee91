/*
 * heap.c - sifting moves a hole, not a node: each node on the way is written once,
 * and the node that looks for its place is written at the end.
 *
 * With millions of nodes the time goes into cache misses, so
 *
 *  - siblings start on a half cache line: the four, 96 bytes, then touch two lines
 *    and never three. That is why `nodes` does not start where `block` does.
 *  - while a level is compared, the level below it is being fetched;
 *  - the choice between siblings is arithmetic, not a branch to mispredict.
 */
#include "base/heap.h"

#include "base/mem.h"

#include <sluice/err.h>

#include <assert.h>
#include <string.h>

enum {
	ARITY = 4,
	LINE = 64,
	FIRST_MAX = 64
};

void
heap_init(struct heap *h, const struct slab *slab, size_t pos_offset)
{
	*h = (struct heap){ .slab = slab, .pos_offset = pos_offset };
}

void
heap_release(struct heap *h)
{
	mem_free(h->block);
	heap_init(h, h->slab, h->pos_offset);
}

/* Bytes from the block to node 0, such that node 1 starts a cache line; from there
 * on siblings are 96 bytes apart, which keeps them on half lines. */
static size_t
lead_of(const char *block)
{
	const uintptr_t node1 = (uintptr_t)block + sizeof(struct heap_node);

	return (LINE - node1 % LINE) % LINE;
}

/* realloc, because for a large block the kernel moves pages instead of copying. */
static int
resize(struct heap *h, size_t max)
{
	const size_t old_lead = (size_t)((char *)h->nodes - h->block);
	char *block = mem_realloc(h->block, max * sizeof *h->nodes + LINE);
	size_t lead;

	if (!block)
		return SLU_ENOMEM;
	lead = lead_of(block);
	if (lead != old_lead)
		memmove(block + lead, block + old_lead, h->n * sizeof *h->nodes);
	h->block = block;
	h->nodes = (struct heap_node *)(void *)(block + lead);
	h->max = (uint32_t)max;
	return 0;
}

int
heap_reserve(struct heap *h, uint32_t n)
{
	size_t max = h->max ? h->max : FIRST_MAX;

	if (n <= h->max)
		return 0;
	while (max < n)
		max *= 2;
	return resize(h, max < HEAP_OUT ? max : HEAP_OUT);
}

/* x < y as numbers of 160 bits. The low 128 give a borrow, which decides between
 * equal high parts: no branch. */
static inline bool
before(const struct heap_node *x, const struct heap_node *y)
{
	const unsigned __int128 xbc = (unsigned __int128)x->b << 64 | x->c;
	const unsigned __int128 ybc = (unsigned __int128)y->b << 64 | y->c;

	return x->a < (uint64_t)y->a + (xbc < ybc);
}

static inline void
set_pos(const struct heap *h, uint32_t handle, uint32_t pos)
{
	if (h->slab)
		memcpy((char *)slab_at(h->slab, handle) + h->pos_offset, &pos, sizeof pos);
}

static inline void
place(struct heap *h, uint32_t pos, const struct heap_node *node)
{
	h->nodes[pos] = *node;
	set_pos(h, node->handle, pos);
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

/* The lowest of the n >= 1 nodes from first on. */
static inline uint32_t
lowest_of_few(const struct heap_node *nodes, uint32_t first, uint32_t n)
{
	uint32_t best = first;

	for (uint32_t i = first + 1; i < first + n; i++)
		best = before(&nodes[i], &nodes[best]) ? i : best;
	return best;
}

static inline uint32_t
lowest_of_4(const struct heap_node *nodes, uint32_t first)
{
	const struct heap_node *p = nodes + first;
	const uint32_t left = before(&p[1], &p[0]);
	const uint32_t right = 2 + before(&p[3], &p[2]);

	return first + (before(&p[right], &p[left]) ? right : left);
}
#ifndef PF
#define PF 1
#endif
static inline void
fetch_grandchildren(const struct heap *h, uint64_t child)
{
	const uint64_t first = child * ARITY + 1;
	const char *p = (const char *)(h->nodes + first);

	if (PF && first < h->n)
		for (unsigned i = 0; i < ARITY * ARITY * sizeof *h->nodes; i += LINE)
			__builtin_prefetch(p + i);
}

static void
sift_down(struct heap *h, uint32_t hole, const struct heap_node *node)
{
	uint64_t child;

	while ((child = (uint64_t)hole * ARITY + 1) < h->n) {
		uint32_t best;

		fetch_grandchildren(h, child);
		if (child + ARITY <= h->n)
			best = lowest_of_4(h->nodes, (uint32_t)child);
		else
			best = lowest_of_few(h->nodes, (uint32_t)child, (uint32_t)(h->n - child));
		if (!before(&h->nodes[best], node))
			break;
		place(h, hole, &h->nodes[best]);
		hole = best;
	}
	place(h, hole, node);
}

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
	sift_up(h, h->n++, &node);
}

uint32_t
heap_pop(struct heap *h)
{
	uint32_t handle;

	assert(h->n > 0);
	handle = h->nodes[0].handle;
	heap_remove(h, 0);
	return handle;
}

void
heap_remove(struct heap *h, uint32_t pos)
{
	struct heap_node last;

	assert(pos < h->n);
	set_pos(h, h->nodes[pos].handle, HEAP_OUT);
	last = h->nodes[--h->n];
	if (pos == h->n)
		return;
	if (pos > 0 && before(&last, &h->nodes[(pos - 1) / ARITY]))
		sift_up(h, pos, &last);
	else
		sift_down(h, pos, &last);
}
