/* Which of two policies of one queue counts, when it is sent from shard to shard. */
#include "test.h"

#include "core/queue/policy.h"

static struct policy
of(uint16_t attempts, bool paused)
{
	struct policy p = policy_default;

	p.max_attempts = attempts;
	p.paused = paused;
	return p;
}

TEST(where_it_lived_counts_if_that_is_known)
{
	const struct policy three = of(3, false);

	CHECK(policy_replaces(&three, &policy_default, true));
	CHECK(policy_replaces(&three, &policy_default, false));
	CHECK(policy_replaces(&policy_default, &three, true));
	CHECK(!policy_replaces(&policy_default, &three, false)); /* it may be the default of a queue that was never used */
	CHECK(!policy_replaces(&three, &three, true));
}

static void
check_follows(struct policy now, struct policy was, struct policy is, bool follows,
	      struct policy want)
{
	CHECK_EQ(follows, policy_follows(&now, &was, &is));
	CHECK(policy_is_same(&want, &now));
}

TEST(a_copy_follows_what_it_is_of)
{
	check_follows(of(3, false), of(3, false), of(4, false), true, of(4, false));
	check_follows(of(3, false), of(3, false), of(3, false), false, of(3, false));
	check_follows(of(5, false), of(3, false), of(4, false), false, of(5, false));
}

TEST(to_pause_a_copy_leaves_the_rest_to_follow)
{
	check_follows(of(3, true), of(3, false), of(4, false), true, of(4, true));
	check_follows(of(3, true), of(3, false), of(4, true), true, of(4, true));
	check_follows(of(3, true), of(3, false), of(3, false), false, of(3, true));
	check_follows(of(3, false), of(3, false), of(3, true), true, of(3, true));
	check_follows(of(5, true), of(3, false), of(4, false), false, of(5, true));
}

TEST(a_reason_and_an_end_go_with_the_pause)
{
	struct policy for_a_while = of(3, true), resumed = for_a_while;

	for_a_while.pause = (struct pause_note){ .until = SLU_HOUR, .reason = "release", .by = "alice" };
	CHECK(!policy_is_same(&for_a_while, &resumed));
	CHECK_EQ(0, policy_check(&for_a_while, NULL));
	check_follows(for_a_while, of(3, false), of(3, false), false, for_a_while);
	check_follows(of(3, true), of(3, true), for_a_while, true, for_a_while);
	resumed = for_a_while;
	resumed.paused = false;
	CHECK_EQ(SLU_EINVAL, policy_check(&resumed, NULL));
	policy_resume(&resumed);
	CHECK_EQ(0, policy_check(&resumed, NULL));
}

TEST(a_drain_of_a_copy_leaves_the_rest_to_follow)
{
	const struct policy not_drained = of(3, false);
	struct policy drained = of(3, false), both = of(4, true), drained_four = of(4, false);

	drained.draining = both.draining = drained_four.draining = true;
	CHECK(!policy_is_same(&drained, &not_drained));
	check_follows(drained, of(3, false), of(4, false), true, drained_four);
	check_follows(drained, of(3, false), of(4, true), true, both);
	check_follows(of(3, false), drained, of(4, true), true, of(4, true));
	check_follows(of(3, false), of(3, false), drained, true, drained);
}

TEST(tags_are_words_with_commas)
{
	static const struct {
		const char *tags;
		int rc;
	} rows[] = {
		{ "", 0 },
		{ "payments", 0 },
		{ "Payments,team=relay,a/b:c.d_e-1", 0 },
		{ ",", SLU_EINVAL },
		{ "a,", SLU_EINVAL },
		{ ",a", SLU_EINVAL },
		{ "a b", SLU_EINVAL },
		{ "<b>", SLU_EINVAL },
		{ "abcdefghijklmnopqrstuvwxyz012345", 0 },
		{ "abcdefghijklmnopqrstuvwxyz0123456", SLU_EINVAL },
	};

	EACH(i, rows) {
		struct policy p = policy_default;

		strcpy(p.tags, rows[i].tags);
		CHECK_EQ(rows[i].rc, policy_check(&p, NULL), rows[i].tags);
		CHECK_EQ(!rows[i].tags[0], policy_is_same(&p, &policy_default));
	}
}
