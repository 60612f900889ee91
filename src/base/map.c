/*
 * map.c - linear probing without tombstones, growing a few slots at a time.
 *
 *  MAP-1  No slot between the home slot of a handle and the slot that holds it is empty. A
 *         removal closes its gap (close_gap), and growth empties whole runs of slots (move_some).
 *  MAP-2  All of `old` fits into `now` below the highest load, so growing cannot fail once it
 *         has its memory. A smaller table is at most half full when it has all of `old`;
 *         SHRINK_SLOTS a call empty `old` before inserts fill the other half.
 *  MAP-3  A handle is in one of the two tables, once.
 */
#include "base/map.h"

#include "base/mem.h"

#include <sluice/err.h>

#include <assert.h>

enum {
	FIRST_SLOTS = 16,
	/* Slots of `old` that each call empties. Two would be enough: `old` is empty before
	 * inserts fill `now`. */
	MOVE_SLOTS = 4,
	SHRINK_SLOTS = 16,   /* the same while `old` is the larger one */
	SHRINK_LEAST = 1024, /* slots: a smaller table does not shrink */
	SHRINK_PART = 8,     /* shrink if less than 1/8 is in use */
	SHRINK_BY = 4        /* to 1/4 of the slots */
};

static const uint64_t max_slots = 1ull << 31;

void
map_init(struct map *m, const void *items, map_hash_fn *hash, map_is_fn *is)
{
	*m = (struct map){ .items = items, .hash = hash, .is = is };
}

static void
table_release(struct map_table *t)
{
	mem_free(t->slots);
	*t = (struct map_table){ 0 };
}

void
map_release(struct map *m)
{
	table_release(&m->now);
	table_release(&m->old);
	m->next_move = 0;
}

/* The handles of a table at which it must grow: beyond, probing takes too long. */
static uint64_t
highest_load(uint64_t slots)
{
	return slots / 8 * 7;
}

static uint64_t
n_slots(const struct map_table *t)
{
	return t->slots ? (uint64_t)t->mask + 1 : 0;
}

static uint32_t
table_find(const struct map *m, const struct map_table *t, uint64_t hash,
	   const void *key)
{
	uint32_t i = (uint32_t)hash & t->mask;

	if (!t->slots)
		return MAP_NONE;
	for (; t->slots[i]; i = (i + 1) & t->mask)
		if (m->is(m->items, ~t->slots[i], key))
			return ~t->slots[i];
	return MAP_NONE;
}

uint32_t
map_find(const struct map *m, uint64_t hash, const void *key)
{
	const uint32_t handle = table_find(m, &m->now, hash, key);

	return handle == MAP_NONE ? table_find(m, &m->old, hash, key) : handle;
}

static void
table_put(struct map_table *t, uint64_t hash, uint32_t handle)
{
	uint32_t i = (uint32_t)hash & t->mask;

	while (t->slots[i])
		i = (i + 1) & t->mask;
	t->slots[i] = ~handle;
	t->n++;
}

/* Empties some slots of `old`, up to the end of a run of used slots: the rest of a run could not be
 * found (MAP-1). */
static void
move_some(struct map *m, uint64_t slots)
{
	while (m->old.n > 0 && (slots > 0 || m->old.slots[m->next_move])) {
		const uint32_t handle = ~m->old.slots[m->next_move];

		if (handle != MAP_NONE) {
			table_put(&m->now, m->hash(m->items, handle), handle);
			m->old.slots[m->next_move] = 0;
			m->old.n--;
		}
		m->next_move++;
		slots -= slots > 0;
	}
	if (m->old.slots && m->old.n == 0)
		table_release(&m->old);
}

/* The slots of a table for n handles, not fewer than now. */
static uint64_t
slots_for(const struct map *m, uint64_t n)
{
	uint64_t slots = n_slots(&m->now) ? n_slots(&m->now) : FIRST_SLOTS;

	while (map_good_load(slots) < n)
		slots *= 2;
	return slots;
}

static int
resize(struct map *m, uint64_t slots)
{
	uint32_t *fresh;

	if (slots > max_slots)
		return SLU_ENOMEM;
	fresh = mem_array(slots, sizeof *fresh);
	if (!fresh)
		return SLU_ENOMEM;
	move_some(m, n_slots(&m->old)); /* the rest of the growth before */
	m->old = m->now;
	m->now = (struct map_table){ .slots = fresh, .mask = (uint32_t)(slots - 1) };
	m->next_move = 0;
	return 0;
}

int
map_grow(struct map *m, uint32_t n)
{
	const uint64_t want = (uint64_t)map_count(m) + n;
	const uint64_t slots = n_slots(&m->now);

	if (resize(m, slots_for(m, want)) == 0)
		return 0;
	return want <= highest_load(slots) ? 0 : SLU_ENOMEM;
}

static bool
is_shrinking(const struct map *m)
{
	return n_slots(&m->old) > n_slots(&m->now);
}

/* Called with every change of the map. */
static void
move_on(struct map *m)
{
	if (m->old.slots)
		move_some(m, is_shrinking(m) ? SHRINK_SLOTS : MOVE_SLOTS);
}

bool
map_trim(struct map *m, uint32_t max)
{
	const uint64_t slots = n_slots(&m->now);

	if (slots <= SHRINK_LEAST && !m->old.slots)
		return false;
	if (map_count(m) == 0)
		map_release(m);
	else if (!m->old.slots && m->now.n < slots / SHRINK_PART)
		(void)resize(m, slots / SHRINK_BY); /* if memory is out it keeps its size */
	if (is_shrinking(m))
		move_some(m, max);
	return is_shrinking(m);
}

size_t
map_bytes(const struct map *m)
{
	return (size_t)(n_slots(&m->now) + n_slots(&m->old)) * sizeof *m->now.slots;
}

size_t
map_grows_by(const struct map *m)
{
	return (size_t)slots_for(m, (uint64_t)map_count(m) + 1) * sizeof *m->now.slots;
}

int
map_insert(struct map *m, uint64_t hash, uint32_t handle)
{
	const int rc = map_reserve(m, 1);

	if (rc)
		return rc;
	assert(handle != MAP_NONE);
	table_put(&m->now, hash, handle);
	move_on(m);
	return 0;
}

/* Empties the slot `gap`. A handle that follows in the same run and whose home is not behind the gap
 * goes into it, and leaves the next gap. */
static void
close_gap(const struct map *m, struct map_table *t, uint32_t gap)
{
	uint32_t i = (gap + 1) & t->mask;

	for (; t->slots[i]; i = (i + 1) & t->mask) {
		const uint32_t home = (uint32_t)m->hash(m->items, ~t->slots[i]);

		if (((i - home) & t->mask) < ((i - gap) & t->mask))
			continue;
		t->slots[gap] = t->slots[i];
		gap = i;
	}
	t->slots[gap] = 0;
	t->n--;
}

static bool
table_remove(const struct map *m, struct map_table *t, uint64_t hash,
	     uint32_t handle)
{
	uint32_t i = (uint32_t)hash & t->mask;

	if (!t->slots)
		return false;
	while (t->slots[i] && t->slots[i] != ~handle)
		i = (i + 1) & t->mask;
	if (!t->slots[i])
		return false;
	close_gap(m, t, i);
	return true;
}

void
map_remove(struct map *m, uint64_t hash, uint32_t handle)
{
	const bool found = table_remove(m, &m->now, hash, handle) ||
			   table_remove(m, &m->old, hash, handle);

	assert(found);
	move_on(m);
}
