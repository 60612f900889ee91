#include "engine/log/place.h"

#include "base/hash.h"

#include <assert.h>

enum {
	SIZE_BITS = 11,
	TIME_BIT = SIZE_BITS,
	OFFSET_BIT = TIME_BIT + 1,
	OFFSET_BITS = 23,
	SEGMENT_BIT = OFFSET_BIT + OFFSET_BITS,
	SIZE_MAX_SMALL = (1 << SIZE_BITS) - 1,
	TRIM_SLOTS = 16 << 10 /* slots of the map that one call of places_trim handles */
};

_Static_assert((int)SIZE_MAX_SMALL == (int)PLACE_SMALL, "as the header says");

#define SIZE_MASK ((uint64_t)SIZE_MAX_SMALL)

_Static_assert(LOGENGINE_SEGMENT_SIZE_MAX / RECORD_ALIGN == 1 << OFFSET_BITS, "an offset fits");

struct place_row {
	uint64_t where;
	uint32_t size;
	uint32_t length;
	uint32_t file;
};

static uint64_t
row_hash(const void *rows, uint32_t h)
{
	const struct place_row *r = slab_at(rows, h);

	return hash_number(r->where);
}

static bool
row_is(const void *rows, uint32_t h, const void *key)
{
	const struct place_row *r = slab_at(rows, h);

	return r->where == *(const uint64_t *)key;
}

void
places_init(struct places *p)
{
	*p = (struct places){ 0 };
	slab_init(&p->rows, sizeof(struct place_row));
	map_init(&p->map, &p->rows, row_hash, row_is);
}

void
places_release(struct places *p)
{
	map_release(&p->map);
	slab_release(&p->rows);
}

int
places_reserve(struct places *p)
{
	const int rc = slab_reserve(&p->rows, 1);

	return rc ? rc : map_reserve(&p->map, 1);
}

size_t
places_growth(const struct places *p)
{
	return slab_growth(&p->rows) + map_growth(&p->map);
}

bool
places_trim(struct places *p)
{
	(void)slab_trim(&p->rows);
	return map_trim(&p->map, TRIM_SLOTS);
}

static uint64_t
pack(struct wal_where at, bool has_time, uint32_t size)
{
	const uint64_t segment = at.segment % LOGENGINE_SEGMENTS_MAX;

	assert(at.offset < LOGENGINE_SEGMENT_SIZE_MAX && at.offset % RECORD_ALIGN == 0);
	return segment << SEGMENT_BIT |
	       (uint64_t)(at.offset / RECORD_ALIGN) << OFFSET_BIT |
	       (uint64_t)has_time << TIME_BIT | size;
}

static void
add_row(struct places *p, const struct place_row *row)
{
	const uint32_t h = slab_new(&p->rows);
	int rc;

	assert(h != SLAB_NONE); /* reserved, as is the next */
	*(struct place_row *)slab_at(&p->rows, h) = *row;
	rc = map_insert(&p->map, hash_number(row->where), h);
	assert(rc == 0);
	(void)rc;
}

uint64_t
places_add(struct places *p, const struct place *place, uint64_t body)
{
	const bool has_time = place->at.length == record_size(body, true);
	const bool is_small = place->size == body && body <= SIZE_MAX_SMALL &&
			      place->file == SLAB_NONE;
	const uint64_t where = pack(place->at, has_time, is_small ? place->size : 0);

	assert(place->size > 0 && place->size <= body);
	places_see(p, place->at.segment);
	if (!is_small)
		add_row(p, &(struct place_row){ where, place->size, place->at.length, place->file });
	return where;
}

static uint32_t
find_row(const struct places *p, uint64_t where)
{
	const uint32_t h = map_find(&p->map, hash_number(where), &where);

	assert(h != MAP_NONE); /* PLACE-2 */
	return h;
}

void
places_drop(struct places *p, uint64_t where)
{
	uint32_t h;

	if (where & SIZE_MASK)
		return;
	h = find_row(p, where);
	map_remove(&p->map, hash_number(where), h);
	slab_free(&p->rows, h);
}

/* PLACE-1 */
static uint32_t
segment_of(const struct places *p, uint64_t where)
{
	const uint32_t low = (uint32_t)(where >> SEGMENT_BIT);

	return p->newest - ((p->newest - low) & (LOGENGINE_SEGMENTS_MAX - 1));
}

static uint32_t
offset_of(uint64_t where)
{
	return (uint32_t)(where >> OFFSET_BIT & ((1u << OFFSET_BITS) - 1)) * RECORD_ALIGN;
}

void
places_get(const struct places *p, uint64_t where, struct place *out)
{
	out->at.segment = segment_of(p, where);
	out->at.offset = offset_of(where);
	out->file = SLAB_NONE;
	out->size = (uint32_t)(where & SIZE_MASK);
	if (out->size) {
		out->at.length = (uint32_t)record_size(out->size, where >> TIME_BIT & 1);
		return;
	}

	const struct place_row *r = slab_at(&p->rows, find_row(p, where));

	out->size = r->size;
	out->at.length = r->length;
	out->file = r->file;
}

bool
places_is(const struct places *p, uint64_t where, struct wal_where at)
{
	return where && segment_of(p, where) == at.segment && offset_of(where) == at.offset;
}
