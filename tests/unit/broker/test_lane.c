#include "lane_fixture.h"

#include "engine/quota.h"

/* ---- Waiting ---- */

/* LQ-43 */
TEST(an_enqueue_wakes_a_waiting_claim)
{
	static struct op_call a, m;
	uint64_t id;

	claim(&a, "q", SLU_MIN);
	CHECK_EQ(0, a.done);
	id = push(&m, "q", 0);
	CHECK_EQ(id, got(&a));
	CHECK(m.order < a.order);
}

/* LQ-42, MQ-28 */
TEST(a_claim_on_a_filled_queue_is_answered_at_once)
{
	static struct op_call a, m;
	uint64_t id;

	id = push(&m, "q", 0);
	claim(&a, "q", SLU_MIN);
	CHECK_EQ(id, got(&a));
}

/* LQ-39, LQ-15 */
TEST(waiters_are_served_first_come_first_served_one_each)
{
	static struct op_call a, b, c, m;

	post_claim(&a, "q", SLU_MIN);
	claim(&b, "q", SLU_MIN);
	claim(&c, "q", SLU_MIN);
	push(&m, "q", 0);
	CHECK_EQ(1, a.done);
	CHECK_EQ(0, b.done + c.done);
	push(&m, "q", 0);
	CHECK_EQ(1, b.done);
	CHECK_EQ(0, c.done);
	end();
	CHECK_EQ(0, got(&c));
}

TEST(a_later_claim_gets_nothing_before_an_earlier_one)
{
	static struct op_call first, m, waits, in_a_hurry;
	uint64_t id;

	post_claim(&first, "q", SLU_MIN); /* all four are one batch */
	id = post_push(&m, "q", 0);
	post_claim(&waits, "q", SLU_MIN);
	claim(&in_a_hurry, "q", 0);
	CHECK_EQ(id, got(&first));
	CHECK_EQ(0, waits.done);
	CHECK_EQ(0, got(&in_a_hurry));
}

TEST(a_claim_that_does_not_wait_gets_what_is_left)
{
	static struct op_call first, m[2], in_a_hurry;

	claim(&first, "q", SLU_MIN);
	post_push(&m[0], "q", 0);
	post_push(&m[1], "q", 0);
	claim(&in_a_hurry, "q", 0);
	CHECK_EQ(m[0].put.m.id, got(&first));
	CHECK_EQ(m[1].put.m.id, got(&in_a_hurry));
}

/* LQ-44 */
TEST(ten_messages_and_ten_waiters_need_one_wake)
{
	static struct op_call waiters[10], m[10];
	uint64_t batches;

	EACH(i, waiters)
		post_claim(&waiters[i], "q", SLU_MIN);
	turn();
	EACH(i, m)
		post_push(&m[i], "q", 0);
	batches = s.totals[LANE_BATCHES];
	turn();
	EACH(i, waiters)
		CHECK_EQ(m[i].put.m.id, got(&waiters[i]));
	CHECK_EQ(2, s.totals[LANE_BATCHES] - batches, "to enqueue, and to serve");
}

/* LQ-12 */
TEST(a_wait_ends_with_nothing_when_its_time_is_over)
{
	static struct op_call a;

	claim(&a, "q", 2 * SLU_SEC);
	pass(2 * SLU_SEC - 1);
	CHECK_EQ(0, a.done);
	pass(1);
	CHECK_EQ(0, got(&a));
}

/* LQ-46, LQ-24 */
TEST(whatever_makes_a_message_claimable_wakes_a_waiter)
{
	static struct op_call a, b, m, c;

	post_push(&m, "q", SLU_SEC); /* a delay that ends */
	claim(&a, "q", SLU_MIN);
	pass(SLU_SEC - 1);
	CHECK_EQ(0, a.done);
	pass(1);
	CHECK_EQ(m.put.m.id, got(&a));

	claim(&b, "q", SLU_MIN); /* a nack without delay */
	settle(&c, OP_NACK, a.rows, 0);
	CHECK_EQ(m.put.m.id, got(&b));

	claim(&a, "q", SLU_MIN); /* a lease that runs out */
	pass(30 * SLU_SEC);
	CHECK_EQ(m.put.m.id, got(&a));

	claim(&b, "q", SLU_MIN); /* a dead letter that is redriven */
	post_settle(&c, OP_NACK, a.rows, 0);
	c.item.dead = true;
	turn();
	CHECK_EQ(0, b.done);
	settle(&c, OP_REDRIVE, a.rows, 0);
	CHECK_EQ(m.put.m.id, got(&b));
}

TEST(an_ack_lets_the_next_of_the_key_go_to_a_waiter)
{
	static struct op_call m[2], a, b, c;

	EACH(i, m) {
		call(&m[i], OP_ENQUEUE, "ns", "q");
		m[i].put.m = (struct message){ .id = 900 + i, .key = SLICE("k") };
		post(&m[i]);
	}
	post_claim(&a, "q", SLU_MIN);
	claim(&b, "q", SLU_MIN);
	CHECK_EQ(900, got(&a));
	CHECK_EQ(0, b.done);
	settle(&c, OP_ACK, a.rows, 0);
	CHECK_EQ(901, got(&b));
}

TEST(a_result_can_be_waited_for)
{
	static struct op_call m, a, result, late, c;

	call(&m, OP_ENQUEUE, "ns", "q");
	m.put.m = (struct message){ .id = 70, .keep = SLU_MIN };
	post(&m);
	post_claim(&a, "q", 0);
	call(&result, OP_RESULT, "ns", "q");
	result.op.id = 70;
	result.op.wait = SLU_MIN;
	post(&result);
	call(&late, OP_RESULT, "ns", "q");
	late.op.id = 70;
	late.op.wait = SLU_SEC;
	run(&late);
	CHECK_EQ(0, result.done);
	pass(SLU_SEC);
	CHECK_EQ(SLU_ETIMEOUT, rc_of(&late));
	settle(&c, OP_ACK, a.rows, 0);
	CHECK_EQ(0, rc_of(&result));
}

TEST(a_purge_ends_the_waits_for_results_of_what_it_deleted)
{
	static struct op_call m, other, gone, there, purge;

	call(&gone, OP_RESULT, "ns", "q");
	gone.op.id = post_push(&m, "q", 0);
	gone.op.wait = SLU_MIN;
	post(&gone);
	call(&there, OP_RESULT, "ns", "other");
	there.op.id = post_push(&other, "other", 0);
	there.op.wait = SLU_MIN;
	run(&there);
	CHECK_EQ(0, gone.done + there.done);
	call(&purge, OP_PURGE, "ns", "q");
	run(&purge);
	turn();
	CHECK_EQ(SLU_ENOTFOUND, rc_of(&gone));
	CHECK_EQ(0, there.done);
}

/* ---- Cancel ---- */

/* LQ-45 */
TEST(a_canceled_claim_leaves_its_waitlist)
{
	static struct op_call a, b, m;

	post_claim(&a, "q", SLU_MIN);
	claim(&b, "q", SLU_MIN);
	lane_cancel(&s, &a.op);
	lane_cancel(&s, &a.op);
	turn();
	CHECK_EQ(SLU_ECANCELED, rc_of(&a));
	push(&m, "q", 0);
	CHECK_EQ(m.put.m.id, got(&b));
}

TEST(a_cancel_before_the_op_has_run_prevents_it)
{
	static struct op_call m, a;

	post_push(&m, "q", 0);
	lane_cancel(&s, &m.op);
	claim(&a, "q", 0);
	CHECK_EQ(SLU_ECANCELED, rc_of(&m));
	CHECK_EQ(0, got(&a));
}

TEST(a_cancel_after_the_answer_does_nothing)
{
	static struct op_call m;

	push(&m, "q", 0);
	lane_cancel(&s, &m.op);
	turn();
	CHECK_EQ(0, rc_of(&m));
}

/* Invariant 13 */
TEST(a_message_granted_to_a_client_that_is_gone_is_claimable_at_once)
{
	static struct op_call m, a, b;

	post_push(&m, "q", 0);
	claim(&a, "q", SLU_MIN);
	CHECK_EQ(m.put.m.id, got(&a));
	claim(&b, "q", SLU_MIN);
	a.op.verb = OP_RETURN;
	CHECK_EQ(0, lane_post(&s, &a.op));
	turn();
	CHECK_EQ(2, a.done);
	CHECK_EQ(m.put.m.id, got(&b));
	CHECK_EQ(1, b.rows[0].attempts);
	CHECK_EQ(0, b.rows[0].failures);
}

/* ---- Time ---- */

/* LANE-2 */
TEST(an_ack_that_came_in_time_counts_though_the_shard_was_late)
{
	static struct op_call m, a, c;

	post_push(&m, "q", 0);
	claim(&a, "q", 0);
	fakeclock_advance(&fake, 30 * SLU_SEC - 1);
	post_settle(&c, OP_ACK, a.rows, 0);
	fakeclock_advance(&fake, SLU_MIN); /* a disk that hangs */
	turn();
	CHECK_EQ(0, c.item.rc);
}

TEST(an_ack_that_came_too_late_does_not_count)
{
	static struct op_call m, a, c;

	post_push(&m, "q", 0);
	claim(&a, "q", 0);
	fakeclock_advance(&fake, 30 * SLU_SEC);
	settle(&c, OP_ACK, a.rows, 0);
	CHECK_EQ(SLU_ELEASE, c.item.rc);
}

TEST(a_lease_starts_when_it_is_handed_out)
{
	static struct op_call m, a;

	push(&m, "q", 0);
	post_claim(&a, "q", 0);
	fakeclock_advance(&fake, SLU_MIN);
	turn();
	CHECK_EQ(SLU_HOUR + SLU_MIN + 30 * SLU_SEC, a.rows[0].until);
}

/* LANE-3; the fault of a stepped clock. */
TEST(a_wall_clock_that_steps_changes_nothing)
{
	static struct op_call m, a, b;

	push(&m, "q", SLU_MIN);
	fakeclock_set_wall(&fake, 24 * SLU_HOUR);
	claim(&a, "q", 0);
	CHECK_EQ(0, got(&a));
	fakeclock_set_wall(&fake, 0);
	pass(SLU_MIN);
	claim(&b, "q", 0);
	CHECK_EQ(m.put.m.id, got(&b));
}

/* ---- Batches ---- */

TEST(a_batch_has_its_bounds)
{
	static struct op_call m[MANY];
	uint64_t batches;

	EACH(i, m)
		post_push(&m[i], "q", 0);
	batches = s.totals[LANE_BATCHES];
	turn();
	CHECK_EQ(2, s.totals[LANE_BATCHES] - batches);
	CHECK_EQ(MANY, s.totals[LANE_ACCEPTED]);
	EACH(i, m)
		CHECK_EQ(1, m[i].done);
}

TEST(bytes_bound_a_batch_too_and_a_large_op_goes_alone)
{
	static struct op_call m[4];
	uint64_t batches;

	EACH(i, m)
		post_push(&m[i], "q", 0);
	m[0].op.route.bytes = 600 << 10;
	m[1].op.route.bytes = 600 << 10;
	m[2].op.route.bytes = 5 << 20;
	batches = s.totals[LANE_BATCHES];
	turn();
	CHECK_EQ(4, s.totals[LANE_BATCHES] - batches);
	CHECK_EQ(1, m[3].done);
}

/* Fault 22: the flood waits for itself. */
TEST(a_namespace_that_floods_delays_no_other)
{
	static struct op_call flood[MANY];
	static struct op_call b;

	EACH(i, flood)
		post_push(&flood[i], "q", 0);
	call(&b, OP_STATS, "b", "q");
	post(&b);
	mailbox_poke(&s.mailbox);
	lane_round(&s);
	CHECK_EQ(1, b.done);
	CHECK_EQ(0, flood[MANY - 1].done);
	turn();
	CHECK_EQ(1, flood[MANY - 1].done);
}

/* ---- The end ---- */

TEST(a_close_answers_what_came_before_and_ends_waits)
{
	static struct op_call m, a, r;

	post_claim(&a, "q", SLU_NEVER);
	call(&r, OP_RESULT, "ns", "q");
	r.op.wait = SLU_NEVER;
	r.op.id = 1;
	run(&r);
	post_push(&m, "other", 0);
	lane_close(&s);
	while (lane_round(&s))
		;
	CHECK_EQ(0, got(&a));
	CHECK_EQ(1, r.done);
	CHECK_EQ(0, rc_of(&m));
	CHECK_EQ(SLU_ECLOSED, lane_post(&s, &m.op));
}

TEST(a_drain_ends_waiting_claims_and_lets_holders_settle)
{
	static struct op_call m, a, b, c;

	post_push(&m, "q", 0);
	post_claim(&a, "q", 0);
	claim(&b, "q", SLU_NEVER);
	CHECK_EQ(0, b.done);
	lane_drain(&s);
	turn();
	CHECK_EQ(0, got(&b));
	settle(&c, OP_ACK, a.rows, 0);
	CHECK_EQ(0, c.item.rc);
	CHECK_EQ(1, c.done);
}

/* ---- An engine that fails (LANE-4) ---- */

static bool broken;

static int
fail_open(struct engine **out, const struct engine_conf *conf, struct engine_found *found,
	  struct slu_err *err)
{
	const int rc = engine_memory.open(out, conf, found, err);

	broken = false;
	return rc;
}

static int
fail_run(struct engine *e, struct op *batch, slu_time due, slu_time now,
	 struct slu_err *err)
{
	const int rc = engine_memory.run(e, batch, due, now, err);

	return broken ? slu_fail(err, SLU_EUNKNOWN, "the disk is gone") : rc;
}

TEST(when_a_run_fails_every_op_is_answered)
{
	static struct engine_ops ops;
	static struct op_call waits, m, a, later;

	ops = engine_memory;
	ops.open = fail_open;
	ops.run = fail_run;
	start_with(&ops);
	/* The engine calls itself engine_memory: the shard must run ours. */
	s.engine->ops = &ops;
	post_claim(&waits, "idle", SLU_MIN);
	push(&m, "q", 0);
	broken = true;
	claim(&a, "q", 0);
	CHECK_EQ(SLU_EUNKNOWN, rc_of(&a));
	CHECK_STR("the disk is gone", a.op.err.text);
	CHECK_EQ(0, a.op.n_rows);
	CHECK_EQ(SLU_EDOWN, rc_of(&waits));
	push(&later, "q", 0);
	CHECK_EQ(SLU_EDOWN, rc_of(&later));
	CHECK_EQ(SLU_EUNKNOWN, s.failed);
}

static unsigned attempts;

/* What it found lies in the past, and it knows an id. */
static int
fail_reopen(struct engine *e, const struct engine_conf *conf, struct engine_found *found,
	    struct slu_err *err)
{
	(void)e;
	attempts++;
	*found = (struct engine_found){ .now = conf->wall - SLU_HOUR, .highest_id = 4711 };
	return broken ? slu_fail(err, SLU_EDOWN, "the disk is still gone") : 0;
}

static uint64_t given;

static void
on_given(void *arg, uint64_t id)
{
	(void)arg;
	given = id;
}

TEST(a_failed_engine_is_reopened_with_back_off)
{
	static struct engine_ops ops;
	static struct op_call m, down, again, a;
	struct slu_err why;
	slu_time before;

	ops = engine_memory;
	ops.open = fail_open;
	ops.run = fail_run;
	ops.reopen = fail_reopen;
	start_with(&ops);
	s.engine->ops = &ops;
	s.conf.given = on_given;
	push(&m, "q", 0);
	broken = true;
	push(&again, "q", 0);
	CHECK_EQ(SLU_EUNKNOWN, rc_of(&again));
	turn();
	CHECK_EQ(0, attempts);
	for (slu_time delay = 100 * SLU_MS; delay < LANE_RETRY_MAX; delay *= 2) {
		const unsigned were = attempts;

		pass(delay - SLU_MS);
		CHECK_EQ(were, attempts);
		pass(SLU_MS);
		CHECK_EQ(were + 1, attempts);
	}
	push(&down, "q", 0);
	CHECK_EQ(SLU_EDOWN, rc_of(&down));
	CHECK_STR("the disk is still gone", down.op.err.text);
	CHECK_EQ(SLU_EDOWN, lane_failure(&s, &why));
	CHECK_STR("the disk is still gone", why.text);
	before = s.now;
	broken = false;
	pass(LANE_RETRY_MAX);
	CHECK_EQ(0, lane_failure(&s, NULL));
	CHECK(s.now >= before + LANE_RETRY_MAX);
	CHECK_EQ(4711, given);
	claim(&a, "q", 0);
	CHECK_EQ(1, got(&a));
}

/* ---- Unused queues ---- */

/* A memory engine that forgets queues after a second. */
static struct quota idle_quota;

static int
idle_open(struct engine **out, const struct engine_conf *conf, struct engine_found *found,
	  struct slu_err *err)
{
	struct engine_conf own = *conf;

	own.quota = &idle_quota;
	return engine_memory.open(out, &own, found, err);
}

static bool
is_there(const char *queue)
{
	return ledger_queue_find(memory_ledger(s.engine), SLICE("ns"), slice_of(queue)) !=
	       SLAB_NONE;
}

TEST(a_queue_that_is_waited_for_is_not_forgotten)
{
	static struct engine_ops ops;
	static struct op_call m, other, a, waits, done;
	uint64_t id;

	ops = engine_memory;
	ops.open = idle_open;
	atomic_store(&idle_quota.idle, SLU_SEC);
	start_with(&ops);
	post_push(&m, "q", 0);
	post_push(&other, "other", 0);
	claim(&a, "q", 0);
	post_settle(&done, OP_ACK, &a.rows[0], 0);
	claim(&waits, "q", SLU_HOUR);
	for (int i = 0; i < 10; i++)
		pass(SLU_SEC);
	CHECK(is_there("q") && is_there("other"));
	id = push(&m, "q", 0);
	CHECK_EQ(id, got(&waits));
	post_settle(&done, OP_ACK, &waits.rows[0], 0);
	for (int i = 0; i < 3; i++)
		pass(SLU_SEC);
	CHECK(!is_there("q"));
	CHECK(is_there("other")); /* it has a message */
}
