/*
 * clerk_claim.c - messages are handed out: decide, keep, apply, until the op has enough.
 */
#include "engine/clerk_in.h"

static uint64_t
bytes_of(const struct op_row *row)
{
	return (uint64_t)row->record.size + row->payload.size;
}

/* The message of c, which is ready, fits into what the op may still take. */
static bool
fits(const struct op *op, const struct op_row *row)
{
	return op->n_rows == 0 || !op->max_bytes ||
	       op->bytes + bytes_of(row) <= op->max_bytes;
}

/* Say who takes it. A call names one owner: it is looked up with the first message. */
static int
name_taker(struct clerk *k, const struct op *op, struct change *c)
{
	int rc = 0;

	if (op->taker.n && k->taker == OWNER_NONE)
		rc = ledger_owner_open(k->ledger, op->taker, &k->taker);
	c->owner = k->taker;
	return rc;
}

/* Hand out what c says. False: the op has enough. */
static int
grant(struct clerk *k, struct op *op, struct change *c, bool *more, struct slu_err *err)
{
	struct op_row *row = &op->rows[op->n_rows];
	int rc;

	rc = clerk_row(k, c->msg, false, row, err);
	if (rc)
		return rc;
	*more = fits(op, row);
	if (*more)
		rc = name_taker(k, op, c);
	if (*more && !rc)
		rc = clerk_carry_out(k, c, (struct slice){ 0 }, err);
	if (rc || !*more) {
		clerk_unpin_row(k, row);
		return rc;
	}
	meter_time(&k->meter, METER_MESSAGE_WAIT, c->at - row->due);
	row->state = MSG_LEASED;
	row->token = c->token;
	row->until = c->until;
	row->claimed = c->at;
	row->attempts += row->attempts < UINT16_MAX;
	if (op->stateful)
		clerk_tell_state(k, row);
	op->bytes += bytes_of(row);
	op->n_rows++;
	return 0;
}

/* One message handed out, or found dead. */
static int
claim_one(struct clerk *k, struct op *op, uint32_t queue, bool *more, struct slu_err *err)
{
	const struct ledger_taker taker = {
		.lease = op->lease < POLICY_LEASE_MAX ? op->lease : POLICY_LEASE_MAX,
		.flow = (uint32_t)op->flow,
	};
	struct ledger_passed passed;
	struct change c;
	int rc;

	*more = false;
	rc = ledger_claim_for(k->ledger, queue, &taker, k->now, &c, &passed);
	op->passed = passed.n;
	op->again = passed.until;
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
	return clerk_carry_out(k, &c, (struct slice){ 0 }, err);
}

void
clerk_claim(struct clerk *k, struct op *op)
{
	const uint32_t queue = clerk_queue(k, op);
	struct slu_err err = { 0 };
	bool more = queue != SLAB_NONE;
	int rc = 0;

	op->n_rows = 0;
	op->passed = 0;
	op->bytes = 0;
	while (more && op->n_rows < op->max_rows) {
		rc = claim_one(k, op, queue, &more, &err);
		if (rc)
			break;
	}
	ledger_owner_close(k->ledger, k->taker);
	k->taker = OWNER_NONE;
	if (rc && op->n_rows == 0)
		op_fail(op, rc, &err);
}
