/*
 * map.h - a hash table of 32-bit handles.
 *
 * The map stores handles only: 4 bytes a slot, with 3/8 to 3/4 of the slots in use.
 * Two functions of the caller give the hash of an item, and compare an item with a key:
 *
 *         static uint64_t job_hash(const void *slab, uint32_t h);
 *         static bool job_is(const void *slab, uint32_t h, const void *key);
 *
 *         map_init(&m, &slab, job_hash, job_is);
 *         h = map_find(&m, hash_of(id), &id);
 *
 * The map grows by doubling. Each insert or remove carries over a few slots, so that no
 * single call is slow:
 *
 *      old:  | . . . . . . . | h h . h h h |      emptied from the left
 *                             ^ next_move
 *      now:  | h . h . . h . . . h h . . . h . . . . h . . |      inserts go here
 *
 * A look-up tries both tables. map_trim makes the map smaller in the same way.
 *
 * The low bits of a hash choose the slot: use a hash that mixes well and that an
 * outsider cannot predict (hash_keyed). Equal hashes work, slowly. While its handle is
 * in the map, an item stays readable and its hash does not change. One thread at a time.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include "base/cpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAP_NONE UINT32_MAX /* the same as SLAB_NONE */

typedef uint64_t map_hash_fn(const void *items, uint32_t handle);
typedef bool map_is_fn(const void *items, uint32_t handle, const void *key);

struct map_table {
	uint32_t *slots; /* linear probing; ~handle, so that zeroed memory is empty */
	uint32_t mask;   /* number of slots - 1, or 0 without a table */
	uint32_t n;      /* slots in use */
};

struct map {
	struct map_table now;
	struct map_table old; /* is emptied into `now`; without slots if the map does not grow */
	uint32_t next_move;   /* the next slot of `old` to empty */
	const void *items;    /* argument of hash and is */
	map_hash_fn *hash;
	map_is_fn *is;
};

void map_init(struct map *m, const void *items, map_hash_fn *hash, map_is_fn *is);
void map_release(struct map *m);

static inline uint32_t
map_count(const struct map *m)
{
	return m->now.n + m->old.n;
}

/* Returns the handle with this key, or MAP_NONE. */
uint32_t map_find(const struct map *m, uint64_t hash, const void *key);

/* Starts to load the slot of a hash: in a large map it is a cache miss. */
static inline void
map_prefetch(const struct map *m, uint64_t hash)
{
	cpu_prefetch(m->now.slots + ((uint32_t)hash & m->now.mask));
}

/* The handles of a table at which it should grow. */
static inline uint64_t
map_good_load(uint64_t slots)
{
	return slots / 4 * 3;
}

/* Whether n more handles leave the map as large as it is. */
static inline bool
map_has_room(const struct map *m, uint32_t n)
{
	const uint64_t slots = m->now.slots ? (uint64_t)m->now.mask + 1 : 0;

	return (uint64_t)map_count(m) + n <= map_good_load(slots);
}

/* map_reserve when the map has no room. */
int map_grow(struct map *m, uint32_t n);

/* Fills `out` with the first handles, up to max, that a look-up of the hash compares, and returns their number: to load their items
 * into the cache. */
static inline unsigned
map_run(const struct map *m, uint64_t hash, uint32_t *out, unsigned max)
{
	uint32_t i = (uint32_t)hash & m->now.mask;
	unsigned n = 0;

	for (; m->now.slots && n < max && m->now.slots[i]; i = (i + 1) & m->now.mask)
		out[n++] = ~m->now.slots[i];
	return n;
}

/* Allocates, so that the next n inserts succeed. If memory is out, the map fills its slots up to
 * 7/8; beyond that it returns SLU_ENOMEM and changes nothing. */
static inline int
map_reserve(struct map *m, uint32_t n)
{
	return map_has_room(m, n) ? 0 : map_grow(m, n);
}

/* Shrinks the map if less than an eighth of its slots is in use, by up to max slots a call.
 * Returns true if there is more to do. Undoes map_reserve. */
bool map_trim(struct map *m, uint32_t max);

size_t map_bytes(const struct map *m); /* allocated */

/* Bytes that the next insert allocates; of a map without room. */
size_t map_grows_by(const struct map *m);

/* The same of any map. */
static inline size_t
map_growth(const struct map *m)
{
	return map_has_room(m, 1) ? 0 : map_grows_by(m);
}

/* The key must not be in the map. Returns SLU_ENOMEM and changes nothing if memory is out. */
int map_insert(struct map *m, uint64_t hash, uint32_t handle);

/* The handle must be in the map. */
void map_remove(struct map *m, uint64_t hash, uint32_t handle);

#endif
