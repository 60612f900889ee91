#include "form/arena.h"

#include "base/mem.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	BLOCK = 2048, /* bytes of the smallest */
	ALIGN = alignof(max_align_t)
};

struct arena_block {
	struct arena_block *next;
	size_t size;
	alignas(max_align_t) char bytes[];
};

void
arena_init(struct arena *a, char *room, size_t n)
{
	*a = (struct arena){ .left = n };
	a->next = room;
}

static bool
add_block(struct arena *a, size_t n)
{
	size_t size = a->blocks ? 2 * a->blocks->size : BLOCK;
	struct arena_block *b;

	if (size < n)
		size = n;
	b = mem_alloc(sizeof *b + size);
	if (!b)
		return false;
	b->next = a->blocks;
	b->size = size < 64 * BLOCK ? size : 64 * BLOCK;
	a->blocks = b;
	a->next = b->bytes;
	a->left = size;
	return true;
}

void *
arena_alloc(struct arena *a, size_t n)
{
	void *p;

	if (n > SIZE_MAX / 4)
		return NULL;
	n = n ? (n + ALIGN - 1) / ALIGN * ALIGN : ALIGN;
	if (n > a->left && !add_block(a, n))
		return NULL;
	p = a->next;
	a->next += n;
	a->left -= n;
	return p;
}

void *
arena_array(struct arena *a, size_t n, size_t size)
{
	return size && n > SIZE_MAX / size ? NULL : arena_alloc(a, n * size);
}

struct slice
arena_copy(struct arena *a, struct slice s)
{
	char *const p = s.n > 0 ? arena_alloc(a, s.n) : NULL;

	if (!p)
		return (struct slice){ 0 };
	memcpy(p, s.p, s.n);
	return (struct slice){ p, s.n };
}

struct slice
arena_take(struct arena *a, struct buf *b)
{
	struct slice copy = { 0 };

	if (!b->failed)
		copy = arena_copy(a, buf_slice(b));
	buf_release(b);
	return copy;
}

void
arena_release(struct arena *a)
{
	while (a->blocks) {
		struct arena_block *const b = a->blocks;

		a->blocks = b->next;
		mem_free(b);
	}
	*a = (struct arena){ 0 };
}
