/*
 * What an engine with a ledger does beside the best message of a queue: it claims one message by its id, makes
 * delayed messages due, shows the next of them and the hold of a queue. The Redis engine refuses all of it.
 */
#include "engine_rig.h"

#include <string.h>

static bool
is_redis(const struct rig *r)
{
	return strcmp(r->row->engine->name, "redis") == 0;
}

static int
claim_named(struct rig *r, uint64_t id)
{
	int rc;

	rig_unpin(r);
	rig_op(&r->op, OP_CLAIM, RIG_SPACE, "q");
	r->op.rows = r->rows;
	r->op.max_rows = 1;
	r->op.claim.id = id;
	rc = rig_do(r, &r->op);
	r->n = r->op.n_rows;
	return rc;
}

static uint32_t
peek_delayed(struct rig *r, uint32_t max)
{
	rig_unpin(r);
	rig_op(&r->op, OP_PEEK, RIG_SPACE, "q");
	r->op.rows = r->rows;
	r->op.max_rows = max;
	r->op.state = MSG_DELAYED;
	CHECK_EQ(0, rig_do(r, &r->op));
	r->n = r->op.n_rows;
	return r->n;
}

static int
make_due(struct rig *r, uint64_t id)
{
	struct op_item item = { .id = id, .delayed = true };

	return rig_item(r, OP_REDRIVE, &item);
}

static int
hold(struct rig *r, slu_time time)
{
	rig_op(&r->op, OP_HOLD, RIG_SPACE, "q");
	r->op.limits.scope = GATE_QUEUE;
	r->op.limits.hold = time;
	return rig_do(r, &r->op);
}

static slu_time
held_for(struct rig *r)
{
	rig_op(&r->op, OP_STATS, RIG_SPACE, "q");
	r->op.queues = r->queues;
	CHECK_EQ(0, rig_do(r, &r->op));
	return r->queues[0].held ? r->queues[0].held - r->now : 0;
}

CASE(a_claim_by_id_leases_one_message_in_any_state_but_leased)
{
	const uint64_t first = rig_put(r, "q", NULL), second = rig_put(r, "q", NULL);
	const uint64_t late = rig_put(r, "q", &(struct rig_msg){ .delay = SLU_HOUR });
	uint64_t dead;

	if (is_redis(r)) {
		CHECK_EQ(SLU_EINVAL, claim_named(r, second));
		return;
	}
	CHECK_EQ(0, claim_named(r, second));
	CHECK_EQ(second, r->rows[0].id);
	CHECK_EQ(1, r->rows[0].attempts);
	CHECK_EQ(SLU_ENOTFOUND, claim_named(r, second), "it is leased");
	CHECK_EQ(0, claim_named(r, late));
	dead = rig_claim_one(r, "q");
	CHECK_EQ(first, dead);
	CHECK_EQ(0, rig_item(r, OP_NACK, &(struct op_item){ .id = dead, .token = r->rows[0].token, .dead = true }));
	CHECK_EQ(0, claim_named(r, dead));
	CHECK_EQ(dead, r->rows[0].id);
	CHECK_EQ(3, rig_count(r, "q", MSG_LEASED));
	rig_reopen(r);
	CHECK_EQ(3, rig_count(r, "q", MSG_LEASED));
	CHECK_EQ(SLU_ENOTFOUND, claim_named(r, 12345));
}

CASE(a_claim_by_id_finds_nothing_in_a_held_queue)
{
	const uint64_t id = rig_put(r, "q", NULL);

	if (is_redis(r))
		return;
	CHECK_EQ(0, hold(r, SLU_MIN));
	CHECK_EQ(SLU_ENOTFOUND, claim_named(r, id));
	CHECK_EQ(0, hold(r, 0));
	CHECK_EQ(0, claim_named(r, id));
	rig_unpin(r);
}

CASE(delayed_messages_are_shown_in_the_order_in_which_they_fall_due)
{
	const uint64_t third = rig_put(r, "q", &(struct rig_msg){ .delay = 3 * SLU_SEC });
	const uint64_t first = rig_put(r, "q", &(struct rig_msg){ .delay = SLU_SEC });
	const uint64_t second = rig_put(r, "q", &(struct rig_msg){ .delay = 2 * SLU_SEC });

	rig_put(r, "q", NULL);
	if (is_redis(r))
		return;
	CHECK_EQ(3, peek_delayed(r, 10));
	CHECK_EQ(first, r->rows[0].id);
	CHECK_EQ(second, r->rows[1].id);
	CHECK_EQ(third, r->rows[2].id);
	rig_unpin(r);
	CHECK_EQ(1, peek_delayed(r, 1));
	rig_unpin(r);
}

CASE(a_delayed_message_without_a_key_is_made_due)
{
	const uint64_t late = rig_put(r, "q", &(struct rig_msg){ .delay = SLU_HOUR });
	const uint64_t keyed = rig_put(r, "q", &(struct rig_msg){ .delay = SLU_HOUR, .key = "k" });
	const uint64_t ready = rig_put(r, "q", NULL);

	if (is_redis(r))
		return;
	CHECK_EQ(SLU_ENOTFOUND, rig_settle_one(r, OP_REDRIVE, late, 0), "it is not dead");
	rig_woken(r);
	CHECK_EQ(0, make_due(r, late));
	CHECK_STR("q", rig_woken(r));
	CHECK_EQ(SLU_ENOTFOUND, make_due(r, keyed), "its key has an order");
	CHECK_EQ(SLU_ENOTFOUND, make_due(r, ready));
	rig_reopen(r);
	CHECK_EQ(2, rig_claim(r, "q", 10));
	CHECK_EQ(ready, r->rows[0].id);
	CHECK_EQ(late, r->rows[1].id, "behind its equals");
}

CASE(a_delayed_retry_keeps_its_failures)
{
	const uint64_t id = rig_put(r, "q", &(struct rig_msg){ .max_attempts = 2 });

	if (is_redis(r))
		return;
	rig_claim_one(r, "q");
	CHECK_EQ(0, rig_item(r, OP_NACK, &(struct op_item){ .id = id, .token = r->rows[0].token, .time = SLU_HOUR }));
	CHECK_EQ(0, make_due(r, id));
	CHECK_EQ(id, rig_claim_one(r, "q"));
	CHECK_EQ(1, r->rows[0].failures);
}

CASE(the_counts_of_a_queue_show_its_hold)
{
	rig_put(r, "q", NULL);
	if (is_redis(r))
		return;
	CHECK_EQ(0, held_for(r));
	CHECK_EQ(0, hold(r, SLU_MIN));
	CHECK_EQ(SLU_MIN, held_for(r));
	rig_reopen(r);
	CHECK_EQ(SLU_MIN, held_for(r));
	CHECK_EQ(0, hold(r, 0));
	CHECK_EQ(0, held_for(r));
}
