/*
 * test_lane_stream.c - claims of streams (LANE-8), and watches of the head of a queue.
 */
#include "lane_fixture.h"

#include "core/queue/shun.h"

/* A claim of a stream that may have `most` messages. */
static void
post_stream(struct op_call *c, uint64_t stream_no, uint32_t most, slu_time wait)
{
	call(c, OP_CLAIM, "ns", "q");
	c->op.wait = wait;
	c->op.max_rows = ROWS;
	c->op.claim.stream = stream_no;
	c->op.claim.credit = most;
	post(c);
}

static void
stream(struct op_call *c, uint64_t stream_no, uint32_t most, slu_time wait)
{
	post_stream(c, stream_no, most, wait);
	turn();
}

static void
post_watch(struct op_call *c, uint64_t known)
{
	call(c, OP_WATCH, "ns", "q");
	c->op.id = known;
	c->op.wait = SLU_MIN;
	post(c);
}

static void
watch(struct op_call *c, uint64_t known)
{
	post_watch(c, known);
	turn();
}

/* The head that a watch returned. */
static uint64_t
seen(const struct op_call *c)
{
	CHECK_EQ(1, c->done);
	CHECK_EQ(0, c->op.rc);
	return c->op.id;
}

static void
fill(struct op_call *m, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		post_push(&m[i], "q", 0);
	turn();
}

/* ---- Flows ---- */

TEST(a_stream_is_handed_no_more_than_it_has_room_for)
{
	static struct op_call m[4];
	static struct op_call a, b;

	fill(m, 4);
	stream(&a, 1, 3, 0);
	CHECK_EQ(1, a.done);
	CHECK_EQ(3u, a.op.n_rows);
	stream(&b, 1, 3, 0);
	CHECK_EQ(0, b.done, "it waits for room, though it may not wait for messages");
	pass(SLU_SEC);
	CHECK_EQ(0, b.done);
	end();
	CHECK_EQ(0, got(&b));
}

TEST(whatever_ends_a_lease_makes_room)
{
	static const enum op_verb verbs[] = { OP_ACK, OP_NACK, OP_QUARANTINE };
	static struct op_call m[2];

	EACH(i, verbs) {
		struct op_call a, b, c;

		start();
		fill(m, 2);
		stream(&a, 1, 1, 0);
		stream(&b, 1, 1, 0);
		CHECK_EQ(0, b.done);
		settle(&c, verbs[i], a.rows, SLU_HOUR);
		CHECK_EQ(m[1].put.m.id, got(&b));
		CHECK_EQ(1u, b.op.n_rows);
		end();
	}
}

TEST(a_stream_ends_when_one_of_its_leases_runs_out)
{
	static const struct {
		const char *label;
		uint32_t most;
	} cases[] = {
		{ "while it waits for room", 1 },
		{ "while it waits for messages", 3 },
	};

	EACH(i, cases) {
		static struct op_call m[2];
		struct op_call a, b, c;

		start();
		fill(m, 2);
		stream(&a, 1, cases[i].most, 0);
		stream(&b, 1, cases[i].most, SLU_NEVER);
		CHECK_EQ(0, b.done, cases[i].label);
		pass(30 * SLU_SEC);
		CHECK_EQ(1, b.done, cases[i].label);
		CHECK_EQ(0, b.op.rc, cases[i].label);
		CHECK_EQ(0u, b.op.n_rows, cases[i].label);
		stream(&c, 2, 3, 0);
		CHECK_EQ(2u, c.op.n_rows, cases[i].label);
		end();
	}
}

/* A lease that was extended, or settled in time, is no reason. */
TEST(a_stream_goes_on_while_its_leases_are_kept)
{
	static struct op_call m[2];
	static struct op_call a, b, c;

	fill(m, 2);
	stream(&a, 1, 1, 0);
	stream(&b, 1, 1, SLU_NEVER);
	pass(20 * SLU_SEC);
	settle(&c, OP_EXTEND, a.rows, 30 * SLU_SEC);
	pass(20 * SLU_SEC);
	CHECK_EQ(0, b.done);
	settle(&c, OP_ACK, a.rows, 0);
	CHECK_EQ(m[1].put.m.id, got(&b));
}

/* What was not handed over goes back, and takes no room. */
TEST(a_return_makes_room)
{
	static struct op_call m[2];
	static struct op_call a, b;

	fill(m, 1);
	stream(&a, 1, 1, 0);
	CHECK_EQ(1, a.done);
	a.op.verb = OP_RETURN;
	run(&a);
	stream(&b, 1, 1, 0);
	CHECK_EQ(m[0].put.m.id, got(&b));
}

/* DISPATCH-1: it comes to the line when it has room, not before. */
TEST(a_claim_that_waits_for_room_stands_behind_claims_that_wait_for_messages)
{
	static struct op_call m, a, b, c, ack, n;

	push(&m, "q", 0);
	stream(&a, 1, 1, 0);
	stream(&b, 1, 1, SLU_MIN);
	claim(&c, "q", SLU_MIN);
	settle(&ack, OP_ACK, a.rows, 0);
	push(&n, "q", 0);
	CHECK_EQ(n.put.m.id, got(&c));
	CHECK_EQ(0, b.done);
	push(&n, "q", 0);
	CHECK_EQ(n.put.m.id, got(&b));
}

/* ---- Messages that a stream has failed (LANE-10) ---- */

TEST(a_message_that_a_stream_failed_goes_to_the_claim_behind_it)
{
	static struct op_call m, a, b, c, nack;

	push(&m, "q", 0);
	stream(&a, 1, 2, 0);
	post_stream(&b, 1, 2, SLU_MIN);
	stream(&c, 2, 2, SLU_MIN);
	settle(&nack, OP_NACK, a.rows, 0);
	CHECK_EQ(m.put.m.id, got(&c));
	CHECK_EQ(0, b.done);
	push(&m, "q", 0);
	pass(SHUN_TIME);
	CHECK_EQ(m.put.m.id, got(&b));
}

TEST(a_stream_gets_what_it_has_failed_after_a_moment)
{
	static const slu_time waits[] = { 0, SLU_MIN };

	EACH(i, waits) {
		struct op_call m, a, b, nack;

		start();
		push(&m, "q", 0);
		stream(&a, 1, 2, 0);
		settle(&nack, OP_NACK, a.rows, 0);
		stream(&b, 1, 2, waits[i]);
		CHECK_EQ(0, b.done, "though it may not wait");
		pass(SHUN_TIME - 1);
		CHECK_EQ(0, b.done);
		pass(1);
		CHECK_EQ(m.put.m.id, got(&b));
		end();
	}
}

TEST(a_claim_that_has_stepped_back_can_be_canceled_and_ends_with_the_shard)
{
	static struct op_call m, a, b, nack;

	for (int cancel = 0; cancel < 2; cancel++) {
		start();
		push(&m, "q", 0);
		stream(&a, 1, 2, 0);
		post_settle(&nack, OP_NACK, a.rows, 0);
		stream(&b, 1, 2, SLU_MIN);
		CHECK_EQ(0, b.done);
		if (cancel) {
			lane_cancel(&s, &b.op);
			turn();
			CHECK_EQ(SLU_ECANCELED, b.op.rc);
		}
		end();
		CHECK_EQ(1, b.done);
	}
}

TEST(streams_do_not_hold_each_other_up)
{
	static struct op_call m[2];
	static struct op_call a, b, c;

	fill(m, 2);
	stream(&a, 1, 1, 0);
	post_stream(&b, 1, 1, 0);
	stream(&c, 2, 1, 0);
	CHECK_EQ(0, b.done);
	CHECK_EQ(m[1].put.m.id, got(&c));
}

TEST(a_claim_that_waits_for_room_can_be_canceled)
{
	static struct op_call m[2];
	static struct op_call a, b, c;

	fill(m, 2);
	stream(&a, 1, 1, 0);
	stream(&b, 1, 1, 0);
	lane_cancel(&s, &b.op);
	turn();
	CHECK_EQ(SLU_ECANCELED, rc_of(&b));
	settle(&c, OP_ACK, a.rows, 0);
	CHECK_EQ(1, b.done);
}

TEST(a_drain_ends_streams_that_wait_for_room)
{
	static struct op_call m[2];
	static struct op_call a, b;

	fill(m, 2);
	stream(&a, 1, 1, 0);
	stream(&b, 1, 1, SLU_MIN);
	lane_drain(&s);
	turn();
	CHECK_EQ(0, got(&b));
}

/* ---- Watches ---- */

TEST(a_watch_returns_for_every_change_of_the_head_and_for_nothing_else)
{
	static struct op_call m, n, w, c, r;

	watch(&w, UINT64_MAX);
	CHECK_EQ(0u, seen(&w), "how it is, at once");
	watch(&w, 0);
	CHECK_EQ(0, w.done);
	push(&m, "q", 0);
	CHECK_EQ(m.put.m.id, seen(&w));
	post_watch(&w, m.put.m.id);
	push(&n, "q", 0);
	CHECK_EQ(0, w.done, "another message is behind the head");
	claim(&c, "q", 0);
	CHECK_EQ(n.put.m.id, seen(&w));
	post_watch(&w, n.put.m.id);
	claim(&r, "q", 0);
	CHECK_EQ(0u, seen(&w));
	post_watch(&w, 0);
	settle(&m, OP_NACK, r.rows, 0);
	CHECK_EQ(n.put.m.id, seen(&w));
}

TEST(a_watch_sees_what_falls_due_and_what_expires)
{
	static struct op_call m, w;

	call(&m, OP_ENQUEUE, "ns", "q");
	m.put.m.id = 9999;
	m.put.delay = SLU_SEC;
	m.put.ttl = 3 * SLU_SEC;
	post(&m);
	watch(&w, 0);
	pass(SLU_SEC - 1);
	CHECK_EQ(0, w.done);
	pass(1);
	CHECK_EQ(9999u, seen(&w));
	watch(&w, 9999);
	CHECK_EQ(0, w.done);
	pass(3 * SLU_SEC);
	CHECK_EQ(0u, seen(&w));
}

/* One batch: nothing that happens beside it is missed. */
TEST(a_change_in_the_batch_of_the_watch_is_seen)
{
	static struct op_call m, c, w;

	post_watch(&w, 0);
	push(&m, "q", 0);
	CHECK_EQ(m.put.m.id, seen(&w));
	post_watch(&w, m.put.m.id);
	claim(&c, "q", 0);
	CHECK_EQ(0u, seen(&w));
}

TEST(each_watch_of_a_queue_knows_its_own_head)
{
	static struct op_call m, old, new;

	watch(&old, 0);
	push(&m, "other", 0);
	CHECK_EQ(0, old.done);
	watch(&new, 77);
	CHECK_EQ(0u, seen(&new));
	CHECK_EQ(0, old.done);
	end();
	CHECK_EQ(SLU_ECLOSED, old.op.rc);
}

TEST(a_watch_ends_with_its_time)
{
	static struct op_call w;

	watch(&w, 0);
	pass(SLU_MIN);
	CHECK_EQ(SLU_ETIMEOUT, rc_of(&w));
}
