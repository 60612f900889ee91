/*
 * Ops of a queue that moves, verb by verb: broker/move/follow.h.
 */
#include "follow_fixture.h"

FIXTURE(start, end);

/* ---- Enqueue ---- */

/* SH-19: new ones land on the new shard; SH-103: old ones are still served, first. */
TEST(new_messages_go_to_the_new_shard_and_old_ones_are_served_first)
{
	static struct op_call c;
	uint64_t first, second;

	first = push("q");
	reroute(2, "new", "old");
	second = push("q");
	CHECK_EQ(1, count_at(OLD, "q", MSG_READY));
	CHECK_EQ(1, count_at(NEW, "q", MSG_READY));
	CHECK_STR("new", lives(OLD));
	CHECK_STR("", lives(NEW));
	CHECK_EQ(first, claim(&c, "q"));
	CHECK_EQ(OLD, c.op.route.lane);
	CHECK_EQ(second, claim(&c, "q"));
	CHECK_EQ(NEW, c.op.route.lane);
	CHECK_EQ(0, claim(&c, "q"));
}

TEST(a_key_stays_where_its_line_is_until_that_is_empty)
{
	static struct op_call c;
	uint64_t ids[3];

	ids[0] = push_with("q", "k", NULL, 0);
	reroute(2, "new", "old");
	ids[1] = push_with("q", "k", NULL, 0);
	CHECK_EQ(0, count_at(NEW, "q", MSG_READY));
	CHECK_EQ(ids[0], claim(&c, "q"));
	CHECK_EQ(0, settle(&c, OP_ACK, ids[0], c.rows[0].token));
	CHECK_EQ(ids[1], claim(&c, "q"));
	ids[2] = push_with("q", "k", NULL, 0); /* behind one that is leased */
	CHECK_EQ(0, count_at(NEW, "q", MSG_READY));
	CHECK_EQ(0, settle(&c, OP_ACK, ids[1], c.rows[0].token));
	CHECK_EQ(ids[2], claim(&c, "q"));
	CHECK_EQ(0, settle(&c, OP_ACK, ids[2], c.rows[0].token));
	push_with("q", "k", NULL, 0);
	CHECK_EQ(1, count_at(NEW, "q", MSG_READY));
}

TEST(an_idempotency_key_is_known_whichever_shard_has_it)
{
	static struct op_call c;
	uint64_t id;

	id = push_with("q", NULL, "once", 0);
	reroute(2, "new", "old");
	call(&c, OP_ENQUEUE, "q");
	c.op.n_puts = 2;
	c.puts[0].m.idem = SLICE("once");
	c.puts[1].m.idem = SLICE("twice");
	CHECK_EQ(0, run(&c));
	CHECK(c.puts[0].existed);
	CHECK_EQ(id, c.puts[0].m.id);
	CHECK(!c.puts[1].existed);
	CHECK_EQ(1, count_at(OLD, "q", MSG_READY));
	CHECK_EQ(1, count_at(NEW, "q", MSG_READY));
}

/* SH-39: without a key, and once the mark is known to stand, the old shard is not asked. */
TEST(messages_without_keys_go_straight_to_the_new_shard)
{
	uint64_t before;

	push("q");
	reroute(2, "new", "old");
	push("q");
	before = ops_of(OLD);
	push("q");
	CHECK_EQ(before, ops_of(OLD));
	push_with("q", "k", NULL, 0);
	CHECK_EQ(before + 1, ops_of(OLD));
}

/* An op that was routed by the map before, as a node has it that has not read the new one. */
TEST(a_node_with_an_old_map_cannot_split_a_queue)
{
	const struct routes *old;
	static struct op_call c;
	uint64_t id;

	old = broker_routes(b);
	push("q");
	reroute(2, "new", "old");
	push("q");
	call(&c, OP_ENQUEUE, "q");
	c.op.route.routes = old;
	CHECK_EQ(0, run(&c));
	CHECK_EQ(1, count_at(OLD, "q", MSG_READY));
	CHECK_EQ(2, count_at(NEW, "q", MSG_READY));
	id = claim(&c, "q");
	call(&c, OP_CLAIM, "q");
	c.op.route.routes = old;
	CHECK_EQ(0, run(&c));
	CHECK(claimed(&c) != 0 && c.rows[0].id != id);
	CHECK_EQ(NEW, c.op.route.lane);
}

TEST(a_mark_that_was_set_by_hand_is_followed_though_the_map_says_otherwise)
{
	static struct op_call c;
	uint64_t id;

	id = push("q");
	CHECK_EQ(0, mark_at(OLD, (1ull << MOVE_EPOCH_BITS) + 1, "new"));
	push("q");
	CHECK_EQ(1, count_at(NEW, "q", MSG_READY));
	CHECK_EQ(id, claim(&c, "q"));
	CHECK(claim(&c, "q") != 0);
	CHECK_EQ(NEW, c.op.route.lane);
	CHECK_EQ(0, settle(&c, OP_ACK, c.rows[0].id, c.rows[0].token));
}

/* MOVE-11: it was away and came back, and the map does not show it; the sequence of a key did not
 * come back yet. */
TEST(a_key_is_not_split_by_a_map_that_knows_nothing_of_its_way)
{
	static struct op_call c;
	uint64_t id;

	push("q");
	CHECK_EQ(0, mark_at(OLD, (1ull << MOVE_EPOCH_BITS) + 1, "new"));
	call(&c, OP_ENQUEUE, "q");
	c.puts[0].m.key = SLICE("k");
	CHECK_EQ(0, run_at(&c, NEW));
	id = c.puts[0].m.id;
	CHECK_EQ(0, mark_at(OLD, (1ull << MOVE_EPOCH_BITS) + 2, ""));
	CHECK_EQ(0, mark_at(NEW, (1ull << MOVE_EPOCH_BITS) + 2, "old"));
	push_with("q", "k", NULL, 0);
	CHECK_EQ(1, count_at(OLD, "q", MSG_READY));
	CHECK_EQ(1, count_at(NEW, "q", MSG_HELD));
	CHECK_EQ(id, claim(&c, "q"));
	CHECK_EQ(NEW, c.op.route.lane);
}

TEST(a_queue_on_an_unknown_shard_is_refused_with_its_name)
{
	static struct op_call c;

	push("q");
	CHECK_EQ(0, mark_at(OLD, 7ull << MOVE_EPOCH_BITS, "ghost"));
	CHECK_EQ(SLU_EMOVED, run(call(&c, OP_ENQUEUE, "q")));
	CHECK_STR("queue q of ns lives on shard ghost since map version 7, which this node does "
		  "not have; reload its configuration",
		  c.op.err.text);
	CHECK(claim(&c, "q") != 0); /* what is here is served */
	CHECK_EQ(0, claim(&c, "q"));
}

/* Two queues in one call; one of them moves. */
TEST(what_is_about_several_queues_goes_on_queue_by_queue)
{
	static const char *const queues[] = { "other", "q", "q", "other" };
	static struct op_call c;

	push_with("q", "k", NULL, 0);
	reroute(2, "new", "old");
	push("q");
	call(&c, OP_ENQUEUE, "");
	c.op.n_puts = COUNT(queues);
	EACH(i, queues)
		c.puts[i].m.queue = slice_of(queues[i]);
	c.puts[2].m.key = SLICE("k");
	CHECK_EQ(0, run(&c), c.op.err.text);
	CHECK_EQ(1, count_at(OLD, "q", MSG_HELD));
	CHECK_EQ(2, count_at(NEW, "q", MSG_READY));
	CHECK_EQ(2, count_at(NEW, "other", MSG_READY));
}

/* ---- Waiting ---- */

TEST(a_claim_that_waits_gets_what_the_old_shard_has_later)
{
	static struct op_call c;
	uint64_t id;

	id = push_with("q", NULL, NULL, 300 * SLU_MS);
	reroute(2, "new", "old");
	wait_for(&c, OP_CLAIM, 20 * SLU_SEC);
	pass(299 * SLU_MS);
	CHECK_EQ(0, c.done);
	pass(SLU_MS);
	CHECK_EQ(1, c.done);
	CHECK_EQ(id, claimed(&c));
	CHECK_EQ(20 * SLU_SEC, c.op.wait);
}

TEST(a_claim_that_waits_gets_what_comes_to_the_new_shard)
{
	static struct op_call c;
	uint64_t id;

	push("other");
	reroute(2, "new", "old");
	wait_for(&c, OP_CLAIM, 20 * SLU_SEC);
	pass(3 * SLU_SEC);
	id = push("q");
	CHECK_EQ(1, c.done);
	CHECK_EQ(id, claimed(&c));
}

/* The slices add up: not shorter, not longer. */
TEST(a_wait_ends_when_it_should)
{
	static struct op_call c;

	reroute(2, "new", "old");
	wait_for(&c, OP_CLAIM, 3500 * SLU_MS);
	for (int i = 0; i < 34; i++)
		pass(100 * SLU_MS);
	CHECK_EQ(0, c.done);
	pass(100 * SLU_MS);
	CHECK_EQ(0, rc_of(&c));
	CHECK_EQ(0, c.op.n_rows);
}

TEST(a_cancel_finds_a_claim_wherever_it_waits)
{
	static struct op_call c;

	reroute(2, "new", "old");
	wait_for(&c, OP_CLAIM, 20 * SLU_SEC);
	pass(2 * SLU_SEC);
	CHECK_EQ(0, c.done);
	broker_cancel(b, &c.op);
	turn();
	CHECK_EQ(SLU_ECANCELED, rc_of(&c));

	c.done = 0; /* and an op that no shard has taken yet */
	CHECK_EQ(0, broker_post(b, &c.op));
	broker_cancel(b, &c.op);
	turn();
	CHECK_EQ(SLU_ECANCELED, rc_of(&c));
}

TEST(what_was_granted_goes_back_to_the_shard_that_gave_it)
{
	static struct op_call c;
	uint64_t id;

	id = push("q");
	reroute(2, "new", "old");
	CHECK_EQ(0, run(call(&c, OP_CLAIM, "q")));
	CHECK_EQ(1, c.op.n_rows);
	CHECK_EQ(0, broker_return(b, &c.op, 0));
	turn();
	CHECK_EQ(2, c.done);
	CHECK_EQ(id, claim(&c, "q"));
}

TEST(a_drain_ends_waits_and_a_stop_answers_all)
{
	static struct op_call a, c;

	reroute(2, "new", "old");
	wait_for(&a, OP_CLAIM, 20 * SLU_SEC);
	call(&c, OP_RESULT, "q");
	c.op.id = push_with("q", NULL, NULL, 0);
	CHECK_EQ(1, a.done); /* got it */
	op_unpin(&a.op);
	wait_for(&a, OP_CLAIM, 20 * SLU_SEC);
	c.op.wait = 20 * SLU_SEC;
	post(&c);
	broker_drain(b);
	turn();
	CHECK_EQ(0, rc_of(&a));
	CHECK_EQ(0, c.done);
	broker_stop(b);
	CHECK_EQ(1, c.done);
}

/* SH-39, SH-50: once nothing is left there, it is asked no more. */
TEST(an_old_shard_that_has_nothing_left_is_asked_no_more)
{
	static struct op_call c;
	uint64_t before;

	push("q");
	reroute(2, "new", "old");
	CHECK(claim(&c, "q") != 0);
	CHECK_EQ(0, settle(&c, OP_ACK, c.rows[0].id, c.rows[0].token));
	pass(2 * SLU_SEC);
	CHECK_EQ(0, claim(&c, "q")); /* it looks */
	before = ops_of(OLD);
	CHECK_EQ(0, claim(&c, "q"));
	push_with("q", "k", "i", 0);
	CHECK(claim(&c, "q") != 0);
	CHECK_EQ(before, ops_of(OLD));
}

/* MOVE-9: whatever else the old shard did meanwhile. */
TEST(tokens_of_a_key_rise_when_the_old_shard_is_asked_no_more)
{
	uint64_t token;
	static struct op_call c;

	push_with("q", "k", NULL, 0);
	reroute(2, "new", "old");
	CHECK(claim(&c, "q") != 0); /* marks stand */
	CHECK_EQ(0, settle(&c, OP_NACK, c.rows[0].id, c.rows[0].token));
	for (int i = 0; i < 100; i++)
		push("busy"); /* which lives on the old one */
	pass(SLU_MIN);
	CHECK(claim(&c, "q") != 0);
	token = c.rows[0].token;
	CHECK_EQ(0, settle(&c, OP_ACK, c.rows[0].id, token));
	pass(2 * SLU_SEC);
	CHECK_EQ(0, claim(&c, "q")); /* it looks */
	push_with("q", "k", NULL, 0);
	CHECK(claim(&c, "q") != 0);
	CHECK(c.rows[0].token > token);
}

TEST(a_queue_that_does_not_move_has_one_shard_asked)
{
	static struct op_call c;
	uint64_t before;

	reroute(2, "new", "old");
	push("q");
	before = ops_of(OLD);
	push("other");
	CHECK(claim(&c, "other") != 0);
	CHECK_EQ(before, ops_of(OLD));
}

/* ---- Items ---- */

TEST(items_are_settled_on_the_shard_that_has_them)
{
	static const enum op_verb verbs[] = { OP_EXTEND, OP_NACK, OP_DELETE };
	static struct op_call c, a, d;

	push("q");
	reroute(2, "new", "old");
	push("q");
	CHECK(claim(&a, "q") != 0);
	CHECK(claim(&d, "q") != 0);
	EACH(i, verbs) {
		call(&c, verbs[i], "q");
		c.op.n_items = 3;
		c.items[0].id = d.rows[0].id;
		c.items[0].token = d.rows[0].token;
		c.items[1].id = a.rows[0].id;
		c.items[1].token = a.rows[0].token;
		c.items[2].id = 77;
		CHECK_EQ(0, run(&c));
		CHECK_EQ(0, c.items[0].rc, op_verb_name(verbs[i]));
		CHECK_EQ(0, c.items[1].rc, op_verb_name(verbs[i]));
		CHECK_EQ(SLU_ENOTFOUND, c.items[2].rc, op_verb_name(verbs[i]));
	}
}

TEST(a_dead_letter_is_redriven_where_it_is)
{
	static struct op_call c;
	uint64_t id;

	id = push("q");
	reroute(2, "new", "old");
	CHECK_EQ(id, claim(&c, "q"));
	call(&c, OP_NACK, "q");
	c.items[0].id = id;
	c.items[0].dead = true;
	CHECK_EQ(0, run(&c));
	CHECK_EQ(1, count_at(OLD, "q", MSG_DEAD));
	CHECK_EQ(0, settle(&c, OP_REDRIVE, id, 0));
	CHECK_EQ(id, claim(&c, "q"));
}

/* ---- Looking ---- */

TEST(a_message_is_found_whichever_shard_has_it)
{
	static struct op_call c;
	uint64_t ids[2];

	ids[0] = push("q");
	reroute(2, "new", "old");
	ids[1] = push("q");
	EACH(i, ids) {
		call(&c, OP_GET, "q");
		c.op.id = ids[i];
		CHECK_EQ(0, run(&c));
		CHECK_EQ(ids[i], claimed(&c));
	}
	call(&c, OP_GET, "q");
	c.op.id = 99;
	CHECK_EQ(SLU_ENOTFOUND, run(&c));
	CHECK_EQ(0, run(call(&c, OP_PEEK, "q")));
	CHECK_EQ(ids[0], claimed(&c));
}

TEST(a_watch_sees_the_head_of_both)
{
	static struct op_call c;
	uint64_t ids[2];

	ids[0] = push("q");
	reroute(2, "new", "old");
	call(&c, OP_WATCH, "q");
	CHECK_EQ(0, run(&c));
	CHECK_EQ(ids[0], c.op.id);
	c.op.wait = 20 * SLU_SEC; /* the same: it waits */
	post(&c);
	ids[1] = push("q");
	pass(2 * SLU_SEC);
	CHECK_EQ(0, c.done);
	CHECK_EQ(0, settle(&(struct op_call){ 0 }, OP_DELETE, ids[0], 0));
	pass(2 * SLU_SEC);
	CHECK_EQ(1, c.done);
	CHECK_EQ(ids[1], c.op.id);
}

/* SH-41 */
TEST(stats_are_the_sum_of_both)
{
	static struct op_call c;

	push("q");
	push_with("q", NULL, NULL, SLU_HOUR);
	reroute(2, "new", "old");
	push("q");
	CHECK_EQ(0, run(call(&c, OP_STATS, "q")));
	CHECK_EQ(1, c.op.n_queues);
	CHECK_EQ(2, c.queue.count[MSG_READY]);
	CHECK_EQ(1, c.queue.count[MSG_DELAYED]);
	CHECK_EQ(3, c.queue.totals.accepted);
}

TEST(a_list_has_the_messages_of_both_page_by_page)
{
	static const enum msg_state states[] = { MSG_NONE, MSG_READY };
	static struct op_call c;

	push("q");
	push("q");
	push("q");
	reroute(2, "new", "old");
	push("q");
	push("q");
	EACH(i, states) {
		uint32_t n = 0, pages = 0;

		call(&c, OP_LIST, "q");
		c.op.state = states[i];
		c.op.max_rows = 2;
		do {
			CHECK_EQ(0, run(&c));
			n += c.op.n_rows;
			pages++;
			op_unpin(&c.op);
		} while (c.op.cursor);
		CHECK_EQ(5, n);
		CHECK(pages >= 3);
	}
}

TEST(a_list_of_dead_letters_goes_on_behind_any_row)
{
	static struct op_call c;
	uint64_t seen = 0;

	for (int i = 0; i < 4; i++) {
		uint64_t id;

		if (i == 2)
			reroute(2, "new", "old");
		id = push("q");
		CHECK_EQ(id, claim(&c, "q"));
		call(&c, OP_NACK, "q");
		c.items[0].id = id;
		c.items[0].dead = true;
		CHECK_EQ(0, run(&c));
	}
	call(&c, OP_LIST, "q");
	c.op.state = MSG_DEAD;
	do {
		CHECK_EQ(0, run(&c));
		seen += c.op.n_rows;
		if (c.op.n_rows)
			c.op.cursor = c.op.cursor ? c.rows[0].after : 0;
		op_unpin(&c.op);
	} while (c.op.cursor);
	CHECK_EQ(4, seen);
}

TEST(the_result_of_a_message_is_waited_for_where_that_is)
{
	static struct op_call c, waits;
	uint64_t id;

	call(&c, OP_ENQUEUE, "q");
	c.puts[0].m.keep = SLU_HOUR;
	CHECK_EQ(0, run(&c));
	id = c.puts[0].m.id;
	reroute(2, "new", "old");
	call(&waits, OP_RESULT, "q");
	waits.op.id = id;
	waits.op.wait = 20 * SLU_SEC;
	post(&waits);
	pass(2 * SLU_SEC);
	CHECK_EQ(0, waits.done);
	CHECK_EQ(id, claim(&c, "q"));
	CHECK_EQ(0, settle(&c, OP_ACK, id, c.rows[0].token));
	CHECK_EQ(0, rc_of(&waits));
	op_unpin(&waits.op);
}

/* ---- The whole queue ---- */

TEST(a_purge_and_a_pause_are_for_both)
{
	static struct op_call c;

	push("q");
	reroute(2, "new", "old");
	push("q");
	call(&c, OP_PAUSE, "q");
	c.op.policy.paused = true;
	CHECK_EQ(0, run(&c));
	CHECK_EQ(0, claim(&c, "q"));
	CHECK_EQ(0, run(call(&c, OP_PURGE, "q")));
	CHECK_EQ(2, c.op.count);
	CHECK_EQ(0, count_at(OLD, "q", MSG_READY));
	CHECK_EQ(0, count_at(NEW, "q", MSG_READY));
}

TEST(a_policy_goes_ahead_of_its_queue)
{
	static struct op_call c;

	call(&c, OP_POLICY_SET, "q");
	c.op.policy = policy_default;
	c.op.policy.max_attempts = 3;
	CHECK_EQ(0, run(&c));
	reroute(2, "new", "old");
	push("q");
	CHECK_EQ(0, run_at(call(&c, OP_POLICY_GET, "q"), NEW));
	CHECK_EQ(3, c.op.policy.max_attempts);
	CHECK_EQ(0, run(call(&c, OP_POLICY_GET, "q")));
	CHECK_EQ(3, c.op.policy.max_attempts);
}

/* ---- A batch on its way ---- */

/* MOVE-7, FOLLOW-4 */
TEST(a_key_that_is_set_aside_is_tried_again_until_it_has_moved)
{
	static struct op_call c, taken, waits;

	push_with("q", "k", NULL, 0);
	reroute(2, "new", "old");
	push("q");
	CHECK_EQ(0, run_at(take_step(&taken, MOVE_TAKE), OLD));
	CHECK_EQ(1, taken.op.n_rows);
	op_unpin(&taken.op);
	call(&waits, OP_ENQUEUE, "q");
	waits.puts[0].m.key = SLICE("k");
	post(&waits);
	pass(SLU_SEC);
	CHECK_EQ(0, waits.done);
	take_step(&c, MOVE_UNTAKE)->op.move.batch = taken.op.move.batch;
	CHECK_EQ(0, run_at(&c, OLD));
	pass(SLU_SEC);
	CHECK_EQ(0, rc_of(&waits));
	CHECK_EQ(1, count_at(OLD, "q", MSG_HELD));
}

TEST(a_key_that_stays_set_aside_is_refused_in_the_end)
{
	static struct op_call taken, waits;

	push_with("q", "k", NULL, 0);
	reroute(2, "new", "old");
	push("q");
	CHECK_EQ(0, run_at(take_step(&taken, MOVE_TAKE), OLD));
	op_unpin(&taken.op);
	call(&waits, OP_ENQUEUE, "q");
	waits.puts[0].m.key = SLICE("k");
	post(&waits);
	for (int i = 0; i < 60 && !waits.done; i++)
		pass(100 * SLU_MS);
	CHECK_EQ(SLU_EBUSY, rc_of(&waits));
	CHECK_STR("move", waits.op.err.limit);
}

/* SH-51, SH-52: back to where it was, by a newer map. */
TEST(a_queue_goes_back_by_a_newer_map)
{
	static struct op_call c;
	uint64_t ids[3];

	ids[0] = push("q");
	reroute(2, "new", "old");
	ids[1] = push("q");
	reroute(3, "old", "new");
	ids[2] = push("q");
	CHECK_EQ(2, count_at(OLD, "q", MSG_READY));
	CHECK_STR("", lives(OLD));
	CHECK_STR("old", lives(NEW));
	CHECK_EQ(ids[1], claim(&c, "q"));
	CHECK_EQ(ids[0], claim(&c, "q"));
	CHECK_EQ(ids[2], claim(&c, "q"));
}

/* NULL: there is no memory. */
static struct shardmap *
try_map(void)
{
	static const char *const names[] = { "old", "new" };
	const struct supplier_conf now = { .standard = "new" }, before = { .standard = "old" };
	struct shardmap_conf conf = { .shards = names, .n_shards = 2, .version = 1 };
	struct shardmap *m;

	if (supplier_new(&conf.now, &now, NULL))
		return NULL;
	if (supplier_new(&conf.before, &before, NULL)) {
		supplier_free(conf.now);
		return NULL;
	}
	return shardmap_new(&m, &conf, NULL) ? NULL : m;
}

static int
try(struct op_call *c)
{
	const int rc = broker_post(b, &c->op);

	turn();
	CHECK_EQ(rc ? 0 : 1, c->done);
	op_unpin(&c->op);
	return rc ? rc : c->op.rc;
}

TORTURE(without_memory_an_op_is_refused_and_nothing_is_lost)
{
	struct broker_conf conf = {
		.shards = shards,
		.n_shards = n_shards,
		.map = try_map(),
		.clock = &fake.clock,
		.by_hand = true,
	};
	struct op_call c;
	int rc;

	if (!conf.map)
		return;
	by_hand = true;
	fakeclock_init(&fake, SLU_SEC, SLU_HOUR);
	if (broker_open(&b, &conf, NULL) == 0) {
		rc = try(call(&c, OP_ENQUEUE, "q"));
		CHECK(rc == 0 || rc == SLU_ENOMEM);
		CHECK(try(call(&c, OP_CLAIM, "q")) == 0 || rc == 0 || c.op.rc == SLU_ENOMEM);
		broker_close(b);
	}
	fakeclock_release(&fake);
}
