/*
 * result.c - POST /tasks/{id}/result and POST /tasks/batch/results.
 *
 *      read each result ──> look for its task ──> an ACK each, together, with the document of the finished task
 *
 * FAILED ends a task as COMPLETED does. An artifact with its content is shown as a data: URL.
 */
#include "api/codeq/result.h"

#include "api/codeq/create.h"
#include "api/codeq/webhook.h"
#include "api/limits.h"
#include "base/id.h"

/* --- read --------------------------------------------------------------------- */

static const struct json_field artifact_fields[] = {
	JSON_FIELD(text, struct codeq_artifact, name, .required = true),
	JSON_FIELD(text, struct codeq_artifact, url),
	JSON_ROW("contentBase64", json_read_text, struct codeq_artifact, content),
	JSON_ROW("contentType", json_read_text, struct codeq_artifact, type),
};

static void
read_artifacts(struct json *r, const struct json_field *f, void *place)
{
	struct codeq_outcome *const o = place;

	(void)f;
	json_array(r);
	while (json_element(r)) {
		if (o->n_artifacts == CODEQ_ARTIFACTS) {
			json_fail(r, SLU_EINVAL, NULL, "expected at most %d artifacts", CODEQ_ARTIFACTS);
			continue;
		}
		(void)json_fields(r, artifact_fields, COUNT(artifact_fields), JSON_LENIENT, &o->artifacts[o->n_artifacts++]);
	}
}

static const struct json_field fields[] = {
	JSON_ROW("taskId", json_read_text, struct codeq_outcome, task),
	JSON_FIELD(text, struct codeq_outcome, status, .required = true),
	JSON_FIELD(raw, struct codeq_outcome, result),
	JSON_FIELD(text, struct codeq_outcome, error),
	{ .name = { "artifacts", 9 }, .read = read_artifacts },
};

static int
check(const struct codeq_outcome *o, struct slu_err *err)
{
	const bool completed = slice_eq(o->status, SLICE("COMPLETED"));

	if (!completed && !slice_eq(o->status, SLICE("FAILED")))
		return slu_fail(err, SLU_EINVAL, "invalid status; expected COMPLETED or FAILED");
	if (completed && (o->result.n == 0 || o->result.p[0] != '{'))
		return slu_fail(err, SLU_EINVAL, "result: expected an object");
	if (!completed && o->error.n == 0)
		return slu_fail(err, SLU_EINVAL, "error: expected a text");
	for (unsigned i = 0; i < o->n_artifacts; i++)
		if (o->artifacts[i].url.n == 0 && o->artifacts[i].content.n == 0)
			return slu_fail(err, SLU_EINVAL, "artifacts: expected url or contentBase64");
	return 0;
}

int
codeq_outcome_parse(struct codeq_outcome *o, struct arena *a, struct slice text, struct slu_err *err)
{
	char *const room = arena_alloc(a, text.n + 1);
	struct json r;
	int rc;

	memset(o, 0, sizeof *o);
	if (!room)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	json_init(&r, text, JSON_DEPTH);
	json_room(&r, room, text.n + 1);
	(void)json_fields(&r, fields, COUNT(fields), JSON_LENIENT, o); /* absent members have their defaults */
	rc = json_end(&r, err);
	return rc ? rc : check(o, err);
}

/* --- the tasks ---------------------------------------------------------------- */

struct result_item {
	struct codeq_outcome outcome;
	struct codeq_task task;
	struct op *op; /* NULL: refused before */
	struct op_item ack;
	struct op_put webhook;
	bool calls; /* webhook */
	slu_time at;
	unsigned status;    /* of the refusal; 0: none */
	struct slu_err err; /* its text */
};

struct state {
	struct result_item **items;
	unsigned n, at;
	bool batch, bare;
	struct apicall *apicall;
};

static void
fail(struct result_item *item, unsigned status, const char *text)
{
	item->status = status;
	(void)slu_fail(&item->err, SLU_EINVAL, "%s", text);
}

static void
add_item(void *arg, struct slice text)
{
	struct state *const s = arg;
	struct result_item *const item = arena_alloc(&s->apicall->memory, sizeof *item);
	struct slu_err err = { 0 };
	int rc;

	if (!item)
		return;
	memset(item, 0, sizeof *item);
	s->items[s->n++] = item;
	rc = codeq_outcome_parse(&item->outcome, &s->apicall->memory, text, &err);
	if (rc)
		fail(item, codeq_status(rc), err.text);
}

/* --- the document ------------------------------------------------------------- */

static void
write_url(struct json_out *w, struct arena *memory, const struct codeq_artifact *f)
{
	static const struct slice standard = SLICE("application/octet-stream");
	const struct slice type = f->type.n ? f->type : standard;
	const size_t n = 5 + type.n + 8 + f->content.n;
	char *p;

	if (f->url.n > 0) {
		json_out_str(w, "url", f->url);
		return;
	}
	p = arena_alloc(memory, n);
	if (!p) {
		w->b->failed = true;
		return;
	}
	memcpy(p, "data:", 5);
	memcpy(p + 5, type.p, type.n);
	memcpy(p + 5 + type.n, ";base64,", 8);
	memcpy(p + 13 + type.n, f->content.p, f->content.n);
	json_out_str(w, "url", (struct slice){ p, n });
}

/* Members of the record of a result, and of the body of its webhook. */
static void
write_outcome(struct json_out *w, struct arena *memory, const struct result_item *item)
{
	const struct codeq_outcome *const o = &item->outcome;

	if (o->result.n)
		json_out_raw(w, "result", o->result);
	if (o->error.n)
		json_out_str(w, "error", o->error);
	if (o->n_artifacts) {
		json_out_array(w, "artifacts");
		for (unsigned i = 0; i < o->n_artifacts; i++) {
			json_out_object(w, NULL);
			json_out_str(w, "name", o->artifacts[i].name);
			write_url(w, memory, &o->artifacts[i]);
			json_out_close(w);
		}
		json_out_close(w);
	}
	json_out_time(w, "completedAt", item->at);
}

static void
write_record(struct json_out *w, const char *name, struct arena *memory, const struct result_item *item)
{
	char uuid[ID_UUID_TEXT];

	json_out_object(w, name);
	json_out_plain(w, "taskId", slice_of(id_to_uuid(item->task.id, uuid)));
	json_out_str(w, "status", item->outcome.status);
	write_outcome(w, memory, item);
	json_out_close(w);
}

/* The webhook of a task that ends. */
static void
make_webhook(struct apicall *a, struct result_item *item)
{
	const bool completed = slice_eq(item->outcome.status, SLICE("COMPLETED"));
	struct slice body;
	struct json_out w;
	struct buf b;

	buf_init(&b, API_RESULT_MAX);
	codeq_webhook_open(a, &w, &b, &item->task, completed ? "COMPLETED" : "FAILED");
	write_outcome(&w, &a->memory, item);
	json_out_close(&w);
	body = arena_take(&a->memory, &b);
	item->calls = codeq_webhook_put(a, &item->task, body, &item->webhook);
}

/* n 0: larger than a result may be. */
static struct slice
document(struct apicall *a, const struct result_item *item, bool with_payload)
{
	const struct codeq_task *const t = &item->task;
	const struct codeq_view view = {
		.row = &t->row,
		.m = &t->m,
		.payload = t->payload,
		.owner = t->owner,
		.error = item->outcome.error,
		.status = slice_eq(item->outcome.status, SLICE("COMPLETED")) ? "COMPLETED" : "FAILED",
		.updated = item->at,
		.without_payload = !with_payload,
	};
	struct json_out w;
	struct buf b;

	buf_init(&b, API_RESULT_MAX);
	json_out_open(&w, &b);
	codeq_task_write(&w, "task", &a->memory, &view);
	write_record(&w, "result", &a->memory, item);
	json_out_close(&w);
	return arena_take(&a->memory, &b);
}

/* --- answer ------------------------------------------------------------------- */

static void
answer_batch(struct apicall *a, const struct state *s)
{
	struct json_out w;

	json_out_init(&w, &a->x->out);
	if (!s->bare)
		json_out_object(&w, NULL);
	json_out_array(&w, s->bare ? NULL : "results");
	for (unsigned i = 0; i < s->n; i++) {
		const struct result_item *const item = s->items[i];

		json_out_object(&w, NULL);
		json_out_str(&w, "taskId", item->outcome.task);
		if (item->status)
			json_out_str(&w, "error", slice_of(item->err.text));
		else
			write_record(&w, "result", &a->memory, item);
		json_out_close(&w);
	}
	json_out_close(&w);
	if (!s->bare)
		json_out_close(&w);
	apicall_reply(a, 200);
}

static void
answer(struct apicall *a)
{
	const struct state *const s = codeq_of(a)->own;
	struct json_out w;

	if (s->batch) {
		answer_batch(a, s);
		return;
	}
	if (s->items[0]->status) {
		codeq_refuse(a, s->items[0]->status, "%s", s->items[0]->err.text);
		return;
	}
	json_out_init(&w, &a->x->out);
	write_record(&w, NULL, &a->memory, s->items[0]);
	apicall_reply(a, 200);
}

static void
acked(struct apicall *a)
{
	struct state *const s = codeq_of(a)->own;

	for (unsigned i = 0; i < s->n; i++) {
		struct result_item *const item = s->items[i];
		const int rc = !item->op ? 0 : item->op->rc ? item->op->rc
							    : item->ack.rc;

		if (item->calls && !rc)
			codeq_webhook_kick(a);
		if (rc == SLU_ELEASE || rc == SLU_ENOTFOUND) /* CODEQ-3 */
			fail(item, 409, "not-in-progress");
		else if (rc)
			fail(item, codeq_status(rc), apicall_err_of(item->op).text);
	}
	answer(a);
}

/* --- run ---------------------------------------------------------------------- */

static void
begin_ack(struct apicall *a, struct result_item *item, struct op *op)
{
	struct slice text;

	item->at = clock_wall(a->api->clock);
	text = document(a, item, true);
	if (text.n == 0)
		text = document(a, item, false);
	if (text.n == 0) {
		fail(item, 413, "the result has more than 1 MiB");
		return;
	}
	item->op = op;
	item->ack = (struct op_item){ .id = item->task.id, .token = item->task.row.token, .text = text };
	apicall_op(a, op, OP_ACK, codeq_space(a), item->task.m.queue);
	op->items = &item->ack;
	op->n_items = 1;
}

/* A webhook is one step with the end of its task. */
static void
add_webhooks(struct apicall *a, const struct state *s)
{
	for (unsigned i = 0; i < s->n; i++) {
		struct result_item *const item = s->items[i];

		if (!item->op)
			continue;
		make_webhook(a, item);
		if (!item->calls)
			continue;
		op_make_finish(item->op);
		item->op->puts = &item->webhook;
		item->op->n_puts = 1;
	}
}

static void
ack(struct apicall *a)
{
	struct state *const s = codeq_of(a)->own;
	struct op *const ops = arena_array(&a->memory, s->n, sizeof *ops);
	unsigned n = 0;

	if (!ops) {
		apicall_refuse(a, SLU_ENOMEM, NULL);
		return;
	}
	for (unsigned i = 0; i < s->n; i++) {
		if (!s->items[i]->status)
			begin_ack(a, s->items[i], &ops[n]);
		n += s->items[i]->op != NULL;
	}
	if (n == 0) {
		answer(a);
		return;
	}
	a->ops = ops;
	a->n_ops = n;
	if (apicall_pass(a)) { /* before the puts: no caller has rights in their namespace */
		add_webhooks(a, s);
		apicall_run(a, acked);
	}
}

static void find_next(struct apicall *a);

static void
found(struct apicall *a)
{
	struct state *const s = codeq_of(a)->own;
	struct result_item *const item = s->items[s->at++];
	const char *why;
	const unsigned status = codeq_may_settle(a, &item->task, &why);

	if (status)
		fail(item, status, status == 404 ? "task not found" : why);
	find_next(a);
}

static void
find_next(struct apicall *a)
{
	struct state *const s = codeq_of(a)->own;

	while (s->at < s->n && s->items[s->at]->status)
		s->at++;
	if (s->at < s->n)
		codeq_find(&s->items[s->at]->task, a, s->items[s->at]->outcome.task, found);
	else
		ack(a);
}

static void
start(struct apicall *a, bool batch)
{
	struct state *const s = codeq_of(a)->own;
	const struct slice body = call_of(a->x)->body;
	struct slu_err err = { 0 };
	int rc = 0;

	s->apicall = a;
	s->batch = batch;
	s->items = arena_array(&a->memory, CODEQ_BATCH, sizeof *s->items);
	if (s->items && batch)
		rc = codeq_batch_parse(body, "results", &s->bare, add_item, s, &err);
	else if (s->items)
		add_item(s, body);
	if (rc || !s->items || s->n == 0) {
		codeq_refuse_rc(a, rc ? rc : SLU_ENOMEM, err.text);
		return;
	}
	if (!batch)
		s->items[0]->outcome.task = codeq_copy(a, codeq_rest(a));
	find_next(a);
}

static void
result(struct apicall *a)
{
	start(a, false);
}

static void
result_batch(struct apicall *a)
{
	start(a, true);
}

const struct codeq_action codeq_result = { result, sizeof(struct state), CODEQ_WORKER, CODEQ_RESULT };
const struct codeq_action codeq_result_batch = { result_batch, sizeof(struct state), CODEQ_WORKER, CODEQ_RESULT };
