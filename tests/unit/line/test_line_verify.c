/*
 * The check of a line's chain (line/verify.h), on groups that the test makes.
 */
#include "test.h"

#include "line/verify.h"

enum {
	GROUPS = 9
};

static struct buf groups[GROUPS + 1]; /* by number */
static char problems[2000];

/* Groups 1 to 9; 1 and 5 are openings. */
static void
before(void)
{
	struct line_mark mark = { 0 };
	uint64_t epoch = 0;

	for (uint64_t n = 1; n <= GROUPS; n++) {
		const bool opening = n == 1 || n == 5;
		struct line_group g = {
			.opening = opening,
			.number = n,
			.epoch = epoch += opening,
			.mark = { .put = 1000 + n },
			.before = mark,
			.begin = 1,
			.time = (int64_t)n,
			.body = opening ? (struct slice){ 0 } : SLICE("body"),
		};

		buf_init(&groups[n], 1000);
		line_group_encode(&g, &groups[n]);
		mark = g.mark;
	}
}

static void
after(void)
{
	for (uint64_t n = 1; n <= GROUPS; n++)
		buf_release(&groups[n]);
}

FIXTURE(before, after);

static void
note(void *arg, const char *text)
{
	(void)arg;
	strcat(problems, problems[0] ? "; " : "");
	strcat(problems, text);
}

/* Checks the groups whose digits are in `numbers`. */
static struct line_verify
verify(uint64_t begin, const char *numbers)
{
	struct line_verify v;

	problems[0] = '\0';
	line_verify_init(&v, begin, note, NULL);
	for (const char *p = numbers; *p; p++)
		line_verify_group(&v, (uint64_t)(*p - '0'), buf_slice(&groups[*p - '0']));
	return v;
}

TEST(LINE_5_a_whole_chain_has_no_problems)
{
	const struct line_verify v = verify(1, "123456789");

	CHECK_STR("", problems);
	CHECK_EQ(1, v.first);
	CHECK_EQ(9, v.last);
	CHECK_EQ(9, v.groups);
	CHECK_EQ(2, v.epoch);
	CHECK_EQ(9, v.time);
	CHECK_EQ(0, v.problems);
}

TEST(LINE_5_holes_are_named_by_number_unless_the_log_begins_behind_them)
{
	static const struct {
		uint64_t begin;
		const char *numbers, *want;
	} cases[] = {
		{ 1, "12356789", "group 4 is missing" },
		{ 1, "126789", "groups 3 to 5 are missing" },
		{ 1, "3456789", "groups 1 to 2 are missing" },
		{ 1, "13456", "group 2 is missing" },
		{ 1, "246", "group 1 is missing; group 3 is missing; group 5 is missing" },
		{ 6, "156789", "" },
		{ 6, "15789", "group 6 is missing" },
		{ 7, "15789", "" },
		{ 6, "19", "groups 6 to 8 are missing" },
		{ 9, "9", "" },
	};

	EACH(i, cases) {
		const struct line_verify v = verify(cases[i].begin, cases[i].numbers);

		CHECK_STR(cases[i].want, problems);
		CHECK_EQ(cases[i].want[0] == '\0', v.problems == 0);
	}
}

TEST(a_group_that_comes_again_is_ignored)
{
	CHECK_EQ(5, verify(1, "1234323451").groups);
	CHECK_STR("", problems);
}

TEST(a_damaged_group_is_named_and_the_check_goes_on_behind_it)
{
	groups[4].p[groups[4].n - 1] ^= 1;
	verify(1, "12345679");
	CHECK_STR("group 4: bad checksum; group 8 is missing", problems);
}

TEST(LINE_5_a_group_of_another_line_is_noticed)
{
	struct line_group g;

	CHECK_EQ(0, line_group_decode(&g, buf_slice(&groups[6]), NULL));
	g.mark.put++;
	buf_init(&groups[0], 1000);
	line_group_encode(&g, &groups[0]);
	buf_release(&groups[6]);
	groups[6] = groups[0];
	verify(1, "123456789");
	CHECK_STR("group 7 does not continue group 6", problems);
}

TEST(an_epoch_rises_with_openings_only)
{
	struct line_group g;

	CHECK_EQ(0, line_group_decode(&g, buf_slice(&groups[9]), NULL));
	g.epoch++;
	buf_init(&groups[0], 1000);
	line_group_encode(&g, &groups[0]);
	buf_release(&groups[9]);
	groups[9] = groups[0];
	verify(1, "123456789");
	CHECK_STR("group 9 has epoch 3; expected 2", problems);
}

TEST(a_group_at_a_wrong_place_is_named)
{
	struct line_verify v = verify(1, "123");

	line_verify_group(&v, 4, buf_slice(&groups[5]));
	CHECK_STR("group 4 has the number 5", problems);
}
