/*
 * OP_INTAKE: a batch of messages from outside is accepted once, on every engine that has a ledger. The
 * Redis engine refuses.
 */
#include "engine_rig.h"

#include "core/ledger/ledger.h"

#include <string.h>

static bool
is_redis(const struct rig *r)
{
	return strcmp(r->row->engine->name, "redis") == 0;
}

/* A batch of n messages in two queues. */
static int
take_in(struct rig *r, uint8_t source, uint64_t batch, uint32_t n)
{
	static struct op_put puts[4];

	rig_op(&r->op, OP_INTAKE, RIG_SPACE, "");
	for (uint32_t i = 0; i < n; i++)
		puts[i] = (struct op_put){ .m = { .id = r->next_id++, .queue = i % 2 ? SLICE("b") : SLICE("a") } };
	r->op.puts = puts;
	r->op.n_puts = n;
	r->op.intake.source[0] = source;
	r->op.intake.batch = batch;
	return rig_do(r, &r->op);
}

/* The number of messages in the queue. */
static uint32_t
depth(struct rig *r, const char *queue)
{
	struct op_queue found = { 0 };
	struct op op;

	rig_op(&op, OP_STATS, RIG_SPACE, queue);
	op.queues = &found;
	op.max_queues = 1;
	(void)rig_do(r, &op); /* an unknown queue has none */
	return found.count[MSG_READY];
}

static void
check_accepted(struct rig *r, uint8_t source, uint64_t batch, uint32_t n, bool accepted)
{
	CHECK_EQ(0, take_in(r, source, batch, n));
	CHECK_EQ(!accepted, r->op.intake.known);
}

CASE(a_batch_is_accepted_once)
{
	if (is_redis(r)) {
		CHECK_EQ(SLU_EINVAL, take_in(r, 1, 1, 3));
		return;
	}
	check_accepted(r, 1, 7, 3, true);
	CHECK_EQ(7, r->op.intake.last);
	check_accepted(r, 1, 7, 3, false);
	check_accepted(r, 1, 6, 3, false);
	CHECK_EQ(7, r->op.intake.last);
	CHECK_EQ(3, r->op.intake.count);
	CHECK_EQ(2, depth(r, "a"));
	CHECK_EQ(1, depth(r, "b"));
	check_accepted(r, 2, 1, 1, true); /* another source has its own numbers */
	check_accepted(r, 1, 9, 1, true); /* a number may be left out */
	check_accepted(r, 1, 8, 1, false);
	CHECK_EQ(4, depth(r, "a"));
}

CASE(a_restart_does_not_accept_a_batch_again)
{
	if (is_redis(r))
		return;
	check_accepted(r, 1, 7, 3, true);
	rig_reopen(r);
	check_accepted(r, 1, 7, 3, false);
	CHECK_EQ(2, depth(r, "a"));
	check_accepted(r, 1, 8, 1, true);
	rig_reopen(r);
	rig_reopen(r);
	check_accepted(r, 1, 8, 1, false);
	CHECK_EQ(3, depth(r, "a"));
}

CASE(a_batch_without_messages_uses_its_number_up)
{
	if (is_redis(r))
		return;
	check_accepted(r, 1, 3, 0, true);
	rig_reopen(r);
	check_accepted(r, 1, 3, 2, false);
	CHECK_EQ(0, r->op.intake.count);
	CHECK_EQ(0, depth(r, "a"));
}

CASE(a_batch_that_is_refused_leaves_nothing_behind)
{
	struct policy p = policy_default;

	if (is_redis(r))
		return;
	p.max_depth = 1;
	rig_policy(r, "b", &p);
	CHECK(rig_put(r, "b", NULL));
	CHECK_EQ(SLU_EQFULL, take_in(r, 1, 1, 3));
	CHECK_EQ(1, r->op.failed);
	CHECK_EQ(0, r->op.intake.last);
	p.max_depth = 10;
	rig_policy(r, "b", &p);
	check_accepted(r, 1, 1, 3, true);
	CHECK_EQ(2, depth(r, "a"));
	CHECK_EQ(2, depth(r, "b"));
}

/* LEDGER-14 */
CASE(a_shard_remembers_so_many_sources)
{
	if (is_redis(r))
		return;
	for (uint32_t i = 0; i < LEDGER_SOURCES; i++) {
		rig_op(&r->op, OP_INTAKE, RIG_SPACE, "");
		memcpy(r->op.intake.source, &i, sizeof i);
		r->op.intake.source[15] = 1;
		r->op.intake.batch = 1;
		CHECK_EQ(0, rig_do(r, &r->op));
		CHECK(!r->op.intake.known);
		r->now += SLU_SEC;
	}
	CHECK_EQ(SLU_EBUSY, take_in(r, 1, 1, 1));
	CHECK_EQ(0, depth(r, "a"));
	rig_pass(r, LEDGER_SOURCE_IDLE);
	check_accepted(r, 1, 1, 1, true); /* replaces the oldest */
	rig_reopen(r);
	check_accepted(r, 1, 1, 1, false);
	rig_op(&r->op, OP_INTAKE, RIG_SPACE, "");
	r->op.intake.source[0] = 1;
	r->op.intake.source[15] = 1;
	r->op.intake.batch = 1;
	CHECK_EQ(0, rig_do(r, &r->op));
	CHECK(r->op.intake.known); /* the second oldest stays */
}

/* OUTBOX-2 of engine/outbox.h: a batch that was accepted in part is known. */
CASE(an_outbox_sends_a_batch_that_has_grown)
{
	if (is_redis(r))
		return;
	check_accepted(r, 1, 7, 3, true);
	rig_op(&r->op, OP_INTAKE, RIG_SPACE, "");
	r->op.puts = &(struct op_put){ .m = { .queue = SLICE("a") }, .given = r->next_id };
	r->op.puts->m.id = r->next_id++;
	r->op.n_puts = 1;
	r->op.intake.source[0] = 1;
	r->op.intake.first = 6;
	r->op.intake.batch = 9;
	CHECK_EQ(0, rig_do(r, &r->op));
	CHECK(r->op.intake.known);
	CHECK_EQ(7, r->op.intake.last);
	CHECK_EQ(2, depth(r, "a"));
	r->op.intake.first = 8;
	CHECK_EQ(0, rig_do(r, &r->op));
	CHECK(!r->op.intake.known);
	CHECK_EQ(3, depth(r, "a"));
}
