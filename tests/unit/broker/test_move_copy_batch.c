/*
 * What a mover leaves to the next, and to the shards: where a queue lives, batches that nobody
 * went on with, tokens. The rules are MOVE-1 to MOVE-12 of engine/move.h and COPY-1 to COPY-4 of broker/move/copy.h.
 */
#include "copy_fixture.h"

#include "core/queue/policy.h"
#include "hooked.h"

#include <sched.h>
#include <stdlib.h>

/* ---- Marks ---- */

/* MOVE-1, COPY-2: and not from where it is carried. */
TEST(a_queue_is_sent_elsewhere_from_where_it_lives)
{
	uint64_t epoch;

	start_three();
	push(NULL, 5, "x");
	move("a", "b", (struct move_request){ 0 });
	epoch = look_at(B).epoch;
	CHECK_STR("", look_at(B).lives);
	move("a", "c", (struct move_request){ 0 });
	CHECK_STR("c", look_at(A).lives);
	CHECK_STR("c", look_at(B).lives);
	CHECK_STR("", look_at(C).lives);
	for (uint32_t lane = A; lane < SHARDS; lane++)
		CHECK_EQ(epoch + 1, look_at(lane).epoch);
	CHECK_EQ(1, messages_at(B));
	push(NULL, 5, "x");
	CHECK_EQ(1, messages_at(C));
	CHECK(move("b", "c", (struct move_request){ 0 }).done);
	CHECK_EQ(2, messages_at(C));
	CHECK_EQ(epoch + 1, look_at(C).epoch); /* it lives there: nothing to be said */
}

/* A map that knows nothing of a move by hand. What was there is found by the marks. */
TEST(a_shard_to_which_a_queue_was_sent_by_hand_is_not_forgotten)
{
	uint64_t ids[2];
	static struct op_call c;

	start_three();
	ids[0] = push("k", 5, "x");
	move("a", "b", (struct move_request){ 0 });
	reroute(2, "c", "a");
	ids[1] = push("k", 5, "x");
	CHECK_EQ(2, messages_at(B)); /* its sequence is there */
	CHECK_STR("c", look_at(B).lives);
	push(NULL, 5, "x");
	CHECK_EQ(1, messages_at(C));
	EACH(i, ids) {
		CHECK_EQ(ids[i], claim(&c, "q"));
		CHECK_EQ(0, ack(ids[i], c.row.token));
	}
}

/* ---- The policy ---- */

static void
start_hooked(bool (*f)(struct engine *e, uint32_t lane, struct op *op, slu_time now))
{
	const struct engine_ops *const all = engine_hooked();

	hook = f;
	start_all((const struct engine_ops *const[]){ all, all, all }, SHARDS);
}

/* Somebody else, just before the mark of the shard where it lives stands. */
static bool
set_before_mark(struct engine *e, uint32_t lane, struct op *op, slu_time now)
{
	struct op_call c;

	if (lane == A && op->verb == OP_MOVE && op->move.step == MOVE_MARK)
		hooked_first(e, &with_policy(&c, 7)->op, now);
	return false;
}

/* COPY-2 */
TEST(a_policy_that_is_set_while_its_queue_is_sent_comes_along)
{
	static struct op_call c;

	start_hooked(set_before_mark);
	CHECK_EQ(0, mark_at(A, (1ull << MOVE_EPOCH_BITS) + 1, ""));
	CHECK_EQ(0, run_at(with_policy(&c, 3), A));
	CHECK_EQ(0, run_at(with_policy(&c, 9), B)); /* of an earlier stay */
	move("a", "b", (struct move_request){ 0 });
	CHECK_EQ(7, policy_at(B).max_attempts);
}

/* Somebody else sends it to c, after we have looked where it lives. */
static bool
mark_before_get(struct engine *e, uint32_t lane, struct op *op, slu_time now)
{
	struct op_call c;

	if (lane != A || op->verb != OP_POLICY_GET)
		return false;
	take_step(&c, MOVE_MARK);
	c.op.home.epoch = (1ull << MOVE_EPOCH_BITS) + 1;
	c.op.home.lives = "c";
	hooked_first(e, &c.op, now);
	return false;
}

TEST(the_policy_of_a_queue_that_has_just_been_sent_elsewhere_is_not_copied)
{
	struct move_report told;
	struct slu_err err;
	static struct op_call c;

	start_hooked(mark_before_get);
	CHECK_EQ(0, run(with_policy(&c, 3)));
	CHECK_EQ(SLU_ECONFLICT, try_move("a", "b", (struct move_request){ 0 }, &told, &err));
	CHECK_STR("queue q of ns has just been sent to another shard; repeat the move", err.text);
	CHECK_EQ(policy_default.max_attempts, policy_at(B).max_attempts);
}

/* By the map it may have been there all the time, and no mark says otherwise. */
TEST(a_policy_of_where_the_map_has_the_queue_is_not_replaced_without_a_mark)
{
	static struct op_call c;

	start_hooked(NULL);
	reroute(2, "a", "b");                       /* it may have been on b before */
	CHECK_EQ(0, run_at(with_policy(&c, 3), A)); /* where the map has it */
	CHECK_EQ(0, run_at(with_policy(&c, 9), B));
	move("b", "a", (struct move_request){ 0 });
	CHECK_EQ(3, policy_at(A).max_attempts);
	move("a", "b", (struct move_request){ 0 }); /* marks say that it lived on a */
	CHECK_EQ(3, policy_at(B).max_attempts);
}

/* The queue has only ever lived on a: what b has is the copy of a mover that died before its mark. */
TEST(a_policy_that_a_dead_mover_had_copied_does_not_come_back)
{
	static struct op_call c;

	start_hooked(NULL);
	CHECK_EQ(0, run_at(with_policy(&c, 9), B));
	move("a", "b", (struct move_request){ 0 });
	CHECK_EQ(policy_default.max_attempts, policy_at(B).max_attempts);
}

/* ---- Batches that were left ---- */

/* A batch that a mover set aside before it died. */
static void
set_aside(struct op_call *left, uint32_t lane)
{
	CHECK_EQ(0, run_at(take_step(left, MOVE_TAKE), lane));
	CHECK(left->op.n_rows > 0);
	op_unpin(&left->op);
}

static int
hand_over(const struct op_call *left, uint32_t lane)
{
	struct op_put puts[ROWS] = { 0 };
	struct op_call c;

	call(&c, OP_MOVE, "q");
	c.op.move = left->op.move;
	c.op.move.step = MOVE_GIVE;
	c.op.home.epoch = left->op.move.epoch;
	memcpy(c.op.move.peer, "a", 2);
	c.op.puts = puts;
	c.op.n_puts = left->op.n_rows;
	for (uint32_t i = 0; i < left->op.n_rows; i++) {
		puts[i].m.id = left->rows[i].id;
		puts[i].m.space = SLICE("ns");
		puts[i].m.queue = SLICE("q");
		puts[i].m.due = left->rows[i].due;
		puts[i].stood.state = left->rows[i].state;
	}
	return run_at(&c, lane);
}

/* SH-72, SH-73: the next mover goes on with an abandoned batch, at any step. */
TEST(a_batch_that_was_left_is_finished_by_the_next)
{
	for (int given = 0; given < 2; given++) {
		struct op_call left;

		start(&engine_memory, &engine_memory);
		push_mixed(20);
		move("a", "b", (struct move_request){ .batch = 1, .budget = 1 }); /* sets the marks */
		set_aside(&left, A);
		if (given)
			CHECK_EQ(0, hand_over(&left, B));
		CHECK(move("a", "b", (struct move_request){ 0 }).done);
		CHECK_EQ(20, messages_at(B));
	}
}

/* Nobody uses the queue. */
static void
await_finish(uint32_t lane)
{
	while (look_at(lane).batch)
		(void)sched_yield();
}

/* A process that died left it in its own store, which the next one opens. */
TEST_LIMIT(a_batch_that_was_left_is_finished_when_its_shard_is_opened_again, 30)
{
	static struct op_call left;
	uint64_t there;

	start(&engine_log, &engine_log);
	push_mixed(20);
	move("a", "b", (struct move_request){ .batch = 1, .budget = 1 });
	there = messages_at(B);
	set_aside(&left, A);
	start(&engine_log, &engine_log);
	await_finish(A);
	CHECK(messages_at(B) > there);
	CHECK_EQ(20, messages_at(A) + messages_at(B));
}

/* Of one queue, for it was sent on: one goes back, for it was for a shard where the queue lives no
 * more. */
TEST_LIMIT(batches_that_were_left_on_two_shards_are_both_finished, 30)
{
	static const struct engine_ops *const logs[] = { &engine_log, &engine_log, &engine_log };
	static struct op_call left;
	uint64_t there;

	start_all(logs, SHARDS);
	push_mixed(30);
	move("a", "b", (struct move_request){ .batch = 15, .budget = 1 });
	set_aside(&left, A);
	move("b", "c", (struct move_request){ .batch = 1, .budget = 1 });
	there = messages_at(C);
	set_aside(&left, B);
	start_all(logs, SHARDS);
	await_finish(A);
	await_finish(B);
	CHECK(messages_at(C) > there);
	CHECK_EQ(30, messages_at(A) + messages_at(B) + messages_at(C));
}

/* All that can be had there, which is acked. */
static uint64_t
consume_at(uint32_t lane)
{
	struct op_call c;

	for (uint64_t n = 0;; n++) {
		uint64_t id;

		CHECK_EQ(0, run_at(call(&c, OP_CLAIM, "q"), lane));
		if (c.op.n_rows == 0)
			return n;
		op_unpin(&c.op);
		id = c.row.id;
		call(&c, OP_ACK, "q");
		c.item.id = id;
		CHECK_EQ(0, run_at(&c, lane));
		CHECK_EQ(0, c.item.rc);
	}
}

/* MOVE-6, MOVE-10: the shard that it was set aside for may have it, and may have lost it again. */
TEST(a_batch_that_one_shard_has_is_not_given_to_another)
{
	for (int given = 0; given < 2; given++) {
		struct slu_err err;
		struct move_report told;
		struct op_call left;
		uint64_t done;

		CHECK_EQ(0, system("rm -rf b"));
		start_three();
		push_mixed(20);
		move("a", "b", (struct move_request){ .batch = 1, .budget = 1 });
		set_aside(&left, A);
		if (given)
			CHECK_EQ(0, hand_over(&left, B));
		told = move("b", "c", (struct move_request){ 0 });
		CHECK(told.done);
		done = consume_at(C);
		CHECK_EQ(1 + (given ? left.op.n_rows : 0), done);
		CHECK_EQ(0, mark_at(A, told.epoch, "c")); /* as a node that serves the queue would */
		CHECK_EQ(0, movecopy_finish(b, SLICE("ns"), SLICE("q"), A, &err), err.text);
		CHECK(move("a", "c", (struct move_request){ 0 }).done);
		CHECK_EQ(20, done + messages_at(A) + messages_at(B) + messages_at(C));
	}
}

/* COPY-3: a mover was refused and died before it could write that; another still carries the batch. */
TEST(a_batch_that_was_refused_goes_back_and_comes_as_another)
{
	struct move_report told;
	struct slu_err err;
	static struct op_call left;
	static struct op_call c;

	start(&engine_memory, &engine_memory);
	push_mixed(20);
	move("a", "b", (struct move_request){ .batch = 1, .budget = 1 });
	set_aside(&left, A);
	call(&c, OP_MOVE, "q");
	c.op.move = (struct op_move){ .step = MOVE_REFUSE, .peer = "a", .batch = left.op.move.batch };
	CHECK_EQ(0, run_at(&c, B));
	CHECK_EQ(0, c.op.move.given);
	CHECK_EQ(SLU_EMOVED, try_move("a", "b", (struct move_request){ 0 }, &told, &err));
	CHECK_EQ(0, look_at(A).batch);
	CHECK_EQ(19, messages_at(A));
	CHECK_EQ(SLU_EMOVED, hand_over(&left, B));
	CHECK(move("a", "b", (struct move_request){ 0 }).done);
	CHECK_EQ(0, hand_over(&left, B)); /* it is over */
	CHECK_EQ(20, messages_at(B));
}

static bool sent; /* back, by the mover that the next hook disturbs */

/* A mover still carries it the other way, just before the queue is sent back. */
static bool
take_before_mark(struct engine *e, uint32_t lane, struct op *op, slu_time now)
{
	struct op_call c;

	if (lane != B || op->verb != OP_MOVE || op->move.step != MOVE_MARK || !sent)
		return false;
	call(&c, OP_MOVE, "q");
	c.op.move.step = MOVE_TAKE;
	c.op.engine = e;
	hooked_first(e, &c.op, now);
	CHECK(c.op.move.batch != 0);
	op_unpin(&c.op);
	return false;
}

/* COPY-4: no other mover would see it, for the queue lives there again. */
TEST(a_batch_that_was_begun_before_the_queue_came_back_goes_back)
{
	start_hooked(take_before_mark);
	for (int i = 0; i < 5; i++)
		push(NULL, 5, "x");
	move("a", "b", (struct move_request){ 0 });
	move("b", "a", (struct move_request){ .batch = 1, .budget = 1 });
	sent = true;
	move("a", "b", (struct move_request){ 0 });
	CHECK_EQ(0, look_at(B).batch);
	CHECK_EQ(5, messages_at(B));
}

/* After the first page of a batch its queue is sent elsewhere. */
static bool
mark_before_page(struct engine *e, uint32_t lane, struct op *op, slu_time now)
{
	struct op_call c;

	if (lane != A || op->verb != OP_MOVE || op->move.step != MOVE_TAKE || !op->cursor)
		return false;
	take_step(&c, MOVE_MARK);
	c.op.home.epoch = 2ull << MOVE_EPOCH_BITS;
	c.op.home.lives = "c";
	hooked_first(e, &c.op, now);
	return false;
}

/* COPY-4 */
TEST(a_batch_that_was_read_in_part_goes_back_when_its_queue_is_sent_elsewhere)
{
	struct move_report told;
	struct slu_err err;

	start_hooked(mark_before_page);
	for (int i = 0; i < MOVECOPY_BATCH + 1; i++)
		push("k", 5, "x"); /* all of a key go together */
	CHECK_EQ(SLU_EMOVED, try_move("a", "b", (struct move_request){ 0 }, &told, &err));
	CHECK_EQ(0, look_at(A).batch);
	CHECK_EQ(MOVECOPY_BATCH + 1, messages_at(A));
}

/* ---- Names (BROKER-7, LINE-16) ---- */

static const uint8_t first_store[BROKER_UUID] = { 0x01, 0x23, [15] = 0xff };
static const uint8_t second_store[BROKER_UUID] = { 0x02 };

TEST(marks_and_batches_name_a_shard_in_a_store_by_the_store_and_its_number)
{
	static const char name[] = "012300000000000000000000000000ff/0";
	static struct op_call left;
	struct slu_err err;

	stores[B] = first_store;
	start(&engine_memory, &engine_memory);
	CHECK_STR("a", broker_mark_name(b, A));
	CHECK_STR(name, broker_mark_name(b, B));
	CHECK_STR("b", broker_shard_name(b, B));
	CHECK_EQ(B, broker_lane_on(b, name, SLICE("ns"), SLICE("q")));
	CHECK_EQ(UINT32_MAX, broker_lane_on(b, "012300000000000000000000000000fe/0", SLICE("ns"), SLICE("q")));
	push_mixed(10);
	move("a", "b", (struct move_request){ .batch = 1, .budget = 1 });
	CHECK_STR(name, look_at(A).lives);
	set_aside(&left, A);
	CHECK_STR(name, look_at(A).receiver);
	CHECK_EQ(0, movecopy_finish(b, SLICE("ns"), SLICE("q"), A, &err), err.text);
	CHECK(move("a", "b", (struct move_request){ 0 }).done);
	CHECK_EQ(10, messages_at(B));
}

/* The batches of a new store begin with low numbers again, also if the settings give it the name of an old
 * one. */
TEST(a_batch_of_a_new_store_is_not_a_batch_of_the_old_one)
{
	stores[A] = first_store;
	start(&engine_log, &engine_log);
	push_mixed(70);
	CHECK_EQ(70, move("a", "b", (struct move_request){ .batch = 1 }).moved);
	close_broker();
	CHECK_EQ(0, rename("a", "old"));
	stores[A] = second_store;
	start(&engine_log, &engine_log);
	push_mixed(7);
	CHECK_EQ(7, move("a", "b", (struct move_request){ 0 }).moved);
	CHECK_EQ(77, messages_at(B));
}

/* ---- Tokens: MOVE-9 ---- */

static uint64_t
settle_at_once(enum op_verb verb, const struct op_call *claimed)
{
	struct op_call c;

	call(&c, verb, "q");
	c.item.id = claimed->row.id;
	c.item.token = claimed->row.token;
	CHECK_EQ(0, run(&c));
	CHECK_EQ(0, c.item.rc);
	return claimed->row.token;
}

/* The next one of the queue, from that shard: its token. */
static uint64_t
claim_from(uint32_t lane, struct op_call *c)
{
	CHECK(claim(c, "q") != 0);
	CHECK_EQ(lane, c->op.route.lane);
	return c->row.token;
}

/* Numbers are drawn for another queue. A counter begins at the time when its shard was opened: the second one is ahead by that. */
static void
pass_by_20(uint32_t lane, uint32_t other)
{
	struct op_call c;

	while (look_at(lane).counter < look_at(other).counter + 20) {
		call(&c, OP_ENQUEUE, "q");
		c.op.queue = SLICE("elsewhere");
		CHECK_EQ(0, run_at(&c, lane));
	}
}

/* Queues that move in opposite directions share the counters of two shards. */
TEST(tokens_of_a_key_rise_whatever_else_moves)
{
	const struct move_request other = { .queue = SLICE("other") };
	static struct op_call c, none;
	uint64_t token;

	start(&engine_memory, &engine_log);
	push("k", 5, "first");
	token = claim_from(A, &c);
	move("a", "b", (struct move_request){ 0 });
	CHECK_EQ(0, claim(&none, "q")); /* and so its way is known */
	for (int i = 0; i < 3; i++) {
		move("a", "b", other);
		move("b", "a", other);
		pass_by_20(A, B);
		settle_at_once(OP_NACK, &c);
		CHECK(claim_from(A, &c) > token);
		token = c.row.token;
	}
	settle_at_once(OP_ACK, &c);
	push("k", 5, "second");
	CHECK(claim_from(B, &c) > token);
}

/* Numbers stay below 2^53, however often queues move: a lift is never higher than needed. */
TEST(counters_do_not_run_away_when_queues_move_to_and_fro)
{
	const struct move_request other = { .queue = SLICE("other") };
	uint64_t highest, before;
	static struct op_call c;

	start(&engine_memory, &engine_log);
	push("k", 5, "x");
	before = look_at(A).counter > look_at(B).counter ? look_at(A).counter : look_at(B).counter;
	for (int i = 0; i < 100; i++) {
		move(names[i % 2], names[!(i % 2)], (struct move_request){ 0 });
		move(names[!(i % 2)], names[i % 2], other);
		CHECK(claim(&c, "q") != 0);
		settle_at_once(OP_ACK, &c);
		push("k", 5, "x");
	}
	highest = look_at(A).counter > look_at(B).counter ? look_at(A).counter : look_at(B).counter;
	CHECK(highest > before);
	CHECK(highest < before + 10 * 100);
}
