/*
 * clerk_settle.c - what becomes of messages: decide, keep, apply.
 */
#include "engine/clerk_in.h"

#include "base/limit.h"

enum {
	ERROR_TEXT_MAX = 4096 /* of a nack; what is longer is cut */
};

/* A lease that has ended meanwhile needs no return. */
void
clerk_return(struct clerk *k, struct op *op)
{
	struct ledger_ref ref = {
		.space = ledger_space_find(k->ledger, op->space),
		.queue = SLAB_NONE,
	};

	for (uint32_t i = 0; i < op->n_rows && ref.space != SLAB_NONE; i++) {
		struct change c;
		int rc;

		ref.id = op->rows[i].id;
		ref.token = op->rows[i].token;
		rc = op->spare && i == 0 ? ledger_spare(k->ledger, &ref, op->arrived, &c)
					 : ledger_return(k->ledger, &ref, op->arrived, &c);
		op->rows[i].state = MSG_NONE;
		if (!rc && c.kind && !clerk_carry_out(k, &c, (struct slice){ 0 }, NULL))
			op->rows[i].state = MSG_READY;
	}
}

/* ---- Verbs of items ---- */

static int
item_ref(const struct clerk *k, const struct op *op, const struct op_item *it,
	 struct ledger_ref *ref)
{
	const struct slice space = it->space.n ? it->space : op->space;
	const struct slice queue = it->queue.n ? it->queue : op->queue;
	char lives[MOVE_SHARD];

	*ref = (struct ledger_ref){
		.space = ledger_space_find(k->ledger, space),
		.queue = SLAB_NONE,
		.id = it->id,
		.token = it->token,
	};
	if (ref->space == SLAB_NONE)
		return SLU_ENOTFOUND;
	if (queue.n == 0)
		return 0;
	ref->queue = ledger_queue_find(k->ledger, space, queue);
	ref->apart = op->verb == OP_REDRIVE && (op->formers || clerk_is_elsewhere(k, op, ref->queue, lives));
	return ref->queue == SLAB_NONE ? SLU_ENOTFOUND : 0;
}

/* xorshift: only spreads retries. */
static uint64_t
dice(struct clerk *k)
{
	k->random ^= k->random << 13;
	k->random ^= k->random >> 7;
	k->random ^= k->random << 17;
	return k->random;
}

static int
decide_nack(struct clerk *k, const struct op *op, const struct op_item *it,
	    const struct ledger_ref *ref, struct change *c)
{
	const struct ledger_nack nack = {
		.defer = it->defer,
		.dead = it->dead,
		.delay = it->time < 0 ? LEDGER_BY_POLICY : it->time,
		.random = dice(k),
	};

	return ledger_nack(k->ledger, ref, &nack, op->arrived, c);
}

static int
decide(struct clerk *k, const struct op *op, const struct op_item *it,
       const struct ledger_ref *ref, struct change *c)
{
	const slu_time lease = it->time < POLICY_LEASE_MAX ? it->time : POLICY_LEASE_MAX;

	switch (op->verb) {
	case OP_ACK:
		return ledger_ack(k->ledger, ref, op->arrived, c);
	case OP_NACK:
		return decide_nack(k, op, it, ref, c);
	case OP_EXTEND:
		return ledger_extend(k->ledger, ref, lease, op->arrived, c);
	case OP_ASIDE:
		return ledger_aside(k->ledger, ref, op->arrived, c);
	case OP_REDRIVE:
		return ledger_redrive(k->ledger, ref, k->now, c);
	default:
		return ledger_delete(k->ledger, ref, k->now, c);
	}
}

/* What is to be kept beside the change. */
static struct slice
text_of(const struct op *op, const struct op_item *it, const struct change *c)
{
	struct slice text = it->text;

	if (op->verb == OP_ACK)
		return c->keep ? text : (struct slice){ 0 };
	if (op->verb != OP_NACK)
		return (struct slice){ 0 };
	if (text.n > ERROR_TEXT_MAX)
		text.n = ERROR_TEXT_MAX;
	return text;
}

static int
run_item(struct clerk *k, const struct op *op, struct op_item *it)
{
	struct ledger_ref ref;
	struct change c;
	int rc;

	rc = item_ref(k, op, it, &ref);
	if (!rc)
		rc = decide(k, op, it, &ref, &c);
	if (!rc)
		rc = clerk_carry_out(k, &c, text_of(op, it, &c), NULL);
	if (rc)
		return rc;
	if (op->verb == OP_ACK || op->verb == OP_NACK)
		meter_time(&k->meter, METER_PROCESSING, c.at - c.claimed);
	it->died = c.kind == CHANGE_DIE;
	if (op->verb == OP_EXTEND)
		it->until = c.until;
	else
		it->until = it->died || op->verb != OP_NACK ? c.at : c.due;
	return 0;
}

void
clerk_items(struct clerk *k, struct op *op)
{
	for (uint32_t i = 0; i < op->n_items; i++)
		if (!op->items[i].taken) /* V4 of move.h */
			op->items[i].rc = run_item(k, op, &op->items[i]);
}

/* ---- Queues ---- */

void
clerk_purge(struct clerk *k, struct op *op)
{
	const uint32_t queue = clerk_queue(k, op);
	struct ledger_queue_view v;
	struct slu_err err = { 0 };
	struct change c;
	int rc;

	op->count = 0;
	if (queue == SLAB_NONE)
		return;
	ledger_queue_get(k->ledger, queue, &v);
	rc = ledger_purge(k->ledger, queue, k->now, &c);
	if (rc == SLU_ECONFLICT)
		rc = limit_fail(&err, SLU_EBUSY, LIMIT_MOVE, 0, "queue %.*s: it is being moved",
				(int)op->queue.n, op->queue.p);
	if (!rc)
		rc = clerk_carry_out(k, &c, (struct slice){ 0 }, &err);
	if (rc)
		op_fail(op, rc, &err);
	else
		op->count = (uint64_t)v.count[MSG_READY] + v.count[MSG_DELAYED] +
			    v.count[MSG_HELD];
}

static int
set_policy(struct clerk *k, uint32_t queue, const struct policy *policy,
	   struct slu_err *err)
{
	struct change c;
	int rc;

	rc = ledger_set_policy(k->ledger, queue, policy, k->now, &c);
	return rc ? rc : clerk_carry_out(k, &c, (struct slice){ 0 }, err);
}

/* In one step, so that no change of another knob meanwhile is lost. */
void
clerk_pause(struct clerk *k, struct op *op)
{
	const uint32_t queue = clerk_queue(k, op);
	const bool paused = op->policy.paused;
	struct ledger_queue_view v;
	struct slu_err err = { 0 };
	int rc;

	if (queue == SLAB_NONE) {
		op_fail(op, SLU_ENOTFOUND, NULL);
		return;
	}
	ledger_queue_get(k->ledger, queue, &v);
	op->policy = *v.policy;
	op->policy.paused = paused;
	rc = v.policy->paused == paused ? 0 : set_policy(k, queue, &op->policy, &err);
	if (rc)
		op_fail(op, rc, &err);
}

void
clerk_policy_set(struct clerk *k, struct op *op)
{
	struct slu_err err = { 0 };
	uint32_t queue;
	int rc;

	rc = policy_check(&op->policy, &err);
	if (!rc && clerk_queue(k, op) == SLAB_NONE)
		rc = clerk_limit_queue(k, op->space, op->queue, &err);
	if (!rc)
		rc = ledger_queue_open_as(k->ledger, op->space, op->queue, &op->as,
					  &queue);
	if (!rc)
		rc = set_policy(k, queue, &op->policy, &err);
	if (rc)
		op_fail(op, rc, &err);
}
