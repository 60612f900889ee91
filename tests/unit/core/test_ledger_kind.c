/*
 * Kinds of messages: core/queue/kind.h. test_ledger_model.c compares all of them with a plain model.
 */
#include "ledger_fixture.h"

#include "core/ledger/ledger_private.h"
#include "core/ledger/use.h"

#include <stdio.h>

/* A message of a kind, which begins with its mark. */
static uint64_t
put_kind(const char *kind, const char *key, int32_t prio)
{
	return put_offer((struct ledger_offer){ .share = slice_of(kind), .key = slice_of(key), .prio = prio });
}

/* Claims a message of these kinds; its id, or 0. */
static uint64_t
claim_kinds(const char *kinds)
{
	const struct ledger_taker taker = { .kinds = slice_of(kinds) };
	struct ledger_passed passed;
	struct change c;

	CHECK_EQ(0, ledger_claim_for(f.l, f.queue, &taker, f.now, &c, &passed));
	if (c.kind != CHANGE_CLAIM)
		return 0;
	apply(&c);
	f.token = c.token;
	return c.id;
}

/* PW-F17, KIND-2 */
TEST(a_claim_gets_the_best_message_of_its_kinds)
{
	const uint64_t plain = put(5), crop = put_kind("\1crop", "", 5), resize = put_kind("\1resize", "", 5),
		       urgent = put_kind("\1resize", "", 1);

	CHECK_EQ(0, claim_kinds("\1mail"));
	CHECK_EQ(0, claim_kinds("\1cro"), "a kind is not a prefix");
	CHECK_EQ(urgent, claim_kinds("\1crop\1resize"));
	CHECK_EQ(crop, claim_kinds("\1resize\1crop"));
	CHECK_EQ(resize, claim_kinds("\1resize\1crop"));
	CHECK_EQ(0, claim_kinds("\1resize\1crop"), "a message without a kind stays for others");
	CHECK_EQ(plain, claim());
}

TEST(a_claim_without_kinds_gets_every_message_in_the_order_of_the_queue)
{
	const uint64_t last = put_kind("\1a", "", 9), first = put_kind("\1b", "", 1), second = put(2), third = put_kind("\1a", "", 3),
		       fourth = put_kind("\1b", "", 3);

	CHECK_EQ(first, claim());
	CHECK_EQ(second, claim());
	CHECK_EQ(third, claim());
	CHECK_EQ(fourth, claim());
	CHECK_EQ(last, claim());
}

TEST(a_head_of_another_kind_holds_its_key)
{
	const uint64_t head = put_kind("\1a", "k", 5), behind = put_kind("\1b", "k", 5), free = put_kind("\1b", "", 9);

	CHECK_EQ(free, claim_kinds("\1b"));
	CHECK_EQ(0, claim_kinds("\1b"));
	CHECK_EQ(head, claim_kinds("\1a"));
	CHECK_EQ(0, claim_kinds("\1b"), "also while it is leased");
	CHECK_EQ(0, ack_as(head, 0));
	CHECK_EQ(behind, claim_kinds("\1b"));
}

TEST(a_queue_has_so_many_kinds_and_those_it_has_go_on)
{
	struct ledger_offer more = { .id = 9999, .share = SLICE("\1one-more") };
	char kind[16];
	struct change c;

	for (int i = 0; i < KINDS_OF_QUEUE; i++) {
		(void)snprintf(kind, sizeof kind, "\1k%d", i);
		put_kind(kind, "", 5);
	}
	CHECK_EQ(KINDS_OF_QUEUE, ledger_kinds(f.l, f.queue));
	CHECK_EQ(SLU_EQUOTA, ledger_accept(f.l, f.queue, &more, f.now, &c));
	put_kind("\1k7", "", 5);
	CHECK_EQ(1, claim_kinds("\1k0"));
	CHECK_EQ(0, ack_as(1, 0));
	put_kind("\1one-more", "", 5);
	CHECK_EQ(KINDS_OF_QUEUE, ledger_kinds(f.l, f.queue));
}

/* LEDGERKIND-1 */
TEST(a_queue_without_kinds_has_nothing_of_them)
{
	put(5);
	CHECK(!ledger_queue(f.l, f.queue)->kinds);
	const uint64_t id = put_kind("\1a", "", 1);

	CHECK(ledger_queue(f.l, f.queue)->kinds);
	CHECK_EQ(id, claim());
	CHECK_EQ(0, ack_as(id, 0));
	CHECK(!ledger_queue(f.l, f.queue)->kinds);
}

TEST(a_purge_removes_what_waits_behind_its_kind)
{
	uint32_t budget = UINT32_MAX;
	struct change c;

	for (int i = 0; i < 6; i++)
		put_kind(i % 2 ? "\1a" : "\1b", i == 5 ? "k" : "", 5);
	CHECK_EQ(1, claim());
	CHECK_EQ(0, ledger_purge(f.l, f.queue, f.now, &c));
	apply(&c);
	check_sound();
	const uint64_t fresh = put_kind("\1a", "k", 5);

	CHECK(!ledger_tick(f.l, f.now, &budget, &c));
	CHECK_EQ(0, claim_kinds("\1b"));
	CHECK_EQ(fresh, claim_kinds("\1a"));
	CHECK_EQ(0, claim());
}

/* Limits and turns go on: LEDGERKIND-3. */
TEST(a_claim_of_kinds_keeps_to_the_limits)
{
	f.policy.concurrency = 2;
	f.policy.share_concurrency = 1;
	set_policy();
	const uint64_t a = put_kind("\1a", "", 5);

	put_kind("\1b", "", 5);
	const uint64_t shared = put_offer((struct ledger_offer){ .share = SLICE("team"), .prio = 5 });

	CHECK_EQ(a, claim_kinds("\1a"));
	CHECK_EQ(0, claim_kinds("\1b"), "messages with a kind are without a share, and those have one lease");
	CHECK_EQ(shared, claim());
	CHECK_EQ(0, ack_as(a, 0));
	CHECK_EQ(2, claim_kinds("\1b"));
}

TEST(a_look_at_the_queue_sees_all_kinds_in_order)
{
	uint32_t msgs[8], n;
	const uint64_t want[] = { put_kind("\1a", "", 1), put_kind("\1a", "", 2), put(3), put_kind("\1b", "", 4), put_kind("\1a", "", 5) };

	CHECK_EQ(0, ledger_peek(f.l, f.queue, msgs, 8, &n));
	CHECK_EQ(5, n);
	for (uint32_t i = 0; i < n; i++)
		CHECK_EQ(want[i], ledger_msg(f.l, msgs[i])->id);
	CHECK_EQ(0, ledger_peek(f.l, f.queue, msgs, 2, &n));
	CHECK_EQ(2, n);
	CHECK_EQ(want[1], ledger_msg(f.l, msgs[1])->id);
}
