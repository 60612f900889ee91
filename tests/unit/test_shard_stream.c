/*
 * test_shard_stream.c - flows of claims (S8), and who watches the head of a queue.
 */
#include "shard_fixture.h"

#include "core/shun.h"

/* A claim of a stream that may have `most` messages. */
static void
stream(struct call *c, uint64_t flow, uint32_t most, slu_time wait)
{
	call(c, OP_CLAIM, "ns", "q");
	c->op.wait = wait;
	c->op.max_rows = ROWS;
	c->op.flow = flow;
	c->op.flow_max = most;
	post(c);
}

static void
watch(struct call *c, uint64_t known)
{
	call(c, OP_WATCH, "ns", "q");
	c->op.id = known;
	c->op.wait = SLU_MIN;
	post(c);
}

/* Which head a watch was told. */
static uint64_t
seen(const struct call *c)
{
	CHECK_EQ(1, c->done);
	CHECK_EQ(0, c->op.rc);
	return c->op.id;
}

static void
fill(struct call *m, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		push(&m[i], "q", 0);
	turn();
}

/* ---- Flows ---- */

TEST(a_stream_is_handed_no_more_than_it_has_room_for)
{
	static struct call m[4];
	struct call a, b;

	start();
	fill(m, 4);
	stream(&a, 1, 3, 0);
	turn();
	CHECK_EQ(1, a.done);
	CHECK_EQ(3u, a.op.n_rows);
	stream(&b, 1, 3, 0);
	turn();
	CHECK_EQ(0, b.done, "it waits for room, though it may not wait for messages");
	pass(SLU_SEC);
	CHECK_EQ(0, b.done);
	end();
	CHECK_EQ(0, got(&b));
}

TEST(whatever_ends_a_lease_makes_room)
{
	static const enum op_verb verbs[] = { OP_ACK, OP_NACK, OP_ASIDE };
	static struct call m[2];

	EACH(i, verbs) {
		struct call a, b, c;

		start();
		fill(m, 2);
		stream(&a, 1, 1, 0);
		turn();
		stream(&b, 1, 1, 0);
		turn();
		CHECK_EQ(0, b.done);
		settle(&c, verbs[i], a.rows, SLU_HOUR);
		turn();
		CHECK_EQ(m[1].put.m.id, got(&b));
		CHECK_EQ(1u, b.op.n_rows);
		end();
	}
}

TEST(a_lease_that_runs_out_makes_room)
{
	static struct call m[2];
	struct call a, b;

	start();
	fill(m, 2);
	stream(&a, 1, 1, 0);
	turn();
	stream(&b, 1, 1, 0);
	turn();
	pass(30 * SLU_SEC);
	CHECK(got(&b) != 0);
	end();
}

/* What was not handed over goes back, and takes no room. */
TEST(a_return_makes_room)
{
	static struct call m[2];
	struct call a, b;

	start();
	fill(m, 1);
	stream(&a, 1, 1, 0);
	turn();
	CHECK_EQ(1, a.done);
	a.op.verb = OP_RETURN;
	post(&a);
	turn();
	stream(&b, 1, 1, 0);
	turn();
	CHECK_EQ(m[0].put.m.id, got(&b));
	end();
}

/* D1: it comes to the line when it has room, not before. */
TEST(who_waits_for_room_stands_behind_who_waits_for_messages)
{
	struct call m, a, b, c, ack, n;

	start();
	push(&m, "q", 0);
	turn();
	stream(&a, 1, 1, 0);
	turn();
	stream(&b, 1, 1, SLU_MIN);
	turn();
	claim(&c, "q", SLU_MIN);
	turn();
	settle(&ack, OP_ACK, a.rows, 0);
	turn();
	push(&n, "q", 0);
	turn();
	CHECK_EQ(n.put.m.id, got(&c));
	CHECK_EQ(0, b.done);
	push(&n, "q", 0);
	turn();
	CHECK_EQ(n.put.m.id, got(&b));
	end();
}

/* ---- Messages that a stream has failed (S10) ---- */

TEST(what_a_stream_fails_goes_to_who_waits_behind_it)
{
	struct call m, a, b, c, nack;

	start();
	push(&m, "q", 0);
	turn();
	stream(&a, 1, 2, 0);
	turn();
	stream(&b, 1, 2, SLU_MIN);
	stream(&c, 2, 2, SLU_MIN);
	turn();
	settle(&nack, OP_NACK, a.rows, 0);
	turn();
	CHECK_EQ(m.put.m.id, got(&c));
	CHECK_EQ(0, b.done);
	push(&m, "q", 0);
	turn();
	pass(SHUN_TIME);
	CHECK_EQ(m.put.m.id, got(&b));
	end();
}

TEST(a_stream_gets_what_it_has_failed_after_a_moment)
{
	static const slu_time waits[] = { 0, SLU_MIN };

	EACH(i, waits) {
		struct call m, a, b, nack;

		start();
		push(&m, "q", 0);
		turn();
		stream(&a, 1, 2, 0);
		turn();
		settle(&nack, OP_NACK, a.rows, 0);
		turn();
		stream(&b, 1, 2, waits[i]);
		turn();
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
	struct call m, a, b, nack;

	for (int cancel = 0; cancel < 2; cancel++) {
		start();
		push(&m, "q", 0);
		turn();
		stream(&a, 1, 2, 0);
		turn();
		settle(&nack, OP_NACK, a.rows, 0);
		stream(&b, 1, 2, SLU_MIN);
		turn();
		CHECK_EQ(0, b.done);
		if (cancel) {
			shard_cancel(&s, &b.op);
			turn();
			CHECK_EQ(SLU_ECANCELED, b.op.rc);
		}
		end();
		CHECK_EQ(1, b.done);
	}
}

TEST(streams_do_not_hold_each_other_up)
{
	static struct call m[2];
	struct call a, b, c;

	start();
	fill(m, 2);
	stream(&a, 1, 1, 0);
	turn();
	stream(&b, 1, 1, 0);
	stream(&c, 2, 1, 0);
	turn();
	CHECK_EQ(0, b.done);
	CHECK_EQ(m[1].put.m.id, got(&c));
	end();
}

TEST(a_claim_that_waits_for_room_can_be_canceled)
{
	static struct call m[2];
	struct call a, b, c;

	start();
	fill(m, 2);
	stream(&a, 1, 1, 0);
	turn();
	stream(&b, 1, 1, 0);
	turn();
	shard_cancel(&s, &b.op);
	turn();
	CHECK_EQ(1, b.done);
	CHECK_EQ(SLU_ECANCELED, b.op.rc);
	settle(&c, OP_ACK, a.rows, 0);
	turn();
	CHECK_EQ(1, b.done);
	end();
}

TEST(a_drain_ends_streams_that_wait_for_room)
{
	static struct call m[2];
	struct call a, b;

	start();
	fill(m, 2);
	stream(&a, 1, 1, 0);
	turn();
	stream(&b, 1, 1, SLU_MIN);
	turn();
	shard_drain(&s);
	turn();
	CHECK_EQ(0, got(&b));
	end();
}

/* ---- Watches ---- */

TEST(a_watch_is_told_every_change_of_the_head_and_nothing_else)
{
	struct call m, n, w, c, r;

	start();
	watch(&w, UINT64_MAX);
	turn();
	CHECK_EQ(0u, seen(&w), "how it is, at once");
	watch(&w, 0);
	turn();
	CHECK_EQ(0, w.done);
	push(&m, "q", 0);
	turn();
	CHECK_EQ(m.put.m.id, seen(&w));
	watch(&w, m.put.m.id);
	push(&n, "q", 0);
	turn();
	CHECK_EQ(0, w.done, "another message is behind the head");
	claim(&c, "q", 0);
	turn();
	CHECK_EQ(n.put.m.id, seen(&w));
	watch(&w, n.put.m.id);
	claim(&r, "q", 0);
	turn();
	CHECK_EQ(0u, seen(&w));
	watch(&w, 0);
	settle(&m, OP_NACK, r.rows, 0);
	turn();
	CHECK_EQ(n.put.m.id, seen(&w));
	end();
}

TEST(a_watch_sees_what_falls_due_and_what_expires)
{
	struct call m, w;

	start();
	call(&m, OP_ENQUEUE, "ns", "q");
	m.put.m.id = 9999;
	m.put.delay = SLU_SEC;
	m.put.ttl = 3 * SLU_SEC;
	m.op.puts = &m.put;
	m.op.n_puts = 1;
	post(&m);
	watch(&w, 0);
	turn();
	pass(SLU_SEC - 1);
	CHECK_EQ(0, w.done);
	pass(1);
	CHECK_EQ(9999u, seen(&w));
	watch(&w, 9999);
	turn();
	CHECK_EQ(0, w.done);
	pass(3 * SLU_SEC);
	CHECK_EQ(0u, seen(&w));
	end();
}

/* One batch: nothing that happens beside it is missed. */
TEST(a_change_in_the_batch_of_the_watch_is_seen)
{
	struct call m, c, w;

	start();
	watch(&w, 0);
	push(&m, "q", 0);
	turn();
	CHECK_EQ(m.put.m.id, seen(&w));
	watch(&w, m.put.m.id);
	claim(&c, "q", 0);
	turn();
	CHECK_EQ(0u, seen(&w));
	end();
}

TEST(each_watch_of_a_queue_knows_its_own_head)
{
	struct call m, old, new;

	start();
	watch(&old, 0);
	turn();
	push(&m, "other", 0);
	turn();
	CHECK_EQ(0, old.done);
	watch(&new, 77);
	turn();
	CHECK_EQ(0u, seen(&new));
	CHECK_EQ(0, old.done);
	end();
	CHECK_EQ(SLU_ECLOSED, old.op.rc);
}

TEST(a_watch_ends_with_its_time)
{
	struct call w;

	start();
	watch(&w, 0);
	turn();
	pass(SLU_MIN);
	CHECK_EQ(1, w.done);
	CHECK_EQ(SLU_ETIMEOUT, w.op.rc);
	end();
}
