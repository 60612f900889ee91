/*
 * What queues, shares and keys use of their limits: core/ledger/use.c.
 */
#include "ledger_fixture.h"

#include "core/ledger/use.h"

static uint64_t
put_in_share(const char *share)
{
	return put_offer((struct ledger_offer){ .share = slice_of(share) });
}

static void
hold(enum gate_kind kind, const char *name, slu_time until)
{
	const struct ledger_scope scope = { kind, slice_of(name) };
	struct change c;

	CHECK_EQ(0, ledger_hold(f.l, f.queue, &scope, until, f.now, &c));
	if (c.kind)
		apply(&c);
}

TEST(a_queue_shows_its_leases_and_tokens)
{
	struct ledger_use u;

	f.policy.concurrency = 5;
	f.policy.rate = 10;
	f.policy.rate_burst = 4;
	set_policy();
	put(5);
	put(5);
	put(5);
	CHECK(claim());
	CHECK(claim());
	ledger_use_queue(f.l, f.queue, f.now, &u);
	CHECK_EQ(3, u.messages);
	CHECK_EQ(1, u.ready);
	CHECK_EQ(2, u.leased);
	CHECK_EQ(5, u.concurrency);
	CHECK_EQ(10, u.rate);
	CHECK_EQ(4, u.burst);
	CHECK_EQ(2, u.tokens);
	ledger_use_queue(f.l, f.queue, f.now + SLU_SEC / 10, &u);
	CHECK_EQ(3, u.tokens, "a token came");
}

TEST(the_shares_nearest_to_a_limit_come_first)
{
	struct ledger_use u[3];

	f.policy.share_concurrency = 2;
	set_policy();
	for (int i = 0; i < 5; i++)
		put_in_share("many");
	put_in_share("full");
	put_in_share("full");
	put(5);
	CHECK_EQ(3, ledger_use_shares(f.l, f.queue, true, f.now, u, 3));
	CHECK(slice_eq(u[0].name, SLICE("many")));
	for (int i = 0; i < 3; i++)
		CHECK(claim()); /* many, full, plain */
	CHECK(claim());
	CHECK(claim());
	hold(GATE_SHARE, "", f.now + SLU_SEC);
	CHECK_EQ(3, ledger_use_shares(f.l, f.queue, false, f.now, u, 3));
	CHECK_EQ(0, u[0].name.n, "a hold is nearest");
	CHECK_EQ(f.now + SLU_SEC, u[0].hold);
	CHECK_EQ(2, u[1].leased);
	CHECK_EQ(3, ledger_shares(f.l, f.queue));
	CHECK_EQ(1, ledger_use_shares(f.l, f.queue, true, f.now, u, 1));
	CHECK_EQ(5, u[0].messages);
}

TEST(holds_are_listed_with_their_names_and_ends)
{
	struct ledger_use u;
	uint64_t cursor = 0;

	hold(GATE_KEY, "customer", f.now + SLU_SEC);
	hold(GATE_KEY, "customer", f.now + 2 * SLU_SEC);
	CHECK_EQ(1, ledger_holds(f.l, f.queue));
	CHECK(ledger_use_hold(f.l, f.queue, &cursor, f.now, &u));
	CHECK_EQ(GATE_KEY, u.kind);
	CHECK(slice_eq(u.name, SLICE("customer")));
	CHECK_EQ(f.now + 2 * SLU_SEC, u.hold);
	CHECK(!ledger_use_hold(f.l, f.queue, &cursor, f.now, &u));
	CHECK_EQ(0, cursor);
	cursor = 0;
	CHECK(!ledger_use_hold(f.l, f.queue, &cursor, f.now + 2 * SLU_SEC, &u));
}

TEST(the_longest_hold_is_a_limit_of_the_ledger)
{
	ledger_set_limits(f.l, &(struct ledger_limits){ .hold = SLU_HOUR });
	hold(GATE_QUEUE, "", f.now + 2 * SLU_HOUR);
	CHECK_EQ(f.now + SLU_HOUR, ledger_hold_end(f.l, f.queue, GATE_QUEUE, SLICE("")));
}
