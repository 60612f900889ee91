/*
 * map.c - open addressing with linear probing. Removal shifts what follows back, so
 * there are no tombstones and a look-up ends at the first empty slot. A slot holds
 * handle + 1, so that a fresh table is all zeros and the kernel gives it page by page.
 *
 * Growing: `old` is emptied into `now`, a few slots with every insert and remove. To
 * empty a slot in the middle of a run of filled ones would hide the rest of the run
 * from a look-up; so emptying begins behind an empty slot and gives up whole runs.
 */
#include "base/map.h"

#include "base/mem.h"

#include <sluice/err.h>

#include <assert.h>

enum {
	FIRST_SLOTS = 16,
	MOVES = 4, /* slots of `old` given up with a call, at least */
	EMPTY = 0
};

void
map_init(struct map *m, const void *items, map_hash_fn *hash, map_is_fn *is)
{
	*m = (struct map){ .items = items, .hash = hash, .is = is };
}

void
map_release(struct map *m)
{
	mem_free(m->now.slots);
	mem_free(m->old.slots);
	map_init(m, m->items, m->hash, m->is);
}

static uint32_t
find_in(const struct map *m, const struct map_table *t, uint64_t hash, const void *key)
{
	if (t->n == 0)
		return MAP_NONE;
	for (uint32_t i = (uint32_t)hash & t->mask; t->slots[i] != EMPTY;
	     i = (i + 1) & t->mask)
		if (m->is(m->items, t->slots[i] - 1, key))
			return t->slots[i] - 1;
	return MAP_NONE;
}

uint32_t
map_find(const struct map *m, uint64_t hash, const void *key)
{
	const uint32_t handle = find_in(m, &m->now, hash, key);

	return handle == MAP_NONE ? find_in(m, &m->old, hash, key) : handle;
}

static void
put_in(struct map_table *t, uint64_t hash, uint32_t handle)
{
	uint32_t i = (uint32_t)hash & t->mask;

	while (t->slots[i] != EMPTY)
		i = (i + 1) & t->mask;
	t->slots[i] = handle + 1;
	t->n++;
}

/* --- growing ------------------------------------------------------------------ */

static void
drop_old(struct map *m)
{
	mem_free(m->old.slots);
	m->old = (struct map_table){ 0 };
}

/* Give up at least `moves` slots of `old`, and whole runs. */
static void
move_some(struct map *m, uint64_t moves)
{
	struct map_table *old = &m->old;

	while (old->n && (moves > 0 || old->slots[m->next_move] != EMPTY)) {
		const uint32_t filled = old->slots[m->next_move];

		if (filled != EMPTY) {
			put_in(&m->now, m->hash(m->items, filled - 1), filled - 1);
			old->slots[m->next_move] = EMPTY;
			old->n--;
		}
		m->next_move = (m->next_move + 1) & old->mask;
		moves -= moves > 0;
	}
	if (old->slots && old->n == 0)
		drop_old(m);
}

static uint32_t
first_empty(const struct map_table *t)
{
	uint32_t i = 0;

	while (t->slots[i] != EMPTY)
		i++;
	return i;
}

/* Up to 7/8 of the slots are filled: beyond that, runs grow long. */
static uint64_t
room_of(uint64_t slots)
{
	return slots / 8 * 7;
}

static uint64_t
slots_of(const struct map_table *t)
{
	return t->slots ? (uint64_t)t->mask + 1 : 0;
}

/* A new `now` for at least n entries; what there is moves over in time. */
static int
grow(struct map *m, uint64_t n)
{
	uint64_t slots = FIRST_SLOTS;
	struct map_table bigger = { 0 };

	while (room_of(slots) < n)
		slots *= 2;
	if (slots > (uint64_t)1 << 32)
		return SLU_ENOMEM;
	bigger.slots = mem_array(slots, sizeof *bigger.slots);
	if (!bigger.slots)
		return SLU_ENOMEM;
	bigger.mask = (uint32_t)(slots - 1);
	move_some(m, UINT64_MAX); /* done long ago, unless the map was reserved for */
	m->old = m->now;
	m->now = bigger;
	if (m->old.n == 0)
		drop_old(m);
	else
		m->next_move = first_empty(&m->old);
	return 0;
}

int
map_reserve(struct map *m, uint32_t n)
{
	const uint64_t want = (uint64_t)map_count(m) + n;

	return want > room_of(slots_of(&m->now)) ? grow(m, want) : 0;
}

/* --- insert and remove ----------------------------------------------------------- */

int
map_insert(struct map *m, uint64_t hash, uint32_t handle)
{
	const uint64_t slots = slots_of(&m->now);

	/* Without memory to grow a map goes on, slower, up to 15/16. */
	if (map_reserve(m, 1) && map_count(m) + 1 > slots / 16 * 15)
		return SLU_ENOMEM;
	put_in(&m->now, hash, handle);
	move_some(m, MOVES);
	return 0;
}

static bool
find_slot(const struct map_table *t, uint64_t hash, uint32_t handle, uint32_t *slot)
{
	uint32_t i = (uint32_t)hash & t->mask;

	if (t->n == 0)
		return false;
	while (t->slots[i] != EMPTY && t->slots[i] != handle + 1)
		i = (i + 1) & t->mask;
	*slot = i;
	return t->slots[i] != EMPTY;
}

/* Fill the hole from behind: whatever may stand there without being hidden from its
 * own place moves back, and leaves the next hole. */
static void
empty_slot(const struct map *m, struct map_table *t, uint32_t hole)
{
	uint32_t i = hole;

	for (;;) {
		uint32_t home;

		i = (i + 1) & t->mask;
		if (t->slots[i] == EMPTY)
			break;
		home = (uint32_t)m->hash(m->items, t->slots[i] - 1) & t->mask;
		if (((i - home) & t->mask) < ((i - hole) & t->mask))
			continue;
		t->slots[hole] = t->slots[i];
		hole = i;
	}
	t->slots[hole] = EMPTY;
	t->n--;
}

void
map_remove(struct map *m, uint64_t hash, uint32_t handle)
{
	uint32_t slot;

	if (find_slot(&m->now, hash, handle, &slot)) {
		empty_slot(m, &m->now, slot);
	} else {
		const bool found = find_slot(&m->old, hash, handle, &slot);

		assert(found);
		(void)found;
		empty_slot(m, &m->old, slot);
	}
	move_some(m, MOVES);
}
