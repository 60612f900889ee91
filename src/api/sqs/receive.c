/*
 * receive.c - ReceiveMessage: a claim.
 *
 * A payload that SQS cannot carry, of another API, is in base64, and the message has the attribute
 * SluiceEncoding.
 */
#include "api/document.h"
#include "api/limits.h"
#include "api/sqs/digest.h"
#include "api/sqs/message.h"
#include "api/sqs/out.h"
#include "api/sqs/queue.h"
#include "api/holder.h"
#include "base/base64.h"
#include "base/id.h"
#include "base/receipt.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	LARGE_MAX = 16 << 20 /* bytes of a payload of another API */
};

/* --- what the client asks for ------------------------------------------------- */

static bool
wants(const struct sqs_names *l, const char *name)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (slice_eq(l->items[i], SLICE("All")) || slice_eq(l->items[i], slice_of(name)))
			return true;
	return false;
}

/* Of a message attribute: its name, All, .*, or the beginning of its name and .* */
static bool
wants_attribute(const struct sqs_names *l, struct slice name)
{
	for (uint32_t i = 0; i < l->n; i++) {
		struct slice w = l->items[i];

		if (slice_eq(w, SLICE("All")) || slice_eq(w, name))
			return true;
		if (w.n < 2 || memcmp(w.p + w.n - 2, ".*", 2) != 0)
			continue;
		w.n -= 2;
		if (name.n >= w.n && memcmp(name.p, w.p, w.n) == 0)
			return true;
	}
	return false;
}

/* --- a message ---------------------------------------------------------------- */

static void
write_receipt(struct sqs_out *o, const struct op_row *row, const struct message *m)
{
	const struct receipt r = { m->space, m->queue, row->id, row->token };
	char bytes[RECEIPT_BYTES], text[RECEIPT_TEXT];
	const size_t n = receipt_encode(&r, bytes);

	base64url_encode((struct slice){ bytes, n }, text);
	sqs_out_plain(o, "ReceiptHandle", (struct slice){ text, base64url_text(n) });
}

/* width: digits, with zeros in front; 1 = as many as it has. */
static void
pair_number(struct sqs_out *o, const char *name, int64_t n, int width)
{
	char text[32];

	(void)snprintf(text, sizeof text, "%0*" PRId64, width, n); /* fits */
	sqs_out_pair(o, name, slice_of(text));
}

static const struct sqs_attribute *
find(const struct sqs_attributes *l, const char *name)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (slice_eq(l->items[i].name, slice_of(name)))
			return &l->items[i];
	return NULL;
}

static void
pair_text(struct sqs_out *o, const struct sqs_names *l, const char *name, struct slice text)
{
	if (text.n > 0 && wants(l, name))
		sqs_out_pair(o, name, text);
}

/* Of the queue that a dead letter came from. */
static struct slice
source_arn(struct sqs_out *o, struct slice queue, char out[static SQS_URL])
{
	char name[NAME_TEXT];

	(void)snprintf(name, sizeof name, "%.*s", (int)queue.n, queue.p); /* fits */
	return slice_of(sqs_arn(sqs_of(o->a), name, out));
}

static void
write_system(struct sqs_out *o, const struct sqs_names *l, const struct op_row *row, const struct message *m,
	     const struct sqs_attributes *own)
{
	const struct sqs_attribute *const trace = find(own, SQS_TRACE_HEADER), *const id = find(own, SQS_DEDUPLICATED);
	const bool fifo = m->key.n > 0;
	char arn[SQS_URL];

	sqs_out_map(o, "Attributes", "Attribute", "Name");
	pair_text(o, l, "SenderId", slice_of(sqs_of(o->a)->account));
	if (wants(l, "SentTimestamp"))
		pair_number(o, "SentTimestamp", (m->sent ? m->sent : m->accepted) / SLU_MS, 1);
	if (wants(l, "ApproximateReceiveCount"))
		pair_number(o, "ApproximateReceiveCount", row->attempts, 1);
	if (wants(l, "ApproximateFirstReceiveTimestamp"))
		pair_number(o, "ApproximateFirstReceiveTimestamp", (row->attempts > 1 ? m->due : row->claimed) / SLU_MS, 1);
	if (fifo && wants(l, "SequenceNumber"))
		pair_number(o, "SequenceNumber", (int64_t)m->number, 20);
	pair_text(o, l, "MessageGroupId", fifo ? m->key : share_of_line(m->share));
	if (fifo)
		pair_text(o, l, "MessageDeduplicationId", id ? id->text : m->idem);
	if (trace)
		pair_text(o, l, "AWSTraceHeader", trace->text);
	if (m->source.n)
		pair_text(o, l, "DeadLetterQueueSourceArn", source_arn(o, m->source, arn));
	sqs_out_map_end(o);
}

/* Leaves the attributes that the client asks for in *l. */
static void
choose(struct sqs_attributes *l, const struct sqs_names *names)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < l->n; i++)
		if (slice_eq(l->items[i].name, SLICE("SluiceEncoding")) ||
		    (l->items[i].name.n > 3 && memcmp(l->items[i].name.p, "AWS.", 4) != 0 &&
		     wants_attribute(names, l->items[i].name)) ||
		    (l->items[i].name.n <= 3 && wants_attribute(names, l->items[i].name)))
			l->items[n++] = l->items[i];
	l->n = n;
}

static void
write_bytes(struct sqs_out *o, struct slice bytes)
{
	char *const text = arena_alloc(&o->a->memory, base64_text(bytes.n) + 1);

	if (!text) {
		o->b->failed = true;
		return;
	}
	base64_encode(bytes, text);
	sqs_out_plain(o, "BinaryValue", (struct slice){ text, base64_text(bytes.n) });
}

static void
write_attributes(struct sqs_out *o, struct sqs_attributes *l)
{
	char sum[SQS_MD5];

	if (l->n == 0)
		return;
	if (sqs_md5_attributes(l->items, l->n, sum))
		sqs_out_plain(o, "MD5OfMessageAttributes", slice_of(sum));
	sqs_out_map(o, "MessageAttributes", "MessageAttribute", "Name");
	for (uint32_t i = 0; i < l->n; i++) {
		sqs_out_open(o, l->items[i].name);
		if (l->items[i].has_bytes)
			write_bytes(o, l->items[i].bytes);
		else
			sqs_out_text(o, "StringValue", l->items[i].text);
		sqs_out_text(o, "DataType", l->items[i].type);
		sqs_out_close(o);
	}
	sqs_out_map_end(o);
}

static void
add_encoding(struct apicall *a, struct sqs_attributes *l, const char *encoding)
{
	struct sqs_attribute *const at = sqs_attributes_add(l, &a->memory);

	if (at)
		*at = (struct sqs_attribute){
			.name = SLICE("SluiceEncoding"),
			.type = SLICE("String"),
			.text = slice_of(encoding),
			.has_text = true,
		};
}

/* The payload as a text; adds an attribute if it is another one. */
static struct slice
body_of(struct apicall *a, struct slice payload, bool whole, struct sqs_attributes *l)
{
	char *text;

	if (!whole) {
		add_encoding(a, l, "too-large");
		return (struct slice){ 0 };
	}
	if (sqs_message_is_text(payload))
		return payload;
	add_encoding(a, l, "base64");
	text = arena_alloc(&a->memory, base64_text(payload.n) + 1);
	if (!text) {
		a->x->out.failed = true;
		return (struct slice){ 0 };
	}
	base64_encode(payload, text);
	return (struct slice){ text, base64_text(payload.n) };
}

static void
write_message(struct sqs_out *o, const struct op_row *row, const struct message *m, struct slice payload, bool whole)
{
	struct sqs_call *const s = sqs_of(o->a);
	struct sqs_attributes attributes = { 0 };
	char uuid[ID_UUID_TEXT], sum[SQS_MD5];
	struct slice body;

	if (m->attributes.n > 0 && (s->q.names.n > 0 || s->q.message_names.n > 0) &&
	    !sqs_message_attributes(m->attributes, &o->a->memory, &attributes))
		attributes.n = 0;
	body = body_of(o->a, payload, whole, &attributes);
	sqs_out_item(o);
	sqs_out_plain(o, "MessageId", slice_of(id_to_uuid(row->id, uuid)));
	write_receipt(o, row, m);
	sqs_out_plain(o, "MD5OfBody", slice_of(sqs_md5(body, sum)));
	sqs_out_text(o, "Body", body);
	if (s->q.names.n > 0)
		write_system(o, &s->q.names, row, m, &attributes);
	choose(&attributes, &s->q.message_names);
	write_attributes(o, &attributes);
	o->tag = "Message"; /* a map has replaced it */
	sqs_out_item_end(o);
}

static void
write_row(struct json_out *w, const struct op_row *row, const struct message *m, struct slice error)
{
	struct rows *const r = CONTAINER(w, struct rows, w);
	struct slu_err err = { 0 };
	struct sqs_out o;
	struct buf large;
	int rc = 0;

	(void)error; /* claims have none */
	sqs_out_resume(&o, r->apicall, w);
	o.tag = "Message";
	if (!row->payload.pin) {
		write_message(&o, row, m, m->payload, true);
		return;
	}
	buf_init(&large, LARGE_MAX);
	rc = document_read(r->op->engine, &row->record, &row->payload, LARGE_MAX, true, &large, &err);
	write_message(&o, row, m, buf_slice(&large), rc == 0);
	buf_release(&large);
}

/* --- the call ----------------------------------------------------------------- */

static void
ended(struct exchange *x, bool sent)
{
	struct apicall *const a = x->user;

	if (a->op.n_rows == 0 || (sent && sqs_of(a)->kept))
		apicall_end(a);
	else
		apicall_return(a, 0, "claim not received");
}

static void
written(struct apicall *a, int rc)
{
	struct sqs_call *const s = sqs_of(a);
	struct sqs_out o;

	if (apicall_refused(a, rc, NULL))
		return;
	sqs_out_resume(&o, a, &s->rows.w);
	sqs_out_list_end(&o);
	s->kept = !a->x->out.failed; /* if memory runs out, no message is delivered */
	sqs_out_end(&o);
}

static bool
has_large(const struct op *op)
{
	for (uint32_t i = 0; i < op->n_rows; i++)
		if (op->rows[i].payload.pin)
			return true;
	return false;
}

static void
answer(struct apicall *a)
{
	struct sqs_call *const s = sqs_of(a);
	struct sqs_out o;

	if (a->op.rc) {
		a->op.n_rows = 0;
		(void)sqs_failed(a); /* it has */
		return;
	}
	if (a->gone) {
		sqs_out_nothing(a); /* no client reads it */
		return;
	}
	s->rows = (struct rows){
		.apicall = a,
		.op = &a->op,
		.write = write_row,
		.done = written,
		.patient = has_large(&a->op),
	};
	sqs_out_begin(&o, a, &s->rows.w);
	if (a->op.n_rows == 0) {
		sqs_out_end(&o); /* without Messages */
		return;
	}
	sqs_out_list(&o, "Messages", "Message");
	rows_start(&s->rows);
}

static bool
in_range(struct apicall *a, const char *name, int64_t value, int64_t min, int64_t max)
{
	if (value == SQS_NOT_GIVEN || (value >= min && value <= max))
		return true;
	sqs_refuse(a, SQS_BAD_VALUE, "Value %" PRId64 " for parameter %s is invalid. Reason: Must be between %" PRId64 " and %" PRId64 ", if provided.",
		   value, name, min, max);
	return false;
}

static void
claim(struct apicall *a)
{
	struct sqs_call *const s = sqs_of(a);
	const int64_t visibility = s->q.entries[0].visibility;
	const int64_t wait = s->q.wait == SQS_NOT_GIVEN ? (int64_t)s->facts.wait : s->q.wait;

	apicall_op(a, &a->op, OP_CLAIM, slice_of(s->space), slice_of(s->queue));
	a->op.wait = wait * SLU_SEC;
	if (visibility != SQS_NOT_GIVEN)
		a->op.claim.lease = visibility ? visibility * SLU_SEC : SLU_MS;
	a->op.claim.holder = holder_of(a, (struct slice){ 0 });
	a->op.claim.max_bytes = API_PAYLOAD_BYTES;
	a->op.max_rows = s->q.max_messages == SQS_NOT_GIVEN ? 1 : (uint32_t)s->q.max_messages;
	a->op.rows = arena_array(&a->memory, a->op.max_rows, sizeof *a->op.rows);
	if (!a->op.rows) {
		apicall_refuse(a, SLU_ENOMEM, NULL);
		return;
	}
	a->x->ended = ended;
	if (wait > 0)
		a->x->gone = apicall_gone;
	apicall_run(a, answer);
}

void
sqs_receive(struct apicall *a)
{
	const struct sqs_request *const q = &sqs_of(a)->q;

	if (in_range(a, "MaxNumberOfMessages", q->max_messages, 1, SQS_BATCH) &&
	    in_range(a, "WaitTimeSeconds", q->wait, 0, SQS_WAIT_MAX) &&
	    in_range(a, "VisibilityTimeout", q->entries[0].visibility, 0, SQS_VISIBILITY_MAX))
		sqs_queue_find(a, claim);
}
