/*
 * Limits on the values of one attribute: core/queue/values.h. test_ledger_model.c compares all of them with a plain model.
 */
#include "ledger_fixture.h"

#include "core/ledger/ledger_private.h"
#include "core/ledger/use.h"

#include <stdio.h>

static uint64_t
put_value(const char *value, const char *share, const char *key, int32_t prio)
{
	return put_offer((struct ledger_offer){ .value = slice_of(value), .share = slice_of(share), .key = slice_of(key), .prio = prio });
}

static void
limit(uint32_t concurrency, uint32_t rate, uint32_t burst)
{
	strcpy(f.policy.limit_attribute, "host");
	f.policy.attribute_concurrency = concurrency;
	f.policy.attribute_rate = rate;
	f.policy.attribute_rate_burst = burst;
	set_policy();
}

static unsigned
claim_all(void)
{
	unsigned n = 0;

	while (claim())
		n++;
	return n;
}

TEST(a_value_has_so_many_leases_and_others_go_on)
{
	limit(2, 0, 0);
	for (int i = 0; i < 4; i++)
		put_value("crm", "", "", 5);
	const uint64_t other = put_value("fax", "", "", 9), none = put(9);

	CHECK_EQ(1, claim());
	CHECK_EQ(2, claim());
	CHECK_EQ(other, claim(), "a worse priority: the value before it is at its limit");
	CHECK_EQ(none, claim(), "a message without the attribute has no limit");
	CHECK_EQ(0, claim());
	while (ledger_woken(f.l) != SLAB_NONE)
		;
	CHECK_EQ(0, ack_as(1, 0));
	CHECK_EQ(f.queue, ledger_woken(f.l), "claims that wait are tried again");
	CHECK_EQ(3, claim());
	CHECK_EQ(0, claim());
}

TEST(the_best_message_of_a_value_goes_first)
{
	limit(1, 0, 0);
	const uint64_t low = put_value("crm", "", "", 9), high = put_value("crm", "", "", 1), first = put_value("crm", "", "", 1);

	CHECK_EQ(high, claim());
	CHECK_EQ(0, ack_as(high, 0));
	CHECK_EQ(first, claim());
	CHECK_EQ(0, ack_as(first, 0));
	CHECK_EQ(low, claim());
}

/* A value at its limit lends the turns of its shares, and keeps no key but its own. */
TEST(a_limited_value_holds_its_own_messages_alone)
{
	limit(1, 0, 0);
	const uint64_t held = put_value("crm", "a", "k", 5);
	const uint64_t behind = put_value("fax", "a", "k", 5), beside = put_value("crm", "b", "", 5), fax = put_value("fax", "b", "j", 5);

	CHECK_EQ(held, claim());
	CHECK_EQ(fax, claim(), "share b has a message of another value");
	CHECK_EQ(0, claim());
	CHECK_EQ(0, ack_as(fax, 0));
	CHECK_EQ(0, claim(), "its key is held by the leased head");
	CHECK_EQ(0, ack_as(held, 0));
	CHECK_EQ(behind, claim());
	CHECK_EQ(beside, claim());
}

TEST(a_value_is_delivered_at_its_rate)
{
	limit(0, 2, 1);
	for (int i = 0; i < 3; i++) {
		put_value("crm", "", "", 5);
		put_value("fax", "a", "", 5);
	}
	CHECK_EQ(2, claim_all());
	f.now += SLU_SEC / 2 - 1;
	CHECK_EQ(0, claim_all());
	f.now += 1;
	CHECK_EQ(2, claim_all());
}

TEST(limits_of_values_change_while_messages_wait)
{
	for (int i = 0; i < 6; i++)
		put_value(i % 2 ? "crm" : "fax", i % 3 ? "" : "a", "", 5);
	limit(1, 0, 0);
	CHECK_EQ(2, claim_all());
	limit(2, 0, 0);
	CHECK_EQ(2, claim_all());
	limit(1, 0, 0);
	CHECK_EQ(0, claim_all());
	limit(0, 0, 0);
	CHECK_EQ(2, claim_all());
}

TEST(a_purge_removes_what_waits_behind_a_value)
{
	uint32_t budget = UINT32_MAX;
	struct change c;

	limit(1, 0, 0);
	for (int i = 0; i < 6; i++)
		put_value(i % 2 ? "crm" : "fax", i % 3 ? "" : "a", i == 5 ? "k" : "", 5);
	CHECK_EQ(1, claim());
	CHECK_EQ(0, ledger_purge(f.l, f.queue, f.now, &c));
	apply(&c);
	check_sound();
	const uint64_t fresh = put_value("crm", "", "k", 5);

	CHECK(!ledger_tick(f.l, f.now, &budget, &c));
	CHECK_EQ(fresh, claim());
	CHECK_EQ(0, claim());
	CHECK_EQ(0, ack_as(1, 0));
	CHECK_EQ(0, ack_as(fresh, 0));
	CHECK(!ledger_queue(f.l, f.queue)->values); /* LEDGERVALUE-2 */
}

TEST(a_hold_keeps_a_value_back)
{
	const struct ledger_scope scope = { GATE_VALUE, SLICE("crm") };
	struct change c;

	put_value("crm", "", "", 5);
	const uint64_t fax = put_value("fax", "", "", 5);

	CHECK_EQ(0, ledger_hold(f.l, f.queue, &scope, f.now + SLU_SEC, f.now, &c));
	apply(&c);
	CHECK_EQ(fax, claim());
	CHECK_EQ(0, claim());
	pass(SLU_SEC);
	CHECK_EQ(1, claim());
}

TEST(a_hold_counts_for_a_value_that_comes_later)
{
	const struct ledger_scope scope = { GATE_VALUE, SLICE("crm") };
	struct change c;

	limit(5, 0, 0);
	CHECK_EQ(0, ledger_hold(f.l, f.queue, &scope, f.now + SLU_SEC, f.now, &c));
	apply(&c);
	const uint64_t id = put_value("crm", "", "", 5);

	CHECK_EQ(0, claim());
	f.now += SLU_SEC;
	CHECK_EQ(id, claim());
}

TEST(why_names_the_limit_of_a_value)
{
	struct why_facts w;

	limit(1, 1, 2);
	put_value("crm", "", "", 5);
	put_value("crm", "", "", 5);
	const uint64_t third = put_value("crm", "", "", 5);

	ledger_why(f.l, ledger_find(f.l, f.space, third), f.now, &w);
	CHECK_EQ(WHY_AHEAD, w.facts[0].why);
	CHECK_EQ(2, w.facts[0].n);
	CHECK_EQ(1, claim());
	ledger_why(f.l, ledger_find(f.l, f.space, third), f.now, &w);
	CHECK_EQ(WHY_LIMIT, w.facts[0].why);
	CHECK_EQ(GATE_VALUE, w.facts[0].state);
	CHECK_EQ(1, w.facts[0].n);
	CHECK_EQ(0, ack_as(1, 0));
	CHECK_EQ(2, claim());
	CHECK_EQ(0, ack_as(2, 0));
	ledger_why(f.l, ledger_find(f.l, f.space, third), f.now, &w);
	CHECK_EQ(WHY_RATE, w.facts[0].why);
	CHECK_EQ(GATE_VALUE, w.facts[0].state);
	CHECK_EQ(1, w.facts[0].n);
}

TEST(the_values_nearest_to_their_limit_are_listed_first)
{
	struct ledger_use u[2];

	limit(2, 0, 0);
	put_value("idle", "", "", 9);
	for (int i = 0; i < 3; i++)
		put_value("busy", "", "", 5);
	CHECK_EQ(2, claim_all() - 1);
	put_value("idle", "", "", 9);
	put_value("new", "", "", 9);
	CHECK_EQ(3, ledger_values(f.l, f.queue));
	CHECK_EQ(2, ledger_use_values(f.l, f.queue, f.now, u, 2));
	CHECK(slice_eq(u[0].name, SLICE("busy")) && u[0].leased == 2 && u[0].ready == 1 && u[0].messages == 3 && u[0].concurrency == 2);
	CHECK(slice_eq(u[1].name, SLICE("idle")));
}

/* What is held back costs the others nothing: a claim looks at the front, which has no message of a blocked value. */
TEST_LIMIT(a_claim_beside_100000_blocked_values_looks_at_none_of_them, 60)
{
	char value[16];

	limit(1, 0, 0);
	for (int i = 0; i < 100000; i++) {
		(void)snprintf(value, sizeof value, "v%d", i);
		put_value(value, "", "", 5);
		put_value(value, "", "", 5);
		CHECK(claim());
	}
	CHECK_EQ(100000, values_count(ledger_queue(f.l, f.queue)->values));
	CHECK_EQ(0, queue_ready(&ledger_queue(f.l, f.queue)->heaps));
	for (int i = 0; i < 1000; i++)
		put(9);
	CHECK_EQ(1000, queue_ready(&ledger_queue(f.l, f.queue)->heaps));
	CHECK_EQ(1000, claim_all());
}
