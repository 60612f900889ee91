/*
 * send.c - SendMessage and SendMessageBatch.
 *
 * The valid entries of a batch are one ENQUEUE: they are accepted together. If the shard refuses them, the whole
 * request fails, and SDKs send it again.
 */
#include "api/sqs/batch.h"
#include "api/sqs/digest.h"
#include "api/sqs/message.h"
#include "api/sqs/queue.h"
#include "base/id.h"

#include <inttypes.h>
#include <stdio.h>

struct sqs_sending {
	struct op_put puts[SQS_BATCH];
	uint32_t entry[SQS_BATCH]; /* of each put */
	uint32_t n;
	struct sqs_outcome outcomes[SQS_BATCH];
};

static void
write_sum(struct sqs_out *o, const char *name, struct sqs_attributes *l)
{
	char sum[SQS_MD5];

	if (l->n > 0 && sqs_md5_attributes(l->items, l->n, sum))
		sqs_out_plain(o, name, slice_of(sum));
}

static void
write_sent(struct sqs_out *o, const struct op_put *put, struct sqs_entry *e)
{
	char uuid[ID_UUID_TEXT], sum[SQS_MD5], number[24];

	sqs_out_plain(o, "MessageId", slice_of(id_to_uuid(put->m.id, uuid)));
	sqs_out_plain(o, "MD5OfMessageBody", slice_of(sqs_md5(e->body, sum)));
	write_sum(o, "MD5OfMessageAttributes", &e->attributes);
	write_sum(o, "MD5OfMessageSystemAttributes", &e->system);
	if (put->m.key.n == 0 || put->existed)
		return;                                                      /* the number of the first message is not known here */
	(void)snprintf(number, sizeof number, "%020" PRIu64, put->m.number); /* fits */
	sqs_out_plain(o, "SequenceNumber", slice_of(number));
}

static void
answer(struct apicall *a)
{
	struct sqs_call *const s = sqs_of(a);
	const struct sqs_sending *const g = s->own;
	struct sqs_out o;

	if (g->n > 0 && sqs_failed(a))
		return;
	sqs_out_begin(&o, a, NULL);
	if (!s->q.batch) {
		write_sent(&o, &g->puts[0], &s->q.entries[0]);
		sqs_out_end(&o);
		return;
	}
	sqs_out_list(&o, "Successful", "SendMessageBatchResultEntry");
	for (uint32_t i = 0; i < g->n; i++) {
		sqs_out_item(&o);
		sqs_out_plain(&o, "Id", s->q.entries[g->entry[i]].id);
		write_sent(&o, &g->puts[i], &s->q.entries[g->entry[i]]);
		sqs_out_item_end(&o);
	}
	sqs_out_list_end(&o);
	sqs_batch_failed(&o, s, g->outcomes);
	sqs_out_end(&o);
}

/* Fills the puts. Returns false if it refused the call. */
static bool
take_entries(struct apicall *a, struct sqs_sending *g)
{
	struct sqs_call *const s = sqs_of(a);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < sqs_batch_size(s); i++) {
		struct slu_err err = { 0 };
		uint64_t bytes;
		const enum sqs_code code = sqs_message_take(a, &s->q.entries[i], &g->puts[g->n], &bytes, &err);

		sum += bytes;
		if (code && !sqs_batch_fail(a, &g->outcomes[i], code, err.text))
			return false;
		g->entry[g->n] = i;
		g->n += !code;
	}
	if (s->q.batch && sum > SQS_MESSAGE_MAX) {
		sqs_refuse(a, SQS_BATCH_TOO_LONG, "Batch requests cannot be longer than %d bytes.", SQS_MESSAGE_MAX);
		return false;
	}
	return true;
}

static void
send_entries(struct apicall *a)
{
	struct sqs_call *const s = sqs_of(a);
	struct sqs_sending *const g = arena_alloc(&a->memory, sizeof *g);

	if (!g) {
		apicall_refuse(a, SLU_ENOMEM, NULL);
		return;
	}
	s->own = memset(g, 0, sizeof *g);
	if (!take_entries(a, g))
		return;
	apicall_op(a, &a->op, OP_ENQUEUE, slice_of(s->space), slice_of(s->queue));
	a->op.puts = g->puts;
	a->op.n_puts = g->n;
	if (g->n > 0)
		apicall_run(a, answer);
	else
		answer(a);
}

void
sqs_send(struct apicall *a)
{
	if (sqs_batch_check(a))
		sqs_queue_find(a, send_entries);
}
