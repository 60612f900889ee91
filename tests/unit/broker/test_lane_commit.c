/* Batches that are open: LANE-12 to LANE-15. The engine commits when the test says so. */
#include "lane_fixture.h"

#include "base/mem.h"
#include "broker/lane_private.h"
#include "count_engine.h"

static void
patient(slu_time patience)
{
	start_with(&engine_count);
	s.conf.patience = patience;
}

static void
hold(void)
{
	count_hold(s.engine);
}

static void
release(int rc)
{
	count_release(s.engine, rc);
	turn();
}

/* Returns false if the thread would end. */
static bool
goes_on(void)
{
	mailbox_poke(&s.mailbox);
	return lane_round(&s);
}

TEST(an_op_is_answered_after_the_batch_is_committed_and_not_before)
{
	static struct op_call m, a;

	patient(0);
	hold();
	push(&m, "q", 0);
	claim(&a, "q", 0);
	pass(SLU_HOUR);
	CHECK_EQ(0, m.done);
	CHECK_EQ(0, a.done);
	release(0);
	CHECK_EQ(0, rc_of(&m));
	pass(SLU_SEC);
	CHECK_EQ(m.put.m.id, got(&a));
}

/* The engine checks that no run overtakes another. */
TEST(no_batch_runs_while_another_is_open)
{
	static struct op_call m[3];
	uint64_t runs;

	patient(0);
	hold();
	push(&m[0], "q", 0);
	runs = count_runs(s.engine);
	push(&m[1], "q", 0);
	push(&m[2], "q", 0);
	CHECK_EQ(runs, count_runs(s.engine));
	release(0);
	pass(SLU_MS); /* it gathers */
	CHECK_EQ(runs + 1, count_runs(s.engine));
	CHECK_EQ(0, rc_of(&m[2]));
}

TEST(a_wait_ends_while_a_batch_is_open)
{
	static struct op_call before, m, after, look;

	patient(0);
	claim(&before, "idle", SLU_SEC);
	hold();
	push(&m, "q", 0);
	claim(&after, "q", SLU_SEC);
	call(&look, OP_RESULT, "ns", "q");
	look.op.id = 1;
	look.op.wait = SLU_SEC;
	run(&look);
	pass(SLU_SEC - SLU_MS);
	CHECK_EQ(0, before.done + after.done + look.done);
	pass(SLU_MS);
	CHECK_EQ(0, got(&before));
	CHECK_EQ(SLU_EDOWN, rc_of(&after)); /* it has not run: the queue is not empty */
	CHECK_EQ(SLU_EDOWN, rc_of(&look));
	CHECK_STR("no answer from the store of a test for 1000 ms", after.op.err.text);
	CHECK_EQ(0, m.done);
	release(0);
	CHECK_EQ(0, rc_of(&m));
}

TEST(a_claim_that_found_nothing_waits_on_and_is_no_part_of_the_open_batch)
{
	static struct op_call m, a, b;

	patient(0);
	hold();
	post_push(&m, "q", 0);
	post_claim(&a, "other", SLU_SEC);
	claim(&b, "other", SLU_MIN);
	CHECK_EQ(2, dispatch_count(&s.dispatch));
	pass(SLU_SEC);
	CHECK_EQ(0, got(&a));
	lane_cancel(&s, &b.op);
	turn();
	CHECK_EQ(SLU_ECANCELED, rc_of(&b));
	CHECK_EQ(0, m.done);
	release(0);
}

TEST(cancels_are_handled_while_a_batch_is_open)
{
	static struct op_call waits, m, open, queued;

	patient(0);
	claim(&waits, "idle", SLU_MIN);
	push(&m, "q", 0);
	hold();
	claim(&open, "q", SLU_MIN);
	push(&queued, "q", 0);
	lane_cancel(&s, &waits.op);
	lane_cancel(&s, &open.op);
	lane_cancel(&s, &queued.op);
	turn();
	CHECK_EQ(SLU_ECANCELED, rc_of(&waits));
	CHECK_EQ(SLU_ECANCELED, rc_of(&queued));
	CHECK_EQ(0, open.done); /* it has run, and gets its answer */
	release(0);
	CHECK_EQ(m.put.m.id, got(&open));
}

TEST(a_cancel_that_comes_with_the_answer_ends_the_op_once)
{
	static struct op_call m;

	patient(0);
	hold();
	push(&m, "q", 0);
	CHECK(op_unwant(&m.op, OP_CANCELED));
	release(0);
	CHECK_EQ(0, m.done); /* the cancel is still on its way */
	lane_stop(&s, &m.op);
	turn();
	CHECK_EQ(0, rc_of(&m));
}

TEST(after_patience_the_batch_is_unknown_and_ops_that_have_not_run_are_down)
{
	static struct op_call m, queued, later, waits, again;
	struct slu_err why;

	patient(SLU_SEC);
	hold();
	push(&m, "q", 0);
	push(&queued, "q", 0);
	pass(SLU_SEC - SLU_MS);
	CHECK_EQ(0, m.done + queued.done);
	CHECK_EQ(0, lane_failure(&s, NULL));
	pass(SLU_MS);
	CHECK_EQ(SLU_EUNKNOWN, rc_of(&m));
	CHECK_EQ(SLU_EDOWN, rc_of(&queued));
	CHECK_STR("no answer from the store of a test for 1000 ms", queued.op.err.text);
	CHECK_STR("no answer from the store of a test for 1000 ms", m.op.err.text);
	CHECK_EQ(SLU_EDOWN, lane_failure(&s, &why));
	CHECK_STR("no answer from the store of a test for 1000 ms", why.text);
	push(&later, "q", 0);
	CHECK_EQ(SLU_EDOWN, rc_of(&later));
	claim(&waits, "q", SLU_MIN);
	CHECK_EQ(0, waits.done);
	release(0);
	CHECK_EQ(0, lane_failure(&s, NULL));
	CHECK_EQ(m.put.m.id, got(&waits)); /* without reopening */
	push(&again, "q", 0);
	CHECK_EQ(0, rc_of(&again));
}

TEST(what_an_unknown_batch_granted_goes_back_and_nothing_is_charged)
{
	static struct op_call m[2], a, b;

	patient(SLU_SEC);
	push(&m[0], "q", 0);
	push(&m[1], "q", 0);
	hold();
	call(&a, OP_CLAIM, "ns", "q");
	a.op.max_rows = 2;
	run(&a);
	pass(SLU_SEC);
	CHECK_EQ(SLU_EUNKNOWN, rc_of(&a));
	CHECK_EQ(0, a.op.n_rows);
	memset(a.rows, 0xff, sizeof a.rows); /* the maker uses its memory again */
	release(0);
	claim(&b, "q", 0);
	CHECK_EQ(m[0].put.m.id, got(&b));
	CHECK_EQ(1, b.rows[0].attempts);
	claim(&b, "q", 0);
	CHECK_EQ(m[1].put.m.id, got(&b));
	CHECK_EQ(2, s.totals[LANE_RETURNED]);
}

static struct op_call *
acquire(struct op_call *c, slu_time wait)
{
	call(c, OP_ACQUIRE, "ns", LOCK_QUEUE);
	c->op.lock.key = SLICE("key");
	c->op.lock.holder = SLICE("me");
	c->op.wait = wait;
	run(c);
	return c;
}

TEST(a_key_that_an_unknown_batch_granted_is_released)
{
	static struct op_call a, b;

	patient(SLU_SEC);
	hold();
	acquire(&a, 0);
	pass(SLU_SEC);
	CHECK_EQ(SLU_EUNKNOWN, rc_of(&a));
	release(0);
	CHECK_EQ(0, rc_of(acquire(&b, 0)));
	CHECK(a.op.lock.token != b.op.lock.token);
}

TEST(an_acquire_whose_time_is_over_while_a_batch_is_open_ends)
{
	static struct op_call holder, a, m;

	patient(0);
	acquire(&holder, 0);
	acquire(&a, SLU_SEC);
	hold();
	push(&m, "q", 0);
	pass(SLU_SEC);
	CHECK_EQ(SLU_EDOWN, rc_of(&a));
	release(0);
}

TEST(if_commit_fails_the_batch_fails_and_the_engine_is_reopened)
{
	static struct op_call waits, m, queued, again;

	patient(0);
	claim(&waits, "idle", SLU_MIN);
	hold();
	push(&m, "q", 0);
	push(&queued, "q", 0);
	release(SLU_EUNKNOWN);
	CHECK_EQ(SLU_EUNKNOWN, rc_of(&m));
	CHECK_STR("the store is gone", m.op.err.text);
	CHECK_EQ(SLU_EDOWN, rc_of(&queued));
	CHECK_EQ(SLU_EDOWN, rc_of(&waits));
	CHECK_EQ(SLU_EUNKNOWN, lane_failure(&s, NULL));
	pass(100 * SLU_MS);
	CHECK_EQ(0, lane_failure(&s, NULL));
	push(&again, "q", 0);
	CHECK_EQ(0, rc_of(&again));
}

TEST(if_commit_fails_after_patience_every_op_is_answered_once)
{
	static struct op_call m, a, again;

	patient(SLU_SEC);
	push(&m, "q", 0);
	hold();
	claim(&a, "q", 0);
	pass(SLU_SEC);
	CHECK_EQ(SLU_EUNKNOWN, rc_of(&a));
	release(SLU_EUNKNOWN);
	pass(100 * SLU_MS);
	CHECK_EQ(0, lane_failure(&s, NULL));
	push(&again, "q", 0);
	CHECK_EQ(0, rc_of(&again));
	CHECK_EQ(1, a.done);
}

TEST(a_close_waits_for_the_open_batch)
{
	static struct op_call waits, m, queued;

	patient(0);
	claim(&waits, "idle", SLU_MIN);
	hold();
	push(&m, "q", 0);
	push(&queued, "q", 0);
	lane_close(&s);
	turn();
	CHECK_EQ(0, got(&waits));
	CHECK_EQ(0, m.done + queued.done);
	release(0);
	CHECK_EQ(0, rc_of(&m));
	CHECK_EQ(0, rc_of(&queued));
	CHECK(!goes_on());
}

TEST(a_close_waits_for_a_batch_without_ops)
{
	static struct op_call m;

	patient(0);
	push(&m, "q", SLU_SEC);
	hold();
	pass(SLU_SEC); /* the message is due: a batch of its own */
	lane_close(&s);
	CHECK(goes_on());
	release(0);
	CHECK(!goes_on());
}

TEST(a_close_with_a_store_that_does_not_answer_ends_after_patience)
{
	static struct op_call m, a;

	patient(SLU_SEC);
	push(&m, "q", 0);
	hold();
	claim(&a, "q", 0);
	lane_close(&s);
	pass(SLU_SEC);
	CHECK_EQ(SLU_EUNKNOWN, rc_of(&a));
	CHECK(!goes_on());
}

TEST(the_credit_of_a_stream_is_whole_after_an_unknown_claim)
{
	static struct op_call m[2], a, b;

	patient(SLU_SEC);
	push(&m[0], "q", 0);
	push(&m[1], "q", 0);
	hold();
	call(&a, OP_CLAIM, "ns", "q");
	a.op.claim.stream = 7;
	a.op.claim.credit = 1;
	run(&a);
	pass(SLU_SEC);
	CHECK_EQ(SLU_EUNKNOWN, rc_of(&a));
	release(0);
	call(&b, OP_CLAIM, "ns", "q");
	b.op.claim.stream = 7;
	b.op.claim.credit = 1;
	b.op.wait = SLU_SEC;
	run(&b);
	CHECK_EQ(m[0].put.m.id, got(&b));
}

TEST(a_claim_without_credit_is_canceled_while_a_batch_is_open)
{
	static struct op_call m[2], a, b, done;

	patient(0);
	push(&m[0], "q", 0);
	push(&m[1], "q", 0);
	call(&a, OP_CLAIM, "ns", "q");
	a.op.claim.stream = 7;
	a.op.claim.credit = 1;
	run(&a);
	call(&b, OP_CLAIM, "ns", "q");
	b.op.claim.stream = 7;
	b.op.claim.credit = 1;
	b.op.wait = SLU_HOUR;
	run(&b); /* waits for credit */
	hold();
	settle(&done, OP_ACK, &a.rows[0], 0); /* gives credit back: the claim runs when the batch is committed */
	lane_cancel(&s, &b.op);
	turn();
	CHECK_EQ(SLU_ECANCELED, rc_of(&b));
	release(0);
	CHECK_EQ(0, rc_of(&done));
}

TEST(a_shard_with_an_open_batch_sleeps)
{
	static struct op_call m, a;

	patient(SLU_SEC);
	hold();
	push(&m, "q", 0);
	claim(&a, "q", 10 * SLU_MS);
	for (int i = 0; i < 40; i++) {
		const slu_time until = lane_sleeps(&s);

		CHECK(until > clock_boot(&fake.clock));
		fakeclock_advance(&fake, until - clock_boot(&fake.clock));
		lane_round(&s);
	}
	CHECK_EQ(SLU_EDOWN, rc_of(&a));
	CHECK_EQ(SLU_EUNKNOWN, rc_of(&m));
	release(0);
}

TEST(after_a_late_batch_the_shard_gathers_as_many_ops_as_it_answered)
{
	static struct op_call m[5];
	uint64_t runs;

	patient(0);
	hold();
	post_push(&m[0], "q", 0);
	push(&m[1], "q", 0);
	pass(100 * SLU_MS);
	release(0);
	CHECK_EQ(0, rc_of(&m[1]));
	runs = count_runs(s.engine);
	push(&m[2], "q", 0);
	CHECK_EQ(runs, count_runs(s.engine)); /* one of two has come */
	push(&m[3], "q", 0);
	CHECK_EQ(runs + 1, count_runs(s.engine));
	hold();
	push(&m[4], "q", 0);
	pass(100 * SLU_MS);
	release(0);
	push(&m[0], "q", 0);
	CHECK_EQ(0, rc_of(&m[0]));
}

/* Answers four ops after a batch that took this long. */
static void
answer_four(struct op_call m[static 4], slu_time took)
{
	patient(0);
	hold();
	for (int i = 0; i < 3; i++)
		post_push(&m[i], "q", 0);
	push(&m[3], "q", 0);
	pass(took);
	release(0);
	CHECK_EQ(0, rc_of(&m[3]));
}

TEST(the_shard_gathers_on_while_ops_come_but_not_for_ever)
{
	static struct op_call before[4], m[3];

	answer_four(before, 100 * SLU_MS);
	push(&m[0], "q", 0);
	pass(9 * SLU_MS);
	push(&m[1], "q", 0);
	pass(9 * SLU_MS);
	push(&m[2], "q", 0);
	CHECK_EQ(0, m[0].done);
	pass(2 * SLU_MS); /* 20 ms in all */
	CHECK_EQ(0, rc_of(&m[0]));
	CHECK_EQ(0, rc_of(&m[2]));
}

TEST(after_a_quick_batch_the_shard_gathers_half_as_long)
{
	static struct op_call before[4], m;

	answer_four(before, 3 * SLU_MS / 2);
	push(&m, "q", 0);
	pass(3 * SLU_MS / 5);
	CHECK_EQ(0, m.done);
	pass(3 * SLU_MS / 20);
	CHECK_EQ(0, rc_of(&m));
}

/* 64 clients on the machine of a near store need longer than half a put to ask again. */
TEST(after_a_very_quick_batch_the_shard_gathers_half_a_millisecond)
{
	static struct op_call before[4], m;

	answer_four(before, SLU_MS / 5);
	push(&m, "q", 0);
	pass(2 * SLU_MS / 5);
	CHECK_EQ(0, m.done);
	pass(SLU_MS / 10);
	CHECK_EQ(0, rc_of(&m));
}

/* Else each op that comes would cost two switches of the thread while its maker waits. */
TEST(a_shard_that_gathers_is_woken_once)
{
	static struct op_call before[4];

	CHECK_EQ(1, lane_enough(&s));
	answer_four(before, 100 * SLU_MS);
	CHECK_EQ(4, lane_enough(&s));
	push(&before[0], "q", 0);
	CHECK_EQ(3, lane_enough(&s));
	pass(10 * SLU_MS);
	CHECK_EQ(1, lane_enough(&s));
}

TEST(LANE_15_a_shard_waits_for_the_budget_of_its_engine_at_most_a_second)
{
	static const struct {
		slu_time rest, wait;
	} cases[] = {
		{ 200 * SLU_MS, 200 * SLU_MS },
		{ SLU_MIN, SLU_SEC },
	};
	static struct op_call before[COUNT(cases)], m[COUNT(cases)];

	patient(0);
	EACH(i, cases) {
		count_rest(s.engine, cases[i].rest);
		hold();
		push(&before[i], "q", 0);
		pass(20 * SLU_MS);
		release(0);
		CHECK_EQ(0, rc_of(&before[i]));
		push(&m[i], "q", 0);
		pass(cases[i].wait - SLU_MS);
		CHECK_EQ(0, m[i].done);
		count_rest(s.engine, 0);
		pass(SLU_MS);
		CHECK_EQ(0, rc_of(&m[i]));
	}
}

TEST(a_batch_for_an_engine_that_is_far_away_may_be_larger)
{
	static struct op_call first, m[LANE_BATCH_OPS + 1];
	static const struct {
		const char *label;
		slu_time took;
		uint64_t batches;
	} cases[] = {
		{ "near", LANE_FAR, 2 },
		{ "far", LANE_FAR + 1, 1 },
	};

	patient(0);
	EACH(i, cases) {
		uint64_t runs;

		hold();
		push(&first, "q", 0);
		pass(cases[i].took);
		release(0);
		EACH(k, m)
			post_push(&m[k], "q", 0);
		runs = count_runs(s.engine);
		turn();
		CHECK_EQ(cases[i].batches, count_runs(s.engine) - runs, cases[i].label);
	}
}

TEST(the_shard_gathers_for_a_tenth_of_the_time_of_the_batch)
{
	static struct op_call m[3];

	patient(0);
	hold();
	post_push(&m[0], "q", 0);
	push(&m[1], "q", 0);
	pass(100 * SLU_MS);
	release(0);
	push(&m[2], "q", 0);
	CHECK_EQ(0, m[2].done);
	pass(10 * SLU_MS);
	CHECK_EQ(0, rc_of(&m[2]));
}

TEST(without_memory_for_a_return_a_claim_is_answered_when_it_is_committed)
{
	static struct op_call m, a;

	patient(SLU_SEC);
	push(&m, "q", 0);
	hold();
	claim(&a, "q", 0);
	fakeclock_advance(&fake, SLU_SEC);
	mailbox_poke(&s.mailbox);
	mem_fail_at(1);
	lane_round(&s);
	CHECK(mem_failed());
	mem_fail_at(0);
	CHECK_EQ(0, a.done);
	count_release(s.engine, 0);
	lane_round(&s);
	CHECK_EQ(m.put.m.id, got(&a));
}
