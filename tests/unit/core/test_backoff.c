#include "test.h"

#include "core/backoff.h"

#include <limits.h>

static slu_time
tell(unsigned attempt, void *arg)
{
	const slu_time *answers = arg;

	return answers[attempt];
}

static void
check(const char *label, slu_time want, slu_time got)
{
	if (want != got)
		test_fail(__FILE__, __LINE__, "%s: want %" PRId64 ", got %" PRId64,
			  label, want, got);
}

TEST(exponential_doubles_up_to_max)
{
	static const struct {
		const char *label;
		unsigned attempt;
		slu_time want;
	} cases[] = {
		{ "first retry waits base", 1, 100 },
		{ "then doubles", 2, 200 },
		{ "and doubles again", 3, 400 },
		{ "the last below max", 4, 800 },
		{ "stops at max", 5, 1000 },
		{ "stays there", 6, 1000 },
		{ "never overflows", 4000, 1000 },
		{ "however long it goes on", UINT_MAX, 1000 },
		{ "attempt 0 is the first", 0, 100 },
	};
	const struct slu_backoff b = { .base = 100, .max = 1000 };

	EACH(i, cases) /* SQ-30: 1x, 2x, 4x */
		check(cases[i].label, cases[i].want, backoff_delay(&b, cases[i].attempt, 0));
}

TEST(with_base_1_s_and_cap_2_s_the_third_wait_is_2_s)
{
	const struct slu_backoff b = { .base = SLU_SEC, .max = 2 * SLU_SEC };

	/* SQ-31 */
	CHECK_EQ(SLU_SEC, backoff_delay(&b, 1, 0));
	CHECK_EQ(2 * SLU_SEC, backoff_delay(&b, 2, 0));
	CHECK_EQ(2 * SLU_SEC, backoff_delay(&b, 3, 0));
}

TEST(every_kind_has_its_own_sequence)
{
	static slu_time answers[] = { -1, 7, 0, 5000, -3 };
	static const struct {
		const char *label;
		struct slu_backoff b;
		slu_time want[4];
	} cases[] = {
		{ "exponential", { .kind = SLU_BACKOFF_EXPONENTIAL, .base = 300, .max = 1000 }, { 300, 600, 1000, 1000 } },
		{ "linear", { .kind = SLU_BACKOFF_LINEAR, .base = 300, .max = 1000 }, { 300, 600, 900, 1000 } },
		{ "fixed", { .kind = SLU_BACKOFF_FIXED, .base = 300, .max = 1000 }, { 300, 300, 300, 300 } },
		{ "fixed above max", { .kind = SLU_BACKOFF_FIXED, .base = 3000, .max = 1000 }, { 1000, 1000, 1000, 1000 } },
		{ "none", { .kind = SLU_BACKOFF_NONE, .base = 300, .max = 1000 }, { 0, 0, 0, 0 } },
		{ "function, capped, not below 0", { .kind = SLU_BACKOFF_FUNCTION, .max = 1000, .fn = tell, .arg = answers }, { 7, 0, 1000, 0 } },
		{ "an unknown kind is none", { .kind = (enum slu_backoff_kind)99, .base = 300, .max = 1000 }, { 0, 0, 0, 0 } },
	};

	EACH(i, cases)
		EACH(n, cases[i].want)
			check(cases[i].label, cases[i].want[n], backoff_delay(&cases[i].b, (unsigned)n + 1, 0));
}

TEST(no_kind_overflows)
{
	static const struct {
		const char *label;
		enum slu_backoff_kind kind;
		slu_time base;
		slu_time max;
		unsigned attempt;
		slu_time want;
	} cases[] = {
		{ "doubling past the end", SLU_BACKOFF_EXPONENTIAL, SLU_NEVER / 2 + 1, SLU_NEVER, 2, SLU_NEVER },
		{ "doubling 1 ns for ever", SLU_BACKOFF_EXPONENTIAL, 1, SLU_NEVER, 64, SLU_NEVER },
		{ "the last double that fits", SLU_BACKOFF_EXPONENTIAL, 1, SLU_NEVER, 63, (slu_time)1 << 62 },
		{ "a base of never", SLU_BACKOFF_EXPONENTIAL, SLU_NEVER, SLU_NEVER, 9, SLU_NEVER },
		{ "doubling nothing", SLU_BACKOFF_EXPONENTIAL, 0, SLU_NEVER, 9, 0 },
		{ "a line past the end", SLU_BACKOFF_LINEAR, SLU_NEVER / 3, SLU_NEVER, 4, SLU_NEVER },
		{ "a line just up to it", SLU_BACKOFF_LINEAR, SLU_NEVER / 3, SLU_NEVER, 3, SLU_NEVER / 3 * 3 },
		{ "a long line", SLU_BACKOFF_LINEAR, SLU_HOUR, SLU_NEVER, UINT_MAX, SLU_NEVER },
		{ "a max of 0", SLU_BACKOFF_LINEAR, SLU_HOUR, 0, 3, 0 },
	};

	EACH(i, cases) {
		const struct slu_backoff b = {
			.kind = cases[i].kind,
			.base = cases[i].base,
			.max = cases[i].max,
		};

		check(cases[i].label, cases[i].want, backoff_delay(&b, cases[i].attempt, 0));
	}
}

TEST(full_jitter_lies_between_0_and_the_delay)
{
	const struct slu_backoff b = { .jitter = SLU_JITTER_FULL, .base = 10, .max = 1000 };
	bool seen[41] = { false };
	uint64_t dice = test_seed();

	for (int i = 0; i < 10000; i++) {
		const slu_time got = backoff_delay(&b, 3, test_random(&dice));

		CHECK(got >= 0 && got <= 40); /* SQ-30: within the stated jitter */
		seen[got] = true;
	}
	EACH(i, seen)
		CHECK(seen[i]);
}

TEST(jitter_takes_any_throw_of_any_delay)
{
	static const struct {
		const char *label;
		slu_time base;
		uint64_t random;
		slu_time want;
	} cases[] = {
		{ "the lowest", 40, 0, 0 },
		{ "the highest", 40, 40, 40 },
		{ "one above it starts again", 40, 41, 0 },
		{ "a delay of 0", 0, UINT64_MAX, 0 },
		{ "never", SLU_NEVER, UINT64_MAX, SLU_NEVER },
	};

	EACH(i, cases) {
		const struct slu_backoff b = {
			.kind = SLU_BACKOFF_FIXED,
			.jitter = SLU_JITTER_FULL,
			.base = cases[i].base,
			.max = SLU_NEVER,
		};

		check(cases[i].label, cases[i].want, backoff_delay(&b, 1, cases[i].random));
	}
}
