/*
 * settle.c - DeleteMessage, ChangeMessageVisibility and their batches.
 *
 *      DeleteMessage              ack
 *      ChangeMessageVisibility    extend; with 0 a nack: the message is ready again, and the delivery has failed
 *
 * A receipt handle whose lease has ended: DeleteMessage succeeds without effect, in a FIFO queue it fails. A
 * message that is gone is deleted.
 */
#include "api/sqs/batch.h"
#include "base/receipt.h"

#include <inttypes.h>

enum {
	SOONER, /* ack, or extend */
	AT_ONCE /* nack */
};

struct settling {
	struct op ops[2];
	struct op_item items[2][SQS_BATCH];
	uint32_t entry[2][SQS_BATCH]; /* of each item */
	uint32_t n[2];
	struct sqs_outcome outcomes[SQS_BATCH];
};

static bool
is_deletion(const struct sqs_call *s)
{
	return s->action->name[0] == 'D';
}

/* --- outcomes ----------------------------------------------------------------- */

static bool
is_lost(int rc)
{
	return rc == SLU_ELEASE || rc == SLU_ENOTFOUND || rc == SLU_ESTOP;
}

/* The code of an item that failed with rc, and its text. */
static enum sqs_code
judge(const struct sqs_call *s, int rc, const char **text)
{
	if (!is_lost(rc)) {
		*text = slu_err_row(rc)->text;
		return sqs_code_of(rc);
	}
	if (!is_deletion(s)) {
		*text = "Value for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change.";
		return rc == SLU_ENOTFOUND ? SQS_BAD_VALUE : SQS_NOT_IN_FLIGHT;
	}
	if (rc == SLU_ENOTFOUND || !sqs_is_fifo(s->queue))
		return SQS_OK;
	*text = "Value for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.";
	return SQS_BAD_VALUE;
}

/* Returns false if it refused the call. */
static bool
take_outcomes(struct apicall *a, struct settling *g, unsigned which)
{
	const struct sqs_call *const s = sqs_of(a);

	for (uint32_t i = 0; i < g->n[which]; i++) {
		const int rc = g->ops[which].rc ? g->ops[which].rc : g->items[which][i].rc;
		const char *text = "";
		const enum sqs_code code = rc ? judge(s, rc, &text) : SQS_OK;

		if (code && !sqs_batch_fail(a, &g->outcomes[g->entry[which][i]], code, text))
			return false;
	}
	return true;
}

static void
answer(struct apicall *a)
{
	struct sqs_call *const s = sqs_of(a);
	struct settling *const g = s->own;
	struct sqs_out o;

	if (!take_outcomes(a, g, SOONER) || !take_outcomes(a, g, AT_ONCE))
		return;
	if (!s->q.batch) {
		sqs_out_nothing(a);
		return;
	}
	sqs_out_begin(&o, a, NULL);
	sqs_batch_ids(&o, s, g->outcomes,
		      is_deletion(s) ? "DeleteMessageBatchResultEntry" : "ChangeMessageVisibilityBatchResultEntry");
	sqs_batch_failed(&o, s, g->outcomes);
	sqs_out_end(&o);
}

/* --- items -------------------------------------------------------------------- */

static enum sqs_code
take_receipt(struct apicall *a, const struct sqs_entry *e, struct op_item *item)
{
	const struct sqs_call *const s = sqs_of(a);
	char room[RECEIPT_TEXT];
	struct receipt r;

	if (!e->has_receipt || receipt_parse(e->receipt, room, &r, NULL) || !slice_eq(r.space, slice_of(s->space)) ||
	    !slice_eq(r.queue, slice_of(s->queue)))
		return SQS_BAD_RECEIPT;
	*item = (struct op_item){ .id = r.id, .token = r.token };
	return SQS_OK;
}

static enum sqs_code
take_time(const struct sqs_call *s, const struct sqs_entry *e, struct op_item *item)
{
	if (is_deletion(s))
		return SQS_OK;
	if (e->visibility == SQS_NOT_GIVEN)
		return SQS_MISSING;
	if (e->visibility < 0 || e->visibility > SQS_VISIBILITY_MAX)
		return SQS_BAD_VALUE;
	item->time = e->visibility * SLU_SEC;
	return SQS_OK;
}

static const char *
text_of(enum sqs_code code)
{
	return code == SQS_BAD_RECEIPT ? "The input receipt handle is invalid."
	       : code == SQS_MISSING   ? "The request must contain the parameter VisibilityTimeout."
				       : "Value for parameter VisibilityTimeout is invalid. Reason: Must be between 0 and 43200.";
}

/* Returns false if it refused the call. */
static bool
take_entries(struct apicall *a, struct settling *g)
{
	const struct sqs_call *const s = sqs_of(a);

	for (uint32_t i = 0; i < sqs_batch_size(s); i++) {
		const struct sqs_entry *const e = &s->q.entries[i];
		const unsigned which = !is_deletion(s) && e->visibility == 0 ? AT_ONCE : SOONER;
		struct op_item *const item = &g->items[which][g->n[which]];
		enum sqs_code code = take_receipt(a, e, item);

		if (!code)
			code = take_time(s, e, item);
		if (code && !sqs_batch_fail(a, &g->outcomes[i], code, text_of(code)))
			return false;
		g->entry[which][g->n[which]] = i;
		g->n[which] += !code;
	}
	return true;
}

static void
add_op(struct apicall *a, struct settling *g, enum op_verb verb, unsigned which)
{
	const struct sqs_call *const s = sqs_of(a);
	struct op *const op = &g->ops[which];

	apicall_op(a, op, verb, slice_of(s->space), slice_of(s->queue));
	op->items = g->items[which];
	op->n_items = g->n[which];
}

/* Sets the ops of the call. */
static void
make_ops(struct apicall *a, struct settling *g)
{
	add_op(a, g, is_deletion(sqs_of(a)) ? OP_ACK : OP_EXTEND, SOONER);
	add_op(a, g, OP_NACK, AT_ONCE);
	a->ops = g->n[SOONER] ? g->ops : g->ops + 1;
	a->n_ops = (g->n[SOONER] > 0) + (g->n[AT_ONCE] > 0);
}

static void
settle(struct apicall *a)
{
	struct settling *g;

	if (!sqs_batch_check(a))
		return;
	g = arena_alloc(&a->memory, sizeof *g);
	if (!g) {
		apicall_refuse(a, SLU_ENOMEM, NULL);
		return;
	}
	sqs_of(a)->own = memset(g, 0, sizeof *g);
	if (!take_entries(a, g))
		return;
	make_ops(a, g);
	if (a->n_ops > 0) {
		apicall_run(a, answer);
		return;
	}
	a->ops = &a->op;
	answer(a);
}

void
sqs_delete(struct apicall *a)
{
	settle(a);
}

void
sqs_change_visibility(struct apicall *a)
{
	settle(a);
}
