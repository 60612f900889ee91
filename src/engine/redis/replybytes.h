/*
 * replybytes.h - bytes of a server's reply, owned by the op_ref that pins them.
 */
#ifndef ENGINE_REDIS_REPLYBYTES_H
#define ENGINE_REDIS_REPLYBYTES_H

#include "base/mem.h"
#include "engine/op.h"

struct replybytes {
	uint32_t size;
	char bytes[];
};

static inline struct replybytes *
replybytes_new(size_t size)
{
	struct replybytes *p = mem_alloc(sizeof *p + size);

	if (p)
		p->size = (uint32_t)size;
	return p;
}

static inline struct replybytes *
replybytes_of(const char *bytes, size_t size)
{
	struct replybytes *p = replybytes_new(size);

	if (p)
		memcpy(p->bytes, bytes, size);
	return p;
}

/* The only pin of p; no pin if p is NULL. */
static inline struct op_ref
replybytes_ref(struct replybytes *p)
{
	return p ? (struct op_ref){ .pin = p, .size = p->size } : (struct op_ref){ 0 };
}

#endif
