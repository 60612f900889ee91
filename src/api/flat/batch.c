/*
 * batch.c - /batches: a group of messages, and a message that begins when all of them have ended (engine/msgbatch.h).
 *
 *      POST /batches        {"namespace":"shop", "callback":{"queue":"mail", "text":"all sent"}, "timeout":"1h"}
 *      POST /batches/close  {"namespace":"shop", "id":...}        OP_FINISH ──> OP_GET
 *      GET  /batch          {"id":..., "uid":"...", "status":"closed", "members":3, "done":2, "failed":0, ...}
 *      GET  /batches        {"batches":[...], "cursor":"..."}
 */
#include "api/flat/flat.h"

#include "api/flat/enqueue.h"
#include "api/flat/page.h"
#include "api/flat/view.h"
#include "api/handler.h"
#include "api/limits.h"
#include "engine/engine.h"
#include "form/newbatch.h"

#include <stdio.h>

struct state {
	struct slice namespace;
	struct given_id id;
	struct op_row row;
	struct op_item item;
	bool closed; /* by this call */

	/* POST /batches */
	struct slice callback;
	slu_time deadline, timeout;
	struct op_put put;
	struct msgbatch b;

	/* GET /batches */
	uint64_t cursor;
	uint32_t limit;
	struct rows rows;
};

/* ---- A batch as JSON ---- */

static void
write_callback(struct json_out *w, const struct msgbatch *b)
{
	struct message m;

	if (!b->message.n || message_decode(b->message, &m, NULL))
		return;
	json_out_object(w, "callback");
	if (b->callback)
		flat_view_id(w, b->callback);
	flat_view_place(w, m.space, m.queue);
	json_out_close(w);
}

static void
write_batch(struct json_out *w, struct slice space, uint64_t id, const struct msgbatch *b)
{
	const uint32_t ended = b->done + b->failed;

	flat_view_id(w, id);
	json_out_str(w, "namespace", space);
	json_out_str(w, "status", slice_of(msgbatch_status(b)));
	json_out_u64(w, "members", b->members);
	json_out_u64(w, "done", b->done);
	json_out_u64(w, "failed", b->failed);
	json_out_u64(w, "pending", b->members > ended ? b->members - ended : 0);
	json_out_time(w, "created_at", b->created);
	if (b->deadline)
		json_out_time(w, "deadline", b->deadline);
	if (b->outcome != MSGBATCH_OPEN)
		json_out_time(w, "ended_at", b->ended);
	write_callback(w, b);
}

/* ---- One batch: show, close ---- */

static const struct param one_params[] = {
	PARAM(name, struct state, namespace, .required = true),
	PARAM(id, struct state, id, .required = true),
};

static void
refuse(struct apicall *a, const struct op *op)
{
	const struct state *const s = a->state;
	char text[NAME_TEXT + 80];

	if (s->closed) {
		apicall_refuse(a, SLU_EUNKNOWN, "the batch is closed, and cannot be shown now");
		return;
	}
	(void)snprintf(text, sizeof text, "namespace %.*s has no batch %llu", (int)s->namespace.n, s->namespace.p,
		       (unsigned long long)s->id.id);
	if (op->rc == SLU_ENOTFOUND)
		apicall_refuse(a, SLU_ENOTFOUND, text);
	else
		apicall_refuse_op(a, op);
}

/* The record is short and was written or read a moment ago: it is read on a file thread. */
static int
read_batch(struct apicall *a)
{
	struct state *const s = a->state;
	const struct op_row *const row = &s->row;
	char *const room = arena_alloc(&a->memory, row->record.size + 1);
	struct message m = { 0 };
	int rc = room ? engine_read(a->op.engine, &row->record, 0, row->record.size, room, true, NULL) : SLU_ENOMEM;

	if (!rc)
		rc = message_decode((struct slice){ room, row->record.size }, &m, NULL);
	if (!rc && m.terms.batch != MSGBATCH_SELF)
		rc = SLU_ENOTFOUND; /* an event */
	return rc ? rc : msgbatch_decode(m.payload, &s->b, NULL);
}

static void
show(struct apicall *a, int rc)
{
	const struct state *const s = a->state;
	const struct op none = { .rc = SLU_ENOTFOUND };
	struct json_out w;

	op_unpin(&a->op);
	if (rc == SLU_ENOTFOUND || (rc && s->closed)) {
		refuse(a, &none);
		return;
	}
	if (apicall_refused(a, rc, NULL))
		return;
	apicall_object(a, &w);
	write_batch(&w, s->namespace, s->id.id, &s->b);
	apicall_reply_object(a, &w, 200);
}

static void
loaded(struct apicall *a)
{
	if (a->op.rc)
		refuse(a, &a->op);
	else
		apicall_job(a, read_batch, show);
}

static void
load(struct apicall *a)
{
	struct state *const s = a->state;

	apicall_op(a, &a->op, OP_GET, s->namespace, SLICE(MSGBATCH_QUEUE));
	a->op.id = s->id.id;
	a->op.rows = &s->row;
	a->op.max_rows = 1;
	apicall_run(a, loaded);
}

/* The close has happened, even if the look at the batch fails. */
static void
closed(struct apicall *a)
{
	struct state *const s = a->state;

	if (a->op.rc) {
		refuse(a, &a->op);
		return;
	}
	s->closed = true;
	load(a);
}

static void
close_batch(struct apicall *a)
{
	struct state *const s = a->state;

	apicall_op(a, &a->op, OP_FINISH, s->namespace, SLICE(MSGBATCH_QUEUE));
	s->item = (struct op_item){ .id = s->id.id, .nack = true };
	a->op.items = &s->item;
	a->op.n_items = 1;
	apicall_run(a, closed);
}

/* ---- Create ---- */

enum {
	HAS_CALLBACK = 1 << 1,
	HAS_DEADLINE = 1 << 2,
	HAS_TIMEOUT = 1 << 3
};

static const struct json_field create_fields[] = {
	JSON_FIELD(name, struct state, namespace, .required = true),
	JSON_FIELD(object, struct state, callback, .max = MSGBATCH_CALLBACK_MAX),
	JSON_FIELD(time, struct state, deadline),
	JSON_FIELD(span, struct state, timeout, .min = SLU_SEC, .max = API_DELAY_MAX),
};

static int
take_callback(struct apicall *a, struct state *s, struct slu_err *err)
{
	struct form_puts e = { 0 };
	const int rc = form_puts_object(&e, &a->memory, s->callback, s->namespace, "callback", err);

	if (!rc && e.n > 1)
		return slu_fail(err, SLU_EINVAL, "callback: copy_to: a callback is one message; expected none");
	return rc ? rc : newbatch_callback(&s->b, e.puts, &a->memory, err);
}

static void
created(struct apicall *a)
{
	struct state *const s = a->state;
	struct json_out w;

	if (apicall_failed(a))
		return;
	apicall_object(a, &w);
	write_batch(&w, s->namespace, s->put.m.id, &s->b);
	apicall_reply_object(a, &w, 200);
}

/* Reads the body. */
static int
read_body(struct apicall *a, struct state *s, struct slu_err *err)
{
	const struct slice body = call_of(a->x)->body;
	char *const room = arena_alloc(&a->memory, body.n + 1);
	uint64_t given;
	struct json r;

	if (!room)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	json_init(&r, body, JSON_DEPTH);
	json_room(&r, room, body.n);
	given = json_fields(&r, create_fields, COUNT(create_fields), JSON_STRICT, s);
	if ((given & HAS_DEADLINE) && (given & HAS_TIMEOUT))
		json_fail(&r, SLU_EINVAL, NULL, "expected deadline or timeout, not both");
	if (json_end(&r, NULL))
		return json_explain(&r, -1, err);
	s->b.created = clock_wall(a->api->clock);
	s->b.deadline = s->timeout ? s->b.created + s->timeout : given & HAS_DEADLINE && s->deadline < 1 ? 1
													 : s->deadline;
	return given & HAS_CALLBACK ? take_callback(a, s, err) : 0;
}

static void
create(struct apicall *a)
{
	struct state *const s = a->state;
	struct slu_err err = { 0 };
	int rc = read_body(a, s, &err);

	if (!rc)
		rc = newbatch_put(&s->b, s->namespace, &a->memory, &s->put, &err);
	if (rc) {
		apicall_refuse(a, rc, err.text);
		return;
	}
	apicall_op(a, &a->op, OP_ENQUEUE, s->namespace, SLICE(MSGBATCH_QUEUE));
	a->op.puts = &s->put;
	a->op.n_puts = 1;
	apicall_run(a, created);
}

/* ---- List ---- */

static const struct param list_params[] = {
	PARAM(name, struct state, namespace, .required = true),
	PARAM_PAGE(struct state, API_PAGE_DEFAULT),
};

static void
write_row(struct json_out *w, const struct op_row *row, const struct message *m, struct slice error)
{
	struct msgbatch b;

	(void)error;
	if (m->terms.batch != MSGBATCH_SELF || msgbatch_decode(m->payload, &b, NULL))
		return;
	json_out_object(w, NULL);
	write_batch(w, m->space, row->id, &b);
	json_out_close(w);
}

static void
answer_list(struct apicall *a)
{
	struct state *const s = a->state;

	if (apicall_failed(a))
		return;
	s->rows = (struct rows){ .apicall = a, .op = &a->op, .write = write_row, .done = page_done };
	page_start(&s->rows, "batches");
}

static void
list(struct apicall *a)
{
	const struct state *const s = a->state;

	apicall_op(a, &a->op, OP_LIST, s->namespace, SLICE(MSGBATCH_QUEUE));
	a->op.cursor = s->cursor;
	apicall_run_rows(a, s->limit, answer_list);
}

const struct handler flat_batch = { load, sizeof(struct state), QUERY_ROWS(one_params) };
const struct handler flat_batch_close = { close_batch, sizeof(struct state), BODY_ROWS(one_params) };
const struct handler flat_batch_create = { create, sizeof(struct state), .n = 0 };
const struct handler flat_batches = { list, sizeof(struct state), QUERY_ROWS(list_params) };
