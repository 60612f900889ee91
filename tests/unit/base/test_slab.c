#include "test.h"

#include "base/mem.h"
#include "base/slab.h"

#include <sluice/err.h>

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct item {
	uint64_t value;
	uint32_t x, y;
};

static struct slab s;

static void
start(void)
{
	slab_init(&s, sizeof(struct item));
}

static void
end(void)
{
	slab_release(&s);
}

FIXTURE(start, end);

static struct item *
at(uint32_t handle)
{
	return slab_at(&s, handle);
}

TEST(a_new_item_is_zeroed_also_when_it_was_used_before)
{
	uint32_t h;

	h = slab_new(&s);
	memset(at(h), 0xff, sizeof(struct item));
	slab_free(&s, h);
	CHECK_EQ(h, slab_new(&s));
	CHECK_EQ(0, at(h)->value);
	CHECK_EQ(0, at(h)->x + at(h)->y);
}

TEST(the_last_freed_item_is_the_first_reused)
{
	uint32_t h[3];

	EACH(i, h)
		h[i] = slab_new(&s);
	EACH(i, h)
		slab_free(&s, h[i]);
	CHECK_EQ(0, s.used);
	CHECK_EQ(h[2], slab_new(&s));
	CHECK_EQ(h[1], slab_new(&s));
	CHECK_EQ(h[0], slab_new(&s));
	CHECK_EQ(3, s.used);
}

TEST(an_item_never_moves_while_the_slab_grows)
{
	struct item *first;
	uint32_t h;

	h = slab_new(&s);
	first = at(h);
	first->value = 42;
	for (int i = 0; i < 100000; i++)
		CHECK(slab_new(&s) != SLAB_NONE);
	CHECK(at(h) == first);
	CHECK_EQ(42, first->value);
}

TEST(items_of_every_size_do_not_overlap)
{
	static const struct {
		const char *label;
		size_t size;
	} cases[] = {
		{ "only a link fits", 4 },
		{ "odd", 5 },
		{ "no room for the mark", 7 },
		{ "link and mark", 8 },
		{ "a cache line", 64 },
		{ "large", 1000 },
	};

	EACH(c, cases) {
		const size_t size = cases[c].size;

		slab_init_chunked(&s, size, 2);
		for (int i = 0; i < 50; i++)
			memset(slab_at(&s, slab_new(&s)), i, size);
		for (uint32_t h = 0; h < 50; h++) {
			const char *p = slab_at(&s, h);

			if (p[0] != (char)h || p[size - 1] != (char)h)
				test_fail(__FILE__, __LINE__, "%s", cases[c].label);
		}
		slab_release(&s);
	}
}

TEST(items_of_a_cache_line_lie_on_one)
{
	slab_init(&s, 64);
	for (int i = 0; i < 10; i++)
		CHECK_EQ(0, (uintptr_t)slab_at(&s, slab_new(&s)) % 64);
}

TEST(what_is_reserved_cannot_fail)
{
	CHECK_EQ(0, slab_reserve(&s, 10000));
	mem_fail_at(1);
	for (int i = 0; i < 10000; i++)
		CHECK(slab_new(&s) != SLAB_NONE);
	CHECK(!mem_failed());
	mem_fail_at(0);
}

TEST(freed_items_count_as_reserved)
{
	uint32_t chunks;

	slab_init_chunked(&s, sizeof(struct item), 4);
	CHECK_EQ(0, slab_reserve(&s, 100));
	for (uint32_t i = 0; i < 100; i++)
		slab_new(&s);
	for (uint32_t i = 0; i < 100; i++)
		slab_free(&s, i);
	chunks = s.n_chunks;
	CHECK_EQ(0, slab_reserve(&s, 100));
	CHECK_EQ(chunks, s.n_chunks);
}

TEST(a_reserve_that_fails_halfway_gives_its_chunks_back)
{
	slab_init_chunked(&s, sizeof(struct item), 4);
	mem_fail_at(4); /* the array, two chunks, and then no more */
	CHECK_EQ(SLU_ENOMEM, slab_reserve(&s, 1000));
	CHECK_EQ(0, s.n_chunks);
	CHECK_EQ(0, slab_new(&s));
}

TEST(more_items_than_handles_are_refused_at_once)
{
	CHECK_EQ(SLU_ENOMEM, slab_reserve(&s, UINT32_MAX));
	CHECK_EQ(0, s.n_chunks);
}

/* With chunks of 2^31 items the second would name SLAB_NONE. The first one is
 * made up here, 8 GiB are too many for a test. */
TEST(the_last_handle_is_never_handed_out)
{
	slab_init_chunked(&s, 4, 31);
	s.n_chunks = 1;
	s.used = s.fresh = 1u << 31;
	CHECK_EQ(SLU_ENOMEM, slab_reserve(&s, 1));
	CHECK_EQ(SLAB_NONE, slab_new(&s));
	CHECK_EQ(1, s.n_chunks);
	s.n_chunks = 0;
}

TEST(trimmed_chunks_are_freed_and_their_handles_come_again)
{
	enum {
		BITS = 4,
		CHUNKS = 100,
		N = CHUNKS << BITS
	};

	slab_init_chunked(&s, sizeof(struct item), BITS);
	for (uint32_t i = 0; i < N; i++)
		at(slab_new(&s))->value = i;
	CHECK_EQ(0, slab_trim(&s));
	for (uint32_t i = 0; i < N; i++)
		if (i != N / 2)
			slab_free(&s, i);
	CHECK_EQ((CHUNKS - 3) * slab_chunk_size(&s), slab_trim(&s)); /* two are kept */
	CHECK_EQ(3 * slab_chunk_size(&s) + s.max_chunks * sizeof *s.chunks, slab_bytes(&s));
	CHECK_EQ(sizeof(struct item), slab_used_bytes(&s));
	CHECK_EQ(N / 2, at(N / 2)->value);
	CHECK(slab_has(&s, N / 2));

	uint32_t found = 0;

	for (uint32_t h = 0; h < s.fresh; h++)
		found += slab_has(&s, h);
	CHECK_EQ(3u << BITS, found);
	for (uint32_t i = 1; i < N; i++)
		CHECK(slab_new(&s) < N);
	CHECK_EQ(N, s.used);
	CHECK_EQ(N, s.fresh);
	CHECK_EQ(slab_chunk_size(&s), slab_growth(&s));
}

/* Chunks of 2 items, so that they fill, empty and go all the time. */
TEST(any_order_of_new_free_and_trim_keeps_every_item)
{
	enum {
		N = 64
	};
	uint64_t seed = test_seed();
	uint32_t held[N];
	uint32_t n = 0;

	slab_init_chunked(&s, sizeof(struct item), 1);
	for (int i = 0; i < 200000; i++) {
		const uint64_t dice = test_random(&seed);

		if (dice % 100 == 0) {
			(void)slab_trim(&s);
		} else if (n < N && (n == 0 || dice >> 8 & 1)) {
			held[n] = slab_new(&s);
			CHECK_EQ(0, at(held[n])->value);
			at(held[n])->value = held[n] + 1ull;
			n++;
		} else {
			const uint32_t k = (uint32_t)(dice >> 16) % n;

			CHECK_EQ(held[k] + 1ull, at(held[k])->value);
			slab_free(&s, held[k]);
			held[k] = held[--n];
		}
		CHECK_EQ(n, s.used);
	}
}

TEST(release_works_on_a_zeroed_slab_and_twice)
{
	memset(&s, 0, sizeof s);
	slab_release(&s);
	slab_init(&s, 16);
	CHECK_EQ(0, slab_new(&s));
	slab_release(&s);
	slab_release(&s);
	CHECK_EQ(0, slab_new(&s));
	slab_release(&s);
}

/* Run fn in a child and tell whether an assert ended it. */
static bool
aborts(void (*fn)(void))
{
	int status = 0;
	const pid_t pid = fork();

	if (pid == 0) {
		close(STDERR_FILENO); /* what the assert says is noise here */
		fn();
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void
free_again_at_once(void)
{
	slab_init(&s, 4);
	slab_free(&s, slab_new(&s));
	slab_free(&s, 0);
}

static void
free_again_later(void)
{
	slab_init(&s, sizeof(struct item));
	for (int i = 0; i < 3; i++)
		slab_new(&s);
	for (uint32_t h = 0; h < 3; h++)
		slab_free(&s, h);
	slab_free(&s, 1);
}

static void
free_what_never_was(void)
{
	slab_init(&s, sizeof(struct item));
	slab_free(&s, slab_new(&s) + 1);
}

TEST(freeing_what_is_not_in_use_is_caught)
{
	CHECK(aborts(free_again_at_once));
	CHECK(aborts(free_again_later));
	CHECK(aborts(free_what_never_was));
}

TEST(an_item_that_looks_free_by_chance_can_be_freed)
{
	struct item looks_free;
	uint32_t a, b;

	a = slab_new(&s);
	b = slab_new(&s);
	slab_free(&s, a);
	looks_free = *at(a);
	*at(b) = looks_free;
	slab_free(&s, b);
	CHECK_EQ(0, s.used);
}

enum {
	MODEL = 20000
};

TEST(random_use_agrees_with_a_model)
{
	static uint64_t value_of[MODEL]; /* 0: not in use */
	uint64_t seed = test_seed();
	uint32_t used = 0;

	slab_init_chunked(&s, sizeof(struct item), 6);
	for (int step = 0; step < 300000; step++) {
		uint32_t h = (uint32_t)(test_random(&seed) % MODEL);

		if (value_of[h]) {
			CHECK_EQ(value_of[h], at(h)->value);
			slab_free(&s, h);
			value_of[h] = 0;
			used--;
		} else if (used < MODEL / 2) {
			h = slab_new(&s);
			CHECK(h < MODEL && value_of[h] == 0);
			CHECK_EQ(0, at(h)->value);
			value_of[h] = at(h)->value = test_random(&seed) | 1;
			used++;
		}
		CHECK_EQ(used, s.used);
	}
}

TORTURE(a_slab_without_memory_stays_whole)
{
	uint32_t n = 0;

	slab_init_chunked(&s, sizeof(struct item), 4);
	for (int i = 0; i < 1000; i++) {
		const uint32_t h = slab_new(&s);

		if (h != SLAB_NONE)
			at(h)->value = n++;
	}
	CHECK(n >= 999);
	CHECK_EQ(n, s.used);
	for (uint32_t h = 0; h < n; h++)
		CHECK_EQ(h, at(h)->value);
	slab_release(&s);
}
