/*
 * Ops of a queue that moves when something is in their way: a shard that fails, another way than
 * was thought, somebody who comes between. The rules are FOLLOW-1 and FOLLOW-3 of broker/move/follow.h, and those of
 * probes in broker/move/table.h.
 */
#include "follow_fixture.h"

#include "base/limit.h"
#include "hooked.h"

#define VERSION(n) ((uint64_t)(n) << MOVE_EPOCH_BITS)

/* What a lane refuses to do. */
static struct {
	uint32_t lane;
	enum op_verb verb;
	enum move_step step; /* the step of OP_MOVE */
	int rc;              /* 0: nothing */
} refused;

static bool
refuse(struct engine *e, uint32_t lane, struct op *op, slu_time now)
{
	(void)e;
	(void)now;
	if (!refused.rc || lane != refused.lane || op->verb != refused.verb)
		return false;
	if (op->verb == OP_MOVE && op->move.step != refused.step)
		return false;
	if (refused.rc == SLU_EBUSY)
		(void)limit_fail(&op->err, SLU_EBUSY, LIMIT_MOVE, SLU_SEC, "on its way");
	op_fail(op, refused.rc, refused.rc == SLU_EBUSY ? &op->err : NULL);
	return true;
}

static void
start_hooked(unsigned n, bool (*f)(struct engine *e, uint32_t lane, struct op *op, slu_time now))
{
	n_shards = n;
	hook = f;
	for (unsigned i = 0; i < n; i++)
		shards[i].engine = i ? &hooked : engine_hooked();
	start();
}

static void
end_hooked(void)
{
	refused.rc = 0;
	end();
}

FIXTURE(NULL, end_hooked);

static void
refuse_move(uint32_t lane, enum move_step step, int rc)
{
	refused.lane = lane;
	refused.verb = OP_MOVE;
	refused.step = step;
	refused.rc = rc;
}

static void
refuse_verb(uint32_t lane, enum op_verb verb, int rc)
{
	refused.lane = lane;
	refused.verb = verb;
	refused.rc = rc;
}

/* ---- What must not happen twice ---- */

/* The sequence of its ordering key is on one shard, and its idempotency key is known on the other. */
TEST(a_message_with_both_keys_is_known_wherever_its_line_is)
{
	static struct op_call c;
	uint64_t id;

	start_hooked(2, NULL);
	push_with("q", "k", NULL, 0);
	reroute(2, "new", "old");
	id = push_with("q", NULL, "once", 0);
	CHECK_EQ(1, count_at(NEW, "q", MSG_READY));
	call(&c, OP_ENQUEUE, "q");
	c.op.n_puts = 2;
	c.puts[0].m.key = c.puts[1].m.key = SLICE("k");
	c.puts[0].m.idem = SLICE("once");
	c.puts[1].m.idem = SLICE("twice");
	CHECK_EQ(0, run(&c));
	CHECK(c.puts[0].existed);
	CHECK_EQ(id, c.puts[0].m.id);
	CHECK(!c.puts[1].existed);
	CHECK_EQ(1, count_at(OLD, "q", MSG_HELD)); /* behind the first */
	CHECK_EQ(1, count_at(NEW, "q", MSG_READY));
}

/* MOVE-1: its mark is newer than all that we know. */
TEST(a_former_shard_that_leads_elsewhere_is_believed)
{
	start_hooked(3, NULL);
	push("q");
	reroute(2, "new", "old");
	push("q"); /* its way is known */
	CHECK_EQ(0, mark_at(OLD, VERSION(2) + 1, "third"));
	push_with("q", "k", NULL, 0);
	CHECK_EQ(1, count_at(THIRD, "q", MSG_READY));
	CHECK_EQ(1, count_at(NEW, "q", MSG_READY));
	CHECK_STR("third", lives(NEW));
}

static struct op_call *
dead_letter(struct op_call *c, const char *key)
{
	const uint64_t id = push_with("q", key, NULL, 0);

	CHECK_EQ(id, claim(c, "q"));
	call(c, OP_NACK, "q");
	c->items[0].id = id;
	c->items[0].dead = true;
	CHECK_EQ(0, run(c));
	CHECK_EQ(0, c->items[0].rc);
	return c;
}

/* MOVE-5: another shard may have the sequence of its key, which it would overtake. */
TEST(a_dead_letter_with_a_key_is_redriven_once_former_shards_have_nothing)
{
	static struct op_call c, none;
	uint64_t left;

	start_hooked(2, NULL);
	left = push_with("q", NULL, NULL, SLU_HOUR);
	reroute(2, "new", "old");
	dead_letter(&c, "k");
	CHECK_EQ(1, count_at(NEW, "q", MSG_DEAD));
	CHECK_EQ(SLU_ECONFLICT, settle(&none, OP_REDRIVE, c.items[0].id, 0));
	dead_letter(&none, NULL); /* without a key there is no sequence */
	CHECK_EQ(0, settle(&none, OP_REDRIVE, none.items[0].id, 0));
	CHECK_EQ(0, settle(&none, OP_DELETE, left, 0));
	pass(2 * SLU_SEC);
	CHECK(claim(&none, "q") != 0); /* it looks */
	CHECK_EQ(0, settle(&none, OP_REDRIVE, c.items[0].id, 0));
}

/* ---- FOLLOW-1: done in part ---- */

TEST(an_item_over_which_a_former_shard_failed_is_not_answered_as_not_found)
{
	static struct op_call c;

	start_hooked(2, refuse);
	push("q");
	reroute(2, "new", "old");
	CHECK(claim(&c, "q") != 0);
	refuse_verb(OLD, OP_ACK, SLU_EUNKNOWN);
	CHECK_EQ(SLU_EUNKNOWN, settle(&c, OP_ACK, c.rows[0].id, c.rows[0].token));
	refuse_verb(OLD, OP_ACK, SLU_EDOWN); /* it has done nothing */
	CHECK_EQ(SLU_EDOWN, settle(&c, OP_ACK, c.items[0].id, 0));
}

static bool
refuse_both(struct engine *e, uint32_t lane, struct op *op, slu_time now)
{
	(void)e;
	(void)now;
	if (op->verb != OP_ACK)
		return false;
	op_fail(op, lane == OLD ? SLU_EUNKNOWN : SLU_EDOWN, NULL);
	return true;
}

TEST(what_one_shard_may_have_done_is_not_refused_because_another_is_down)
{
	static struct op_call c;

	start_hooked(2, refuse_both);
	push("q");
	reroute(2, "new", "old");
	call(&c, OP_ACK, "q");
	c.items[0].id = 77;
	CHECK_EQ(SLU_EUNKNOWN, run(&c));
}

TEST_BARE(what_is_for_all_shards_and_failed_on_the_last_is_unknown)
{
	static const struct {
		enum op_verb verb;
		bool empty; /* the former shard has nothing: so nothing was done */
		int want;
	} rows[] = {
		{ OP_POLICY_SET, false, SLU_EUNKNOWN },
		{ OP_PAUSE, false, SLU_EUNKNOWN },
		{ OP_PURGE, false, SLU_EUNKNOWN },
		{ OP_PURGE, true, SLU_EDOWN },
	};
	static struct op_call c;

	EACH(i, rows) {
		start_hooked(2, refuse);
		push("q");
		reroute(2, "new", "old");
		push("q");
		if (rows[i].empty)
			CHECK_EQ(0, run_at(call(&c, OP_PURGE, "q"), OLD));
		refuse_verb(NEW, rows[i].verb, SLU_EDOWN);
		call(&c, rows[i].verb, "q");
		c.op.policy = policy_default;
		c.op.policy.paused = true;
		CHECK_EQ(rows[i].want, run(&c), op_verb_name(rows[i].verb));
		refused.rc = 0;
		end_hooked();
	}
}

/* Two messages: the sequence of the first is on the old shard, so it is taken there. */
static struct op_call *
half_and_half(struct op_call *c)
{
	push_with("q", "k", NULL, 0);
	reroute(2, "new", "old");
	push("q");
	call(c, OP_ENQUEUE, "q");
	c->op.n_puts = 2;
	c->puts[0].m.key = SLICE("k");
	c->puts[1].m.key = SLICE("j");
	return c;
}

TEST(a_call_that_is_canceled_after_its_first_half_was_done_is_unknown)
{
	static struct op_call c;

	start_hooked(2, refuse);
	half_and_half(&c);
	refuse_verb(NEW, OP_ENQUEUE, SLU_EBUSY); /* it stays there for a while */
	post(&c);
	CHECK_EQ(0, c.done);
	CHECK_EQ(1, count_at(OLD, "q", MSG_HELD));
	broker_cancel(b, &c.op);
	turn();
	CHECK_EQ(SLU_EUNKNOWN, rc_of(&c));
}

/* FOLLOW-4: and so is one that waited there too long. */
TEST(a_call_whose_second_half_is_busy_for_too_long_is_unknown)
{
	static struct op_call c;

	start_hooked(2, refuse);
	half_and_half(&c);
	refuse_verb(NEW, OP_ENQUEUE, SLU_EBUSY);
	post(&c);
	for (int i = 0; i < 60 && !c.done; i++)
		pass(100 * SLU_MS);
	CHECK_EQ(SLU_EUNKNOWN, rc_of(&c));
}

/* ---- FOLLOW-3: a shard that does not answer ---- */

TEST(without_marks_what_must_not_happen_twice_is_refused_and_the_rest_goes_on)
{
	static const struct {
		enum op_verb verb;
		bool goes_on;
	} rows[] = {
		{ OP_ENQUEUE, false },
		{ OP_POLICY_GET, false },
		{ OP_POLICY_SET, false },
		{ OP_PAUSE, false },
		{ OP_ACQUIRE, false },
		{ OP_STATE_GET, false },
		{ OP_DESCRIBE, false },
		{ OP_KEYS, false },
		{ OP_KEEPALIVE, false },
		{ OP_CLAIM, true },
		{ OP_PEEK, true },
		{ OP_ACK, true },
		{ OP_GET, true },
	};
	static struct op_call c;
	uint64_t id;

	start_hooked(2, refuse);
	push("q");
	call(&c, OP_ENQUEUE, "q");
	CHECK_EQ(0, run_at(&c, NEW));
	id = c.puts[0].m.id;
	reroute(2, "new", "old");
	refuse_move(OLD, MOVE_LOOK, SLU_EDOWN);
	EACH(i, rows) {
		call(&c, rows[i].verb, "q");
		c.op.id = c.items[0].id = id;
		if (op_is_of(rows[i].verb, OP_OF_POLICY))
			c.op.policy = policy_default;
		CHECK_EQ(rows[i].goes_on ? 0 : SLU_EDOWN, run(&c), op_verb_name(rows[i].verb));
		op_unpin(&c.op);
	}
	refused.rc = 0;
	push("q");
	CHECK_STR("new", lives(OLD));
}

/* A lock key that a former shard may have is granted by no other shard. */
TEST(a_lock_key_is_asked_for_nowhere_past_a_shard_that_failed)
{
	static const enum op_verb verbs[] = { OP_ACQUIRE, OP_DESCRIBE, OP_STATE_GET };
	static struct op_call c;

	start_hooked(2, refuse);
	push("q");
	reroute(2, "new", "old");
	push("q");
	EACH(i, verbs) {
		refuse_verb(OLD, verbs[i], SLU_EDOWN);
		call(&c, verbs[i], "q");
		c.op.lock.key = SLICE("key");
		CHECK_EQ(SLU_EDOWN, run(&c), op_verb_name(verbs[i]));
	}
}

/* ---- Old marks ---- */

/* It was sent by hand to a shard that the map does not name for it. */
static void
send_by_hand(const char *to)
{
	push("q");
	CHECK_EQ(0, mark_at(OLD, VERSION(1) + 1, to));
}

TEST(where_an_old_mark_leads_must_answer_before_anything_new_is_taken)
{
	static struct op_call c;
	uint64_t id;

	start_hooked(3, refuse);
	send_by_hand("third");
	id = push_with("q", "k", NULL, 0);
	CHECK_EQ(1, count_at(THIRD, "q", MSG_READY));
	reroute(2, "new", "old");
	refuse_move(THIRD, MOVE_LOOK, SLU_EDOWN);
	call(&c, OP_ENQUEUE, "q");
	c.puts[0].m.key = SLICE("k");
	CHECK_EQ(SLU_EDOWN, run(&c));
	CHECK(claim(&c, "q") != 0); /* what is there is served */
	CHECK_EQ(OLD, c.op.route.lane);
	refused.rc = 0;
	push_with("q", "k", NULL, 0);
	CHECK_EQ(1, count_at(THIRD, "q", MSG_HELD)); /* its sequence is there */
	CHECK_STR("new", lives(THIRD));
	CHECK_EQ(id, claim(&c, "q"));
}

/* The configuration does not have the shard any more: it will never answer. */
TEST(an_old_mark_that_leads_to_no_shard_stops_no_op)
{
	static struct op_call c;

	start_hooked(2, NULL);
	send_by_hand("gone");
	reroute(2, "new", "old");
	push_with("q", "k", "once", 0);
	CHECK_EQ(1, count_at(NEW, "q", MSG_READY));
	CHECK_STR("new", lives(OLD));
	CHECK(claim(&c, "q") != 0);
	CHECK_EQ(OLD, c.op.route.lane);
}

/* Whoever dies between two marks leaves one that leads to what is not marked yet. */
TEST(a_mark_is_replaced_after_the_one_to_which_it_leads)
{
	static struct op_call c;

	start_hooked(3, refuse);
	send_by_hand("third");
	push("q");
	reroute(2, "new", "old");
	refuse_move(THIRD, MOVE_MARK, SLU_EDOWN);
	CHECK_EQ(SLU_EDOWN, run(call(&c, OP_ENQUEUE, "q")));
	CHECK_STR("third", lives(OLD));
	refused.rc = 0;
	push("q");
	CHECK_STR("new", lives(OLD));
	CHECK_STR("new", lives(THIRD));
}

/* Nothing leads to it any more, and it has nothing: but it would take what is new. */
TEST(a_shard_that_takes_itself_for_the_home_of_a_queue_gets_a_mark)
{
	start_hooked(3, NULL);
	CHECK_EQ(0, mark_at(THIRD, VERSION(1) + 1, ""));
	CHECK_EQ(0, mark_at(OLD, VERSION(1) + 2, "new")); /* so all are asked */
	push("q");
	CHECK_EQ(1, count_at(NEW, "q", MSG_READY));
	CHECK_STR("new", lives(THIRD));
}

/* ---- The policy ---- */

/* Nobody has used the queue there: it has the default, and is paused. */
TEST(a_pause_reaches_a_shard_that_does_not_know_the_queue_yet)
{
	struct policy is;
	static struct op_call c;

	start_hooked(2, NULL);
	push("other"); /* so its counter need not be lifted */
	push("other");
	push("q");
	reroute(2, "new", "old");
	call(&c, OP_PAUSE, "q");
	c.op.policy.paused = true;
	CHECK_EQ(0, run(&c));
	CHECK_EQ(OP_PAUSE, c.op.verb);
	is = policy_at(NEW);
	CHECK(is.paused);
	is.paused = false;
	CHECK(policy_is_same(&policy_default, &is));
	CHECK(policy_at(OLD).paused);
	push("q");
	CHECK_EQ(0, claim(&c, "q"));
}

/* What it has is as old as the queue's last stay there. */
TEST(a_policy_replaces_the_one_of_an_earlier_stay)
{
	static struct op_call c;

	start_hooked(2, NULL);
	CHECK_EQ(0, run(with_policy(&c, 3)));
	reroute(2, "new", "old");
	push("q");
	CHECK_EQ(0, run_at(with_policy(&c, 9), NEW));
	reroute(3, "old", "new");
	push("q");
	CHECK_EQ(9, policy_at(OLD).max_attempts);
	CHECK_EQ(0, run_at(with_policy(&c, policy_default.max_attempts), OLD));
	reroute(4, "new", "old");
	push("q");
	CHECK_EQ(policy_default.max_attempts, policy_at(NEW).max_attempts); /* the default, too */
}

/* Without a mark it is unknown whether the queue lived there: a default proves nothing. */
TEST(a_policy_is_not_replaced_by_a_default_that_was_never_set)
{
	static struct op_call c;

	start_hooked(2, NULL);
	CHECK_EQ(0, run_at(with_policy(&c, 9), NEW));
	reroute(2, "new", "old");
	push("q");
	CHECK_EQ(9, policy_at(NEW).max_attempts);
}

/* Somebody with an old map, just before the mark of the old shard stands. */
static bool
set_before_mark(struct engine *e, uint32_t lane, struct op *op, slu_time now)
{
	struct op_call c;

	if (lane == OLD && op->verb == OP_MOVE && op->move.step == MOVE_MARK)
		hooked_first(e, &with_policy(&c, 7)->op, now);
	return false;
}

TEST(a_policy_that_was_set_while_its_queue_was_sent_comes_along)
{
	static struct op_call c;

	start_hooked(2, set_before_mark);
	CHECK_EQ(0, run(with_policy(&c, 3)));
	reroute(2, "new", "old");
	push("q");
	CHECK_EQ(7, policy_at(NEW).max_attempts);
	CHECK_EQ(7, policy_at(OLD).max_attempts);
}

/* ---- Waiting ---- */

/* The message was given away, and acked there, but is not dropped here yet. */
TEST(a_result_is_found_where_its_message_was_acked_though_another_shard_waits_for_it)
{
	static struct op_call c, taken, waits;
	uint64_t id;

	start_hooked(2, NULL);
	call(&c, OP_ENQUEUE, "q");
	c.puts[0].m.keep = SLU_HOUR;
	CHECK_EQ(0, run(&c));
	id = c.puts[0].m.id;
	reroute(2, "new", "old");
	CHECK_EQ(0, run(call(&c, OP_STATS, "q"))); /* marks stand */
	CHECK_EQ(0, run_at(take_step(&taken, MOVE_TAKE), OLD));
	CHECK_EQ(1, taken.op.n_rows);
	op_unpin(&taken.op);

	call(&waits, OP_RESULT, "q");
	waits.op.id = id;
	waits.op.wait = 20 * SLU_SEC;
	post(&waits);
	CHECK_EQ(0, waits.done);

	call(&c, OP_MOVE, "q");
	c.op.move = taken.op.move;
	c.op.move.step = MOVE_GIVE;
	memcpy(c.op.move.peer, "old", 4);
	c.op.n_puts = 1;
	c.puts[0].m = (struct message){ .id = id, .space = SLICE("ns"), .queue = SLICE("q"), .keep = SLU_HOUR };
	c.puts[0].stood.state = MSG_READY;
	CHECK_EQ(0, run_at(&c, NEW));
	CHECK_EQ(0, waits.done);
	CHECK_EQ(id, claim(&c, "q"));
	CHECK_EQ(0, settle(&c, OP_ACK, id, c.rows[0].token));
	pass(2 * SLU_SEC);
	CHECK_EQ(0, rc_of(&waits));
	op_unpin(&waits.op);
}

/* It is over when it would have been without a move. */
TEST(an_op_that_learns_of_a_move_has_waited_before)
{
	static struct op_call c;

	start_hooked(2, NULL);
	push("other");
	wait_for(&c, OP_CLAIM, 10 * SLU_SEC);
	pass(4 * SLU_SEC);
	CHECK_EQ(0, mark_at(OLD, VERSION(1) + 1, "new"));
	for (int i = 0; i < 59; i++)
		pass(100 * SLU_MS);
	CHECK_EQ(0, c.done);
	pass(100 * SLU_MS);
	CHECK_EQ(0, rc_of(&c));
}

/* ---- Batches that are found at open ---- */

static struct {
	uint32_t lanes[SHARDS];
	unsigned n;
} stuck;

static void
on_stuck(void *arg, struct slice space, struct slice queue, uint32_t lane)
{
	(void)arg;
	CHECK(slice_eq(space, SLICE("ns")) && slice_eq(queue, SLICE("q")));
	CHECK(stuck.n < COUNT(stuck.lanes));
	stuck.lanes[stuck.n++] = lane;
}

/* Says that a batch was left; the second lane of a shard cannot be opened. */
static int
open_left(struct engine **out, const struct engine_conf *conf, struct engine_found *found,
	  struct slu_err *err)
{
	if (conf->lane)
		return slu_fail(err, SLU_EDOWN, "no second lane");
	conf->left(conf->left_arg, SLICE("ns"), SLICE("q"));
	return engine_memory.open(out, conf, found, err);
}

static const struct broker_hand hand = { .stuck = on_stuck };

TEST(a_batch_that_is_found_at_open_is_finished_and_so_is_one_of_a_new_shard)
{
	struct engine_ops leaves = engine_memory;
	struct broker_shard_conf confs[] = {
		{ .name = "old", .engine = &leaves },
		{ .name = "new", .engine = &leaves },
		{ .name = "third", .engine = &leaves, .lanes = 2 },
	};
	struct broker_conf conf = {
		.shards = confs,
		.n_shards = 1,
		.clock = &fake.clock,
		.by_hand = true,
		.hand = &hand,
	};
	struct routes *r;

	leaves.open = open_left;
	fakeclock_init(&fake, SLU_SEC, SLU_HOUR);
	CHECK_EQ(0, broker_open(&b, &conf, NULL));
	CHECK_EQ(1, stuck.n);
	CHECK_EQ(OLD, stuck.lanes[0]);

	n_shards = 3; /* the third cannot be opened whole: no op reaches it */
	CHECK_EQ(SLU_EDOWN, broker_routes_new(b, map_of(1, "old", NULL), confs, 3, &r, NULL));
	CHECK_EQ(2, stuck.n);
	CHECK_EQ(NEW, stuck.lanes[1]);
	n_shards = 2;
	CHECK_EQ(0, broker_routes_new(b, map_of(1, "old", NULL), confs, 2, &r, NULL));
	broker_routes_use(b, r);
	CHECK_EQ(2, stuck.n);
}
