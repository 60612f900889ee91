#include "api/stream.h"

#include "api/handler.h"
#include "api/quarantine.h"
#include "base/mem.h"
#include "engine/engine.h"

/* Is the payload in the record, and the record too large to be read as a whole? */
static bool
is_long(const struct op *op, const struct op_row *row)
{
	return !op->engine->ops->files && row->record.size > STREAM_LARGE;
}

bool
stream_has_long(const struct op *op)
{
	for (uint32_t i = 0; i < op->n_rows; i++)
		if (op->rows[i].payload.pin || is_long(op, &op->rows[i]))
			return true;
	return false;
}

bool
stream_is_needed(const struct op *op)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < op->n_rows; i++)
		bytes += op->rows[i].record.size;
	return bytes > STREAM_PIECE || stream_has_long(op);
}

static struct buf *
out_of(const struct stream *s)
{
	return &s->rows->apicall->x->out;
}

/* --- a row -------------------------------------------------------------------- */

static void
take_back(struct stream *s)
{
	s->rows->w = s->before;
	out_of(s)->n = s->before_n;
	s->ref = NULL;
}

/* Reads the head of a record without its payload, and what belongs behind it. */
static int
read_head(struct rows *r, const struct op_row *row, bool may_block, struct message *m, struct slice *error,
	  struct slu_err *err)
{
	const size_t most = MESSAGE_FIXED + 4 + 4 * MESSAGE_NAME_MAX + 2 * MESSAGE_KEY_MAX +
			    MESSAGE_ATTRIBUTES_MAX + MESSAGE_TRACE_MAX + MESSAGE_FIELDS_MAX;
	const size_t n = row->record.size < most ? row->record.size : most;
	int rc;

	rc = rows_room(r, n + rows_size_behind(r));
	if (!rc)
		rc = engine_read(r->op->engine, &row->record, 0, n, r->room, may_block, err);
	if (!rc)
		rc = rows_read_behind(r, r->room + n, may_block, error, err);
	return rc ? rc : message_decode_head((struct slice){ r->room, n }, m, err);
}

static int
read_row(struct stream *s, bool may_block, struct message *m, struct slice *error,
	 struct slu_err *err)
{
	struct rows *const r = s->rows;
	const struct op_row *const row = &r->op->rows[r->at];
	int rc;

	*error = (struct slice){ 0 };
	if (!is_long(r->op, row))
		rc = rows_read(r, may_block, m, error, err);
	else
		rc = read_head(r, row, may_block, m, error, err);
	if (rc)
		return rc;
	s->ref = NULL;
	if (row->payload.pin)
		s->ref = &row->payload;
	else if (is_long(r->op, row))
		s->ref = &row->record;
	s->base = row->payload.pin ? 0 : message_head(m);
	s->at = s->base;
	s->end = s->base + m->payload_size;
	return 0;
}

static int
begin_row(struct stream *s, bool may_block, struct slu_err *err)
{
	struct rows *const r = s->rows;
	const struct op_row *const row = &r->op->rows[r->at];
	struct slice error;
	struct message m;
	int rc;

	s->before = r->w;
	s->before_n = out_of(s)->n;
	s->in_piece = true;
	rc = read_row(s, may_block, &m, &error, err);
	if (rc)
		return rc;
	if ((s->max_bytes && r->bytes >= s->max_bytes) || row->state == MSG_DAMAGED)
		s->ref = NULL;
	r->write(&r->w, row, &m, error);
	r->bytes += row->record.size + (s->ref ? m.payload_size : 0);
	if (!s->ref) {
		r->at++;
		return 0;
	}
	if (s->raw)
		return 0;
	json_out_reopen(&r->w);
	json_out_base64_begin(&r->w, "payload");
	return 0;
}

static void
end_payload(struct stream *s)
{
	if (!s->raw) {
		json_out_base64_end(&s->rows->w);
		json_out_close(&s->rows->w);
	}
	s->ref = NULL;
	s->rows->at++;
}

/* Appends payload bytes to the output as they are. */
static int
read_raw(struct stream *s, size_t n, bool may_block, struct slu_err *err)
{
	char *const p = buf_add(out_of(s), n);
	int rc;

	if (!p)
		return SLU_ENOMEM;
	rc = engine_read(s->rows->op->engine, s->ref, s->at, n, p, may_block, err);
	if (rc)
		out_of(s)->n -= n;
	return rc;
}

static int
read_encoded(struct stream *s, size_t n, bool may_block, struct slu_err *err)
{
	struct rows *const r = s->rows;
	int rc;

	if (!s->piece)
		s->piece = mem_alloc(ENGINE_PIECE);
	if (!s->piece)
		return SLU_ENOMEM;
	rc = engine_read(r->op->engine, s->ref, s->at, n, s->piece, may_block, err);
	if (!rc)
		json_out_base64_part(&r->w, (struct slice){ s->piece, n });
	return rc;
}

static int
go_on(struct stream *s, bool may_block, struct slu_err *err)
{
	const uint64_t left = s->end - s->at;
	const size_t n = left < ENGINE_PIECE ? (size_t)left : ENGINE_PIECE;
	int rc;

	rc = s->raw ? read_raw(s, n, may_block, err) : read_encoded(s, n, may_block, err);
	if (rc)
		return rc;
	s->at += n;
	if (s->at == s->end)
		end_payload(s);
	return 0;
}

/* Damage that can still be kept quiet: the row is left out, or shown without what cannot
 * be read. */
static bool
can_leave_out(struct stream *s, int rc, const struct slu_err *err)
{
	struct rows *const r = s->rows;

	if (rc != SLU_ECORRUPT)
		return false;
	if (!s->in_piece) { /* the middle of it is sent */
		quarantine(r->apicall, r->op, &r->op->rows[r->at], err);
		return false;
	}
	take_back(s);
	rows_damaged(r, err);
	r->at++;
	return true;
}

/* All rows were left out, and more may come. */
static bool
has_none(const struct stream *s)
{
	return s->drained && !s->begun && out_of(s)->n == 0;
}

/* Fills a piece. Returns SLU_EBUSY if a read would block; the bytes so far stay. */
static int
produce(struct apicall *a, bool may_block)
{
	struct stream *const s = a->part;
	struct rows *const r = s->rows;

	while (r->at < r->op->n_rows && out_of(s)->n < STREAM_PIECE) {
		struct slu_err err = { 0 };
		const int rc = s->ref ? go_on(s, may_block, &err)
				      : begin_row(s, may_block, &err);

		if (rc && !can_leave_out(s, rc, &err))
			return rc;
	}
	if (r->at == r->op->n_rows && !s->last && !s->stays && !has_none(s)) {
		s->last = true;
		s->finish(r);
		if (!s->type)
			api_end_line(out_of(s));
	}
	return 0;
}

/* --- pieces ------------------------------------------------------------------- */

static void
stream_ended(struct exchange *x, bool sent)
{
	const struct apicall *const a = x->user;
	struct stream *const s = a->part;

	s->cut |= x->touched && !x->drained;
	if (x->drained)
		s->sent = s->rows->at;
	op_unpin(s->rows->op); /* STREAM-1 */
	mem_free(s->rows->room);
	mem_free(s->rows->near);
	mem_free(s->piece);
	s->ended(x, sent);
}

static void
refuse(struct stream *s, int rc)
{
	struct apicall *const a = s->rows->apicall;

	if (s->begun)
		exchange_break(a->x); /* STREAM-2 */
	else
		apicall_refuse(a, rc, NULL);
}

/* Sends the piece, or handles the error rc. Runs on the loop. */
static void
give(struct apicall *a, int rc)
{
	struct stream *const s = a->part;
	struct call *const c = call_of(a->x);
	const char *const type = s->type ? s->type : api_json;

	s->in_piece = false;
	s->whole = s->last && !rc && !c->x.out.failed;
	if (rc || c->x.out.failed) {
		refuse(s, rc ? rc : SLU_ENOMEM);
	} else if (c->x.out.n == 0 && !s->last) {
		s->drained(s); /* all were left out */
	} else if (s->begun) {
		exchange_piece(&c->x, s->last);
	} else if (s->last) {
		call_answer(c, 200, type, &c->x.out);
	} else {
		s->begun = true;
		call_begin(c, 200, type);
	}
}

static void
more(struct exchange *x)
{
	struct apicall *const a = x->user;
	struct stream *const s = a->part;

	s->sent = s->rows->at;
	s->cut = s->ref != NULL;
	if (!s->stays || s->sent < s->rows->op->n_rows) {
		apicall_try(a, produce, give);
		return;
	}
	op_unpin(s->rows->op);
	s->drained(s);
}

void
stream_next(struct stream *s)
{
	s->rows->at = 0;
	s->rows->near_end = 0;
	s->rows->bytes = 0;
	s->sent = 0;
	apicall_try(s->rows->apicall, produce, give);
}

void
stream_finish(struct stream *s)
{
	s->stays = false;
	s->drained = NULL;
	stream_next(s);
}

/* Nothing to do: `ended` does all the work. */
static void
gone(struct exchange *x)
{
	(void)x;
}

void
stream_start(struct stream *s)
{
	struct rows *const r = s->rows;
	struct call *const c = call_of(r->apicall->x);

	r->at = 0;
	r->bytes = 0;
	r->room = NULL;
	r->room_size = 0;
	r->near = NULL;
	r->near_end = 0;
	r->apicall->part = s;
	s->ended = c->x.ended;
	c->x.ended = stream_ended;
	c->x.more = more;
	if (s->wants_client && !c->x.gone)
		c->x.gone = gone;
	apicall_try(r->apicall, produce, give);
}
