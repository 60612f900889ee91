/*
 * slab.h - many items of one size, named by 32-bit handles.
 *
 *      handle = chunk number | index in the chunk
 *
 *      chunks:   [0] -> | item | item | item | ... |
 *                [1] -> | item | item | free | ... |     each chunk lists its free items,
 *                [2] -> none: slab_trim gave it back     last freed, first reused
 *
 * A handle is half the size of a pointer and can be checked. An item never changes its
 * address, so a pointer to it is valid until slab_free. Growing adds a chunk and copies
 * nothing. An item has at least 4 bytes: a free one holds the next free handle.
 * One thread at a time.
 */
#ifndef BASE_SLAB_H
#define BASE_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLAB_NONE UINT32_MAX /* no handle; a slab holds fewer items than this */

enum {
	SLAB_CHUNK_BITS = 12, /* of slab_init: 4,096 items a chunk */
	SLAB_FEW_BITS = 4     /* for slab_init_chunked: 16 items a chunk, of things that are few and large */
};

struct slab_chunk {
	char *items;         /* NULL: slab_trim has freed them */
	uint32_t free;       /* the first free item that was used before, or SLAB_NONE */
	uint32_t fresh;      /* items from this index on were never in use */
	uint32_t used;       /* items in use */
	uint32_t prev, next; /* chunks of the same list, or SLAB_NONE */
};

/* A chunk is full and in no list, or in one of these. */
enum slab_list {
	SLAB_PART, /* some items are in use */
	SLAB_IDLE, /* no item is in use */
	SLAB_GONE, /* the chunk has no memory */
	SLAB_LISTS
};

struct slab {
	struct slab_chunk *chunks;
	uint32_t n_chunks;   /* including chunks without memory */
	uint32_t max_chunks; /* room in the array of chunks */
	uint32_t item_size;
	uint32_t chunk_bits;        /* a chunk has 2^chunk_bits items */
	uint32_t lists[SLAB_LISTS]; /* the first chunk of each list, or SLAB_NONE */
	uint32_t n_gone;            /* chunks without memory */
	uint32_t n_idle;            /* chunks without items */
	uint32_t used;              /* items in use */
	uint32_t fresh;             /* handles from this one on were never in use */
};

void slab_init(struct slab *s, size_t item_size);

/* A chunk has 2^chunk_bits items, 1 to 31: few for a slab that stays small, many for fewer
 * chunks. */
void slab_init_chunked(struct slab *s, size_t item_size, unsigned chunk_bits);

void slab_release(struct slab *s);

/* slab_reserve when chunks are missing. */
int slab_grow(struct slab *s, uint32_t n);

/* Items that fit into the chunks. */
static inline uint64_t
slab_capacity(const struct slab *s)
{
	return (uint64_t)(s->n_chunks - s->n_gone) << s->chunk_bits;
}

/* Allocates, so that the next n calls of slab_new succeed. Returns SLU_ENOMEM and changes nothing
 * if memory is out. */
static inline int
slab_reserve(struct slab *s, uint32_t n)
{
	return slab_capacity(s) - s->used >= n ? 0 : slab_grow(s, n);
}

/* Makes the array of chunks large enough for n items. Up to n items, slab_new then changes
 * nothing that slab_at of another thread reads. Returns SLU_ENOMEM if memory is out. */
int slab_reserve_array(struct slab *s, uint32_t n);

/* Returns a zeroed item, or SLAB_NONE if memory is out. */
uint32_t slab_new(struct slab *s);

/* Keeps the memory for reuse until slab_trim or slab_release. Freeing an item twice is a bug that
 * an assert catches (with items under 8 bytes: only for the item that was freed last). */
void slab_free(struct slab *s, uint32_t handle);

/* handle must be in use. This hot path does not check it. */
static inline void *
slab_at(const struct slab *s, uint32_t handle)
{
	const uint32_t mask = (1u << s->chunk_bits) - 1;

	return s->chunks[handle >> s->chunk_bits].items +
	       (size_t)(handle & mask) * s->item_size;
}

/* The same for a slab whose chunks and items have constant sizes: half of the instructions. */
static inline void *
slab_at_sized(const struct slab *s, uint32_t handle, unsigned chunk_bits, size_t item_size)
{
	return s->chunks[handle >> chunk_bits].items + (size_t)(handle & ((1u << chunk_bits) - 1)) * item_size;
}

/* An item of a slab of slab_init. */
#define SLAB_AT(slab, handle, type) ((type *)slab_at_sized((slab), (handle), SLAB_CHUNK_BITS, sizeof(type)))

/* An item of a slab with SLAB_FEW_BITS. */
#define SLAB_AT_FEW(slab, handle, type) ((type *)slab_at_sized((slab), (handle), SLAB_FEW_BITS, sizeof(type)))

/* For a scan of all items: returns whether a handle below `fresh` has memory behind it and was in
 * use at some time. A free item keeps its old content behind its first 8 bytes. */
static inline bool
slab_has(const struct slab *s, uint32_t handle)
{
	const struct slab_chunk *c = &s->chunks[handle >> s->chunk_bits];

	return c->items && (handle & ((1u << s->chunk_bits) - 1)) < c->fresh;
}

/* Frees chunks that have no item in use, but keeps a few and one for every eight in use. Returns
 * the number of bytes freed. Undoes slab_reserve. */
size_t slab_trim(struct slab *s);

static inline size_t
slab_chunk_size(const struct slab *s)
{
	return (size_t)s->item_size << s->chunk_bits;
}

/* Bytes that the slab has allocated. */
static inline size_t
slab_bytes(const struct slab *s)
{
	return (s->n_chunks - s->n_gone) * slab_chunk_size(s) +
	       s->max_chunks * sizeof *s->chunks;
}

/* Bytes of the items in use. */
static inline size_t
slab_used_bytes(const struct slab *s)
{
	return (size_t)s->used * s->item_size;
}

/* Bytes that the next slab_new allocates. */
static inline size_t
slab_growth(const struct slab *s)
{
	return s->used < slab_capacity(s) ? 0 : slab_chunk_size(s);
}

#endif
