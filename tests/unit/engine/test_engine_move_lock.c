/*
 * Lock keys move to another shard with their states: engine/move.h, LOCK-11 of core/locks/locks.h.
 */
#include "lock_fixture.h"
#include "move_rig.h"

enum {
	ROUNDS = 40
};

/* MOVE-9: how a key is had where it has come to. */
static void
check_come(struct rig *b, uint64_t token)
{
	struct held h = { 0 }, seen = { 0 };

	CHECK_STR("two", get_public(b, "free"));
	CHECK_STR("theirs", get_public(b, "other"));
	describe(b, &seen, "free");
	CHECK_EQ(3, seen.op.lock.version);
	CHECK_EQ(0, acquire(b, &h, "free", "you", 0));
	CHECK_STR("three", get(b, &h, "free", "more"));
	CHECK(h.op.lock.token > token);
	CHECK_EQ(0, put(b, &h, "free", "four"));
	CHECK_EQ(0, end(b, &h, "free", false));
	CHECK_STR("four", get_public(b, "free"));
}

MOVE_CASE(lock_keys_move_with_their_states_but_not_while_they_are_held)
{
	struct held h = { 0 }, other = { 0 };
	uint64_t batch;

	fill_locks(a, b, &h, "b");
	batch = move_take(a, LOCK_QUEUE, NULL);
	CHECK(batch);
	CHECK_EQ(2, move_n);
	CHECK_EQ(1, a->op.move.leased);
	rig_reopen(a);
	CHECK_EQ(SLU_EBUSY, acquire(a, &other, "free", "you", 0)); /* MOVE-7 */
	CHECK_STR("move", other.op.err.limit);
	CHECK_STR("two", get_public(a, "free"));
	CHECK_EQ(batch, move_take(a, LOCK_QUEUE, NULL));
	CHECK_EQ(2, move_n);
	CHECK_EQ(0, move_give(a, b, LOCK_QUEUE));
	CHECK_EQ(0, move_give(a, b, LOCK_QUEUE));
	CHECK_EQ(0, move_step(a, LOCK_QUEUE, MOVE_DROP, batch));
	rig_reopen(a);
	rig_reopen(b);
	CHECK_EQ(SLU_EMOVED, acquire(a, &other, "free", "you", 0)); /* MOVE-5 */
	CHECK_STR("b", other.op.home.elsewhere);
	CHECK_STR("refused", get_public(a, "free"));
	check_come(b, h.op.lock.token);
	CHECK_EQ(0, put(a, &h, "held", "still")); /* what is held works as ever */
	CHECK_EQ(0, end(a, &h, "held", false));
	CHECK_EQ(1, move_all(a, b, LOCK_QUEUE, 10));
	rig_reopen(b);
	CHECK_STR("still", get_public(b, "held"));
}

MOVE_CASE(a_lock_key_that_is_given_up_can_be_had_again)
{
	struct held h = { 0 };
	uint64_t batch;

	commit_state(a, "k", "one");
	batch = move_take(a, LOCK_QUEUE, NULL);
	CHECK(batch);
	rig_reopen(a);
	CHECK_EQ(0, move_step(a, LOCK_QUEUE, MOVE_UNTAKE, batch + 1)); /* another: nothing */
	CHECK_EQ(SLU_EBUSY, acquire(a, &h, "k", "me", 0));
	CHECK_EQ(0, move_step(a, LOCK_QUEUE, MOVE_UNTAKE, batch));
	rig_reopen(a);
	CHECK_EQ(0, acquire(a, &h, "k", "me", 0));
	CHECK_STR("one", get(a, &h, "k", ""));
}

MOVE_CASE(lock_keys_move_in_batches_and_pages)
{
	char key[16];

	for (int i = 0; i < 25; i++) {
		(void)snprintf(key, sizeof key, "key-%d", i);
		commit_state(a, key, key);
	}
	CHECK(move_take(a, LOCK_QUEUE, &(struct move_take){ .max = 7 }));
	CHECK_EQ(7, move_n);
	CHECK(move_take(a, LOCK_QUEUE, &(struct move_take){ .max = 2 })); /* in pages */
	CHECK_EQ(7, move_n);
	CHECK_EQ(4, move_all(a, b, LOCK_QUEUE, 7));
	rig_reopen(a);
	rig_reopen(b);
	for (int i = 0; i < 25; i++) {
		(void)snprintf(key, sizeof key, "key-%d", i);
		CHECK_STR("", get_public(a, key));
		CHECK_STR(key, get_public(b, key));
	}
}

/* What a batch left behind that was given up does not count against a newer state. */
MOVE_CASE(the_highest_version_of_a_lock_key_counts)
{
	struct held h = { 0 };

	commit_state(a, "k", "one");
	CHECK_EQ(0, acquire(a, &h, "k", "me", 0));
	CHECK_EQ(0, attach(a, &h, "k", "more", "gone soon"));
	CHECK_EQ(0, end(a, &h, "k", false));
	CHECK(move_take(a, LOCK_QUEUE, NULL));
	CHECK_EQ(0, move_give(a, b, LOCK_QUEUE));
	CHECK_EQ(0, move_step(a, LOCK_QUEUE, MOVE_UNTAKE, move_take(a, LOCK_QUEUE, NULL)));
	CHECK_EQ(0, acquire(a, &h, "k", "me", 0));
	CHECK_EQ(0, put(a, &h, "k", "two"));
	begin(&h, OP_STATE_REMOVE, "k");
	h.op.lock.all = true;
	CHECK_EQ(0, rig_do(a, &h.op));
	CHECK_EQ(0, end(a, &h, "k", false));
	CHECK_EQ(1, move_all(a, b, LOCK_QUEUE, 10));
	rig_reopen(b);
	CHECK_STR("two", get_public(b, "k"));
	CHECK_EQ(0, acquire(b, &h, "k", "you", 0));
	CHECK_STR("", get(b, &h, "k", "more"));
	commit_state(a, "k", "older");
	CHECK_EQ(1, move_all(a, b, LOCK_QUEUE, 10));
	CHECK_EQ(0, end(b, &h, "k", false));
	CHECK_STR("two", get_public(b, "k"));
}

/* SH-75: the former holder is refused, and what was staged is gone. */
static void
check_refused(struct rig *r, struct held *h)
{
	CHECK_EQ(SLU_ELEASE, keepalive(r, h, "k", SLU_MIN));
	CHECK_EQ(SLU_ELEASE, put(r, h, "k", "late"));
	CHECK_EQ(0, end(r, h, "k", false)); /* LOCK-6 */
	CHECK_EQ(LOCK_NONE, h->op.lock.why);
	CHECK_STR("one", get_public(r, "k"));
}

MOVE_CASE(force_ends_the_leases_of_lock_keys)
{
	struct held h = { 0 }, none = { 0 }, other = { 0 };
	uint64_t batch;

	commit_state(a, "k", "one");
	CHECK_EQ(0, acquire(a, &none, "none", "me", 0));
	CHECK_EQ(0, acquire(a, &h, "k", "me", 0));
	CHECK_EQ(0, put(a, &h, "k", "staged"));
	move_mark(a, LOCK_QUEUE, MOVE_EPOCH, "b");
	CHECK_EQ(0, move_take(a, LOCK_QUEUE, NULL));
	CHECK_EQ(2, a->op.move.leased);
	rig_woken(a);
	batch = move_take(a, LOCK_QUEUE, &(struct move_take){ .force = true });
	CHECK(batch);
	CHECK_EQ(1, move_n);
	CHECK_EQ(0, a->op.move.leased);
	CHECK_STR("k none", rig_woken(a));
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(SLU_EMOVED, keepalive(a, &h, "k", SLU_MIN));
		CHECK_STR("one", get_public(a, "k"));
		CHECK_EQ(SLU_EMOVED, keepalive(a, &none, "none", SLU_MIN));
		rig_reopen(a);
	}
	CHECK_EQ(0, move_give(a, b, LOCK_QUEUE));
	CHECK_EQ(0, move_step(a, LOCK_QUEUE, MOVE_DROP, batch));
	rig_reopen(b);
	CHECK_EQ(SLU_EMOVED, keepalive(a, &h, "k", SLU_MIN));
	check_refused(b, &h);
	CHECK_EQ(0, acquire(b, &other, "k", "you", 0));
	CHECK(other.op.lock.token > h.op.lock.token); /* MOVE-9 */
	check_refused(b, &h);
}

/* REDIS-11: as much at a time as a batch may have. */
MOVE_CASE(force_ends_no_more_leases_than_a_batch_has_rows)
{
	struct held h = { 0 };
	char key[16];

	for (int i = 0; i < 5; i++) {
		(void)snprintf(key, sizeof key, "key-%d", i);
		CHECK_EQ(0, acquire(a, &h, key, "me", 0));
	}
	for (int left = 3; left >= 1; left -= 2) {
		CHECK_EQ(0, move_take(a, LOCK_QUEUE, &(struct move_take){ .max = 2, .force = true }));
		CHECK_EQ(left, a->op.move.leased);
	}
}

/* Versions are compared with an existing state only. The version of a removed state does not count. */
MOVE_CASE(a_lock_key_comes_where_there_is_no_state_whatever_the_version)
{
	struct held h = { 0 };

	commit_state(b, "k", "one");
	commit_state(b, "k", "two");
	CHECK_EQ(0, acquire(b, &h, "k", "you", 0));
	CHECK_EQ(0, take_away(b, &h, "k", ""));
	CHECK_EQ(0, end(b, &h, "k", false));
	commit_state(a, "k", "theirs");
	CHECK_EQ(1, move_all(a, b, LOCK_QUEUE, 10));
	rig_reopen(b);
	CHECK_STR("theirs", get_public(b, "k"));
}

/* MOVE-8 */
MOVE_CASE(a_batch_waits_for_a_lock_key_that_is_on_its_way_from_there)
{
	uint64_t batch;

	commit_state(a, "k", "one");
	batch = move_take(a, LOCK_QUEUE, NULL);
	CHECK_EQ(0, move_give(a, b, LOCK_QUEUE));
	CHECK_EQ(0, move_step(a, LOCK_QUEUE, MOVE_UNTAKE, batch)); /* by mistake */
	batch = move_take(b, LOCK_QUEUE, NULL);
	CHECK(batch);
	rig_reopen(b);
	commit_state(a, "k", "two");
	CHECK(move_take(a, LOCK_QUEUE, NULL));
	CHECK_EQ(SLU_EBUSY, move_give(a, b, LOCK_QUEUE));
	CHECK_STR("move", b->op.err.limit);
	CHECK_STR("one", get_public(b, "k"));
	CHECK_EQ(0, move_step(b, LOCK_QUEUE, MOVE_UNTAKE, batch));
	CHECK_EQ(0, move_give(a, b, LOCK_QUEUE));
	CHECK_STR("two", get_public(b, "k"));
}

/* Its keys are asked for there, whatever is remembered of them here. */
MOVE_CASE(a_lock_key_without_a_state_does_not_hold_its_shard)
{
	struct held h = { 0 };

	CHECK_EQ(0, acquire(a, &h, "k", "me", 0));
	move_mark(a, LOCK_QUEUE, MOVE_EPOCH, "b");
	CHECK_EQ(0, move_take(a, LOCK_QUEUE, NULL));
	CHECK_EQ(0, keepalive(a, &h, "k", SLU_MIN));
	CHECK_EQ(0, end(a, &h, "k", false));
	CHECK_EQ(SLU_EMOVED, acquire(a, &h, "k", "me", 0));
	CHECK_EQ(0, move_take(a, LOCK_QUEUE, NULL));
	CHECK_EQ(0, a->op.move.leased);
}

static uint64_t
count(struct rig *r)
{
	CHECK_EQ(0, move_step(r, LOCK_QUEUE, MOVE_LOOK, 0));
	return r->op.move.messages;
}

/* So the mover knows when it is done, and a lookup finds the shards that have some. */
MOVE_CASE(lock_keys_that_have_a_state_or_a_lease_are_counted)
{
	struct held h = { 0 }, other = { 0 };
	uint64_t batch;

	CHECK_EQ(0, count(a));
	commit_state(a, "one", "1");
	commit_state(a, "two", "2");
	commit_state(a, "two", "3");
	CHECK_EQ(2, count(a));
	CHECK_EQ(0, acquire(a, &h, "two", "me", 0));
	CHECK_EQ(0, acquire(a, &other, "none", "me", 0));
	CHECK_EQ(3, count(a));
	CHECK_EQ(2, a->op.move.leased);
	rig_reopen(a);
	CHECK_EQ(3, count(a));
	CHECK_EQ(0, end(a, &other, "none", false));
	CHECK_EQ(2, count(a), "it is only known");
	CHECK_EQ(0, take_away(a, &h, "two", ""));
	CHECK_EQ(0, end(a, &h, "two", false));
	CHECK_EQ(1, count(a));
	move_mark(a, LOCK_QUEUE, MOVE_EPOCH, "b");
	batch = move_take(a, LOCK_QUEUE, NULL);
	CHECK_EQ(1, count(a), "until it is dropped");
	CHECK_EQ(0, move_give(a, b, LOCK_QUEUE));
	CHECK_EQ(0, move_step(a, LOCK_QUEUE, MOVE_DROP, batch));
	CHECK_EQ(0, count(a));
	CHECK_EQ(1, count(b));
}

/* CLEAN-8 of engine/log/clean.c: they are in another file than what sets them aside. */
MOVE_CASE(lock_keys_that_are_set_aside_outlive_the_files_they_were_written_to)
{
	struct held h = { 0 };
	uint64_t ids[ROUNDS], batch = 0;
	char payload[4001];

	memset(payload, 'x', sizeof payload);
	payload[4000] = 0;
	commit_state(a, "k", "one");
	commit_state(a, "j", "two");
	for (int i = 0; i < ROUNDS; i++)
		ids[i] = rig_put(a, "other", &(struct rig_msg){ .payload = payload });
	for (int i = 0; i < ROUNDS; i++) {
		batch = move_take(a, LOCK_QUEUE, NULL);
		CHECK_EQ(2, move_n);
		CHECK_EQ(0, rig_settle_one(a, OP_DELETE, ids[i], 0));
		rig_pass(a, 0);
		rig_check(a);
		if (i >= ROUNDS - 4) /* not before: after an open the batch is written again anyway */
			rig_reopen(a);
		CHECK_EQ(batch, move_take(a, LOCK_QUEUE, NULL));
		CHECK_EQ(2, move_n);
		CHECK_EQ(SLU_EBUSY, acquire(a, &h, "k", "me", 0));
	}
	CHECK_EQ(0, move_give(a, b, LOCK_QUEUE));
	CHECK_EQ(0, move_step(a, LOCK_QUEUE, MOVE_DROP, batch));
	rig_reopen(a);
	CHECK_STR("", get_public(a, "k"));
	CHECK_STR("one", get_public(b, "k"));
}
