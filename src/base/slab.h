/*
 * slab.h - many equal things, named by 32-bit handles.
 *
 *      handle = chunk number | index in the chunk
 *
 *      chunks:   [0] -> | item | item | item | ... |
 *                [1] -> | item | item | free | ... |     free items are a list,
 *                                                        last freed, first reused
 *
 * A handle is half the size of a pointer and can be checked; an item never moves,
 * so a pointer to it is good until slab_free. Growing adds a chunk and copies
 * nothing. The smallest item is 4 bytes (a free one holds the next free handle).
 * One thread at a time.
 */
#ifndef BASE_SLAB_H
#define BASE_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLAB_NONE UINT32_MAX /* no handle; a slab holds fewer items than this */

enum {
	SLAB_CHUNK_BITS = 12 /* 4,096 items a chunk, unless told otherwise */
};

struct slab {
	char **chunks;
	uint32_t n_chunks;
	uint32_t max_chunks; /* room in the array of chunks */
	uint32_t item_size;
	uint32_t chunk_bits; /* a chunk has 2^chunk_bits items */
	uint32_t free;       /* first free handle, or SLAB_NONE */
	uint32_t used;       /* items handed out now */
	uint32_t fresh;      /* handles from here on were never handed out */
};

void slab_init(struct slab *s, size_t item_size);

/* With 2^chunk_bits items a chunk, 1 to 31: small ones for a slab that stays small,
 * large ones for fewer chunks. */
void slab_init_chunked(struct slab *s, size_t item_size, unsigned chunk_bits);

void slab_release(struct slab *s);

/* Make sure that the next n calls of slab_new succeed. SLU_ENOMEM changes nothing. */
int slab_reserve(struct slab *s, uint32_t n);

/* A zeroed item, or SLAB_NONE when memory is out. */
uint32_t slab_new(struct slab *s);

/* Memory is kept for reuse until slab_release. Freeing twice is a bug, caught by an
 * assert (of items under 8 bytes only the last freed one is caught). */
void slab_free(struct slab *s, uint32_t handle);

/* handle must be in use; that is not checked here, where everything passes. */
static inline void *
slab_at(const struct slab *s, uint32_t handle)
{
	const uint32_t mask = (1u << s->chunk_bits) - 1;

	return s->chunks[handle >> s->chunk_bits] +
	       (size_t)(handle & mask) * s->item_size;
}

#endif
