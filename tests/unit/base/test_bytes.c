#include "test.h"

#include "base/bytes.h"
#include "base/mem.h"

#include <stdio.h>

static struct buf b;

static void
end(void)
{
	buf_release(&b);
}

FIXTURE(NULL, end);

TEST(slices_are_equal_by_content)
{
	static const struct {
		const char *label;
		struct slice a, b;
		bool equal;
	} cases[] = {
		{ "the same", { "abc", 3 }, { "abc", 3 }, true },
		{ "another byte", { "abc", 3 }, { "abd", 3 }, false },
		{ "a prefix", { "abc", 3 }, { "ab", 2 }, false },
		{ "behind a zero byte", { "a\0b", 3 }, { "a\0c", 3 }, false },
		{ "empty and none", { "", 0 }, { NULL, 0 }, true },
		{ "none and none", { NULL, 0 }, { NULL, 0 }, true },
		{ "none and some", { NULL, 0 }, { "a", 1 }, false },
	};

	EACH(i, cases)
		if (slice_eq(cases[i].a, cases[i].b) != cases[i].equal)
			test_fail(__FILE__, __LINE__, "%s", cases[i].label);
}

TEST(a_literal_and_a_string_make_the_same_slice)
{
	CHECK(slice_eq(SLICE("queue"), slice_of("queue")));
	CHECK_EQ(0, SLICE("").n);
	CHECK_EQ(3, SLICE("a\0b").n);
}

TEST(puts_follow_each_other)
{
	buf_init(&b, 100);
	buf_puts(&b, "id=");
	buf_printf(&b, "%d", 42);
	buf_putc(&b, ';');
	buf_put(&b, "a\0b", 3);
	CHECK(!b.failed);
	CHECK(slice_eq(SLICE("id=42;a\0b"), buf_slice(&b)));
}

TEST(a_buffer_that_nothing_was_put_into_is_an_empty_string)
{
	buf_init(&b, 100);
	CHECK_STR("", buf_str(&b));
	buf_put(&b, NULL, 0);
	buf_puts(&b, "");
	buf_printf(&b, "%s", "");
	CHECK_STR("", buf_str(&b));
	CHECK_EQ(0, buf_slice(&b).n);
	CHECK(!b.failed);
}

/* Fill to one less than the limit, to the limit, and over it, by every put. */
TEST(content_reaches_the_limit_and_never_passes_it)
{
	static const size_t limits[] = { 1, 2, 63, 64, 65, 127, 128, 129, 1000 };

	EACH(i, limits)
		for (int way = 0; way < 3; way++) {
			buf_init(&b, limits[i]);
			for (size_t n = 0; n <= limits[i] + 1; n++) {
				CHECK_EQ(n > limits[i], b.failed);
				if (way == 0)
					buf_putc(&b, 'x');
				else if (way == 1)
					buf_puts(&b, "x");
				else
					buf_printf(&b, "%c", 'x');
			}
			CHECK_EQ(limits[i], b.n);
			CHECK_EQ(limits[i], strlen(buf_str(&b)));
			CHECK(b.size <= limits[i] + 1);
			buf_release(&b);
		}
}

TEST(a_put_that_does_not_fit_leaves_nothing_of_itself)
{
	buf_init(&b, 10);
	buf_puts(&b, "12345");
	buf_puts(&b, "678901");
	CHECK(b.failed);
	CHECK_STR("12345", buf_str(&b));
	buf_clear(&b);
	buf_puts(&b, "12345");
	buf_printf(&b, "%s", "678901");
	CHECK(b.failed);
	CHECK_STR("12345", buf_str(&b));
}

TEST(a_failed_buffer_ignores_puts_until_it_is_cleared)
{
	buf_init(&b, 4);
	buf_puts(&b, "ab");
	buf_puts(&b, "cde");
	buf_putc(&b, 'c');
	buf_printf(&b, "d");
	CHECK(b.failed);
	CHECK_STR("ab", buf_str(&b));
	buf_clear(&b);
	CHECK_STR("", buf_str(&b));
	buf_puts(&b, "good");
	CHECK(!b.failed);
	CHECK_STR("good", buf_str(&b));
}

TEST(clearing_keeps_the_memory)
{
	buf_init(&b, 1000);
	buf_printf(&b, "%500s", "");
	buf_clear(&b);
	mem_fail_at(1);
	buf_printf(&b, "%500s", "");
	CHECK(!mem_failed());
	CHECK(!b.failed);
	mem_fail_at(0);
}

TEST(printf_grows_the_buffer_for_a_long_line)
{
	static char text[5000];

	memset(text, 'x', sizeof text - 1);
	buf_init(&b, 2 * sizeof text);
	buf_printf(&b, "<%s>", text);
	CHECK(!b.failed);
	CHECK_EQ(sizeof text + 1, b.n);
	CHECK_EQ('<', b.p[0]);
	CHECK_EQ('>', b.p[b.n - 1]);
}

TEST(a_limit_of_nothing_refuses_everything)
{
	buf_init(&b, 0);
	buf_puts(&b, "");
	CHECK(!b.failed);
	buf_putc(&b, 'x');
	CHECK(b.failed);
	CHECK_STR("", buf_str(&b));
}

TEST(sizes_near_the_end_of_the_address_space_do_not_wrap)
{
	volatile size_t too_much = SIZE_MAX - 1; /* or the compiler sees through it */

	buf_init(&b, SIZE_MAX);
	buf_puts(&b, "abc");
	CHECK(!b.failed);
	buf_put(&b, "", too_much);
	CHECK(b.failed);
	CHECK_STR("abc", buf_str(&b));
}

TEST(release_works_on_a_zeroed_buffer_and_twice)
{
	buf_release(&b);
	buf_init(&b, 10);
	buf_puts(&b, "abc");
	buf_release(&b);
	buf_release(&b);
	CHECK_STR("", buf_str(&b));
}

TEST(random_puts_agree_with_a_model)
{
	static char model[100001], piece[300];
	uint64_t seed = test_seed();
	size_t n = 0;

	buf_init(&b, sizeof model - 1);
	memset(piece, 'p', sizeof piece);
	for (;;) {
		const int k = (int)(test_random(&seed) % sizeof piece);

		if (n + (size_t)k > sizeof model - 1)
			break;
		piece[0] = (char)('a' + k % 26);
		memcpy(model + n, piece, (size_t)k);
		n += (size_t)k;
		if (test_random(&seed) % 2)
			buf_put(&b, piece, (size_t)k);
		else
			buf_printf(&b, "%.*s", k, piece);
	}
	CHECK(!b.failed);
	CHECK_STR(model, buf_str(&b));
}

TORTURE(a_buffer_without_memory_fails_and_keeps_what_it_had)
{
	size_t whole = 0;

	buf_init(&b, 100000);
	for (int i = 0; i < 1000; i++) {
		if (i % 2)
			buf_puts(&b, "0123456789");
		else
			buf_printf(&b, "%s%d", "012345678", 9);
		if (!b.failed)
			whole += 10;
	}
	CHECK_EQ(mem_failed() != 0, b.failed);
	CHECK_EQ(whole, strlen(buf_str(&b)));
	for (size_t i = 0; i < whole; i++)
		CHECK_EQ('0' + (char)(i % 10), b.p[i]);
	buf_release(&b);
}

TEST(a_buffer_that_has_reserved_needs_no_memory)
{
	buf_init(&b, 100);
	CHECK(buf_reserve(&b, 100));
	mem_fail_at(1);
	for (int i = 0; i < 100; i++)
		buf_putc(&b, 'x');
	CHECK(buf_reserve(&b, 50));
	CHECK(!mem_failed());
	mem_fail_at(0);
	CHECK_EQ(100, b.n);
	CHECK(!b.failed);
	CHECK(!buf_reserve(&b, 101));
	CHECK(!b.failed);
}
