/*
 * Queues that go: what holds one back, what goes with it, and when an unused one does.
 * Q1 to Q4 of core/ledger_queue.c.
 */
#include "ledger_fixture.h"

#include <stdio.h>

static int
forget(struct fixture *f)
{
	struct change c;
	const int rc = ledger_queue_forget(f->l, f->queue, f->now, &c);

	if (!rc)
		apply(f, &c);
	return rc;
}

static bool
is_there(struct fixture *f)
{
	return ledger_queue_find(f->l, SLICE("shop"), SLICE("mail")) != SLAB_NONE;
}

static void
reopen(struct fixture *f)
{
	CHECK_EQ(0, ledger_queue_open(f->l, SLICE("shop"), SLICE("mail"), &f->queue));
	f->space = ledger_space_find(f->l, SLICE("shop"));
}

static uint64_t
put_kept(struct fixture *f, const char *idem)
{
	return put_offer(f, (struct ledger_offer){
				    .idem = slice_of(idem), .keep_result = SLU_HOUR });
}

/* Take and ack the message. */
static void
finish(struct fixture *f, uint64_t id)
{
	CHECK_EQ(id, claim(f));
	CHECK_EQ(0, ack_as(f, id, f->token));
}

/* How many queues an hour's ticks forget. */
static uint32_t
forgets(struct fixture *f)
{
	uint32_t budget = UINT32_MAX, n = 0;
	struct change c;

	while (ledger_tick(f->l, f->now, &budget, &c)) {
		n += c.kind == CHANGE_FORGET;
		apply(f, &c);
	}
	return n;
}

TEST(a_queue_with_a_message_in_any_state_is_not_forgotten)
{
	struct fixture f;
	uint64_t id;

	setup(&f);
	put_keyed(&f, "k", 5, 0);
	put_keyed(&f, "k", 5, 0);
	put_offer(&f, (struct ledger_offer){ .due = f.now + SLU_HOUR });
	CHECK_EQ(SLU_ENOTEMPTY, forget(&f));
	id = claim(&f);
	CHECK_EQ(0, act(&f, ledger_delete, 2));
	CHECK_EQ(0, act(&f, ledger_delete, 3));
	CHECK_EQ(SLU_ENOTEMPTY, forget(&f), "leased");
	CHECK_EQ(0, nack_as(&f, id, f.token, (struct ledger_nack){ .dead = true }));
	CHECK_EQ(SLU_ENOTEMPTY, forget(&f), "a dead letter");
	CHECK_EQ(0, act(&f, ledger_delete, id));
	CHECK_EQ(0, forget(&f));
	CHECK(!is_there(&f));
	teardown(&f);
}

TEST(a_purge_that_is_being_freed_is_waited_for)
{
	struct fixture f;
	struct change c;

	setup(&f);
	for (int i = 0; i < 100; i++)
		put(&f, 5);
	CHECK_EQ(0, ledger_purge(f.l, f.queue, f.now, &c));
	apply(&f, &c);
	CHECK_EQ(SLU_EBUSY, forget(&f));
	(void)forgets(&f);
	CHECK_EQ(0, forget(&f));
	teardown(&f);
}

/* Q2 */
TEST(policy_keys_and_results_go_with_their_queue)
{
	struct fixture f;
	struct ledger_queue_view v;
	struct ledger_result result;
	struct ledger_size size;
	struct change c;
	uint64_t id;

	setup(&f);
	f.policy.max_rate = 5;
	CHECK_EQ(0, ledger_set_policy(f.l, f.queue, &f.policy, f.now, &c));
	apply(&f, &c);
	for (int i = 0; i < 5; i++) {
		char key[8];

		snprintf(key, sizeof key, "k%d", i);
		finish(&f, put_kept(&f, key));
	}
	ledger_size(f.l, &size);
	CHECK_EQ(5, size.remembered);
	CHECK_EQ(5, size.results);
	CHECK_EQ(0, forget(&f));
	ledger_size(f.l, &size);
	CHECK_EQ(0, size.remembered + size.idem + size.results + size.queues);
	CHECK(!ledger_has_rates(f.l));
	CHECK_EQ(SLAB_NONE, ledger_woken(f.l));

	reopen(&f);
	CHECK_EQ(SLU_ENOTFOUND, ledger_result(f.l, f.space, 1, &result));
	ledger_queue_get(f.l, f.queue, &v);
	CHECK_EQ(policy_default.max_rate, v.policy->max_rate);
	id = put_kept(&f, "k0");
	CHECK_EQ(6, id, "its key is not known any more");
	teardown(&f);
}

TEST(other_queues_keep_what_they_have)
{
	struct fixture f;
	struct ledger_size size;
	uint32_t mail;

	setup(&f);
	mail = f.queue;
	CHECK_EQ(0, ledger_queue_open(f.l, SLICE("shop"), SLICE("print"), &f.queue));
	finish(&f, put_kept(&f, "k"));
	put_keyed(&f, "a", 5, 0);
	f.queue = mail;
	finish(&f, put_kept(&f, "k"));
	CHECK_EQ(0, forget(&f));
	ledger_size(f.l, &size);
	CHECK_EQ(1, size.remembered);
	CHECK_EQ(1, size.results);
	CHECK_EQ(1, size.messages);
	reopen(&f);
	CHECK_EQ(mail, f.queue, "the handle is used again");
	put(&f, 5);
	teardown(&f);
}

TEST(a_walk_over_queues_passes_over_those_that_are_gone)
{
	struct fixture f;
	char names[16] = "";

	setup(&f);
	for (char c = 'a'; c <= 'e'; c++) {
		const struct slice name = { &c, 1 };

		CHECK_EQ(0, ledger_queue_open(f.l, SLICE("s"), name, &f.queue));
		if (c == 'b' || c == 'd')
			CHECK_EQ(0, forget(&f));
	}
	for (uint32_t q = ledger_queue_next(f.l, SLAB_NONE); q != SLAB_NONE;
	     q = ledger_queue_next(f.l, q)) {
		struct ledger_queue_view v;

		ledger_queue_get(f.l, q, &v);
		strcat(names, v.name);
	}
	CHECK_STR("mailace", names); /* c took the place of b, and e that of d */
	teardown(&f);
}

/* Q4 */
TEST(totals_of_forgotten_queues_stay_in_the_sum)
{
	struct fixture f;
	struct ledger_size size;

	setup(&f);
	for (int i = 0; i < 3; i++)
		finish(&f, put(&f, 5));
	CHECK_EQ(0, forget(&f));
	reopen(&f);
	finish(&f, put(&f, 5));
	CHECK_EQ(0, forget(&f));
	ledger_size(f.l, &size);
	CHECK_EQ(4, size.forgotten.accepted);
	CHECK_EQ(4, size.forgotten.delivered);
	CHECK_EQ(4, size.forgotten.done);
	teardown(&f);
}

TEST(a_queue_that_was_moved_is_not_forgotten)
{
	static const struct {
		const char *label;
		struct change_move say;
	} cases[] = {
		{ "it lives elsewhere", { .epoch = 7, .shard = "b" } },
		{ "it lives here again", { .epoch = 7, .shard = "" } },
	};

	EACH(i, cases) {
		struct fixture f;
		struct change c;

		setup(&f);
		CHECK_EQ(0, ledger_mark(f.l, f.queue, &cases[i].say, true, f.now, &c));
		apply(&f, &c);
		CHECK_EQ(SLU_ECONFLICT, forget(&f), cases[i].label);
		CHECK_EQ(SLU_ECONFLICT, ledger_queue_clear(f.l, f.queue, f.now, &c));
		teardown(&f);
	}
}

TEST(a_queue_with_the_number_of_a_batch_is_not_forgotten)
{
	const struct change_move say = { .batch = 3, .shard = "a" };
	struct fixture f;
	struct change c;

	setup(&f);
	CHECK_EQ(0, ledger_given(f.l, f.queue, &say, 5, f.now, &c));
	apply(&f, &c);
	CHECK_EQ(SLU_ECONFLICT, forget(&f));
	teardown(&f);
}

TEST(a_queue_is_cleared_of_messages_in_all_states)
{
	struct fixture f;
	struct change c;
	uint64_t id;
	int n = 0;

	setup(&f);
	id = put(&f, 5);
	CHECK_EQ(id, claim(&f));
	CHECK_EQ(0, nack_as(&f, id, f.token, (struct ledger_nack){ .dead = true }));
	put_kept(&f, "k");
	CHECK(claim(&f) != 0);
	put_keyed(&f, "a", 5, 0);
	put_keyed(&f, "a", 5, 0);
	put_offer(&f, (struct ledger_offer){ .due = f.now + SLU_HOUR });
	for (; !ledger_queue_clear(f.l, f.queue, f.now, &c) && c.kind; n++)
		apply(&f, &c);
	CHECK_EQ(3, n, "a dead letter, a lease, and a purge");
	CHECK_EQ(SLU_EBUSY, forget(&f));
	(void)forgets(&f);
	CHECK_EQ(0, forget(&f));
	teardown(&f);
}

/* Q3 */
TEST(an_unused_queue_is_forgotten_after_a_while)
{
	struct fixture f;

	setup(&f);
	ledger_set_limits(f.l, &(struct ledger_limits){ .idle = 24 * SLU_HOUR });
	ledger_queue_use(f.l, f.queue, f.now);
	finish(&f, put(&f, 5));
	pass(&f, 23 * SLU_HOUR);
	CHECK_EQ(0, forgets(&f));
	ledger_queue_use(f.l, f.queue, f.now);
	pass(&f, 23 * SLU_HOUR);
	CHECK(is_there(&f));
	f.now += 2 * SLU_HOUR;
	CHECK_EQ(1, forgets(&f));
	CHECK(!is_there(&f));
	CHECK_EQ(SLU_NEVER, ledger_next_due(f.l), "there is nothing to look for");
	teardown(&f);
}

TEST(what_an_unused_queue_has_holds_it)
{
	static const char *const labels[] = { "nothing", "a message", "a policy", "a remembered key",
					      "a result", "a name of ours" };

	EACH(i, labels) {
		struct fixture f;
		struct change c;

		setup(&f);
		ledger_set_limits(f.l, &(struct ledger_limits){ .idle = SLU_SEC });
		if (i == 5)
			CHECK_EQ(0, ledger_queue_open(f.l, SLICE("shop"), SLICE(".locks"), &f.queue));
		else
			ledger_queue_use(f.l, f.queue, f.now);
		if (i == 1)
			put(&f, 5);
		if (i == 2) {
			CHECK_EQ(0, ledger_set_policy(f.l, f.queue, &f.policy, f.now, &c));
			apply(&f, &c);
		}
		if (i == 3)
			finish(&f, put_offer(&f, (struct ledger_offer){ .idem = SLICE("k") }));
		if (i == 4)
			finish(&f, put_offer(&f, (struct ledger_offer){ .keep_result = SLU_HOUR }));
		ledger_queue_use(f.l, f.queue, f.now);
		(void)forgets(&f);
		f.now += SLU_MIN;
		CHECK_EQ(i == 0 || i == 5, forgets(&f), labels[i]); /* 5: mail went */
		CHECK_EQ(i == 0 || i == 5, !is_there(&f), labels[i]);
		CHECK_EQ(i == 0 ? 0 : 1, ledger_queue_next(f.l, SLAB_NONE) != SLAB_NONE);
		teardown(&f);
	}
}

TEST(queues_found_at_open_are_unused_since_then)
{
	struct fixture f;
	struct change c;

	setup(&f);
	ledger_set_limits(f.l, &(struct ledger_limits){ .idle = SLU_HOUR });
	f.now += 100 * SLU_HOUR;
	ledger_opened(f.l, f.now, &c);
	apply(&f, &c);
	CHECK_EQ(0, forgets(&f));
	f.now += SLU_HOUR + SLU_HOUR / 8;
	CHECK_EQ(1, forgets(&f));
	teardown(&f);
}

/* L11, replayed. */
TEST(a_forget_that_no_ledger_decided_is_refused)
{
	struct fixture f;
	struct change c = { .kind = CHANGE_FORGET, .queue = 99 };

	setup(&f);
	CHECK_EQ(SLU_EINVAL, ledger_replay(f.l, &c), "no such queue");
	put(&f, 5);
	c.queue = f.queue;
	CHECK_EQ(SLU_EINVAL, ledger_replay(f.l, &c), "it has a message");
	CHECK_EQ(0, act(&f, ledger_delete, 1));
	CHECK_EQ(0, ledger_replay(f.l, &c));
	CHECK_EQ(SLU_EINVAL, ledger_replay(f.l, &c), "it is gone");
	teardown(&f);
}
