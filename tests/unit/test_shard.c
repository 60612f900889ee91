#include "shard_fixture.h"

#include "engine/quota.h"

/* ---- Waiting ---- */

/* LQ-43 */
TEST(an_enqueue_wakes_a_waiting_claim)
{
	struct call a, m;
	uint64_t id;

	start();
	claim(&a, "q", SLU_MIN);
	turn();
	CHECK_EQ(0, a.done);
	id = push(&m, "q", 0);
	turn();
	CHECK_EQ(id, got(&a));
	CHECK(m.order < a.order);
	end();
}

/* LQ-42, MQ-28 */
TEST(a_claim_on_a_filled_queue_is_answered_at_once)
{
	struct call a, m;
	uint64_t id;

	start();
	id = push(&m, "q", 0);
	turn();
	claim(&a, "q", SLU_MIN);
	turn();
	CHECK_EQ(id, got(&a));
	end();
}

/* LQ-39, LQ-15 */
TEST(waiters_are_served_first_come_first_served_one_each)
{
	struct call a, b, c, m;

	start();
	claim(&a, "q", SLU_MIN);
	claim(&b, "q", SLU_MIN);
	turn();
	claim(&c, "q", SLU_MIN);
	turn();
	push(&m, "q", 0);
	turn();
	CHECK_EQ(1, a.done);
	CHECK_EQ(0, b.done + c.done);
	push(&m, "q", 0);
	turn();
	CHECK_EQ(1, b.done);
	CHECK_EQ(0, c.done);
	end();
	CHECK_EQ(0, got(&c));
}

TEST(who_comes_later_gets_nothing_before_who_came_first)
{
	struct call first, m, waits, in_a_hurry;
	uint64_t id;

	start();
	claim(&first, "q", SLU_MIN); /* all four are one batch */
	id = push(&m, "q", 0);
	claim(&waits, "q", SLU_MIN);
	claim(&in_a_hurry, "q", 0);
	turn();
	CHECK_EQ(id, got(&first));
	CHECK_EQ(0, waits.done);
	CHECK_EQ(0, got(&in_a_hurry));
	end();
}

TEST(who_does_not_wait_gets_what_is_left)
{
	struct call first, m[2], in_a_hurry;

	start();
	claim(&first, "q", SLU_MIN);
	turn();
	push(&m[0], "q", 0);
	push(&m[1], "q", 0);
	claim(&in_a_hurry, "q", 0);
	turn();
	CHECK_EQ(m[0].put.m.id, got(&first));
	CHECK_EQ(m[1].put.m.id, got(&in_a_hurry));
	end();
}

/* LQ-44 */
TEST(ten_messages_and_ten_waiters_need_one_wake)
{
	static struct call waiters[10], m[10];
	uint64_t batches;

	start();
	EACH(i, waiters)
		claim(&waiters[i], "q", SLU_MIN);
	turn();
	EACH(i, m)
		push(&m[i], "q", 0);
	batches = s.totals[SHARD_BATCHES];
	turn();
	EACH(i, waiters)
		CHECK_EQ(m[i].put.m.id, got(&waiters[i]));
	CHECK_EQ(2, s.totals[SHARD_BATCHES] - batches, "to enqueue, and to serve");
	end();
}

/* LQ-12 */
TEST(a_wait_ends_with_nothing_when_its_time_is_over)
{
	struct call a;

	start();
	claim(&a, "q", 2 * SLU_SEC);
	turn();
	pass(2 * SLU_SEC - 1);
	CHECK_EQ(0, a.done);
	pass(1);
	CHECK_EQ(0, got(&a));
	end();
}

/* LQ-46, LQ-24 */
TEST(whatever_makes_a_message_claimable_wakes_a_waiter)
{
	struct call a, b, m, c;

	start();
	push(&m, "q", SLU_SEC); /* a delay that ends */
	claim(&a, "q", SLU_MIN);
	turn();
	pass(SLU_SEC - 1);
	CHECK_EQ(0, a.done);
	pass(1);
	CHECK_EQ(m.put.m.id, got(&a));

	claim(&b, "q", SLU_MIN); /* a nack without delay */
	turn();
	settle(&c, OP_NACK, a.rows, 0);
	turn();
	CHECK_EQ(m.put.m.id, got(&b));

	claim(&a, "q", SLU_MIN); /* a lease that runs out */
	turn();
	pass(30 * SLU_SEC);
	CHECK_EQ(m.put.m.id, got(&a));

	claim(&b, "q", SLU_MIN); /* a dead letter that is redriven */
	turn();
	settle(&c, OP_NACK, a.rows, 0);
	c.item.dead = true;
	turn();
	CHECK_EQ(0, b.done);
	settle(&c, OP_REDRIVE, a.rows, 0);
	turn();
	CHECK_EQ(m.put.m.id, got(&b));
	end();
}

TEST(an_ack_lets_the_next_of_the_key_go_to_a_waiter)
{
	struct call m[2], a, b, c;

	start();
	EACH(i, m) {
		call(&m[i], OP_ENQUEUE, "ns", "q");
		m[i].put.m = (struct message){ .id = 900 + i, .key = SLICE("k") };
		m[i].op.puts = &m[i].put;
		m[i].op.n_puts = 1;
		post(&m[i]);
	}
	claim(&a, "q", SLU_MIN);
	claim(&b, "q", SLU_MIN);
	turn();
	CHECK_EQ(900, got(&a));
	CHECK_EQ(0, b.done);
	settle(&c, OP_ACK, a.rows, 0);
	turn();
	CHECK_EQ(901, got(&b));
	end();
}

TEST(a_result_can_be_waited_for)
{
	struct call m, a, result, late, c;

	start();
	call(&m, OP_ENQUEUE, "ns", "q");
	m.put.m = (struct message){ .id = 70, .keep = SLU_MIN };
	m.op.puts = &m.put;
	m.op.n_puts = 1;
	post(&m);
	claim(&a, "q", 0);
	call(&result, OP_RESULT, "ns", "q");
	result.op.id = 70;
	result.op.wait = SLU_MIN;
	post(&result);
	call(&late, OP_RESULT, "ns", "q");
	late.op.id = 70;
	late.op.wait = SLU_SEC;
	post(&late);
	turn();
	CHECK_EQ(0, result.done);
	pass(SLU_SEC);
	CHECK_EQ(SLU_ETIMEOUT, late.op.rc);
	CHECK_EQ(1, late.done);
	settle(&c, OP_ACK, a.rows, 0);
	turn();
	CHECK_EQ(1, result.done);
	CHECK_EQ(0, result.op.rc);
	end();
}

TEST(a_purge_ends_the_waits_for_results_of_what_it_deleted)
{
	struct call m, other, gone, there, purge;

	start();
	call(&gone, OP_RESULT, "ns", "q");
	gone.op.id = push(&m, "q", 0);
	gone.op.wait = SLU_MIN;
	post(&gone);
	call(&there, OP_RESULT, "ns", "other");
	there.op.id = push(&other, "other", 0);
	there.op.wait = SLU_MIN;
	post(&there);
	turn();
	CHECK_EQ(0, gone.done + there.done);
	call(&purge, OP_PURGE, "ns", "q");
	post(&purge);
	turn();
	turn();
	CHECK_EQ(1, gone.done);
	CHECK_EQ(SLU_ENOTFOUND, gone.op.rc);
	CHECK_EQ(0, there.done);
	end();
}

/* ---- Cancel ---- */

/* LQ-45 */
TEST(a_canceled_claim_leaves_the_line)
{
	struct call a, b, m;

	start();
	claim(&a, "q", SLU_MIN);
	claim(&b, "q", SLU_MIN);
	turn();
	shard_cancel(&s, &a.op);
	shard_cancel(&s, &a.op);
	turn();
	CHECK_EQ(1, a.done);
	CHECK_EQ(SLU_ECANCELED, a.op.rc);
	push(&m, "q", 0);
	turn();
	CHECK_EQ(m.put.m.id, got(&b));
	end();
}

TEST(a_cancel_before_the_op_has_run_prevents_it)
{
	struct call m, a;

	start();
	push(&m, "q", 0);
	shard_cancel(&s, &m.op);
	claim(&a, "q", 0);
	turn();
	CHECK_EQ(1, m.done);
	CHECK_EQ(SLU_ECANCELED, m.op.rc);
	CHECK_EQ(0, got(&a));
	end();
}

TEST(a_cancel_after_the_answer_does_nothing)
{
	struct call m;

	start();
	push(&m, "q", 0);
	turn();
	shard_cancel(&s, &m.op);
	turn();
	CHECK_EQ(1, m.done);
	CHECK_EQ(0, m.op.rc);
	end();
}

/* Invariant 13 */
TEST(what_was_granted_to_one_who_is_gone_is_claimable_at_once)
{
	struct call m, a, b;

	start();
	push(&m, "q", 0);
	claim(&a, "q", SLU_MIN);
	turn();
	CHECK_EQ(m.put.m.id, got(&a));
	claim(&b, "q", SLU_MIN);
	turn();
	a.op.verb = OP_RETURN;
	CHECK_EQ(0, shard_post(&s, &a.op));
	turn();
	CHECK_EQ(2, a.done);
	CHECK_EQ(m.put.m.id, got(&b));
	CHECK_EQ(1, b.rows[0].attempts);
	CHECK_EQ(0, b.rows[0].failures);
	end();
}

/* ---- Time ---- */

/* S2 */
TEST(an_ack_that_came_in_time_counts_though_the_shard_was_late)
{
	struct call m, a, c;

	start();
	push(&m, "q", 0);
	claim(&a, "q", 0);
	turn();
	fakeclock_advance(&fake, 30 * SLU_SEC - 1);
	settle(&c, OP_ACK, a.rows, 0);
	fakeclock_advance(&fake, SLU_MIN); /* a disk that hangs */
	turn();
	CHECK_EQ(0, c.item.rc);
	end();
}

TEST(an_ack_that_came_too_late_does_not_count)
{
	struct call m, a, c;

	start();
	push(&m, "q", 0);
	claim(&a, "q", 0);
	turn();
	fakeclock_advance(&fake, 30 * SLU_SEC);
	settle(&c, OP_ACK, a.rows, 0);
	turn();
	CHECK_EQ(SLU_ELEASE, c.item.rc);
	end();
}

TEST(a_lease_starts_when_it_is_handed_out)
{
	struct call m, a;

	start();
	push(&m, "q", 0);
	turn();
	claim(&a, "q", 0);
	fakeclock_advance(&fake, SLU_MIN);
	turn();
	CHECK_EQ(SLU_HOUR + SLU_MIN + 30 * SLU_SEC, a.rows[0].until);
	end();
}

/* S3; the fault of a stepped clock. */
TEST(a_wall_clock_that_steps_changes_nothing)
{
	struct call m, a, b;

	start();
	push(&m, "q", SLU_MIN);
	turn();
	fakeclock_set_wall(&fake, 24 * SLU_HOUR);
	claim(&a, "q", 0);
	turn();
	CHECK_EQ(0, got(&a));
	fakeclock_set_wall(&fake, 0);
	pass(SLU_MIN);
	claim(&b, "q", 0);
	turn();
	CHECK_EQ(m.put.m.id, got(&b));
	end();
}

/* ---- Batches ---- */

TEST(a_batch_has_its_bounds)
{
	static struct call m[MANY];
	uint64_t batches;

	start();
	EACH(i, m)
		push(&m[i], "q", 0);
	batches = s.totals[SHARD_BATCHES];
	turn();
	CHECK_EQ(2, s.totals[SHARD_BATCHES] - batches);
	CHECK_EQ(MANY, s.totals[SHARD_ACCEPTED]);
	EACH(i, m)
		CHECK_EQ(1, m[i].done);
	end();
}

TEST(bytes_bound_a_batch_too_and_a_large_op_goes_alone)
{
	struct call m[4];
	uint64_t batches;

	start();
	EACH(i, m)
		push(&m[i], "q", 0);
	m[0].op.bytes = 600 << 10;
	m[1].op.bytes = 600 << 10;
	m[2].op.bytes = 5 << 20;
	batches = s.totals[SHARD_BATCHES];
	turn();
	CHECK_EQ(4, s.totals[SHARD_BATCHES] - batches);
	CHECK_EQ(1, m[3].done);
	end();
}

/* Fault 22: the flood waits for itself. */
TEST(a_namespace_that_floods_holds_up_nobody_else)
{
	static struct call flood[MANY];
	struct call b;

	start();
	EACH(i, flood)
		push(&flood[i], "q", 0);
	call(&b, OP_STATS, "b", "q");
	b.op.queues = &b.queue;
	post(&b);
	inbox_poke(&s.inbox);
	shard_round(&s);
	CHECK_EQ(1, b.done);
	CHECK_EQ(0, flood[MANY - 1].done);
	turn();
	CHECK_EQ(1, flood[MANY - 1].done);
	end();
}

/* ---- The end ---- */

TEST(a_close_answers_what_came_before_and_ends_waits)
{
	struct call m, a, r;

	start();
	claim(&a, "q", SLU_NEVER);
	call(&r, OP_RESULT, "ns", "q");
	r.op.wait = SLU_NEVER;
	r.op.id = 1;
	post(&r);
	turn();
	push(&m, "other", 0);
	shard_close(&s);
	while (shard_round(&s))
		;
	CHECK_EQ(0, got(&a));
	CHECK_EQ(1, r.done);
	CHECK_EQ(0, m.op.rc);
	CHECK_EQ(1, m.done);
	CHECK_EQ(SLU_ECLOSED, shard_post(&s, &m.op));
	end();
}

TEST(a_drain_ends_waiting_claims_and_lets_holders_settle)
{
	struct call m, a, b, c;

	start();
	push(&m, "q", 0);
	claim(&a, "q", 0);
	claim(&b, "q", SLU_NEVER);
	turn();
	CHECK_EQ(0, b.done);
	shard_drain(&s);
	turn();
	CHECK_EQ(0, got(&b));
	settle(&c, OP_ACK, a.rows, 0);
	turn();
	CHECK_EQ(0, c.item.rc);
	CHECK_EQ(1, c.done);
	end();
}

/* ---- An engine that fails (S4) ---- */

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

TEST(when_a_run_fails_everybody_is_told)
{
	struct engine_ops ops = engine_memory;
	struct call waits, m, a, later;

	ops.open = fail_open;
	ops.run = fail_run;
	start_with(&ops);
	/* The engine calls itself engine_memory: the shard must run ours. */
	s.engine->ops = &ops;
	claim(&waits, "idle", SLU_MIN);
	push(&m, "q", 0);
	turn();
	broken = true;
	claim(&a, "q", 0);
	turn();
	CHECK_EQ(1, a.done);
	CHECK_EQ(SLU_EUNKNOWN, a.op.rc);
	CHECK_STR("the disk is gone", a.op.err.text);
	CHECK_EQ(0, a.op.n_rows);
	CHECK_EQ(1, waits.done);
	CHECK_EQ(SLU_EDOWN, waits.op.rc);
	push(&later, "q", 0);
	turn();
	CHECK_EQ(1, later.done);
	CHECK_EQ(SLU_EDOWN, later.op.rc);
	CHECK_EQ(SLU_EUNKNOWN, s.failed);
	end();
}

/* ---- Queues that nobody uses ---- */

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
	struct engine_ops ops = engine_memory;
	struct call m, other, a, waits, done;
	uint64_t id;

	ops.open = idle_open;
	atomic_store(&idle_quota.idle, SLU_SEC);
	start_with(&ops);
	push(&m, "q", 0);
	push(&other, "other", 0);
	claim(&a, "q", 0);
	turn();
	settle(&done, OP_ACK, &a.rows[0], 0);
	claim(&waits, "q", SLU_HOUR);
	turn();
	for (int i = 0; i < 10; i++)
		pass(SLU_SEC);
	CHECK(is_there("q") && is_there("other"));
	id = push(&m, "q", 0);
	turn();
	CHECK_EQ(id, got(&waits));
	settle(&done, OP_ACK, &waits.rows[0], 0);
	for (int i = 0; i < 3; i++)
		pass(SLU_SEC);
	CHECK(!is_there("q"));
	CHECK(is_there("other")); /* it has a message */
	end();
}
