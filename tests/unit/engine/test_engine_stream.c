/*
 * test_engine_stream.c - what a claim of a stream gets, what goes back when the stream ends, and
 * the owner of a lease.
 */
#include "engine_rig.h"

#include "core/queue/shun.h"

/* Claims for a stream; the id, or 0. */
static uint64_t
claim_by(struct rig *r, uint64_t stream_no)
{
	rig_unpin(r);
	rig_op(&r->op, OP_CLAIM, RIG_SPACE, "q");
	r->op.claim.stream = stream_no;
	r->op.claim.credit = 10;
	r->op.rows = r->rows;
	r->op.max_rows = 1;
	CHECK_EQ(0, rig_do(r, &r->op));
	r->n = r->op.n_rows;
	return r->n ? r->rows[0].id : 0;
}

static void
fail(struct rig *r)
{
	struct op_item item = { .id = r->rows[0].id, .token = r->rows[0].token };

	CHECK_EQ(0, rig_item(r, OP_NACK, &item));
}

/* The stream of the last claim ends. Is the message given back? */
static bool
end_stream(struct rig *r)
{
	struct op op;

	rig_op(&op, OP_RETURN, RIG_SPACE, "q");
	op.rows = r->rows;
	op.n_rows = 1;
	op.claim.spare = 1;
	CHECK_EQ(0, rig_do(r, &op));
	return r->rows[0].state == MSG_READY;
}

CASE(a_stream_that_ends_gives_its_newest_message_back_once)
{
	const uint64_t id = rig_put(r, "q", NULL);

	CHECK_EQ(id, claim_by(r, 1));
	CHECK(end_stream(r));
	CHECK_EQ(0, rig_get(r, id));
	CHECK_EQ(0, r->rows[0].attempts);
	CHECK_EQ(MSG_READY, r->rows[0].state);
	CHECK_EQ(id, claim_by(r, 2));
	CHECK(!end_stream(r));
	rig_pass(r, policy_default.lease);
	CHECK_EQ(id, claim_by(r, 3));
	CHECK_EQ(1, r->rows[0].failures);
	CHECK(!end_stream(r));
	fail(r);
	rig_pass(r, SHUN_TIME);
	CHECK_EQ(id, claim_by(r, 3));
	CHECK(end_stream(r));
}

CASE(a_message_that_was_extended_is_not_given_back)
{
	struct op_item item = { .time = SLU_MIN };

	rig_put(r, "q", NULL);
	claim_by(r, 1);
	item.id = r->rows[0].id;
	item.token = r->rows[0].token;
	CHECK_EQ(0, rig_item(r, OP_EXTEND, &item));
	CHECK(!end_stream(r));
	CHECK_EQ(0, rig_settle_one(r, OP_ACK, item.id, item.token));
}

CASE(a_message_that_its_stream_had_for_more_than_a_second_is_not_given_back)
{
	rig_put(r, "q", NULL);
	claim_by(r, 1);
	rig_pass(r, LEDGER_SPARE_TIME + SLU_MS);
	CHECK(!end_stream(r));
	CHECK_EQ(0u, rig_claim(r, "q", 1));
}

/* Or a poison message would live for ever on a server that is restarted often. */
CASE(that_a_message_was_given_back_is_known_after_a_restart)
{
	uint64_t id;

	if (!r->row->engine->durable)
		return;
	id = rig_put(r, "q", NULL);
	claim_by(r, 1);
	CHECK(end_stream(r));
	rig_reopen(r);
	CHECK_EQ(id, claim_by(r, 1));
	CHECK_EQ(1, r->rows[0].attempts);
	CHECK(!end_stream(r));
}

CASE(a_stream_passes_over_what_it_has_just_failed)
{
	static const struct rig_msg second = { .prio = 1 };
	const uint64_t id = rig_put(r, "q", NULL), other = rig_put(r, "q", &second);

	CHECK_EQ(id, claim_by(r, 1));
	fail(r);
	CHECK_EQ(other, claim_by(r, 1));
	CHECK_EQ(0, claim_by(r, 1));
	CHECK_EQ(1u, r->op.claim.passed);
	CHECK_EQ(r->now + SHUN_TIME, r->op.claim.again);
	CHECK_EQ(id, claim_by(r, 2));
	CHECK_EQ(0u, r->op.claim.passed);
	fail(r);
	rig_pass(r, SHUN_TIME);
	CHECK_EQ(id, claim_by(r, 1));
}

/* ---- Owners ---- */

static void
claim_as(struct rig *r, const char *name, uint32_t n)
{
	rig_unpin(r);
	rig_op(&r->op, OP_CLAIM, RIG_SPACE, "q");
	r->op.claim.holder = slice_of(name);
	r->op.rows = r->rows;
	r->op.max_rows = n;
	CHECK_EQ(0, rig_do(r, &r->op));
	r->n = r->op.n_rows;
	CHECK_EQ(n, r->n);
}

/* Who holds the message, as a get has it. */
static const char *
owner_of(struct rig *r, uint64_t id)
{
	CHECK_EQ(0, rig_get(r, id));
	return r->rows[0].holder ? r->rows[0].holder->p : "";
}

CASE(a_lease_knows_its_owner_until_it_ends)
{
	const uint64_t one = rig_put(r, "q", NULL), two = rig_put(r, "q", NULL);
	uint64_t token;

	CHECK_STR("", owner_of(r, one));
	claim_as(r, "web-7:311", 2);
	token = r->rows[0].token;
	CHECK_STR("web-7:311", owner_of(r, one));
	CHECK_EQ(2u, rig_list(r, "q", MSG_LEASED, 10));
	CHECK_STR("web-7:311", r->rows[1].holder->p);
	CHECK_EQ(0, rig_settle_one(r, OP_NACK, one, token));
	CHECK_STR("", owner_of(r, one));
	claim_as(r, "web-8:5", 1);
	CHECK_STR("web-8:5", owner_of(r, one));
	CHECK_STR("web-7:311", owner_of(r, two));
	rig_pass(r, policy_default.lease);
	CHECK_STR("", owner_of(r, two));
	claim_as(r, "", 2);
	CHECK_STR("", owner_of(r, one));
}

CASE(an_owner_is_known_after_a_restart)
{
	uint64_t id;

	if (!r->row->engine->durable)
		return;
	id = rig_put(r, "q", NULL);
	claim_as(r, "web-7:311", 1);
	rig_reopen(r);
	CHECK_STR("web-7:311", owner_of(r, id));
}
