/*
 * How a queue of the embedded broker delivers: policies, limits, holds, breakers, kinds; and messages that begin with an ack.
 */
#include "embed/kit.h"

/* ---- Policies ---- */

TEST(a_policy_is_read_as_it_was_set)
{
	const struct slu_policy set = {
		SLU_OPTIONS_INIT(struct slu_policy),
		.lease = SLU_MIN,
		.max_attempts = 7,
		.has_retry = true,
		.retry = { .kind = SLU_BACKOFF_FIXED, .base = SLU_SEC },
		.window = SLU_NOWAIT,
		.concurrency = 3,
		.attribute_rate_burst = 4,
		.attribute_rate = 2,
		.limit_attribute = "host",
		.share_weights = "gold=4,*=1",
		.rules = "risk > 0.8: high",
		.breakers = "smtp: 5 in 1m, open 30s",
		.dead_letter_queue = "Dead",
	};
	struct slu_policy got = { SLU_OPTIONS_INIT(struct slu_policy) };

	open_in(NULL);
	OK(slu_policy_set(b, "jobs", &set, &err));
	OK(slu_policy_get(b, "jobs", &got, &err));
	CHECK_EQ(sizeof got, got.struct_size);
	CHECK_EQ(SLU_MIN, got.lease);
	CHECK_EQ(7, got.max_attempts);
	CHECK_EQ(SLU_BACKOFF_FIXED, got.retry.kind);
	CHECK_EQ(SLU_NOWAIT, got.window);
	CHECK_EQ(3, got.concurrency);
	CHECK_EQ(4, got.attribute_rate_burst);
	CHECK_STR("host", got.limit_attribute);
	CHECK_STR("gold=4,*=1", got.share_weights);
	CHECK_STR("risk > 0.8: high", got.rules);
	CHECK_STR("smtp: 5 in 1m, open 30s", got.breakers);
	CHECK_STR("dead", got.dead_letter_queue);
	OK(slu_policy_set(b, "jobs", &got, &err)); /* what was read can be set */
}

TEST(zeros_are_the_defaults_and_an_older_program_gets_what_it_knows)
{
	const struct slu_policy zeros = { SLU_OPTIONS_INIT(struct slu_policy) };
	struct slu_policy got = { .struct_size = offsetof(struct slu_policy, max_runtime), .max_runtime = 5 };

	open_in(NULL);
	OK(slu_policy_set(b, "jobs", &zeros, &err));
	OK(slu_policy_get(b, "jobs", &got, &err));
	CHECK_EQ(30 * SLU_SEC, got.lease);
	CHECK_EQ(offsetof(struct slu_policy, max_runtime), got.struct_size);
	CHECK_EQ(5, got.max_runtime); /* behind its struct: not touched */
}

TEST(an_invalid_policy_is_refused_with_its_reason)
{
	static const struct {
		const char *label, *says;
		struct slu_policy p;
	} cases[] = {
		{ "weights", "share_weights", { .share_weights = "gold=" } },
		{ "rules", "rule", { .rules = "risk > high" } },
		{ "a burst alone", "rate_burst without rate", { .rate_burst = 2 } },
		{ "a negative lease", "lease", { .lease = -1 } },
		{ "letters to itself", "dead_letter_queue", { .dead_letter_queue = "JOBS" } },
		{ "letters to no name", "dead_letter_queue", { .dead_letter_queue = "a b" } },
		{ "a function for retries", "retry", { .has_retry = true, .retry = { .kind = SLU_BACKOFF_FUNCTION } } },
	};

	open_in(NULL);
	EACH(i, cases) {
		struct slu_policy p = cases[i].p;

		p.struct_size = sizeof p;
		CHECK_EQ(SLU_EINVAL, slu_policy_set(b, "jobs", &p, &err), cases[i].label);
		CHECK(strstr(err.text, cases[i].says));
	}
}

TEST(dead_letters_do_not_come_back_over_another_queue)
{
	const struct slu_policy to_b = { SLU_OPTIONS_INIT(struct slu_policy), .dead_letter_queue = "b" };
	const struct slu_policy to_a = { SLU_OPTIONS_INIT(struct slu_policy), .dead_letter_queue = "a" };

	open_in(NULL);
	OK(slu_policy_set(b, "a", &to_b, &err));
	CHECK_EQ(SLU_EINVAL, slu_policy_set(b, "b", &to_a, &err));
}

TEST(a_policy_outlives_the_broker)
{
	const struct slu_policy set = { SLU_OPTIONS_INIT(struct slu_policy), .concurrency = 2, .share_weights = "gold=4" };
	struct slu_policy got = { SLU_OPTIONS_INIT(struct slu_policy) };
	const char *const folder = "data";

	open_in(folder);
	OK(slu_policy_set(b, "jobs", &set, &err));
	open_in(folder);
	OK(slu_policy_get(b, "jobs", &got, &err));
	CHECK_EQ(2, got.concurrency);
	CHECK_STR("gold=4", got.share_weights);
}

/* ---- Shares, limits, holds, breakers ---- */

TEST(a_share_of_weight_two_has_two_turns)
{
	const struct slu_policy weights = { SLU_OPTIONS_INIT(struct slu_policy), .share_weights = "gold=2" };
	unsigned gold = 0;

	open_in(NULL);
	OK(slu_policy_set(b, "jobs", &weights, &err));
	for (int i = 0; i < 9; i++) {
		struct slu_put puts[] = { PUT("g", .share = "gold"), PUT("s", .share = "silver") };

		OK(slu_enqueue(b, "jobs", puts, 2, &err));
	}
	for (int i = 0; i < 9; i++) {
		struct slu_message m = take("jobs");

		gold += strcmp(m.share, "gold") == 0;
		slu_message_release(&m);
	}
	CHECK_EQ(6, gold);
}

TEST(a_limit_is_kept_and_shown)
{
	const struct slu_policy one = { SLU_OPTIONS_INIT(struct slu_policy), .concurrency = 1 };
	struct slu_put puts[] = { PUT("a", .share = "x"), PUT("b", .share = "x") };
	struct slu_message m, other;
	struct slu_why_answer why;
	struct slu_use uses[8];
	size_t n;

	open_in(NULL);
	CHECK_EQ(SLU_ENOTFOUND, slu_limits(b, "jobs", NULL, uses, 8, &n, &err));
	OK(slu_policy_set(b, "jobs", &one, &err));
	OK(slu_enqueue(b, "jobs", puts, 2, &err));
	m = take("jobs");
	OK(slu_claim(b, "jobs", NULL, &other, 1, &n, &err));
	CHECK_EQ(0, n);
	OK(slu_why(b, "jobs", puts[1].id, &why, &err));
	CHECK_STR("limit", why.reason);
	OK(slu_limits(b, "jobs", NULL, uses, 8, &n, &err));
	CHECK_EQ(2, n);
	CHECK_STR("queue", uses[0].scope);
	CHECK_EQ(1, uses[0].leased);
	CHECK_EQ(1, uses[0].concurrency);
	CHECK_STR("share", uses[1].scope);
	CHECK_STR("x", uses[1].name);
	OK(slu_ack(b, &m, NULL, 0, &err));
	slu_message_release(&m);
	m = take("jobs");
	slu_message_release(&m);
}

TEST(a_hold_keeps_a_share_back_until_it_ends)
{
	struct slu_hold_options hold = { SLU_OPTIONS_INIT(struct slu_hold_options), .scope = "share", .name = "x", .hold = SLU_MIN };
	struct slu_put puts[] = { PUT("a", .share = "x"), PUT("b", .share = "y") };
	struct slu_message m;
	struct slu_use uses[8];
	size_t n, holds = 0;

	open_in(NULL);
	OK(slu_enqueue(b, "jobs", puts, 2, &err));
	OK(slu_hold(b, "jobs", &hold, &err));
	m = take("jobs");
	CHECK_STR("y", m.share);
	slu_message_release(&m);
	OK(slu_claim(b, "jobs", NULL, &m, 1, &n, &err));
	CHECK_EQ(0, n);
	OK(slu_limits(b, "jobs", NULL, uses, 8, &n, &err));
	for (size_t i = 0; i < n; i++)
		holds += uses[i].is_hold && uses[i].until > 0 && strcmp(uses[i].name, "x") == 0;
	CHECK_EQ(1, holds);
	hold.hold = 0;
	OK(slu_hold(b, "jobs", &hold, &err));
	m = take("jobs");
	CHECK_STR("x", m.share);
	slu_message_release(&m);
	hold.scope = "moon";
	CHECK_EQ(SLU_EINVAL, slu_hold(b, "jobs", &hold, &err));
	CHECK_EQ(SLU_ENOTFOUND, slu_hold(b, "none", &(struct slu_hold_options){ SLU_OPTIONS_INIT(struct slu_hold_options) }, &err));
}

TEST(a_breaker_opens_by_the_reason_of_nacks)
{
	const struct slu_policy one = { SLU_OPTIONS_INIT(struct slu_policy), .breakers = "smtp: 1 in 1m, open 1h" };
	const struct slu_nack_options down = { SLU_OPTIONS_INIT(struct slu_nack_options), .has_delay = true, .reason = "smtp" };
	struct slu_hold_options mend = { SLU_OPTIONS_INIT(struct slu_hold_options), .breaker = "smtp" };
	struct slu_put put = PUT("a");
	struct slu_message m;
	struct slu_use uses[8];
	size_t n, open = 0;

	open_in(NULL);
	OK(slu_policy_set(b, "jobs", &one, &err));
	OK(slu_enqueue(b, "jobs", &put, 1, &err));
	m = take("jobs");
	OK(slu_nack(b, &m, &down, &err));
	slu_message_release(&m);
	OK(slu_claim(b, "jobs", NULL, &m, 1, &n, &err));
	CHECK_EQ(0, n);
	OK(slu_limits(b, "jobs", NULL, uses, 8, &n, &err));
	for (size_t i = 0; i < n; i++)
		open += strcmp(uses[i].breaker, "smtp") == 0;
	CHECK_EQ(1, open);
	OK(slu_hold(b, "jobs", &mend, &err));
	m = take("jobs");
	slu_message_release(&m);
	mend.breaker = "ftp";
	CHECK_EQ(SLU_ENOTFOUND, slu_hold(b, "jobs", &mend, &err));
}

TEST(rules_at_the_door_look_at_attributes)
{
	const struct slu_policy rules = { SLU_OPTIONS_INIT(struct slu_policy), .rules = "risk > 0.8: priority -9" };
	struct slu_put puts[] = { PUT("calm", .attributes = "{\"risk\":0.1}"), PUT("hot", .attributes = "{\"risk\":0.9}") };
	struct slu_message m;

	open_in(NULL);
	OK(slu_policy_set(b, "jobs", &rules, &err));
	OK(slu_enqueue(b, "jobs", puts, 2, &err));
	m = take("jobs");
	CHECK(payload_is(&m, "hot"));
	slu_message_release(&m);
}

/* ---- Kinds ---- */

TEST(a_claim_gets_the_kinds_that_it_names)
{
	struct slu_put puts[] = { PUT("cat", .kind = "resize"), PUT("dog", .kind = "crop") };
	struct slu_claim_options crop = { SLU_OPTIONS_INIT(struct slu_claim_options), .kinds = "blur,crop" };
	const struct slu_limits_options kinds = { SLU_OPTIONS_INIT(struct slu_limits_options), .kinds = true };
	struct slu_message m;
	struct slu_use uses[4];
	size_t n;

	open_in(NULL);
	OK(slu_enqueue(b, "media", puts, 2, &err));
	OK(slu_claim(b, "media", &crop, &m, 1, &n, &err));
	CHECK_EQ(1, n);
	CHECK_STR("crop", m.kind);
	CHECK_STR("", m.share);
	CHECK(payload_is(&m, "dog"));
	slu_message_release(&m);
	OK(slu_claim(b, "media", &crop, &m, 1, &n, &err));
	CHECK_EQ(0, n);
	OK(slu_limits(b, "media", &kinds, uses, 4, &n, &err));
	CHECK_EQ(2, n);
	CHECK_STR("kind", uses[0].scope);
	m = take("media");
	CHECK_STR("resize", m.kind);
	slu_message_release(&m);
	crop.kinds = "two words";
	CHECK_EQ(SLU_EINVAL, slu_claim(b, "media", &crop, &m, 1, &n, &err));
}

TEST(a_kind_and_a_share_do_not_go_together)
{
	struct slu_put put = PUT("a", .kind = "resize", .share = "x");

	open_in(NULL);
	CHECK_EQ(SLU_EINVAL, slu_enqueue(b, "media", &put, 1, &err));
	put = PUT("a", .kind = "");
	CHECK_EQ(SLU_EINVAL, slu_enqueue(b, "media", &put, 1, &err));
}

/* ---- Several queues, and messages that begin with an ack ---- */

TEST(messages_of_one_call_go_to_several_queues)
{
	struct slu_put puts[] = { PUT("a"), PUT("b", .queue = "Mail") };

	open_in(NULL);
	OK(slu_enqueue(b, "jobs", puts, 2, &err));
	CHECK_EQ(1, count("jobs"));
	CHECK_EQ(1, count("mail"));
	puts[1].queue = "a b";
	CHECK_EQ(SLU_EINVAL, slu_enqueue(b, "jobs", puts, 2, &err));
	CHECK_EQ(1, count("jobs")); /* all, or none */
}

static struct slu_finish_options
finish(struct slu_put *puts, size_t n)
{
	return (struct slu_finish_options){ SLU_OPTIONS_INIT(struct slu_finish_options), .puts = puts, .n = n };
}

TEST(an_ack_and_the_messages_that_it_begins_are_one_step)
{
	struct slu_put first = PUT("order"), next[] = { PUT("again"), PUT("mail", .queue = "mail") };
	const struct slu_finish_options o = finish(next, 2);
	const char *const folder = "data";
	struct slu_message m;

	open_in(folder);
	OK(slu_enqueue(b, "jobs", &first, 1, &err));
	m = take("jobs");
	OK(slu_finish(b, &m, &o, &err));
	CHECK(next[0].id > 0 && next[1].id > next[0].id);
	CHECK_EQ(SLU_ENOTFOUND, slu_finish(b, &m, &o, &err)); /* the message is gone */
	slu_message_release(&m);
	open_in(folder);
	CHECK_EQ(1, count("jobs"));
	CHECK_EQ(1, count("mail"));
}

TEST(a_refused_child_leaves_the_lease)
{
	const struct slu_policy one = { SLU_OPTIONS_INIT(struct slu_policy), .max_depth = 1 };
	struct slu_put put = PUT("a"), more[] = { PUT("b", .queue = "full"), PUT("c", .queue = "full") };
	struct slu_finish_options o = finish(more, 2);
	struct slu_message m;

	open_in(NULL);
	OK(slu_policy_set(b, "full", &one, &err));
	OK(slu_enqueue(b, "jobs", &put, 1, &err));
	m = take("jobs");
	CHECK_EQ(SLU_EQFULL, slu_finish(b, &m, &o, &err));
	CHECK_EQ(0, count("full"));
	more[0].batch = 7;
	CHECK_EQ(SLU_EINVAL, slu_finish(b, &m, &o, &err));
	o.n = 0;
	OK(slu_finish(b, &m, &o, &err)); /* the same as an ack */
	CHECK_EQ(0, count("jobs"));
	slu_message_release(&m);
}

TEST(a_nack_may_begin_messages_too)
{
	const struct slu_nack_options dead = { SLU_OPTIONS_INIT(struct slu_nack_options), .dead = true, .error = "no" };
	struct slu_put put = PUT("a"), alarm = PUT("look", .queue = "alarms");
	struct slu_finish_options o = finish(&alarm, 1);
	struct slu_queue_stats stats;
	struct slu_message m;

	o.nack = &dead;
	open_in(NULL);
	OK(slu_enqueue(b, "jobs", &put, 1, &err));
	m = take("jobs");
	OK(slu_finish(b, &m, &o, &err));
	slu_message_release(&m);
	OK(slu_stats(b, "jobs", &stats, &err));
	CHECK_EQ(1, stats.dead);
	CHECK_EQ(1, count("alarms"));
	CHECK_EQ(SLU_EINVAL, slu_finish(b, &m, &o, &err)); /* released */
}

TEST(dead_letters_go_to_their_queue)
{
	const struct slu_policy letters = { SLU_OPTIONS_INIT(struct slu_policy), .dead_letter_queue = "dead" };
	const struct slu_nack_options dead = { SLU_OPTIONS_INIT(struct slu_nack_options), .dead = true };
	const struct slu_claim_options wait = { SLU_OPTIONS_INIT(struct slu_claim_options), .wait = SLU_MIN };
	struct slu_put put = PUT("a");
	struct slu_message m;
	size_t n;

	open_in("data");
	OK(slu_policy_set(b, "jobs", &letters, &err));
	OK(slu_enqueue(b, "jobs", &put, 1, &err));
	m = take("jobs");
	OK(slu_nack(b, &m, &dead, &err));
	slu_message_release(&m);
	OK(slu_claim(b, "dead", &wait, &m, 1, &n, &err));
	CHECK_EQ(1, n);
	CHECK_EQ(put.id, m.id);
	slu_message_release(&m);
}
