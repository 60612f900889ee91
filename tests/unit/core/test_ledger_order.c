#include "ledger_fixture.h"

#include "core/ledger/ahead.h"

TEST(ready_messages_go_by_priority_then_due_then_number)
{
	uint64_t random = test_seed();
	struct ledger_view last = { .prio = INT32_MIN };

	for (int i = 0; i < 1000; i++)
		put_offer((struct ledger_offer){
			.prio = (int32_t)(test_random(&random) % 5),
			.due = f.now + (slu_time)(test_random(&random) % 20),
		});
	pass(SLU_SEC);
	for (int i = 0; i < 1000; i++) { /* MQ-19: 1,000 random items come out sorted */
		const struct ledger_view v = view(claim());

		CHECK(v.prio > last.prio ||
		      (v.prio == last.prio &&
		       (v.due > last.due || (v.due == last.due && v.number > last.number))));
		last = v;
	}
	CHECK_EQ(0, claim());
}

TEST(an_urgent_message_that_came_late_is_next)
{
	const uint64_t normal = put(5);

	CHECK_EQ(normal, claim());
	put(5);
	pass(SLU_SEC);
	const uint64_t urgent = put(0);

	CHECK_EQ(urgent, claim(), "MQ-29, MQ-39, SH-07: 0 before 5");
}

TEST(a_delayed_message_waits_for_its_time)
{
	const uint64_t id = put_offer((struct ledger_offer){ .due = f.now + SLU_MIN });

	CHECK_EQ(MSG_DELAYED, state(id));
	CHECK_EQ(f.now + SLU_MIN, ledger_next_due(f.l));
	pass(SLU_MIN - 1);
	CHECK_EQ(0, claim(), "MQ-18, SH-08, LQ-32: not before its time");
	pass(1);
	CHECK_EQ(SLU_NEVER, ledger_next_due(f.l));
	CHECK_EQ(id, claim(), "I7: and then at once");
}

TEST(a_due_in_the_past_is_now)
{
	const uint64_t first = put(5);
	const uint64_t second = put_offer((struct ledger_offer){ .prio = 5, .due = 1 });

	CHECK_EQ(f.now, view(second).due);
	CHECK_EQ(first, claim(), "nobody gets ahead by naming the past");
}

TEST(an_unkeyed_retry_takes_its_new_due_time)
{
	const uint64_t first = put(5);

	CHECK_EQ(first, claim());
	f.now += SLU_SEC;
	const uint64_t second = put(5);

	f.now += SLU_SEC;
	fail(first);
	CHECK_EQ(second, claim());
	CHECK_EQ(first, claim());
}

/* Lines of keys */

TEST(a_line_goes_by_first_due_then_number_whatever_the_priorities)
{
	const uint64_t third = put_keyed("k", 0, f.now + 3 * SLU_SEC);
	const uint64_t first = put_keyed("k", 9, f.now);
	const uint64_t second = put_keyed("k", 5, f.now + 2 * SLU_SEC);
	const uint64_t fourth = put_keyed("k", -7, f.now + 3 * SLU_SEC);
	const uint64_t want[] = { first, second, third, fourth };

	pass(SLU_MIN);
	CHECK_EQ(1, count(MSG_READY));
	CHECK_EQ(3, count(MSG_HELD));
	EACH(i, want) { /* I6, SQ-F2: priorities do not change the order in a key */
		CHECK_EQ(want[i], claim());
		CHECK_EQ(0, claim(), "one at a time");
		CHECK_EQ(0, ack_as(want[i], f.token));
	}
}

TEST(the_head_of_a_line_stands_in_the_queue_with_its_own_priority)
{
	const uint64_t slow = put_keyed("a", 9, 0);
	const uint64_t urgent = put_keyed("a", 0, 0);
	const uint64_t other = put_keyed("b", 5, 0);

	CHECK_EQ(other, claim(), "SQ-F2: an urgent one of another key overtakes");
	CHECK_EQ(slow, claim(), "what is behind does not push");
	CHECK_EQ(0, ack_as(slow, f.token));
	CHECK_EQ(urgent, claim());
}

TEST(a_delayed_message_joins_the_line_when_its_time_comes)
{
	const uint64_t later = put_keyed("k", 5, f.now + SLU_MIN);
	const uint64_t now = put_keyed("k", 5, 0);

	CHECK_EQ(MSG_READY, state(now)); /* it is not held back by the delayed one */
	CHECK_EQ(MSG_DELAYED, state(later));
	pass(SLU_MIN);
	const uint64_t last = put_keyed("k", 5, 0);

	CHECK_EQ(now, claim());
	CHECK_EQ(0, ack_as(now, f.token));
	CHECK_EQ(later, claim());
	CHECK_EQ(0, ack_as(later, f.token));
	CHECK_EQ(last, claim());
}

TEST(a_retry_holds_its_key_and_no_other)
{
	const uint64_t first = put_keyed("k", 5, 0);
	const uint64_t second = put_keyed("k", 0, 0);

	CHECK_EQ(first, claim());
	CHECK_EQ(0, nack_as(first, f.token, (struct ledger_nack){ .delay = SLU_MIN }));
	const uint64_t other = put_keyed("x", 9, 0);

	CHECK_EQ(other, claim(), "fault 21: others go on");
	CHECK_EQ(0, claim());
	CHECK_EQ(MSG_HELD, state(second));
	CHECK_EQ(MSG_DELAYED, state(first));
	pass(SLU_MIN);
	CHECK_EQ(first, claim(), "it keeps its place");
}

TEST(a_dead_letter_lets_the_next_go_and_joins_at_the_end_when_redriven)
{
	const uint64_t first = put_keyed("k", 5, 0);
	const uint64_t second = put_keyed("k", 5, 0);
	const uint64_t third = put_keyed("k", 5, 0);

	CHECK_EQ(first, claim());
	CHECK_EQ(0, nack_as(first, f.token, (struct ledger_nack){ .dead = true }));
	CHECK_EQ(second, claim());
	const uint64_t token = f.token;

	CHECK_EQ(0, act(ledger_redrive, first));
	CHECK_EQ(MSG_HELD, state(first));
	CHECK_EQ(0, ack_as(second, token));
	CHECK_EQ(third, claim());
	CHECK_EQ(0, ack_as(third, f.token));
	CHECK_EQ(first, claim());
}

TEST(a_line_goes_on_when_its_head_or_middle_is_deleted)
{
	uint64_t ids[4];

	EACH(i, ids)
		ids[i] = put_keyed("k", 5, 0);
	CHECK_EQ(0, act(ledger_delete, ids[0]));
	CHECK_EQ(0, act(ledger_delete, ids[2]));
	CHECK_EQ(ids[1], claim());
	CHECK_EQ(0, ack_as(ids[1], f.token));
	CHECK_EQ(ids[3], claim());
}

/* Twice: the keys are new at first, and known then. */
TEST(what_is_seen_ahead_of_an_accept_changes_nothing)
{
	static const char *const keys[] = { "a", "", "b", "a", "a", "c", "b", "", "a", "d", "a", "b", "e", "a", "", "f" };
	struct ledger_ahead a;
	uint64_t last[256] = { 0 }, id;
	unsigned n = 0;

	ledger_ahead_begin(&a, f.queue);
	for (uint32_t i = 0; i < 2 * COUNT(keys); i++) {
		struct ledger_offer o = { .key = slice_of(keys[i % COUNT(keys)]) };

		while (a.n < 2 * COUNT(keys) && a.n <= i + LEDGER_AHEAD)
			ledger_ahead_put(f.l, &a, slice_of(keys[a.n % COUNT(keys)]));
		o.key_hash = ledger_ahead_use(f.l, &a, i);
		CHECK_EQ(o.key.n != 0, o.key_hash != 0);
		put_offer(o);
	}
	CHECK_EQ(0, ledger_ahead_use(f.l, &a, 0), "too long ago");
	for (; (id = claim()) != 0; n++) {
		const char *const key = keys[(id - 1) % COUNT(keys)];

		CHECK(!key[0] || id > last[(unsigned char)key[0]]);
		last[(unsigned char)key[0]] = id;
		ledger_ahead_claim(f.l, f.queue);
		CHECK_EQ(0, ack_as(id, f.token));
	}
	CHECK_EQ(2 * COUNT(keys), n);
}

TEST(one_key_in_two_queues_is_two_keys)
{
	uint32_t mail;

	mail = f.queue;
	put_keyed("k", 5, 0);
	CHECK(claim());
	CHECK_EQ(0, ledger_queue_open(f.l, SLICE("shop"), SLICE("print"), &f.queue));
	const uint64_t other = put_keyed("k", 5, 0);

	CHECK_EQ(other, claim());
	CHECK(ledger_key_hash(f.l, mail, SLICE("k")) != ledger_key_hash(f.l, f.queue, SLICE("k")));
}

/* Hashes of 64 bits may be the same by chance. */
TEST(equal_hashes_serialise_in_one_queue_and_not_in_two)
{
	struct change c = { .kind = CHANGE_ACCEPT, .key = 77, .at = 1 };
	uint32_t other;

	CHECK_EQ(0, ledger_queue_open(f.l, SLICE("shop"), SLICE("print"), &other));
	for (c.id = c.number = 1; c.id <= 3; c.id = ++c.number) {
		c.queue = c.id == 3 ? other : f.queue;
		CHECK_EQ(0, ledger_replay(f.l, &c));
	}
	CHECK_EQ(MSG_READY, state(1));
	CHECK_EQ(MSG_HELD, state(2));
	CHECK_EQ(MSG_READY, state(3));
	CHECK_EQ(other, view(3).queue);
}

/* LEDGER-4: whatever the budget of a tick, a sequence is never out of order. */
TEST(a_tick_that_stops_half_way_keeps_lines_in_order)
{
	uint64_t ids[6];
	uint32_t budget;
	struct change c;

	EACH(i, ids) /* all due at one moment, the last the most urgent */
		ids[i] = put_keyed("k", -(int32_t)i, f.now + SLU_SEC);
	f.now += SLU_SEC;
	const uint64_t late = put_keyed("k", 5, 0);

	CHECK_EQ(MSG_DELAYED, state(late)); /* behind those that are due */
	budget = 1;
	CHECK(!ledger_tick(f.l, f.now, &budget, &c));
	CHECK_EQ(ids[0], claim());
	CHECK_EQ(0, ack_as(ids[0], f.token));
	tick();
	for (size_t i = 1; i < COUNT(ids); i++) {
		CHECK_EQ(ids[i], claim());
		CHECK_EQ(0, ack_as(ids[i], f.token));
	}
	CHECK_EQ(late, claim());
}

TEST(peek_shows_what_is_next_and_touches_nothing)
{
	uint32_t msgs[50], n;

	for (int i = 0; i < 200; i++)
		put((i * 37) % 11);
	const uint64_t before = ledger_digest(f.l);

	CHECK_EQ(0, ledger_peek(f.l, f.queue, msgs, 50, &n));
	CHECK_EQ(50, n);
	CHECK_EQ(before, ledger_digest(f.l));
	EACH(i, msgs) {
		struct ledger_view v;

		ledger_get(f.l, msgs[i], &v);
		CHECK_EQ(v.id, claim());
	}
}

/* The messages of the queue in that state. */
static uint64_t
queue_counts(enum msg_state state)
{
	struct ledger_queue_view v;
	uint64_t n = 0;

	ledger_queue_get(f.l, f.queue, &v);
	for (enum msg_state s = MSG_READY; s < MSG_STATES; s++)
		n += state == MSG_NONE || state == s ? v.count[s] : 0;
	return n;
}

enum {
	PAGE_LOOKS = 8000 /* entries that a page looks at */
};

/* How many messages of the queue a walk sees, each once; no page looks at more than PAGE_LOOKS entries. */
static uint32_t
walk(enum msg_state state, uint32_t max)
{
	const struct ledger_browse what = { .space = SLAB_NONE, .queue = f.queue, .state = state };
	const bool is_large = queue_counts(state) > PAGE_LOOKS;
	uint32_t msgs[1000], cursor = 0, seen = 0, before = 0;

	while (cursor != LEDGER_SCAN_END) {
		const uint32_t from = cursor;
		const uint32_t n = ledger_browse(f.l, &what, &cursor, msgs, max);

		CHECK(cursor == LEDGER_SCAN_END || !is_large || cursor - from <= PAGE_LOOKS);
		for (uint32_t i = 0; i < n; i++) {
			struct ledger_view v;

			CHECK(seen + i == 0 || msgs[i] > before);
			before = msgs[i];
			ledger_get(f.l, msgs[i], &v);
			CHECK_EQ(f.queue, v.queue);
			CHECK(state == MSG_NONE || v.state == state);
		}
		seen += n;
	}
	return seen;
}

TEST_BARE(a_walk_sees_a_queue_of_any_share_of_the_shard)
{
	static const struct {
		const char *label;
		uint32_t before, own, behind, max;
	} cases[] = {
		{ "one beside many", 20000, 1, 20000, 10 },
		{ "more than a scan looks at, few of all", 30000, 9000, 30000, 1000 },
		{ "half of the shard", 20000, 20000, 0, 300 },
		{ "nearly all of it", 3, 30000, 3, 1000 },
		{ "many that lie behind many others", 40000, 20000, 0, 7 },
	};

	EACH(i, cases) {
		uint32_t own, other;

		setup();
		own = f.queue;
		CHECK_EQ(0, ledger_queue_open(f.l, SLICE("shop"), SLICE("other"), &other));
		f.queue = other;
		for (uint32_t n = 0; n < cases[i].before; n++)
			put(5);
		f.queue = own;
		for (uint32_t n = 0; n < cases[i].own; n++)
			put_keyed(n % 3 ? "k" : "j", 5, n % 5 ? 0 : f.now + SLU_HOUR);
		f.queue = other;
		for (uint32_t n = 0; n < cases[i].behind; n++)
			put(5);
		f.queue = own;
		CHECK_EQ(cases[i].own, walk(MSG_NONE, cases[i].max), cases[i].label);
		CHECK_EQ((cases[i].own + 4) / 5, walk(MSG_DELAYED, cases[i].max), cases[i].label);
		ledger_free(f.l); /* too many to check each */
	}
}

TEST(a_walk_of_a_namespace_sees_its_queues_alone)
{
	const struct slice spaces[] = { SLICE("shop"), SLICE("else") };
	uint32_t msgs[10], cursor = 0;

	EACH(i, spaces) {
		CHECK_EQ(0, ledger_queue_open(f.l, spaces[i], SLICE("a"), &f.queue));
		put(5);
		CHECK_EQ(0, ledger_queue_open(f.l, spaces[i], SLICE("b"), &f.queue));
		put(5);
		CHECK(claim() != 0);
	}
	CHECK_EQ(2, ledger_browse(f.l, &(struct ledger_browse){ .space = f.space, .queue = SLAB_NONE }, &cursor, msgs, COUNT(msgs)));
	CHECK_EQ(LEDGER_SCAN_END, cursor);
	cursor = 0;
	CHECK_EQ(1, ledger_browse(f.l, &(struct ledger_browse){ f.space, SLAB_NONE, MSG_LEASED }, &cursor, msgs, COUNT(msgs)));
}

/* LEDGERHEAP-4: what was purged is not there, freed or not. */
TEST(a_walk_passes_over_what_was_purged)
{
	struct change c;
	uint32_t some = 3;

	for (int i = 0; i < 30; i++)
		put_keyed(i % 2 ? "a" : "b", 5, i % 3 ? 0 : f.now + SLU_HOUR);
	CHECK(claim() != 0);
	CHECK_EQ(0, ledger_purge(f.l, f.queue, f.now, &c));
	apply(&c);
	for (int i = 0; i < 4; i++)
		put_keyed(i % 2 ? "a" : "c", 5, 0);
	CHECK_EQ(5, walk(MSG_NONE, 2));
	CHECK(!ledger_tick(f.l, f.now, &some, &c));
	CHECK_EQ(5, walk(MSG_NONE, 2));
	some = UINT32_MAX;
	CHECK(!ledger_tick(f.l, f.now, &some, &c));
	CHECK_EQ(5, walk(MSG_NONE, 2));
}

TEST(a_scan_in_steps_sees_every_message_once)
{
	uint32_t msgs[7], cursor = 0, seen = 0;

	for (int i = 0; i < 100; i++)
		put_keyed(i % 2 ? "a" : "b", 5, 0);
	for (uint64_t id = 10; id < 20; id++)
		CHECK_EQ(0, act(ledger_delete, id));
	while (cursor != LEDGER_SCAN_END)
		seen += ledger_scan(f.l, &cursor, msgs, COUNT(msgs));
	CHECK_EQ(90, seen);
}
