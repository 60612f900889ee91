/*
 * slab.h - many equal things, named by 32-bit handles.
 *
 *      handle = chunk number | index in the chunk
 *
 *      chunks:   [0] -> | item | item | item | ... |
 *                [1] -> | item | item | free | ... |     each chunk lists its free items,
 *                [2] -> none: slab_trim gave it back     last freed, first reused
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

struct slab_chunk {
	char *items;         /* NULL: slab_trim has freed them */
	uint32_t free;       /* the first free item that was used before, or SLAB_NONE */
	uint32_t fresh;      /* items from this index on were not handed out since it was made */
	uint32_t used;       /* items handed out now */
	uint32_t prev, next; /* chunks of the same list, or SLAB_NONE */
};

/* A chunk is full and in no list, or in one of these. */
enum slab_list {
	SLAB_PART, /* some items are in use */
	SLAB_IDLE, /* none is */
	SLAB_GONE, /* it has no memory */
	SLAB_LISTS
};

struct slab {
	struct slab_chunk *chunks;
	uint32_t n_chunks;   /* with those that have no memory */
	uint32_t max_chunks; /* room in the array of chunks */
	uint32_t item_size;
	uint32_t chunk_bits;        /* a chunk has 2^chunk_bits items */
	uint32_t lists[SLAB_LISTS]; /* the first chunk of each list, or SLAB_NONE */
	uint32_t n_gone;            /* chunks without memory */
	uint32_t n_idle;            /* chunks without items */
	uint32_t used;              /* items handed out now */
	uint32_t fresh;             /* handles from here on were never handed out */
};

void slab_init(struct slab *s, size_t item_size);

/* With 2^chunk_bits items a chunk, 1 to 31: small ones for a slab that stays small,
 * large ones for fewer chunks. */
void slab_init_chunked(struct slab *s, size_t item_size, unsigned chunk_bits);

void slab_release(struct slab *s);

/* Make sure that the next n calls of slab_new succeed. SLU_ENOMEM changes nothing. */
int slab_reserve(struct slab *s, uint32_t n);

/* Make the array of chunks large enough for n items: up to so many, slab_new moves nothing that
 * slab_at of another thread looks at. SLU_ENOMEM. */
int slab_reserve_array(struct slab *s, uint32_t n);

/* A zeroed item, or SLAB_NONE when memory is out. */
uint32_t slab_new(struct slab *s);

/* Memory is kept for reuse until slab_trim or slab_release. Freeing twice is a bug, caught by an
 * assert (of items under 8 bytes only the last freed one is caught). */
void slab_free(struct slab *s, uint32_t handle);

/* handle must be in use; that is not checked here, where everything passes. */
static inline void *
slab_at(const struct slab *s, uint32_t handle)
{
	const uint32_t mask = (1u << s->chunk_bits) - 1;

	return s->chunks[handle >> s->chunk_bits].items +
	       (size_t)(handle & mask) * s->item_size;
}

/* Is there memory behind a handle below `fresh`, which was handed out at some time? For a
 * scan of all items; what a free item holds behind its first 8 bytes is what it held last. */
static inline bool
slab_has(const struct slab *s, uint32_t handle)
{
	const struct slab_chunk *c = &s->chunks[handle >> s->chunk_bits];

	return c->items && (handle & ((1u << s->chunk_bits) - 1)) < c->fresh;
}

/* Free chunks without items, but for as many as the slab may need again soon: a few, and one
 * for every eight in use. Returns the bytes that were freed. Undoes slab_reserve. */
size_t slab_trim(struct slab *s);

static inline size_t
slab_chunk_size(const struct slab *s)
{
	return (size_t)s->item_size << s->chunk_bits;
}

/* How many bytes the slab has allocated; how many its items take; and how many it will
 * allocate for one item more. */
static inline size_t
slab_bytes(const struct slab *s)
{
	return (s->n_chunks - s->n_gone) * slab_chunk_size(s) +
	       s->max_chunks * sizeof *s->chunks;
}

static inline size_t
slab_used_bytes(const struct slab *s)
{
	return (size_t)s->used * s->item_size;
}

static inline size_t
slab_growth(const struct slab *s)
{
	return s->used < (uint64_t)(s->n_chunks - s->n_gone) << s->chunk_bits ? 0 : slab_chunk_size(s);
}

#endif
