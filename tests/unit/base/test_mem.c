#include "test.h"

#include "base/mem.h"

/* The address sanitizer ends a program that asks for too much, unless this option is set. */
const char *__asan_default_options(void);

const char *
__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

/* Every way to allocate, so that each can be made to fail. */
static void *
by_alloc(void)
{
	return mem_alloc(10);
}

static void *
by_zalloc(void)
{
	return mem_zalloc(10);
}

static void *
by_array(void)
{
	return mem_array(2, 5);
}

static void *
by_realloc(void)
{
	return mem_realloc(NULL, 10);
}

static void *
by_aligned(void)
{
	return mem_aligned(64, 10);
}

static void *
by_strdup(void)
{
	return mem_strdup("sluice");
}

static const struct {
	const char *label;
	void *(*allocate)(void);
} ways[] = {
	{ "alloc", by_alloc },
	{ "zalloc", by_zalloc },
	{ "array", by_array },
	{ "realloc", by_realloc },
	{ "aligned", by_aligned },
	{ "strdup", by_strdup },
};

TEST(every_way_to_allocate_can_be_made_to_fail_once)
{
	EACH(i, ways) {
		void *p;

		mem_fail_at(1);
		p = ways[i].allocate();
		if (p || !mem_failed())
			test_fail(__FILE__, __LINE__, "%s did not fail", ways[i].label);
		p = ways[i].allocate();
		if (!p)
			test_fail(__FILE__, __LINE__, "%s failed twice", ways[i].label);
		mem_free(p);
	}
}

TEST(the_nth_allocation_fails_and_no_other)
{
	mem_fail_at(3);
	for (int i = 1; i <= 5; i++) {
		void *p = mem_alloc(1);

		CHECK_EQ(i == 3, p == NULL);
		CHECK_EQ(i >= 3, mem_failed() != 0);
		mem_free(p);
	}
}

TEST(turning_the_seam_off_forgets_that_something_failed)
{
	void *p;

	mem_fail_at(1);
	CHECK(mem_alloc(1) == NULL);
	mem_fail_at(1);
	mem_fail_at(0);
	CHECK(!mem_failed());
	p = mem_alloc(1);
	CHECK(p != NULL);
	mem_free(p);
}

TEST(a_failed_realloc_leaves_the_old_block)
{
	char *p = mem_strdup("still here");

	CHECK(p != NULL);
	mem_fail_at(1);
	CHECK(mem_realloc(p, 1000) == NULL);
	CHECK_STR("still here", p);
	mem_free(p);
}

TEST(no_bytes_are_still_a_block)
{
	void *blocks[] = { mem_alloc(0), mem_zalloc(0), mem_array(0, 8),
			   mem_array(8, 0), mem_realloc(NULL, 0), mem_aligned(64, 0) };

	EACH(i, blocks) {
		CHECK(blocks[i] != NULL);
		mem_free(blocks[i]);
	}
	mem_free(NULL);
}

static bool
all_zero(const char *p, size_t n)
{
	while (n > 0 && p[n - 1] == 0)
		n--;
	return n == 0;
}

/* Dirty memory first, so that zeros are no luck. */
TEST(zeroed_blocks_are_zero)
{
	char *p = mem_alloc(1000);

	CHECK(p != NULL);
	memset(p, 0xff, 1000);
	mem_free(p);
	p = mem_zalloc(1000);
	CHECK(p && all_zero(p, 1000));
	memset(p, 0xff, 1000);
	mem_free(p);
	p = mem_array(100, 10);
	CHECK(p && all_zero(p, 1000));
	mem_free(p);
}

TEST(an_aligned_block_is_aligned)
{
	static const size_t aligns[] = { 16, 64, 4096, 1 << 21 };

	EACH(i, aligns) {
		char *p = mem_aligned(aligns[i], 100);

		CHECK(p != NULL);
		CHECK_EQ(0, (uintptr_t)p % aligns[i]);
		memset(p, 1, 100);
		mem_free(p);
	}
}

TEST(an_array_that_no_size_can_hold_is_refused)
{
	CHECK(mem_array(SIZE_MAX / 2, 3) == NULL);
	CHECK(mem_array(3, SIZE_MAX / 2) == NULL);
}

TEST(a_copied_string_is_a_block_of_its_own)
{
	const char *s = "sluice";
	char *copy = mem_strdup(s);

	CHECK(copy && copy != s);
	CHECK_STR(s, copy);
	mem_free(copy);
}

TORTURE(torture_ends_when_every_allocation_has_failed_once)
{
	EACH(i, ways)
		mem_free(ways[i].allocate());
}

TEST(an_array_grows_by_doubling_and_stays_as_it_is_without_memory)
{
	uint32_t *items = NULL, room = 0;

	for (uint32_t n = 0; n < 100; n++) {
		CHECK(mem_room(&items, &room, n + 1, sizeof *items));
		items[n] = n;
	}
	CHECK_EQ(128, room);
	CHECK_EQ(99, items[99]);
	mem_fail_at(1);
	CHECK(!mem_room(&items, &room, 129, sizeof *items));
	mem_fail_at(0);
	CHECK_EQ(128, room);
	CHECK_EQ(99, items[99]);
	CHECK(mem_resize(&items, 1000, sizeof *items));
	CHECK_EQ(99, items[99]);
	mem_free(items);
}
