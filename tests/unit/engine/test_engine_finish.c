/*
 * OP_FINISH, OP_WHY and OP_TREND on every engine that has a ledger. The Redis engine refuses them.
 */
#include "engine_rig.h"

#include <string.h>

static bool
is_redis(const struct rig *r)
{
	return strcmp(r->row->engine->name, "redis") == 0;
}

/* Acks or nacks the message with n children in the queues a and b. */
static int
finish(struct rig *r, struct op_item item, struct op_put *puts, uint32_t n)
{
	static struct op_item one;

	one = item;
	rig_op(&r->op, OP_FINISH, RIG_SPACE, "q");
	for (uint32_t i = 0; i < n; i++) {
		puts[i].m.id = r->next_id++;
		puts[i].m.queue = i % 2 ? SLICE("b") : SLICE("a");
	}
	r->op.items = &one;
	r->op.n_items = 1;
	r->op.puts = puts;
	r->op.n_puts = n;
	return rig_do(r, &r->op);
}

static struct op_item
claimed(struct rig *r)
{
	CHECK_EQ(1, rig_claim(r, "q", 1));
	return (struct op_item){ .id = r->rows[0].id, .token = r->rows[0].token };
}

CASE(a_message_ends_and_others_begin_in_one_step)
{
	struct op_put puts[3] = { 0 };
	char text[16];
	uint64_t id;

	id = rig_put(r, "q", &(struct rig_msg){ .keep = SLU_MIN });
	struct op_item item = claimed(r);

	item.text = SLICE("7");
	if (is_redis(r)) {
		CHECK_EQ(SLU_EINVAL, finish(r, item, puts, 3));
		CHECK_EQ(0, rig_settle_one(r, OP_ACK, item.id, item.token));
		return;
	}
	CHECK_EQ(0, finish(r, item, puts, 3));
	CHECK_EQ(0, rig_result(r, id, text, sizeof text));
	CHECK_STR("7", text);
	rig_reopen(r);
	CHECK_EQ(SLU_ENOTFOUND, rig_get(r, id));
	CHECK_EQ(2, rig_count(r, "a", MSG_READY));
	CHECK_EQ(1, rig_count(r, "b", MSG_READY));
}

CASE(a_nack_with_children_keeps_the_message)
{
	struct op_put puts[1] = { 0 };

	if (is_redis(r))
		return;
	rig_put(r, "q", NULL);
	struct op_item item = claimed(r);

	item.nack = true;
	CHECK_EQ(0, finish(r, item, puts, 1));
	rig_reopen(r);
	CHECK_EQ(1, rig_count(r, "a", MSG_READY));
	CHECK_EQ(0, rig_count(r, "q", MSG_LEASED));
	CHECK_EQ(1, rig_count(r, "q", MSG_READY));
}

CASE(without_the_lease_nothing_happens)
{
	struct op_put puts[2] = { 0 };

	if (is_redis(r))
		return;
	rig_put(r, "q", NULL);
	struct op_item item = claimed(r);

	item.token++;
	CHECK_EQ(SLU_ELEASE, finish(r, item, puts, 2));
	item.id++;
	CHECK_EQ(SLU_ENOTFOUND, finish(r, item, puts, 2));
	rig_reopen(r);
	CHECK_EQ(0, rig_count(r, "a", MSG_READY));
	CHECK_EQ(1, rig_count(r, "q", MSG_LEASED));
}

/* OP-4: a child that is refused undoes the others, and the message stays leased. */
CASE(a_child_that_is_refused_undoes_all)
{
	static char long_key[MESSAGE_KEY_MAX + 1];
	struct op_put puts[3] = { 0 };

	if (is_redis(r))
		return;
	rig_put(r, "q", NULL);
	const struct op_item item = claimed(r);

	memset(long_key, 'k', sizeof long_key);
	puts[2].m.key = (struct slice){ long_key, sizeof long_key };
	CHECK_EQ(SLU_ETOOBIG, finish(r, item, puts, 3));
	rig_reopen(r);
	CHECK_EQ(0, rig_count(r, "a", MSG_READY));
	CHECK_EQ(0, rig_count(r, "b", MSG_READY));
	CHECK_EQ(0, rig_settle_one(r, OP_ACK, item.id, item.token), "the lease is as before");
}

CASE(a_message_is_removed_and_another_begins)
{
	struct op_put puts[1] = { 0 };
	uint64_t id;

	if (is_redis(r))
		return;
	id = rig_put(r, "q", NULL);
	CHECK_EQ(0, finish(r, (struct op_item){ .id = id, .remove = true }, puts, 1));
	CHECK_EQ(SLU_ENOTFOUND, finish(r, (struct op_item){ .id = id, .remove = true }, puts, 1));
	rig_reopen(r);
	CHECK_EQ(0, rig_count(r, "q", MSG_READY));
	CHECK_EQ(1, rig_count(r, "a", MSG_READY));
}

CASE(messages_begin_in_one_step_without_another)
{
	struct op_put puts[2] = { { .m = { .queue = SLICE("a") } }, { .m = { .queue = SLICE("b") } } };

	if (is_redis(r))
		return;
	rig_op(&r->op, OP_FINISH, RIG_SPACE, "a");
	puts[0].m.id = r->next_id++;
	puts[1].m.id = r->next_id++;
	r->op.puts = puts;
	r->op.n_puts = 2;
	CHECK_EQ(0, rig_do(r, &r->op));
	CHECK_EQ(1, rig_count(r, "a", MSG_READY));
	CHECK_EQ(1, rig_count(r, "b", MSG_READY));
}

CASE(why_says_the_reasons_and_the_queue)
{
	struct op_row rows[OP_WHY_ROWS];
	struct op_queue queue;
	struct op op;
	uint64_t first, second;

	first = rig_put(r, "q", &(struct rig_msg){ .key = "k" });
	second = rig_put(r, "q", &(struct rig_msg){ .key = "k" });
	(void)claimed(r);
	rig_op(&op, OP_WHY, RIG_SPACE, "");
	op.id = second;
	op.rows = rows;
	op.max_rows = OP_WHY_ROWS;
	op.queues = &queue;
	op.max_queues = 1;
	if (is_redis(r)) {
		CHECK_EQ(SLU_EINVAL, rig_do(r, &op));
		return;
	}
	CHECK_EQ(0, rig_do(r, &op));
	CHECK_STR("q", queue.name);
	CHECK_EQ(WHY_BEHIND, op.why.facts[0].why);
	CHECK_EQ(first, op.why.facts[0].id);
	CHECK_EQ(2, op.n_rows);
	CHECK_EQ(second, rows[0].id);
	CHECK_EQ(MSG_LEASED, rows[1].state);
	op.queue = SLICE("other");
	CHECK_EQ(SLU_ENOTFOUND, rig_do(r, &op));
}

CASE(a_trend_needs_a_queue_that_exists_and_a_limit_above_0)
{
	struct trend_row steps[2];
	struct op op;

	(void)rig_put(r, "q", &(struct rig_msg){ 0 });
	rig_op(&op, OP_TREND, RIG_SPACE, "q");
	op.steps = steps;
	op.max_steps = 2;
	if (is_redis(r)) {
		CHECK_EQ(SLU_EINVAL, rig_do(r, &op));
		return;
	}
	CHECK_EQ(0, rig_do(r, &op));
	CHECK_EQ(0, op.n_steps, "the rig has no limit, so nothing is kept");
	op.queue = SLICE("other");
	CHECK_EQ(SLU_ENOTFOUND, rig_do(r, &op));
	op.queue = SLICE("q");
	op.max_steps = 61;
	CHECK_EQ(SLU_EINVAL, rig_do(r, &op));
}
