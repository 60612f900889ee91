#include "test.h"

#include "base/map.h"
#include "base/mem.h"

#include <sluice/err.h>

#include <stdlib.h>

enum {
	MILLION = 1000000
};

/* The items are plain numbers: handle h has the key keys[h]. */
static uint64_t *keys;
static unsigned long hashed; /* how often the map asked for a hash */

static uint64_t
mixed(uint64_t key)
{
	return test_random(&key);
}

static uint64_t
all_zero(uint64_t key)
{
	(void)key;
	return 0;
}

/* The last slot of every table, so that runs go round the end. */
static uint64_t
all_last(uint64_t key)
{
	(void)key;
	return UINT64_MAX;
}

static uint64_t
three_near_the_end(uint64_t key)
{
	return UINT64_MAX - key % 3;
}

/* Long runs with gaps between them: the map is seen growing between two of them. */
static uint64_t
in_bunches(uint64_t key)
{
	return mixed(key % 13);
}

static uint64_t
in_sequence(uint64_t key)
{
	return key;
}

typedef uint64_t hash_fn(uint64_t key);

static hash_fn *hash_of = mixed;

static const struct {
	const char *label;
	hash_fn *fn;
	bool crowded; /* one long run, so keep it short */
} hashes[] = {
	{ "mixed", mixed, false },
	{ "all in the first slot", all_zero, true },
	{ "all in the last slot", all_last, true },
	{ "three slots at the end", three_near_the_end, true },
	{ "in bunches", in_bunches, true },
	{ "in sequence", in_sequence, false },
};

static uint64_t
item_hash(const void *items, uint32_t handle)
{
	const uint64_t *k = items;

	hashed++;
	return hash_of(k[handle]);
}

static bool
item_is(const void *items, uint32_t handle, const void *key)
{
	const uint64_t *k = items;

	return k[handle] == *(const uint64_t *)key;
}

static struct map m;

static void
teardown(void)
{
	map_release(&m);
	free(keys);
	keys = NULL;
}

FIXTURE(NULL, teardown);

/* Replaces the map that was there. */
static void
setup(uint32_t n)
{
	teardown();
	keys = calloc(n, sizeof *keys);
	CHECK(keys != NULL);
	for (uint32_t h = 0; h < n; h++)
		keys[h] = 1000 + h;
	map_init(&m, keys, item_hash, item_is);
}

static uint32_t
find(uint64_t key)
{
	return map_find(&m, hash_of(key), &key);
}

static int
insert(uint32_t handle)
{
	return map_insert(&m, hash_of(keys[handle]), handle);
}

static void
take_out(uint32_t handle)
{
	map_remove(&m, hash_of(keys[handle]), handle);
}

/* MAP-1 and the count: from its home to its slot nothing is empty. */
static void
check_table(const struct map_table *t)
{
	uint32_t n = 0;

	for (uint64_t i = 0; t->slots && i <= t->mask; i++) {
		if (!t->slots[i])
			continue;
		n++;
		for (uint32_t at = (uint32_t)hash_of(keys[~t->slots[i]]) & t->mask;
		     at != i; at = (at + 1) & t->mask)
			CHECK(t->slots[at]);
	}
	CHECK_EQ(n, t->n);
}

static void
check_whole(void)
{
	check_table(&m.now);
	check_table(&m.old);
}

TEST(what_was_inserted_is_found_until_it_is_removed)
{
	setup(3);
	CHECK_EQ(MAP_NONE, find(1000), "in a map that never had a table");
	CHECK_EQ(0, insert(0));
	CHECK_EQ(0, insert(1));
	CHECK_EQ(0, find(1000));
	CHECK_EQ(1, find(1001));
	CHECK_EQ(MAP_NONE, find(1002));
	CHECK_EQ(2, map_count(&m));
	take_out(0);
	CHECK_EQ(MAP_NONE, find(1000));
	CHECK_EQ(1, find(1001));
	CHECK_EQ(1, map_count(&m));
}

TEST(a_run_has_what_a_look_up_compares)
{
	uint32_t found[4];

	setup(6);
	hash_of = mixed;
	CHECK_EQ(0, map_run(&m, mixed(1000), found, 4), "in a map that never had a table");
	hash_of = all_last;
	for (uint32_t h = 0; h < 6; h++) {
		CHECK_EQ(0, insert(h));
		CHECK_EQ(h < 4 ? h + 1 : 4, map_run(&m, all_last(0), found, 4));
	}
	for (uint32_t i = 0; i < 4; i++)
		CHECK(found[i] < 6);
	hash_of = mixed;
}

static uint64_t
handle_hash(const void *items, uint32_t handle)
{
	(void)items;
	return handle;
}

static bool
handle_is(const void *items, uint32_t handle, const void *key)
{
	(void)items;
	return handle == *(const uint32_t *)key;
}

TEST(the_lowest_and_the_highest_handle_can_be_kept)
{
	static const uint32_t ends[] = { 0, MAP_NONE - 1 };

	map_init(&m, NULL, handle_hash, handle_is);
	EACH(i, ends)
		CHECK_EQ(0, map_insert(&m, ends[i], ends[i]));
	EACH(i, ends)
		CHECK_EQ(ends[i], map_find(&m, ends[i], &ends[i]));
	EACH(i, ends)
		map_remove(&m, ends[i], ends[i]);
	CHECK_EQ(0, map_count(&m));
	map_release(&m);
}

TEST(any_hash_will_do_also_one_that_is_always_the_same)
{
	enum {
		N = 500
	};

	EACH(c, hashes) {
		hash_of = hashes[c].fn;
		setup(N);
		for (uint32_t h = 0; h < N; h++)
			CHECK_EQ(0, insert(h));
		for (uint32_t h = 0; h < N; h += 2)
			take_out(h);
		check_whole();
		for (uint32_t h = 0; h < N; h++)
			if (find(keys[h]) != (h % 2 ? h : MAP_NONE))
				test_fail(__FILE__, __LINE__, "%s: %u", hashes[c].label, h);
	}
}

/* Insert until the map has just begun to grow. With one long run, which moves at
 * once, there is no such moment; then until there are twice at_least. */
static uint32_t
fill_until_growing(uint32_t at_least)
{
	uint32_t n = 0;

	while (n < at_least || (!m.old.slots && n < 2 * at_least))
		CHECK_EQ(0, insert(n++));
	return n;
}

/* Every number below n once, not in order. */
static uint32_t
scattered(uint32_t i, uint32_t n)
{
	const uint32_t prime = 7919; /* and larger than n, so no divisor of it */

	return i * prime % n;
}

TEST(entries_can_be_removed_from_both_tables_while_growing)
{
	EACH(c, hashes) {
		uint32_t n;

		hash_of = hashes[c].fn;
		setup(2000);
		n = fill_until_growing(150);
		for (uint32_t i = 0; i < n; i++) {
			take_out(scattered(i, n));
			check_whole();
			CHECK_EQ(n - i - 1, map_count(&m));
			for (uint32_t k = 0; k < n; k++)
				CHECK_EQ(k <= i ? MAP_NONE : scattered(k, n),
					 find(keys[scattered(k, n)]));
		}
	}
}

TEST(a_removed_key_can_come_back_while_growing)
{
	uint32_t n;

	hash_of = in_bunches;
	setup(2000);
	n = fill_until_growing(100);
	CHECK(m.old.slots != NULL);
	for (uint32_t h = 0; h < n; h++) {
		take_out(h);
		CHECK_EQ(0, insert(h));
		check_whole();
	}
	for (uint32_t h = 0; h < n; h++)
		CHECK_EQ(h, find(keys[h]));
	CHECK_EQ(n, map_count(&m));
}

TEST(removing_everything_while_growing_ends_the_growth)
{
	uint32_t n;

	setup(2000);
	n = fill_until_growing(700);
	CHECK(m.old.slots != NULL);
	for (uint32_t h = n; h-- > 0;)
		take_out(h);
	CHECK_EQ(0, map_count(&m));
	CHECK(m.old.slots == NULL);
}

TEST(no_single_call_moves_the_whole_table)
{
	setup(MILLION);
	for (uint32_t h = 0; h < MILLION; h++) {
		hashed = 0;
		CHECK_EQ(0, insert(h));
		CHECK(hashed < 2000);
	}
}

TEST(growth_is_over_before_the_next_one_begins)
{
	bool growing = false;
	uint32_t slots = 0;

	setup(MILLION);
	for (uint32_t h = 0; h < MILLION; h++) {
		CHECK_EQ(0, insert(h));
		if (m.now.mask != slots)
			CHECK(!growing);
		slots = m.now.mask;
		growing = m.old.slots != NULL;
	}
}

TEST(a_million_entries_are_found)
{
	setup(MILLION);
	for (uint32_t h = 0; h < MILLION; h++)
		CHECK_EQ(0, insert(h));
	for (uint32_t h = 0; h < MILLION; h += 3)
		take_out(h);
	for (uint32_t h = 0; h < MILLION; h++)
		CHECK_EQ(h % 3 ? h : MAP_NONE, find(keys[h]));
	CHECK_EQ(MAP_NONE, find(1));
	check_whole();
}

TEST(what_is_reserved_cannot_fail)
{
	static const uint32_t before[] = { 0, 1, 12, 13, 100 };

	EACH(i, before) {
		setup(20000);
		for (uint32_t h = 0; h < before[i]; h++)
			CHECK_EQ(0, insert(h));
		CHECK_EQ(0, map_reserve(&m, 10000));
		mem_fail_at(1);
		for (uint32_t h = before[i]; h < before[i] + 10000; h++)
			CHECK_EQ(0, insert(h));
		CHECK(!mem_failed());
		mem_fail_at(0);
		for (uint32_t h = 0; h < before[i] + 10000; h++)
			CHECK_EQ(h, find(keys[h]));
	}
}

TEST(reserving_while_growing_loses_nothing)
{
	uint32_t n;

	setup(2000);
	n = fill_until_growing(700);
	CHECK(m.old.n > 0 && m.now.n > 0);
	CHECK_EQ(0, map_reserve(&m, 100000));
	CHECK_EQ(0, map_reserve(&m, 1000000));
	check_whole();
	CHECK_EQ(n, map_count(&m));
	for (uint32_t h = 0; h < n; h++)
		CHECK_EQ(h, find(keys[h]));
}

TEST(reserving_again_and_again_in_an_empty_map_keeps_one_table)
{
	setup(100);
	for (uint32_t n = 1; n < 100000; n *= 3)
		CHECK_EQ(0, map_reserve(&m, n));
	CHECK_EQ(0, insert(5));
	CHECK(m.old.slots == NULL);
	CHECK_EQ(5, find(keys[5]));
}

TEST(more_entries_than_handles_are_refused_and_nothing_changes)
{
	setup(100);
	CHECK_EQ(0, insert(1));
	CHECK_EQ(SLU_ENOMEM, map_reserve(&m, UINT32_MAX));
	CHECK_EQ(1, find(keys[1]));
	CHECK_EQ(1, map_count(&m));
}

/* Insert with no memory to be had, until that is refused. */
static uint32_t
fill_without_memory(uint32_t from)
{
	int rc = 0;

	while (rc == 0) {
		mem_fail_at(1);
		rc = insert(from);
		from += rc == 0;
	}
	mem_fail_at(0);
	CHECK_EQ(SLU_ENOMEM, rc);
	return from;
}

TEST(without_memory_to_grow_the_table_is_used_up_to_seven_eighths)
{
	EACH(c, hashes) {
		uint32_t n;

		hash_of = hashes[c].fn;
		setup(2000);
		CHECK_EQ(0, fill_without_memory(0), "there is no table at all");
		CHECK_EQ(0, insert(0));
		n = fill_without_memory(1);
		CHECK_EQ(14, n, "of 16 slots");
		CHECK_EQ(n, map_count(&m), "the refused one left no trace");
		CHECK_EQ(MAP_NONE, find(keys[n]));
		check_whole();
		CHECK_EQ(0, insert(n), "memory is back");
		n = fill_without_memory(n + 1);
		CHECK_EQ(28, n, "of 32 slots");
		for (uint32_t h = 0; h < n; h++)
			CHECK_EQ(h, find(keys[h]));
	}
}

TEST(release_works_on_a_zeroed_map_and_twice)
{
	map_release(&m);
	setup(10);
	CHECK_EQ(0, insert(3));
	map_release(&m);
	map_release(&m);
	CHECK_EQ(0, map_count(&m));
	CHECK_EQ(MAP_NONE, find(keys[3]));
	CHECK_EQ(0, insert(3));
	CHECK_EQ(3, find(keys[3]));
}

/* In waves, so that the map grows in the midst of inserts and of removals. */
static void
random_steps(bool *in, uint32_t n, uint64_t *seed)
{
	for (int step = 0; step < 40000; step++) {
		const uint32_t h = (uint32_t)(test_random(seed) % n);
		const bool filling = (step / 5000) % 2 == 0;

		CHECK_EQ(in[h] ? h : MAP_NONE, find(keys[h]));
		if (!in[h] && (filling || test_random(seed) % 4 == 0)) {
			CHECK_EQ(0, insert(h));
			in[h] = true;
		} else if (in[h] && (!filling || test_random(seed) % 4 == 0)) {
			take_out(h);
			in[h] = false;
		}
		if (step % 97 == 0)
			check_whole();
	}
}

TEST(random_use_agrees_with_a_model)
{
	static bool in[5000];
	uint64_t seed = test_seed();

	EACH(c, hashes) {
		const uint32_t n = hashes[c].crowded ? 300 : COUNT(in);

		hash_of = hashes[c].fn;
		setup(COUNT(in));
		memset(in, 0, sizeof in);
		random_steps(in, n, &seed);
		for (uint32_t h = 0; h < n; h++)
			CHECK_EQ(in[h] ? h : MAP_NONE, find(keys[h]));
	}
}

TORTURE(a_map_without_memory_keeps_what_it_has)
{
	uint32_t n = 0;

	setup(3000);
	for (uint32_t h = 0; h < 3000; h++) {
		const int rc = insert(h);

		CHECK(rc == 0 || rc == SLU_ENOMEM);
		CHECK_EQ(rc ? MAP_NONE : h, find(keys[h]));
		n += rc == 0;
	}
	CHECK(n >= 2999);
	CHECK_EQ(n, map_count(&m));
	(void)map_reserve(&m, 100000); /* may fail; either way all must be there */
	CHECK_EQ(n, map_count(&m));
	check_whole();
	teardown();
}

TEST(a_trimmed_map_gives_memory_back_and_finds_what_is_left)
{
	enum {
		N = 100000,
		LEFT = 50
	};
	size_t full;

	setup(N);
	for (uint32_t h = 0; h < N; h++)
		CHECK_EQ(0, insert(h));
	full = map_bytes(&m);
	CHECK(!map_trim(&m, 1000));
	for (uint32_t h = LEFT; h < N; h++)
		take_out(h);
	CHECK(map_trim(&m, 1000)); /* in slices */
	while (map_trim(&m, 1000) || map_bytes(&m) > 4096)
		for (uint32_t h = 0; h < LEFT; h++)
			CHECK_EQ(h, find(keys[h]));
	CHECK(map_bytes(&m) < full / 100);
	CHECK(!map_trim(&m, 1000));
}

TEST(an_empty_map_gives_all_back_at_once_unless_it_is_small)
{
	enum {
		N = 5000
	};

	setup(N);
	CHECK_EQ(0, insert(0));
	take_out(0);
	CHECK(!map_trim(&m, 1));
	CHECK(map_bytes(&m) > 0);
	for (uint32_t h = 0; h < N; h++)
		CHECK_EQ(0, insert(h));
	for (uint32_t h = 0; h < N; h++)
		take_out(h);
	CHECK(!map_trim(&m, 1));
	CHECK_EQ(0, map_bytes(&m));
	CHECK(map_growth(&m) > 0);
	CHECK_EQ(0, insert(7));
	CHECK_EQ(7, find(keys[7]));
}

/* MAP-2: inserts while a map shrinks find room and lose nothing. */
TEST(a_map_that_shrinks_takes_as_many_as_before)
{
	enum {
		N = 100000
	};

	setup(N);
	for (uint32_t h = 0; h < N; h++)
		CHECK_EQ(0, insert(h));
	for (uint32_t h = 0; h < N - 100; h++)
		take_out(h);
	CHECK(map_trim(&m, 1));
	for (uint32_t h = 0; h < N - 100; h++) {
		CHECK_EQ(0, insert(h));
		CHECK_EQ(h, find(keys[h]));
		CHECK_EQ(N - 1, find(keys[N - 1]));
	}
	for (uint32_t h = 0; h < N; h++)
		CHECK_EQ(h, find(keys[h]));
}
