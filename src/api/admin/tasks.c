/*
 * tasks.c - acts on many messages that the server does by itself (api/task/tasks.h): begin, list, show and cancel.
 *
 *      POST /v1/admin/task  {"namespace":"shop","queue":"orders","action":"redrive","error":"timeout","rate":100}
 *      {"task":"318497266802130944","namespace":"shop","queue":"orders","action":"redrive","state":"running",
 *       "filter":{"state":"dead","error":"timeout"},"rate":100,"dry_run":false,"total":9000,"looked":0,"matched":0,
 *       "done":0,"refused":0,"by":"alice","created_at":"..."}
 */
#include "api/admin/admin.h"

#include "api/audit/audit.h"
#include "api/flat/view.h"
#include "api/handler.h"
#include "api/task/tasks.h"

/* --- begin -------------------------------------------------------------------- */

struct begin {
	struct task_call call;
	struct slice action, state;
	uint64_t rate, stop_if_failing;
	slu_time delay, start_in; /* from now */
};

#define FIELD(text, how, member, ...) JSON_ROW(text, json_read_##how, struct begin, member, __VA_ARGS__)

static const struct json_field fields[] = {
	FIELD("namespace", name, call.space, .required = true),
	FIELD("queue", name, call.t.queue, .required = true, .also = { "topic", 5 }),
	FIELD("action", text, action, .required = true),
	FIELD("state", text, state),
	FIELD("to", name, call.t.to),
	FIELD("to_source", bool, call.t.to_source),
	FIELD("priority", priority, call.t.prio),
	FIELD("rate", u64, rate, .max = TASK_RATE_MAX),
	FIELD("stop_if_failing", u64, stop_if_failing, .max = UINT32_MAX),
	FIELD("dry_run", bool, call.t.dry_run),
	FIELD("delay", span, delay, .max = API_DELAY_MAX),
	FIELD("until", time, call.t.until),
	FIELD("start_in", span, start_in, .max = API_DELAY_MAX),
	ADMIN_FILTER_FIELDS(struct begin, call.t.filter),
};

/* By row of `fields`. */
enum {
	HAS_PRIORITY = 1 << 6,
	HAS_DELAY = 1 << 10,
	HAS_UNTIL = 1 << 11
};

static int
check_orders(const struct task *t, uint64_t given, struct slu_err *err)
{
	const bool delay = given & HAS_DELAY, until = given & HAS_UNTIL;

	if ((t->action == TASK_PRIORITY) == !(given & HAS_PRIORITY))
		return slu_fail(err, SLU_EINVAL, "priority: expected with the action priority, and only there");
	if (t->action == TASK_DELAY ? delay == until : delay || until)
		return slu_fail(err, SLU_EINVAL, "expected delay or until with the action delay, and only there");
	return 0;
}

static int
take_words(struct begin *b, uint64_t given, slu_time now, struct slu_err *err)
{
	struct task *const t = &b->call.t;
	int rc = task_action_parse(b->action, &t->action, err);

	if (!rc)
		rc = flat_view_only(b->state, &t->state, err);
	if (rc)
		return rc;
	t->rate = (uint32_t)b->rate;
	t->stop_if_failing = (uint32_t)b->stop_if_failing;
	if (given & HAS_DELAY)
		t->until = time_add(now, b->delay);
	if (b->start_in)
		t->start = time_add(now, b->start_in);
	rc = check_orders(t, given, err);
	return rc ? rc : task_check(t, err);
}

static int
decode(struct apicall *a, struct begin *b, struct slu_err *err)
{
	const struct slice body = call_of(a->x)->body;
	char *const room = arena_array(&a->memory, body.n + 1, 2);
	uint64_t given;
	struct json r;

	if (!room)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	json_init(&r, body, JSON_DEPTH);
	json_room(&r, room, 2 * body.n);
	given = json_fields(&r, fields, COUNT(fields), JSON_STRICT, b);
	return json_end(&r, NULL) ? json_explain(&r, -1, err) : take_words(b, given, clock_wall(a->api->clock), err);
}

static void
reply(struct apicall *a, const struct task_call *c)
{
	struct json_out w;

	apicall_object(a, &w);
	task_show(&w, c->space, &c->t);
	apicall_reply_object(a, &w, 200);
}

static void
audit(struct apicall *a, const struct task_call *c, const char *verb, int rc)
{
	char id[TASK_ID_TEXT];

	audit_named(a, verb, c->space, "task", slice_of(task_id_text(c->t.id, id)), rc);
}

static void
begun(struct apicall *a, int rc, const struct slu_err *err)
{
	const struct task_call *const c = a->part;

	audit(a, c, "task_begin", rc);
	if (rc)
		apicall_refuse_err(a, err, -1);
	else
		reply(a, c);
}

static void
begin(struct apicall *a)
{
	struct begin *const b = a->state;
	struct slu_err err = { 0 };

	if (!apicall_refused(a, decode(a, b, &err), err.text))
		tasks_begin(a, &b->call, begun);
}

/* --- show, cancel ------------------------------------------------------------- */

struct one_task {
	struct task_call call;
	struct slice namespace;
	uint64_t task;
};

static const struct param one_params[] = {
	PARAM(name, struct one_task, namespace, .required = true),
	PARAM(number, struct one_task, task, .required = true),
};

static void
found(struct apicall *a, int rc, const struct slu_err *err)
{
	const struct task_call *const c = a->part;

	if (c->cancels)
		audit(a, c, "task_cancel", rc);
	if (rc)
		apicall_refuse_err(a, err, -1);
	else
		reply(a, c);
}

static void
one(struct apicall *a)
{
	struct one_task *const o = a->state;

	o->call.space = o->namespace;
	o->call.t.id = o->task;
	if (a->arg)
		tasks_cancel(a, &o->call, found);
	else
		tasks_get(a, &o->call, found);
}

/* --- list --------------------------------------------------------------------- */

struct many {
	struct task_list list;
	struct slice namespace, queue;
};

static const struct param many_params[] = {
	PARAM(name, struct many, namespace, .required = true),
	PARAM(name, struct many, queue, .also = "topic"),
};

static void
listed(struct apicall *a, int rc, const struct slu_err *err)
{
	const struct many *const s = a->state;
	struct json_out w;

	if (rc) {
		apicall_refuse_err(a, err, -1);
		return;
	}
	apicall_object(a, &w);
	json_out_array(&w, "tasks");
	for (uint32_t i = 0; i < s->list.n; i++) {
		json_out_object(&w, NULL);
		task_show(&w, s->namespace, &s->list.tasks[i]);
		json_out_close(&w);
	}
	json_out_close(&w);
	apicall_reply_object(a, &w, 200);
}

static void
many(struct apicall *a)
{
	struct many *const s = a->state;

	s->list.space = s->namespace;
	s->list.queue = s->queue;
	tasks_list(a, &s->list, listed);
}

/* clang-format off */
const struct handler admin_tasks = { many, sizeof(struct many), QUERY_ROWS(many_params) };
const struct handler admin_task = { one, sizeof(struct one_task), QUERY_ROWS(one_params) };
const struct handler admin_task_begin = { begin, sizeof(struct begin), .arg = 0 };
const struct handler admin_task_cancel = { one, sizeof(struct one_task), BODY_ROWS(one_params), .arg = 1 };
/* clang-format on */
