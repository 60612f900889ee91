/*
 * map.h - from a 64-bit hash to a 32-bit handle.
 *
 * The map stores handles only: 4 bytes a slot, with 3/8 to 3/4 of the slots in use.
 * Whether a handle is the one looked for, and what its hash is, the owner of the
 * items says:
 *
 *         static uint64_t job_hash(const void *slab, uint32_t h);
 *         static bool job_is(const void *slab, uint32_t h, const void *key);
 *
 *         map_init(&m, &slab, job_hash, job_is);
 *         h = map_find(&m, hash_of(id), &id);
 *
 * It grows by doubling, a few slots with each insert or remove and never all at
 * once, so that no single call is slow:
 *
 *      old:  | . . . . . . . | h h . h h h |      emptied from the left
 *                             ^ next_move
 *      now:  | h . h . . h . . . h h . . . h . . . . h . . |      inserts go here
 *
 * and a look-up tries both. map_trim makes it smaller in the same way. The low bits of a hash choose the
 * slot: give it one that mixes well and that an outsider cannot steer (equal hashes
 * work, slowly). An item's hash must not change, and the item must stay readable,
 * while its handle is in the map. One thread at a time.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAP_NONE UINT32_MAX /* the same as SLAB_NONE */

typedef uint64_t map_hash_fn(const void *items, uint32_t handle);
typedef bool map_is_fn(const void *items, uint32_t handle, const void *key);

struct map_table {
	uint32_t *slots; /* linear probing; ~handle, so that zeroed memory is empty */
	uint32_t mask;   /* number of slots - 1, or 0 when there is no table */
	uint32_t n;      /* slots in use */
};

struct map {
	struct map_table now;
	struct map_table old; /* being emptied into `now`, or none */
	uint32_t next_move;   /* slot of `old` to look at next */
	const void *items;
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

/* The handle with this key, or MAP_NONE. */
uint32_t map_find(const struct map *m, uint64_t hash, const void *key);

/* Make sure that the next n inserts succeed. SLU_ENOMEM changes nothing. When there
 * is no memory to grow, the slots are used up to 7/8 before it says so. */
int map_reserve(struct map *m, uint32_t n);

/* Begin to shrink if less than an eighth of the slots is in use, or go on with it: look at up to
 * max slots. True: there are more. Undoes map_reserve. */
bool map_trim(struct map *m, uint32_t max);

/* How many bytes the map has allocated, and how many more one insert takes. */
size_t map_bytes(const struct map *m);
size_t map_growth(const struct map *m);

/* The key must not be in the map yet. 0, or SLU_ENOMEM and nothing has changed. */
int map_insert(struct map *m, uint64_t hash, uint32_t handle);

/* Take this handle out; it must be in. */
void map_remove(struct map *m, uint64_t hash, uint32_t handle);

#endif
