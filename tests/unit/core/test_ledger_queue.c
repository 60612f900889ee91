/*
 * Queues that go: what holds one back, what goes with it, and when an unused one does.
 * LEDGERQUEUE-1 to LEDGERQUEUE-4 of core/ledger/queue.c.
 */
#include "ledger_fixture.h"

#include <stdio.h>

static int
forget(void)
{
	struct change c;
	const int rc = ledger_queue_forget(f.l, f.queue, f.now, &c);

	if (!rc)
		apply(&c);
	return rc;
}

static bool
is_there(void)
{
	return ledger_queue_find(f.l, SLICE("shop"), SLICE("mail")) != SLAB_NONE;
}

static void
reopen(void)
{
	CHECK_EQ(0, ledger_queue_open(f.l, SLICE("shop"), SLICE("mail"), &f.queue));
	f.space = ledger_space_find(f.l, SLICE("shop"));
}

static uint64_t
put_kept(const char *idem)
{
	return put_offer((struct ledger_offer){
		.idem = slice_of(idem), .keep_result = SLU_HOUR });
}

/* Take and ack the message. */
static void
finish(uint64_t id)
{
	CHECK_EQ(id, claim());
	CHECK_EQ(0, ack_as(id, f.token));
}

/* How many queues an hour's ticks forget. */
static uint32_t
forgets(void)
{
	uint32_t budget = UINT32_MAX, n = 0;
	struct change c;

	while (ledger_tick(f.l, f.now, &budget, &c)) {
		n += c.kind == CHANGE_FORGET;
		apply(&c);
	}
	return n;
}

TEST(a_queue_with_a_message_in_any_state_is_not_forgotten)
{
	uint64_t id;

	put_keyed("k", 5, 0);
	put_keyed("k", 5, 0);
	put_offer((struct ledger_offer){ .due = f.now + SLU_HOUR });
	CHECK_EQ(SLU_ENOTEMPTY, forget());
	id = claim();
	CHECK_EQ(0, act(ledger_delete, 2));
	CHECK_EQ(0, act(ledger_delete, 3));
	CHECK_EQ(SLU_ENOTEMPTY, forget(), "leased");
	CHECK_EQ(0, nack_as(id, f.token, (struct ledger_nack){ .dead = true }));
	CHECK_EQ(SLU_ENOTEMPTY, forget(), "a dead letter");
	CHECK_EQ(0, act(ledger_delete, id));
	CHECK_EQ(0, forget());
	CHECK(!is_there());
}

TEST(a_purge_that_is_being_freed_is_waited_for)
{
	struct change c;

	for (int i = 0; i < 100; i++)
		put(5);
	CHECK_EQ(0, ledger_purge(f.l, f.queue, f.now, &c));
	apply(&c);
	CHECK_EQ(SLU_EBUSY, forget());
	(void)forgets();
	CHECK_EQ(0, forget());
}

/* LEDGERQUEUE-2 */
TEST(policy_keys_and_results_go_with_their_queue)
{
	struct ledger_queue_view v;
	struct ledger_result result;
	struct ledger_size size;
	struct change c;
	uint64_t id;

	f.policy.max_rate = 5;
	CHECK_EQ(0, ledger_set_policy(f.l, f.queue, &f.policy, f.now, &c));
	apply(&c);
	for (int i = 0; i < 5; i++) {
		char key[8];

		snprintf(key, sizeof key, "k%d", i);
		finish(put_kept(key));
	}
	ledger_size(f.l, &size);
	CHECK_EQ(5, size.remembered);
	CHECK_EQ(5, size.results);
	CHECK_EQ(0, forget());
	ledger_size(f.l, &size);
	CHECK_EQ(0, size.remembered + size.idem + size.results + size.queues);
	CHECK(!ledger_has_rates(f.l));
	CHECK_EQ(SLAB_NONE, ledger_woken(f.l));

	reopen();
	CHECK_EQ(SLU_ENOTFOUND, ledger_result(f.l, f.space, 1, &result));
	ledger_queue_get(f.l, f.queue, &v);
	CHECK_EQ(policy_default.max_rate, v.policy->max_rate);
	id = put_kept("k0");
	CHECK_EQ(6, id, "its key is not known any more");
}

TEST(other_queues_keep_what_they_have)
{
	struct ledger_size size;
	uint32_t mail;

	mail = f.queue;
	CHECK_EQ(0, ledger_queue_open(f.l, SLICE("shop"), SLICE("print"), &f.queue));
	finish(put_kept("k"));
	put_keyed("a", 5, 0);
	f.queue = mail;
	finish(put_kept("k"));
	CHECK_EQ(0, forget());
	ledger_size(f.l, &size);
	CHECK_EQ(1, size.remembered);
	CHECK_EQ(1, size.results);
	CHECK_EQ(1, size.messages);
	reopen();
	CHECK_EQ(mail, f.queue, "the handle is used again");
	put(5);
}

TEST(a_walk_over_queues_passes_over_those_that_are_gone)
{
	char names[16] = "";

	for (char c = 'a'; c <= 'e'; c++) {
		const struct slice name = { &c, 1 };

		CHECK_EQ(0, ledger_queue_open(f.l, SLICE("s"), name, &f.queue));
		if (c == 'b' || c == 'd')
			CHECK_EQ(0, forget());
	}
	for (uint32_t q = ledger_queue_next(f.l, SLAB_NONE); q != SLAB_NONE;
	     q = ledger_queue_next(f.l, q)) {
		struct ledger_queue_view v;

		ledger_queue_get(f.l, q, &v);
		strcat(names, v.name);
	}
	CHECK_STR("mailace", names); /* c took the place of b, and e took the place of d */
}

/* LEDGERQUEUE-4 */
TEST(totals_of_forgotten_queues_stay_in_the_sum)
{
	struct ledger_size size;

	for (int i = 0; i < 3; i++)
		finish(put(5));
	CHECK_EQ(0, forget());
	reopen();
	finish(put(5));
	CHECK_EQ(0, forget());
	ledger_size(f.l, &size);
	CHECK_EQ(4, size.forgotten.accepted);
	CHECK_EQ(4, size.forgotten.delivered);
	CHECK_EQ(4, size.forgotten.done);
}

TEST_BARE(a_queue_that_was_moved_is_not_forgotten)
{
	static const struct {
		const char *label;
		struct change_move say;
	} cases[] = {
		{ "it lives elsewhere", { .epoch = 7, .shard = "b" } },
		{ "it lives here again", { .epoch = 7, .shard = "" } },
	};

	EACH(i, cases) {
		struct change c;

		setup();
		CHECK_EQ(0, ledger_mark(f.l, f.queue, &cases[i].say, true, f.now, &c));
		apply(&c);
		CHECK_EQ(SLU_ECONFLICT, forget(), cases[i].label);
		CHECK_EQ(SLU_ECONFLICT, ledger_queue_clear(f.l, f.queue, f.now, &c));
		teardown();
	}
}

TEST(a_queue_with_the_number_of_a_batch_is_not_forgotten)
{
	const struct change_move say = { .batch = 3, .shard = "a" };
	struct change c;

	CHECK_EQ(0, ledger_given(f.l, f.queue, &say, 5, f.now, &c));
	apply(&c);
	CHECK_EQ(SLU_ECONFLICT, forget());
}

TEST(a_queue_is_cleared_of_messages_in_all_states)
{
	struct change c;
	uint64_t id;
	int n = 0;

	id = put(5);
	CHECK_EQ(id, claim());
	CHECK_EQ(0, nack_as(id, f.token, (struct ledger_nack){ .dead = true }));
	put_kept("k");
	CHECK(claim() != 0);
	put_keyed("a", 5, 0);
	put_keyed("a", 5, 0);
	put_offer((struct ledger_offer){ .due = f.now + SLU_HOUR });
	for (; !ledger_queue_clear(f.l, f.queue, f.now, &c) && c.kind; n++)
		apply(&c);
	CHECK_EQ(3, n, "a dead letter, a lease, and a purge");
	CHECK_EQ(SLU_EBUSY, forget());
	(void)forgets();
	CHECK_EQ(0, forget());
}

/* LEDGERQUEUE-3 */
TEST(an_unused_queue_is_forgotten_after_a_while)
{
	ledger_set_limits(f.l, &(struct ledger_limits){ .idle = 24 * SLU_HOUR });
	ledger_queue_use(f.l, f.queue, f.now);
	finish(put(5));
	pass(23 * SLU_HOUR);
	CHECK_EQ(0, forgets());
	ledger_queue_use(f.l, f.queue, f.now);
	pass(23 * SLU_HOUR);
	CHECK(is_there());
	f.now += 2 * SLU_HOUR;
	CHECK_EQ(1, forgets());
	CHECK(!is_there());
	CHECK_EQ(SLU_NEVER, ledger_next_due(f.l), "there is nothing to look for");
}

TEST_BARE(what_an_unused_queue_has_holds_it)
{
	static const char *const labels[] = { "nothing", "a message", "a policy", "a remembered key",
					      "a result", "a name of ours" };

	EACH(i, labels) {
		struct change c;

		setup();
		ledger_set_limits(f.l, &(struct ledger_limits){ .idle = SLU_SEC });
		if (i == 5)
			CHECK_EQ(0, ledger_queue_open(f.l, SLICE("shop"), SLICE(".locks"), &f.queue));
		else
			ledger_queue_use(f.l, f.queue, f.now);
		if (i == 1)
			put(5);
		if (i == 2) {
			CHECK_EQ(0, ledger_set_policy(f.l, f.queue, &f.policy, f.now, &c));
			apply(&c);
		}
		if (i == 3)
			finish(put_offer((struct ledger_offer){ .idem = SLICE("k") }));
		if (i == 4)
			finish(put_offer((struct ledger_offer){ .keep_result = SLU_HOUR }));
		ledger_queue_use(f.l, f.queue, f.now);
		(void)forgets();
		f.now += SLU_MIN;
		CHECK_EQ(i == 0 || i == 5, forgets(), labels[i]); /* 5: mail went */
		CHECK_EQ(i == 0 || i == 5, !is_there(), labels[i]);
		CHECK_EQ(i == 0 ? 0 : 1, ledger_queue_next(f.l, SLAB_NONE) != SLAB_NONE);
		teardown();
	}
}

TEST(queues_found_at_open_are_unused_since_then)
{
	struct change c;

	ledger_set_limits(f.l, &(struct ledger_limits){ .idle = SLU_HOUR });
	f.now += 100 * SLU_HOUR;
	ledger_opened(f.l, f.now, &c);
	apply(&c);
	CHECK_EQ(0, forgets());
	f.now += SLU_HOUR + SLU_HOUR / 8;
	CHECK_EQ(1, forgets());
}

/* LEDGER-11, replayed. */
TEST(a_forget_that_no_ledger_decided_is_refused)
{
	struct change c = { .kind = CHANGE_FORGET, .queue = 99 };

	CHECK_EQ(SLU_EINVAL, ledger_replay(f.l, &c), "no such queue");
	put(5);
	c.queue = f.queue;
	CHECK_EQ(SLU_EINVAL, ledger_replay(f.l, &c), "it has a message");
	CHECK_EQ(0, act(ledger_delete, 1));
	CHECK_EQ(0, ledger_replay(f.l, &c));
	CHECK_EQ(SLU_EINVAL, ledger_replay(f.l, &c), "it is gone");
}
