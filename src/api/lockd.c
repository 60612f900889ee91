#include "api/lockd.h"

#include "api/limits.h"
#include "api/values.h"
#include "auth/guard.h"
#include "base/limit.h"
#include "http/query.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

/* clang-format off */
#define QUEUE .dialect = &lockd_dialect, .query = QUERY_ANY, .no_head = true
#define SMALL .max_body = API_SMALL_BODY
const struct route lockd_routes[] = {
	{ NULL, "/v1/queue/enqueue", lockd_enqueue, .take = lockd_enqueue_take, .needs = RIGHT_WRITE, .max_body = LOCKD_BODY_MAX, QUEUE },
	{ NULL, "/v1/queue/dequeue", lockd_dequeue, .needs = RIGHT_CONSUME, SMALL, .alone = true, QUEUE },
	{ NULL, "/v1/queue/subscribe", lockd_subscribe, .needs = RIGHT_CONSUME, SMALL, .alone = true, QUEUE },
	{ NULL, "/v1/queue/dequeueWithState", lockd_dequeue_with_state, .needs = RIGHT_CONSUME, SMALL, .alone = true, QUEUE },
	{ NULL, "/v1/queue/subscribeWithState", lockd_subscribe_with_state, .needs = RIGHT_CONSUME, SMALL, .alone = true, QUEUE },
	{ NULL, "/v1/queue/watch", lockd_watch, .needs = RIGHT_READ, SMALL, .alone = true, QUEUE },
	{ NULL, "/v1/queue/ack",     lockd_ack,     .needs = RIGHT_CONSUME, SMALL, .settles = true, QUEUE },
	{ NULL, "/v1/queue/nack",    lockd_nack,    .needs = RIGHT_CONSUME, .max_body = API_BODY_MAX, .settles = true, QUEUE },
	{ NULL, "/v1/queue/extend",  lockd_extend,  .needs = RIGHT_CONSUME, SMALL, .settles = true, QUEUE },
	{ NULL, "/v1/queue/stats",   lockd_stats,   .needs = RIGHT_READ, SMALL, QUEUE },
};
/* clang-format on */

const unsigned lockd_n_routes = sizeof lockd_routes / sizeof lockd_routes[0];

/* --- errors ------------------------------------------------------------------- */

static const struct lockd_code_row codes[] = {
#define X(name, status, code, text) [LOCKD_##name] = { status, code, text },
	LOCKD_CODES(X)
#undef X
};

const struct lockd_code_row *
lockd_code_row(enum lockd_code code)
{
	assert(code < LOCKD_CODE_COUNT);
	return &codes[code];
}

static const char correlation_field[] = "X-Correlation-Id";

void
lockd_correlate(struct call *c, struct slice id)
{
	(void)call_set(c, correlation_field, id); /* the answer is fine without */
}

struct slice
lockd_correlation(struct api *api, struct call *c)
{
	const char *const given = call_added(c, correlation_field);
	char uuid[LOCKD_UUID_TEXT];
	uint64_t dice[2];

	if (given)
		return slice_of(given);
	if (hash_random(dice, sizeof dice, NULL))
		dice[0] = dice[1] = (uint64_t)clock_mono(api->clock);
	lockd_correlate(c, slice_of(lockd_uuid_text(clock_wall(api->clock), dice[0], dice[1], uuid)));
	return call_added(c, correlation_field) ? slice_of(call_added(c, correlation_field))
						: SLICE("");
}

static void
refuse(struct call *c, unsigned status, const char *code, const struct lockd_error *e)
{
	struct json_out w;
	char text[24];

	(void)lockd_correlation(call_arg(c), c);
	(void)snprintf(text, sizeof text, "%" PRId64, e->retry_after); /* fits */
	if (e->retry_after > 0)
		(void)call_set(c, "Retry-After", slice_of(text)); /* the body says it, too */
	buf_clear(&c->out);
	json_out_init(&w, &c->out);
	json_out_object(&w, NULL);
	json_out_str(&w, "error", slice_of(code));
	if (e->detail && *e->detail)
		json_out_str(&w, "detail", slice_of(e->detail));
	if (e->current_version)
		json_out_i64(&w, "current_version", e->current_version);
	if (e->current_etag && *e->current_etag)
		json_out_str(&w, "current_etag", slice_of(e->current_etag));
	if (e->retry_after > 0)
		json_out_i64(&w, "retry_after_seconds", e->retry_after);
	json_out_close(&w);
	api_end_line(&c->out);
	call_answer(c, status, api_json, &c->out);
}

void
lockd_refuse(struct call *c, const struct lockd_error *e)
{
	const struct lockd_code_row *const row = lockd_code_row(e->code);
	const struct ask *const a = c->user;
	struct lockd_error full = *e;

	if (a && a->starved) { /* what seems to be missing may only not have been read */
		api_refuse(c, SLU_ENOMEM, NULL, -1);
		return;
	}
	if (!full.detail || !*full.detail)
		full.detail = row->text;
	refuse(c, row->status, row->name, &full);
}

void
lockd_refuse_code(struct call *c, enum lockd_code code, const char *detail)
{
	lockd_refuse(c, &(struct lockd_error){ .code = code, .detail = detail });
}

/* Those who wait are counted apart from other limits. */
static bool
is_about_waiting(const struct slu_err *err)
{
	const enum limit limit = limit_by_name(err->limit);

	return limit == LIMIT_WAITING || limit == LIMIT_QUEUE_WAITING || limit == LIMIT_CONSUMERS;
}

static void
refuse_err(struct call *c, const struct slu_err *err, int64_t index)
{
	const struct slu_err_row *const row = slu_err_row((int)err->code);
	const int64_t after = (err->retry_after + SLU_SEC - 1) / SLU_SEC;
	struct lockd_error e = { .detail = *err->text ? err->text : row->text };

	(void)index; /* there are no lists */
	if (row->lockd_status == 429 || row->lockd_status == 503)
		e.retry_after = after > API_RETRY_AFTER_SECONDS ? after : API_RETRY_AFTER_SECONDS;
	if (!is_about_waiting(err)) {
		refuse(c, (unsigned)row->lockd_status, row->lockd_name, &e);
		return;
	}
	e.code = LOCKD_QUEUE_BUSY;
	lockd_refuse(c, &e);
}

/* Clients of lockd may send more parameters than these, which are passed over. */
static const char *const params[] = {
	"namespace", "queue", "key", "owner", "public", "name", "id", "limit", "cursor", "return",
	"engine", "selector", "content_type", "max_bytes", "prevent_overwrite", NULL
};

static bool
is_param(const char *name)
{
	for (const char *const *p = params; *p; p++)
		if (strcmp(*p, name) == 0)
			return true;
	return false;
}

/* At the door. */
static void
greet(struct call *c, const struct api *api)
{
	const struct slice id = call_field(c, "x-correlation-id");

	if (id.n > 0 && !correlation_check(id, "it", NULL))
		lockd_correlate(c, id);
	if (atomic_load_explicit(&api->draining, memory_order_relaxed))
		(void)call_add(c, "Shutdown-Imminent", SLICE("true")); /* better than nothing */
}

const struct dialect lockd_dialect = {
	.greet = greet,
	.refuse = refuse_err,
	.params = params,
};

void
lockd_reply(struct ask *a, unsigned status)
{
	buf_putc(&a->call->out, '\n');
	ask_reply(a, status);
}

/* --- what is asked ------------------------------------------------------------ */

bool
lockd_json(struct ask *a, struct slice body, const struct json_field *fields, size_t n,
	   void *out)
{
	char *const room = arena_alloc(&a->memory, body.n);
	struct slu_err err = { 0 };
	struct json r;

	if (!room) {
		ask_refuse(a, SLU_ENOMEM, NULL);
		return false;
	}
	if (body.n == 0)
		return true;
	json_init(&r, body, JSON_DEPTH);
	json_room(&r, room, body.n);
	(void)json_fields(&r, fields, n, JSON_LENIENT, out); /* what is required is asked for later */
	if (!json_end(&r, NULL))
		return true;
	(void)json_explain(&r, -1, &err);
	lockd_refuse_code(a->call, LOCKD_INVALID_BODY, err.text);
	return false;
}

bool
lockd_body(struct ask *a, const struct json_field *fields, size_t n, void *out)
{
	return lockd_json(a, a->call->body, fields, n, out);
}

struct slice
lockd_trim(struct slice s)
{
	while (s.n > 0 && strchr(" \t\r\n", s.p[0]) && s.p[0])
		s = (struct slice){ s.p + 1, s.n - 1 };
	while (s.n > 0 && strchr(" \t\r\n", s.p[s.n - 1]) && s.p[s.n - 1])
		s.n--;
	return s;
}

struct slice
lockd_query(struct ask *a, const char *name)
{
	const struct slice query = a->call->query;
	char *const room = query.n ? arena_alloc(&a->memory, query.n) : NULL;
	struct query_param p;
	struct query q;

	assert(is_param(name));
	a->starved |= query.n > 0 && !room;
	if (!room)
		return (struct slice){ 0 };
	query_init(&q, query, room, query.n);
	while (query_next(&q, &p))
		if (slice_eq(p.name, slice_of(name)))
			return p.value.n ? lockd_trim(p.value) : SLICE("");
	return (struct slice){ 0 };
}

/* *name, or what the query has, folded into the memory of the ask. */
static bool
fold(struct ask *a, struct slice *name, const char *what, enum lockd_code invalid)
{
	char *const out = arena_alloc(&a->memory, NAME_TEXT);
	struct slu_err err;

	if (!out) {
		ask_refuse(a, SLU_ENOMEM, NULL);
		return false;
	}
	if (name_fold(*name, what, out, &err)) {
		lockd_refuse_code(a->call, invalid, err.text);
		return false;
	}
	name->p = out;
	return true;
}

bool
lockd_space(struct ask *a, struct slice *namespace)
{
	*namespace = lockd_trim(*namespace);
	if (namespace->n == 0)
		*namespace = lockd_query(a, "namespace");
	if (namespace->n == 0)
		*namespace = SLICE("default");
	return fold(a, namespace, "namespace", LOCKD_INVALID_NAMESPACE);
}

bool
lockd_queue(struct ask *a, struct slice *queue, enum lockd_code missing)
{
	*queue = lockd_trim(*queue);
	if (queue->n == 0)
		*queue = lockd_query(a, "queue");
	if (queue->n > 0)
		return fold(a, queue, "queue", LOCKD_INVALID_QUEUE);
	lockd_refuse_code(a->call, missing, NULL);
	return false;
}

bool
lockd_key(struct ask *a, struct slice *key)
{
	char *const out = arena_alloc(&a->memory, NAME_TEXT);
	struct slu_err err;
	bool given = key->n > 0; /* a body with "" leaves it out */

	*key = lockd_trim(*key);
	if (key->n == 0) {
		*key = lockd_query(a, "key");
		given |= key->p != NULL;
	}
	while (key->n > 0 && key->p[0] == '/')
		*key = (struct slice){ key->p + 1, key->n - 1 };
	if (!out) {
		ask_refuse(a, SLU_ENOMEM, NULL);
		return false;
	}
	if (key->n == 0 && given)
		lockd_refuse_code(a->call, LOCKD_MISSING_KEY, NULL);
	if (key->n == 0)
		return !given;
	if (lock_key_fold(*key, "key", out, &err)) {
		lockd_refuse_code(a->call, LOCKD_INVALID_KEY, err.text);
		return false;
	}
	key->p = out;
	return true;
}

bool
lockd_txn(struct ask *a, struct slice text, struct lockd_xid *out)
{
	text = lockd_trim(text);
	*out = (struct lockd_xid){ { 0 } };
	if (text.n == 0 || (lockd_xid_parse(text, out) && !lockd_xid_is_zero(out)))
		return true;
	lockd_refuse_code(a->call, LOCKD_INVALID_TXN, NULL);
	return false;
}

slu_time
lockd_span(int64_t seconds, slu_time max)
{
	if (seconds <= 0)
		return 0;
	return seconds < max / SLU_SEC ? seconds * SLU_SEC : max;
}
