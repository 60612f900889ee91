/*
 * What a mover leaves to the next, and to the shards: where a queue lives, batches that nobody
 * went on with, tokens. The rules are V1 to V12 of engine/move.h and Z1 to Z4 of broker/mover.h.
 */
#include "mover_fixture.h"

#include "core/policy.h"
#include "hooked.h"

#include <sched.h>
#include <stdlib.h>

/* ---- Marks ---- */

static void
mark_at(uint32_t lane, uint64_t epoch, const char *lives)
{
	struct call c;

	call(&c, OP_MOVE);
	c.op.move.step = MOVE_MARK;
	c.op.epoch = epoch;
	c.op.lives = lives;
	CHECK_EQ(0, run_at(&c, lane));
}

/* V1, Z2: and not from where it is carried. */
TEST(a_queue_is_sent_elsewhere_from_where_it_lives)
{
	uint64_t epoch;

	start_three();
	push(NULL, 5, "x");
	move("a", "b", (struct move_ask){ 0 });
	epoch = look_at(B).epoch;
	CHECK_STR("", look_at(B).lives);
	move("a", "c", (struct move_ask){ 0 });
	CHECK_STR("c", look_at(A).lives);
	CHECK_STR("c", look_at(B).lives);
	CHECK_STR("", look_at(C).lives);
	for (uint32_t lane = A; lane < SHARDS; lane++)
		CHECK_EQ(epoch + 1, look_at(lane).epoch);
	CHECK_EQ(1, messages_at(B));
	push(NULL, 5, "x");
	CHECK_EQ(1, messages_at(C));
	CHECK(move("b", "c", (struct move_ask){ 0 }).done);
	CHECK_EQ(2, messages_at(C));
	CHECK_EQ(epoch + 1, look_at(C).epoch); /* it lives there: nothing to be said */
	broker_close(b);
}

/* A map that knows nothing of a move by hand. What was there is found by the marks. */
TEST(a_shard_to_which_a_queue_was_sent_by_hand_is_not_forgotten)
{
	uint64_t ids[2];
	struct call c;

	start_three();
	ids[0] = push("k", 5, "x");
	move("a", "b", (struct move_ask){ 0 });
	reroute(2, "c", "a");
	ids[1] = push("k", 5, "x");
	CHECK_EQ(2, messages_at(B)); /* its line is there */
	CHECK_STR("c", look_at(B).lives);
	push(NULL, 5, "x");
	CHECK_EQ(1, messages_at(C));
	EACH(i, ids) {
		CHECK_EQ(ids[i], claim(&c));
		op_unpin(&c.op);
		CHECK_EQ(0, ack(ids[i], c.row.token));
	}
	broker_close(b);
}

/* ---- The policy ---- */

static void
start_hooked(bool (*f)(struct engine *e, uint32_t lane, struct op *op, slu_time now))
{
	const struct engine_ops *const all = engine_hooked();

	hook = f;
	start_all((const struct engine_ops *const[]){ all, all, all }, SHARDS);
}

static struct call *
with_policy(struct call *c, uint16_t max_attempts)
{
	call(c, OP_POLICY_SET);
	c->op.policy = policy_default;
	c->op.policy.max_attempts = max_attempts;
	return c;
}

static uint16_t
attempts_at(uint32_t lane)
{
	struct call c;

	CHECK_EQ(0, run_at(call(&c, OP_POLICY_GET), lane));
	return c.op.policy.max_attempts;
}

/* Somebody else, just before the mark of the shard where it lives stands. */
static bool
set_before_mark(struct engine *e, uint32_t lane, struct op *op, slu_time now)
{
	struct call c;

	if (lane == A && op->verb == OP_MOVE && op->move.step == MOVE_MARK)
		hooked_first(e, &with_policy(&c, 7)->op, now);
	return false;
}

/* Z2 */
TEST(a_policy_that_is_set_while_its_queue_is_sent_comes_along)
{
	struct call c;

	start_hooked(set_before_mark);
	mark_at(A, (1ull << MOVE_EPOCH_BITS) + 1, "");
	CHECK_EQ(0, run_at(with_policy(&c, 3), A));
	CHECK_EQ(0, run_at(with_policy(&c, 9), B)); /* of an earlier stay */
	move("a", "b", (struct move_ask){ 0 });
	CHECK_EQ(7, attempts_at(B));
	broker_close(b);
}

/* Somebody else sends it to c, after we have looked where it lives. */
static bool
mark_before_get(struct engine *e, uint32_t lane, struct op *op, slu_time now)
{
	struct call c;

	if (lane != A || op->verb != OP_POLICY_GET)
		return false;
	call(&c, OP_MOVE);
	c.op.move.step = MOVE_MARK;
	c.op.epoch = (1ull << MOVE_EPOCH_BITS) + 1;
	c.op.lives = "c";
	hooked_first(e, &c.op, now);
	return false;
}

TEST(the_policy_of_a_queue_that_has_just_been_sent_elsewhere_is_not_copied)
{
	const struct move_ask ask = { .from = "a", .to = "b", .space = SLICE("ns"), .queue = SLICE("q") };
	struct move_told told;
	struct slu_err err;
	struct call c;

	start_hooked(mark_before_get);
	CHECK_EQ(0, run(with_policy(&c, 3)));
	CHECK_EQ(SLU_ECONFLICT, mover_move(b, &ask, &told, &err));
	CHECK_STR("queue q of ns has just been sent somewhere: run this again", err.text);
	CHECK_EQ(policy_default.max_attempts, attempts_at(B));
	broker_close(b);
}

/* By the map it may have been there all the time, and no mark says otherwise. */
TEST(a_policy_of_where_the_map_has_the_queue_is_not_replaced_without_a_mark)
{
	struct call c;

	start_hooked(NULL);
	CHECK_EQ(0, run_at(with_policy(&c, 3), A)); /* where the map has it */
	CHECK_EQ(0, run_at(with_policy(&c, 9), B));
	move("b", "a", (struct move_ask){ 0 });
	CHECK_EQ(3, attempts_at(A));
	move("a", "b", (struct move_ask){ 0 }); /* marks say that it lived on a */
	CHECK_EQ(3, attempts_at(B));
	broker_close(b);
}

/* ---- Batches that were left ---- */

/* What somebody set aside before it died. */
struct left {
	struct call c;
	struct op_row rows[10];
};

static void
set_aside(struct left *l, uint32_t lane)
{
	call(&l->c, OP_MOVE);
	l->c.op.move.step = MOVE_TAKE;
	l->c.op.rows = l->rows;
	l->c.op.max_rows = COUNT(l->rows);
	CHECK_EQ(0, run_at(&l->c, lane));
	CHECK(l->c.op.n_rows > 0);
	op_unpin(&l->c.op);
}

static int
hand_over(const struct left *l, uint32_t lane)
{
	struct op_put puts[COUNT(l->rows)] = { 0 };
	struct call c;

	call(&c, OP_MOVE);
	c.op.move = l->c.op.move;
	c.op.move.step = MOVE_GIVE;
	c.op.epoch = l->c.op.move.epoch;
	memcpy(c.op.move.peer, "a", 2);
	c.op.puts = puts;
	c.op.n_puts = l->c.op.n_rows;
	for (uint32_t i = 0; i < l->c.op.n_rows; i++) {
		puts[i].m.id = l->rows[i].id;
		puts[i].m.space = SLICE("ns");
		puts[i].m.queue = SLICE("q");
		puts[i].m.due = l->rows[i].due;
		puts[i].stood.state = l->rows[i].state;
	}
	return run_at(&c, lane);
}

/* SH-72, SH-73: whoever comes next goes on with the batch that somebody left, at whichever step. */
TEST(a_batch_that_was_left_is_finished_by_the_next)
{
	for (int given = 0; given < 2; given++) {
		struct left left;

		start(&engine_memory, &engine_memory);
		push_mixed(20);
		move("a", "b", (struct move_ask){ .batch = 1, .budget = 1 }); /* sets the marks */
		set_aside(&left, A);
		if (given)
			CHECK_EQ(0, hand_over(&left, B));
		CHECK(move("a", "b", (struct move_ask){ 0 }).done);
		CHECK_EQ(20, messages_at(B));
		broker_close(b);
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
	struct left left;
	uint64_t there;

	start(&engine_log, &engine_log);
	push_mixed(20);
	move("a", "b", (struct move_ask){ .batch = 1, .budget = 1 });
	there = messages_at(B);
	set_aside(&left, A);
	broker_close(b);
	start(&engine_log, &engine_log);
	await_finish(A);
	CHECK(messages_at(B) > there);
	CHECK_EQ(20, messages_at(A) + messages_at(B));
	broker_close(b);
}

/* Of one queue, for it was sent on: one goes back, for it was for a shard where the queue lives no
 * more. */
TEST_LIMIT(batches_that_were_left_on_two_shards_are_both_finished, 30)
{
	static const struct engine_ops *const logs[] = { &engine_log, &engine_log, &engine_log };
	struct left left;
	uint64_t there;

	start_all(logs, SHARDS);
	push_mixed(30);
	move("a", "b", (struct move_ask){ .batch = 15, .budget = 1 });
	set_aside(&left, A);
	move("b", "c", (struct move_ask){ .batch = 1, .budget = 1 });
	there = messages_at(C);
	set_aside(&left, B);
	broker_close(b);
	start_all(logs, SHARDS);
	await_finish(A);
	await_finish(B);
	CHECK(messages_at(C) > there);
	CHECK_EQ(30, messages_at(A) + messages_at(B) + messages_at(C));
	broker_close(b);
}

/* All that can be had there, which is acked. */
static uint64_t
consume_at(uint32_t lane)
{
	struct call c;

	for (uint64_t n = 0;; n++) {
		uint64_t id;

		CHECK_EQ(0, run_at(call(&c, OP_CLAIM), lane));
		if (c.op.n_rows == 0)
			return n;
		op_unpin(&c.op);
		id = c.row.id;
		call(&c, OP_ACK);
		c.item.id = id;
		CHECK_EQ(0, run_at(&c, lane));
		CHECK_EQ(0, c.item.rc);
	}
}

/* V6, V10: the one for which it was set aside may have it, and it may be gone again there. */
TEST(a_batch_that_one_shard_has_is_not_given_to_another)
{
	for (int given = 0; given < 2; given++) {
		struct slu_err err;
		struct move_told told;
		struct left left;
		uint64_t done;

		CHECK_EQ(0, system("rm -rf b"));
		start_three();
		push_mixed(20);
		move("a", "b", (struct move_ask){ .batch = 1, .budget = 1 });
		set_aside(&left, A);
		if (given)
			CHECK_EQ(0, hand_over(&left, B));
		told = move("b", "c", (struct move_ask){ 0 });
		CHECK(told.done);
		done = consume_at(C);
		CHECK_EQ(1 + (given ? left.c.op.n_rows : 0), done);
		mark_at(A, told.epoch, "c"); /* as whoever serves the queue would */
		CHECK_EQ(0, mover_finish(b, SLICE("ns"), SLICE("q"), A, &err), err.text);
		CHECK(move("a", "c", (struct move_ask){ 0 }).done);
		CHECK_EQ(20, done + messages_at(A) + messages_at(B) + messages_at(C));
		broker_close(b);
	}
}

/* Z3: somebody was refused, and died before it could say so; another still carries it. */
TEST(a_batch_that_was_refused_goes_back_and_comes_as_another)
{
	const struct move_ask ask = { .from = "a", .to = "b", .space = SLICE("ns"), .queue = SLICE("q") };
	struct move_told told;
	struct slu_err err;
	struct left left;
	struct call c;

	start(&engine_memory, &engine_memory);
	push_mixed(20);
	move("a", "b", (struct move_ask){ .batch = 1, .budget = 1 });
	set_aside(&left, A);
	call(&c, OP_MOVE);
	c.op.move = (struct op_move){ .step = MOVE_REFUSE, .peer = "a", .batch = left.c.op.move.batch };
	CHECK_EQ(0, run_at(&c, B));
	CHECK_EQ(0, c.op.move.given);
	CHECK_EQ(SLU_EMOVED, mover_move(b, &ask, &told, &err));
	CHECK_EQ(0, look_at(A).batch);
	CHECK_EQ(19, messages_at(A));
	CHECK_EQ(SLU_EMOVED, hand_over(&left, B));
	CHECK(move("a", "b", (struct move_ask){ 0 }).done);
	CHECK_EQ(0, hand_over(&left, B)); /* it is over */
	CHECK_EQ(20, messages_at(B));
	broker_close(b);
}

static bool sent; /* back, by the mover whom the next one disturbs */

/* Somebody who still carries it the other way, just before the queue is sent back. */
static bool
take_before_mark(struct engine *e, uint32_t lane, struct op *op, slu_time now)
{
	struct call c;

	if (lane != B || op->verb != OP_MOVE || op->move.step != MOVE_MARK || !sent)
		return false;
	call(&c, OP_MOVE);
	c.op.move.step = MOVE_TAKE;
	c.op.engine = e;
	hooked_first(e, &c.op, now);
	CHECK(c.op.move.batch != 0);
	op_unpin(&c.op);
	return false;
}

/* Z4: nobody else would see it, for the queue lives there again. */
TEST(a_batch_that_was_begun_before_the_queue_came_back_goes_back)
{
	start_hooked(take_before_mark);
	for (int i = 0; i < 5; i++)
		push(NULL, 5, "x");
	move("a", "b", (struct move_ask){ 0 });
	move("b", "a", (struct move_ask){ .batch = 1, .budget = 1 });
	sent = true;
	move("a", "b", (struct move_ask){ 0 });
	CHECK_EQ(0, look_at(B).batch);
	CHECK_EQ(5, messages_at(B));
	broker_close(b);
}

/* After the first page of a batch its queue is sent elsewhere. */
static bool
mark_before_page(struct engine *e, uint32_t lane, struct op *op, slu_time now)
{
	struct call c;

	if (lane != A || op->verb != OP_MOVE || op->move.step != MOVE_TAKE || !op->cursor)
		return false;
	call(&c, OP_MOVE);
	c.op.move.step = MOVE_MARK;
	c.op.epoch = 2ull << MOVE_EPOCH_BITS;
	c.op.lives = "c";
	hooked_first(e, &c.op, now);
	return false;
}

/* Z4 */
TEST(a_batch_that_was_read_in_part_goes_back_when_its_queue_is_sent_elsewhere)
{
	const struct move_ask ask = { .from = "a", .to = "b", .space = SLICE("ns"), .queue = SLICE("q") };
	struct move_told told;
	struct slu_err err;

	start_hooked(mark_before_page);
	for (int i = 0; i < MOVER_BATCH + 1; i++)
		push("k", 5, "x"); /* all of a key go together */
	CHECK_EQ(SLU_EMOVED, mover_move(b, &ask, &told, &err));
	CHECK_EQ(0, look_at(A).batch);
	CHECK_EQ(MOVER_BATCH + 1, messages_at(A));
	broker_close(b);
}

/* ---- Tokens: V9 ---- */

static uint64_t
settle(enum op_verb verb, const struct call *claimed)
{
	struct call c;

	call(&c, verb);
	c.item.id = claimed->row.id;
	c.item.token = claimed->row.token;
	CHECK_EQ(0, run(&c));
	CHECK_EQ(0, c.item.rc);
	return claimed->row.token;
}

/* The next one of the queue, from that shard: its token. */
static uint64_t
claim_from(uint32_t lane, struct call *c)
{
	CHECK(claim(c) != 0);
	op_unpin(&c->op);
	CHECK_EQ(lane, c->op.shard);
	return c->row.token;
}

/* So many numbers are drawn for another queue. */
static void
push_elsewhere(uint32_t lane, int n)
{
	struct call c;

	for (int i = 0; i < n; i++) {
		call(&c, OP_ENQUEUE);
		c.op.queue = SLICE("elsewhere");
		CHECK_EQ(0, run_at(&c, lane));
	}
}

/* Queues that move in opposite directions share the counters of two shards. */
TEST(tokens_of_a_key_rise_whatever_else_moves)
{
	const struct move_ask other = { .queue = SLICE("other") };
	struct call c, none;
	uint64_t token;

	start(&engine_memory, &engine_log);
	push("k", 5, "first");
	token = claim_from(A, &c);
	move("a", "b", (struct move_ask){ 0 });
	CHECK_EQ(0, claim(&none)); /* and so its way is known */
	for (int i = 0; i < 3; i++) {
		move("a", "b", other);
		move("b", "a", other);
		push_elsewhere(A, 20);
		settle(OP_NACK, &c);
		CHECK(claim_from(A, &c) > token);
		token = c.row.token;
	}
	settle(OP_ACK, &c);
	push("k", 5, "second");
	CHECK(claim_from(B, &c) > token);
	broker_close(b);
}

/* Numbers stay below 2^53, however often queues move: a lift is never higher than needed. */
TEST(counters_do_not_run_away_when_queues_move_to_and_fro)
{
	const struct move_ask other = { .queue = SLICE("other") };
	uint64_t highest, before;
	struct call c;

	start(&engine_memory, &engine_log);
	push("k", 5, "x");
	before = look_at(A).counter > look_at(B).counter ? look_at(A).counter : look_at(B).counter;
	for (int i = 0; i < 100; i++) {
		move(names[i % 2], names[!(i % 2)], (struct move_ask){ 0 });
		move(names[!(i % 2)], names[i % 2], other);
		CHECK(claim(&c) != 0);
		op_unpin(&c.op);
		settle(OP_ACK, &c);
		push("k", 5, "x");
	}
	highest = look_at(A).counter > look_at(B).counter ? look_at(A).counter : look_at(B).counter;
	CHECK(highest > before);
	CHECK(highest < before + 10 * 100);
	broker_close(b);
}
