/*
 * create.c - POST /tasks and POST /tasks/batch.
 *
 *      read each task ──> the facts of its topic ──> an ENQUEUE each, together ──> of a known idempotency key: the first task
 *
 * A task of a batch that is refused does not spoil the others.
 */
#include "api/codeq/create.h"

#include "api/codeq/subscribe.h"
#include "api/codeq/subscribers.h"
#include "api/codeq/topic.h"
#include "api/limits.h"
#include "base/id.h"
#include "core/trace.h"
#include "engine/payload.h"

#include <stdio.h>

/* --- read --------------------------------------------------------------------- */

static const struct json_field fields[] = {
	JSON_FIELD(text, struct codeq_new, command, .required = true),
	JSON_FIELD(raw, struct codeq_new, payload, .required = true),
	JSON_FIELD(i64, struct codeq_new, priority),
	JSON_FIELD(text, struct codeq_new, webhook, .max = CODEQ_WEBHOOK),
	JSON_ROW("maxAttempts", json_read_i64, struct codeq_new, max_attempts),
	JSON_ROW("idempotencyKey", json_read_text, struct codeq_new, idem),
	JSON_ROW("runAt", json_read_time, struct codeq_new, run_at),
	JSON_ROW("delaySeconds", json_read_i64, struct codeq_new, delay, .min = 0, .max = API_DELAY_MAX / SLU_SEC),
};

static bool
is_address(struct slice s)
{
	return slice_skip_past(&s, "://") && s.n > 0;
}

int
codeq_check_address(struct slice s, const char *what, struct slu_err *err)
{
	const bool http = s.n > 7 && memcmp(s.p, "http://", 7) == 0, https = s.n > 8 && memcmp(s.p, "https://", 8) == 0;

	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= ' ' || s.p[i] > '~')
			return slu_fail(err, SLU_EINVAL, "invalid %s; expected a URL without spaces", what);
	if (s.n == 0 || ((http || https) && is_address(s)))
		return 0;
	return slu_fail(err, SLU_EINVAL, "invalid %s; expected http://HOST/PATH or https://HOST/PATH", what);
}

int
codeq_new_parse(struct codeq_new *n, struct arena *a, struct slice text, struct slu_err *err)
{
	char *const room = arena_alloc(a, text.n + 1);
	struct json r;
	int rc;

	*n = (struct codeq_new){ 0 };
	if (!room)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	json_init(&r, text, JSON_DEPTH);
	json_room(&r, room, text.n + 1);
	(void)json_fields(&r, fields, COUNT(fields), JSON_LENIENT, n); /* absent members have their defaults */
	rc = json_end(&r, err);
	if (!rc)
		rc = name_fold(n->command, "command", n->queue, err);
	if (!rc && n->idem.n > 0)
		rc = key_check(n->idem, "idempotencyKey", err);
	return rc ? rc : codeq_check_address(n->webhook, "webhook", err);
}

static void
read_items(struct json *r, void (*each)(void *arg, struct slice item), void *arg)
{
	unsigned n = 0;

	json_array(r);
	while (json_element(r)) {
		const struct slice item = json_skip(r);

		if (n++ == CODEQ_BATCH)
			json_fail(r, SLU_EINVAL, NULL, "expected at most %d items", CODEQ_BATCH);
		else
			each(arg, item);
	}
	if (n == 0)
		json_fail(r, SLU_EINVAL, NULL, "expected 1 to %d items", CODEQ_BATCH);
}

int
codeq_batch_parse(struct slice text, const char *name, bool *bare, void (*each)(void *arg, struct slice item), void *arg,
		  struct slu_err *err)
{
	bool found = false;
	struct json_str member;
	struct json r;

	json_init(&r, text, JSON_DEPTH);
	*bare = json_peek(&r) == JSON_ARRAY;
	if (*bare) {
		read_items(&r, each, arg);
		return json_end(&r, err);
	}
	json_object(&r);
	while (json_member(&r, &member)) {
		if (found || !json_str_is(&member, slice_of(name)))
			continue;
		found = true;
		read_items(&r, each, arg);
	}
	if (!found)
		json_fail(&r, SLU_EINVAL, NULL, "expected the member %s", name);
	return json_end(&r, err);
}

/* --- the tasks ---------------------------------------------------------------- */

struct create_item {
	struct codeq_new task;
	struct op_put put;
	struct op *op; /* NULL: refused before */
	struct codeq_facts facts;
	struct slu_err err;       /* code 0: not refused */
	struct codeq_task *first; /* of a known idempotency key */
};

struct state {
	struct codeq_facts_of facts;
	struct codeq_ready ready;
	struct create_item *items;
	unsigned n, at;
	bool batch, bare;
	struct slice trace; /* of the request */
	struct apicall *apicall;
};

/* The request has the trace of its tasks. */
static struct slice
trace_of(struct apicall *a)
{
	struct slice parent = call_field(call_of(a->x), "traceparent"), state = call_field(call_of(a->x), "tracestate");
	char text[TRACE_PARENT];
	char *p;

	if (parent.n == 0 || !trace_parent(parent, text))
		return (struct slice){ 0 };
	if (!trace_state(state))
		state.n = 0;
	p = arena_alloc(&a->memory, sizeof text + state.n);
	if (!p)
		return (struct slice){ 0 };
	memcpy(p, text, sizeof text);
	if (state.n)
		memcpy(p + sizeof text, state.p, state.n);
	return (struct slice){ p, sizeof text + state.n };
}

static void
add_item(void *arg, struct slice text)
{
	struct state *const s = arg;
	struct create_item *const item = &s->items[s->n++];
	const int rc = codeq_new_parse(&item->task, &s->apicall->memory, text, &item->err);

	if (rc)
		item->err.code = (enum slu_code)rc;
}

static int64_t
clamp(int64_t n, int64_t max)
{
	return n < 0 ? 0 : n > max ? max
				   : n;
}

/* --- answer ------------------------------------------------------------------- */

static void
write_new(struct apicall *a, struct json_out *w, const char *name, const struct create_item *item)
{
	const bool delayed = item->put.m.due > item->put.m.accepted;
	const struct op_row row = {
		.id = item->put.m.id,
		.prio = item->put.m.prio,
		.max_attempts = item->put.max_attempts,
		.state = delayed ? MSG_DELAYED : MSG_READY,
	};
	const struct codeq_view view = { .row = &row, .m = &item->put.m, .payload = item->put.m.payload };

	codeq_task_write(w, name, &a->memory, &view);
}

/* The first task of an idempotency key; it may have been forgotten. */
static void
write_first(struct apicall *a, struct json_out *w, const char *name, const struct create_item *item)
{
	const struct codeq_task *const t = item->first;
	const struct codeq_view view = { .row = &t->row, .m = &t->m, .payload = t->payload, .owner = t->owner, .error = t->error };
	struct json_str member;
	struct json r;

	if (t->alive) {
		codeq_task_write(w, name, &a->memory, &view);
		return;
	}
	if (t->done.n == 0) {
		write_new(a, w, name, item);
		return;
	}
	json_init(&r, t->done, JSON_DEPTH);
	json_object(&r);
	while (json_member(&r, &member))
		if (json_str_is(&member, SLICE("task")))
			json_out_raw(w, name, json_skip(&r));
}

static void
write_item(struct apicall *a, struct json_out *w, const char *name, const struct create_item *item)
{
	if (item->first)
		write_first(a, w, name, item);
	else
		write_new(a, w, name, item);
}

static void
answer_one(struct apicall *a)
{
	const struct state *const s = codeq_of(a)->own;
	const struct create_item *const item = s->items;
	struct json_out w;

	if (item->err.code) {
		apicall_refuse_err(a, &item->err, -1);
		return;
	}
	json_out_init(&w, &a->x->out);
	write_item(a, &w, NULL, item);
	apicall_reply(a, 202);
}

static void
answer(struct apicall *a)
{
	const struct state *const s = codeq_of(a)->own;
	struct json_out w;

	if (!s->batch) {
		answer_one(a);
		return;
	}
	json_out_init(&w, &a->x->out);
	if (!s->bare)
		json_out_object(&w, NULL);
	json_out_array(&w, s->bare ? NULL : "results");
	for (unsigned i = 0; i < s->n; i++) {
		json_out_object(&w, NULL);
		if (s->items[i].err.code)
			json_out_str(&w, "error", slice_of(s->items[i].err.text));
		else
			write_item(a, &w, "task", &s->items[i]);
		json_out_close(&w);
	}
	json_out_close(&w);
	if (!s->bare)
		json_out_close(&w);
	apicall_reply(a, 200);
}

/* --- run ---------------------------------------------------------------------- */

static void find_firsts(struct apicall *a);

static void
found_first(struct apicall *a)
{
	struct state *const s = codeq_of(a)->own;

	s->items[s->at].first = a->part;
	s->at++;
	find_firsts(a);
}

/* From s->at on, one after the other. */
static void
find_firsts(struct apicall *a)
{
	struct state *const s = codeq_of(a)->own;
	char uuid[ID_UUID_TEXT];
	struct codeq_task *t;

	while (s->at < s->n && (s->items[s->at].err.code || !s->items[s->at].put.existed))
		s->at++;
	t = s->at < s->n ? arena_alloc(&a->memory, sizeof *t) : NULL;
	if (t)
		codeq_find(t, a, slice_of(id_to_uuid(s->items[s->at].put.m.id, uuid)), found_first);
	else
		answer(a);
}

/* Is a new task of item i ready now, the first one of its command? */
static bool
makes_ready(const struct state *s, unsigned i)
{
	const struct create_item *const item = &s->items[i];

	for (unsigned k = 0; k < i; k++)
		if (!s->items[k].err.code && strcmp(s->items[k].task.queue, item->task.queue) == 0)
			return false;
	return !item->err.code && !item->put.existed && item->put.m.due <= item->put.m.accepted;
}

static void
tell(struct apicall *a)
{
	struct state *const s = codeq_of(a)->own;

	s->ready = (struct codeq_ready){ .apicall = a, .trace = s->trace };
	for (unsigned i = 0; i < s->n; i++)
		if (makes_ready(s, i))
			codeq_ready_note(&s->ready, slice_of(s->items[i].task.queue), s->items[i].task.command, s->items[i].put.m.id);
	codeq_ready_send(&s->ready, find_firsts);
}

static void
enqueued(struct apicall *a)
{
	struct state *const s = codeq_of(a)->own;

	for (unsigned i = 0; i < s->n; i++)
		if (s->items[i].op && s->items[i].op->rc)
			s->items[i].err = apicall_err_of(s->items[i].op);
	s->at = 0;
	if (subscribers_any(a->api->subscribers))
		tell(a);
	else
		find_firsts(a);
}

static int
fill_put(struct apicall *a, struct create_item *item, struct slice trace, struct slu_err *err)
{
	const struct codeq_new *const n = &item->task;
	const int64_t priority = clamp(n->priority, CODEQ_PRIORITIES - 1);
	const bool same = slice_eq(n->command, slice_of(n->queue));
	const struct codeq_extras x = { .command = { n->command.p, same ? 0 : n->command.n }, .webhook = n->webhook };
	const slu_time keep = item->facts.retention * SLU_SEC;

	if (item->facts.tiers && !(item->facts.tiers & 1u << priority))
		return slu_fail(err, SLU_EINVAL, "invalid priority: %lld; expected one of the priorityTiers of the topic",
				(long long)priority);
	if (payload_is_large(broker_engine_of(a->api->broker, apicall_routes(a), codeq_space(a), slice_of(n->queue)), n->payload.n))
		return slu_fail(err, SLU_ETOOBIG, "a payload of %zu bytes; expected at most 1 MiB", n->payload.n);
	item->put = (struct op_put){
		.m = {
			.space = codeq_space(a),
			.queue = slice_of(n->queue),
			.prio = (int32_t)(CODEQ_PRIORITIES - 1 - priority),
			.max_attempts = (uint16_t)clamp(n->max_attempts, API_ATTEMPTS_MAX),
			.due = n->run_at > 0 ? n->run_at : 0,
			.keep = keep < API_KEEP_MAX ? keep : API_KEEP_MAX,
			.idem = n->idem,
			.type = SLICE("application/json"),
			.attributes = codeq_extras_write(a, &x),
			.trace = trace,
			.payload = n->payload,
			.payload_size = n->payload.n,
		},
		.delay = n->run_at ? 0 : n->delay * SLU_SEC,
		.as = { .queue = n->command },
	};
	return 0;
}

static void
enqueue(struct apicall *a)
{
	struct state *const s = codeq_of(a)->own;
	struct op *const ops = arena_array(&a->memory, s->n, sizeof *ops);
	unsigned n = 0;

	if (!ops) {
		apicall_refuse(a, SLU_ENOMEM, NULL);
		return;
	}
	for (unsigned i = 0; i < s->n; i++) {
		struct create_item *const item = &s->items[i];

		if (item->err.code || fill_put(a, item, s->trace, &item->err))
			continue;
		item->op = &ops[n++];
		apicall_op(a, item->op, OP_ENQUEUE, codeq_space(a), slice_of(item->task.queue));
		item->op->puts = &item->put;
		item->op->n_puts = 1;
	}
	if (n == 0) {
		answer(a);
		return;
	}
	a->ops = ops;
	a->n_ops = n;
	apicall_run(a, enqueued);
}

static void find_facts(struct apicall *a);

static void
found_facts(struct apicall *a)
{
	struct state *const s = codeq_of(a)->own;

	s->items[s->at].facts = s->facts.facts;
	s->at++;
	find_facts(a);
}

/* An item before with the same command, or s->n. */
static unsigned
same_command(const struct state *s, unsigned i)
{
	for (unsigned k = 0; k < i; k++)
		if (!s->items[k].err.code && strcmp(s->items[k].task.queue, s->items[i].task.queue) == 0)
			return k;
	return s->n;
}

static void
find_facts(struct apicall *a)
{
	struct state *const s = codeq_of(a)->own;

	for (; s->at < s->n; s->at++) {
		const unsigned same = same_command(s, s->at);

		if (s->items[s->at].err.code)
			continue;
		if (same == s->n) {
			codeq_topic_facts(&s->facts, a, slice_of(s->items[s->at].task.queue), found_facts);
			return;
		}
		s->items[s->at].facts = s->items[same].facts;
	}
	enqueue(a);
}

static void
start(struct apicall *a, bool batch)
{
	struct state *const s = codeq_of(a)->own;
	const struct slice body = call_of(a->x)->body;
	struct slu_err err = { 0 };
	int rc = 0;

	s->apicall = a;
	s->trace = trace_of(a);
	s->batch = batch;
	s->items = arena_array(&a->memory, batch ? CODEQ_BATCH : 1, sizeof *s->items);
	if (!s->items) {
		apicall_refuse(a, SLU_ENOMEM, NULL);
		return;
	}
	memset(s->items, 0, (batch ? CODEQ_BATCH : 1) * sizeof *s->items);
	if (batch)
		rc = codeq_batch_parse(body, "tasks", &s->bare, add_item, s, &err);
	else
		add_item(s, body);
	if (rc)
		codeq_refuse_rc(a, rc, err.text);
	else
		find_facts(a);
}

static void
create(struct apicall *a)
{
	start(a, false);
}

static void
create_batch(struct apicall *a)
{
	start(a, true);
}

const struct codeq_action codeq_create = { create, sizeof(struct state), CODEQ_PRODUCER, 0 };
const struct codeq_action codeq_create_batch = { create_batch, sizeof(struct state), CODEQ_PRODUCER, 0 };
