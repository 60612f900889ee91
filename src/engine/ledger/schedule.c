/*
 * schedule.c - OP_SCHEDULE: a schedule and the messages that it begins, in one step.
 *
 *      message of the schedule, number 7        put: the schedule with its new state
 *      the op has read number 7      ───────>   put: the message that begins now
 *                                               the old message of the schedule is gone
 *
 * A schedule has two ids, which differ in the last bit, and uses them in turn: the puts come first, because they can be
 * undone, and the old message is still there. All records are in one group.
 */
#include "engine/ledger/ledgerengine_private.h"

/* The message of the schedule in this queue, or SLAB_NONE. */
static uint32_t
find_old(const struct ledgerengine *k, struct ledger_ref *ref, uint64_t id, struct ledger_view *v)
{
	for (unsigned i = 0; i < 2; i++) {
		const uint32_t msg = ledger_find(k->ledger, ref->space, id ^ i);

		if (msg == SLAB_NONE)
			continue;
		ledger_get(k->ledger, msg, v);
		if (v->queue != ref->queue)
			continue;
		ref->id = v->id;
		return msg;
	}
	return SLAB_NONE;
}

/* Whether the schedule is as the maker of the op has read it. */
static int
check_number(const struct ledgerengine *k, const struct op *op, struct ledger_ref *ref)
{
	const struct op_item *const item = op->items;
	struct ledger_view v;
	uint32_t old = SLAB_NONE;

	if (ref->space != SLAB_NONE && ref->queue != SLAB_NONE)
		old = find_old(k, ref, item->id, &v);
	if (old == SLAB_NONE)
		return item->number ? SLU_ENOTFOUND : 0;
	return item->number == v.number ? 0 : SLU_ECONFLICT;
}

static int
put_new(struct ledgerengine *k, struct op *op, uint64_t old, struct slu_err *err)
{
	const struct op_item *const item = op->items;
	int rc;

	if (!item->remove)
		op->puts->m.id = old ? old ^ 1 : item->id;
	if (!item->remove && ledger_find_any(k->ledger, op->puts->m.id) != SLAB_NONE)
		return slu_fail(err, SLU_EEXISTS, "another message has the id of the schedule; expected another name");
	rc = ledgerengine_put_all(k, op, true, err);
	if (rc != SLU_EMOVED)
		return rc;
	if (op->failed == 0 && !item->remove)
		return SLU_ENOTFOUND; /* the schedules live on another shard: MOVE-4 */
	return slu_fail(err, SLU_ETOGETHER, "queue %.*s is not on the shard of the schedule; nothing was done",
			(int)op->puts[op->failed].m.queue.n, op->puts[op->failed].m.queue.p);
}

static int
remove_old(struct ledgerengine *k, const struct ledger_ref *ref)
{
	struct change c;
	const int rc = ledger_delete(k->ledger, ref, k->now, &c);

	return rc ? rc : ledgerengine_carry_out(k, &c, (struct slice){ 0 }, NULL);
}

void
ledgerengine_schedule(struct ledgerengine *k, struct op *op)
{
	struct ledger_ref ref = {
		.space = ledger_space_find(k->ledger, op->space),
		.queue = ledgerengine_queue(k, op),
		.epoch = op->home.epoch,
	};
	struct slu_err err = { 0 };
	int rc = check_number(k, op, &ref);

	if (!rc)
		rc = put_new(k, op, ref.id, &err);
	if (!rc && ref.id) {
		rc = remove_old(k, &ref);
		if (rc)
			ledgerengine_put_undo(k, op, op->n_puts);
	}
	op->items->rc = rc;
	if (rc)
		op_fail(op, rc, &err);
}
