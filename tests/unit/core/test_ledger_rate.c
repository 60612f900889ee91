/*
 * Rates of deliveries and holds, of a queue, a share and a key: core/queue/gates.h. test_ledger_model.c compares all of them with
 * a plain model.
 */
#include "ledger_fixture.h"

#include "core/ledger/ledger_private.h"

#include <stdio.h>

static uint64_t
put_in_share(const char *share)
{
	return put_offer((struct ledger_offer){ .share = slice_of(share) });
}

static unsigned
claim_all(void)
{
	unsigned n = 0;

	while (claim())
		n++;
	return n;
}

static void
ack(uint64_t id)
{
	CHECK_EQ(0, ack_as(id, f.token));
}

static void
replay_open(void)
{
	struct change c;

	ledger_opened(f.l, f.now, &c);
	apply(&c);
}

TEST(a_queue_delivers_its_burst_and_then_its_rate)
{
	f.policy.rate = 2;
	f.policy.rate_burst = 3;
	set_policy();
	for (int i = 0; i < 10; i++)
		put(5);
	CHECK_EQ(3, claim_all(), "the burst");
	f.now += SLU_SEC / 2 - 1;
	CHECK_EQ(0, claim_all(), "the next token has not come");
	f.now += 1;
	CHECK_EQ(1, claim_all(), "a token each half second");
	f.now += 10 * SLU_SEC;
	CHECK_EQ(3, claim_all(), "no more than the burst is saved up");
}

TEST(the_moment_of_a_token_wakes_the_queue)
{
	f.policy.rate = 2;
	f.policy.rate_burst = 1;
	set_policy();
	put(5);
	put(5);
	CHECK(claim());
	while (ledger_woken(f.l) != SLAB_NONE)
		;
	CHECK_EQ(f.now + SLU_SEC / 2, ledger_next_due(f.l), "the shard sleeps until the token");
	f.now += SLU_SEC / 2;
	tick();
	CHECK_EQ(f.queue, ledger_woken(f.l), "a claim that waits is tried again");
	CHECK(claim());
}

TEST(a_share_at_its_rate_leaves_its_turns_to_others)
{
	f.policy.share_rate = 1;
	f.policy.share_rate_burst = 2;
	set_policy();
	for (int i = 0; i < 5; i++) {
		put_in_share("a");
		put_in_share("b");
		put(5);
	}
	CHECK_EQ(6, claim_all(), "two of each share, and of the messages without one");
	f.now += SLU_SEC;
	CHECK_EQ(3, claim_all());
}

/* A share has no messages for a moment, and comes again: its rate holds. */
TEST(a_share_keeps_its_bucket_while_it_has_no_messages)
{
	f.policy.share_rate = 1;
	f.policy.share_rate_burst = 1;
	set_policy();
	for (int i = 0; i < 5; i++) {
		const uint64_t id = put_in_share("a"), got = claim();

		CHECK_EQ(i == 0 ? id : 0, got);
		if (got)
			ack(got);
	}
}

TEST(a_key_at_its_rate_holds_back_itself_alone)
{
	uint64_t first, second, other;

	f.policy.key_rate = 1;
	f.policy.key_rate_burst = 1;
	set_policy();
	first = put_keyed("k", 5, 0);
	second = put_keyed("k", 5, 0);
	CHECK_EQ(first, claim());
	ack(first);
	CHECK_EQ(0, claim(), "its key has had its token");
	other = put_keyed("other", 9, 0);
	CHECK_EQ(other, claim());
	f.now += SLU_SEC;
	CHECK_EQ(second, claim());
}

TEST(a_message_that_a_rate_holds_back_is_still_there)
{
	struct ledger_browse what = { .space = SLAB_NONE, .queue = f.queue, .state = MSG_READY };
	struct ledger_queue_view v;
	uint32_t cursor = 0, msgs[4];
	struct why_facts w;
	uint64_t second;

	f.policy.key_rate = 1;
	f.policy.key_rate_burst = 1;
	set_policy();
	put_keyed("k", 5, 0);
	ack(claim());
	second = put_keyed("k", 5, 0);
	ledger_queue_get(f.l, f.queue, &v);
	CHECK_EQ(1, v.count[MSG_READY]);
	CHECK_EQ(1, ledger_browse(f.l, &what, &cursor, msgs, 4), "browse lists it");
	ledger_why(f.l, ledger_find(f.l, f.space, second), f.now, &w);
	CHECK_EQ(WHY_RATE, w.facts[0].why);
	CHECK_EQ(GATE_KEY, w.facts[0].state);
	CHECK_EQ(f.now + SLU_SEC, w.facts[0].until);
	CHECK_EQ(f.now + SLU_SEC, w.estimate);
}

TEST(a_purge_removes_messages_that_a_rate_holds_back)
{
	struct ledger_queue_view v;
	struct change c;

	f.policy.key_rate = 1;
	f.policy.key_rate_burst = 1;
	set_policy();
	put_keyed("k", 5, 0);
	ack(claim());
	put_keyed("k", 5, 0);
	put_keyed("k", 5, 0);
	CHECK_EQ(0, ledger_purge(f.l, f.queue, f.now, &c));
	apply(&c);
	put_keyed("k", 5, 0);
	tick();
	ledger_queue_get(f.l, f.queue, &v);
	CHECK_EQ(1, v.count[MSG_READY]);
	check_sound();
	f.now += SLU_SEC;
	CHECK_EQ(1, claim_all());
}

TEST(a_rate_that_is_taken_away_holds_nothing_back)
{
	f.policy.rate = f.policy.share_rate = f.policy.key_rate = 1;
	set_policy();
	for (int i = 0; i < 3; i++) {
		put_keyed("k", 5, 0);
		put_in_share("a");
		put(5);
	}
	CHECK_EQ(1, claim_all());
	f.policy = policy_default;
	set_policy();
	CHECK(claim_all() > 3);
	CHECK(!ledger_queue(f.l, f.queue)->gates); /* LEDGERGATE-1 */
}

/* LEDGERGATE-2 */
TEST(buckets_are_empty_after_an_open)
{
	f.policy.rate = 4;
	f.policy.rate_burst = 8;
	set_policy();
	for (int i = 0; i < 20; i++)
		put(5);
	replay_open();
	CHECK_EQ(0, claim_all());
	f.now += SLU_SEC / 4;
	CHECK_EQ(1, claim_all());
	f.now += SLU_SEC;
	CHECK_EQ(4, claim_all());
}

/* What is held back costs the others nothing: no gate is touched, however many are closed. */
TEST_LIMIT(a_claim_beside_100000_blocked_keys_looks_at_none_of_them, 60)
{
	const struct gates *g;
	uint64_t steps;
	char key[16];

	f.policy.key_rate = 1;
	f.policy.key_rate_burst = 1;
	set_policy();
	for (int i = 0; i < 100000; i++) {
		(void)snprintf(key, sizeof key, "k%d", i);
		const uint64_t id = put_keyed(key, 5, 0);

		put_keyed(key, 5, 0);
		CHECK_EQ(id, claim());
		ack(id);
	}
	g = ledger_queue(f.l, f.queue)->gates;
	CHECK_EQ(100000, g->slab.used);
	CHECK_EQ(0, claim());
	for (int i = 0; i < 1000; i++)
		put(9);
	steps = g->steps;
	CHECK_EQ(1000, claim_all());
	CHECK_EQ(steps, g->steps, "claims of other messages");
	put_keyed("fresh", 5, 0);
	CHECK(claim());
	CHECK_EQ(steps + 1, g->steps, "a claim of one key touches one gate");
	f.now += SLU_SEC;
	CHECK(claim());
	CHECK(g->steps <= steps + 2 + 2 * 256); /* a claim opens 256 gates at most; the next one goes on */
}

/* GATES-1, GATES-4: a busy key keeps its gate, a quiet one loses it, by the ticks of the queue alone. */
TEST(a_gate_that_nothing_needs_is_freed)
{
	const struct gates *g;
	char key[16];

	f.policy.key_rate = 10;
	set_policy();
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(key, sizeof key, "k%d", i);
		put_keyed(key, 5, 0);
		CHECK(claim());
	}
	g = ledger_queue(f.l, f.queue)->gates;
	CHECK_EQ(1000, g->slab.used);
	f.now += 5 * SLU_SEC;
	tick();
	CHECK_EQ(1000, g->slab.used, "they may be needed again soon");
	f.now += 6 * SLU_SEC;
	tick();
	CHECK_EQ(0, g->slab.used);
	CHECK_EQ(SLU_NEVER, gates_next_due(g));
}

/* ---- Holds ---- */

static enum change_kind
hold(enum gate_kind kind, const char *name, slu_time until)
{
	const struct ledger_scope scope = { kind, slice_of(name) };
	struct change c;

	CHECK_EQ(0, ledger_hold(f.l, f.queue, &scope, until, f.now, &c));
	if (c.kind)
		apply(&c);
	return c.kind;
}

static unsigned
finish_all(void)
{
	unsigned n = 0;

	for (uint64_t id; (id = claim()) != 0; n++)
		ack(id);
	return n;
}

/* PW-F4: everything of the scope waits, and nothing else. */
TEST(a_hold_keeps_its_scope_back_until_its_end)
{
	static const struct {
		const char *label, *name;
		enum gate_kind kind;
		unsigned others; /* messages that are delivered in spite of the hold */
	} cases[] = {
		{ "key", "k", GATE_KEY, 3 },
		{ "share", "a", GATE_SHARE, 3 },
		{ "messages without a share", "", GATE_SHARE, 1 },
		{ "queue", "", GATE_QUEUE, 0 },
	};

	EACH(i, cases) {
		put_keyed("k", 5, 0);
		put_keyed("other", 5, 0);
		put(5);
		put_in_share("a");
		CHECK_EQ(CHANGE_HOLD, hold(cases[i].kind, cases[i].name, f.now + SLU_SEC), cases[i].label);
		CHECK_EQ(cases[i].others, finish_all(), cases[i].label);
		pass(SLU_SEC);
		CHECK_EQ(4 - cases[i].others, finish_all(), cases[i].label);
	}
	CHECK(!ledger_queue(f.l, f.queue)->gates); /* LEDGERGATE-1 */
}

TEST(the_later_end_of_two_holds_counts_and_an_operator_ends_it)
{
	put_keyed("k", 5, 0);
	CHECK_EQ(CHANGE_HOLD, hold(GATE_KEY, "k", f.now + 10 * SLU_SEC));
	CHECK_EQ(CHANGE_NONE, hold(GATE_KEY, "k", f.now + 5 * SLU_SEC));
	CHECK_EQ(f.now + 10 * SLU_SEC, ledger_hold_end(f.l, f.queue, GATE_KEY, SLICE("k")));
	CHECK_EQ(0, claim());
	while (ledger_woken(f.l) != SLAB_NONE)
		;
	CHECK_EQ(CHANGE_HOLD, hold(GATE_KEY, "k", 0));
	CHECK_EQ(f.queue, ledger_woken(f.l), "claims that wait are tried again");
	CHECK(claim());
	CHECK_EQ(CHANGE_NONE, hold(GATE_KEY, "k", 0), "no hold is left");
}

TEST(a_hold_lasts_at_most_15_minutes)
{
	CHECK_EQ(CHANGE_HOLD, hold(GATE_QUEUE, "", f.now + SLU_HOUR));
	CHECK_EQ(f.now + 15 * SLU_MIN, ledger_hold_end(f.l, f.queue, GATE_QUEUE, SLICE("")));
}

TEST(why_names_a_hold)
{
	const uint64_t id = put_keyed("k", 5, 0);
	struct why_facts w;

	CHECK_EQ(CHANGE_HOLD, hold(GATE_KEY, "k", f.now + SLU_SEC));
	ledger_why(f.l, ledger_find(f.l, f.space, id), f.now, &w);
	CHECK_EQ(1, w.n);
	CHECK_EQ(WHY_HOLD, w.facts[0].why);
	CHECK_EQ(GATE_KEY, w.facts[0].state);
	CHECK_EQ(f.now + SLU_SEC, w.estimate);
}
