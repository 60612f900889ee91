#include "test.h"

#include "base/nearest.h"

TEST(letters_that_differ_are_counted)
{
	static const struct {
		const char *a, *b;
		unsigned want;
	} cases[] = {
		{ "", "", 0 },
		{ "drain", "drain", 0 },
		{ "", "abc", 3 },
		{ "abc", "", 3 },
		{ "drian", "drain", 1 },
		{ "dran", "drain", 1 },
		{ "drrain", "drain", 1 },
		{ "brain", "drain", 1 },
		{ "ab", "ba", 1 },
		{ "kitten", "sitting", 3 },
	};

	EACH(i, cases) {
		CHECK_EQ(cases[i].want, edit_distance(cases[i].a, cases[i].b), cases[i].a);
		CHECK_EQ(cases[i].want, edit_distance(cases[i].b, cases[i].a), cases[i].a);
	}
}

TEST(words_beyond_the_limit_are_near_to_nothing)
{
	char longest[NEAREST_MAX + 1], longer[NEAREST_MAX + 2];

	memset(longest, 'a', sizeof longest);
	memset(longer, 'a', sizeof longer);
	longest[NEAREST_MAX] = '\0';
	longer[NEAREST_MAX + 1] = '\0';
	CHECK_EQ(0, edit_distance(longest, longest));
	CHECK_EQ(NEAREST_MAX + 1, edit_distance(longer, longer));
	CHECK_EQ(NEAREST_MAX + 1, edit_distance("a", longer));
}

TEST(the_nearest_name_is_found_or_none)
{
	static const char *const names[] = { "data", "drain", "log.level", "log.format" };
	static const struct {
		const char *written, *want;
	} cases[] = {
		{ "dta", "data" },
		{ "drian", "drain" },
		{ "log.levle", "log.level" },
		{ "log.lvl", "log.level" },
		{ "log.", "log.level" }, /* begun, and the first of those */
		{ "log.f", "log.format" },
		{ "xyz", NULL },
		{ "", NULL },
		{ "a", NULL }, /* most of it would be wrong */
		{ "completely", NULL },
	};

	EACH(i, cases) {
		struct nearest best = nearest_to(cases[i].written);

		EACH(j, names)
			nearest_try(&best, names[j]);
		CHECK_STR(cases[i].want ? cases[i].want : "none",
			  best.name ? best.name : "none");
	}
}
