/*
 * piece.h - bytes that came from a server, counted by whoever may still read them.
 */
#ifndef ENGINE_REDIS_PIECE_H
#define ENGINE_REDIS_PIECE_H

#include "base/mem.h"
#include "engine/op.h"

struct piece {
	uint32_t size;
	char bytes[];
};

static inline struct piece *
piece_new(size_t size)
{
	struct piece *p = mem_alloc(sizeof *p + size);

	if (p)
		p->size = (uint32_t)size;
	return p;
}

static inline struct piece *
piece_of(const char *bytes, size_t size)
{
	struct piece *p = piece_new(size);

	if (p)
		memcpy(p->bytes, bytes, size);
	return p;
}

/* The one pin of it; of NULL: none. */
static inline struct op_ref
piece_ref(struct piece *p)
{
	return p ? (struct op_ref){ .pin = p, .size = p->size } : (struct op_ref){ 0 };
}

#endif
