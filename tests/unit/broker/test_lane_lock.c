/*
 * test_lane_lock.c - acquires that wait for their key.
 */
#include "lane_fixture.h"

#include "base/limit.h"
#include "engine/quota.h"

static void
post_acquire(struct op_call *c, const char *key, slu_time ttl, slu_time wait)
{
	call(c, OP_ACQUIRE, "ns", LOCK_QUEUE);
	c->op.lock.key = slice_of(key);
	c->op.lock.ttl = ttl;
	c->op.wait = wait;
	post(c);
}

static void
acquire(struct op_call *c, const char *key, slu_time ttl, slu_time wait)
{
	post_acquire(c, key, ttl, wait);
	turn();
}

/* By the lease that it was granted; then it is another call. */
static void
post_give_up(struct op_call *c, const struct op_call *holder)
{
	call(c, OP_RELEASE, "ns", LOCK_QUEUE);
	c->op.lock.key = holder->op.lock.key;
	c->op.lock.token = holder->op.lock.token;
	memcpy(c->op.lock.txn, holder->op.lock.txn, LOCK_TXN);
	post(c);
}

static void
give_up(struct op_call *c, const struct op_call *holder)
{
	post_give_up(c, holder);
	turn();
}

static bool
holds(const struct op_call *c)
{
	return c->done == 1 && c->op.rc == 0 && c->op.lock.token;
}

TEST(a_key_goes_to_waiting_acquires_first_come_first_served)
{
	static struct op_call first, others[3], release;

	acquire(&first, "k", 0, 0);
	CHECK(holds(&first));
	EACH(i, others)
		post_acquire(&others[i], "k", 0, SLU_HOUR);
	turn();
	EACH(i, others)
		CHECK_EQ(0, others[i].done);
	CHECK_EQ(3, dispatch_count(&s.dispatch));
	give_up(&release, &first);
	EACH(i, others) {
		CHECK(holds(&others[i]));
		CHECK_EQ(0, i < 2 ? others[i + 1].done : 0);
		CHECK(others[i].op.lock.token > first.op.lock.token);
		give_up(&release, &others[i]);
	}
}

TEST(the_end_of_a_lease_wakes_a_waiting_acquire)
{
	static struct op_call a, b;

	acquire(&a, "k", 10 * SLU_SEC, 0);
	acquire(&b, "k", 10 * SLU_SEC, SLU_HOUR);
	CHECK(lane_sleeps(&s) <= clock_boot(&fake.clock) + 10 * SLU_SEC);
	pass(10 * SLU_SEC - 1);
	CHECK_EQ(0, b.done);
	pass(1);
	CHECK(holds(&b));
}

TEST(an_acquire_that_does_not_wait_does_not_pass_those_that_do)
{
	static struct op_call a, b, c, release;

	acquire(&a, "k", 0, 0);
	acquire(&b, "k", 0, SLU_HOUR);
	post_give_up(&release, &a);
	acquire(&c, "k", 0, 0);
	CHECK(holds(&b));
	CHECK_EQ(SLU_ELEASE, c.op.rc);
	CHECK_EQ(LOCK_HELD, c.op.lock.why);
}

TEST(a_wait_that_ends_shows_the_lease_of_the_key)
{
	static struct op_call a, behind[2];

	acquire(&a, "k", SLU_HOUR, 0);
	EACH(i, behind)
		post_acquire(&behind[i], "k", 0, 10 * SLU_SEC);
	pass(10 * SLU_SEC - 1);
	EACH(i, behind)
		CHECK_EQ(0, behind[i].done);
	pass(1);
	EACH(i, behind) { /* also the acquire whose turn never came */
		CHECK_EQ(1, behind[i].done);
		CHECK_EQ(SLU_ELEASE, behind[i].op.rc);
		CHECK_EQ(LOCK_HELD, behind[i].op.lock.why);
		CHECK_EQ(a.op.lock.until, behind[i].op.lock.until);
		CHECK_CONTAINS("k: leased", behind[i].op.err.text);
	}
	CHECK_EQ(0, dispatch_count(&s.dispatch));
}

TEST(a_canceled_acquire_leaves_the_line_and_the_next_one_moves_up)
{
	static struct op_call a, b, c, release;

	acquire(&a, "k", 0, 0);
	post_acquire(&b, "k", 0, SLU_HOUR);
	acquire(&c, "k", 0, SLU_HOUR);
	lane_cancel(&s, &b.op);
	turn();
	CHECK_EQ(SLU_ECANCELED, b.op.rc);
	give_up(&release, &a);
	CHECK(holds(&c));
}

/* Also if the key is new: it is forgotten at once. */
TEST(a_key_granted_to_a_client_that_is_gone_goes_to_the_next)
{
	static struct op_call a, b;

	acquire(&a, "k", 0, 0);
	acquire(&b, "k", 0, SLU_HOUR);
	a.op.verb = OP_RELEASE; /* as broker_return has it */
	a.op.lock.rollback = a.op.lock.undo = true;
	a.done = 0;
	run(&a);
	CHECK_EQ(0, a.op.rc);
	CHECK(holds(&b));
}

TEST(a_refused_acquire_leaves_the_key_to_the_next)
{
	static struct op_call a, b, c, release;

	acquire(&a, "k", 0, 0);
	call(&b, OP_ACQUIRE, "ns", LOCK_QUEUE);
	b.op.lock.key = slice_of("k");
	b.op.lock.if_absent = true;
	b.op.wait = SLU_HOUR;
	post(&b);
	acquire(&c, "k", 0, SLU_HOUR);
	give_up(&release, &a);
	CHECK_EQ(SLU_EEXISTS, b.op.rc);
	CHECK(holds(&c));
}

TEST(keys_and_queues_of_one_name_have_lines_of_their_own)
{
	static struct op_call a, b, c, message;

	acquire(&a, "q", 0, 0);
	post_acquire(&b, "q", 0, SLU_HOUR);
	post_claim(&c, "q", SLU_HOUR);
	push(&message, "q", 0);
	CHECK_EQ(0, b.done);
	CHECK(got(&c));
	CHECK_EQ(1, dispatch_count(&s.dispatch));
	lane_cancel(&s, &b.op);
	turn();
}

TEST(as_many_may_wait_for_a_key_as_the_quota_says) /* LANE-7 */
{
	static struct quota quota;
	static struct op_call a, b, c;

	s.quota = &quota;
	quota_set(&quota.queue_waiting, 1);
	acquire(&a, "k", 0, 0);
	post_acquire(&b, "k", 0, SLU_HOUR);
	acquire(&c, "k", 0, SLU_HOUR);
	CHECK_EQ(0, b.done);
	CHECK_EQ(SLU_EBUSY, c.op.rc);
	CHECK_CONTAINS("key k: 1 wait for it already", c.op.err.text);
}

TEST(a_drain_ends_waiting_acquires_and_lets_holders_release)
{
	static struct op_call a, b, release;

	acquire(&a, "k", 0, 0);
	acquire(&b, "k", 0, SLU_HOUR);
	lane_drain(&s);
	turn();
	CHECK_EQ(SLU_ECLOSED, rc_of(&b));
	give_up(&release, &a);
	CHECK_EQ(0, release.op.rc);
}

TEST(what_waits_ends_as_if_its_time_was_over_when_the_shard_is_in_a_hurry)
{
	static struct op_call a, b, c, release;

	acquire(&a, "k", 0, 0);
	acquire(&b, "k", 0, SLU_HOUR);
	lane_hurry(&s);
	turn();
	CHECK_EQ(SLU_ELEASE, rc_of(&b)); /* and not SLU_ECLOSED */
	acquire(&c, "k", 0, SLU_HOUR);
	CHECK_EQ(SLU_ELEASE, rc_of(&c));
	give_up(&release, &a);
	CHECK_EQ(0, release.op.rc);
}

TEST(a_key_that_is_too_long_to_wait_for_is_refused)
{
	static char key[400];
	static struct op_call a;

	memset(key, 'k', sizeof key - 1);
	acquire(&a, key, 0, SLU_HOUR);
	CHECK_EQ(SLU_EINVAL, a.op.rc);
}
