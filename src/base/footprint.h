/*
 * footprint.h - the memory of a structure.
 *
 *         struct footprint f = { 0 };
 *
 *         footprint_slab(&f, &l->msgs);
 *         footprint_map(&f, &l->ids);
 *
 * `held` is what the structure has allocated. `used` is the part of it that present items take;
 * the rest is room for more. Each call is O(1).
 */
#ifndef BASE_FOOTPRINT_H
#define BASE_FOOTPRINT_H

#include "base/heap.h"
#include "base/map.h"
#include "base/slab.h"

enum {
	FOOTPRINT_SLOT = 8 /* bytes of an entry of a map, on average */
};

struct footprint {
	uint64_t held;
	uint64_t used;
};

/* n bytes that are held and used. */
static inline void
footprint_bytes(struct footprint *f, uint64_t n)
{
	f->held += n;
	f->used += n;
}

static inline void
footprint_slab(struct footprint *f, const struct slab *s)
{
	f->held += slab_bytes(s);
	f->used += slab_used_bytes(s);
}

static inline void
footprint_heap(struct footprint *f, const struct heap *h)
{
	f->held += heap_bytes(h);
	f->used += (uint64_t)h->n * sizeof *h->nodes;
}

static inline void
footprint_map(struct footprint *f, const struct map *m)
{
	f->held += map_bytes(m);
	f->used += (uint64_t)map_count(m) * FOOTPRINT_SLOT;
}

#endif
