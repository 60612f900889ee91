/*
 * claim.c - OP_CLAIM: decide, keep and apply one lease after the other, until the op has enough.
 */
#include "engine/ledger/ledgerengine_private.h"

#include "core/ledger/ahead.h"
#include "core/ledger/named.h"

static uint64_t
bytes_of(const struct op_row *row)
{
	return (uint64_t)row->record.size + row->payload.size + row->checkpoint.size;
}

/* Returns true if the op may take the message of c, which is ready, by its bytes. */
static bool
fits(const struct op *op, const struct op_row *row)
{
	return op->n_rows == 0 || !op->claim.max_bytes ||
	       op->route.bytes + bytes_of(row) <= op->claim.max_bytes;
}

/* Sets the holder of the lease. An op names one holder: the first message looks it up. */
static int
name_taker(struct ledgerengine *k, const struct op *op, struct change *c)
{
	int rc = 0;

	if (op->claim.holder.n && k->holder == HOLDER_NONE)
		rc = ledger_holder_open(k->ledger, op->claim.holder, &k->holder);
	c->holder = k->holder;
	return rc;
}

/* Leases the message of c. Returns false if the op has enough. */
static int
grant(struct ledgerengine *k, struct op *op, struct change *c, bool *more, struct slu_err *err)
{
	struct op_row *row = &op->rows[op->n_rows];
	int rc;

	rc = ledgerengine_row(k, c->msg, false, row, err);
	if (rc)
		return rc;
	rc = ledgerengine_show_state(k, row, err);
	*more = !rc && fits(op, row);
	if (*more)
		rc = name_taker(k, op, c);
	if (*more && !rc)
		rc = ledgerengine_carry_out(k, c, (struct slice){ 0 }, err);
	if (rc || !*more) {
		op_unpin_row(k->engine, row);
		return rc;
	}
	meter_time(&k->meter, METER_MESSAGE_WAIT, c->at - row->due);
	row->state = MSG_LEASED;
	row->token = c->token;
	row->until = c->until;
	row->claimed = c->at;
	row->attempts += row->attempts < UINT16_MAX;
	if (op->claim.stateful)
		ledgerengine_tell_state(k, row);
	op->route.bytes += bytes_of(row);
	op->n_rows++;
	return 0;
}

/* Leases one message, or moves a message that is out of attempts to the dead letters. */
static int
claim_one(struct ledgerengine *k, struct op *op, uint32_t queue, bool *more, struct slu_err *err)
{
	const struct ledger_taker taker = {
		.lease = op->claim.lease < POLICY_LEASE_MAX ? op->claim.lease : POLICY_LEASE_MAX,
		.stream_no = (uint32_t)op->claim.stream,
		.kinds = op->claim.kinds,
	};
	struct ledger_passed passed;
	struct change c;
	int rc;

	*more = false;
	rc = ledger_claim_for(k->ledger, queue, &taker, k->now, &c, &passed);
	op->claim.passed = passed.n;
	op->claim.again = passed.until;
	if (rc || c.kind == CHANGE_NONE)
		return rc;
	if (c.kind == CHANGE_CLAIM)
		return grant(k, op, &c, more, err);
	if (k->budget == 0) {
		k->cut_short = queue;
		return 0;
	}
	k->budget--;
	*more = true;
	return ledgerengine_carry_out(k, &c, (struct slice){ 0 }, err);
}

/* CLAIM of one message: a delayed or dead one is made ready first, in the same group. */
static int
make_ready(struct ledgerengine *k, const struct op *op, uint32_t queue, struct slu_err *err)
{
	const struct ledger_ref ref = {
		.space = ledger_queue_space(k->ledger, queue),
		.queue = queue,
		.id = op->claim.id,
		.epoch = op->home.epoch,
		.apart = op->home.formers,
		.delayed = true,
	};
	struct change c;
	const int rc = ledger_redrive(k->ledger, &ref, k->now, &c);

	return rc ? rc : ledgerengine_carry_out(k, &c, (struct slice){ 0 }, err);
}

/* Leases the message op->claim.id of the queue. SLU_ENOTFOUND: it is not ready, delayed or dead, or its queue is
 * paused or held. */
static int
claim_named(struct ledgerengine *k, struct op *op, uint32_t queue, struct slu_err *err)
{
	const uint32_t msg = ledger_find(k->ledger, ledger_queue_space(k->ledger, queue), op->claim.id);
	const slu_time lease = op->claim.lease < POLICY_LEASE_MAX ? op->claim.lease : POLICY_LEASE_MAX;
	struct ledger_view v;
	struct change c;
	bool more;
	int rc = 0;

	if (msg == SLAB_NONE)
		return SLU_ENOTFOUND;
	ledger_get(k->ledger, msg, &v);
	if (v.queue != queue || v.taken)
		return SLU_ENOTFOUND;
	if (v.state == MSG_DELAYED || v.state == MSG_DEAD)
		rc = make_ready(k, op, queue, err);
	if (!rc)
		rc = ledger_claim_one(k->ledger, msg, lease, k->now, &c);
	if (rc)
		return rc;
	if (c.kind == CHANGE_CLAIM)
		return grant(k, op, &c, &more, err);
	if (c.kind == CHANGE_DIE)
		rc = ledgerengine_carry_out(k, &c, (struct slice){ 0 }, err);
	return rc ? rc : SLU_ENOTFOUND;
}

void
ledgerengine_claim(struct ledgerengine *k, struct op *op)
{
	const uint32_t queue = ledgerengine_queue(k, op);
	struct slu_err err;
	bool more = queue != SLAB_NONE;
	int rc = 0;

	no_err(&err);
	op->n_rows = 0;
	op->claim.passed = 0;
	op->route.bytes = 0;
	if (op->claim.id) {
		rc = more ? claim_named(k, op, queue, &err) : SLU_ENOTFOUND;
		more = false;
	}
	while (more && op->n_rows < op->max_rows) {
		ledger_ahead_claim(k->ledger, queue);
		rc = claim_one(k, op, queue, &more, &err);
		if (rc)
			break;
	}
	ledger_holder_close(k->ledger, k->holder);
	k->holder = HOLDER_NONE;
	if (rc && op->n_rows == 0)
		op_fail(op, rc, &err);
	if (op->n_rows > 0 && k->ops->claimed)
		k->ops->claimed(k, queue);
}
