#include "base/slab.h"

#include "base/mem.h"

#include <sluice/err.h>

#include <assert.h>
#include <string.h>

enum {
	CHUNK_ALIGN = 64, /* items of 64 bytes never straddle a cache line */
	FIRST_CHUNKS = 8
};

/* What a free item holds. The mark only fits when the item has 8 bytes. */
struct free_item {
	uint32_t next;
	uint32_t mark;
};

static const uint32_t free_mark = 0xf4eef4eeu;

void
slab_init_chunked(struct slab *s, size_t item_size, unsigned chunk_bits)
{
	assert(item_size >= sizeof(uint32_t) && item_size <= UINT32_MAX);
	assert(chunk_bits > 0 && chunk_bits < 32);
	*s = (struct slab){
		.item_size = (uint32_t)item_size,
		.chunk_bits = chunk_bits,
		.free = SLAB_NONE,
	};
}

void
slab_init(struct slab *s, size_t item_size)
{
	slab_init_chunked(s, item_size, SLAB_CHUNK_BITS);
}

void
slab_release(struct slab *s)
{
	for (uint32_t i = 0; i < s->n_chunks; i++)
		mem_free(s->chunks[i]);
	mem_free(s->chunks);
	*s = (struct slab){
		.item_size = s->item_size,
		.chunk_bits = s->chunk_bits,
		.free = SLAB_NONE,
	};
}

static uint32_t
capacity(const struct slab *s)
{
	return s->n_chunks << s->chunk_bits;
}

/* One chunk less than 32 bits can name, so SLAB_NONE is no item. */
static uint32_t
most_chunks(const struct slab *s)
{
	return (1u << (32 - s->chunk_bits)) - 1;
}

static int
add_chunk(struct slab *s)
{
	if (s->n_chunks == most_chunks(s))
		return SLU_ENOMEM;
	if (s->n_chunks == s->max_chunks) {
		const uint32_t max = s->max_chunks ? 2 * s->max_chunks : FIRST_CHUNKS;
		char **chunks = mem_realloc(s->chunks, max * sizeof *chunks);

		if (!chunks)
			return SLU_ENOMEM;
		s->chunks = chunks;
		s->max_chunks = max;
	}

	char *chunk = mem_aligned(CHUNK_ALIGN, (size_t)s->item_size << s->chunk_bits);

	if (!chunk)
		return SLU_ENOMEM;
	s->chunks[s->n_chunks++] = chunk;
	return 0;
}

int
slab_reserve(struct slab *s, uint32_t n)
{
	const uint64_t most = (uint64_t)most_chunks(s) << s->chunk_bits;
	const uint32_t before = s->n_chunks;
	int rc = 0;

	if (capacity(s) - s->used >= n)
		return 0;
	if (n > most - s->used)
		return SLU_ENOMEM;
	while (!rc && capacity(s) - s->used < n)
		rc = add_chunk(s);
	while (rc && s->n_chunks > before)
		mem_free(s->chunks[--s->n_chunks]);
	return rc;
}

/* Items may be of any type and alignment, so links go in and out by memcpy. */
static size_t
link_size(const struct slab *s)
{
	return s->item_size < sizeof(struct free_item) ? sizeof(uint32_t)
						       : sizeof(struct free_item);
}

static struct free_item
read_link(const struct slab *s, uint32_t handle)
{
	struct free_item link = { .mark = 0 };

	memcpy(&link, slab_at(s, handle), link_size(s));
	return link;
}

uint32_t
slab_new(struct slab *s)
{
	uint32_t handle = s->free;

	if (slab_reserve(s, 1))
		return SLAB_NONE;
	if (handle == SLAB_NONE)
		handle = s->fresh++;
	else
		s->free = read_link(s, handle).next;
	s->used++;
	memset(slab_at(s, handle), 0, s->item_size);
	return handle;
}

/* The mark makes this cheap; an item in use may hold the same bytes by chance,
 * so only the list itself is proof. */
static bool
is_free(const struct slab *s, uint32_t handle)
{
	uint32_t at = s->free;

	if (at == handle)
		return true;
	if (read_link(s, handle).mark != free_mark)
		return false;
	while (at != SLAB_NONE && at != handle)
		at = read_link(s, at).next;
	return at == handle;
}

void
slab_free(struct slab *s, uint32_t handle)
{
	const struct free_item link = { .next = s->free, .mark = free_mark };

	assert(handle < s->fresh);
	assert(!is_free(s, handle));
	memcpy(slab_at(s, handle), &link, link_size(s));
	s->free = handle;
	s->used--;
}
