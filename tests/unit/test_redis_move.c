/*
 * Queues that move from one shard to another on a Redis server (engine/move.h). Both shards
 * are on one server here: `default`, whose keys have no segment, and `heavy`, whose keys
 * have one.
 */
#include "lock_fixture.h"

#include "base/id.h"
#include "engine/redis/redis.h"
#include "redis_server.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	BATCH = 16,
	EPOCH = 1 << MOVE_EPOCH_BITS
};

static void
prepare(struct engine_conf *conf, const char *shard)
{
	static struct redis_conf redis[2];
	struct redis_conf *mine = &redis[shard != NULL];

	*mine = (struct redis_conf){ .wire = { .address = "unix:redis.sock" },
				     .prefix = "codeq",
				     .shard = shard,
				     .given_time = true };
	redis_server_start("redis.sock");
	conf->redis = mine;
}

static void
prepare_default(struct engine_conf *conf, bool second)
{
	(void)second;
	prepare(conf, NULL);
}

static void
prepare_heavy(struct engine_conf *conf, bool second)
{
	(void)second;
	prepare(conf, "heavy");
}

static const struct rig_row rows[] = {
	{ .engine = &engine_redis, .prepare = prepare_default },
	{ .engine = &engine_redis, .prepare = prepare_heavy },
};

static struct rig here, there;  /* a queue moves from here to there */
static const char *moved = "q"; /* this one */

static void
open_both(void)
{
	here = (struct rig){ .row = &rows[0], .now = RIG_START, .next_id = 1 };
	there = (struct rig){ .row = &rows[1], .now = RIG_START, .next_id = 1000 };
	rig_open(&here);
	rig_open(&there);
}

static void
close_both(void)
{
	rig_check(&here);
	rig_check(&there);
	rig_close(&here);
	rig_close(&there);
}

#define MOVE_TEST(name)                 \
	static void check_##name(void); \
	TEST(name)                      \
	{                               \
		open_both();            \
		check_##name();         \
		close_both();           \
	}                               \
	static void check_##name(void)

/* ---- Steps ---- */

static struct op_move
step(struct rig *r, enum move_step which, uint64_t batch)
{
	struct op op;

	rig_op(&op, OP_MOVE, RIG_SPACE, moved);
	op.move.step = which;
	op.move.batch = batch;
	CHECK_EQ(0, rig_do(r, &op));
	return op.move;
}

/* The queue lives there now. */
static void
mark(struct rig *r, uint64_t epoch, const char *lives)
{
	struct op op;

	rig_op(&op, OP_MOVE, RIG_SPACE, moved);
	op.move.step = MOVE_MARK;
	op.epoch = epoch;
	op.lives = lives;
	CHECK_EQ(0, rig_do(r, &op));
}

static struct op_row taken[RIG_ROWS];
static uint32_t n_taken;
static struct op_move took;

static void
let_go(void)
{
	struct op op = { .rows = taken, .n_rows = n_taken, .engine = here.e };

	op_unpin(&op);
	n_taken = 0;
}

/* All pages of a batch, so many rows each. */
static uint32_t
take_by(uint32_t max, bool force)
{
	struct op op;

	let_go();
	rig_op(&op, OP_MOVE, RIG_SPACE, moved);
	op.move.step = MOVE_TAKE;
	op.move.force = force;
	op.max_rows = max;
	do {
		op.rows = taken + n_taken;
		CHECK_EQ(0, rig_do(&here, &op));
		n_taken += op.n_rows;
	} while (op.cursor);
	took = op.move;
	return n_taken;
}

static uint32_t
take(void)
{
	return take_by(BATCH, false);
}

static struct slice
bytes_of(const struct op_ref *ref)
{
	char *p = ref->pin ? malloc(ref->size + 1) : NULL; /* the test is a process of its own */

	if (!p)
		return (struct slice){ 0 };
	CHECK_EQ(0, engine_read(here.e, ref, 0, ref->size, p, true, NULL));
	return (struct slice){ p, ref->size };
}

static struct op_put
put_of(const struct op_row *row)
{
	struct op_put put = { .stood = { .kind = row->kind,
					 .state = row->state,
					 .flags = row->flags,
					 .reason = row->reason,
					 .attempts = row->attempts,
					 .failures = row->failures,
					 .version = row->state_version } };
	const struct slice error = bytes_of(&row->error);

	if (row->record.pin)
		CHECK_EQ(0, message_decode(bytes_of(&row->record), &put.m, NULL));
	else
		put.m.payload = bytes_of(&row->payload);
	put.m.id = row->kind == MOVE_STATE ? put.m.id : row->id;
	put.m.due = row->due;
	put.m.expires = row->expires;
	put.stood.error = error.p;
	put.stood.error_size = (uint32_t)error.n;
	return put;
}

static uint64_t
give(void)
{
	static struct op_put puts[RIG_ROWS];
	struct op op;

	for (uint32_t i = 0; i < n_taken; i++)
		puts[i] = put_of(&taken[i]);
	rig_op(&op, OP_MOVE, RIG_SPACE, moved);
	op.move = (struct op_move){ .step = MOVE_GIVE,
				    .peer = "default",
				    .batch = took.batch,
				    .counter = took.counter };
	op.puts = puts;
	op.n_puts = n_taken;
	CHECK_EQ(0, rig_do(&there, &op));
	return op.move.given;
}

/* A batch, as whoever moves it does it. */
static void
carry(void)
{
	(void)give(); /* cases look at what is there */
	(void)step(&here, MOVE_DROP, took.batch);
}

static void
carry_all(void)
{
	while (take())
		carry();
}

static uint64_t
put_here(const struct rig_msg *msg)
{
	return rig_put(&here, "q", msg);
}

static uint64_t
put_key(const char *key)
{
	return put_here(&(struct rig_msg){ .key = key });
}

/* ---- Marks ---- */

MOVE_TEST(the_highest_epoch_wins)
{
	static const struct {
		uint64_t epoch;
		const char *says, *lives;
		uint64_t since;
	} cases[] = {
		{ 5, "", "", 0 }, /* it was never elsewhere: no mark */
		{ 6, "heavy", "heavy", 6 },
		{ 6, "light", "heavy", 6 }, /* the same: the mark counts */
		{ 4, "", "heavy", 6 },
		{ 7, "light", "light", 7 },
		{ 9, "", "", 9 },
		{ 8, "heavy", "", 9 },
	};

	(void)put_here(NULL);
	EACH(i, cases) {
		struct op_move m;

		mark(&here, cases[i].epoch, cases[i].says);
		rig_reopen(&here);
		m = step(&here, MOVE_LOOK, 0);
		CHECK_STR(cases[i].lives, m.lives);
		CHECK_EQ(cases[i].since, m.epoch);
	}
}

/* V1 with V2: any op brings the mark, and its own answer obeys it. */
MOVE_TEST(an_enqueue_is_sent_on_but_for_what_must_stay_together)
{
	const uint64_t first = put_here(&(struct rig_msg){ .idem = "once" });
	struct op_put puts[4] = {
		{ .m = { .id = 101 } },
		{ .m = { .id = 102, .key = SLICE("a") } },
		{ .m = { .id = 103, .idem = SLICE("once") } },
		{ .m = { .id = 104, .key = SLICE("b") } },
	};
	struct op op;

	(void)put_key("a");
	rig_op(&op, OP_ENQUEUE, RIG_SPACE, "q");
	op.puts = puts;
	op.n_puts = 4;
	op.epoch = EPOCH;
	op.lives = "heavy";
	CHECK_EQ(SLU_EMOVED, rig_do(&here, &op));
	CHECK_STR("heavy", op.elsewhere);
	CHECK(!puts[0].taken && puts[1].taken && puts[2].taken && !puts[3].taken);
	CHECK_EQ(0, op.failed);
	CHECK(puts[2].existed);
	CHECK_EQ(first, puts[2].m.id);
	CHECK_EQ(3, rig_count(&here, "q", MSG_READY) + rig_count(&here, "q", MSG_HELD));

	op.lives = "";
	CHECK_EQ(0, rig_do(&there, &op)); /* what is taken is left alone: V4 */
	CHECK_STR("", op.elsewhere);
	CHECK_EQ(2, rig_count(&there, "q", MSG_READY));
	CHECK_EQ(0, put_here(NULL)); /* a node without a map cannot split it */
	CHECK_EQ(SLU_EMOVED, here.op.rc);
}

MOVE_TEST(a_delayed_message_keeps_its_key)
{
	struct op_move m;

	(void)put_here(&(struct rig_msg){ .key = "a", .delay = SLU_SEC });
	mark(&here, EPOCH, "heavy");
	CHECK(put_key("a"));
	CHECK_EQ(0, put_key("b"));
	rig_pass(&here, 2 * SLU_SEC);
	CHECK_EQ(1, rig_count(&here, "q", MSG_HELD));
	carry_all();
	m = step(&here, MOVE_LOOK, 0);
	CHECK_EQ(0, m.messages);
	CHECK_EQ(0, put_key("a"));
	CHECK_EQ(SLU_EMOVED, here.op.rc);
}

MOVE_TEST(who_finds_nothing_is_told_where_to_ask)
{
	static const enum op_verb verbs[] = { OP_CLAIM, OP_PEEK, OP_GET, OP_RESULT };
	struct op_item item = { .id = 77 };
	struct op_row row;
	struct op op;

	EACH(i, verbs) {
		rig_op(&op, verbs[i], RIG_SPACE, "q"); /* of a queue that was never here */
		op.epoch = EPOCH;
		op.lives = "heavy";
		op.id = 77;
		op.rows = &row;
		op.max_rows = 1;
		(void)rig_do(&here, &op);
		CHECK_STR("heavy", op.elsewhere);
	}
	rig_op(&op, OP_ACK, RIG_SPACE, "q");
	op.items = &item;
	op.n_items = 1;
	CHECK_EQ(0, rig_do(&here, &op));
	CHECK_EQ(SLU_ENOTFOUND, item.rc);
	CHECK_STR("heavy", op.elsewhere);
	item = (struct op_item){ .id = 77, .rc = 5, .taken = true };
	CHECK_EQ(0, rig_do(&here, &op));
	CHECK_EQ(5, item.rc);
}

/* ---- A batch ---- */

/* One of each kind, so that nothing is left out: SH-09. */
static void
fill(uint64_t ids[static 7])
{
	ids[0] = put_here(&(struct rig_msg){ .prio = 1, .payload = "one" });
	ids[1] = put_here(&(struct rig_msg){ .prio = 0, .ttl = SLU_SEC * 3600, .idem = "live" });
	ids[2] = put_key("k");
	ids[3] = put_key("k");
	ids[4] = put_here(&(struct rig_msg){ .prio = 1, .delay = 60 * SLU_SEC });
	ids[5] = put_here(&(struct rig_msg){ .prio = -1, .max_attempts = 1 });
	CHECK_EQ(ids[5], rig_claim_one(&here, "q"));
	CHECK_EQ(0, rig_item(&here, OP_NACK, &(struct op_item){ .id = ids[5], .text = SLICE("oh") }));
	ids[6] = put_here(&(struct rig_msg){ .prio = -1, .idem = "done", .keep = 600 * SLU_SEC });
	CHECK_EQ(ids[6], rig_claim_one(&here, "q"));
	CHECK_EQ(0, rig_item(&here, OP_ACK, &(struct op_item){ .id = ids[6], .text = SLICE("42") }));
}

static void
check_full(struct rig *r, const uint64_t *ids)
{
	const struct op_move m = step(r, MOVE_LOOK, 0);
	char text[8];

	CHECK_EQ(6, m.messages);
	CHECK_EQ(1, m.remembered);
	CHECK_EQ(1, m.results);
	CHECK_EQ(0, m.leased);
	CHECK_EQ(3, rig_count(r, "q", MSG_READY));
	CHECK_EQ(1, rig_count(r, "q", MSG_HELD));
	CHECK_EQ(1, rig_count(r, "q", MSG_DELAYED));
	CHECK_EQ(1, rig_count(r, "q", MSG_DEAD));
	CHECK_EQ(0, rig_result(r, ids[6], text, sizeof text));
	CHECK_STR("42", text);
}

static const uint8_t filled_kinds[] = { MOVE_MESSAGE, MOVE_MESSAGE, MOVE_MESSAGE, MOVE_MESSAGE,
					MOVE_MESSAGE, MOVE_MESSAGE, MOVE_REMEMBERED, MOVE_RESULT };

/* Where each of fill's stands in the batch: by priority, lines whole, then the rest. */
static void
check_order(const uint64_t *ids)
{
	static const int order[] = { 1, 2, 3, 0, 4, 5 };

	CHECK_EQ(8, n_taken);
	EACH(i, filled_kinds)
		CHECK_EQ(filled_kinds[i], taken[i].kind);
	EACH(i, order)
		CHECK_EQ(ids[order[i]], taken[i].id);
	CHECK_EQ(ids[6], taken[7].id);
}

static void
check_arrived(const uint64_t *ids)
{
	check_full(&there, ids);
	CHECK_EQ(0, rig_get(&there, ids[5]));
	CHECK_EQ(MSG_DEAD, there.rows[0].state);
	CHECK_EQ(DEAD_MAX_ATTEMPTS, there.rows[0].reason);
	CHECK_EQ(1, there.rows[0].attempts);
	CHECK_EQ(1, there.rows[0].failures);
	CHECK_STR("oh", rig_error(&there, 0));
	CHECK_EQ(ids[1], rig_put(&there, "q", &(struct rig_msg){ .idem = "live" }));
	CHECK_EQ(ids[6], rig_put(&there, "q", &(struct rig_msg){ .idem = "done" }));
	CHECK_EQ(3, rig_claim(&there, "q", 10));
	CHECK_EQ(ids[1], there.rows[0].id);
	CHECK_EQ(ids[2], there.rows[1].id);
	CHECK_EQ(ids[0], there.rows[2].id);
	CHECK_EQ(RIG_START + 3600 * SLU_SEC, there.rows[0].expires);
	CHECK_EQ(3, rig_read(&there, 2)->payload.n);
	rig_pass(&there, 61 * SLU_SEC); /* leases end, and the delay */
	CHECK_EQ(4, rig_count(&there, "q", MSG_READY));
}

MOVE_TEST(everything_of_a_queue_moves_and_arrives_once)
{
	uint64_t ids[7], batch;

	fill(ids);
	CHECK_EQ(8, take());
	check_order(ids);
	batch = took.batch;
	CHECK_EQ(8, take_by(3, false)); /* V6: the same again, in pages of another size */
	check_order(ids);
	CHECK_EQ(batch, took.batch);
	rig_reopen(&here);
	check_full(&here, ids); /* set aside, and counted as before */
	CHECK_EQ(0, rig_claim(&here, "q", 10));
	CHECK_EQ(8, take());
	CHECK_EQ(6, give());
	CHECK_EQ(0, give()); /* V8 */
	(void)step(&here, MOVE_DROP, batch);
	CHECK_EQ(0, give());
	(void)step(&here, MOVE_DROP, batch); /* V10 */
	CHECK_EQ(0, take());
	CHECK_EQ(0, took.messages + took.remembered + took.results);
	check_arrived(ids);
}

MOVE_TEST(a_batch_that_is_given_up_is_back_as_it_was)
{
	uint64_t ids[7];

	fill(ids);
	CHECK_EQ(8, take());
	(void)step(&here, MOVE_UNTAKE, took.batch + 1); /* not that one */
	CHECK_EQ(took.batch, step(&here, MOVE_LOOK, 0).batch);
	(void)step(&here, MOVE_UNTAKE, took.batch);
	CHECK_EQ(0, step(&here, MOVE_LOOK, 0).batch);
	check_full(&here, ids);
	CHECK_EQ(3, rig_claim(&here, "q", 10));
	CHECK_EQ(ids[1], here.rows[0].id);
	CHECK_EQ(ids[2], here.rows[1].id);
	CHECK_EQ(ids[6], put_here(&(struct rig_msg){ .idem = "done" }));
}

MOVE_TEST(what_is_set_aside_is_out_of_reach)
{
	uint64_t ids[7];

	fill(ids);
	CHECK_EQ(8, take());
	CHECK_EQ(SLU_ENOTFOUND, rig_settle_one(&here, OP_DELETE, ids[0], 0));
	CHECK_EQ(SLU_ENOTFOUND, rig_settle_one(&here, OP_REDRIVE, ids[5], 0));
	CHECK_EQ(SLU_ENOTFOUND, rig_settle_one(&here, OP_ACK, ids[1], 0));
	CHECK_EQ(0, put_key("k")); /* V7 */
	CHECK_EQ(SLU_EBUSY, here.op.rc);
	CHECK_STR("move", here.op.err.limit);
	CHECK(put_key("other"));
	rig_op(&here.op, OP_PURGE, RIG_SPACE, "q");
	CHECK_EQ(SLU_EBUSY, rig_do(&here, &here.op));
	rig_pass(&here, 7200 * SLU_SEC); /* nothing of it falls due */
	CHECK_EQ(1, rig_count(&here, "q", MSG_DEAD));
	CHECK_EQ(1, rig_count(&here, "q", MSG_DELAYED));
	(void)step(&here, MOVE_UNTAKE, took.batch);
	rig_pass(&here, 0);
	CHECK_EQ(2, rig_count(&here, "q", MSG_DEAD)); /* its ttl is over */
	CHECK_EQ(0, rig_count(&here, "q", MSG_DELAYED));
}

/* ---- Keys and leases ---- */

MOVE_TEST(a_line_moves_whole_and_not_while_one_of_it_is_leased)
{
	const uint64_t first = put_key("a"), plain = put_here(NULL), second = put_key("a");
	const uint64_t late = put_here(&(struct rig_msg){ .key = "a", .delay = 5 * SLU_SEC });
	uint64_t token;

	CHECK_EQ(first, rig_claim_one(&here, "q"));
	token = here.rows[0].token;
	mark(&here, EPOCH, "heavy");
	CHECK_EQ(1, take()); /* SH-74 */
	CHECK_EQ(plain, taken[0].id);
	CHECK_EQ(3, took.leased);
	carry();
	CHECK_EQ(0, take());
	CHECK_EQ(0, rig_settle_one(&here, OP_ACK, first, token));
	CHECK_EQ(2, take_by(1, false)); /* however large it gets */
	CHECK_EQ(second, taken[0].id);
	CHECK_EQ(late, taken[1].id);
	carry();
	CHECK_EQ(0, step(&here, MOVE_LOOK, 0).messages);
	there.next_id = 2000;
	CHECK_EQ(2000, rig_put(&there, "q", &(struct rig_msg){ .key = "a" }));
	rig_pass(&there, 6 * SLU_SEC);
	CHECK_EQ(2, rig_claim(&there, "q", 10)); /* plain, and the first of the line */
	CHECK_EQ(second, there.rows[1].id);
}

MOVE_TEST(a_retry_holds_its_key_there_as_it_did_here)
{
	const uint64_t first = put_key("a"), second = put_key("a");

	CHECK_EQ(first, rig_claim_one(&here, "q"));
	CHECK_EQ(0, rig_item(&here, OP_NACK, &(struct op_item){ .id = first, .time = 9 * SLU_SEC }));
	CHECK_EQ(2, take());
	carry();
	CHECK_EQ(0, rig_claim(&there, "q", 10));
	rig_pass(&there, 10 * SLU_SEC);
	CHECK_EQ(1, rig_claim(&there, "q", 10));
	CHECK_EQ(first, there.rows[0].id);
	CHECK_EQ(2, there.rows[0].attempts);
	CHECK_EQ(0, rig_settle_one(&there, OP_ACK, first, 0));
	CHECK_EQ(second, rig_claim_one(&there, "q"));
}

/* SH-75, V9 */
MOVE_TEST(what_is_leased_can_be_made_to_move)
{
	const uint64_t id = put_here(NULL);
	uint64_t token;

	CHECK_EQ(id, rig_claim_one(&here, "q"));
	token = here.rows[0].token;
	CHECK_EQ(1, take_by(BATCH, true));
	CHECK_EQ(0, taken[0].attempts);
	CHECK_EQ(SLU_ENOTFOUND, rig_settle_one(&here, OP_ACK, id, token));
	carry();
	CHECK_EQ(id, rig_claim_one(&there, "q"));
	CHECK(there.rows[0].token > token);
	CHECK_EQ(SLU_ELEASE, rig_settle_one(&there, OP_ACK, id, token));
}

MOVE_TEST(the_counter_is_lifted_to_that_of_the_giver)
{
	const uint64_t id = put_here(NULL);

	CHECK_EQ(1, take());
	took.counter = 1000000;
	carry();
	CHECK_EQ(id, rig_claim_one(&there, "q"));
	CHECK(there.rows[0].token > 1000000);
}

MOVE_TEST(a_dead_letter_of_a_key_is_moved_before_it_is_redriven)
{
	const uint64_t id = put_here(&(struct rig_msg){ .key = "a", .max_attempts = 1 });

	CHECK_EQ(id, rig_claim_one(&here, "q"));
	CHECK_EQ(0, rig_item(&here, OP_NACK, &(struct op_item){ .id = id }));
	mark(&here, EPOCH, "heavy");
	CHECK_EQ(SLU_ECONFLICT, rig_settle_one(&here, OP_REDRIVE, id, 0));
	carry_all();
	CHECK_EQ(0, rig_settle_one(&there, OP_REDRIVE, id, 0));
	CHECK_EQ(id, rig_claim_one(&there, "q"));
}

MOVE_TEST(batches_are_as_large_as_they_were_asked_for)
{
	uint64_t last = 0;
	unsigned n = 0;

	for (int i = 0; i < 50; i++)
		(void)put_here(&(struct rig_msg){ .prio = i % 3 });
	while (take_by(7, false)) {
		CHECK(n_taken <= 7);
		carry();
		n++;
	}
	CHECK_EQ(8, n);
	CHECK_EQ(50, rig_claim(&there, "q", 100));
	for (uint32_t i = 0; i < 50; i++) { /* SH-68: the order is kept over batches */
		CHECK(there.rows[i].number > last);
		last = there.rows[i].number;
	}
}

/* ---- States ---- */

static struct held *
state_of(struct rig *r, struct held *h, enum op_verb verb, uint64_t id)
{
	static char key[128];
	char uuid[ID_UUID_TEXT];

	snprintf(key, sizeof key, "q/q/state/%s", id_to_uuid(id, uuid));
	prepare_put(h, key, "", "state");
	h->op.verb = verb;
	h->op.queue = SLICE("q");
	h->op.lock.token = verb == OP_STATE_GET ? 0 : r->rows[0].token;
	lock_txn(h->op.lock.token, h->op.lock.txn);
	return h;
}

MOVE_TEST(the_state_of_a_message_goes_with_it)
{
	const uint64_t id = put_here(NULL);
	struct held h = { 0 };
	uint64_t etag;

	CHECK_EQ(id, rig_claim_one(&here, "q"));
	CHECK_EQ(0, rig_do(&here, &state_of(&here, &h, OP_STATE_PUT, id)->op));
	etag = h.op.lock.etag;
	CHECK_EQ(0, rig_item(&here, OP_NACK, &(struct op_item){ .id = id, .time = 0 }));
	CHECK_EQ(2, take());
	CHECK_EQ(MOVE_STATE, taken[1].kind);
	carry();
	CHECK_EQ(0, rig_do(&there, &state_of(&there, &h, OP_STATE_GET, id)->op));
	CHECK_EQ(etag, h.op.lock.etag);
	CHECK_EQ(1, h.op.lock.version);
	read_document(&there, &h.op.lock.record, &h);
	op_unpin(&h.op);
	CHECK_STR("state", h.text);
	CHECK_EQ(0, rig_do(&here, &state_of(&here, &h, OP_STATE_GET, id)->op));
	CHECK_EQ(0, h.op.lock.version);
}

MOVE_TEST(lock_keys_move_with_their_states_but_not_while_they_are_held)
{
	struct held a = { 0 }, b = { 0 }, c = { 0 };

	moved = LOCK_QUEUE;
	commit_state(&there, "other", "theirs");
	commit_state(&here, "free", "one");
	commit_state(&here, "free", "two");
	CHECK_EQ(0, acquire(&here, &a, "free", "me", 0));
	CHECK_EQ(0, attach(&here, &a, "free", "more", "three"));
	CHECK_EQ(0, end(&here, &a, "free", false));
	commit_state(&here, "held", "mine");
	CHECK_EQ(0, acquire(&here, &a, "held", "me", 0));
	mark(&here, EPOCH, "heavy");
	CHECK_EQ(2, take());
	CHECK_EQ(1, took.leased);
	CHECK_EQ(SLU_EBUSY, acquire(&here, &b, "free", "you", 0)); /* V7 */
	carry();
	CHECK_EQ(SLU_EMOVED, acquire(&here, &b, "free", "you", 0)); /* V5 */
	CHECK_STR("heavy", b.op.elsewhere);
	CHECK_STR("", get_public(&here, "free"));
	CHECK_STR("two", get_public(&there, "free"));
	CHECK_STR("theirs", get_public(&there, "other"));
	describe(&there, &c, "free");
	CHECK_EQ(3, c.op.lock.version);
	CHECK_EQ(0, acquire(&there, &b, "free", "you", 0));
	CHECK_STR("three", get(&there, &b, "free", "more"));
	CHECK(b.op.lock.token > a.op.lock.token); /* V9 */
	CHECK_EQ(0, put(&there, &b, "free", "four"));
	CHECK_EQ(0, end(&there, &b, "free", false));
	CHECK_STR("four", get_public(&there, "free"));
	CHECK_EQ(0, put(&here, &a, "held", "still")); /* what is held works as ever */
	CHECK_EQ(0, end(&here, &a, "held", false));
	carry_all();
	CHECK_STR("still", get_public(&there, "held"));
}

MOVE_TEST(a_lock_key_that_is_given_up_can_be_had_again)
{
	struct held a = { 0 };

	moved = LOCK_QUEUE;
	commit_state(&here, "k", "one");
	CHECK_EQ(1, take());
	(void)step(&here, MOVE_UNTAKE, took.batch);
	CHECK_EQ(0, acquire(&here, &a, "k", "me", 0));
	CHECK_STR("one", get(&here, &a, "k", ""));
}

/* ---- Names of keys ---- */

static redisContext *
connect_to(void)
{
	redisContext *c = redisConnectUnix("redis.sock");

	CHECK(c && !c->err);
	return c;
}

static int
by_text(const void *a, const void *b)
{
	const redisReply *const *x = a, *const *y = b;

	return strcmp((*x)->str, (*y)->str);
}

/* All keys that begin so, with spaces between. */
static const char *
keys_of(const char *pattern)
{
	static char text[4096];
	redisContext *c = connect_to();
	redisReply *all = redisCommand(c, "KEYS %s", pattern);
	size_t n = 0;

	CHECK(all && all->type == REDIS_REPLY_ARRAY);
	if (all->elements)
		qsort(all->element, all->elements, sizeof *all->element, by_text);
	text[0] = '\0';
	for (size_t i = 0; i < all->elements; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i ? " " : "",
				      all->element[i]->str);
	freeReplyObject(all);
	redisFree(c);
	return text;
}

/* SH-10, SH-34, SH-35 */
MOVE_TEST(keys_have_the_form_of_the_design_and_a_named_shard_a_segment)
{
	(void)rig_put(&here, "generate_master", &(struct rig_msg){ .prio = 5, .space = "tenant-123" });
	CHECK_STR("codeq:q:generate_master:tenant-123:all "
		  "codeq:q:generate_master:tenant-123:meta "
		  "codeq:q:generate_master:tenant-123:msg "
		  "codeq:q:generate_master:tenant-123:pending:5 "
		  "codeq:q:generate_master:tenant-123:prios",
		  keys_of("codeq:q:*"));
	(void)rig_put(&there, "generate_master", &(struct rig_msg){ .prio = 5, .space = "tenant-123" });
	CHECK_STR("codeq:q:generate_master:tenant-123:s:heavy:all "
		  "codeq:q:generate_master:tenant-123:s:heavy:meta "
		  "codeq:q:generate_master:tenant-123:s:heavy:msg "
		  "codeq:q:generate_master:tenant-123:s:heavy:pending:5 "
		  "codeq:q:generate_master:tenant-123:s:heavy:prios",
		  keys_of("codeq:q:*:s:*"));
}

/* SH-36: on one server, what has the old form is handed out as ever, what is new has the
 * new one. */
MOVE_TEST(both_forms_of_keys_are_served_side_by_side)
{
	const uint64_t old = put_here(NULL);
	uint64_t new;

	mark(&here, EPOCH, "heavy");
	CHECK_EQ(0, put_here(NULL));
	CHECK_EQ(SLU_EMOVED, here.op.rc);
	new = rig_put(&there, "q", NULL);
	CHECK(new);
	CHECK_CONTAINS("codeq:q:q:ns:s:heavy:pending:0", keys_of("codeq:q:*"));
	CHECK_CONTAINS("codeq:q:q:ns:pending:0", keys_of("codeq:q:*"));
	CHECK_EQ(old, rig_claim_one(&here, "q"));
	CHECK_EQ(0, rig_settle_one(&here, OP_ACK, old, 0));
	CHECK_EQ(new, rig_claim_one(&there, "q"));
	CHECK_EQ(0, rig_claim(&here, "q", 1));
	rig_pass(&here, 60 * SLU_SEC); /* what a claim was granted is forgotten, too */
	CHECK_STR("codeq:q:q:ns:meta", keys_of("codeq:q:q:ns:[a-rt-z]*"));
}
