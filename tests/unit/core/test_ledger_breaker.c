/*
 * Circuit breakers of a queue: core/queue/breakers.h. PW-F7.
 */
#include "ledger_fixture.h"

#include "core/ledger/ledger_private.h"
#include "core/ledger/use.h"

static void
break_by(const char *rules)
{
	strcpy(f.policy.breakers, rules);
	set_policy();
}

static void
drain(void)
{
	struct change c;

	while (ledger_breaker_next(f.l, f.now, &c))
		apply(&c);
}

/* A failing nack with a reason: the message is ready again at once. Returns whether a circuit opened. */
static bool
fail_by(uint64_t id, const char *breaker, enum gate_kind kind, const char *name)
{
	const struct ledger_scope scope = { kind, slice_of(name) };
	struct change c;

	CHECK_EQ(0, ledger_breaker_fail(f.l, f.queue, &scope, slice_of(breaker), f.now, &c));
	if (c.kind)
		apply(&c);
	CHECK_EQ(0, nack_as(id, 0, (struct ledger_nack){ .delay = 0 }));
	drain();
	return c.kind == CHANGE_BREAKER;
}

static void
ack(uint64_t id)
{
	CHECK_EQ(0, ack_as(id, 0));
	drain();
}

static enum circuit_state
circuit(void)
{
	struct ledger_circuit c;
	uint64_t cursor = 0;

	return ledger_use_breaker(f.l, f.queue, &cursor, &c) ? c.state : CIRCUIT_CLOSED;
}

/* Opens the breaker "b" of the queue with one failure. Returns the message that failed. */
static uint64_t
trip(void)
{
	const uint64_t id = claim();

	CHECK(fail_by(id, "b", GATE_QUEUE, ""));
	CHECK_EQ(0, claim());
	return id;
}

TEST(rules_of_breakers_are_checked)
{
	static const char *const good[] = { "", "b: 1 in 1s, open 1s", "a.b-c_d: 100 in 1h, open 10m, by share; x: 1 in 1m, open 1m, by attribute" };
	static const char *const bad[] = { "b", "b:", "b: 0 in 1s, open 1s", "b: 1 in 1s", "b: 1 in 0s, open 1s", "b: 1 in 1s, open 25h",
					   "b: 1 in 1s, open 1s, by tenant", "b: 1 in 1s, open 1s; b: 2 in 1s, open 1s", "b: 1 in 1s, open 1s x" };

	EACH(i, good)
		CHECK_EQ(0, breakers_check(slice_of(good[i]), NULL), good[i]);
	EACH(i, bad)
		CHECK_EQ(SLU_EINVAL, breakers_check(slice_of(bad[i]), NULL), bad[i]);
}

/* BREAKERS-1 */
TEST(so_many_failures_within_a_time_open_a_breaker)
{
	break_by("b: 3 in 10s, open 1m");
	for (int i = 0; i < 5; i++)
		put_offer((struct ledger_offer){ .max_attempts = 100 });
	CHECK(!fail_by(claim(), "b", GATE_QUEUE, ""));
	CHECK(!fail_by(claim(), "b", GATE_QUEUE, ""));
	CHECK(!fail_by(claim(), "other", GATE_QUEUE, ""));
	pass(10 * SLU_SEC);
	CHECK(!fail_by(claim(), "b", GATE_QUEUE, "")); /* the first two were too long ago */
	CHECK(!fail_by(claim(), "b", GATE_QUEUE, ""));
	CHECK(fail_by(claim(), "b", GATE_QUEUE, ""));
	CHECK_EQ(CIRCUIT_OPEN, circuit());
	CHECK_EQ(0, claim());
	pass(SLU_MIN - 1);
	CHECK_EQ(0, claim());
}

/* BREAKERS-3, BREAKERS-4 */
TEST(a_half_open_breaker_lets_one_lease_through_and_its_ack_closes_it)
{
	break_by("b: 1 in 10s, open 1m");
	put(5);
	put(5);
	trip();
	pass(SLU_MIN);
	const uint64_t probe = claim();

	CHECK(probe);
	CHECK_EQ(CIRCUIT_HALF, circuit());
	CHECK_EQ(0, claim(), "one lease alone");
	while (ledger_woken(f.l) != SLAB_NONE)
		;
	ack(probe);
	CHECK_EQ(CIRCUIT_CLOSED, circuit());
	CHECK_EQ(f.queue, ledger_woken(f.l), "claims that wait are tried again");
	CHECK(claim());
}

TEST(a_nack_or_the_end_of_the_probe_opens_the_breaker_again)
{
	break_by("b: 1 in 10s, open 1m");
	put(5);
	put(5);
	trip();
	pass(SLU_MIN);
	fail(claim());
	drain();
	CHECK_EQ(CIRCUIT_OPEN, circuit());
	CHECK_EQ(0, claim());
	pass(SLU_MIN);
	CHECK(claim_for(10 * SLU_SEC));
	pass(10 * SLU_SEC); /* its lease ends */
	CHECK_EQ(CIRCUIT_OPEN, circuit());
	CHECK_EQ(0, claim());
	pass(SLU_MIN - 1);
	CHECK_EQ(0, claim());
	pass(1);
	CHECK(claim());
}

TEST(a_probe_that_is_returned_lets_another_through)
{
	break_by("b: 1 in 10s, open 1m");
	put(5);
	put(5);
	trip();
	pass(SLU_MIN);
	const uint64_t probe = claim();
	const struct ledger_ref ref = ref_of(probe, f.token);
	struct change c;

	CHECK_EQ(0, ledger_return(f.l, &ref, f.now, &c));
	apply(&c);
	CHECK_EQ(CIRCUIT_HALF, circuit());
	CHECK(claim());
	CHECK_EQ(0, claim());
}

TEST(acks_and_failures_of_leases_from_before_the_opening_do_not_count)
{
	break_by("b: 1 in 10s, open 1m");
	for (int i = 0; i < 4; i++)
		put(5);
	const uint64_t early = claim_for(SLU_HOUR), other = claim_for(SLU_HOUR);

	trip();
	ack(early);
	CHECK_EQ(CIRCUIT_OPEN, circuit());
	pass(SLU_MIN);
	const uint64_t probe = claim();

	CHECK(probe);
	CHECK(!fail_by(other, "b", GATE_QUEUE, ""));
	CHECK_EQ(CIRCUIT_HALF, circuit(), "neither an ack nor a failure of an older lease");
	CHECK_EQ(0, claim());
}

TEST(a_breaker_holds_its_scope_alone)
{
	break_by("b: 1 in 10s, open 1m, by key");
	put_keyed("k", 5, 0);
	const uint64_t other = put_keyed("j", 5, 0);

	CHECK(fail_by(claim(), "b", GATE_KEY, "k"));
	CHECK_EQ(other, claim());
	CHECK_EQ(0, claim());
	pass(SLU_MIN);
	CHECK(claim());
}

TEST(an_operator_opens_and_closes_a_breaker)
{
	const struct ledger_scope scope = { GATE_QUEUE, { 0 } };
	struct change c;

	break_by("b: 5 in 10s, open 1m");
	put(5);
	CHECK_EQ(SLU_ENOTFOUND, ledger_breaker_order(f.l, f.queue, &scope, SLICE("x"), f.now + SLU_HOUR, f.now, &c));
	CHECK_EQ(0, ledger_breaker_order(f.l, f.queue, &scope, SLICE("b"), f.now + SLU_HOUR, f.now, &c));
	apply(&c);
	CHECK_EQ(0, claim());
	CHECK_EQ(0, ledger_breaker_order(f.l, f.queue, &scope, SLICE("b"), 0, f.now, &c));
	apply(&c);
	CHECK(claim());
}

TEST(a_breaker_that_is_taken_away_holds_nothing_back)
{
	struct change c;

	break_by("b: 1 in 10s, open 1m; c: 1 in 10s, open 1m");
	put(5);
	trip();
	break_by("c: 1 in 10s, open 1m");
	CHECK(ledger_breaker_next(f.l, f.now, &c)); /* LEDGERBREAKER-5 */
	CHECK(c.kind == CHANGE_BREAKER && c.until == 0 && slice_eq(c.value, SLICE("b")));
	apply(&c);
	CHECK(!ledger_breaker_next(f.l, f.now, &c));
	CHECK(claim());
	CHECK(!ledger_queue(f.l, f.queue)->breakers); /* LEDGERBREAKER-1 */
	CHECK(!ledger_queue(f.l, f.queue)->gates);
}

TEST(why_names_a_breaker)
{
	struct why_facts w;

	break_by("b: 1 in 10s, open 1m");
	put(5);
	const uint64_t id = put(5);

	trip();
	ledger_why(f.l, ledger_find(f.l, f.space, id), f.now, &w);
	CHECK_EQ(WHY_BREAKER, w.facts[0].why);
	CHECK_EQ(GATE_QUEUE, w.facts[0].state);
	CHECK_EQ(f.now + SLU_MIN, w.facts[0].until);
	CHECK_EQ(f.now + SLU_MIN, w.estimate);
	CHECK(slice_eq(ledger_breaker_of(f.l, ledger_find(f.l, f.space, id)), SLICE("b")));
	pass(SLU_MIN);
	CHECK(claim());
	ledger_why(f.l, ledger_find(f.l, f.space, id), f.now, &w);
	CHECK_EQ(WHY_BREAKER, w.facts[0].why);
	CHECK_EQ(0, w.facts[0].until, "the probe is under way");
}

/* LEDGERBREAKER-4 */
TEST(a_probe_is_found_again_after_an_open)
{
	struct change c;

	break_by("b: 1 in 10s, open 1m");
	put(5);
	put(5);
	trip();
	pass(SLU_MIN);
	const uint64_t probe = claim_for(SLU_HOUR);

	circuit_at(ledger_queue(f.l, f.queue)->breakers, 0)->probe = SLAB_NONE; /* as after a replay */
	ledger_opened(f.l, f.now, &c);
	apply(&c);
	CHECK_EQ(0, claim());
	ack(probe);
	CHECK_EQ(CIRCUIT_CLOSED, circuit());
}
