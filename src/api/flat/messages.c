/*
 * messages.c - GET /peek and GET /dlq: messages without a claim.
 *
 *      peek without state and id   OP_PEEK   ready ones in the order of delivery
 *      peek with state             OP_LIST   `all`, or one state, page by page
 *      peek with id                OP_GET    one
 *      dlq                         OP_LIST   dead letters, oldest first
 */
#include "api/flat/flat.h"

#include "api/flat/view.h"
#include "api/handler.h"
#include "api/limits.h"
#include "api/stream.h"

struct state {
	struct slice namespace;
	struct slice queue;
	struct slice state;
	struct given_id id; /* 0: no condition */
	uint64_t cursor;
	uint32_t limit;
	struct slice as;
	enum flat_as form; /* the form that `as` names */
	struct rows rows;
	struct stream stream;
};

static const struct param dlq_params[] = {
	PARAM_QUEUE(struct state),
	PARAM_PAGE(struct state, API_PAGE_DEFAULT),
	PARAM(word, struct state, as),
};

static const struct param peek_params[] = {
	PARAM_QUEUE(struct state),
	PARAM_PAGE(struct state, API_CLAIM_DEFAULT),
	PARAM(word, struct state, as),
	PARAM(word, struct state, state),
	PARAM(id, struct state, id),
};

static void
write_row(struct json_out *w, const struct op_row *row, const struct message *m,
	  struct slice error)
{
	struct rows *const r = CONTAINER(w, struct rows, w);
	const struct state *const s = r->apicall->state;

	json_out_object(w, NULL);
	flat_view_message(w, row, m, error, r->bytes < API_PAYLOAD_BYTES ? s->form : FLAT_NOT_SHOWN);
	rows_write_masked(r);
	json_out_close(w);
}

static void
finish(struct rows *r)
{
	struct json_out *const w = &r->w;

	json_out_close(w);
	flat_view_cursor(w, r->op->verb == OP_LIST ? r->op->cursor : 0);
	json_out_close(w);
}

static void
written(struct apicall *a, int rc)
{
	struct state *const s = a->state;

	if (apicall_refused(a, rc, NULL))
		return;
	finish(&s->rows);
	apicall_reply(a, 200);
}

static void
answer(struct apicall *a)
{
	struct state *const s = a->state;

	if (a->op.rc) {
		apicall_refuse_id(a, &a->op, s->id);
		return;
	}
	s->rows = (struct rows){
		.apicall = a,
		.op = &a->op,
		.write = write_row,
		.done = written,
		.shows_damaged = true,
	};
	rows_hide(&s->rows, s->namespace, false);
	json_out_open(&s->rows.w, &a->x->out);
	json_out_array(&s->rows.w, "messages");
	s->stream = (struct stream){
		.rows = &s->rows,
		.finish = finish,
		.max_bytes = API_PAYLOAD_BYTES,
	};
	if (!s->rows.mask && stream_is_needed(&a->op)) /* MASK-3 */
		stream_start(&s->stream);
	else
		rows_start(&s->rows);
}

static void
run(struct apicall *a, struct state *s, enum op_verb verb, enum msg_state only)
{
	apicall_op(a, &a->op, verb, s->namespace, s->queue);
	a->op.id = s->id.id;
	a->op.state = only;
	a->op.cursor = s->cursor;
	apicall_run_rows(a, verb == OP_GET ? 1 : s->limit, answer);
}

static void
peek(struct apicall *a)
{
	struct state *const s = a->state;
	struct slu_err err = { 0 };
	enum msg_state only;

	if (flat_view_only(s->state, &only, &err) || flat_view_as(s->as, &s->form, &err))
		apicall_refuse(a, err.code, err.text);
	else if (s->id.id)
		run(a, s, OP_GET, MSG_NONE);
	else
		run(a, s, s->state.n > 0 ? OP_LIST : OP_PEEK, only);
}

static void
dlq(struct apicall *a)
{
	struct state *const s = a->state;
	struct slu_err err = { 0 };

	if (flat_view_as(s->as, &s->form, &err))
		apicall_refuse(a, err.code, err.text);
	else
		run(a, s, OP_LIST, MSG_DEAD);
}

const struct handler flat_peek = { peek, sizeof(struct state), QUERY_ROWS(peek_params) };
const struct handler flat_dlq = { dlq, sizeof(struct state), QUERY_ROWS(dlq_params) };
