#include "ledger_fixture.h"

#include "core/queue/shun.h"

static int
extend(uint64_t id, uint64_t token, slu_time lease)
{
	const struct ledger_ref ref = ref_of(id, token);
	struct change c;
	const int rc = ledger_extend(f.l, &ref, lease, f.now, &c);

	if (!rc)
		apply(&c);
	return rc;
}

TEST(a_lease_hides_a_message_until_it_ends)
{
	const uint64_t id = put(5);

	CHECK_EQ(id, claim_for(2 * SLU_SEC));
	CHECK_EQ(f.now + 2 * SLU_SEC, view(id).until);
	CHECK_EQ(f.now, view(id).claimed);
	CHECK_EQ(f.now + 2 * SLU_SEC, ledger_next_due(f.l));
	CHECK_EQ(0, claim(), "LQ-19, I4");
	pass(2 * SLU_SEC - 1);
	CHECK_EQ(0, claim(), "MQ-33: not before it ends");
	pass(1); /* SH-03: a lease of 2 s expires at 2 s, without traffic */
	CHECK_EQ(MSG_READY, state(id));
	CHECK_EQ(1, view(id).failures);
	CHECK_EQ(id, claim());
	CHECK_EQ(2, view(id).attempts, "LQ-18");
}

TEST(tokens_and_numbers_rise_together)
{
	uint64_t last = 0;

	for (int i = 0; i < 20; i++) {
		const uint64_t id = put(5);

		CHECK(view(id).number > last);
		last = view(id).number;
		CHECK_EQ(id, claim());
		CHECK(f.token > last);
		last = f.token;
		CHECK_EQ(0, ack_as(id, f.token));
	}
	ledger_set_counter(f.l, 1000); /* a ceiling read from disk */
	ledger_set_counter(f.l, 10);
	CHECK_EQ(1001, view(put(5)).number);
	CHECK_EQ(f.last_id, ledger_highest_id(f.l));
}

TEST(only_the_holder_of_the_current_lease_may_settle)
{
	uint64_t old;

	const uint64_t id = put(5);

	CHECK_EQ(SLU_ELEASE, ack_as(id, 0), "nobody holds it");
	CHECK_EQ(SLU_ELEASE, ack_as(id, 7));
	CHECK_EQ(id, claim_for(SLU_SEC));
	old = f.token;
	pass(SLU_SEC);
	CHECK_EQ(id, claim());
	const uint64_t before = ledger_digest(f.l);

	/* I5, LQ-21, LQ-22: what a stale one sends changes nothing. */
	CHECK_EQ(SLU_ELEASE, ack_as(id, old));
	CHECK_EQ(SLU_ELEASE, nack_as(id, old, (struct ledger_nack){ .dead = true }));
	CHECK_EQ(SLU_ELEASE, extend(id, old, SLU_HOUR));
	CHECK_EQ(before, ledger_digest(f.l));
	CHECK_EQ(0, ack_as(id, f.token));
	CHECK_EQ(SLU_ENOTFOUND, ack_as(id, f.token), "the second ack");
	CHECK_EQ(MSG_NONE, state(id));
}

/* LEDGER-6, fault 18: the moment an op arrived decides, not when it is run. */
TEST_BARE(a_lease_ends_at_its_deadline_ticked_or_not)
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
		setup();
		const uint64_t id = put(5);

		CHECK_EQ(id, claim_for(SLU_SEC));
		f.now += cases[i].after;
		CHECK_EQ(cases[i].rc, ack_as(id, f.token), cases[i].label);
		CHECK_EQ(cases[i].rc ? MSG_LEASED : MSG_NONE, state(id));
		teardown();
	}
}

TEST(an_ack_by_id_alone_acts_for_the_current_lease)
{
	const uint64_t id = put(5);

	CHECK_EQ(id, claim());
	f.policy.require_lease = true;
	set_policy();
	CHECK_EQ(SLU_ELEASE, ack_as(id, 0), "the queue requires a token");
	f.policy.require_lease = false;
	set_policy();
	CHECK_EQ(0, ack_as(id, 0));
	CHECK_EQ(SLU_ENOTFOUND, ack_as(id, 0));
}

TEST(an_extension_moves_the_end_from_now)
{
	const uint64_t id = put(5);

	CHECK_EQ(id, claim_for(SLU_SEC));
	CHECK(!(view(id).flags & MSG_EXTENDED));
	f.now += SLU_SEC / 2;
	CHECK_EQ(0, extend(id, f.token, SLU_MIN));
	CHECK(view(id).flags & MSG_EXTENDED);
	pass(SLU_MIN - 1);
	CHECK_EQ(MSG_LEASED, state(id), "not redelivered before it");
	CHECK_EQ(0, extend(id, f.token, 0));
	CHECK_EQ(f.now + policy_default.lease, view(id).until);
	pass(policy_default.lease);
	CHECK_EQ(id, claim());
	CHECK(!(view(id).flags & MSG_EXTENDED));
}

/* Invariant 13 */
TEST(what_was_not_handed_over_goes_back_to_its_place)
{
	const uint64_t first = put(5);

	f.now += SLU_SEC;
	const uint64_t second = put(5);

	CHECK_EQ(first, claim());
	const uint64_t spent = f.token;

	CHECK_EQ(0, act(ledger_return, first));
	CHECK_EQ(0, view(first).attempts);
	CHECK_EQ(0, view(first).failures);
	CHECK_EQ(first, claim(), "before the second, as it was");
	CHECK(f.token > spent);
	f.token = spent;
	CHECK_EQ(SLU_ELEASE, act(ledger_return, first));
	CHECK_EQ(second, claim());
}

/* ---- Streams ---- */

static uint64_t
claim_by(uint32_t stream_no, struct ledger_passed *passed)
{
	const struct ledger_taker taker = { .stream_no = stream_no };
	struct change c;

	CHECK_EQ(0, ledger_claim_for(f.l, f.queue, &taker, f.now, &c, passed));
	if (c.kind == CHANGE_NONE)
		return 0;
	apply(&c);
	f.token = c.token;
	return c.id;
}

static bool
spare(uint64_t id)
{
	const unsigned before = view(id).attempts;

	CHECK_EQ(0, act(ledger_spare, id));
	CHECK_EQ(state(id) == MSG_READY ? before - 1 : before, view(id).attempts);
	return state(id) == MSG_READY;
}

TEST(what_is_handed_to_a_stream_that_ends_at_once_goes_back_once)
{
	const uint64_t id = put(5);

	claim();
	f.now += LEDGER_SPARE_TIME;
	CHECK(spare(id));
	CHECK_EQ(0, view(id).failures);
	claim();
	CHECK_EQ(0, spare(id), "it was spared just now");
	pass(policy_default.lease);
	CHECK_EQ(1, view(id).failures);
	claim();
	CHECK_EQ(0, spare(id), "a lease that ran out settles nothing");
	fail(id);
	claim();
	CHECK_EQ(1, spare(id), "a nack does");
	claim();
	CHECK_EQ(0, extend(id, f.token, SLU_MIN));
	CHECK_EQ(0, spare(id), "it was extended");
	pass(SLU_MIN);
	claim();
	CHECK_EQ(1, spare(id), "an extension does, too");
}

TEST(what_a_stream_has_had_for_a_while_stays_leased)
{
	const uint64_t id = put(5);

	claim();
	f.now += LEDGER_SPARE_TIME + 1;
	CHECK(!spare(id));
	pass(policy_default.lease);
	CHECK_EQ(SLU_ELEASE, act(ledger_spare, id));
}

/* LEDGER-13 */
TEST(a_stream_is_not_handed_at_once_what_it_has_failed)
{
	struct ledger_passed passed;

	const uint64_t first = put(1), second = put(2), third = put(3);

	CHECK_EQ(first, claim_by(7, &passed));
	fail(first);
	CHECK_EQ(second, claim_by(7, &passed));
	fail(second);
	CHECK_EQ(third, claim_by(7, &passed));
	CHECK_EQ(0, claim_by(7, &passed));
	CHECK_EQ(2u, passed.n);
	CHECK_EQ(f.now + SHUN_TIME, passed.until);
	CHECK_EQ(first, claim_by(8, &passed), "others are");
	CHECK_EQ(0u, passed.n);
	CHECK_EQ(second, claim_by(0, &passed));
	fail(second);
	CHECK_EQ(0, claim_by(7, &passed), "whoever failed it meanwhile");
	f.now += SHUN_TIME;
	CHECK_EQ(second, claim_by(7, &passed));
}

TEST(what_a_stream_deferred_or_let_run_out_it_may_have_at_once)
{
	struct ledger_passed passed;

	const uint64_t id = put(5);

	claim_by(7, &passed);
	CHECK_EQ(0, nack_as(id, f.token, (struct ledger_nack){ .defer = true }));
	CHECK_EQ(id, claim_by(7, &passed));
	pass(policy_default.lease);
	CHECK_EQ(id, claim_by(7, &passed));
}

TEST(a_failing_nack_counts_and_delays_by_the_policy)
{
	f.policy.retry.jitter = SLU_JITTER_NONE;
	set_policy();
	const uint64_t id = put(5);
	const struct ledger_nack nack = { .delay = LEDGER_BY_POLICY };

	for (unsigned n = 1; n <= 4; n++) { /* MQ-32: counters and time are visible */
		const slu_time delay = SLU_SEC << (n - 1);

		CHECK_EQ(id, claim());
		CHECK_EQ(0, nack_as(id, f.token, nack));
		CHECK_EQ(n, view(id).failures);
		CHECK_EQ(n, view(id).attempts);
		CHECK_EQ(f.now + delay, view(id).due);
		CHECK_EQ(MSG_DELAYED, state(id));
		pass(delay - 1);
		CHECK_EQ(0, claim());
		pass(1);
	}
}

TEST(jitter_is_full_by_default_and_an_explicit_delay_wins)
{
	const uint64_t id = put(5);

	for (uint64_t i = 0; i < 3; i++) {
		const struct ledger_nack nack = {
			.delay = LEDGER_BY_POLICY,
			.random = i * 1000,
		};

		CHECK_EQ(id, claim());
		CHECK_EQ(0, nack_as(id, f.token, nack));
		CHECK_EQ(f.now + (slu_time)i * 1000, view(id).due);
		pass(SLU_MIN);
	}
	CHECK_EQ(id, claim());
	CHECK_EQ(0, nack_as(id, f.token, (struct ledger_nack){ .delay = 42, .random = 7 }));
	CHECK_EQ(f.now + 42, view(id).due);
}

TEST(a_defer_is_no_failure)
{
	f.policy.max_attempts = 1;
	set_policy();
	const uint64_t id = put(5);
	const struct ledger_nack nack = { .defer = true, .delay = LEDGER_BY_POLICY };

	for (unsigned n = 1; n <= 20; n++) {
		CHECK_EQ(id, claim());
		CHECK_EQ(0, nack_as(id, f.token, nack));
		CHECK_EQ(0, view(id).failures);
		CHECK_EQ(n, view(id).attempts);
	}
}

/* Exactly N failing deliveries, whatever the mix, then the dead letter. */
TEST_BARE(max_attempts_failures_and_then_dead)
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
		setup();
		const uint64_t id = put(5);

		for (const char *how = cases[i].how; *how; how++) {
			CHECK_EQ(id, claim_for(SLU_SEC), cases[i].label);
			if (*how == 'n')
				fail(id);
			else if (*how == 'e')
				pass(SLU_SEC);
			else if (*how == 'd')
				CHECK_EQ(0, nack_as(id, f.token, (struct ledger_nack){ .defer = true }));
			else
				CHECK_EQ(0, act(ledger_return, id));
		}
		/* LQ-37, SH-06, I8: there and nowhere else. */
		CHECK_EQ(MSG_DEAD, state(id), cases[i].label);
		CHECK_EQ(DEAD_MAX_ATTEMPTS, view(id).reason);
		CHECK_EQ(5, view(id).failures);
		CHECK_EQ(1, count(MSG_DEAD));
		CHECK_EQ(0, claim());
		teardown();
	}
}

TEST(a_message_may_have_its_own_limit)
{
	const uint64_t id = put_offer((struct ledger_offer){ .max_attempts = 2 });

	CHECK_EQ(id, claim());
	fail(id);
	CHECK_EQ(id, claim());
	fail(id);
	CHECK_EQ(MSG_DEAD, state(id));
}

TEST(a_new_policy_counts_from_the_next_delivery)
{
	const uint64_t id = put(5);

	CHECK_EQ(id, claim());
	fail(id);
	f.policy.lease = SLU_MIN; /* LQ-F1 */
	set_policy();
	CHECK_EQ(id, claim());
	CHECK_EQ(f.now + SLU_MIN, view(id).until);
	fail(id);
	f.policy.max_attempts = 2;
	set_policy();
	CHECK_EQ(0, claim(), "LQ-33: at its limit it is not handed out");
	CHECK_EQ(DEAD_MAX_ATTEMPTS, view(id).reason);
}

TEST(the_last_error_is_kept_with_the_message)
{
	struct change c;

	const uint64_t id = put(5);

	CHECK_EQ(id, claim());
	const struct ledger_ref ref = ref_of(id, f.token);

	CHECK_EQ(0, ledger_nack(f.l, &ref, &(struct ledger_nack){ .dead = true }, f.now, &c));
	c.where = 77;
	apply(&c);
	CHECK_EQ(77, view(id).error);
	CHECK_EQ(DEAD_REJECTED, view(id).reason);
}

TEST(a_redriven_message_starts_anew_and_keeps_its_history)
{
	const uint64_t id = put_offer((struct ledger_offer){ .max_attempts = 1 });

	CHECK_EQ(SLU_ENOTFOUND, act(ledger_redrive, id), "it is no dead letter");
	CHECK_EQ(id, claim());
	fail(id);
	const uint64_t number = view(id).number;

	CHECK_EQ(SLU_ELEASE, ack_as(id, f.token));
	CHECK_EQ(0, act(ledger_redrive, id));
	CHECK_EQ(MSG_READY, state(id));
	CHECK_EQ(0, view(id).failures);
	CHECK_EQ(1, view(id).attempts);
	CHECK_EQ(DEAD_NOT, view(id).reason);
	CHECK(view(id).number > number);
	CHECK_EQ(id, claim());
}

TEST(a_paused_queue_hands_out_nothing)
{
	f.policy.paused = true;
	set_policy();
	const uint64_t id = put(5);

	CHECK_EQ(0, claim());
	f.policy.paused = false;
	set_policy();
	CHECK_EQ(id, claim());
}

TEST(a_pause_ends_at_its_time)
{
	struct ledger_queue_view q;

	f.policy.paused = true;
	f.policy.pause = (struct pause_note){ .until = f.now + SLU_MIN, .reason = "release", .by = "alice" };
	set_policy();
	const uint64_t id = put(5);

	CHECK_EQ(f.now + SLU_MIN, ledger_next_due(f.l));
	f.now += SLU_MIN - 1;
	tick();
	CHECK_EQ(0, claim());
	f.now++;
	tick();
	CHECK_EQ(id, claim());
	ledger_queue_get(f.l, f.queue, &q);
	CHECK(!q.policy->paused && pause_note_is_empty(&q.policy->pause));
}

TEST(leases_found_at_open_get_a_grace)
{
	struct change c;

	const uint64_t shorter = put(1), longer = put(2);

	CHECK_EQ(shorter, claim_for(SLU_SEC));
	CHECK_EQ(longer, claim_for(SLU_HOUR));
	const slu_time end = f.now + SLU_HOUR;

	f.now += SLU_MIN; /* the server was away */
	ledger_opened(f.l, f.now, &c);
	apply(&c);
	CHECK_EQ(f.now + LEDGER_GRACE, view(shorter).until);
	CHECK_EQ(end, view(longer).until);
	tick();
	CHECK_EQ(MSG_LEASED, state(shorter));
	pass(LEDGER_GRACE);
	CHECK_EQ(MSG_READY, state(shorter));
}
