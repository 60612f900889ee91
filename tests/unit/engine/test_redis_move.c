/*
 * Shards that share a Redis server, and a queue that moves from one to the other: a is
 * `default`, whose keys have no segment, b is `heavy`, whose keys have one.
 *
 * What every engine must do is in test_engine_move*.c.
 */
#include "lock_fixture.h"
#include "move_rig.h"

#include "base/id.h"
#include "engine/redis/redis.h"
#include "redis_server.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

static void
prepare(struct engine_conf *conf, bool second)
{
	static const struct redis_conf redis[] = {
		{ .wire = { .address = "unix:redis.sock" }, .prefix = "codeq", .given_time = true },
		{ .wire = { .address = "unix:redis.sock" },
		  .prefix = "codeq",
		  .given_time = true },
	};

	redis_server_start("redis.sock");
	conf->options = &redis[second];
	conf->shard = second ? "heavy" : NULL;
}

static void
run(rig_pair *test)
{
	static const struct rig_row row = { .engine = &engine_redis, .prepare = prepare };
	static struct rig a, b;

	a = (struct rig){ .row = &row, .now = RIG_START, .next_id = 1 };
	b = (struct rig){ .row = &row, .now = RIG_START, .next_id = 1000, .second = true };
	rig_open(&a);
	rig_open(&b);
	test(&a, &b);
	rig_check(&a);
	rig_check(&b);
	rig_close(&a);
	rig_close(&b);
}

#define SHARED_CASE(fn)                               \
	static void fn(struct rig *a, struct rig *b); \
	TEST(shared_##fn)                             \
	{                                             \
		run(fn);                              \
	}                                             \
	static void fn(struct rig *a, __attribute__((unused)) struct rig *b)

/* ---- Everything at once ---- */

/* One of each kind, so that nothing is left out: SH-09. */
static void
fill(struct rig *r, uint64_t ids[static 7])
{
	ids[0] = rig_put(r, "q", &(struct rig_msg){ .prio = 1, .payload = "one" });
	ids[1] = rig_put(r, "q", &(struct rig_msg){ .prio = 0, .ttl = SLU_HOUR, .idem = "live" });
	ids[2] = rig_put(r, "q", &(struct rig_msg){ .key = "k" });
	ids[3] = rig_put(r, "q", &(struct rig_msg){ .key = "k" });
	ids[4] = rig_put(r, "q", &(struct rig_msg){ .prio = 1, .delay = SLU_MIN });
	ids[5] = rig_put(r, "q", &(struct rig_msg){ .prio = -1, .max_attempts = 1 });
	CHECK_EQ(ids[5], rig_claim_one(r, "q"));
	CHECK_EQ(0, rig_item(r, OP_NACK, &(struct op_item){ .id = ids[5], .text = SLICE("oh") }));
	ids[6] = rig_put(r, "q", &(struct rig_msg){ .prio = -1, .idem = "done", .keep = SLU_HOUR });
	CHECK_EQ(ids[6], rig_claim_one(r, "q"));
	CHECK_EQ(0, rig_item(r, OP_ACK, &(struct op_item){ .id = ids[6], .text = SLICE("42") }));
}

static void
check_full(struct rig *r, const uint64_t *ids)
{
	const struct op_move *m = &r->op.move;
	char text[8];

	CHECK_EQ(0, move_step(r, "q", MOVE_LOOK, 0));
	CHECK_EQ(6, m->messages);
	CHECK_EQ(1, m->remembered);
	CHECK_EQ(1, m->results);
	CHECK_EQ(0, m->leased);
	CHECK_EQ(3, rig_count(r, "q", MSG_READY));
	CHECK_EQ(1, rig_count(r, "q", MSG_HELD));
	CHECK_EQ(1, rig_count(r, "q", MSG_DELAYED));
	CHECK_EQ(1, rig_count(r, "q", MSG_DEAD));
	CHECK_EQ(0, rig_result(r, ids[6], text, sizeof text));
	CHECK_STR("42", text);
}

/* Where each of fill's stands in the batch: by priority, sequences whole, then the rest. */
static void
check_order(const uint64_t *ids)
{
	static const int order[] = { 1, 2, 3, 0, 4, 5 };

	CHECK_EQ(8, move_n);
	EACH(i, order)
		CHECK_EQ(ids[order[i]], move_rows[i].row.id);
	CHECK_EQ(MOVE_REMEMBERED, move_rows[6].row.kind);
	CHECK_EQ(MOVE_RESULT, move_rows[7].row.kind);
	CHECK_EQ(ids[6], move_rows[7].row.id);
}

static void
check_arrived(struct rig *r, const uint64_t *ids)
{
	check_full(r, ids);
	CHECK_EQ(0, rig_get(r, ids[5]));
	CHECK_EQ(MSG_DEAD, r->rows[0].state);
	CHECK_EQ(DEAD_MAX_ATTEMPTS, r->rows[0].reason);
	CHECK_STR("oh", rig_error(r, 0));
	CHECK_EQ(ids[1], rig_put(r, "q", &(struct rig_msg){ .idem = "live" }));
	CHECK_EQ(ids[6], rig_put(r, "q", &(struct rig_msg){ .idem = "done" }));
	CHECK_EQ(3, rig_claim(r, "q", 10));
	CHECK_EQ(ids[1], r->rows[0].id);
	CHECK_EQ(ids[2], r->rows[1].id);
	CHECK_EQ(ids[0], r->rows[2].id);
	CHECK_EQ(RIG_START + SLU_HOUR, r->rows[0].expires);
}

SHARED_CASE(everything_of_a_queue_moves_and_arrives_once)
{
	uint64_t ids[7], batch;

	fill(a, ids);
	batch = move_take(a, "q", NULL);
	check_order(ids);
	CHECK_EQ(batch, move_take(a, "q", &(struct move_take){ .max = 3 })); /* MOVE-6, in pages */
	check_order(ids);
	rig_reopen(a);
	check_full(a, ids); /* set aside, and counted as before */
	CHECK_EQ(0, rig_claim(a, "q", 10));
	CHECK_EQ(0, move_give(a, b, "q"));
	CHECK_EQ(6, b->op.move.given);
	CHECK_EQ(0, move_step(a, "q", MOVE_DROP, batch));
	CHECK_EQ(0, move_take(a, "q", NULL));
	CHECK_EQ(0, a->op.move.messages + a->op.move.remembered + a->op.move.results);
	check_arrived(b, ids);
}

SHARED_CASE(a_batch_that_is_given_up_is_back_as_it_was)
{
	uint64_t ids[7];

	(void)b;
	fill(a, ids);
	CHECK_EQ(0, move_step(a, "q", MOVE_UNTAKE, move_take(a, "q", NULL)));
	check_arrived(a, ids);
}

SHARED_CASE(a_queue_that_was_never_here_has_a_mark_of_where_it_lives)
{
	static const enum op_verb verbs[] = { OP_CLAIM, OP_PEEK, OP_GET, OP_RESULT };

	(void)b;
	EACH(i, verbs) {
		rig_op(&a->op, verbs[i], RIG_SPACE, "q");
		a->op.home.epoch = MOVE_EPOCH;
		a->op.home.lives = "heavy";
		a->op.id = 77;
		a->op.rows = a->rows;
		a->op.max_rows = 1;
		(void)rig_do(a, &a->op); /* there is nothing */
		CHECK_STR("heavy", a->op.home.elsewhere);
	}
	CHECK_EQ(0, rig_put(a, "q", NULL)); /* a node without a map cannot split it */
	CHECK_EQ(SLU_EMOVED, a->op.rc);
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

SHARED_CASE(the_state_of_a_message_goes_with_it)
{
	const uint64_t id = rig_put(a, "q", NULL);
	struct held h = { 0 };
	uint64_t etag;

	CHECK_EQ(id, rig_claim_one(a, "q"));
	CHECK_EQ(0, rig_do(a, &state_of(a, &h, OP_STATE_PUT, id)->op));
	etag = h.op.lock.etag;
	CHECK_EQ(0, rig_item(a, OP_NACK, &(struct op_item){ .id = id, .time = 0 }));
	CHECK_EQ(1, move_all(a, b, "q", 10));
	CHECK_EQ(0, rig_do(b, &state_of(b, &h, OP_STATE_GET, id)->op));
	CHECK_EQ(etag, h.op.lock.etag);
	CHECK_EQ(1, h.op.lock.version);
	read_document(b, &h.op.lock.record, &h);
	op_unpin(&h.op);
	CHECK_STR("state", h.text);
	CHECK_EQ(0, rig_do(a, &state_of(a, &h, OP_STATE_GET, id)->op));
	CHECK_EQ(0, h.op.lock.version);
}

SHARED_CASE(lock_keys_move_with_their_states_but_not_while_they_are_held)
{
	struct held h = { 0 }, other = { 0 }, seen = { 0 };
	uint64_t batch;

	fill_locks(a, b, &h, "heavy");
	batch = move_take(a, LOCK_QUEUE, NULL);
	CHECK_EQ(2, move_n);
	CHECK_EQ(1, a->op.move.leased);
	CHECK_EQ(SLU_EBUSY, acquire(a, &other, "free", "you", 0)); /* MOVE-7 */
	CHECK_EQ(0, move_give(a, b, LOCK_QUEUE));
	CHECK_EQ(0, move_step(a, LOCK_QUEUE, MOVE_DROP, batch));
	CHECK_EQ(SLU_EMOVED, acquire(a, &other, "free", "you", 0)); /* MOVE-5 */
	CHECK_STR("heavy", other.op.home.elsewhere);
	CHECK_STR("refused", get_public(a, "free"));
	CHECK_STR("two", get_public(b, "free"));
	CHECK_STR("theirs", get_public(b, "other"));
	describe(b, &seen, "free");
	CHECK_EQ(3, seen.op.lock.version);
	CHECK_EQ(0, acquire(b, &other, "free", "you", 0));
	CHECK_STR("three", get(b, &other, "free", "more"));
	CHECK(other.op.lock.token > h.op.lock.token); /* MOVE-9 */
	CHECK_EQ(0, put(b, &other, "free", "four"));
	CHECK_EQ(0, end(b, &other, "free", false));
	CHECK_STR("four", get_public(b, "free"));
	CHECK_EQ(0, put(a, &h, "held", "still")); /* what is held works as ever */
	CHECK_EQ(0, end(a, &h, "held", false));
	CHECK_EQ(1, move_all(a, b, LOCK_QUEUE, 10));
	CHECK_STR("still", get_public(b, "held"));
}

SHARED_CASE(a_lock_key_that_is_given_up_can_be_had_again)
{
	struct held h = { 0 };

	(void)b;
	commit_state(a, "k", "one");
	CHECK_EQ(0, move_step(a, LOCK_QUEUE, MOVE_UNTAKE, move_take(a, LOCK_QUEUE, NULL)));
	CHECK_EQ(0, acquire(a, &h, "k", "me", 0));
	CHECK_STR("one", get(a, &h, "k", ""));
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
SHARED_CASE(keys_have_the_form_of_the_design_and_a_named_shard_a_segment)
{
	(void)rig_put(a, "generate_master", &(struct rig_msg){ .prio = 5, .space = "tenant-123" });
	CHECK_STR("codeq:q:generate_master:tenant-123:all "
		  "codeq:q:generate_master:tenant-123:meta "
		  "codeq:q:generate_master:tenant-123:msg "
		  "codeq:q:generate_master:tenant-123:pending:5 "
		  "codeq:q:generate_master:tenant-123:prios",
		  keys_of("codeq:q:*"));
	(void)rig_put(b, "generate_master", &(struct rig_msg){ .prio = 5, .space = "tenant-123" });
	CHECK_STR("codeq:q:generate_master:tenant-123:s:heavy:all "
		  "codeq:q:generate_master:tenant-123:s:heavy:meta "
		  "codeq:q:generate_master:tenant-123:s:heavy:msg "
		  "codeq:q:generate_master:tenant-123:s:heavy:pending:5 "
		  "codeq:q:generate_master:tenant-123:s:heavy:prios",
		  keys_of("codeq:q:*:s:*"));
}

/* Of how many engines the queue knows what they enqueued last. */
static size_t
callers_of(const char *meta)
{
	redisContext *c = connect_to();
	redisReply *all = redisCommand(c, "HKEYS %s", meta);
	size_t n = 0;

	CHECK(all && all->type == REDIS_REPLY_ARRAY && all->elements > 0);
	for (size_t i = 0; i < all->elements; i++)
		n += strncmp(all->element[i]->str, "did:", 4) == 0;
	freeReplyObject(all);
	redisFree(c);
	return n;
}

/* REDIS-4 */
SHARED_CASE(an_owner_that_was_away_for_a_day_is_forgotten)
{
	static const char meta[] = "codeq:q:mail:" RIG_SPACE ":meta";

	(void)b;
	for (size_t i = 1; i <= 3; i++) {
		(void)rig_put(a, "mail", NULL);
		(void)rig_put(a, "mail", NULL);
		CHECK_EQ(i, callers_of(meta));
		rig_reopen(a);
	}
	rig_pass(a, 25 * SLU_HOUR);
	(void)rig_put(a, "mail", NULL);
	CHECK_EQ(1, callers_of(meta));
}

/* The queue takes the next so many enqueues of its only engine for some that it has seen. */
static void
pretend_seen(const char *meta, int n)
{
	redisContext *c = connect_to();
	redisReply *all = redisCommand(c, "HKEYS %s", meta);

	for (size_t i = 0; i < all->elements; i++)
		if (strncmp(all->element[i]->str, "did:", 4) == 0)
			freeReplyObject(redisCommand(c, "HINCRBY %s %s %d", meta, all->element[i]->str, n));
	freeReplyObject(all);
	redisFree(c);
}

/* REDIS-4: the last one was taken. The answers of earlier ones are unknown if nothing is left of them. */
SHARED_CASE(an_enqueue_that_may_have_been_refused_is_not_answered_as_taken)
{
	static const char meta[] = "codeq:q:mail:" RIG_SPACE ":meta";

	(void)b;
	CHECK(rig_put(a, "mail", NULL));
	pretend_seen(meta, 2);
	CHECK_EQ(0, rig_put(a, "mail", NULL));
	CHECK_EQ(SLU_EUNKNOWN, a->op.rc);
	CHECK(rig_put(a, "mail", NULL)); /* it was this one, and has been settled since */
	CHECK_EQ(1, rig_count(a, "mail", MSG_READY));
}

SHARED_CASE(each_shard_has_its_own_queues)
{
	rig_put(a, "old", NULL);
	rig_put(b, "new", NULL);
	rig_reopen(a);
	rig_op(&a->op, OP_QUEUES, "", "");
	a->op.queues = a->queues;
	a->op.max_queues = RIG_QUEUES;
	CHECK_EQ(0, rig_do(a, &a->op));
	CHECK_EQ(1, a->op.n_queues);
	CHECK_STR("old", a->queues[0].name);
	CHECK_STR("codeq:queues codeq:queues:s:heavy", keys_of("codeq:queues*"));
}

/* SH-36: on one server, what has the old form is handed out as ever, what is new has the
 * new one. */
SHARED_CASE(both_forms_of_keys_are_served_side_by_side)
{
	const uint64_t old = rig_put(a, "q", NULL);
	uint64_t new;

	move_mark(a, "q", MOVE_EPOCH, "heavy");
	CHECK_EQ(0, rig_put(a, "q", NULL));
	CHECK_EQ(SLU_EMOVED, a->op.rc);
	new = rig_put(b, "q", NULL);
	CHECK(new);
	CHECK_CONTAINS("codeq:q:q:ns:s:heavy:pending:0", keys_of("codeq:q:*"));
	CHECK_CONTAINS("codeq:q:q:ns:pending:0", keys_of("codeq:q:*"));
	CHECK_EQ(old, rig_claim_one(a, "q"));
	CHECK_EQ(0, rig_settle_one(a, OP_ACK, old, 0));
	CHECK_EQ(new, rig_claim_one(b, "q"));
	CHECK_EQ(0, rig_claim(a, "q", 1));
	rig_pass(a, SLU_MIN); /* what a claim was granted is forgotten, too */
	CHECK_STR("codeq:q:q:ns:meta", keys_of("codeq:q:q:ns:[a-rt-z]*"));
}
