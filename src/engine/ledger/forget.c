/*
 * forget.c - OP_FORGET, and queues that are forgotten because they are idle.
 */
#include "engine/ledger/ledgerengine_private.h"

#include "base/log.h"

/* ENGINE-3: changes of one run for a queue that is being emptied. */
enum {
	CLEAR_MAX = 1000
};

static uint64_t
messages_of(const struct ledgerengine *k, uint32_t queue)
{
	struct ledger_queue_view v;
	uint64_t n = 0;

	ledger_queue_get(k->ledger, queue, &v);
	for (enum msg_state s = MSG_READY; s < MSG_STATES; s++)
		n += v.count[s];
	return n;
}

/* Removes some of its messages; op->count says how many. */
static int
clear(struct ledgerengine *k, struct op *op, uint32_t queue, struct slu_err *err)
{
	const uint64_t before = messages_of(k, queue);
	int rc = 0;

	for (int i = 0; i < CLEAR_MAX && !rc; i++) {
		struct change c;

		rc = ledger_queue_clear(k->ledger, queue, k->now, &c);
		if (rc || c.kind == CHANGE_NONE)
			break;
		rc = ledgerengine_carry_out(k, &c, (struct slice){ 0 }, err);
	}
	op->count = before - messages_of(k, queue);
	return rc;
}

static int
explain(const struct ledgerengine *k, const struct op *op, uint32_t queue, int rc, struct slu_err *err)
{
	if (rc == SLU_ENOTEMPTY)
		return op_fail_not_empty(op, messages_of(k, queue), err);
	return rc == SLU_ECONFLICT ? op_fail_moved(op, err) : rc;
}

void
ledgerengine_forget(struct ledgerengine *k, struct op *op)
{
	const uint32_t queue = ledgerengine_queue(k, op);
	struct slu_err err = { 0 };
	struct change c;
	int rc;

	op->count = 0;
	op->cursor = 0;
	if (queue == SLAB_NONE) {
		op_fail(op, SLU_ENOTFOUND, NULL);
		return;
	}
	rc = op->force ? clear(k, op, queue, &err) : 0;
	if (!rc)
		rc = ledger_queue_forget(k->ledger, queue, k->now, &c);
	rc = rc ? explain(k, op, queue, rc, &err)
		: ledgerengine_carry_out(k, &c, (struct slice){ 0 }, &err);
	if (rc == SLU_EBUSY || (rc == SLU_ENOTEMPTY && op->force) || (rc && op->count))
		op->cursor = 1; /* OP-3: some are gone; the next call fails */
	else if (rc)
		op_fail(op, rc, &err);
}

bool
ledgerengine_may_forget(struct ledgerengine *k, uint32_t queue)
{
	struct ledger_queue_view v;

	ledger_queue_get(k->ledger, queue, &v);
	if (k->waited_for && k->waited_for(k->ready_arg, slice_of(v.space_name), slice_of(v.name))) {
		ledger_queue_use(k->ledger, queue, k->now);
		return false;
	}
	log_info(k->log, "queue forgotten", F_STR("namespace", v.space_name),
		 F_STR("queue", v.name));
	return true;
}
