/*
 * embed_message.c - messages into and out of a user's program.
 */
#include "embed/embed.h"

#include "base/json/json.h"
#include "base/mem.h"
#include "base/need.h"
#include "base/sized.h"
#include "engine/payload.h"

#include <inttypes.h>

enum {
	READ_SIZE = 64 << 10 /* bytes of one call of slu_read_fn */
};

/* ---- In ---- */

static struct slice
maybe(const char *s)
{
	return s ? slice_of(s) : (struct slice){ 0 };
}

static int
check_texts(const struct message *m, struct slu_err *err)
{
	int rc = 0;

	if (m->key.p)
		rc = key_check(m->key, "key", err);
	if (!rc && m->share.p)
		rc = share_check(m->share, "share", err);
	if (!rc && m->idem.p)
		rc = key_check(m->idem, "idempotency key", err);
	if (!rc && m->correlation.p)
		rc = correlation_check(m->correlation, "correlation id", err);
	if (!rc && m->attributes.p) /* at most as deep as an answer of the server can nest it */
		rc = json_check(m->attributes, JSON_OBJECT, JSON_DEPTH - 2, "attributes", err);
	return rc ? rc : message_check(m, err);
}

static int
check_put(const struct slu_put *in, struct slu_err *err)
{
	int rc = need_time(in->delay, "delay", err);

	rc = rc ? rc : need_time(in->due, "due", err);
	rc = rc ? rc : need_time(in->ttl, "ttl", err);
	rc = rc ? rc : need_time(in->keep_result, "keep_result", err);
	rc = rc ? rc : need_time(in->lease, "lease", err);
	rc = rc ? rc : need_time(in->max_runtime, "max_runtime", err);
	rc = rc ? rc : need_time(in->deadline, "deadline", err);
	rc = rc ? rc : need_time(in->unique_for, "unique_for", err);
	if (!rc && in->unique && !in->idempotency)
		rc = slu_fail(err, SLU_EINVAL, "a unique message needs an idempotency key");
	rc = rc ? rc : need_bytes(in->payload, in->size, "payload", err);
	if (rc)
		return rc;
	if (in->max_attempts > UINT16_MAX)
		return slu_fail(err, SLU_EINVAL, "invalid max_attempts: %u; expected at most %u",
				in->max_attempts, UINT16_MAX);
	return 0;
}

static int
fill_put(const struct embed_call *c, const struct slu_put *in, struct op_put *out,
	 struct slu_err *err)
{
	const int rc = check_put(in, err);

	*out = (struct op_put){
		.m = {
			.space = c->op.space,
			.queue = c->op.queue,
			.key = maybe(in->key),
			.share = maybe(in->share),
			.idem = maybe(in->idempotency),
			.correlation = maybe(in->correlation),
			.type = maybe(in->content_type),
			.attributes = maybe(in->attributes),
			.payload = { in->payload, in->size },
			.payload_size = in->size,
			.prio = in->priority,
			.due = in->due,
			.keep = in->keep_result,
			.max_attempts = (uint16_t)in->max_attempts,
			.terms = { .lease = in->lease, .run = in->max_runtime, .unique = (uint64_t)in->unique, .unique_for = in->unique_for },
		},
		.delay = in->delay,
		.ttl = in->ttl,
		.deadline = in->deadline,
		.replace = in->replace,
	};
	if (in->retry)
		terms_set_retry(&out->m.terms, in->retry);
	return rc ? rc : check_texts(&out->m, err);
}

static int
read_all(const struct slu_put *in, struct payload *p, struct slu_err *err)
{
	char *room = mem_alloc(READ_SIZE);
	int64_t n = 0;
	int rc = 0;

	if (!room)
		return slu_fail(err, SLU_ENOMEM, "no memory for a payload");
	while (!rc && (n = in->read(in->read_arg, room, READ_SIZE)) > 0)
		rc = payload_write(p, room, n < READ_SIZE ? (size_t)n : READ_SIZE, err);
	mem_free(room);
	if (!rc && n < 0)
		rc = slu_fail(err, SLU_EINVAL, "the payload could not be read");
	return rc;
}

/* Stores a large payload with the engine before its message is enqueued. */
static int
store(struct engine *e, const struct slu_put *in, struct message *m, struct payload **out,
      struct slu_err *err)
{
	int rc;

	if (!in->read)
		return payload_store(e, m, out, err);
	rc = payload_open(e, out, err);
	if (!rc)
		rc = read_all(in, *out, err);
	return rc ? rc : payload_seal(*out, m, err);
}

static int
store_all(struct slu_broker *b, struct embed_call *c, const struct slu_put *puts,
	  struct payload **stored, struct slu_err *err)
{
	struct engine *e = broker_engine_of(b->broker, NULL, c->op.space, c->op.queue);
	int rc = 0;

	for (uint32_t i = 0; !rc && i < c->op.n_puts; i++)
		if (puts[i].read || payload_is_large(e, puts[i].size))
			rc = store(e, &puts[i], &c->op.puts[i].m, &stored[i], err);
	return rc;
}

static bool
has_large(struct slu_broker *b, const struct embed_call *c, const struct slu_put *puts)
{
	const struct engine *e = broker_engine_of(b->broker, NULL, c->op.space, c->op.queue);

	for (uint32_t i = 0; i < c->op.n_puts; i++)
		if (puts[i].read || payload_is_large(e, puts[i].size))
			return true;
	return false;
}

static int
run_large(struct slu_broker *b, struct embed_call *c, const struct slu_put *puts,
	  struct slu_err *err)
{
	struct payload **stored = mem_array(c->op.n_puts, sizeof(struct payload *));
	int rc;

	if (!stored)
		return slu_fail(err, SLU_ENOMEM, "no memory for payloads");
	rc = store_all(b, c, puts, stored, err);
	if (!rc)
		rc = embed_run(b, c, err);
	for (uint32_t i = 0; i < c->op.n_puts; i++)
		payload_close(stored[i]);
	mem_free(stored);
	return rc;
}

static int
enqueue(struct slu_broker *b, struct embed_call *c, struct slu_put *puts,
	struct slu_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < c->op.n_puts; i++)
		rc = fill_put(c, &puts[i], &c->op.puts[i], err);
	if (!rc)
		rc = has_large(b, c, puts) ? run_large(b, c, puts, err) : embed_run(b, c, err);
	for (uint32_t i = 0; !rc && i < c->op.n_puts; i++) {
		puts[i].id = c->op.puts[i].m.id;
		puts[i].existed = c->op.puts[i].existed;
		puts[i].replaced = c->op.puts[i].replaced;
	}
	return rc;
}

static int
enqueue_sized(struct slu_broker *b, struct embed_call *c, struct slu_put *puts,
	      struct slu_err *err)
{
	struct sized_array a;
	int rc = sized_array(&a, puts, c->op.n_puts, sizeof *puts, "slu_put", err);

	if (!rc)
		rc = enqueue(b, c, a.items, err);
	if (!rc)
		sized_array_answer(&a, puts, c->op.n_puts, sizeof *puts);
	sized_array_release(&a);
	return rc;
}

int
slu_enqueue(struct slu_broker *b, const char *queue, struct slu_put *puts, size_t n,
	    struct slu_err *err)
{
	NEED3(b, queue, puts, err);

	struct op_put one, *many = &one;
	struct embed_call c;
	int rc;

	if (n == 0)
		return slu_fail(err, SLU_EINVAL, "no message to enqueue; expected 1 or more");
	if (n > UINT32_MAX)
		return slu_fail(err, SLU_ETOOBIG, "too many messages in one call: %zu; expected at most %u", n, UINT32_MAX);
	if (n > 1)
		many = mem_array(n, sizeof *many);
	if (!many)
		return slu_fail(err, SLU_ENOMEM, "no memory for %zu messages", n);
	rc = embed_begin(b, &c, OP_ENQUEUE, queue, err);
	if (!rc) {
		c.op.puts = many;
		c.op.n_puts = (uint32_t)n;
		rc = enqueue_sized(b, &c, puts, err);
		embed_end(b, &c);
	}
	if (n > 1)
		mem_free(many);
	return rc;
}

/* ---- Out ---- */

/* Copies a text behind the record with a final 0, and returns its place. */
static const char *
place(char **at, struct slice s)
{
	char *text = *at;

	if (s.n)
		memcpy(text, s.p, s.n);
	text[s.n] = 0;
	*at += s.n + 1;
	return text;
}

/* What slu_message.memory points to. */
struct held {
	struct engine *engine;
	struct op_ref payload; /* for reading in pieces, or no pin */
	char bytes[];          /* the record, the texts with a final 0 each, the payload */
};

static void
fill_message(const struct op_row *row, const struct message *in, struct held *held,
	     struct slu_message *m)
{
	char *at = held->bytes + row->record.size;

	*m = (struct slu_message){
		.id = row->id,
		.token = row->token,
		.payload = in->payload.p,
		.size = (size_t)in->payload_size,
		.priority = row->prio,
		.attempts = row->attempts,
		.failures = row->failures,
		.accepted = in->accepted,
		.due = row->due,
		.lease_until = row->until,
		.key = place(&at, in->key),
		.correlation = place(&at, in->correlation),
		.content_type = place(&at, in->type),
		.attributes = place(&at, in->attributes),
		.memory = held,
		.share = place(&at, in->share),
	};
}

/* Fills m from a granted row: room for a record and, behind it, its texts with a final 0 each. The texts
 * are shorter than the record, and there are at most five. in_pieces: a large payload is not read, and m
 * has its pin. */
static int
read_row(struct engine *e, struct op_row *row, bool in_pieces, struct slu_message *m,
	 struct slu_err *err)
{
	const size_t n = row->record.size, texts = 2 * n + 5;
	const size_t large = in_pieces ? 0 : row->payload.size;
	struct held *held = mem_alloc(sizeof *held + texts + large);
	struct message in;
	int rc;

	if (!held)
		return slu_fail(err, SLU_ENOMEM, "no memory for message %" PRIu64, row->id);
	*held = (struct held){ .engine = e };
	rc = engine_read(e, &row->record, 0, n, held->bytes, true, err);
	if (!rc)
		rc = message_decode((struct slice){ held->bytes, n }, &in, err);
	if (!rc && large) {
		in.payload = (struct slice){ held->bytes + texts, large };
		rc = engine_read(e, &row->payload, 0, large, held->bytes + texts, true, err);
	}
	if (rc) {
		mem_free(held);
		return rc;
	}
	if (row->payload.pin && in_pieces) {
		held->payload = row->payload;
		row->payload.pin = NULL; /* the message owns the pin now */
		in.payload.p = NULL;
	}
	fill_message(row, &in, held, m);
	return 0;
}

void
slu_message_release(struct slu_message *m)
{
	struct held *held = m ? m->memory : NULL;

	if (!m)
		return;
	if (held)
		engine_unpin(held->engine, &held->payload);
	mem_free(held);
	*m = (struct slu_message){ 0 };
}

int
slu_read(struct slu_broker *b, const struct slu_message *m, uint64_t at, void *p, size_t n,
	 struct slu_err *err)
{
	NEED2(b, m, err);

	const struct held *held = m->memory;

	(void)b; /* only has to be open */
	if (!held || at > m->size || n > m->size - at)
		return slu_fail(err, SLU_EINVAL, "invalid range: %zu bytes at %" PRIu64 "; the payload has %zu bytes", n, at,
				m->size);
	if (need_bytes(p, n, "buffer", err))
		return SLU_EINVAL;
	if (held->payload.pin)
		return engine_read(held->engine, &held->payload, at, n, p, true, err);
	if (n)
		memcpy(p, (const char *)m->payload + at, n);
	return 0;
}

/* Quarantines a message that cannot be read, so that no claim gets it again. */
static void
set_aside(struct slu_broker *b, const struct embed_call *claim, const struct op_row *row)
{
	struct op_item item = { .id = row->id, .token = row->token };
	struct embed_call c;

	if (embed_begin(b, &c, OP_QUARANTINE, claim->queue, NULL))
		return;
	c.op.items = &item;
	c.op.n_items = 1;
	(void)embed_run(b, &c, NULL); /* if this fails, the next claim finds it again */
	embed_end(b, &c);
}

/* Quarantines damaged messages and closes the gaps. Returns false if a message could not be read for
 * another reason. */
static bool
skip_damaged(struct slu_broker *b, struct embed_call *c, uint32_t at, int rc)
{
	struct op *op = &c->op;

	if (rc != SLU_ECORRUPT)
		return false;
	set_aside(b, c, &op->rows[at]);
	engine_unpin(op->engine, &op->rows[at].record);
	engine_unpin(op->engine, &op->rows[at].payload);
	op->n_rows--;
	memmove(&op->rows[at], &op->rows[at + 1], (op->n_rows - at) * sizeof op->rows[0]);
	return true;
}

/* Messages that cannot be read go back; the call fails only if none could be read. */
static int
take_rows(struct slu_broker *b, struct embed_call *c, bool in_pieces,
	  struct slu_message *messages, size_t *n, struct slu_err *err)
{
	struct op *op = &c->op;
	int rc = 0;

	while (*n < op->n_rows && !rc) {
		rc = read_row(op->engine, &op->rows[*n], in_pieces, &messages[*n], err);
		*n += rc == 0;
		if (rc && skip_damaged(b, c, (uint32_t)*n, rc))
			rc = 0;
	}
	for (uint32_t i = 0; i < *n; i++) {
		engine_unpin(op->engine, &op->rows[i].record);
		engine_unpin(op->engine, &op->rows[i].payload);
	}
	if (*n == op->n_rows)
		return 0;
	c->done = false;
	if (broker_return(b->broker, op, (uint32_t)*n) == 0)
		embed_wait(c);
	return *n ? 0 : rc;
}

int
slu_claim(struct slu_broker *b, const char *queue, const struct slu_claim_options *options,
	  struct slu_message *messages, size_t max, size_t *n, struct slu_err *err)
{
	NEED4(b, queue, messages, n, err);

	struct slu_claim_options room;
	const struct slu_claim_options *o = SIZED(slu_claim_options, options, &room, err);
	struct op_row one, *rows = &one;
	struct embed_call c;
	int rc;

	*n = 0;
	if (!o)
		return SLU_EINVAL;
	if (max == 0 || max > LEDGER_PEEK_MAX)
		return slu_fail(err, SLU_EINVAL, "invalid max: %zu messages; expected 1 to %d", max,
				LEDGER_PEEK_MAX);
	if (need_lease(o->lease, "lease", err) || need_time(o->wait, "wait", err))
		return SLU_EINVAL;
	if (max > 1)
		rows = mem_array(max, sizeof *rows);
	if (!rows)
		return slu_fail(err, SLU_ENOMEM, "no memory for %zu messages", max);
	rc = embed_begin(b, &c, OP_CLAIM, queue, err);
	if (!rc) {
		c.op.claim.lease = o->lease;
		c.op.wait = o->wait;
		c.op.rows = rows;
		c.op.max_rows = (uint32_t)max;
		rc = embed_run(b, &c, err);
		if (!rc)
			rc = take_rows(b, &c, o->in_pieces, messages, n, err);
		if (!rc && *n == 0 && atomic_load(&b->stopping))
			rc = embed_stopped(err); /* slu_stop has ended the wait */
		embed_end(b, &c);
	}
	if (max > 1)
		mem_free(rows);
	return rc;
}
