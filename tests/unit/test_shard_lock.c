/*
 * test_shard_lock.c - acquires that wait, in line for their key.
 */
#include "shard_fixture.h"

#include "base/limit.h"
#include "engine/quota.h"

static void
acquire(struct call *c, const char *key, slu_time ttl, slu_time wait)
{
	call(c, OP_ACQUIRE, "ns", LOCK_QUEUE);
	c->op.lock.key = slice_of(key);
	c->op.lock.ttl = ttl;
	c->op.wait = wait;
	post(c);
}

/* By the lease that it was granted; then it is another call. */
static void
give_up(struct call *c, const struct call *holder)
{
	call(c, OP_RELEASE, "ns", LOCK_QUEUE);
	c->op.lock.key = holder->op.lock.key;
	c->op.lock.token = holder->op.lock.token;
	memcpy(c->op.lock.txn, holder->op.lock.txn, LOCK_TXN);
	post(c);
}

static bool
holds(const struct call *c)
{
	return c->done == 1 && c->op.rc == 0 && c->op.lock.token;
}

TEST(a_key_goes_to_those_who_wait_first_come_first_served)
{
	struct call first, others[3], release;

	start();
	acquire(&first, "k", 0, 0);
	turn();
	CHECK(holds(&first));
	EACH(i, others)
		acquire(&others[i], "k", 0, SLU_HOUR);
	turn();
	EACH(i, others)
		CHECK_EQ(0, others[i].done);
	CHECK_EQ(3, dispatch_count(&s.dispatch));
	give_up(&release, &first);
	turn();
	EACH(i, others) {
		CHECK(holds(&others[i]));
		CHECK_EQ(0, i < 2 ? others[i + 1].done : 0);
		CHECK(others[i].op.lock.token > first.op.lock.token);
		give_up(&release, &others[i]);
		turn();
	}
	end();
}

TEST(the_end_of_a_lease_wakes_who_waits)
{
	struct call a, b;

	start();
	acquire(&a, "k", 10 * SLU_SEC, 0);
	turn();
	acquire(&b, "k", 10 * SLU_SEC, SLU_HOUR);
	turn();
	CHECK(shard_sleeps(&s) <= clock_boot(&fake.clock) + 10 * SLU_SEC);
	pass(10 * SLU_SEC - 1);
	CHECK_EQ(0, b.done);
	pass(1);
	CHECK(holds(&b));
	end();
}

TEST(who_does_not_wait_does_not_pass_those_who_do)
{
	struct call a, b, c, release;

	start();
	acquire(&a, "k", 0, 0);
	turn();
	acquire(&b, "k", 0, SLU_HOUR);
	turn();
	give_up(&release, &a);
	acquire(&c, "k", 0, 0);
	turn();
	CHECK(holds(&b));
	CHECK_EQ(SLU_ELEASE, c.op.rc);
	CHECK_EQ(LOCK_HELD, c.op.lock.why);
	end();
}

TEST(a_wait_that_ends_tells_who_has_the_key)
{
	struct call a, behind[2];

	start();
	acquire(&a, "k", SLU_HOUR, 0);
	turn();
	EACH(i, behind)
		acquire(&behind[i], "k", 0, 10 * SLU_SEC);
	pass(10 * SLU_SEC - 1);
	EACH(i, behind)
		CHECK_EQ(0, behind[i].done);
	pass(1);
	EACH(i, behind) { /* also the one whose turn never came */
		CHECK_EQ(1, behind[i].done);
		CHECK_EQ(SLU_ELEASE, behind[i].op.rc);
		CHECK_EQ(LOCK_HELD, behind[i].op.lock.why);
		CHECK_EQ(a.op.lock.until, behind[i].op.lock.until);
		CHECK_CONTAINS("k: it is leased", behind[i].op.err.text);
	}
	CHECK_EQ(0, dispatch_count(&s.dispatch));
	end();
}

TEST(a_canceled_acquire_leaves_the_line_and_the_next_one_moves_up)
{
	struct call a, b, c, release;

	start();
	acquire(&a, "k", 0, 0);
	turn();
	acquire(&b, "k", 0, SLU_HOUR);
	acquire(&c, "k", 0, SLU_HOUR);
	turn();
	shard_cancel(&s, &b.op);
	turn();
	CHECK_EQ(SLU_ECANCELED, b.op.rc);
	give_up(&release, &a);
	turn();
	CHECK(holds(&c));
	end();
}

/* Also when nobody knew the key before: it is forgotten at once. */
TEST(what_was_granted_to_one_who_is_gone_goes_to_the_next)
{
	struct call a, b;

	start();
	acquire(&a, "k", 0, 0);
	turn();
	acquire(&b, "k", 0, SLU_HOUR);
	turn();
	a.op.verb = OP_RELEASE; /* as broker_return has it */
	a.op.lock.rollback = a.op.lock.undo = true;
	a.done = 0;
	post(&a);
	turn();
	CHECK_EQ(0, a.op.rc);
	CHECK(holds(&b));
	end();
}

TEST(one_who_is_refused_leaves_the_key_to_the_next)
{
	struct call a, b, c, release;

	start();
	acquire(&a, "k", 0, 0);
	turn();
	call(&b, OP_ACQUIRE, "ns", LOCK_QUEUE);
	b.op.lock.key = slice_of("k");
	b.op.lock.if_absent = true;
	b.op.wait = SLU_HOUR;
	post(&b);
	acquire(&c, "k", 0, SLU_HOUR);
	turn();
	give_up(&release, &a);
	turn();
	CHECK_EQ(SLU_EEXISTS, b.op.rc);
	CHECK(holds(&c));
	end();
}

TEST(keys_and_queues_of_one_name_have_lines_of_their_own)
{
	struct call a, b, c, message;

	start();
	acquire(&a, "q", 0, 0);
	turn();
	acquire(&b, "q", 0, SLU_HOUR);
	claim(&c, "q", SLU_HOUR);
	push(&message, "q", 0);
	turn();
	CHECK_EQ(0, b.done);
	CHECK(got(&c));
	CHECK_EQ(1, dispatch_count(&s.dispatch));
	shard_cancel(&s, &b.op);
	turn();
	end();
}

TEST(as_many_may_wait_for_a_key_as_the_quota_says) /* S7 */
{
	struct quota quota = { 0 };
	struct call a, b, c;

	start();
	s.quota = &quota;
	quota_set(&quota.queue_waiting, 1);
	acquire(&a, "k", 0, 0);
	turn();
	acquire(&b, "k", 0, SLU_HOUR);
	acquire(&c, "k", 0, SLU_HOUR);
	turn();
	CHECK_EQ(0, b.done);
	CHECK_EQ(SLU_EBUSY, c.op.rc);
	CHECK_CONTAINS("key k: 1 wait for it already", c.op.err.text);
	end();
}

TEST(a_drain_ends_waiting_acquires_and_lets_holders_release)
{
	struct call a, b, release;

	start();
	acquire(&a, "k", 0, 0);
	turn();
	acquire(&b, "k", 0, SLU_HOUR);
	turn();
	shard_drain(&s);
	turn();
	CHECK_EQ(1, b.done);
	CHECK_EQ(SLU_ECLOSED, b.op.rc);
	give_up(&release, &a);
	turn();
	CHECK_EQ(0, release.op.rc);
	end();
}

TEST(what_waits_ends_as_if_its_time_was_over_when_the_shard_is_in_a_hurry)
{
	struct call a, b, c, release;

	start();
	acquire(&a, "k", 0, 0);
	turn();
	acquire(&b, "k", 0, SLU_HOUR);
	turn();
	shard_hurry(&s);
	turn();
	CHECK_EQ(1, b.done);
	CHECK_EQ(SLU_ELEASE, b.op.rc); /* and not SLU_ECLOSED */
	acquire(&c, "k", 0, SLU_HOUR);
	turn();
	CHECK_EQ(1, c.done);
	CHECK_EQ(SLU_ELEASE, c.op.rc);
	give_up(&release, &a);
	turn();
	CHECK_EQ(0, release.op.rc);
	end();
}

TEST(a_key_that_is_too_long_to_wait_for_is_refused)
{
	static char key[400];
	struct call a;

	memset(key, 'k', sizeof key - 1);
	start();
	acquire(&a, key, 0, SLU_HOUR);
	turn();
	CHECK_EQ(SLU_EINVAL, a.op.rc);
	end();
}
