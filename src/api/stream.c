#include "api/stream.h"

#include "api/aside.h"
#include "base/mem.h"
#include "engine/engine.h"

/* In the record, but too large to be read as a whole. */
static bool
is_long(const struct op *op, const struct op_row *row)
{
	return !op->engine->ops->files && row->record.size > STREAM_LARGE;
}

bool
stream_is_needed(const struct op *op)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < op->n_rows; i++) {
		bytes += op->rows[i].record.size;
		if (op->rows[i].payload.pin || is_long(op, &op->rows[i]) || bytes > STREAM_PIECE)
			return true;
	}
	return false;
}

static struct buf *
out_of(const struct stream *s)
{
	return &s->rows->ask->call->out;
}

/* --- a row -------------------------------------------------------------------- */

static void
take_back(struct stream *s)
{
	s->rows->w = s->before;
	out_of(s)->n = s->before_n;
	s->ref = NULL;
}

/* The head of a record whose payload is not to be read with it. */
static int
read_head(struct rows *r, const struct op_row *row, bool may_block, struct message *m,
	  struct slu_err *err)
{
	const size_t most = MESSAGE_FIXED + 2 + 4 * MESSAGE_NAME_MAX + 2 * MESSAGE_KEY_MAX +
			    MESSAGE_ATTRIBUTES_MAX + MESSAGE_TRACE_MAX;
	const size_t n = row->record.size < most ? row->record.size : most;
	int rc;

	rc = rows_room(r, n);
	if (!rc)
		rc = engine_read(r->op->engine, &row->record, 0, n, r->room, may_block, err);
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
		rc = read_head(r, row, may_block, m, err);
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

/* As it is, to where it is sent from. */
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
		aside(r->ask, r->op, &r->op->rows[r->at], err);
		return false;
	}
	take_back(s);
	rows_damaged(r, err);
	r->at++;
	return true;
}

/* All rows were left out, and somebody may have others. */
static bool
has_none(const struct stream *s)
{
	return s->drained && !s->begun && out_of(s)->n == 0;
}

/* Fill a piece. SLU_EBUSY: it would have to wait; what is there stays. */
static int
produce(struct stream *s, bool may_block)
{
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
stream_ended(struct call *c, bool sent)
{
	const struct ask *const a = c->user;
	struct stream *const s = a->part;

	if (c->drained)
		s->sent = s->rows->at;
	op_unpin(s->rows->op); /* T1 */
	mem_free(s->rows->room);
	mem_free(s->rows->near);
	mem_free(s->piece);
	s->ended(c, sent);
}

static void
refuse(struct stream *s, int rc)
{
	struct ask *const a = s->rows->ask;

	if (s->begun)
		call_break(a->call); /* T2 */
	else
		ask_refuse(a, rc, NULL);
}

/* On the loop, with a piece or without. */
static void
give(struct stream *s, int rc)
{
	struct ask *const a = s->rows->ask;
	struct call *const c = a->call;
	const char *const type = s->type ? s->type : api_json;

	s->in_piece = false;
	s->whole = s->last && !rc && !c->out.failed;
	if (rc || c->out.failed) {
		refuse(s, rc ? rc : SLU_ENOMEM);
	} else if (c->out.n == 0 && !s->last) {
		s->drained(s); /* all were left out */
	} else if (s->begun) {
		call_piece(c, s->last);
	} else if (s->last) {
		call_answer(c, 200, type, &c->out);
	} else {
		s->begun = true;
		call_begin(c, 200, type);
	}
}

static void
run_on_file_thread(uv_work_t *work)
{
	struct stream *const s = work->data;

	s->rc = produce(s, true);
}

static void
back_on_loop(uv_work_t *work, int status)
{
	struct stream *const s = work->data;

	(void)status; /* nobody cancels it */
	give(s, s->rc);
}

static void
go(struct stream *s)
{
	int rc;

	rc = produce(s, false);
	s->work.data = s;
	if (rc == SLU_EBUSY &&
	    uv_queue_work(loop_uv(call_loop(s->rows->ask->call)), &s->work, run_on_file_thread,
			  back_on_loop) == 0)
		return;
	give(s, rc);
}

static void
more(struct call *c)
{
	const struct ask *const a = c->user;
	struct stream *const s = a->part;

	s->sent = s->rows->at;
	if (!s->stays || s->sent < s->rows->op->n_rows) {
		go(s);
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
	go(s);
}

void
stream_finish(struct stream *s)
{
	s->stays = false;
	s->drained = NULL;
	stream_next(s);
}

/* There is nothing to tell: `ended` says it. */
static void
gone(struct call *c)
{
	(void)c;
}

void
stream_start(struct stream *s)
{
	struct rows *const r = s->rows;
	struct call *const c = r->ask->call;

	r->at = 0;
	r->bytes = 0;
	r->room = NULL;
	r->room_size = 0;
	r->near = NULL;
	r->near_end = 0;
	r->ask->part = s;
	s->ended = c->ended;
	c->ended = stream_ended;
	c->more = more;
	if (s->wants_client && !c->gone)
		c->gone = gone;
	go(s);
}
