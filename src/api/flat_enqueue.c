#include "api/flat_enqueue.h"

#include "api/apart.h"
#include "api/ask.h"
#include "api/limits.h"
#include "api/split.h"
#include "api/values.h"

#include "base/json_out.h"
#include "engine/payload.h"
#include "core/trace.h"

/* --- decode ------------------------------------------------------------------- */

/* An item as it is sent; what is a field of a message is read right there. */
struct item {
	struct op_put put;
	struct spelled space, queue;
	struct slice text;
	struct slice json;
	uint64_t max_attempts;
	struct slice parent, state; /* of a trace */
};

#define FIELD(text, how, member, ...)                          \
	{                                                      \
		.name = { text, sizeof text - 1 },             \
		.read = json_read_##how,                       \
		.offset = offsetof(struct item, member),       \
		.size = sizeof(((struct item *)NULL)->member), \
		__VA_ARGS__                                    \
	}

enum {
	HAS_PAYLOAD = 1 << 3,
	HAS_TEXT = 1 << 4,
	HAS_JSON = 1 << 5,
	HAS_DELIVER_AFTER = 1 << 6,
	HAS_DELAY = 1 << 7
};

/* The place of a row is its bit above. */
static const struct json_field fields[] = {
	FIELD("namespace", spelled, space, .required = true),
	FIELD("topic", spelled, queue, .required = true, .also = { "queue", 5 }),
	FIELD("priority", priority, put.m.prio),
	FIELD("payload", base64, put.m.payload),
	FIELD("text", text, text),
	FIELD("json", raw, json),
	FIELD("deliver_after", time, put.m.due),
	FIELD("delay", span, put.delay, .max = API_DELAY_MAX),
	FIELD("ttl", span, put.ttl, .min = 1, .max = API_DELAY_MAX),
	FIELD("key", key, put.m.key),
	FIELD("idempotency_key", key, put.m.idem),
	FIELD("correlation_id", line, put.m.correlation),
	FIELD("attributes", object, put.m.attributes, .max = MESSAGE_ATTRIBUTES_MAX),
	FIELD("max_attempts", u64, max_attempts, .min = 1, .max = API_ATTEMPTS_MAX),
	FIELD("keep_result", span, put.m.keep, .min = SLU_SEC, .max = API_KEEP_MAX),
	FIELD("content_type", line, put.m.type),
	FIELD("traceparent", text, parent),
	FIELD("tracestate", text, state),
};

/* The one of the three that was given. */
static void
take_payload(struct json *r, struct item *item, uint64_t given)
{
	const uint64_t kinds = given & (HAS_PAYLOAD | HAS_TEXT | HAS_JSON);
	struct message *const m = &item->put.m;

	if (kinds & (kinds - 1))
		json_fail(r, SLU_EINVAL, NULL,
			  "expected one of payload, text and json, not several");
	if (given & HAS_TEXT)
		m->payload = item->text;
	if (given & HAS_JSON)
		m->payload = item->json;
	if (m->type.n == 0 && given & HAS_TEXT)
		m->type = SLICE("text/plain; charset=utf-8");
	if (m->type.n == 0 && given & HAS_JSON)
		m->type = SLICE("application/json");
	m->payload_size = m->payload.n;
}

/* As a message keeps it; what is no trace is not there. SLU_ENOMEM. */
static int
take_trace(struct arena *a, struct slice parent, struct slice state, struct slice *out)
{
	char text[TRACE_PARENT];
	char *p;

	*out = (struct slice){ 0 };
	if (parent.n == 0 || !trace_parent(parent, text))
		return 0;
	if (!trace_state(state))
		state.n = 0;
	p = arena_alloc(a, sizeof text + state.n);
	if (!p)
		return SLU_ENOMEM;
	memcpy(p, text, sizeof text);
	if (state.n)
		memcpy(p + sizeof text, state.p, state.n);
	*out = (struct slice){ p, sizeof text + state.n };
	return 0;
}

static void
decode_item(struct json *r, struct arena *a, struct op_put *out)
{
	struct item item = { .put.m.prio = 5 };
	uint64_t given;

	given = json_fields(r, fields, sizeof fields / sizeof fields[0], JSON_STRICT, &item);
	if ((given & HAS_DELIVER_AFTER) && (given & HAS_DELAY))
		json_fail(r, SLU_EINVAL, NULL, "expected deliver_after or delay, not both");
	if (item.put.m.due < 0)
		item.put.m.due = 0; /* before 1970: now */
	take_payload(r, &item, given);
	if (r->state != JSON_FAILED &&
	    take_trace(a, item.parent, item.state, &item.put.m.trace))
		json_fail(r, SLU_ENOMEM, r->p, "out of memory");
	item.put.m.space = item.space.name;
	item.put.m.queue = item.queue.name;
	item.put.as = (struct spelling){ item.space.as, item.queue.as };
	item.put.m.max_attempts = (uint16_t)item.max_attempts;
	*out = item.put;
}

/* Room for one more put. */
static bool
grow(struct flat_enqueue *e, struct arena *a, uint32_t *size)
{
	const uint32_t more = *size * 2;
	struct op_put *puts;

	if (e->n < *size)
		return true;
	puts = arena_array(a, more, sizeof *puts);
	if (!puts)
		return false;
	memcpy(puts, e->puts, e->n * sizeof *puts);
	e->puts = puts;
	*size = more;
	return true;
}

static void
decode_items(struct flat_enqueue *e, struct arena *a, struct json *r, uint32_t size)
{
	json_array(r);
	while (json_element(r)) {
		if (e->n == API_ENQUEUE_MAX)
			json_fail(r, SLU_EINVAL, r->p, "expected at most %d items",
				  API_ENQUEUE_MAX);
		else if (!grow(e, a, &size))
			json_fail(r, SLU_ENOMEM, r->p, "out of memory");
		else
			decode_item(r, a, &e->puts[e->n]);
		e->n += r->state != JSON_FAILED;
	}
	if (e->n == 0)
		json_fail(r, SLU_EINVAL, r->start, "expected at least one item");
}

int
flat_enqueue_decode(struct flat_enqueue *e, struct arena *a, struct slice body,
		    int64_t *index, struct slu_err *err)
{
	/* A guess that is right for most; wrong costs a copy. */
	const uint32_t size = body.n / 256 < API_ENQUEUE_MAX ? (uint32_t)(body.n / 256) + 1
							     : API_ENQUEUE_MAX;
	char *const room = arena_alloc(a, body.n);
	struct json r;
	bool many;

	*index = -1;
	e->n = 0;
	e->puts = arena_array(a, size, sizeof *e->puts);
	if (!room || !e->puts)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	json_init(&r, body, JSON_DEPTH);
	json_room(&r, room, body.n);
	many = json_peek(&r) != JSON_OBJECT;
	if (many) {
		decode_items(e, a, &r, size);
	} else {
		decode_item(&r, a, e->puts);
		e->n = 1;
	}
	if (!json_end(&r, NULL))
		return 0;
	if (many && r.depth > 0)
		*index = e->n;
	return json_explain(&r, *index, err);
}

/* --- encode ------------------------------------------------------------------- */

static void
write_detail(const struct op_put *put, struct json_out *w)
{
	char uuid[ID_UUID_TEXT];

	json_out_object(w, NULL);
	json_out_u64(w, "id", put->m.id);
	json_out_str(w, "uid", slice_of(id_to_uuid(put->m.id, uuid)));
	json_out_bool(w, "duplicate", put->existed);
	json_out_close(w);
}

static void
write_id(const struct op_put *put, enum flat_ids form, struct json_out *w)
{
	char uuid[ID_UUID_TEXT];

	if (form == FLAT_DETAIL)
		write_detail(put, w);
	else if (form == FLAT_UUIDS)
		json_out_str(w, NULL, slice_of(id_to_uuid(put->m.id, uuid)));
	else
		json_out_u64(w, NULL, put->m.id);
}

void
flat_enqueue_ids(const struct flat_enqueue *e, const uint32_t *place, enum flat_ids form,
		 const bool *ok, struct json_out *w)
{
	for (uint32_t i = 0; i < e->n; i++) {
		const uint32_t at = place ? place[i] : i;

		if (ok && !ok[at])
			json_out_null(w, NULL);
		else
			write_id(&e->puts[at], form, w);
	}
}

/* --- the call ----------------------------------------------------------------- */

struct state {
	struct flat_enqueue e;
	struct split split;  /* when there are many shards */
	struct slice ids;    /* "uid" */
	struct slice detail; /* "1" */
	enum flat_ids form;  /* what the two ask for */

	/* Of large payloads. */
	struct payload **stored; /* per put; NULL: there are none */
	uv_work_t work;
	struct slu_err err;
	int rc;
};

static const struct param params[] = {
	PARAM(word, struct state, ids),
	PARAM(word, struct state, detail),
};

static int
plan(struct ask *a, struct state *s)
{
	uint32_t *const group = arena_array(&a->memory, s->e.n, sizeof *group);
	uint32_t n_groups;
	int rc;

	if (!group)
		return SLU_ENOMEM;
	rc = apart_groups(a->api->broker, ask_routes(a), &a->memory, s->e.puts, s->e.n, group, &n_groups);
	if (rc)
		return rc;
	s->e.puts = ask_split(a, &s->split, group, n_groups, s->e.puts, s->e.n,
			      sizeof *s->e.puts);
	return s->e.puts ? 0 : SLU_ENOMEM;
}

static void
make_ops(struct ask *a, struct state *s)
{
	for (unsigned i = 0; i < a->n_ops; i++) {
		const struct split_part *const part = &s->split.parts[i];
		struct op_put *const puts = s->e.puts + part->begin;

		ask_op(a, &a->ops[i], OP_ENQUEUE, puts->m.space, puts->m.queue);
		a->ops[i].puts = puts;
		a->ops[i].n_puts = part->end - part->begin;
	}
}

/* The item that made an op fail, as the client counts them. */
static int64_t
item_of(const struct ask *a, const struct op *op)
{
	const struct state *const s = a->state;
	const uint32_t at = (uint32_t)(op->puts - s->e.puts) + op->failed;

	if (!s->split.place)
		return at;
	for (uint32_t i = 0; i < s->e.n; i++)
		if (s->split.place[i] == at)
			return i;
	return -1;
}

/* --- large payloads: files first, the ops that name them then ------------------- */

static void
close_stored(const struct state *s)
{
	for (uint32_t i = 0; s->stored && i < s->e.n; i++)
		payload_close(s->stored[i]);
}

static struct engine *
engine_of(struct ask *a, const struct message *m)
{
	return broker_engine_of(a->api->broker, ask_routes(a), m->space, m->queue);
}

static bool
has_large(struct ask *a, const struct state *s)
{
	for (uint32_t i = 0; i < s->e.n; i++)
		if (payload_is_large(engine_of(a, &s->e.puts[i].m), s->e.puts[i].m.payload.n))
			return true;
	return false;
}

static void
store_on_file_thread(uv_work_t *work)
{
	struct ask *const a = work->data;
	struct state *const s = a->state;

	for (uint32_t i = 0; i < s->e.n && !s->rc; i++) {
		struct message *const m = &s->e.puts[i].m;

		if (payload_is_large(engine_of(a, m), m->payload.n))
			s->rc = payload_store(engine_of(a, m), m, &s->stored[i], &s->err);
	}
}

/* -1 when it was none of them. */
static int64_t
failed_item(const struct ask *a, const struct op *op)
{
	return slu_err_row(op->rc)->flat_status >= 500 ? -1 : item_of(a, op);
}

/* Some shards took their part and others did not: say the error and which ids are. */
static void
answer_in_part(struct ask *a, const struct op *failed)
{
	const struct state *const s = a->state;
	bool *const ok = arena_array(&a->memory, s->e.n, sizeof *ok);
	const struct slu_err err = ask_err_of(failed);
	struct json_out w;

	if (!ok) {
		ask_refuse(a, SLU_EUNKNOWN, NULL);
		return;
	}
	for (unsigned i = 0; i < a->n_ops; i++)
		for (uint32_t j = 0; j < a->ops[i].n_puts; j++)
			ok[a->ops[i].puts - s->e.puts + j] = a->ops[i].rc == 0;
	json_out_init(&w, &a->call->out);
	json_out_object(&w, NULL);
	api_count_limit(a->api, &err);
	api_add_retry(a->call, &err);
	api_write_err(&w, &err);
	if (failed_item(a, failed) >= 0)
		json_out_i64(&w, "index", failed_item(a, failed));
	json_out_array(&w, "ids");
	flat_enqueue_ids(&s->e, s->split.place, s->form, ok, &w);
	json_out_close(&w);
	json_out_close(&w);
	ask_reply(a, (unsigned)slu_err_row(failed->rc)->flat_status);
}

static void
answer(struct ask *a)
{
	const struct state *const s = a->state;
	const struct op *failed = NULL;
	struct json_out w;

	close_stored(s);
	for (unsigned i = 0; i < a->n_ops && !failed; i++)
		if (a->ops[i].rc)
			failed = &a->ops[i];
	if (failed && a->n_ops > 1) {
		answer_in_part(a, failed);
		return;
	}
	if (failed) {
		const struct slu_err err = ask_err_of(failed);

		ask_refuse_err(a, &err, failed_item(a, failed));
		return;
	}
	json_out_init(&w, &a->call->out);
	json_out_array(&w, NULL);
	flat_enqueue_ids(&s->e, s->split.place, s->form, NULL, &w);
	json_out_close(&w);
	ask_reply(a, 200);
}

static void
stored(uv_work_t *work, int status)
{
	struct ask *const a = work->data;
	struct state *const s = a->state;

	(void)status; /* nobody cancels it */
	if (!s->rc) {
		make_ops(a, s);
		ask_run(a, answer);
		return;
	}
	close_stored(s);
	ask_refuse(a, s->rc, s->err.text);
}

static void
store(struct ask *a, struct state *s)
{
	s->stored = arena_array(&a->memory, s->e.n, sizeof(struct payload *));
	if (!s->stored) {
		ask_refuse(a, SLU_ENOMEM, NULL);
		return;
	}
	memset(s->stored, 0, s->e.n * sizeof(struct payload *));
	s->work.data = a;
	if (uv_queue_work(loop_uv(call_loop(a->call)), &s->work, store_on_file_thread, stored))
		ask_refuse(a, SLU_ENOMEM, NULL);
}

/* The trace of the request is that of every item that has none of its own. */
static int
inherit_trace(struct ask *a, struct flat_enqueue *e)
{
	struct slice trace;

	if (take_trace(&a->memory, call_field(a->call, "traceparent"),
		       call_field(a->call, "tracestate"), &trace))
		return SLU_ENOMEM;
	for (uint32_t i = 0; trace.n && i < e->n; i++)
		if (e->puts[i].m.trace.n == 0)
			e->puts[i].m.trace = trace;
	return 0;
}

static int
choose_form(struct state *s, struct slu_err *err)
{
	if (s->ids.n > 0 && !slice_eq(s->ids, SLICE("uid")))
		return slu_fail(err, SLU_EINVAL, "ids: expected uid, or no such parameter");
	if (s->detail.n > 0 && !slice_eq(s->detail, SLICE("1")) &&
	    !slice_eq(s->detail, SLICE("0")))
		return slu_fail(err, SLU_EINVAL, "detail: expected 1, or no such parameter");
	s->form = slice_eq(s->detail, SLICE("1")) ? FLAT_DETAIL
		  : s->ids.n                      ? FLAT_UUIDS
						  : FLAT_NUMBERS;
	return 0;
}

static int
decode(struct ask *a, struct state *s, int64_t *index, struct slu_err *err)
{
	int rc;

	*index = -1;
	rc = choose_form(s, err);
	if (rc)
		return rc;
	rc = flat_enqueue_decode(&s->e, &a->memory, a->call->body, index, err);
	if (!rc && inherit_trace(a, &s->e))
		rc = slu_fail(err, SLU_ENOMEM, "out of memory");
	if (rc)
		return rc;
	if (broker_shards(a->api->broker) > 1 || apart_any(a->api->broker))
		return plan(a, s);
	split_none(&s->split, s->e.n);
	return 0;
}

void
flat_enqueue(struct call *c, void *api)
{
	struct ask *const a = ask_new(api, c);
	struct state *const s = a ? ask_state(a, sizeof *s) : NULL;
	struct slu_err err = { 0 };
	int64_t index;
	int rc;

	if (!s || !ask_params(a, params, sizeof params / sizeof params[0], s))
		return;
	rc = decode(a, s, &index, &err);
	if (rc) {
		ask_refuse_item(a, rc, err.text, index);
		return;
	}
	make_ops(a, s);
	a->item_of = item_of;
	if (!ask_pass(a))
		return; /* before anything is stored */
	if (c->body.n > API_SMALL_BODY && has_large(a, s))
		store(a, s);
	else
		ask_run(a, answer);
}
