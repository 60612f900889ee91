/*
 * intake.c - batches of messages from outside, each accepted once: OP_INTAKE of engine/op.h.
 *
 *      POST /v1/admin/intake/places  {"queues": [{"namespace": "a", "queue": "b"}, ...]}
 *                                    {"shards": ["default", ...]}
 *      POST /v1/admin/intake         {"source": "5b0c...", "batch": 7, "shard": "default", "messages": [...]}
 *                                    {"accepted": true, "batch": 7, "last": 7, "messages": 2, "shard": "default", "ids": [...]}
 */
#include "api/admin/admin.h"

#include "api/flat/enqueue.h"
#include "api/handler.h"
#include "api/limits.h"
#include "form/values.h"
#include "base/json/json_out.h"

enum {
	UUID_TEXT = 36
};

struct question {
	struct slice source;
	uint64_t batch;
	struct slice shard;
	struct slice messages; /* as written */
};

struct state {
	struct flat_enqueue e; /* first: flat_large_store */
	uint8_t source[INTAKE_SOURCE];
	uint64_t batch;
	uint32_t lane;
};

static const struct json_field fields[] = {
	JSON_FIELD(text, struct question, source, .required = true, .max = UUID_TEXT),
	JSON_FIELD(u64, struct question, batch, .required = true, .min = 1, .max = INT64_MAX),
	JSON_FIELD(text, struct question, shard, .max = BROKER_BATCH_NAME - 1),
	JSON_FIELD(raw, struct question, messages),
};

/* --- the request -------------------------------------------------------------- */

static int
hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static int
read_source(struct slice s, uint8_t out[static INTAKE_SOURCE], struct slu_err *err)
{
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++) {
		const bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? s.p[i] != '-' : hex(s.p[i]) < 0 || n == 2 * (size_t)INTAKE_SOURCE)
			break;
		if (dash)
			continue;
		out[n / 2] = (uint8_t)(n % 2 ? out[n / 2] | hex(s.p[i]) : hex(s.p[i]) << 4);
		n++;
	}
	if (s.n == UUID_TEXT && n == 2 * (size_t)INTAKE_SOURCE)
		return 0;
	return slu_fail(err, SLU_EINVAL, "invalid source: %.*s; expected a UUID", (int)s.n, s.p);
}

static int
find_lane(const struct apicall *a, struct slice shard, uint32_t *out, struct slu_err *err)
{
	char name[BROKER_BATCH_NAME];

	for (uint32_t i = 0; i < broker_lanes(a->api->broker); i++) {
		*out = i;
		if (slice_eq(slice_of(broker_batch_name(a->api->broker, i, name)), shard))
			return 0;
	}
	return slu_fail(err, SLU_ENOTFOUND, "unknown shard: %.*s", (int)shard.n, shard.p);
}

/* A batch without a shard goes to the shard of its first message. */
static int
choose_lane(struct apicall *a, struct state *s, struct slice shard, struct slu_err *err)
{
	const struct message *const m = s->e.in.n ? &s->e.in.puts[0].m : NULL;

	if (shard.n)
		return find_lane(a, shard, &s->lane, err);
	if (!m)
		return slu_fail(err, SLU_EINVAL, "shard: expected the shard of a batch without messages");
	return broker_home(a->api->broker, apicall_routes(a), m->space, m->queue, &s->lane, err);
}

static bool
has_messages(struct slice raw)
{
	for (size_t i = 1; i + 1 < raw.n; i++)
		if (!strchr(" \t\r\n", raw.p[i]))
			return true;
	return false;
}

static int
decode(struct apicall *a, struct state *s, int64_t *index, struct slu_err *err)
{
	const struct slice body = call_of(a->x)->body;
	char *const room = arena_alloc(&a->memory, body.n + 1);
	struct question q = { 0 };
	struct json r;
	int rc;

	*index = -1;
	if (!room)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	json_init(&r, body, JSON_DEPTH);
	json_room(&r, room, body.n);
	json_fields(&r, fields, COUNT(fields), JSON_STRICT, &q);
	if (json_end(&r, NULL))
		return json_explain(&r, -1, err);
	s->batch = q.batch;
	rc = read_source(q.source, s->source, err);
	if (!rc && has_messages(q.messages))
		rc = form_puts_decode(&s->e.in, &a->memory, q.messages, index, err);
	return rc ? rc : choose_lane(a, s, q.shard, err);
}

/* --- the op ------------------------------------------------------------------- */

static void
answer(struct apicall *a)
{
	const struct state *const s = a->state;
	const struct op_intake *const q = &a->op.intake;
	char name[BROKER_BATCH_NAME];
	struct json_out w;

	flat_large_close(&s->e);
	if (a->op.rc) {
		const struct slu_err err = apicall_err_of(&a->op);

		apicall_refuse_err(a, &err, slu_err_row(a->op.rc)->flat_status >= 500 ? -1 : (int64_t)a->op.failed);
		return;
	}
	apicall_object(a, &w);
	json_out_bool(&w, "accepted", !q->known);
	json_out_u64(&w, "batch", s->batch);
	json_out_u64(&w, "last", q->last);
	json_out_u64(&w, "messages", q->count);
	json_out_str(&w, "shard", slice_of(broker_batch_name(a->api->broker, s->lane, name)));
	if (!q->known) {
		json_out_array(&w, "ids");
		flat_enqueue_ids(&s->e.in, NULL, FLAT_NUMBERS, NULL, &w);
		json_out_close(&w);
	}
	apicall_reply_object(a, &w, 200);
}

static void
take_in(struct apicall *a)
{
	struct state *const s = a->state;

	apicall_op(a, &a->op, OP_INTAKE, s->e.in.n ? s->e.in.puts[0].m.space : (struct slice){ 0 }, (struct slice){ 0 });
	a->op.cursor = (uint64_t)s->lane << BROKER_CURSOR_BITS;
	a->op.puts = s->e.in.puts;
	a->op.n_puts = s->e.in.n;
	a->op.intake.batch = s->batch;
	memcpy(a->op.intake.source, s->source, INTAKE_SOURCE);
	apicall_run(a, answer);
}

static void
intake(struct apicall *a)
{
	struct state *const s = a->state;
	struct slu_err err = { 0 };
	int64_t index;
	const int rc = decode(a, s, &index, &err);

	if (rc)
		apicall_refuse_item(a, rc, err.text, index);
	else if (flat_has_large(a))
		flat_large_store(a, take_in);
	else
		take_in(a);
}

const struct handler admin_intake = { .run = intake, .state = sizeof(struct state) };

/* --- where queues live -------------------------------------------------------- */

struct queue_name {
	struct slice space, queue;
};

static const struct json_field queue_fields[] = {
	JSON_ROW("namespace", json_read_name, struct queue_name, space, .required = true),
	JSON_ROW("queue", json_read_name, struct queue_name, queue, .required = true, .also = { "topic", 5 }),
};

struct places_body {
	struct slice queues; /* as written */
};

static const struct json_field places_fields[] = {
	JSON_FIELD(raw, struct places_body, queues, .required = true),
};

/* The lane that answered the op is the lane that the queue lives on. A shard that does not answer may have the
 * queue: then the map decides. */
static int
lane_of(struct apicall *a, const struct op *op, uint32_t *lane, struct slu_err *err)
{
	*lane = op->route.lane;
	return op->rc ? broker_home(a->api->broker, apicall_routes(a), op->space, op->queue, lane, err) : 0;
}

static void
answer_places(struct apicall *a)
{
	char name[BROKER_BATCH_NAME];
	struct slu_err err = { 0 };
	struct json_out w;
	uint32_t lane;
	int rc = 0;

	apicall_object(a, &w);
	json_out_array(&w, "shards");
	for (unsigned i = 0; i < a->n_ops && !rc; i++) {
		rc = lane_of(a, &a->ops[i], &lane, &err);
		if (!rc)
			json_out_str(&w, NULL, slice_of(broker_batch_name(a->api->broker, lane, name)));
	}
	if (rc) {
		buf_clear(&a->x->out);
		apicall_refuse(a, rc, err.text);
		return;
	}
	json_out_close(&w);
	apicall_reply_object(a, &w, 200);
}

/* One op for each queue. It follows the queue to the shard that the queue lives on, and changes nothing. */
static int
make_ops(struct apicall *a, struct slice queues, struct slu_err *err)
{
	char *const room = arena_alloc(&a->memory, queues.n + 1);
	struct op *const ops = arena_array(&a->memory, API_PLACES_MAX, sizeof *ops);
	struct json r;

	if (!room || !ops)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	a->ops = ops;
	a->n_ops = 0;
	json_init(&r, queues, JSON_DEPTH);
	json_room(&r, room, queues.n);
	json_array(&r);
	while (json_element(&r)) {
		struct queue_name q = { 0 };

		json_fields(&r, queue_fields, COUNT(queue_fields), JSON_STRICT, &q);
		if (a->n_ops == API_PLACES_MAX)
			json_fail(&r, SLU_EINVAL, r.p, "expected at most %d queues", API_PLACES_MAX);
		else if (r.state != JSON_FAILED)
			apicall_op(a, &ops[a->n_ops++], OP_POLICY_GET, q.space, q.queue);
	}
	return json_end(&r, NULL) ? json_explain(&r, -1, err) : 0;
}

static void
places(struct apicall *a)
{
	struct places_body q = { 0 };
	struct slu_err err = { 0 };
	struct json r;
	int rc = 0;

	json_init(&r, call_of(a->x)->body, JSON_DEPTH);
	json_fields(&r, places_fields, COUNT(places_fields), JSON_STRICT, &q);
	rc = json_end(&r, NULL) ? json_explain(&r, -1, &err) : make_ops(a, q.queues, &err);
	if (rc)
		apicall_refuse(a, rc, err.text);
	else
		apicall_run(a, answer_places);
}

const struct handler admin_intake_places = { .run = places };
