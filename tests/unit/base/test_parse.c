#include "test.h"

#include "base/parse.h"

#include <inttypes.h>
#include <stdio.h>

#define DAY (24 * SLU_HOUR)

/* SQ-53: the syntax of durations; a number without a unit is refused. */
TEST(durations_have_units)
{
	static const struct {
		const char *text;
		slu_time want;
	} cases[] = {
		{ "100ms", 100 * SLU_MS },
		{ "20s", 20 * SLU_SEC },
		{ "1.5s", 1500 * SLU_MS },
		{ "2m", 2 * SLU_MIN },
		{ "1h30m", SLU_HOUR + 30 * SLU_MIN },
		{ "250us", 250 * SLU_US },
		{ "10ns", 10 },
		{ "7d", 7 * DAY },
		{ "0", 0 },
		{ "0s", 0 },
		{ "0.000s", 0 },
		{ "0.000000001s", 1 },
		{ "1.50m", 90 * SLU_SEC },
		{ "0.25h", 15 * SLU_MIN },
		{ "0.5us", 500 },
		{ "1.000ns", 1 },
		{ "1d2h3m4s5ms6us7ns", DAY + 2 * SLU_HOUR + 3 * SLU_MIN + 4 * SLU_SEC +
					       5 * SLU_MS + 6 * SLU_US + 7 },
		{ "1h1.5s", SLU_HOUR + 1500 * SLU_MS },
		{ "90m", 90 * SLU_MIN },
		{ "9223372036854775806ns", SLU_NEVER - 1 },
		{ "9223372036.854775806s", SLU_NEVER - 1 },
	};

	EACH(i, cases) {
		slu_time got = -1;

		if (parse_duration(slice_of(cases[i].text), &got, NULL))
			test_fail(__FILE__, __LINE__, "refused %s", cases[i].text);
		CHECK_EQ(cases[i].want, got);
	}
}

/* SQ-53 */
TEST(what_is_no_duration_is_refused)
{
	static const struct {
		const char *label;
		const char *text;
	} cases[] = {
		{ "nothing", "" },
		{ "no unit", "20" },
		{ "no unit, two zeros", "00" },
		{ "no unit, fraction", "0.0" },
		{ "no number", "s" },
		{ "unknown unit", "20x" },
		{ "upper case", "20S" },
		{ "a word", "20sec" },
		{ "negative", "-1s" },
		{ "negative zero", "-0s" },
		{ "plus", "+1s" },
		{ "space before", " 1s" },
		{ "space between", "1 s" },
		{ "space after", "1s " },
		{ "a rest without unit", "1h30" },
		{ "smaller before larger", "30m1h" },
		{ "a unit twice", "1s1s" },
		{ "fraction before the last part", "1.5h30m" },
		{ "no digits after the point", "1.s" },
		{ "no digits before the point", ".5s" },
		{ "two points", "1.5.5s" },
		{ "comma", "1,5s" },
		{ "leading zero", "01s" },
		{ "less than a nanosecond", "0.5ns" },
		{ "less by two digits", "0.05ns" },
		{ "finer than a nanosecond", "1.0000000001s" },
		{ "finer by two digits", "1.00000000001s" },
		{ "a minute, too fine", "0.000000000001m" },
		{ "exponent", "1e3s" },
		{ "hex", "0x10s" },
		{ "never itself", "9223372036854775807ns" },
		{ "one too many", "9223372036854775808ns" },
		{ "beyond 64 bits", "18446744073709551616ns" },
		{ "overflow by unit", "106752d" },
		{ "overflow far", "18446744073709551615d" },
		{ "overflow by sum", "106751d24h" },
		{ "overflow by fraction", "9223372036.854775807s" },
	};

	EACH(i, cases) {
		struct slu_err err = { 0 };
		slu_time got = -7;

		if (parse_duration(slice_of(cases[i].text), &got, &err) != SLU_EINVAL)
			test_fail(__FILE__, __LINE__, "took %s", cases[i].label);
		CHECK_EQ(SLU_EINVAL, err.code);
		CHECK_EQ(-7, got, "left as it was");
	}
}

TEST(a_refusal_names_the_value_and_what_is_right)
{
	struct slu_err err;
	slu_time t;
	uint64_t u;
	int64_t i;

	CHECK_EQ(SLU_EINVAL, parse_duration(SLICE("20"), &t, &err));
	CHECK_STR("\"20\": expected a duration with its unit (d, h, m, s, ms, us, ns), "
		  "as 100ms, 1.5s or 1h30m",
		  err.text);
	CHECK_EQ(SLU_EINVAL, parse_size(SLICE("20x"), &u, &err));
	CHECK_STR("\"20x\": expected a size, a whole number of bytes or of k, M, G, T "
		  "(times 1024), as 4096, 512k or 64M",
		  err.text);
	CHECK_EQ(SLU_EINVAL, parse_u64(SLICE("70000"), 1, 65535, &u, &err));
	CHECK_STR("\"70000\": expected a number from 1 to 65535", err.text);
	CHECK_EQ(SLU_EINVAL, parse_i64(SLICE("x"), -5, 5, &i, &err));
	CHECK_STR("\"x\": expected a number from -5 to 5", err.text);
}

TEST(a_message_shows_a_value_safely)
{
	static const char long_value[] = "0123456789012345678901234567890123456789xyz";
	char shown[SHOWN_TEXT];

	CHECK_STR("\"\"", parse_shown((struct slice){ 0 }, shown));
	CHECK_STR("\"a?[31m?b??\"", parse_shown(SLICE("a\033[31m\nb\303\274"), shown));
	CHECK_STR("\"a?b\"", parse_shown(SLICE("a\0b"), shown));
	CHECK_STR("\"012345678901234567890123456789012345678901...\"",
		  parse_shown(SLICE("012345678901234567890123456789012345678901234567"),
			      shown));
	CHECK(strlen(parse_shown(SLICE(long_value), shown)) < SHOWN_TEXT);
}

TEST(a_slice_ends_where_it_says)
{
	slu_time t;
	uint64_t u;

	CHECK_EQ(0, parse_duration((struct slice){ "1s5", 2 }, &t, NULL));
	CHECK_EQ(SLU_SEC, t);
	CHECK_EQ(0, parse_size((struct slice){ "12MB", 3 }, &u, NULL));
	CHECK_EQ(12 << 20, u);
	CHECK_EQ(0, parse_u64((struct slice){ "1234", 2 }, 0, 99, &u, NULL));
	CHECK_EQ(12, u);
	CHECK_EQ(SLU_EINVAL, parse_duration(SLICE("1s\0"), &t, NULL));
	CHECK_EQ(SLU_EINVAL, parse_size(SLICE("1k\0"), &u, NULL));
	CHECK_EQ(SLU_EINVAL, parse_duration((struct slice){ 0 }, &t, NULL));
	CHECK_EQ(SLU_EINVAL, parse_size((struct slice){ 0 }, &u, NULL));
}

TEST(sizes_are_powers_of_1024)
{
	static const struct {
		const char *text;
		uint64_t want;
	} cases[] = {
		{ "0", 0 },
		{ "4096", 4096 },
		{ "4096B", 4096 },
		{ "512k", 512 << 10 },
		{ "512K", 512 << 10 },
		{ "512KB", 512 << 10 },
		{ "512KiB", 512 << 10 },
		{ "512kib", 512 << 10 },
		{ "64M", 64 << 20 },
		{ "64MB", 64 << 20 },
		{ "64m", 64 << 20 },
		{ "1GiB", 1 << 30 },
		{ "1G", 1 << 30 },
		{ "3T", (uint64_t)3 << 40 },
		{ "16777215T", (uint64_t)16777215 << 40 },
		{ "18446744073709551615", UINT64_MAX },
	};

	EACH(i, cases) {
		uint64_t got = 1;

		if (parse_size(slice_of(cases[i].text), &got, NULL))
			test_fail(__FILE__, __LINE__, "refused %s", cases[i].text);
		CHECK_EQ(cases[i].want, got);
	}
}

TEST(what_is_no_size_is_refused)
{
	static const char *const cases[] = {
		"", "k", "B", "-1", "+1", "1.5G", "1 k", " 1k", "1k ", "1x", "1kk",
		"1iB", "1kiBs", "1KiBB", "01", "0x10", "16777216T",
		"18446744073709551616", "18014398509481984k"
	};

	EACH(i, cases) {
		uint64_t got = 7;

		if (parse_size(slice_of(cases[i]), &got, NULL) != SLU_EINVAL)
			test_fail(__FILE__, __LINE__, "took \"%s\"", cases[i]);
		CHECK_EQ(7, got, "left as it was");
	}
}

TEST(unsigned_numbers_are_strict_and_bounded)
{
	static const struct {
		const char *text;
		uint64_t min, max;
		bool good;
		uint64_t want;
	} cases[] = {
		{ "0", 0, 0, true, 0 },
		{ "10", 10, 20, true, 10 },
		{ "20", 10, 20, true, 20 },
		{ "9", 10, 20, false, 0 },
		{ "21", 10, 20, false, 0 },
		{ "18446744073709551615", 0, UINT64_MAX, true, UINT64_MAX },
		{ "18446744073709551616", 0, UINT64_MAX, false, 0 },
		{ "99999999999999999999", 0, UINT64_MAX, false, 0 },
		{ "", 0, 9, false, 0 },
		{ "-0", 0, 9, false, 0 },
		{ "+1", 0, 9, false, 0 },
		{ "01", 0, 9, false, 0 },
		{ "1 ", 0, 9, false, 0 },
		{ " 1", 0, 9, false, 0 },
		{ "1.0", 0, 9, false, 0 },
		{ "0x1", 0, 9, false, 0 },
	};

	EACH(i, cases) {
		uint64_t got = 7;
		const int rc = parse_u64(slice_of(cases[i].text), cases[i].min,
					 cases[i].max, &got, NULL);

		CHECK_EQ(cases[i].good ? 0 : SLU_EINVAL, rc);
		CHECK_EQ(cases[i].good ? cases[i].want : 7, got);
	}
}

TEST(signed_numbers_are_strict_and_bounded)
{
	static const struct {
		const char *text;
		int64_t min, max;
		bool good;
		int64_t want;
	} cases[] = {
		{ "0", -1, 1, true, 0 },
		{ "-5", -5, 5, true, -5 },
		{ "5", -5, 5, true, 5 },
		{ "-6", -5, 5, false, 0 },
		{ "6", -5, 5, false, 0 },
		{ "9223372036854775807", INT64_MIN, INT64_MAX, true, INT64_MAX },
		{ "-9223372036854775808", INT64_MIN, INT64_MAX, true, INT64_MIN },
		{ "9223372036854775808", INT64_MIN, INT64_MAX, false, 0 },
		{ "-9223372036854775809", INT64_MIN, INT64_MAX, false, 0 },
		{ "-0", -5, 5, false, 0 },
		{ "-", -5, 5, false, 0 },
		{ "--1", -5, 5, false, 0 },
		{ "-01", -5, 5, false, 0 },
		{ "", -5, 5, false, 0 },
		{ "1-", -5, 5, false, 0 },
	};

	EACH(i, cases) {
		int64_t got = 7;
		const int rc = parse_i64(slice_of(cases[i].text), cases[i].min,
					 cases[i].max, &got, NULL);

		CHECK_EQ(cases[i].good ? 0 : SLU_EINVAL, rc);
		CHECK_EQ(cases[i].good ? cases[i].want : 7, got);
	}
}

TEST(durations_are_shown_the_short_way)
{
	static const struct {
		slu_time t;
		const char *want;
	} cases[] = {
		{ 0, "0s" },
		{ 1, "1ns" },
		{ 1500, "1.5us" },
		{ 100 * SLU_MS, "100ms" },
		{ 20 * SLU_SEC, "20s" },
		{ 1500 * SLU_MS, "1.5s" },
		{ SLU_SEC + 1, "1.000000001s" },
		{ 90 * SLU_SEC, "1m30s" },
		{ SLU_HOUR + 30 * SLU_MIN, "1h30m" },
		{ SLU_HOUR + SLU_MS, "1h1ms" },
		{ 7 * DAY, "7d" },
		{ SLU_NEVER - 1, "106751d23h47m16.854775806s" },
		{ SLU_NEVER, "never" },
		{ -1500 * SLU_MS, "-1.5s" },
		{ INT64_MIN, "-106751d23h47m16.854775808s" },
	};
	char text[DURATION_TEXT];

	EACH(i, cases)
		CHECK_STR(cases[i].want, format_duration(cases[i].t, text, sizeof text));
	CHECK_STR("1m3", format_duration(90 * SLU_SEC, text, 4));
}

TEST(sizes_are_shown_the_short_way)
{
	static const struct {
		uint64_t size;
		const char *want;
	} cases[] = {
		{ 0, "0" },
		{ 1, "1" },
		{ 1000, "1000" },
		{ 1024, "1K" },
		{ 1536 << 10, "1536K" },
		{ 64 << 20, "64M" },
		{ (uint64_t)5 << 50, "5120T" },
		{ UINT64_MAX, "18446744073709551615" },
	};
	char text[SIZE_TEXT];

	EACH(i, cases)
		CHECK_STR(cases[i].want, format_size(cases[i].size, text, sizeof text));
}

/* A number of random length, so that small ones come too. */
static uint64_t
random_number(uint64_t *state)
{
	const uint64_t v = test_random(state);

	return v >> test_random(state) % 64;
}

TEST(what_is_shown_parses_to_the_same)
{
	uint64_t state = test_seed();

	for (int i = 0; i < 100000; i++) {
		const slu_time t = (slu_time)(random_number(&state) >> 1) / 2;
		const uint64_t size = random_number(&state) << test_random(&state) % 20;
		char text[DURATION_TEXT];
		slu_time got_time;
		uint64_t got_size;

		format_duration(t, text, sizeof text);
		CHECK_EQ(0, parse_duration(slice_of(text), &got_time, NULL));
		CHECK_EQ(t, got_time);
		format_size(size, text, SIZE_TEXT);
		CHECK_EQ(0, parse_size(slice_of(text), &got_size, NULL));
		CHECK_EQ(size, got_size);
	}
}

TEST(random_text_never_breaks_a_parser)
{
	static const char letters[] = "0123456789.dhmsunkMGiB-+ ";
	uint64_t state = test_seed();

	for (int i = 0; i < 200000; i++) {
		char text[12];
		struct slice s = { text, test_random(&state) % sizeof text };
		slu_time t = 0;
		uint64_t u;
		int64_t v;

		for (size_t k = 0; k < s.n; k++)
			text[k] = letters[test_random(&state) % (sizeof letters - 1)];
		(void)parse_duration(s, &t, NULL); /* refusing is fine */
		(void)parse_size(s, &u, NULL);
		(void)parse_u64(s, 0, UINT64_MAX, &u, NULL);
		(void)parse_i64(s, INT64_MIN, INT64_MAX, &v, NULL);
		CHECK(t >= 0 && t < SLU_NEVER);
	}
}

TEST(numbers_of_every_length_are_read_and_other_letters_refused)
{
	static const char odd[] = { '/', ':', ' ', 'a', '\0', (char)0xb0, (char)0xff };
	char text[24];
	uint64_t v = 0, want = 0;

	for (size_t n = 1; n <= 20; n++) {
		want = want * 10 + n % 10;
		CHECK_EQ((int)n, snprintf(text, sizeof text, "%" PRIu64, want));
		CHECK_EQ(0, parse_u64((struct slice){ text, n }, 0, UINT64_MAX, &v, NULL));
		CHECK(v == want);
		for (size_t i = 0; i < n * COUNT(odd); i++) {
			const char good = text[i / COUNT(odd)];

			text[i / COUNT(odd)] = odd[i % COUNT(odd)];
			CHECK_EQ(SLU_EINVAL, parse_u64((struct slice){ text, n }, 0, UINT64_MAX, &v, NULL));
			text[i / COUNT(odd)] = good;
		}
	}
}
