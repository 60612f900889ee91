#include "ledger_fixture.h"

#include "core/shun.h"

static int
extend(struct fixture *f, uint64_t id, uint64_t token, slu_time lease)
{
	const struct ledger_ref ref = ref_of(f, id, token);
	struct change c;
	const int rc = ledger_extend(f->l, &ref, lease, f->now, &c);

	if (!rc)
		apply(f, &c);
	return rc;
}

TEST(a_lease_hides_a_message_until_it_ends)
{
	struct fixture f;

	setup(&f);
	const uint64_t id = put(&f, 5);

	CHECK_EQ(id, claim_for(&f, 2 * SLU_SEC));
	CHECK_EQ(f.now + 2 * SLU_SEC, view(&f, id).until);
	CHECK_EQ(f.now, view(&f, id).claimed);
	CHECK_EQ(f.now + 2 * SLU_SEC, ledger_next_due(f.l));
	CHECK_EQ(0, claim(&f), "LQ-19, I4");
	pass(&f, 2 * SLU_SEC - 1);
	CHECK_EQ(0, claim(&f), "MQ-33: not before it ends");
	pass(&f, 1); /* SH-03: a lease of 2 s expires at 2 s, without traffic */
	CHECK_EQ(MSG_READY, state(&f, id));
	CHECK_EQ(1, view(&f, id).failures);
	CHECK_EQ(id, claim(&f));
	CHECK_EQ(2, view(&f, id).attempts, "LQ-18");
	teardown(&f);
}

TEST(tokens_and_numbers_rise_together)
{
	struct fixture f;
	uint64_t last = 0;

	setup(&f);
	for (int i = 0; i < 20; i++) {
		const uint64_t id = put(&f, 5);

		CHECK(view(&f, id).number > last);
		last = view(&f, id).number;
		CHECK_EQ(id, claim(&f));
		CHECK(f.token > last);
		last = f.token;
		CHECK_EQ(0, ack_as(&f, id, f.token));
	}
	ledger_set_counter(f.l, 1000); /* a ceiling read from disk */
	ledger_set_counter(f.l, 10);
	CHECK_EQ(1001, view(&f, put(&f, 5)).number);
	CHECK_EQ(f.last_id, ledger_highest_id(f.l));
	teardown(&f);
}

TEST(only_the_holder_of_the_current_lease_may_settle)
{
	struct fixture f;
	uint64_t old;

	setup(&f);
	const uint64_t id = put(&f, 5);

	CHECK_EQ(SLU_ELEASE, ack_as(&f, id, 0), "nobody holds it");
	CHECK_EQ(SLU_ELEASE, ack_as(&f, id, 7));
	CHECK_EQ(id, claim_for(&f, SLU_SEC));
	old = f.token;
	pass(&f, SLU_SEC);
	CHECK_EQ(id, claim(&f));
	const uint64_t before = ledger_digest(f.l);

	/* I5, LQ-21, LQ-22: what a stale one sends changes nothing. */
	CHECK_EQ(SLU_ELEASE, ack_as(&f, id, old));
	CHECK_EQ(SLU_ELEASE, nack_as(&f, id, old, (struct ledger_nack){ .dead = true }));
	CHECK_EQ(SLU_ELEASE, extend(&f, id, old, SLU_HOUR));
	CHECK_EQ(before, ledger_digest(f.l));
	CHECK_EQ(0, ack_as(&f, id, f.token));
	CHECK_EQ(SLU_ENOTFOUND, ack_as(&f, id, f.token), "the second ack");
	CHECK_EQ(MSG_NONE, state(&f, id));
	teardown(&f);
}

/* L6, fault 18: the moment an op arrived decides, not when it is run. */
TEST(a_lease_ends_at_its_deadline_ticked_or_not)
{
	static const struct {
		const char *label;
		slu_time after;
		int rc;
	} cases[] = {
		{ "right before", SLU_SEC - 1, 0 },
		{ "at the deadline", SLU_SEC, SLU_ELEASE },
		{ "after it", SLU_SEC + 1, SLU_ELEASE },
	};

	EACH(i, cases) {
		struct fixture f;

		setup(&f);
		const uint64_t id = put(&f, 5);

		CHECK_EQ(id, claim_for(&f, SLU_SEC));
		f.now += cases[i].after;
		CHECK_EQ(cases[i].rc, ack_as(&f, id, f.token), cases[i].label);
		CHECK_EQ(cases[i].rc ? MSG_LEASED : MSG_NONE, state(&f, id));
		teardown(&f);
	}
}

TEST(an_ack_by_id_alone_acts_for_the_current_lease)
{
	struct fixture f;

	setup(&f);
	const uint64_t id = put(&f, 5);

	CHECK_EQ(id, claim(&f));
	f.policy.require_lease = true;
	set_policy(&f);
	CHECK_EQ(SLU_ELEASE, ack_as(&f, id, 0), "the queue requires a token");
	f.policy.require_lease = false;
	set_policy(&f);
	CHECK_EQ(0, ack_as(&f, id, 0));
	CHECK_EQ(SLU_ENOTFOUND, ack_as(&f, id, 0));
	teardown(&f);
}

TEST(an_extension_moves_the_end_from_now)
{
	struct fixture f;

	setup(&f);
	const uint64_t id = put(&f, 5);

	CHECK_EQ(id, claim_for(&f, SLU_SEC));
	CHECK(!(view(&f, id).flags & MSG_EXTENDED));
	f.now += SLU_SEC / 2;
	CHECK_EQ(0, extend(&f, id, f.token, SLU_MIN));
	CHECK(view(&f, id).flags & MSG_EXTENDED);
	pass(&f, SLU_MIN - 1);
	CHECK_EQ(MSG_LEASED, state(&f, id), "not redelivered before it");
	CHECK_EQ(0, extend(&f, id, f.token, 0));
	CHECK_EQ(f.now + policy_default.lease, view(&f, id).until);
	pass(&f, policy_default.lease);
	CHECK_EQ(id, claim(&f));
	CHECK(!(view(&f, id).flags & MSG_EXTENDED));
	teardown(&f);
}

/* Invariant 13 */
TEST(what_was_not_handed_over_goes_back_to_its_place)
{
	struct fixture f;

	setup(&f);
	const uint64_t first = put(&f, 5);

	f.now += SLU_SEC;
	const uint64_t second = put(&f, 5);

	CHECK_EQ(first, claim(&f));
	const uint64_t spent = f.token;

	CHECK_EQ(0, act(&f, ledger_return, first));
	CHECK_EQ(0, view(&f, first).attempts);
	CHECK_EQ(0, view(&f, first).failures);
	CHECK_EQ(first, claim(&f), "before the second, as it was");
	CHECK(f.token > spent);
	f.token = spent;
	CHECK_EQ(SLU_ELEASE, act(&f, ledger_return, first));
	CHECK_EQ(second, claim(&f));
	teardown(&f);
}

/* ---- Streams ---- */

static uint64_t
claim_by(struct fixture *f, uint32_t flow, struct ledger_passed *passed)
{
	const struct ledger_taker taker = { .flow = flow };
	struct change c;

	CHECK_EQ(0, ledger_claim_for(f->l, f->queue, &taker, f->now, &c, passed));
	if (c.kind == CHANGE_NONE)
		return 0;
	apply(f, &c);
	f->token = c.token;
	return c.id;
}

static bool
spare(struct fixture *f, uint64_t id)
{
	const unsigned before = view(f, id).attempts;

	CHECK_EQ(0, act(f, ledger_spare, id));
	CHECK_EQ(state(f, id) == MSG_READY ? before - 1 : before, view(f, id).attempts);
	return state(f, id) == MSG_READY;
}

TEST(what_is_handed_to_a_stream_that_ends_at_once_goes_back_once)
{
	struct fixture f;

	setup(&f);
	const uint64_t id = put(&f, 5);

	claim(&f);
	f.now += LEDGER_SPARE_TIME;
	CHECK(spare(&f, id));
	CHECK_EQ(0, view(&f, id).failures);
	claim(&f);
	CHECK_EQ(0, spare(&f, id), "it was spared just now");
	pass(&f, policy_default.lease);
	CHECK_EQ(1, view(&f, id).failures);
	claim(&f);
	CHECK_EQ(0, spare(&f, id), "a lease that ran out settles nothing");
	fail(&f, id);
	claim(&f);
	CHECK_EQ(1, spare(&f, id), "a nack does");
	claim(&f);
	CHECK_EQ(0, extend(&f, id, f.token, SLU_MIN));
	CHECK_EQ(0, spare(&f, id), "it was extended");
	pass(&f, SLU_MIN);
	claim(&f);
	CHECK_EQ(1, spare(&f, id), "an extension does, too");
	teardown(&f);
}

TEST(what_a_stream_has_had_for_a_while_stays_leased)
{
	struct fixture f;

	setup(&f);
	const uint64_t id = put(&f, 5);

	claim(&f);
	f.now += LEDGER_SPARE_TIME + 1;
	CHECK(!spare(&f, id));
	pass(&f, policy_default.lease);
	CHECK_EQ(SLU_ELEASE, act(&f, ledger_spare, id));
	teardown(&f);
}

/* L13 */
TEST(a_stream_is_not_handed_at_once_what_it_has_failed)
{
	struct ledger_passed passed;
	struct fixture f;

	setup(&f);
	const uint64_t first = put(&f, 1), second = put(&f, 2), third = put(&f, 3);

	CHECK_EQ(first, claim_by(&f, 7, &passed));
	fail(&f, first);
	CHECK_EQ(second, claim_by(&f, 7, &passed));
	fail(&f, second);
	CHECK_EQ(third, claim_by(&f, 7, &passed));
	CHECK_EQ(0, claim_by(&f, 7, &passed));
	CHECK_EQ(2u, passed.n);
	CHECK_EQ(f.now + SHUN_TIME, passed.until);
	CHECK_EQ(first, claim_by(&f, 8, &passed), "others are");
	CHECK_EQ(0u, passed.n);
	CHECK_EQ(second, claim_by(&f, 0, &passed));
	fail(&f, second);
	CHECK_EQ(0, claim_by(&f, 7, &passed), "whoever failed it meanwhile");
	f.now += SHUN_TIME;
	CHECK_EQ(second, claim_by(&f, 7, &passed));
	teardown(&f);
}

TEST(what_a_stream_deferred_or_let_run_out_it_may_have_at_once)
{
	struct ledger_passed passed;
	struct fixture f;

	setup(&f);
	const uint64_t id = put(&f, 5);

	claim_by(&f, 7, &passed);
	CHECK_EQ(0, nack_as(&f, id, f.token, (struct ledger_nack){ .defer = true }));
	CHECK_EQ(id, claim_by(&f, 7, &passed));
	pass(&f, policy_default.lease);
	CHECK_EQ(id, claim_by(&f, 7, &passed));
	teardown(&f);
}

TEST(a_failing_nack_counts_and_delays_by_the_policy)
{
	struct fixture f;

	setup(&f);
	f.policy.retry.jitter = SLU_JITTER_NONE;
	set_policy(&f);
	const uint64_t id = put(&f, 5);
	const struct ledger_nack nack = { .delay = LEDGER_BY_POLICY };

	for (unsigned n = 1; n <= 4; n++) { /* MQ-32: counters and time are visible */
		const slu_time delay = SLU_SEC << (n - 1);

		CHECK_EQ(id, claim(&f));
		CHECK_EQ(0, nack_as(&f, id, f.token, nack));
		CHECK_EQ(n, view(&f, id).failures);
		CHECK_EQ(n, view(&f, id).attempts);
		CHECK_EQ(f.now + delay, view(&f, id).due);
		CHECK_EQ(MSG_DELAYED, state(&f, id));
		pass(&f, delay - 1);
		CHECK_EQ(0, claim(&f));
		pass(&f, 1);
	}
	teardown(&f);
}

TEST(jitter_is_full_by_default_and_an_explicit_delay_wins)
{
	struct fixture f;

	setup(&f);
	const uint64_t id = put(&f, 5);

	for (uint64_t i = 0; i < 3; i++) {
		const struct ledger_nack nack = {
			.delay = LEDGER_BY_POLICY,
			.random = i * 1000,
		};

		CHECK_EQ(id, claim(&f));
		CHECK_EQ(0, nack_as(&f, id, f.token, nack));
		CHECK_EQ(f.now + (slu_time)i * 1000, view(&f, id).due);
		pass(&f, SLU_MIN);
	}
	CHECK_EQ(id, claim(&f));
	CHECK_EQ(0, nack_as(&f, id, f.token, (struct ledger_nack){ .delay = 42, .random = 7 }));
	CHECK_EQ(f.now + 42, view(&f, id).due);
	teardown(&f);
}

TEST(a_defer_is_no_failure)
{
	struct fixture f;

	setup(&f);
	f.policy.max_attempts = 1;
	set_policy(&f);
	const uint64_t id = put(&f, 5);
	const struct ledger_nack nack = { .defer = true, .delay = LEDGER_BY_POLICY };

	for (unsigned n = 1; n <= 20; n++) {
		CHECK_EQ(id, claim(&f));
		CHECK_EQ(0, nack_as(&f, id, f.token, nack));
		CHECK_EQ(0, view(&f, id).failures);
		CHECK_EQ(n, view(&f, id).attempts);
	}
	teardown(&f);
}

/* Exactly N failing deliveries, whatever the mix, then the dead letter. */
TEST(max_attempts_failures_and_then_dead)
{
	static const struct {
		const char *label;
		const char *how; /* n: nack, e: lease ends, d: defer, r: return */
	} cases[] = {
		{ "nacks", "nnnnn" },
		{ "leases that ran out", "eeeee" },
		{ "a mix", "nenee" },
		{ "defers and returns between", "ndnrrenddn" },
	};

	EACH(i, cases) {
		struct fixture f;

		setup(&f);
		const uint64_t id = put(&f, 5);

		for (const char *how = cases[i].how; *how; how++) {
			CHECK_EQ(id, claim_for(&f, SLU_SEC), cases[i].label);
			if (*how == 'n')
				fail(&f, id);
			else if (*how == 'e')
				pass(&f, SLU_SEC);
			else if (*how == 'd')
				CHECK_EQ(0, nack_as(&f, id, f.token, (struct ledger_nack){ .defer = true }));
			else
				CHECK_EQ(0, act(&f, ledger_return, id));
		}
		/* LQ-37, SH-06, I8: there and nowhere else. */
		CHECK_EQ(MSG_DEAD, state(&f, id), cases[i].label);
		CHECK_EQ(DEAD_MAX_ATTEMPTS, view(&f, id).reason);
		CHECK_EQ(5, view(&f, id).failures);
		CHECK_EQ(1, count(&f, MSG_DEAD));
		CHECK_EQ(0, claim(&f));
		teardown(&f);
	}
}

TEST(a_message_may_have_its_own_limit)
{
	struct fixture f;

	setup(&f);
	const uint64_t id = put_offer(&f, (struct ledger_offer){ .max_attempts = 2 });

	CHECK_EQ(id, claim(&f));
	fail(&f, id);
	CHECK_EQ(id, claim(&f));
	fail(&f, id);
	CHECK_EQ(MSG_DEAD, state(&f, id));
	teardown(&f);
}

TEST(a_new_policy_counts_from_the_next_delivery)
{
	struct fixture f;

	setup(&f);
	const uint64_t id = put(&f, 5);

	CHECK_EQ(id, claim(&f));
	fail(&f, id);
	f.policy.lease = SLU_MIN; /* LQ-F1 */
	set_policy(&f);
	CHECK_EQ(id, claim(&f));
	CHECK_EQ(f.now + SLU_MIN, view(&f, id).until);
	fail(&f, id);
	f.policy.max_attempts = 2;
	set_policy(&f);
	CHECK_EQ(0, claim(&f), "LQ-33: at its limit it is not handed out");
	CHECK_EQ(DEAD_MAX_ATTEMPTS, view(&f, id).reason);
	teardown(&f);
}

TEST(the_last_error_is_kept_with_the_message)
{
	struct fixture f;
	struct change c;

	setup(&f);
	const uint64_t id = put(&f, 5);

	CHECK_EQ(id, claim(&f));
	const struct ledger_ref ref = ref_of(&f, id, f.token);

	CHECK_EQ(0, ledger_nack(f.l, &ref, &(struct ledger_nack){ .dead = true }, f.now, &c));
	c.where = 77;
	apply(&f, &c);
	CHECK_EQ(77, view(&f, id).error);
	CHECK_EQ(DEAD_REJECTED, view(&f, id).reason);
	teardown(&f);
}

TEST(a_redriven_message_starts_anew_and_keeps_its_history)
{
	struct fixture f;

	setup(&f);
	const uint64_t id = put_offer(&f, (struct ledger_offer){ .max_attempts = 1 });

	CHECK_EQ(SLU_ENOTFOUND, act(&f, ledger_redrive, id), "it is no dead letter");
	CHECK_EQ(id, claim(&f));
	fail(&f, id);
	const uint64_t number = view(&f, id).number;

	CHECK_EQ(SLU_ELEASE, ack_as(&f, id, f.token));
	CHECK_EQ(0, act(&f, ledger_redrive, id));
	CHECK_EQ(MSG_READY, state(&f, id));
	CHECK_EQ(0, view(&f, id).failures);
	CHECK_EQ(1, view(&f, id).attempts);
	CHECK_EQ(DEAD_NOT, view(&f, id).reason);
	CHECK(view(&f, id).number > number);
	CHECK_EQ(id, claim(&f));
	teardown(&f);
}

TEST(a_paused_queue_hands_out_nothing)
{
	struct fixture f;

	setup(&f);
	f.policy.paused = true;
	set_policy(&f);
	const uint64_t id = put(&f, 5);

	CHECK_EQ(0, claim(&f));
	f.policy.paused = false;
	set_policy(&f);
	CHECK_EQ(id, claim(&f));
	teardown(&f);
}

TEST(leases_found_at_open_get_a_grace)
{
	struct fixture f;
	struct change c;

	setup(&f);
	const uint64_t shorter = put(&f, 1), longer = put(&f, 2);

	CHECK_EQ(shorter, claim_for(&f, SLU_SEC));
	CHECK_EQ(longer, claim_for(&f, SLU_HOUR));
	const slu_time end = f.now + SLU_HOUR;

	f.now += SLU_MIN; /* the server was away */
	ledger_opened(f.l, f.now, &c);
	apply(&f, &c);
	CHECK_EQ(f.now + LEDGER_GRACE, view(&f, shorter).until);
	CHECK_EQ(end, view(&f, longer).until);
	tick(&f);
	CHECK_EQ(MSG_LEASED, state(&f, shorter));
	pass(&f, LEDGER_GRACE);
	CHECK_EQ(MSG_READY, state(&f, shorter));
	teardown(&f);
}
