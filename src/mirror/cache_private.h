/*
 * cache_private.h - what cache.c and cache_mend.c share.
 */
#ifndef MIRROR_CACHE_PRIVATE_H
#define MIRROR_CACHE_PRIVATE_H

#include "mirror/cache.h"

/* Adds a segment that begins in group `first`. Segments with this or a higher number, which
 * no group of the line has written, are forgotten. Returns SLU_ENOMEM. */
int cache_begin_segment(struct cache *c, uint32_t number, uint64_t first);

/* Closes the segment that was written last. */
void cache_close_segment(struct cache *c);

#endif
