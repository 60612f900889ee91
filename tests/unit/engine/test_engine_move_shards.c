/*
 * What a shard owes to others that have some of the same queue: engine/move.h.
 */
#include "lock_fixture.h"
#include "move_rig.h"

#include "base/id.h"

/* ---- Marks: MOVE-1 ---- */

MOVE_CASE(the_name_of_a_shard_is_given_whole_however_long_it_is)
{
	char name[MOVE_SHARD];

	memset(name, 'x', sizeof name - 1);
	name[sizeof name - 1] = 0;
	rig_op(&a->op, OP_CLAIM, RIG_SPACE, "q");
	a->op.home.epoch = (uint64_t)1 << 52;
	a->op.home.above = (uint64_t)1 << 51;
	a->op.home.lives = name;
	a->op.rows = a->rows;
	a->op.max_rows = 1;
	CHECK_EQ(0, rig_do(a, &a->op));
	CHECK_STR(name, a->op.home.elsewhere);
	CHECK_STR(name, move_lives(a, "q"));
}

/* ---- Enqueue: MOVE-2 ---- */

static int
put_some(struct rig *r, struct op_put *puts, uint32_t n, bool known)
{
	int rc;

	rig_unpin(r);
	rig_op_puts(&r->op, "q", puts, n);
	r->op.home.known = known;
	rc = rig_do(r, &r->op);
	r->op.puts = NULL;
	return rc;
}

MOVE_CASE(asking_for_idempotency_keys_stores_no_message)
{
	const uint64_t first = rig_put(a, "q", &(struct rig_msg){ .key = "k", .idem = "once" });
	struct op_put puts[] = {
		{ .m = { .id = 100, .key = SLICE("k"), .idem = SLICE("other") } },
		{ .m = { .id = 101, .key = SLICE("j"), .idem = SLICE("once") } },
		{ .m = { .id = 102 } },
	};

	for (int i = 0; i < 2; i++) {
		CHECK_EQ(SLU_EMOVED, put_some(a, puts, 3, true));
		CHECK(!puts[0].taken && puts[1].taken && !puts[2].taken);
		CHECK(puts[1].existed);
		CHECK_EQ(first, puts[1].m.id);
		move_mark(a, "q", MOVE_EPOCH, "b"); /* wherever it lives */
	}
	CHECK_EQ(1, rig_count(a, "q", MSG_READY) + rig_count(a, "q", MSG_HELD));
	puts[1].taken = false;
	CHECK_EQ(0, put_some(a, puts + 1, 1, true));
	CHECK(puts[1].existed);
}

MOVE_CASE(asking_for_idempotency_keys_uses_up_no_rate)
{
	struct policy policy = policy_default;
	struct op_put puts[] = {
		{ .m = { .id = 100, .idem = SLICE("one") } },
		{ .m = { .id = 101, .idem = SLICE("two") } },
	};

	policy.max_rate = policy.burst = 1;
	rig_policy(a, "q", &policy);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(SLU_EMOVED, put_some(a, puts, 2, true));
	CHECK(rig_put(a, "q", NULL));
	CHECK_EQ(0, rig_put(a, "q", NULL));
	CHECK_STR("queue_rate", a->op.err.limit);
}

MOVE_CASE(a_call_that_one_shard_refused_is_as_new_for_the_next)
{
	const uint64_t first = rig_put(a, "q", &(struct rig_msg){ .key = "k", .idem = "once" });
	struct op_put puts[] = {
		{ .m = { .id = 100, .idem = SLICE("once") } },
		{ .m = { .id = 101 } },
		{ .m = { .id = 102, .key = SLICE("k") } },
	};

	CHECK(move_take(a, "q", NULL));
	CHECK_EQ(SLU_EBUSY, put_some(a, puts, 3, false));
	CHECK_STR("move", a->op.err.limit);
	CHECK(!puts[0].taken && !puts[1].taken && !puts[2].taken);

	/* What it found is left there, whichever engine it is. */
	puts[0].own_id = 100;
	puts[0].m.id = first;
	puts[0].existed = puts[1].undated = true;
	puts[1].m.due = a->now;
	b->now = a->now + SLU_MIN;
	CHECK_EQ(0, put_some(b, puts, 3, false));
	CHECK_EQ(3, rig_claim(b, "q", 10));
	for (uint32_t i = 0; i < 3; i++) {
		CHECK(!puts[i].existed);
		CHECK_EQ(100 + i, puts[i].m.id);
		CHECK_EQ(100 + i, b->rows[i].id);
		CHECK_EQ(b->now, b->rows[i].due);
		CHECK_EQ(b->now, rig_read(b, i)->due);
	}
}

/* ---- Redrive: MOVE-5 ---- */

static uint64_t
make_dead(struct rig *r, const char *key)
{
	struct op_item nack = { .dead = true };

	nack.id = rig_put(r, "q", &(struct rig_msg){ .key = key, .prio = -1 });
	CHECK_EQ(nack.id, rig_claim_one(r, "q"));
	CHECK_EQ(0, rig_item(r, OP_NACK, &nack));
	return nack.id;
}

static int
redrive(struct rig *r, uint64_t id, uint64_t epoch, bool formers)
{
	struct op_item item = { .id = id };

	rig_unpin(r);
	rig_op(&r->op, OP_REDRIVE, RIG_SPACE, "q");
	r->op.home.epoch = epoch;
	r->op.home.formers = formers;
	r->op.items = &item;
	r->op.n_items = 1;
	CHECK_EQ(0, rig_do(r, &r->op));
	r->op.items = NULL;
	return item.rc;
}

MOVE_CASE(a_redrive_does_not_begin_a_sequence_that_another_shard_may_have)
{
	const uint64_t dead[] = { make_dead(a, "k"), make_dead(a, "j"), make_dead(a, NULL) };

	CHECK_EQ(SLU_ECONFLICT, redrive(a, dead[0], 0, true));
	CHECK_EQ(0, redrive(a, dead[2], 0, true)); /* it has no key */
	move_mark(a, "q", 2 * MOVE_EPOCH, "");
	CHECK_EQ(SLU_ECONFLICT, redrive(a, dead[0], MOVE_EPOCH, false)); /* MOVE-11 */
	CHECK(rig_put(a, "q", &(struct rig_msg){ .key = "k" }));
	CHECK_EQ(0, redrive(a, dead[0], MOVE_EPOCH, true)); /* the sequence is here */
	CHECK_EQ(0, redrive(a, dead[1], 2 * MOVE_EPOCH, false));
}

/* ---- GIVE: MOVE-8 ---- */

MOVE_CASE(a_batch_waits_for_a_message_that_is_on_its_way_from_there)
{
	const uint64_t id = rig_put(a, "q", &(struct rig_msg){ .prio = 1 });
	uint64_t other, batch;

	batch = move_take(a, "q", NULL);
	CHECK_EQ(0, move_give(a, b, "q"));
	CHECK_EQ(0, move_step(a, "q", MOVE_UNTAKE, batch)); /* by mistake */
	other = rig_put(a, "q", NULL);
	batch = move_take(b, "q", NULL);
	CHECK(batch);
	rig_reopen(b);
	CHECK(move_take(a, "q", NULL));
	CHECK_EQ(2, move_n);
	CHECK_EQ(SLU_EBUSY, move_give(a, b, "q"));
	CHECK_STR("move", b->op.err.limit);
	CHECK_EQ(SLU_ENOTFOUND, rig_get(b, other)); /* nothing of it has come */
	CHECK_EQ(0, move_step(b, "q", MOVE_UNTAKE, batch));
	CHECK_EQ(0, move_give(a, b, "q"));
	CHECK_EQ(1, b->op.move.given);
	CHECK_EQ(other, rig_claim_one(b, "q"));
	CHECK_EQ(id, rig_claim_one(b, "q"));
}

/* ---- Locks: MOVE-5, MOVE-11 ---- */

static int
ask_by(struct rig *r, enum op_verb verb, const char *key, uint64_t epoch)
{
	rig_unpin(r);
	rig_op(&r->op, verb, RIG_SPACE, LOCK_QUEUE);
	r->op.lock.key = slice_of(key);
	r->op.lock.holder = SLICE("me");
	r->op.home.epoch = epoch;
	return rig_do(r, &r->op);
}

MOVE_CASE(an_older_map_than_the_mark_makes_no_new_lock_key)
{
	struct held h = { 0 };

	CHECK_EQ(0, acquire(a, &h, "held", "me", 0));
	move_mark(a, LOCK_QUEUE, 2 * MOVE_EPOCH, "");
	CHECK_EQ(SLU_EMOVED, ask_by(a, OP_ACQUIRE, "new", MOVE_EPOCH));
	CHECK_STR(MOVE_UNKNOWN, a->op.home.elsewhere);
	CHECK_EQ(SLU_EMOVED, ask_by(a, OP_DESCRIBE, "new", MOVE_EPOCH));
	CHECK_EQ(SLU_ELEASE, ask_by(a, OP_ACQUIRE, "held", MOVE_EPOCH)); /* it is known here */
	CHECK_EQ(0, ask_by(a, OP_DESCRIBE, "held", MOVE_EPOCH));
	CHECK_EQ(0, ask_by(a, OP_ACQUIRE, "new", 2 * MOVE_EPOCH));
	CHECK_STR("", a->op.home.elsewhere);
}

/* It came by a move that the map does not have: a former shard may not have dropped it yet. */
MOVE_CASE(an_older_map_than_the_mark_gets_no_lock_key)
{
	commit_state(a, "kept", "one");
	move_mark(a, LOCK_QUEUE, 2 * MOVE_EPOCH, "");
	CHECK_EQ(SLU_EMOVED, ask_by(a, OP_ACQUIRE, "kept", MOVE_EPOCH));
	CHECK_STR(MOVE_UNKNOWN, a->op.home.elsewhere);
	CHECK_EQ(0, ask_by(a, OP_STATE_GET, "kept", MOVE_EPOCH));
	CHECK_EQ(0, ask_by(a, OP_ACQUIRE, "kept", 2 * MOVE_EPOCH));
}

static int
ask_state(struct rig *r, uint64_t id, uint64_t token)
{
	char key[LOCK_KEY_MAX], uuid[ID_UUID_TEXT];
	int rc;

	(void)snprintf(key, sizeof key, "q/q/state/%s", id_to_uuid(id, uuid));
	rig_unpin(r);
	rig_op(&r->op, OP_STATE_GET, RIG_SPACE, "q");
	r->op.lock.key = slice_of(key);
	r->op.lock.token = token;
	rc = rig_do(r, &r->op);
	op_unpin(&r->op);
	return rc;
}

MOVE_CASE(the_holder_of_a_message_that_is_set_aside_got_it_elsewhere)
{
	const uint64_t id = rig_put(a, "q", NULL);
	uint64_t batch, token;

	CHECK_EQ(1, rig_claim(a, "q", 1));
	token = a->rows[0].token;
	move_mark(a, "q", MOVE_EPOCH, "b");
	CHECK_EQ(0, ask_state(a, id, token)); /* its holder is served here */
	CHECK_EQ(0, rig_settle_one(a, OP_NACK, id, token));
	CHECK_EQ(SLU_ELEASE, ask_state(a, id, token));
	batch = move_take(a, "q", NULL);
	CHECK(batch);
	CHECK_EQ(SLU_EMOVED, ask_state(a, id, token));
	CHECK_STR("b", a->op.home.elsewhere);
	CHECK_EQ(0, ask_state(a, id, 0)); /* anybody may look */
	CHECK_EQ(0, move_step(a, "q", MOVE_UNTAKE, batch));
	CHECK_EQ(SLU_ELEASE, ask_state(a, id, token));
}

MOVE_CASE(the_holder_of_a_lock_key_that_is_set_aside_got_it_elsewhere)
{
	struct held h = { 0 };
	uint64_t batch;

	commit_state(a, "kept", "one");
	CHECK_EQ(0, acquire(a, &h, "kept", "me", 0));
	CHECK_EQ(0, end(a, &h, "kept", false));
	move_mark(a, LOCK_QUEUE, MOVE_EPOCH, "b");
	CHECK_EQ(SLU_ELEASE, put(a, &h, "kept", "two")); /* it is not held */
	batch = move_take(a, LOCK_QUEUE, NULL);
	CHECK(batch);
	CHECK_EQ(SLU_EMOVED, put(a, &h, "kept", "two"));
	CHECK_STR("b", h.op.home.elsewhere);
	CHECK_EQ(SLU_EMOVED, keepalive(a, &h, "kept", SLU_MIN));
	CHECK_STR("one", get_public(a, "kept")); /* anybody may look */
	CHECK_EQ(0, move_step(a, LOCK_QUEUE, MOVE_UNTAKE, batch));
	CHECK_EQ(SLU_ELEASE, put(a, &h, "kept", "two"));
}
