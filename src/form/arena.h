/*
 * arena.h - memory that is allocated in pieces and freed at once.
 *
 * Holds what one request needs until it is answered: arrays of messages, unescaped text.
 * Blocks grow, so that many small pieces cost few allocations. A zeroed arena is empty.
 */
#ifndef FORM_ARENA_H
#define FORM_ARENA_H

#include "base/bytes.h"

struct arena_block;

struct arena {
	struct arena_block *blocks; /* newest first */
	char *next;                 /* the free part of the newest */
	size_t left;
};

/* The arena first uses the caller's `room` of n bytes, which is aligned for any type. */
void arena_init(struct arena *a, char *room, size_t n);

/* Returns n bytes, not zeroed, aligned for any type; NULL if memory runs out. */
void *arena_alloc(struct arena *a, size_t n);

/* Returns n elements of `size` bytes; NULL if memory runs out or n * size is too large. */
void *arena_array(struct arena *a, size_t n, size_t size);

/* Returns a copy of s in the arena, which is empty if memory runs out. */
struct slice arena_copy(struct arena *a, struct slice s);

/* Returns a copy of the text of b, and releases b. The copy is empty if b or the arena ran out of memory. */
struct slice arena_take(struct arena *a, struct buf *b);

void arena_release(struct arena *a);

#endif
