#include "api/document.h"

#include "base/mem.h"
#include "engine/engine.h"

/* The longest head that a record may have. */
enum {
	HEAD_MAX = MESSAGE_FIXED + 2 + 4 * MESSAGE_NAME_MAX + 2 * MESSAGE_KEY_MAX +
		   MESSAGE_ATTRIBUTES_MAX + MESSAGE_TRACE_MAX
};

int
document_head(struct engine *e, const struct op_ref *record, bool may_block, char **room,
	      struct message *m, struct slu_err *err)
{
	const size_t n = record->size < HEAD_MAX ? record->size : HEAD_MAX;
	int rc;

	*room = mem_alloc(n);
	if (!*room)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	rc = engine_read(e, record, 0, n, *room, may_block, err);
	return rc ? rc : message_decode_head((struct slice){ *room, n }, m, err);
}

/* Where its bytes are. */
static const struct op_ref *
body_of(const struct op_ref *record, const struct op_ref *payload, const struct message *m,
	uint64_t *at)
{
	*at = payload->pin ? 0 : message_head(m);
	return payload->pin ? payload : record;
}

/* The next piece of [*at, end) behind what out has. */
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
		rc = slu_fail(err, SLU_ETOOBIG, "a document of %llu bytes, more than %llu",
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
	return &d->ask->call->out;
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

/* Fill a piece; what is not large is all of it. */
static int
produce(struct document *d, bool may_block)
{
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
give(struct document *d, int rc)
{
	struct call *const c = d->ask->call;

	if (rc && d->begun)
		call_break(c);
	else if (rc)
		ask_refuse(d->ask, rc, d->err.text);
	else if (d->begun)
		call_piece(c, d->last);
	else if (d->last)
		call_answer(c, 200, NULL, &c->out);
	else {
		d->begun = true;
		call_begin(c, 200, NULL);
	}
}

static void
run_on_file_thread(uv_work_t *work)
{
	struct document *const d = work->data;

	d->rc = produce(d, true);
}

static void
back_on_loop(uv_work_t *work, int status)
{
	struct document *const d = work->data;

	(void)status; /* nobody cancels it */
	give(d, d->rc);
}

static void
go(struct document *d)
{
	const int rc = produce(d, false);

	d->work.data = d;
	if (rc == SLU_EBUSY && uv_queue_work(loop_uv(call_loop(d->ask->call)), &d->work,
					     run_on_file_thread, back_on_loop) == 0)
		return;
	give(d, rc);
}

static void
more(struct call *c)
{
	const struct ask *const a = c->user;

	go(a->part);
}

static void
ended(struct call *c, bool sent)
{
	const struct ask *const a = c->user;
	struct document *const d = a->part;

	op_unpin(d->op);
	mem_free(d->room);
	d->ended(c, sent);
}

void
document_send(struct document *d)
{
	struct call *const c = d->ask->call;

	d->ask->part = d;
	d->ended = c->ended;
	c->ended = ended;
	c->more = more;
	go(d);
}
