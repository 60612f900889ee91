#include "ledger_fixture.h"

#include "engine/why_text.h"

static struct why_facts
why(uint64_t id)
{
	struct why_facts w;

	ledger_why(f.l, ledger_find(f.l, f.space, id), f.now, &w);
	return w;
}

static void
check_one(uint64_t id, enum why want, const char *label)
{
	const struct why_facts w = why(id);

	CHECK_EQ(want, w.facts[0].why, label);
	CHECK_EQ(want != WHY_NEXT, w.n, label);
}

static void
pause_queue(bool paused)
{
	struct change c;

	f.policy.paused = paused;
	CHECK_EQ(0, ledger_set_policy(f.l, f.queue, &f.policy, f.now, &c));
	apply(&c);
}

TEST(the_first_ready_message_is_next)
{
	check_one(put(5), WHY_NEXT, "alone");
}

TEST(messages_ahead_are_those_that_a_claim_takes_first)
{
	uint64_t ids[200];
	uint64_t random = test_seed();

	for (int i = 0; i < 200; i++)
		ids[i] = put((int32_t)(test_random(&random) % 4));
	for (uint64_t n = 0; n < 200; n++) {
		uint64_t ahead[200];
		uint64_t taken;

		for (int i = 0; i < 200; i++)
			ahead[i] = ids[i] ? why(ids[i]).facts[0].n : UINT64_MAX;
		taken = claim();
		for (int i = 0; i < 200; i++) {
			CHECK_EQ(ids[i] == taken, ahead[i] == 0, "nothing is ahead of the next one");
			ids[i] = ids[i] == taken ? 0 : ids[i];
		}
	}
}

TEST(messages_ahead_are_counted_to_10000)
{
	uint64_t last = 0;

	for (int i = 0; i <= WHY_COUNT; i++)
		last = put(5);
	CHECK_EQ(WHY_COUNT, why(last).facts[0].n, "exactly 10,000");
	last = put(5);
	CHECK_EQ(WHY_COUNT + 1, why(last).facts[0].n, "more than 10,000");
	put(1);
	CHECK_EQ(WHY_COUNT + 1, why(last).facts[0].n, "still more");
}

TEST(a_delayed_message_says_until_when)
{
	const uint64_t id = put_offer((struct ledger_offer){ .due = f.now + SLU_MIN });

	check_one(id, WHY_DELAYED, "delayed");
	CHECK_EQ(f.now + SLU_MIN, why(id).facts[0].until);
	CHECK_EQ(f.now + SLU_MIN, why(id).estimate);
	pass(SLU_MIN);
	check_one(id, WHY_NEXT, "due");
}

TEST(a_retry_says_when_it_is)
{
	const uint64_t id = put(5);
	const struct ledger_nack nack = { .delay = SLU_SEC };
	struct ledger_ref ref;
	struct change c;

	CHECK_EQ(id, claim());
	check_one(id, WHY_LEASED, "leased");
	CHECK_EQ(f.now + policy_default.lease, why(id).facts[0].until);
	ref = ref_of(id, f.token);
	CHECK_EQ(0, ledger_nack(f.l, &ref, &nack, f.now, &c));
	apply(&c);
	check_one(id, WHY_RETRY, "nacked");
	CHECK_EQ(f.now + SLU_SEC, why(id).facts[0].until);
	CHECK_EQ(1, why(id).facts[0].n, "deliveries");
}

TEST(a_held_message_names_the_head_of_its_key)
{
	const uint64_t first = put_keyed("k", 5, 0), second = put_keyed("k", 5, 0), third = put_keyed("k", 0, 0);

	CHECK_EQ(first, why(second).facts[0].id);
	CHECK_EQ(MSG_READY, why(second).facts[0].state);
	CHECK_EQ(first, claim());
	check_one(second, WHY_BEHIND, "behind a lease");
	CHECK_EQ(MSG_LEASED, why(second).facts[0].state);
	CHECK_EQ(f.now + policy_default.lease, why(second).facts[0].until);
	CHECK_EQ(1, why(second).facts[0].n);
	CHECK_EQ(2, why(third).facts[0].n, "priorities have no part in it");
	CHECK_EQ(0, ack_as(first, f.token));
	check_one(second, WHY_NEXT, "the head now");
	CHECK_EQ(second, why(third).facts[0].id);
}

TEST(a_dead_letter_says_its_reason)
{
	const uint64_t id = put(5);
	const struct ledger_nack nack = { .dead = true };
	struct ledger_ref ref;
	struct change c;

	CHECK_EQ(id, claim());
	ref = ref_of(id, f.token);
	CHECK_EQ(0, ledger_nack(f.l, &ref, &nack, f.now, &c));
	apply(&c);
	check_one(id, WHY_DEAD, "rejected");
	CHECK_EQ(DEAD_REJECTED, why(id).facts[0].n);
}

TEST(a_pause_comes_before_the_other_reasons)
{
	const uint64_t running = put(0), first = put(5), second = put(5);
	const uint64_t delayed = put_offer((struct ledger_offer){ .due = f.now + SLU_MIN });

	CHECK_EQ(running, claim());
	pause_queue(true);
	check_one(running, WHY_LEASED, "a pause does not stop it");
	check_one(first, WHY_PAUSED, "ready");
	CHECK_EQ(WHY_PAUSED, why(second).facts[0].why);
	CHECK_EQ(WHY_AHEAD, why(second).facts[1].why);
	CHECK_EQ(WHY_PAUSED, why(delayed).facts[0].why);
	CHECK_EQ(WHY_DELAYED, why(delayed).facts[1].why);
	CHECK_EQ(0, why(delayed).estimate, "a pause has no end");
	pause_queue(false);
	check_one(first, WHY_NEXT, "resumed");
}

TEST(the_estimate_follows_the_recent_pace)
{
	uint64_t last = 0;

	for (int i = 0; i < 100; i++)
		last = put(5);
	CHECK_EQ(0, why(last).estimate, "nothing was delivered yet");
	for (int i = 0; i < 20; i++) {
		claim();
		pass(SLU_SEC / 10);
	}
	CHECK_EQ(79, why(last).facts[0].n);
	CHECK_EQ(f.now + 80 * SLU_SEC / 10, why(last).estimate, "10 a second");
	pass(20 * SLU_SEC);
	CHECK_EQ(0, why(last).estimate, "nothing was delivered for long");
}

TEST(the_texts_name_everything)
{
	static const struct {
		const char *label;
		struct why_fact fact;
		const char *owner;
		const char *want;
	} cases[] = {
		{ "next", { .why = WHY_NEXT }, "", "next to be delivered" },
		{ "leased", { .why = WHY_LEASED }, "w1", "leased by w1 until 1970-01-01T00:00:00Z" },
		{ "no owner", { .why = WHY_LEASED, .until = SLU_SEC }, "", "leased until 1970-01-01T00:00:01Z" },
		{ "behind", { .why = WHY_BEHIND, .id = 7, .n = 1, .state = MSG_LEASED }, "w1", "behind message 7 of its key, which is leased by w1 until 1970-01-01T00:00:00Z" },
		{ "one of many", { .why = WHY_BEHIND, .id = 7, .n = 3, .state = MSG_DELAYED }, "", "behind message 7 of its key, which is due at 1970-01-01T00:00:00Z; 3 messages of the key are before it" },
		{ "one", { .why = WHY_AHEAD, .n = 1 }, "", "1 message is ahead" },
		{ "some", { .why = WHY_AHEAD, .n = 10000 }, "", "10000 messages are ahead" },
		{ "many", { .why = WHY_AHEAD, .n = 10001 }, "", "more than 10000 messages are ahead" },
		{ "dead", { .why = WHY_DEAD, .n = DEAD_EXPIRED }, "", "dead letter since 1970-01-01T00:00:00Z: its ttl ended" },
		{ "later", { .why = 99 }, "", "a reason of a later version" },
	};

	EACH(i, cases) {
		char text[WHY_TEXT];

		CHECK_STR(cases[i].want, why_text(&cases[i].fact, slice_of(cases[i].owner), text));
	}
	CHECK_STR("unknown", why_name(WHYS));
}
