#include "base/slab.h"

#include "base/mem.h"

#include <sluice/err.h>

#include <assert.h>
#include <string.h>

enum {
	CHUNK_ALIGN = 64, /* an item of 64 bytes is one cache line */
	FIRST_CHUNKS = 8,
	KEEP_IDLE = 2, /* idle chunks that slab_trim keeps */
	KEEP_PART = 8  /* it keeps one more for every 8 in use */
};

/* The content of a free item. The mark fits only into items of 8 bytes or more. */
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
		.lists = { SLAB_NONE, SLAB_NONE, SLAB_NONE },
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
		mem_free(s->chunks[i].items);
	mem_free(s->chunks);
	*s = (struct slab){
		.item_size = s->item_size,
		.chunk_bits = s->chunk_bits,
		.lists = { SLAB_NONE, SLAB_NONE, SLAB_NONE },
	};
}

/* ---- Chunks ---- */

static uint32_t
chunk_items(const struct slab *s)
{
	return 1u << s->chunk_bits;
}

/* One chunk less than 32 bits can name, so that SLAB_NONE is never an item. */
static uint32_t
most_chunks(const struct slab *s)
{
	return (1u << (32 - s->chunk_bits)) - 1;
}

/* The `prev` of the first chunk of a list is the last one. A chunk changes its list rarely, so these
 * functions are not inlined into slab_new and slab_free. */
static void __attribute__((noinline))
list_in(struct slab *s, enum slab_list list, uint32_t i)
{
	struct slab_chunk *c = &s->chunks[i];
	const uint32_t first = s->lists[list];

	c->next = first;
	c->prev = first == SLAB_NONE ? i : s->chunks[first].prev;
	if (first != SLAB_NONE)
		s->chunks[first].prev = i;
	s->lists[list] = i;
}

static void
list_in_last(struct slab *s, enum slab_list list, uint32_t i)
{
	const uint32_t first = s->lists[list];
	uint32_t last;

	if (first == SLAB_NONE) {
		list_in(s, list, i);
		return;
	}
	last = s->chunks[first].prev;
	s->chunks[last].next = i;
	s->chunks[i].prev = last;
	s->chunks[i].next = SLAB_NONE;
	s->chunks[first].prev = i;
}

static void __attribute__((noinline))
list_out(struct slab *s, enum slab_list list, uint32_t i)
{
	const struct slab_chunk *c = &s->chunks[i];
	const uint32_t first = s->lists[list];

	if (c->next != SLAB_NONE)
		s->chunks[c->next].prev = c->prev;
	else
		s->chunks[first].prev = c->prev;
	if (i == first)
		s->lists[list] = c->next;
	else
		s->chunks[c->prev].next = c->next;
}

static uint32_t
last_of(const struct slab *s, enum slab_list list)
{
	return s->chunks[s->lists[list]].prev;
}

static int
resize_array(struct slab *s, uint32_t max)
{
	struct slab_chunk *const chunks = mem_realloc(s->chunks, max * sizeof *chunks);

	if (!chunks)
		return SLU_ENOMEM;
	s->chunks = chunks;
	s->max_chunks = max;
	return 0;
}

static int
grow_array(struct slab *s)
{
	if (s->n_chunks == most_chunks(s))
		return SLU_ENOMEM;
	if (s->n_chunks < s->max_chunks)
		return 0;
	return resize_array(s, s->max_chunks ? 2 * s->max_chunks : FIRST_CHUNKS);
}

int
slab_reserve_array(struct slab *s, uint32_t n)
{
	const uint32_t max = (n >> s->chunk_bits) + 1;

	return max <= s->max_chunks ? 0 : resize_array(s, max);
}

static int
add_chunk(struct slab *s)
{
	const uint32_t gone = s->lists[SLAB_GONE];
	const uint32_t i = gone == SLAB_NONE ? s->n_chunks : gone;
	char *items;
	int rc;

	rc = gone == SLAB_NONE ? grow_array(s) : 0;
	if (rc)
		return rc;
	items = mem_aligned(CHUNK_ALIGN, slab_chunk_size(s));
	if (!items)
		return SLU_ENOMEM;
	if (gone == SLAB_NONE) {
		s->n_chunks++;
	} else {
		list_out(s, SLAB_GONE, i);
		s->n_gone--;
	}
	s->chunks[i] = (struct slab_chunk){ .items = items, .free = SLAB_NONE };
	list_in_last(s, SLAB_IDLE, i); /* so that handles rise */
	s->n_idle++;
	return 0;
}

/* Frees the memory of an idle chunk. The last chunk also loses its number, unless its handles were in
 * use once: scans still visit those. */
static void
drop_chunk(struct slab *s, uint32_t i)
{
	struct slab_chunk *c = &s->chunks[i];

	list_out(s, SLAB_IDLE, i);
	s->n_idle--;
	mem_free(c->items);
	c->items = NULL;
	if (i + 1 == s->n_chunks && (uint64_t)i << s->chunk_bits >= s->fresh) {
		s->n_chunks--;
		return;
	}
	list_in(s, SLAB_GONE, i);
	s->n_gone++;
}

int
slab_grow(struct slab *s, uint32_t n)
{
	const uint64_t most = (uint64_t)most_chunks(s) << s->chunk_bits;
	uint32_t added = 0;
	int rc = 0;

	if (n > most - s->used)
		return SLU_ENOMEM;
	while (!rc && slab_capacity(s) - s->used < n) {
		rc = add_chunk(s);
		added += !rc;
	}
	while (rc && added-- > 0)
		drop_chunk(s, last_of(s, SLAB_IDLE));
	return rc;
}

size_t
slab_trim(struct slab *s)
{
	const uint32_t in_use = s->n_chunks - s->n_gone - s->n_idle;
	const uint32_t keep = KEEP_IDLE + in_use / KEEP_PART;
	size_t freed = 0;

	while (s->n_idle > keep) {
		drop_chunk(s, last_of(s, SLAB_IDLE));
		freed += slab_chunk_size(s);
	}
	return freed;
}

/* ---- Items ---- */

/* Items may have any type and alignment, so links are copied by memcpy of a constant size. */
static bool
has_mark(const struct slab *s)
{
	return s->item_size >= sizeof(struct free_item);
}

static inline struct free_item
read_link(const struct slab *s, uint32_t handle)
{
	struct free_item link = { .mark = 0 };

	if (has_mark(s))
		memcpy(&link, slab_at(s, handle), sizeof link);
	else
		memcpy(&link.next, slab_at(s, handle), sizeof link.next);
	return link;
}

static inline void
write_link(const struct slab *s, uint32_t handle, struct free_item link)
{
	if (has_mark(s))
		memcpy(slab_at(s, handle), &link, sizeof link);
	else
		memcpy(slab_at(s, handle), &link.next, sizeof link.next);
}

/* Returns a chunk with a free item, or SLAB_NONE if memory is out. */
static uint32_t
chunk_with_room(struct slab *s)
{
	uint32_t i = s->lists[SLAB_PART];

	if (i != SLAB_NONE)
		return i;
	if (slab_reserve(s, 1))
		return SLAB_NONE;
	i = s->lists[SLAB_IDLE];
	list_out(s, SLAB_IDLE, i);
	s->n_idle--;
	list_in(s, SLAB_PART, i);
	return i;
}

static uint32_t
take_item(struct slab *s, uint32_t i)
{
	struct slab_chunk *c = &s->chunks[i];
	uint32_t handle = c->free;

	if (handle == SLAB_NONE)
		handle = (i << s->chunk_bits) + c->fresh++;
	else
		c->free = read_link(s, handle).next;
	if (handle >= s->fresh)
		s->fresh = handle + 1;
	if (++c->used == chunk_items(s))
		list_out(s, SLAB_PART, i);
	return handle;
}

uint32_t
slab_new(struct slab *s)
{
	const uint32_t i = chunk_with_room(s);
	uint32_t handle;

	if (i == SLAB_NONE)
		return SLAB_NONE;
	handle = take_item(s, i);
	s->used++;
	memset(slab_at(s, handle), 0, s->item_size);
	return handle;
}

/* The mark makes this check cheap; an item in use may hold the same bytes by chance, so the list of
 * free items decides. */
static bool
is_free(const struct slab *s, const struct slab_chunk *c, uint32_t handle)
{
	uint32_t at = c->free;

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
	const uint32_t i = handle >> s->chunk_bits;
	struct slab_chunk *c = &s->chunks[i];

	assert(handle < s->fresh && c->items);
	assert(!is_free(s, c, handle));
	write_link(s, handle, (struct free_item){ .next = c->free, .mark = free_mark });
	c->free = handle;
	s->used--;
	if (c->used-- == chunk_items(s))
		list_in(s, SLAB_PART, i);
	if (c->used > 0)
		return;
	list_out(s, SLAB_PART, i);
	list_in(s, SLAB_IDLE, i);
	s->n_idle++;
}
