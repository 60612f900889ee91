#include "api/handler.h"

#include "api/dialect.h"
#include "api/worker/workers.h"

#include <stdio.h>

/* --- the form of refusals ----------------------------------------------------- */

static void
refuse(struct exchange *x, const struct slu_err *err, int64_t index)
{
	dialect_refuse_err(call_of(x), err, index);
}

void
handler_lacks(struct exchange *x, const char *scope)
{
	char value[NAME_TEXT + 128];

	(void)snprintf(value, sizeof value, /* a name fits */
		       "Bearer realm=\"sluice\", error=\"insufficient_scope\", scope=\"%.*s\"", NAME_TEXT + 16,
		       scope);
	(void)call_add(call_of(x), "WWW-Authenticate", slice_of(value)); /* the status is enough */
}

static struct apicall_ids
ids(const struct exchange *x)
{
	const struct call *const c = CONTAINER(x, const struct call, x);

	return (struct apicall_ids){ call_added(c, "X-Request-Id"), call_added(c, "X-Correlation-Id") };
}

/* --- workers ------------------------------------------------------------------ */

/* A worker is in the namespace of the first op of its call. */
static struct worker_beat
beat_of(const struct apicall *a)
{
	const struct op *const op = &a->ops[0];
	struct worker_beat b = *a->worker;

	b.wall = clock_wall(a->api->clock);
	b.namespace = op->space;
	b.queue = op->queue;
	if (op->n_items && op->items[0].space.n) {
		b.namespace = op->items[0].space;
		b.queue = op->items[0].queue;
	}
	return b;
}

/* A register that is full, or without memory, does not stop the work: WORKERS-1. */
static void
beat(struct apicall *a)
{
	const struct worker_beat b = beat_of(a);
	enum worker_state state;

	if (b.namespace.n)
		(void)workers_beat(a->api->workers, &b, clock_mono(a->api->clock), &state, NULL);
}

static void
tell(struct apicall *a)
{
	const struct worker_beat b = beat_of(a);
	const enum worker_state state = workers_state(a->api->workers, b.namespace, b.name);

	(void)call_add(call_of(a->x), "Sluice-Worker", slice_of(worker_state_name(state))); /* the answer is fine without */
}

/* Copies the field: the head of the request is gone when the handler has returned. */
static bool
read_worker(struct apicall *a)
{
	const struct slice field = call_field(call_of(a->x), "sluice-worker");
	struct worker_beat *b;
	struct slu_err err;
	char *text;

	no_err(&err);
	if (!field.p)
		return true;
	b = arena_alloc(&a->memory, sizeof *b);
	text = arena_alloc(&a->memory, field.n + 1);
	if (!b || !text)
		return !apicall_refused(a, SLU_ENOMEM, NULL);
	memcpy(text, field.p, field.n);
	*b = (struct worker_beat){ 0 };
	if (apicall_refused(a, worker_field_read((struct slice){ text, field.n }, b, &err), err.text))
		return false;
	a->worker = b;
	return true;
}

static const struct apicall_form form = {
	.refuse = refuse,
	.lacks = handler_lacks,
	.ids = ids,
	.beat = beat,
	.tell = tell,
};

/* --- a request ---------------------------------------------------------------- */

struct apicall *
apicall_new(struct api *api, struct call *c)
{
	return apicall_open(api, &c->x, &(struct apicall_terms){
						.form = &form,
						.what = c->route->path,
						.needs = c->route->needs,
						.vital = c->route->vital,
					});
}

bool
apicall_params(struct apicall *a, const struct param *rows, size_t n, void *out)
{
	const struct slice query = call_of(a->x)->query;
	char *const room = arena_alloc(&a->memory, query.n);
	struct slu_err err;
	int rc = SLU_ENOMEM;

	no_err(&err);
	if (room)
		rc = params_query(rows, n, query, room, out, &err);
	return !apicall_refused(a, rc, err.text);
}

/* The same for the JSON object in the body. */
static bool
body_params(struct apicall *a, const struct param *rows, size_t n, void *out)
{
	const struct slice body = call_of(a->x)->body;
	char *const room = arena_array(&a->memory, body.n, 2);
	struct slu_err err;
	int rc = SLU_ENOMEM;

	no_err(&err);
	if (room)
		rc = params_json(rows, n, body, room, out, &err);
	return !apicall_refused(a, rc, err.text);
}

static bool
read_params(struct apicall *a, const struct handler *h)
{
	if (h->query)
		return apicall_params(a, h->query, h->n, a->state);
	if (h->body)
		return body_params(a, h->body, h->n, a->state);
	return !h->fields || call_of(a->x)->route->dialect->read_body(a, h->fields, h->n, a->state);
}

void
apicall_start(struct call *c, struct api *api, const struct handler *h)
{
	struct apicall *const a = apicall_new(api, c);

	if (!a || (h->state && !apicall_state(a, h->state)))
		return;
	a->arg = h->arg;
	if (c->route->worker && !read_worker(a))
		return;
	if (read_params(a, h))
		h->run(a);
}

void
apicall_handle(struct call *c, void *api)
{
	apicall_start(c, api, c->route->handler);
}

/* --- answers ------------------------------------------------------------------ */

/* What was asked for has happened, and it changed something. */
static bool
has_changed(const struct apicall *a)
{
	for (unsigned i = 0; i < a->n_ops; i++)
		if (a->ops[i].rc == 0 && op_is(a->ops[i].verb, OP_CHANGES))
			return true;
	return false;
}

void
apicall_reply_as(struct apicall *a, unsigned status, const char *type)
{
	if (a->x->out.failed && has_changed(a))
		apicall_refuse(a, SLU_EUNKNOWN, "done, but no memory for the answer");
	else if (a->x->out.failed)
		apicall_refuse(a, SLU_ENOMEM, NULL);
	else
		call_answer(call_of(a->x), status, type, &a->x->out);
}

void
apicall_reply(struct apicall *a, unsigned status)
{
	api_end_line(&a->x->out);
	apicall_reply_as(a, status, api_json);
}

void
apicall_object(struct apicall *a, struct json_out *w)
{
	json_out_open(w, &a->x->out);
}

void
apicall_reply_object(struct apicall *a, struct json_out *w, unsigned status)
{
	json_out_close(w);
	apicall_reply(a, status);
}
