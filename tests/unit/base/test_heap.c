#include "test.h"

#include "base/heap.h"
#include "base/mem.h"

#include <sluice/err.h>

#include <stdlib.h>

struct item {
	uint64_t id;
	struct rank rank;
	uint32_t pos;
};

static struct {
	struct slab slab;
	struct heap heap;
} f;

static void
setup(void)
{
	slab_init(&f.slab, sizeof(struct item));
	heap_init(&f.heap, &f.slab, offsetof(struct item, pos));
}

static void
teardown(void)
{
	heap_release(&f.heap);
	slab_release(&f.slab);
}

FIXTURE(setup, teardown);

static struct item *
at(uint32_t handle)
{
	return slab_at(&f.slab, handle);
}

static int
compare(struct rank x, struct rank y)
{
	if (x.a != y.a)
		return x.a < y.a ? -1 : 1;
	if (x.b != y.b)
		return x.b < y.b ? -1 : 1;
	return x.c == y.c ? 0 : (x.c < y.c ? -1 : 1);
}

static uint32_t
push(struct rank rank)
{
	uint32_t h;

	CHECK_EQ(0, heap_reserve(&f.heap, f.heap.n + 1));
	h = slab_new(&f.slab);
	CHECK(h != SLAB_NONE);
	at(h)->rank = rank;
	at(h)->pos = HEAP_OUT;
	heap_push(&f.heap, rank, h);
	return h;
}

static struct rank
rank_of(const struct heap_node *n)
{
	return (struct rank){ .a = n->a, .b = n->b, .c = n->c };
}

/* Every node is not below its parent, and every item knows its node. Nodes that are not mixed are in order. */
static void
check_whole(void)
{
	const struct heap *h = &f.heap;

	CHECK(h->skipped + h->n <= h->max && h->first <= HEAP_OUT - h->max); /* HEAP-2 */
	for (uint32_t i = 0; i < h->n; i++) {
		const uint32_t parent = h->mixed ? (i - 1) / 4 : i - 1;

		CHECK(compare(rank_of(&h->nodes[i ? parent : 0]), rank_of(&h->nodes[i])) <= 0);
		CHECK(heap_has(h, at(h->nodes[i].handle)->pos, h->nodes[i].handle));
	}
}

TEST_BARE(the_rank_is_compared_from_a_to_c)
{
	static const struct {
		const char *label;
		struct rank low, high;
	} cases[] = {
		{ "a first", { .a = 1, .b = 9, .c = 9 }, { .a = 2, .b = 0, .c = 0 } },
		{ "then b", { .a = 1, .b = 1, .c = 9 }, { .a = 1, .b = 2, .c = 0 } },
		{ "then c", { .a = 1, .b = 1, .c = 1 }, { .a = 1, .b = 1, .c = 2 } },
		{ "a is unsigned", { .a = 1 }, { .a = UINT32_MAX } },
		{ "b is unsigned", { .b = 1 }, { .b = UINT64_MAX } },
		{ "c is unsigned", { .c = 1 }, { .c = UINT64_MAX } },
		{ "no carry into a", { .a = UINT32_MAX - 1, .b = UINT64_MAX, .c = UINT64_MAX }, { .a = UINT32_MAX } },
		{ "highest a, lower c", { .a = UINT32_MAX, .c = 1 }, { .a = UINT32_MAX, .c = 2 } },
	};

	EACH(i, cases)
		for (int high_first = 0; high_first < 2; high_first++) {
			uint32_t h;

			setup();
			push(high_first ? cases[i].high : cases[i].low);
			push(high_first ? cases[i].low : cases[i].high);
			h = heap_pop(&f.heap);
			if (compare(at(h)->rank, cases[i].low) != 0)
				test_fail(__FILE__, __LINE__, "%s", cases[i].label);
			teardown();
		}
}

TEST_BARE(signed_values_keep_their_order_as_ranks)
{
	static const int64_t rising[] = { INT64_MIN, INT32_MIN, -1, 0, 1, INT32_MAX, INT64_MAX };

	for (size_t i = 1; i < COUNT(rising); i++)
		CHECK(rank_time(rising[i - 1]) < rank_time(rising[i]));
	CHECK(rank_i32(INT32_MIN) < rank_i32(-1));
	CHECK(rank_i32(-1) < rank_i32(0));
	CHECK(rank_i32(0) < rank_i32(INT32_MAX));
	CHECK_EQ(0, rank_i32(INT32_MIN));
}

TEST(the_first_of_an_empty_heap_is_null)
{
	uint32_t h;

	CHECK(heap_first(&f.heap) == NULL);
	h = push((struct rank){ .b = 7 });
	CHECK_EQ(h, heap_first(&f.heap)->handle);
	CHECK_EQ(7, heap_first(&f.heap)->b);
	heap_pop(&f.heap);
	CHECK(heap_first(&f.heap) == NULL);
}

TEST(what_leaves_the_heap_knows_that_it_is_out)
{
	uint32_t h[3];

	EACH(i, h)
		h[i] = push((struct rank){ .b = i });
	CHECK_EQ(h[0], heap_pop(&f.heap));
	CHECK_EQ(HEAP_OUT, at(h[0])->pos, "popped");
	heap_remove(&f.heap, at(h[2])->pos);
	CHECK_EQ(HEAP_OUT, at(h[2])->pos, "removed, the last node");
	heap_remove(&f.heap, at(h[1])->pos);
	CHECK_EQ(HEAP_OUT, at(h[1])->pos, "removed, the only node");
	CHECK_EQ(0, f.heap.n);
}

/* The last node belongs to another branch and is lower than the hole's parent. */
TEST(removal_moves_the_last_node_up_where_it_must)
{
	uint32_t deep = 0;

	push((struct rank){ .b = 0 });
	f.heap.mixed = true;
	push((struct rank){ .b = 100 });
	for (uint64_t b = 1; b <= 3; b++)
		push((struct rank){ .b = b });
	for (uint64_t i = 0; i < 4; i++)
		deep = push((struct rank){ .b = 200 + i });
	push((struct rank){ .b = 50 });
	CHECK_EQ(8, at(deep)->pos, "a child of 100");
	heap_remove(&f.heap, at(deep)->pos);
	check_whole();
	CHECK_EQ(50, f.heap.nodes[1].b);
}

TEST(equal_ranks_all_come_out)
{
	static bool seen[1000];

	EACH(i, seen)
		push((struct rank){ .a = 5 });
	EACH(i, seen) {
		const uint32_t h = heap_pop(&f.heap);

		CHECK(!seen[h]);
		seen[h] = true;
	}
}

TEST_BARE(without_a_slab_handles_are_any_numbers)
{
	struct heap h;

	heap_init(&h, NULL, 0);
	CHECK_EQ(0, heap_reserve(&h, 100));
	for (uint32_t i = 0; i < 100; i++)
		heap_push(&h, (struct rank){ .b = 100 - i }, UINT32_MAX - i);
	for (uint32_t i = 100; i-- > 0;)
		CHECK_EQ(UINT32_MAX - i, heap_pop(&h));
	heap_release(&h);
}

TEST_BARE(what_is_reserved_cannot_fail)
{
	struct heap h;

	heap_init(&h, NULL, 0);
	CHECK_EQ(0, heap_reserve(&h, 5000));
	mem_fail_at(1);
	for (uint32_t i = 0; i < 5000; i++)
		heap_push(&h, (struct rank){ .b = i }, i);
	CHECK_EQ(0, heap_reserve(&h, 5000));
	CHECK(!mem_failed());
	mem_fail_at(0);
	heap_release(&h);
}

TEST_BARE(release_works_on_a_zeroed_heap_and_twice)
{
	struct heap h = { 0 };

	heap_release(&h);
	CHECK_EQ(0, heap_reserve(&h, 1));
	heap_release(&h);
	heap_release(&h);
	CHECK_EQ(0, h.max);
}

static int
by_rank(const void *x, const void *y)
{
	return compare(*(const struct rank *)x, *(const struct rank *)y);
}

/* Few different values, so that ties at every part of the rank are common. */
static struct rank
random_rank(uint64_t *seed)
{
	return (struct rank){
		.a = (uint32_t)(test_random(seed) % 4),
		.b = test_random(seed) % 8,
		.c = test_random(seed) % 16,
	};
}

TEST(random_items_come_out_sorted)
{
	enum {
		N = 100000
	};
	uint64_t seed = test_seed();
	struct rank *ranks = calloc(N, sizeof *ranks);

	for (int i = 0; i < N; i++) {
		ranks[i] = random_rank(&seed);
		push(ranks[i]);
	}
	qsort(ranks, N, sizeof *ranks, by_rank);
	for (int i = 0; i < N; i++) {
		const struct rank got = rank_of(heap_first(&f.heap));

		CHECK_EQ(0, compare(ranks[i], got));
		CHECK_EQ(0, compare(ranks[i], at(heap_pop(&f.heap))->rank));
	}
	free(ranks);
}

/* The lowest rank by looking at everything. */
static struct rank
naive_lowest(const bool *in, uint32_t n)
{
	struct rank best = { .a = UINT32_MAX, .b = UINT64_MAX, .c = UINT64_MAX };

	for (uint32_t h = 0; h < n; h++)
		if (in[h] && compare(at(h)->rank, best) < 0)
			best = at(h)->rank;
	return best;
}

static void
random_step(bool *in, uint32_t n, uint64_t *seed)
{
	const uint32_t h = (uint32_t)(test_random(seed) % n);

	if (!in[h]) {
		at(h)->rank = random_rank(seed);
		heap_push(&f.heap, at(h)->rank, h);
		in[h] = true;
	} else if (test_random(seed) % 3 == 0) {
		at(h)->rank = random_rank(seed);
		heap_move(&f.heap, at(h)->pos, at(h)->rank);
	} else if (test_random(seed) % 2) {
		heap_remove(&f.heap, at(h)->pos);
		in[h] = false;
		CHECK_EQ(HEAP_OUT, at(h)->pos);
	} else {
		const struct rank want = naive_lowest(in, n);
		const uint32_t got = heap_pop(&f.heap);

		CHECK(in[got]);
		CHECK_EQ(0, compare(want, at(got)->rank));
		in[got] = false;
	}
}

TEST(random_pushes_pops_and_removals_agree_with_a_model)
{
	static bool in[300];
	uint64_t seed = test_seed();

	CHECK_EQ(0, heap_reserve(&f.heap, COUNT(in)));
	EACH(i, in)
		slab_new(&f.slab);
	for (int step = 0; step < 30000; step++) {
		random_step(in, COUNT(in), &seed);
		check_whole();
	}
}

/* HEAP-1: a queue that is worked off in order, by several consumers at once. */
TEST(nodes_that_come_in_order_stay_in_order)
{
	enum {
		N = 20000,
		MOST = 500
	};
	uint64_t seed = test_seed();
	uint32_t handles[MOST], n = 0;

	CHECK_EQ(0, heap_reserve(&f.heap, 2 * MOST));
	for (uint32_t i = 0; i < N; i++) {
		handles[n++] = push((struct rank){ .b = 10 * (uint64_t)i + test_random(&seed) % 40 });
		if (n == MOST || test_random(&seed) % 3 == 0) {
			const uint32_t k = (uint32_t)(test_random(&seed) % (n < 4 ? n : 4));

			heap_remove(&f.heap, at(handles[k])->pos);
			slab_free(&f.slab, handles[k]);
			memmove(&handles[k], &handles[k + 1], (--n - k) * sizeof handles[0]);
		}
		CHECK(!f.heap.mixed);
		if (i % 100 == 0)
			check_whole();
	}
}

TEST(mixed_nodes_are_in_order_again_when_one_is_left)
{
	for (uint64_t i = 0; i < 100; i++)
		(void)push((struct rank){ .b = i * 37 % 101 });
	CHECK(f.heap.mixed);
	check_whole();
	while (f.heap.n > 1)
		(void)heap_pop(&f.heap);
	CHECK(!f.heap.mixed);
}

TEST(a_full_heap_in_order_moves_few_nodes_or_is_mixed)
{
	CHECK_EQ(0, heap_reserve_just(&f.heap, 1000));
	for (uint64_t i = 0; i < 1000; i++)
		(void)push((struct rank){ .b = i });
	CHECK(!f.heap.mixed);
	for (uint64_t i = 0; i < 3000; i++) {
		CHECK_EQ(i, heap_first(&f.heap)->b);
		slab_free(&f.slab, heap_pop(&f.heap));
		(void)push((struct rank){ .b = 1000 + i });
		check_whole();
	}
	CHECK(f.heap.mixed); /* it would slide at every push */
	CHECK_EQ(1000, f.heap.max);
}

TEST(positions_begin_anew_before_they_end)
{
	CHECK_EQ(0, heap_reserve(&f.heap, 100));
	f.heap.first = HEAP_OUT - f.heap.max - 10;
	for (uint64_t i = 0; i < 1000; i++) {
		(void)push((struct rank){ .b = i });
		if (i >= 50) {
			CHECK_EQ(i - 50, heap_first(&f.heap)->b);
			slab_free(&f.slab, heap_pop(&f.heap));
		}
		check_whole();
	}
	CHECK(f.heap.first < 1000);
	f.heap.first = HEAP_OUT - f.heap.max;
	for (uint64_t i = 0; i < f.heap.n; i++)
		at(f.heap.nodes[i].handle)->pos = f.heap.first + (uint32_t)i;
	CHECK_EQ(0, heap_reserve(&f.heap, f.heap.max + 1));
	check_whole();
}

/* Ranks that rise, with some disorder; the heap becomes empty at times. */
static void
rising_step(bool *in, uint32_t n, uint64_t *seed, uint64_t *clock)
{
	const uint32_t h = (uint32_t)(test_random(seed) % n);
	const uint64_t late = test_random(seed) % 50 ? test_random(seed) % 4 : test_random(seed) % 100;

	if (!in[h] && (*clock)++ % 256 < 128) {
		at(h)->rank = (struct rank){ .b = *clock + 100 - late };
		heap_push(&f.heap, at(h)->rank, h);
		in[h] = true;
	} else if (in[h] && test_random(seed) % 8 == 0) {
		heap_remove(&f.heap, at(h)->pos);
		in[h] = false;
	} else if (in[h] && test_random(seed) % 8 == 0) {
		at(h)->rank = (struct rank){ .b = *clock + 100 - late };
		heap_move(&f.heap, at(h)->pos, at(h)->rank);
	} else if (f.heap.n > 0) {
		const struct rank want = naive_lowest(in, n);
		const uint32_t got = heap_pop(&f.heap);

		CHECK(in[got]);
		CHECK_EQ(0, compare(want, at(got)->rank));
		CHECK_EQ(HEAP_OUT, at(got)->pos);
		in[got] = false;
	}
}

TEST(rising_pushes_pops_and_removals_agree_with_a_model)
{
	static bool in[60];
	uint64_t seed = test_seed(), clock = 0;
	unsigned mixed = 0;

	CHECK_EQ(0, heap_reserve(&f.heap, COUNT(in)));
	EACH(i, in)
		slab_new(&f.slab);
	for (int step = 0; step < 60000; step++) {
		rising_step(in, COUNT(in), &seed, &clock);
		check_whole();
		mixed += f.heap.mixed;
	}
	CHECK(mixed > 600 && mixed < 59400); /* both happen */
}

TEST(a_million_items_lose_every_third_from_the_middle)
{
	enum {
		N = 1000000
	};
	uint64_t seed = test_seed();
	struct rank before = { 0 };

	for (uint32_t i = 0; i < N; i++)
		push((struct rank){ .a = 5, .b = test_random(&seed), .c = i });
	for (uint32_t h = 0; h < N; h += 3)
		heap_remove(&f.heap, at(h)->pos);
	check_whole();
	CHECK_EQ(N - (N + 2) / 3, f.heap.n);
	while (f.heap.n > 0) {
		const uint32_t h = heap_pop(&f.heap);

		CHECK(h % 3 != 0);
		CHECK(compare(before, at(h)->rank) <= 0);
		before = at(h)->rank;
	}
}

TORTURE(a_heap_without_memory_keeps_what_it_has)
{
	uint32_t n = 0;

	setup();
	for (uint32_t i = 0; i < 1000; i++) {
		const uint32_t h = slab_new(&f.slab);

		if (h == SLAB_NONE || heap_reserve(&f.heap, n + 1) != 0)
			continue;
		heap_push(&f.heap, (struct rank){ .b = 1000 - i }, h);
		n++;
	}
	CHECK_EQ(n, f.heap.n);
	CHECK(n >= 999);
	check_whole();
	teardown();
}

TEST(a_trimmed_heap_gives_memory_back_and_keeps_its_order)
{
	for (uint32_t i = 0; i < 10000; i++)
		push((struct rank){ .b = i * 7919u % 10007u });
	while (f.heap.n > 100)
		(void)heap_pop(&f.heap);

	const size_t before = heap_bytes(&f.heap);
	const struct heap large = f.heap;

	heap_trim(&f.heap, before / sizeof(struct heap_node)); /* promised: nothing to give */
	CHECK_EQ(before, heap_bytes(&f.heap));
	heap_trim(&f.heap, 100);
	CHECK(heap_bytes(&f.heap) <= 16 * 100 * sizeof(struct heap_node));
	CHECK(f.heap.max > 100);
	CHECK_EQ(0, heap_growth(&f.heap, f.heap.max));
	CHECK_EQ(heap_bytes(&f.heap), heap_growth(&f.heap, f.heap.max + 1)); /* the double */
	CHECK_EQ(before / 4, heap_growth(&large, large.max + 1));
	for (uint64_t last = 0; f.heap.n > 0;) {
		CHECK(heap_first(&f.heap)->b >= last);
		last = heap_first(&f.heap)->b;
		(void)heap_pop(&f.heap);
	}
}
