/*
 * ownname.h - a name inside the struct that it belongs to: a short one is stored in place, so that a comparison reads the cache line
 * of the struct and no other.
 *
 *         if (!ownname_set(&sh->name, name))
 *                 return SLU_ENOMEM;
 *         same = slice_eq(ownname_get(&sh->name), other);
 *         ownname_release(&sh->name);
 *
 * Pure.
 */
#ifndef CORE_QUEUE_OWNNAME_H
#define CORE_QUEUE_OWNNAME_H

#include "base/bytes.h"
#include "base/mem.h"

enum {
	OWNNAME_SHORT = 20 /* bytes that fit in place */
};

struct ownname {
	char text[OWNNAME_SHORT]; /* or, of a longer name, the pointer to it */
	uint32_t n;
};

/* Returns false if memory is out. */
static inline bool
ownname_set(struct ownname *o, struct slice name)
{
	char *p = o->text;

	o->n = (uint32_t)name.n;
	if (name.n > OWNNAME_SHORT) {
		p = mem_alloc(name.n);
		memcpy(o->text, &p, sizeof p);
	}
	if (p && name.n)
		memcpy(p, name.p, name.n);
	return p != NULL;
}

/* Valid while the struct stays where it is. */
static inline struct slice
ownname_get(const struct ownname *o)
{
	const char *p = o->text;

	if (o->n > OWNNAME_SHORT)
		memcpy(&p, o->text, sizeof p);
	return (struct slice){ p, o->n };
}

/* The bytes that it has allocated. */
static inline size_t
ownname_bytes(const struct ownname *o)
{
	return o->n > OWNNAME_SHORT ? o->n : 0;
}

static inline void
ownname_release(struct ownname *o)
{
	if (o->n > OWNNAME_SHORT)
		mem_free((char *)(uintptr_t)ownname_get(o).p);
}

#endif
