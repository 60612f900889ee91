#include "api/document.h"

#include "base/mem.h"
#include "engine/engine.h"

/* The longest head that a record may have. */
enum {
	HEAD_MAX = MESSAGE_FIXED + 4 + 4 * MESSAGE_NAME_MAX + 2 * MESSAGE_KEY_MAX +
		   MESSAGE_ATTRIBUTES_MAX + MESSAGE_TRACE_MAX + MESSAGE_FIELDS_MAX
};

int
document_head(struct engine *e, const struct op_ref *record, bool may_block, char **room,
	      struct message *m, struct slu_err *err)
{
	const size_t n = record->size < HEAD_MAX ? record->size : HEAD_MAX;
	int rc;

	*m = (struct message){ 0 };
	*room = mem_alloc(n);
	if (!*room)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	rc = engine_read(e, record, 0, n, *room, may_block, err);
	return rc ? rc : message_decode_head((struct slice){ *room, n }, m, err);
}

/* The reference to the bytes of the document; *at: where they begin. */
static const struct op_ref *
body_of(const struct op_ref *record, const struct op_ref *payload, const struct message *m,
	uint64_t *at)
{
	*at = payload->pin ? 0 : message_head(m);
	return payload->pin ? payload : record;
}

/* Appends the next piece of [*at, end) to out. */
static int
read_piece(struct engine *e, const struct op_ref *ref, uint64_t *at, uint64_t end,
	   bool may_block, struct buf *out, struct slu_err *err)
{
	const size_t n = end - *at < ENGINE_PIECE ? (size_t)(end - *at) : ENGINE_PIECE;
	char *const place = buf_add(out, n);
	int rc;

	if (!place)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	rc = engine_read(e, ref, *at, n, place, may_block, err);
	if (rc) {
		out->n -= n;
		return rc;
	}
	*at += n;
	return 0;
}

int
document_read(struct engine *e, const struct op_ref *record, const struct op_ref *payload,
	      uint64_t max, bool may_block, struct buf *out, struct slu_err *err)
{
	const size_t before = out->n;
	const struct op_ref *ref;
	struct message m;
	uint64_t at, end;
	char *room;
	int rc;

	rc = document_head(e, record, may_block, &room, &m, err);
	if (!rc && m.payload_size > max)
		rc = slu_fail(err, SLU_ETOOBIG, "document too large: %llu bytes; expected at most %llu",
			      (unsigned long long)m.payload_size, (unsigned long long)max);
	if (!rc) {
		ref = body_of(record, payload, &m, &at);
		end = at + m.payload_size;
		while (!rc && at < end)
			rc = read_piece(e, ref, &at, end, may_block, out, err);
	}
	if (rc)
		out->n = before;
	mem_free(room);
	return rc;
}

/* --- sending ------------------------------------------------------------------ */

static struct buf *
out_of(const struct document *d)
{
	return &d->apicall->x->out;
}

static int
begin(struct document *d, bool may_block, struct slu_err *err)
{
	struct message m;
	int rc;

	mem_free(d->room);
	rc = document_head(d->op->engine, d->record, may_block, &d->room, &m, err);
	if (rc)
		return rc;
	d->ref = body_of(d->record, d->payload, &m, &d->at);
	d->end = d->at + m.payload_size;
	d->head(d, &m);
	return 0;
}

/* Fills a piece; a small document is one piece. */
static int
produce(struct apicall *a, bool may_block)
{
	struct document *const d = a->part;
	int rc = 0;
	size_t most;

	if (!d->ref)
		rc = begin(d, may_block, &d->err);
	if (rc)
		return rc;
	most = !d->begun && d->end - d->at <= DOCUMENT_LARGE ? DOCUMENT_LARGE : DOCUMENT_PIECE;
	while (!rc && d->at < d->end && out_of(d)->n < most)
		rc = read_piece(d->op->engine, d->ref, &d->at, d->end, may_block, out_of(d), &d->err);
	d->last = d->at == d->end;
	return rc;
}

static void
give(struct apicall *a, int rc)
{
	struct document *const d = a->part;
	struct call *const c = call_of(a->x);

	if (rc && d->begun)
		exchange_break(&c->x);
	else if (rc)
		apicall_refuse(a, rc, d->err.text);
	else if (d->begun)
		exchange_piece(&c->x, d->last);
	else if (d->last)
		call_answer(c, 200, NULL, &c->x.out);
	else {
		d->begun = true;
		call_begin(c, 200, NULL);
	}
}

static void
more(struct exchange *x)
{
	apicall_try(x->user, produce, give);
}

static void
ended(struct exchange *x, bool sent)
{
	const struct apicall *const a = x->user;
	struct document *const d = a->part;

	op_unpin(d->op);
	mem_free(d->room);
	d->ended(x, sent);
}

void
document_send(struct document *d, struct apicall *a,
	      void (*head)(struct document *d, const struct message *m))
{
	*d = (struct document){
		.apicall = a,
		.op = &a->op,
		.record = &a->op.lock.record,
		.payload = &a->op.lock.payload,
		.head = head,
		.ended = a->x->ended,
	};
	a->part = d;
	a->x->ended = ended;
	a->x->more = more;
	apicall_try(a, produce, give);
}
