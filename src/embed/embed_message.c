/*
 * embed_message.c - messages of a queue to a user's program.
 */
#include "embed/embed.h"

#include "base/mem.h"
#include "base/need.h"
#include "base/sized.h"
#include "form/values.h"

#include <inttypes.h>

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
	struct slice queue;    /* in bytes */
	char bytes[];          /* the record, the texts with a final 0 each, the record of the checkpoint, the payload */
};

static void
fill_message(const struct op_row *row, const struct message *in, const char *checkpoint, struct held *held,
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
		.share = place(&at, share_of_line(in->share)),
		.kind = place(&at, kind_of_line(in->share)),
		.checkpoint = checkpoint,
	};
	held->queue = in->queue;
}

struct slice
embed_queue_of(const struct slu_message *m)
{
	const struct held *const held = m->memory;

	return held ? held->queue : (struct slice){ 0 };
}

/* Reads the state of a granted row to at, with a final 0: room for its record and one byte. A state that has a file of its
 * own is not shown. */
static int
read_checkpoint(struct engine *e, const struct op_row *row, char *at, const char **out, struct slu_err *err)
{
	struct message m = { 0 };
	int rc = 0;

	if (row->checkpoint.pin)
		rc = engine_read(e, &row->checkpoint, 0, row->checkpoint.size, at, true, err);
	if (!rc && row->checkpoint.pin)
		rc = message_decode((struct slice){ at, row->checkpoint.size }, &m, err);
	if (rc)
		return rc;
	if (m.payload.n)
		memmove(at, m.payload.p, m.payload.n);
	at[m.payload.n] = 0;
	*out = at;
	return 0;
}

/* Fills m from a granted row: room for a record and, behind it, its texts with a final 0 each. The texts
 * are shorter than the record, and there are at most six. in_pieces: a large payload is not read, and m
 * has its pin. */
static int
read_row(struct engine *e, struct op_row *row, bool in_pieces, struct slu_message *m,
	 struct slu_err *err)
{
	const size_t n = row->record.size, texts = 2 * n + 6, state = row->checkpoint.size + 1;
	const size_t large = in_pieces ? 0 : row->payload.size;
	struct held *held = mem_alloc(sizeof *held + texts + state + large);
	const char *checkpoint;
	struct message in;
	int rc;

	if (!held)
		return slu_fail(err, SLU_ENOMEM, "no memory for message %" PRIu64, row->id);
	*held = (struct held){ .engine = e };
	rc = engine_read(e, &row->record, 0, n, held->bytes, true, err);
	if (!rc)
		rc = message_decode((struct slice){ held->bytes, n }, &in, err);
	if (!rc)
		rc = read_checkpoint(e, row, held->bytes + texts, &checkpoint, err);
	if (!rc && large) {
		in.payload = (struct slice){ held->bytes + texts + state, large };
		rc = engine_read(e, &row->payload, 0, large, held->bytes + texts + state, true, err);
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
	fill_message(row, &in, checkpoint, held, m);
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
	op_unpin_row(op->engine, &op->rows[at]);
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
	for (uint32_t i = 0; i < *n; i++)
		op_unpin_row(op->engine, &op->rows[i]);
	if (*n == op->n_rows)
		return 0;
	c->done = false;
	if (broker_return(b->broker, op, (uint32_t)*n) == 0)
		embed_wait(c);
	return *n ? 0 : rc;
}

static int
check_claim(const struct slu_claim_options *o, size_t max, struct slu_err *err)
{
	if (max == 0 || max > LEDGER_PEEK_MAX)
		return slu_fail(err, SLU_EINVAL, "invalid max: %zu messages; expected 1 to %d", max,
				LEDGER_PEEK_MAX);
	return need_lease(o->lease, "lease", err) || need_time(o->wait, "wait", err) ? SLU_EINVAL : 0;
}

/* The op has its rows. */
static int
claim(struct slu_broker *b, struct embed_call *c, const struct slu_claim_options *o, struct slu_message *messages, size_t *n,
      struct slu_err *err)
{
	struct arena memory = { 0 };
	int rc = o->kinds ? value_kinds(&memory, slice_of(o->kinds), &c->op.claim.kinds, err) : 0;

	c->op.claim.lease = o->lease;
	c->op.wait = o->wait;
	if (!rc)
		rc = embed_run(b, c, err);
	if (!rc)
		rc = take_rows(b, c, o->in_pieces, messages, n, err);
	if (!rc && *n == 0 && atomic_load(&b->stopping))
		rc = embed_stopped(err); /* slu_stop has ended the wait */
	arena_release(&memory);
	return rc;
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
	if (!o || check_claim(o, max, err))
		return SLU_EINVAL;
	if (max > 1)
		rows = mem_array(max, sizeof *rows);
	if (!rows)
		return slu_fail(err, SLU_ENOMEM, "no memory for %zu messages", max);
	rc = embed_begin(b, &c, OP_CLAIM, queue, err);
	if (!rc) {
		c.op.rows = rows;
		c.op.max_rows = (uint32_t)max;
		rc = claim(b, &c, o, messages, n, err);
		embed_end(b, &c);
	}
	if (max > 1)
		mem_free(rows);
	return rc;
}
