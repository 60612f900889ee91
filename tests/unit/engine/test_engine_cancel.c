/*
 * A message that is canceled while it runs: LEDGER-17. Its holder learns it when it extends the lease, its key is held until
 * the lease ends, and then it is gone. The engine redis refuses to cancel a leased message.
 */
#include "engine_rig.h"

static bool
is_redis(const struct rig *r)
{
	return strcmp(r->row->engine->name, "redis") == 0;
}

static struct op_item
cancel(struct rig *r, uint64_t id)
{
	struct op_item item = { .id = id, .cancel = true };

	CHECK_EQ(is_redis(r) ? SLU_ELEASE : 0, rig_item(r, OP_DELETE, &item));
	CHECK_EQ(!is_redis(r), item.runs);
	return item;
}

/* Claims the first of two messages of a key, cancels it, and checks that it still runs. */
static uint64_t
begin(struct rig *r, uint64_t *second)
{
	const uint64_t first = rig_put(r, "q", &(struct rig_msg){ .key = "k", .idem = "once" });
	struct op_item item = { .id = first };

	*second = rig_put(r, "q", &(struct rig_msg){ .key = "k" });
	CHECK_EQ(first, rig_claim_one(r, "q"));
	item.token = r->rows[0].token;
	item.until = r->rows[0].until;
	CHECK_EQ(item.until, cancel(r, first).until);
	CHECK_EQ(item.until, cancel(r, first).until, "a second time changes nothing");
	rig_reopen(r);
	CHECK_EQ(SLU_ESTOP, rig_item(r, OP_EXTEND, &item));
	CHECK_EQ(0, rig_claim(r, "q", 1), "its key is held");
	CHECK_EQ(0, rig_get(r, first));
	CHECK_EQ(MSG_LEASED, r->rows[0].state);
	CHECK(r->rows[0].flags & MSG_CANCELED);
	return first;
}

/* The message is gone, its idempotency key is remembered, and the next one of its key comes. */
static void
check_gone(struct rig *r, uint64_t first, uint64_t second)
{
	CHECK_EQ(SLU_ENOTFOUND, rig_get(r, first));
	CHECK_EQ(0, rig_count(r, "q", MSG_DEAD));
	CHECK_EQ(second, rig_claim_one(r, "q"));
	CHECK_EQ(first, rig_put(r, "q", &(struct rig_msg){ .idem = "once" }));
}

CASE(a_nack_of_a_canceled_message_ends_it)
{
	struct op_item nack = { .text = SLICE("stopped"), .time = 0 };
	uint64_t second;

	if (is_redis(r))
		return;
	nack.id = begin(r, &second);
	CHECK_EQ(0, rig_item(r, OP_NACK, &nack));
	CHECK(!nack.died);
	rig_reopen(r);
	check_gone(r, nack.id, second);
}

CASE(an_ack_of_a_canceled_message_ends_it)
{
	uint64_t first, second;

	if (is_redis(r))
		return;
	first = begin(r, &second);
	CHECK_EQ(0, rig_settle_one(r, OP_ACK, first, 0));
	check_gone(r, first, second);
}

CASE(the_end_of_the_lease_ends_a_canceled_message)
{
	uint64_t first, second;

	if (is_redis(r))
		return;
	first = begin(r, &second);
	rig_pass(r, SLU_MIN);
	rig_reopen(r);
	check_gone(r, first, second);
}

/* What the consumer did not receive is canceled, too, and does not come back. */
CASE(a_returned_message_that_was_canceled_is_gone)
{
	const uint64_t id = rig_put(r, "q", NULL);

	if (is_redis(r))
		return;
	CHECK_EQ(id, rig_claim_one(r, "q"));
	(void)cancel(r, id);
	rig_return(r);
	CHECK_EQ(SLU_ENOTFOUND, rig_get(r, id));
}

CASE(a_message_that_waits_is_canceled_at_once)
{
	struct op_item item = { .id = rig_put(r, "q", NULL), .cancel = true };

	CHECK_EQ(0, rig_item(r, OP_DELETE, &item));
	CHECK(!item.runs);
	CHECK_EQ(SLU_ENOTFOUND, rig_get(r, item.id));
}

/* Also on an engine that refuses. */
CASE(the_holder_of_a_canceled_message_can_ack_it)
{
	const uint64_t id = rig_put(r, "q", NULL);

	CHECK_EQ(id, rig_claim_one(r, "q"));
	(void)cancel(r, id);
	CHECK_EQ(0, rig_settle_one(r, OP_ACK, id, 0));
}
