/*
 * flat_messages.c - GET /peek and GET /dlq: messages as they stand.
 *
 *      peek without state and id   OP_PEEK   ready ones in the order of hand-out
 *      peek with state             OP_LIST   `all`, or one state, page by page
 *      peek with id                OP_GET    one
 *      dlq                         OP_LIST   dead letters, oldest first
 */
#include "api/flat.h"

#include "api/flat_view.h"
#include "api/limits.h"
#include "api/stream.h"

struct state {
	struct slice namespace;
	struct slice topic;
	struct slice state;
	struct given_id id; /* 0: not asked for */
	uint64_t cursor;
	uint32_t limit;
	struct slice as;
	enum flat_as form; /* what `as` asks for */
	struct rows rows;
	struct stream stream;
};

static const struct param params[] = {
	PARAM(name, struct state, namespace, .required = true),
	PARAM(name, struct state, topic, .required = true, .also = "queue"),
	PARAM(count, struct state, limit, .min = 1, .max = API_PAGE_MAX),
	PARAM(number, struct state, cursor),
	PARAM(word, struct state, as),
	/* of peek alone */
	PARAM(word, struct state, state),
	PARAM(id, struct state, id),
};

enum {
	PEEK_PARAMS = sizeof params / sizeof params[0],
	DLQ_PARAMS = PEEK_PARAMS - 2
};

static void
write_row(struct json_out *w, const struct op_row *row, const struct message *m,
	  struct slice error)
{
	const struct rows *const r = CONTAINER(w, struct rows, w);
	const struct state *const s = r->ask->state;

	json_out_object(w, NULL);
	flat_view_message(w, row, m, error, r->bytes < API_PAYLOAD_BYTES ? s->form : FLAT_NOT_SHOWN);
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
written(struct ask *a, int rc)
{
	struct state *const s = a->state;

	if (rc) {
		ask_refuse(a, rc, NULL);
		return;
	}
	finish(&s->rows);
	ask_reply(a, 200);
}

static void
answer(struct ask *a)
{
	struct state *const s = a->state;

	if (a->op.rc) {
		ask_refuse_id(a, &a->op, s->id);
		return;
	}
	s->rows = (struct rows){
		.ask = a,
		.op = &a->op,
		.write = write_row,
		.done = written,
		.shows_damaged = true,
	};
	json_out_init(&s->rows.w, &a->call->out);
	json_out_object(&s->rows.w, NULL);
	json_out_array(&s->rows.w, "messages");
	s->stream = (struct stream){
		.rows = &s->rows,
		.finish = finish,
		.max_bytes = API_PAYLOAD_BYTES,
	};
	if (stream_is_needed(&a->op))
		stream_start(&s->stream);
	else
		rows_start(&s->rows);
}

static void
run(struct ask *a, struct state *s, enum op_verb verb, enum msg_state only)
{
	ask_op(a, &a->op, verb, s->namespace, s->topic);
	a->op.id = s->id.id;
	a->op.state = only;
	a->op.cursor = s->cursor;
	a->op.max_rows = verb == OP_GET ? 1 : s->limit;
	a->op.rows = arena_array(&a->memory, a->op.max_rows, sizeof *a->op.rows);
	if (a->op.rows)
		ask_run(a, answer);
	else
		ask_refuse(a, SLU_ENOMEM, NULL);
}

void
flat_peek(struct call *c, void *api)
{
	struct ask *const a = ask_new(api, c);
	struct state *const s = a ? ask_state(a, sizeof *s) : NULL;
	struct slu_err err = { 0 };
	enum msg_state only;

	if (!s)
		return;
	s->limit = API_CLAIM_DEFAULT;
	if (!ask_params(a, params, PEEK_PARAMS, s))
		return;
	if (flat_view_only(s->state, &only, &err) || flat_view_as(s->as, &s->form, &err))
		ask_refuse(a, err.code, err.text);
	else if (s->id.id)
		run(a, s, OP_GET, MSG_NONE);
	else
		run(a, s, s->state.n > 0 ? OP_LIST : OP_PEEK, only);
}

void
flat_dlq(struct call *c, void *api)
{
	struct ask *const a = ask_new(api, c);
	struct state *const s = a ? ask_state(a, sizeof *s) : NULL;
	struct slu_err err = { 0 };

	if (!s)
		return;
	s->limit = API_PAGE_DEFAULT;
	if (!ask_params(a, params, DLQ_PARAMS, s))
		return;
	if (flat_view_as(s->as, &s->form, &err))
		ask_refuse(a, err.code, err.text);
	else
		run(a, s, OP_LIST, MSG_DEAD);
}
