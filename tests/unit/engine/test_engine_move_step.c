/*
 * The steps of a move one by one: engine/move.h, MOVE-1 to MOVE-10. Each is safe to repeat, and
 * a mover that died in between goes on.
 */
#include "move_rig.h"

#include "base/mem.h"

/* ---- Where a queue lives: MOVE-1 ---- */

static void
check_mark(struct rig *r, uint64_t epoch, const char *lives)
{
	CHECK_STR(lives, move_lives(r, "q"));
	CHECK_EQ(epoch, r->op.move.epoch);
}

static void
say(struct rig *r, enum op_verb verb, uint64_t epoch, const char *lives)
{
	rig_unpin(r);
	rig_op(&r->op, verb, RIG_SPACE, "q");
	r->op.home.epoch = epoch;
	r->op.home.lives = lives;
	r->op.rows = r->rows;
	r->op.max_rows = 1;
	(void)rig_do(r, &r->op); /* what it finds is not the question */
	r->n = r->op.n_rows;
}

MOVE_CASE(the_highest_epoch_says_where_a_queue_lives)
{
	static const struct {
		const char *label;
		enum op_verb verb;
		uint64_t epoch;
		const char *lives;
		uint64_t want;
		const char *at;
	} steps[] = {
		{ "here, and no mark: it needs none", OP_CLAIM, 5, NULL, 0, "" },
		{ "elsewhere", OP_CLAIM, 6, "b", 6, "b" },
		{ "the same epoch does not count", OP_PEEK, 6, "c", 6, "b" },
		{ "nor a lower one", OP_CLAIM, 5, "", 6, "b" },
		{ "nor none", OP_CLAIM, 0, "c", 6, "b" },
		{ "any op may say it", OP_PEEK, 8, "c", 8, "c" },
		{ "a look, too", OP_POLICY_GET, 9, "d", 9, "d" },
		{ "back here", OP_CLAIM, 10, "", 10, "" },
		{ "an old node", OP_CLAIM, 9, "b", 10, "" },
	};

	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		say(a, steps[i].verb, steps[i].epoch, steps[i].lives);
		rig_reopen(a);
		CHECK_STR(steps[i].at, move_lives(a, "q"));
		CHECK_EQ(steps[i].want, a->op.move.epoch, steps[i].label);
	}
}

MOVE_CASE(a_mark_is_set_by_a_step_of_its_own)
{
	move_mark(a, "q", 7, "b");
	check_mark(a, 7, "b");
	move_mark(a, "q", 3, "");
	check_mark(a, 7, "b");
	move_mark(a, "q", 8, "");
	rig_reopen(a);
	check_mark(a, 8, "");
	CHECK(rig_put(a, "q", NULL));
	move_mark(b, "q", 9, ""); /* though it was never elsewhere */
	rig_reopen(b);
	check_mark(b, 9, "");
}

/* ---- A queue that lives elsewhere: MOVE-2 to MOVE-5 ---- */

static int
put_two(struct rig *r, struct op_put *puts)
{
	rig_op_puts(&r->op, "q", puts, 2);
	return rig_do(r, &r->op);
}

MOVE_CASE(an_enqueue_takes_only_what_must_stay_together)
{
	const uint64_t first = rig_put(a, "q", &(struct rig_msg){ .key = "k", .idem = "once" });
	struct op_put puts[] = {
		{ .m = { .id = 100, .key = SLICE("j") } },
		{ .m = { .id = 101, .key = SLICE("k") } },
	};

	move_mark(a, "q", MOVE_EPOCH, "b");
	CHECK_EQ(first, rig_put(a, "q", &(struct rig_msg){ .idem = "once" }));
	CHECK_EQ(0, rig_put(a, "q", NULL));
	CHECK_EQ(SLU_EMOVED, a->op.rc);
	CHECK_STR("b", a->op.home.elsewhere);
	CHECK_EQ(SLU_EMOVED, put_two(a, puts));
	CHECK(!puts[0].taken);
	CHECK(puts[1].taken);
	CHECK_STR("b", a->op.home.elsewhere);
	CHECK_EQ(2, rig_count(a, "q", MSG_READY) + rig_count(a, "q", MSG_HELD));

	/* MOVE-4: the same op goes on at the other shard, and brings what is left. */
	CHECK_EQ(0, put_two(b, puts));
	CHECK(puts[0].taken);
	CHECK_STR("", b->op.home.elsewhere);
	CHECK_EQ(1, rig_count(b, "q", MSG_READY));
	CHECK_EQ(100, rig_claim_one(b, "q"));
}

MOVE_CASE(all_or_nothing_counts_for_what_is_not_taken)
{
	struct policy policy = policy_default;
	struct op_put puts[] = {
		{ .m = { .id = 100 }, .taken = true },
		{ .m = { .id = 101 } },
		{ .m = { .id = 102 } },
	};

	policy.max_depth = 1;
	rig_policy(a, "q", &policy);
	CHECK_EQ(SLU_EQFULL, rig_puts(a, "q", puts, 3));
	CHECK(puts[0].taken && !puts[1].taken && !puts[2].taken);
	CHECK_EQ(0, rig_count(a, "q", MSG_READY));
}

/* MOVE-9: of a key whose sequence ended on one shard and goes on at another. */
MOVE_CASE(an_op_that_goes_on_to_another_shard_brings_the_counter)
{
	struct op_put put = { .m = { .id = 900, .key = SLICE("k") } };
	uint64_t token;

	for (int i = 0; i < 20; i++)
		rig_put(a, "other", NULL);
	rig_put(a, "q", &(struct rig_msg){ .key = "k" });
	move_mark(a, "q", MOVE_EPOCH, "b");
	CHECK_EQ(1, rig_claim(a, "q", 1));
	token = a->rows[0].token;
	CHECK_EQ(0, rig_settle_one(a, OP_ACK, a->rows[0].id, token));
	rig_op(&a->op, OP_ENQUEUE, RIG_SPACE, "q");
	a->op.home.epoch = MOVE_EPOCH;
	a->op.home.lives = "b";
	a->op.puts = &put;
	a->op.n_puts = 1;
	CHECK_EQ(SLU_EMOVED, rig_do(a, &a->op));
	CHECK(a->op.home.counter >= token);
	rig_op(&b->op, OP_ENQUEUE, RIG_SPACE, "q");
	b->op.home.epoch = MOVE_EPOCH;
	b->op.home.above = a->op.home.counter;
	b->op.puts = &put;
	b->op.n_puts = 1;
	CHECK_EQ(0, rig_do(b, &b->op));
	rig_reopen(b);
	CHECK_EQ(1, rig_claim(b, "q", 1));
	CHECK(b->rows[0].token > token);
	a->op.puts = b->op.puts = NULL;
}

/* MOVE-3: until it is empty. */
MOVE_CASE(a_sequence_goes_on_where_it_is_until_it_is_empty)
{
	rig_put(a, "q", &(struct rig_msg){ .key = "k" });
	move_mark(a, "q", MOVE_EPOCH, "b");
	CHECK(rig_put(a, "q", &(struct rig_msg){ .key = "k", .delay = SLU_MIN }));
	CHECK_EQ(1, rig_claim(a, "q", 10));
	CHECK_EQ(0, rig_settle_one(a, OP_ACK, a->rows[0].id, 0));
	CHECK(rig_put(a, "q", &(struct rig_msg){ .key = "k" })); /* one is delayed */
	rig_pass(a, SLU_MIN);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(1, rig_claim(a, "q", 10));
		CHECK_EQ(0, rig_settle_one(a, OP_ACK, a->rows[0].id, 0));
	}
	CHECK_EQ(0, rig_put(a, "q", &(struct rig_msg){ .key = "k" }));
	CHECK_EQ(SLU_EMOVED, a->op.rc);
}

MOVE_CASE(messages_that_are_there_are_served_and_an_op_that_finds_none_gets_the_shard)
{
	const uint64_t id = rig_put(a, "q", NULL);
	struct op_item item = { .id = id, .queue = SLICE("q") };

	move_mark(a, "q", MOVE_EPOCH, "b");
	rig_reopen(a);
	CHECK_EQ(1, rig_peek(a, "q", 1));
	CHECK_STR("", a->op.home.elsewhere);
	CHECK_EQ(id, rig_claim_one(a, "q"));
	CHECK_STR("", a->op.home.elsewhere);
	CHECK_EQ(0, rig_claim(a, "q", 1));
	CHECK_STR("b", a->op.home.elsewhere);
	CHECK_EQ(0, rig_peek(a, "q", 1));
	CHECK_STR("b", a->op.home.elsewhere);
	rig_op(&a->op, OP_ACK, RIG_SPACE, "");
	a->op.items = &item;
	a->op.n_items = 1;
	CHECK_EQ(0, rig_do(a, &a->op));
	CHECK_EQ(0, item.rc);
	CHECK_STR("", a->op.home.elsewhere);
	CHECK_EQ(0, rig_do(a, &a->op));
	CHECK_EQ(SLU_ENOTFOUND, item.rc);
	CHECK_STR("b", a->op.home.elsewhere);
	item.taken = true; /* MOVE-4: another shard has it */
	item.rc = 0;
	CHECK_EQ(0, rig_do(a, &a->op));
	CHECK_EQ(0, item.rc);
	rig_op(&a->op, OP_GET, RIG_SPACE, "q");
	a->op.id = id;
	a->op.rows = a->rows;
	a->op.max_rows = 1;
	CHECK_EQ(SLU_ENOTFOUND, rig_do(a, &a->op));
	CHECK_STR("b", a->op.home.elsewhere);
	rig_op(&a->op, OP_RESULT, RIG_SPACE, "q");
	a->op.id = id;
	CHECK_EQ(SLU_ENOTFOUND, rig_do(a, &a->op));
	CHECK_STR("b", a->op.home.elsewhere);
}

/* MOVE-6: one that is redriven joins a sequence, which is on one shard. */
MOVE_CASE(dead_letters_stay_with_the_sequence_of_their_key)
{
	struct op_item dead = { .dead = true };
	uint64_t next;

	dead.id = rig_put(a, "q", &(struct rig_msg){ .key = "k" });
	rig_claim(a, "q", 1);
	rig_item(a, OP_NACK, &dead);
	next = rig_put(a, "q", &(struct rig_msg){ .key = "k" });
	rig_claim(a, "q", 1);
	move_mark(a, "q", MOVE_EPOCH, "b");
	CHECK_EQ(0, move_take(a, "q", NULL)); /* it is leased */
	CHECK_EQ(0, rig_settle_one(a, OP_NACK, next, 0));
	CHECK(move_take(a, "q", NULL)); /* and now both go */
	CHECK_EQ(2, move_n);
	CHECK_EQ(next, move_rows[0].row.id);
	CHECK_EQ(dead.id, move_rows[1].row.id);
	CHECK_EQ(0, move_step(a, "q", MOVE_UNTAKE, a->op.move.batch));
	rig_pass(a, SLU_HOUR);
	rig_claim(a, "q", 1);
	CHECK_EQ(0, rig_settle_one(a, OP_ACK, next, 0));
	CHECK(move_take(a, "q", NULL)); /* alone */
	CHECK_EQ(1, move_n);
	CHECK_EQ(0, move_give(a, b, "q"));
	CHECK_EQ(0, rig_settle_one(b, OP_REDRIVE, dead.id, 0));
}

MOVE_CASE(a_redrive_waits_until_its_key_has_been_moved)
{
	struct op_item nack = { .dead = true };
	uint64_t plain;

	nack.id = rig_put(a, "q", &(struct rig_msg){ .key = "k" });
	rig_claim(a, "q", 1);
	rig_item(a, OP_NACK, &nack);
	plain = rig_put(a, "q", NULL);
	rig_claim(a, "q", 1);
	rig_item(a, OP_NACK, &(struct op_item){ .id = plain, .dead = true });
	move_mark(a, "q", MOVE_EPOCH, "b");
	CHECK_EQ(SLU_ECONFLICT, rig_settle_one(a, OP_REDRIVE, nack.id, 0));
	CHECK_EQ(0, rig_settle_one(a, OP_REDRIVE, plain, 0));
	move_all(a, b, "q", 10);
	CHECK_EQ(0, rig_settle_one(b, OP_REDRIVE, nack.id, 0));
}

/* ---- TAKE: MOVE-6 ---- */

static enum why
why_of(struct rig *r, uint64_t id)
{
	struct op_row rows[OP_WHY_ROWS];
	struct op_queue queue;
	struct op op;

	rig_op(&op, OP_WHY, RIG_SPACE, "q");
	op.id = id;
	op.rows = rows;
	op.max_rows = OP_WHY_ROWS;
	op.queues = &queue;
	op.max_queues = 1;
	return rig_do(r, &op) ? WHYS : (enum why)op.why.facts[0].why; /* Redis does not say */
}

MOVE_CASE(a_message_that_is_set_aside_or_damaged_says_so)
{
	const uint64_t damaged = rig_put(a, "q", NULL), moves = rig_put(a, "q", NULL);

	CHECK_EQ(1, rig_claim(a, "q", 1));
	CHECK_EQ(0, rig_settle_one(a, OP_QUARANTINE, damaged, a->rows[0].token));
	if (why_of(a, damaged) == WHYS)
		return;
	CHECK_EQ(WHY_DAMAGED, why_of(a, damaged));
	CHECK(move_take(a, "q", &(struct move_take){ 0 }));
	CHECK_EQ(WHY_MOVING, why_of(a, moves));
}

MOVE_CASE(what_is_set_aside_is_left_alone_but_counted)
{
	const uint64_t id = rig_put(a, "q", &(struct rig_msg){ .ttl = SLU_SEC });
	const uint64_t late = rig_put(a, "q", &(struct rig_msg){ .delay = SLU_SEC });

	CHECK(move_take(a, "q", NULL));
	rig_pass(a, SLU_MIN);
	CHECK_EQ(0, rig_claim(a, "q", 10));
	CHECK_EQ(SLU_ENOTFOUND, rig_settle_one(a, OP_DELETE, id, 0));
	CHECK_EQ(SLU_ENOTFOUND, rig_settle_one(a, OP_DELETE, late, 0));
	CHECK_EQ(SLU_ENOTFOUND, rig_settle_one(a, OP_ACK, id, 0));
	CHECK_EQ(1, rig_count(a, "q", MSG_READY));
	CHECK_EQ(1, rig_count(a, "q", MSG_DELAYED));
	rig_op(&a->op, OP_PURGE, RIG_SPACE, "q");
	CHECK_EQ(SLU_EBUSY, rig_do(a, &a->op));
	rig_check(a);
	rig_reopen(a);
	rig_check(a);
	CHECK_EQ(0, rig_claim(a, "q", 10));
	CHECK_EQ(2, rig_count(a, "q", MSG_READY) + rig_count(a, "q", MSG_DELAYED));
}

MOVE_CASE(dead_letters_that_are_set_aside_are_not_retired)
{
	struct policy policy = policy_default;

	policy.dlq_retention = SLU_MIN;
	policy.dlq_max = 1;
	rig_policy(a, "q", &policy);
	rig_put(a, "q", NULL);
	rig_claim(a, "q", 1);
	rig_item(a, OP_NACK, &(struct op_item){ .id = a->rows[0].id, .dead = true });
	CHECK(move_take(a, "q", NULL));
	rig_put(a, "q", NULL);
	rig_claim(a, "q", 1);
	rig_item(a, OP_NACK, &(struct op_item){ .id = a->rows[0].id, .dead = true });
	rig_pass(a, SLU_HOUR);
	CHECK_EQ(1, rig_count(a, "q", MSG_DEAD));
	CHECK_EQ(0, move_give(a, b, "q"));
	CHECK_EQ(1, rig_count(b, "q", MSG_DEAD));
}

MOVE_CASE(a_take_again_answers_the_same_batch)
{
	uint64_t ids[5], batch;

	for (int i = 0; i < 9; i++)
		rig_put(a, "q", NULL);
	batch = move_take(a, "q", &(struct move_take){ .max = 5 });
	CHECK_EQ(5, move_n);
	for (int i = 0; i < 5; i++)
		ids[i] = move_rows[i].row.id;
	rig_put(a, "q", &(struct rig_msg){ .prio = -5 });
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(batch, move_take(a, "q", &(struct move_take){ .max = 2 })); /* in pages */
		CHECK_EQ(5, move_n);
		for (int j = 0; j < 5; j++)
			CHECK_EQ(ids[j], move_rows[j].row.id);
		rig_reopen(a);
	}
	CHECK_EQ(0, move_step(a, "q", MOVE_LOOK, 0));
	CHECK_EQ(batch, a->op.move.batch);
	CHECK_EQ(10, a->op.move.messages);
}

/* MOVE-6: by then, and whatever becomes of the queue. */
MOVE_CASE(a_batch_is_for_the_shard_where_its_queue_lived)
{
	uint64_t batch;

	rig_put(a, "q", NULL);
	CHECK(move_take(a, "q", NULL));
	CHECK_STR("", a->op.move.receiver);
	CHECK_EQ(0, move_step(a, "q", MOVE_UNTAKE, a->op.move.batch));
	move_mark(a, "q", MOVE_EPOCH, "b");
	batch = move_take(a, "q", NULL);
	move_mark(a, "q", 2 * MOVE_EPOCH, "c");
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(0, move_step(a, "q", MOVE_LOOK, 0));
		CHECK_EQ(batch, a->op.move.batch);
		CHECK_STR("b", a->op.move.receiver);
		CHECK_STR("c", a->op.move.lives);
		rig_reopen(a);
	}
	CHECK_EQ(0, move_step(a, "q", MOVE_UNTAKE, batch));
	CHECK_EQ(0, move_step(a, "q", MOVE_LOOK, 0));
	CHECK_STR("", a->op.move.receiver);
}

/* MOVE-6 */
MOVE_CASE(an_op_with_an_older_map_than_the_mark_takes_nothing)
{
	static const struct {
		uint64_t epoch;
		int want;
	} rows[] = { { MOVE_EPOCH, SLU_EMOVED }, { 2 * MOVE_EPOCH, 0 }, { 0, 0 } };

	rig_put(a, "q", NULL);
	move_mark(a, "q", 2 * MOVE_EPOCH, "b");
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		rig_unpin(a);
		rig_op(&a->op, OP_MOVE, RIG_SPACE, "q");
		a->op.move.step = MOVE_TAKE;
		a->op.home.epoch = rows[i].epoch;
		a->op.home.lives = "b";
		a->op.rows = a->rows;
		a->op.max_rows = 1;
		CHECK_EQ(rows[i].want, rig_do(a, &a->op));
		a->n = a->op.n_rows;
		CHECK_EQ(rows[i].want ? 0 : 1, a->n);
	}
}

MOVE_CASE(a_batch_ends_at_its_bytes)
{
	char payload[1001];

	memset(payload, 'x', sizeof payload);
	payload[1000] = 0;
	for (int i = 0; i < 9; i++)
		rig_put(a, "q", &(struct rig_msg){ .payload = payload });
	CHECK(move_take(a, "q", &(struct move_take){ .max_bytes = 3000 }));
	CHECK(move_n >= 2 && move_n <= 3);
}

MOVE_CASE(there_is_nothing_to_take_of_a_queue_without_messages)
{
	CHECK_EQ(0, move_take(a, "nobody", NULL));
	rig_put(a, "q", NULL);
	rig_claim(a, "q", 1);
	CHECK_EQ(0, move_take(a, "q", NULL));
	CHECK_EQ(0, move_step(a, "q", MOVE_LOOK, 0));
	CHECK_EQ(1, a->op.move.leased);
}

/* ---- UNTAKE ---- */

MOVE_CASE(what_is_given_up_is_as_before)
{
	uint64_t batch, want[8];

	for (int i = 0; i < 8; i++)
		rig_put(a, "q", &(struct rig_msg){ .key = i % 2 ? "k" : NULL, .prio = -i, .ttl = SLU_HOUR });
	rig_claim(a, "q", 1);
	rig_item(a, OP_NACK, &(struct op_item){ .id = a->rows[0].id, .dead = true });
	CHECK_EQ(4, rig_peek(a, "q", 8));
	for (uint32_t i = 0; i < a->n; i++)
		want[i] = a->rows[i].id;
	batch = move_take(a, "q", NULL);
	CHECK_EQ(8, move_n);
	CHECK_EQ(0, move_step(a, "q", MOVE_UNTAKE, batch + 1)); /* another: nothing */
	CHECK_EQ(0, rig_peek(a, "q", 8));
	rig_reopen(a);
	rig_woken(a);
	CHECK_EQ(0, move_step(a, "q", MOVE_UNTAKE, batch));
	CHECK_EQ(0, move_step(a, "q", MOVE_UNTAKE, batch)); /* again: nothing */
	CHECK_STR("q", rig_woken(a));
	for (int again = 0; again < 2; again++) {
		CHECK_EQ(4, rig_peek(a, "q", 8));
		for (uint32_t i = 0; i < a->n; i++)
			CHECK_EQ(want[i], a->rows[i].id);
		CHECK_EQ(1, rig_count(a, "q", MSG_DEAD));
		rig_reopen(a);
	}
	rig_pass(a, SLU_HOUR);
	CHECK_EQ(8, rig_count(a, "q", MSG_DEAD));
}

/* ---- GIVE: MOVE-8 ---- */

/* SH-71, SH-73: also when the message has been acked since. */
MOVE_CASE(a_batch_is_accepted_once)
{
	const uint64_t id = rig_put(a, "q", NULL);

	CHECK(move_take(a, "q", NULL));
	CHECK_EQ(0, move_give(a, b, "q"));
	CHECK_EQ(1, b->op.move.given);
	CHECK_STR("q", rig_woken(b));
	CHECK_EQ(0, move_give(a, b, "q"));
	CHECK_EQ(0, b->op.move.given);
	CHECK_EQ(1, rig_claim(b, "q", 10));
	CHECK_EQ(0, rig_settle_one(b, OP_ACK, id, b->rows[0].token));
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(0, move_give(a, b, "q"));
		CHECK_EQ(0, rig_claim(b, "q", 10));
		CHECK_EQ(SLU_ENOTFOUND, rig_get(b, id));
		rig_reopen(b);
	}
}

/* MOVE-8: a shard that knows the last batch knows which batch is new, and which comes late. */
MOVE_CASE(the_numbers_of_batches_rise)
{
	uint64_t batch = 0;

	for (int i = 0; i < 4; i++) {
		rig_put(a, "q", NULL);
		CHECK(move_take(a, "q", NULL) > batch);
		batch = a->op.move.batch;
		CHECK_EQ(0, move_give(a, b, "q"));
		CHECK_EQ(1, b->op.move.given);
		CHECK_EQ(0, move_step(a, "q", MOVE_DROP, batch));
		rig_reopen(a);
	}
	rig_op(&b->op, OP_MOVE, RIG_SPACE, "q");
	b->op.move = (struct op_move){ .step = MOVE_GIVE, .peer = "a", .batch = batch - 1 };
	CHECK_EQ(0, rig_do(b, &b->op));
	CHECK(move_take(a, "q", NULL) == 0);
	CHECK_EQ(4, rig_claim(b, "q", 10));
}

/* MOVE-8: a mover that comes late with it changes nothing. */
MOVE_CASE(a_batch_that_was_refused_never_comes)
{
	const uint64_t id = rig_put(a, "q", NULL);
	const uint64_t batch = move_take(a, "q", NULL);

	for (int i = 0; i < 2; i++) {
		CHECK(!move_has(a, b, "q", batch));
		CHECK_EQ(SLU_EMOVED, move_give(a, b, "q"));
		CHECK_EQ(0, rig_claim(b, "q", 10));
		rig_reopen(b);
	}
	CHECK(move_has(a, b, "q", batch - 1)); /* whatever became of it, it is over */
	CHECK_EQ(0, move_step(a, "q", MOVE_UNTAKE, batch));
	CHECK(move_take(a, "q", NULL) > batch);
	CHECK_EQ(0, move_give(a, b, "q"));
	for (int i = 0; i < 2; i++) {
		CHECK(move_has(a, b, "q", a->op.move.batch));
		CHECK_EQ(0, move_give(a, b, "q"));
		rig_reopen(b);
	}
	CHECK_EQ(id, rig_claim_one(b, "q"));
}

/* MOVE-12 */
MOVE_CASE(a_batch_for_a_shard_where_the_queue_does_not_live_is_refused)
{
	const uint64_t id = rig_put(a, "q", NULL);
	uint64_t batch;

	move_mark(a, "q", MOVE_EPOCH, "b");
	move_mark(b, "q", MOVE_EPOCH, "c");
	batch = move_take(a, "q", NULL);
	CHECK_EQ(SLU_EMOVED, move_give_by(a, b, "q", MOVE_EPOCH));
	move_mark(b, "q", 2 * MOVE_EPOCH, "");
	CHECK_EQ(SLU_EMOVED, move_give_by(a, b, "q", MOVE_EPOCH)); /* it was elsewhere since */
	CHECK_EQ(0, rig_claim(b, "q", 10));
	CHECK_EQ(0, move_give_by(a, b, "q", 3 * MOVE_EPOCH)); /* and sets the mark, as any op */
	CHECK_EQ(1, b->op.move.given);
	move_mark(b, "q", 4 * MOVE_EPOCH, "a");
	CHECK_EQ(0, move_give_by(a, b, "q", 3 * MOVE_EPOCH)); /* known: nothing happens */
	CHECK_EQ(0, move_step(a, "q", MOVE_DROP, batch));
	CHECK_EQ(id, rig_claim_one(b, "q"));
}

MOVE_CASE(a_message_that_is_there_is_left_as_it_is)
{
	const uint64_t id = rig_put(a, "q", NULL);
	uint64_t batch;

	batch = move_take(a, "q", NULL);
	CHECK_EQ(0, move_give(a, b, "q"));
	CHECK_EQ(1, rig_claim(b, "q", 1));
	CHECK_EQ(0, move_step(a, "q", MOVE_UNTAKE, batch)); /* by mistake */
	CHECK(move_take(a, "q", NULL) > batch);
	CHECK_EQ(0, move_give(a, b, "q"));
	CHECK_EQ(0, b->op.move.given);
	CHECK_EQ(1, rig_count(b, "q", MSG_LEASED));
	CHECK_EQ(0, rig_settle_one(b, OP_ACK, id, b->rows[0].token));
}

MOVE_CASE(what_is_no_batch_is_refused_and_changes_nothing)
{
	struct op_put puts[] = {
		{ .m = { .id = 50 }, .stood = { .state = MSG_READY } },
		{ .m = { .id = 51 }, .stood = { .state = MSG_LEASED } },
	};

	(void)a;
	rig_op(&b->op, OP_MOVE, RIG_SPACE, "q");
	b->op.move = (struct op_move){ .step = MOVE_GIVE, .peer = "a", .batch = 7 };
	b->op.puts = puts;
	b->op.n_puts = 2;
	CHECK_EQ(SLU_EINVAL, rig_do(b, &b->op));
	CHECK_EQ(1, b->op.failed);
	CHECK_EQ(SLU_ENOTFOUND, rig_get(b, 50));
	rig_reopen(b);
	CHECK_EQ(SLU_ENOTFOUND, rig_get(b, 50));
	rig_op(&b->op, OP_MOVE, RIG_SPACE, "q");
	b->op.move = (struct op_move){ .step = MOVE_GIVE, .batch = 7 };
	CHECK_EQ(SLU_EINVAL, rig_do(b, &b->op));
}

/* ---- DROP: MOVE-10 ---- */

MOVE_CASE(a_drop_forgets_that_batch_and_no_other)
{
	uint64_t batch;

	for (int i = 0; i < 4; i++)
		rig_put(a, "q", &(struct rig_msg){ .idem = i == 0 ? "once" : NULL });
	batch = move_take(a, "q", &(struct move_take){ .max = 2 });
	CHECK_EQ(0, move_give(a, b, "q"));
	CHECK_EQ(0, move_step(a, "q", MOVE_DROP, batch + 1));
	CHECK_EQ(4, rig_count(a, "q", MSG_READY));
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(0, move_step(a, "q", MOVE_DROP, batch));
		CHECK_EQ(2, rig_count(a, "q", MSG_READY));
		rig_reopen(a);
	}
	CHECK_EQ(2, rig_claim(a, "q", 10));
	CHECK(rig_put(a, "q", &(struct rig_msg){ .idem = "once" }) > 4);
}

/* SH-72: either side dies, at any step. */
MOVE_CASE(a_move_goes_on_after_each_step)
{
	uint64_t batch;

	for (int i = 0; i < 30; i++)
		rig_put(a, "q", &(struct rig_msg){ .key = i % 3 ? "k" : NULL, .delay = i % 5 ? 0 : SLU_SEC });
	for (;;) {
		rig_reopen(a);
		batch = move_take(a, "q", &(struct move_take){ .max = 4 });
		rig_reopen(a);
		CHECK_EQ(batch, move_take(a, "q", &(struct move_take){ .max = 4 }));
		if (!batch)
			break;
		CHECK_EQ(0, move_give(a, b, "q"));
		rig_reopen(b);
		CHECK_EQ(0, move_give(a, b, "q"));
		CHECK_EQ(0, move_step(a, "q", MOVE_DROP, batch));
		rig_reopen(a);
		CHECK_EQ(0, move_step(a, "q", MOVE_DROP, batch));
	}
	rig_pass(b, SLU_MIN);
	CHECK_EQ(30, rig_count(b, "q", MSG_READY) + rig_count(b, "q", MSG_HELD));
}

/* ---- A log that is cleaned meanwhile ---- */

/* Segments fill up with what comes and goes, until none of the old ones is left. */
static void
churn(struct rig *r, int n)
{
	char payload[4001];

	memset(payload, 'x', sizeof payload);
	payload[4000] = 0;
	for (int i = 0; i < n; i++) {
		const uint64_t id = rig_put(r, "other", &(struct rig_msg){ .payload = payload });

		CHECK_EQ(0, rig_settle_one(r, OP_DELETE, id, 0));
		rig_pass(r, 0);
	}
}

MOVE_CASE(what_is_known_of_moves_outlives_the_files_it_was_written_to)
{
	uint64_t batch;

	for (int i = 0; i < 20; i++)
		rig_put(a, "q", &(struct rig_msg){ .key = i % 3 ? "k" : NULL, .ttl = i % 2 ? SLU_HOUR : 0 });
	move_mark(a, "q", MOVE_EPOCH, "b");
	churn(a, 20); /* what is set aside is in another file than what says so */
	batch = move_take(a, "q", &(struct move_take){ .max = 15 });
	CHECK_EQ(0, move_give(a, b, "q"));
	move_mark(a, "q", 2 * MOVE_EPOCH, "c");
	CHECK(!move_has(b, a, "q", 5));
	for (int i = 0; i < 15; i++) {
		churn(a, 12);
		churn(b, 12);
		rig_check(a);
		rig_reopen(a);
		rig_reopen(b);
		CHECK(move_has(b, a, "q", 4)); /* over, for a later one was refused */
		CHECK_STR("c", move_lives(a, "q"));
		CHECK_STR("b", a->op.move.receiver);
		CHECK_EQ(batch, a->op.move.batch);
		CHECK_EQ(batch, move_take(a, "q", NULL));
		CHECK(move_n >= 15);
		CHECK_EQ(0, move_give(a, b, "q"));
		CHECK_EQ(0, b->op.move.given);
	}
	CHECK_EQ(0, move_step(a, "q", MOVE_DROP, batch));
	churn(a, 200);
	rig_reopen(a);
	CHECK_EQ(20 - move_n, rig_claim(a, "q", 20));
}

/* ---- Lock keys: MOVE-5 ---- */

static int
ask_lock(struct rig *r, enum op_verb verb, const char *key)
{
	rig_op(&r->op, verb, RIG_SPACE, LOCK_QUEUE);
	r->op.lock.key = slice_of(key);
	r->op.lock.holder = SLICE("me");
	return rig_do(r, &r->op);
}

MOVE_CASE(a_lock_key_that_is_not_known_is_where_its_keys_live)
{
	CHECK_EQ(0, ask_lock(a, OP_ACQUIRE, "known"));
	move_mark(a, LOCK_QUEUE, MOVE_EPOCH, "b");
	CHECK_EQ(SLU_EMOVED, ask_lock(a, OP_ACQUIRE, "new"));
	CHECK_STR("b", a->op.home.elsewhere);
	CHECK_EQ(SLU_EMOVED, ask_lock(a, OP_DESCRIBE, "new"));
	CHECK_STR("b", a->op.home.elsewhere);
	CHECK_EQ(0, ask_lock(a, OP_DESCRIBE, "known"));
	CHECK_STR("", a->op.home.elsewhere);
	CHECK_EQ(SLU_ELEASE, ask_lock(a, OP_ACQUIRE, "known"));
	rig_op(&a->op, OP_QUEUES, RIG_SPACE, "");
	a->op.queues = a->queues;
	a->op.max_queues = RIG_QUEUES;
	CHECK_EQ(0, rig_do(a, &a->op));
	CHECK_EQ(0, a->op.n_queues);
}

/* ---- No memory ---- */

/* Whatever fails, a batch is there whole or not at all, and the next try finds it so. */
static void
step_by_step(struct rig *a, struct rig *b, bool *failed)
{
	uint64_t batch;

	rig_unpin(a);
	rig_op(&a->op, OP_MOVE, RIG_SPACE, "q");
	a->op.move.step = MOVE_TAKE;
	a->op.rows = a->rows;
	a->op.max_rows = RIG_ROWS;
	*failed = rig_do(a, &a->op) != 0;
	a->n = a->op.n_rows;
	mem_fail_at(0);
	batch = move_take(a, "q", NULL);
	CHECK_EQ(12, move_n);
	CHECK_EQ(0, move_give(a, b, "q"));
	CHECK_EQ(0, move_step(a, "q", MOVE_DROP, batch));
}

static void
take_without_memory(struct rig *a, struct rig *b)
{
	bool failed = true;

	a->may_fail = true;
	for (long n = 1; failed; n++) {
		for (int i = 0; i < 12; i++)
			rig_put(a, "q", &(struct rig_msg){ .key = i % 3 ? "k" : NULL, .delay = i % 4 ? 0 : SLU_SEC });
		mem_fail_at(n);
		step_by_step(a, b, &failed);
		rig_check(a);
		CHECK(n < 200);
	}
	a->may_fail = false;
	rig_check(b);
}

static void
give_without_memory(struct rig *a, struct rig *b)
{
	int rc = SLU_ENOMEM;

	for (int i = 0; i < 12; i++)
		rig_put(a, "q", &(struct rig_msg){ .key = i % 3 ? "k" : NULL, .idem = i % 3 ? NULL : "once", .ttl = SLU_HOUR });
	CHECK(move_take(a, "q", NULL));
	b->may_fail = true;
	for (long n = 1; rc; n++) {
		mem_fail_at(n);
		rc = move_give(a, b, "q");
		mem_fail_at(0);
		CHECK_EQ(rc ? 0 : 9, rig_count(b, "q", MSG_READY) + rig_count(b, "q", MSG_HELD));
		rig_check(b);
		CHECK(n < 500);
	}
	b->may_fail = false;
}

TEST(memory_takes_without_memory)
{
	rig_run_two(RIG_MEMORY, take_without_memory);
}

TEST(log_takes_without_memory)
{
	rig_run_two(RIG_LOG, take_without_memory);
}

TEST(memory_gives_without_memory)
{
	rig_run_two(RIG_MEMORY, give_without_memory);
}

TEST(log_gives_without_memory)
{
	rig_run_two(RIG_LOG, give_without_memory);
}
