/*
 * arena.h - memory that is asked for in pieces and let go of at once.
 *
 * What one request needs until it is answered: arrays of messages, unescaped text.
 * Blocks grow, so that many small pieces cost few allocations. Zeroed is empty.
 */
#ifndef API_ARENA_H
#define API_ARENA_H

#include "base/bytes.h"

struct arena_block;

struct arena {
	struct arena_block *blocks; /* newest first */
	char *next;                 /* what is left of the newest */
	size_t left;
};

/* Empty, with n bytes to begin with, aligned for anything; they are the caller's. */
void arena_init(struct arena *a, char *room, size_t n);

/* Not zeroed, fit for anything; NULL when memory is out. */
void *arena_alloc(struct arena *a, size_t n);

/* n pieces of size; NULL also when that overflows. */
void *arena_array(struct arena *a, size_t n, size_t size);

/* The same bytes there; empty when there is no memory. */
struct slice arena_copy(struct arena *a, struct slice s);

void arena_release(struct arena *a);

#endif
