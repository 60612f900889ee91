#include "api/lockd/lockd.h"

#include "api/limits.h"
#include "api/lockd/state.h"
#include "form/values.h"
#include "auth/guard.h"
#include "base/limit.h"
#include "http/query.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

/* --- errors ------------------------------------------------------------------- */

static const struct code_row {
	unsigned status;
	const char *name;
	const char *text;
} codes[] = {
#define X(name, status, code, text) [LOCKD_##name] = { status, code, text },
	LOCKD_CODES(X)
#undef X
};

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

	(void)lockd_correlation(exchange_arg(&c->x), c);
	(void)snprintf(text, sizeof text, "%" PRId64, e->retry_after); /* fits */
	if (e->retry_after > 0)
		(void)call_set(c, "Retry-After", slice_of(text)); /* the body has it, too */
	buf_clear(&c->x.out);
	json_out_open(&w, &c->x.out);
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
	api_end_line(&c->x.out);
	call_answer(c, status, api_json, &c->x.out);
}

void
lockd_refuse(struct call *c, const struct lockd_error *e)
{
	const struct code_row *const row = &codes[e->code];
	const struct apicall *const a = c->x.user;
	struct lockd_error full = *e;

	if (a && a->starved) { /* a parameter may look missing because there was no memory to read it */
		dialect_refuse(c, SLU_ENOMEM, NULL, -1);
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

bool
lockd_reject(struct apicall *a, enum lockd_code code, const char *detail)
{
	lockd_refuse_code(call_of(a->x), code, detail);
	return false;
}

void
lockd_refuse_body(struct apicall *a, const struct slu_err *err, enum lockd_code too_large)
{
	if (err->code == SLU_ETOOBIG)
		lockd_refuse_code(call_of(a->x), too_large, err->text);
	else if (err->code == SLU_EINVAL)
		lockd_refuse_code(call_of(a->x), LOCKD_INVALID_BODY, err->text);
	else
		apicall_refuse_err(a, err, -1);
}

/* The codes that lockd's clients know by another name or status. */
static const struct dialect_error errors[] = {
	{ SLU_EINVAL, "invalid_body", 400 },
	{ SLU_EFORBIDDEN, "namespace_forbidden", 403 },
	{ SLU_ETIMEOUT, "waiting", 409 },
	{ SLU_ELEASE, "lease_required", 403 },
	{ SLU_EEXISTS, "already_exists", 409 },
	{ SLU_ECONFLICT, "version_conflict", 409 },
	{ SLU_ETOOBIG, "payload_too_large", 413 },
	{ SLU_EBUSY, "throttled", 429 },
	{ SLU_ECANCELED, "waiting", 409 },
	{ SLU_ECORRUPT, "internal_error", 500 },
	{ SLU_ECLOSED, "shutdown_draining", 503 },
};

/* Limits on waiting consumers have a code of their own. */
static bool
is_about_waiting(const struct slu_err *err)
{
	const enum limit limit = limit_by_name(err->limit);

	return limit == LIMIT_WAITING || limit == LIMIT_QUEUE_WAITING || limit == LIMIT_CONSUMERS;
}

static void
refuse_err(struct call *c, const struct slu_err *err, int64_t index)
{
	const struct dialect_error row = dialect_error(&lockd_dialect, (int)err->code);
	struct lockd_error e = { .detail = *err->text ? err->text : slu_err_row(row.code)->text };

	(void)index; /* this dialect has no lists */
	if (row.status == 429 || row.status == 503)
		e.retry_after = api_retry_seconds(err);
	if (!is_about_waiting(err)) {
		refuse(c, row.status, row.name, &e);
		return;
	}
	e.code = LOCKD_QUEUE_BUSY;
	lockd_refuse(c, &e);
}

/* The known parameters. Clients of lockd may send others, which are ignored. */
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

static void
begin(struct call *c, const struct api *api)
{
	const struct slice id = call_field(c, "x-correlation-id");

	if (id.n > 0 && !correlation_check(id, "it", NULL))
		lockd_correlate(c, id);
	if (atomic_load_explicit(&api->draining, memory_order_relaxed))
		(void)call_add(c, "Shutdown-Imminent", SLICE("true")); /* better than nothing */
}

/* The name of a body that is too long depends on the path. */
static const char *
name_of_body(struct slice path)
{
	static const struct {
		const char *path;
		enum lockd_code code;
	} rows[] = {
		{ "/v1/update", LOCKD_DOCUMENT_TOO_LARGE },
		{ "/v1/mutate", LOCKD_DOCUMENT_TOO_LARGE },
		{ "/v1/attachments", LOCKD_ATTACHMENT_TOO_LARGE },
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		if (slice_eq(path, slice_of(rows[i].path)))
			return codes[rows[i].code].name;
	return dialect_error(&lockd_dialect, SLU_ETOOBIG).name;
}

static const char *
name_of(const struct dialect_refusal *r)
{
	if (r->status == 413)
		return name_of_body(r->path);
	if (r->status == 405)
		return r->reason;
	if (r->status == 408) /* not `waiting`: the server did not read the request */
		return slu_err_row(r->code)->flat_name;
	return dialect_error(&lockd_dialect, r->code).name;
}

static void
describe(struct buf *out, const struct dialect_refusal *r)
{
	struct json_out w;

	json_out_open(&w, out);
	json_out_str(&w, "error", slice_of(name_of(r)));
	json_out_str(&w, "detail", slice_of(r->text));
	json_out_close(&w);
	api_end_line(out);
}

/* --- what is asked ------------------------------------------------------------ */

bool
lockd_json(struct apicall *a, struct slice body, const struct json_field *fields, size_t n,
	   void *out)
{
	char *const room = arena_alloc(&a->memory, body.n);
	struct slu_err err = { 0 };
	struct json r;

	if (!room)
		return !apicall_refused(a, SLU_ENOMEM, NULL);
	if (body.n == 0)
		return true;
	json_init(&r, body, JSON_DEPTH);
	json_room(&r, room, body.n);
	(void)json_fields(&r, fields, n, JSON_LENIENT, out); /* handlers check the required members */
	if (!json_end(&r, NULL))
		return true;
	(void)json_explain(&r, -1, &err);
	return lockd_reject(a, LOCKD_INVALID_BODY, err.text);
}

bool
lockd_body(struct apicall *a, const struct json_field *fields, size_t n, void *out)
{
	return lockd_json(a, call_of(a->x)->body, fields, n, out);
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
lockd_query(struct apicall *a, const char *name)
{
	const struct slice query = call_of(a->x)->query;
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

/* *name, folded into the memory of the apicall. */
static bool
fold(struct apicall *a, struct slice *name, const char *what, enum lockd_code invalid)
{
	char *const out = arena_alloc(&a->memory, NAME_TEXT);
	struct slu_err err;

	if (!out)
		return !apicall_refused(a, SLU_ENOMEM, NULL);
	if (name_fold(*name, what, out, &err))
		return lockd_reject(a, invalid, err.text);
	name->p = out;
	return true;
}

bool
lockd_space(struct apicall *a, struct slice *namespace)
{
	*namespace = lockd_trim(*namespace);
	if (namespace->n == 0)
		*namespace = lockd_query(a, "namespace");
	if (namespace->n == 0)
		*namespace = SLICE("default");
	return fold(a, namespace, "namespace", LOCKD_INVALID_NAMESPACE);
}

bool
lockd_queue(struct apicall *a, struct slice *queue, enum lockd_code missing)
{
	*queue = lockd_trim(*queue);
	if (queue->n == 0)
		*queue = lockd_query(a, "queue");
	if (queue->n > 0)
		return fold(a, queue, "queue", LOCKD_INVALID_QUEUE);
	return lockd_reject(a, missing, NULL);
}

bool
lockd_key(struct apicall *a, struct slice *key)
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
	if (!out)
		return !apicall_refused(a, SLU_ENOMEM, NULL);
	if (key->n == 0 && given)
		lockd_refuse_code(call_of(a->x), LOCKD_MISSING_KEY, NULL);
	if (key->n == 0)
		return !given;
	if (lock_key_fold(*key, "key", out, &err))
		return lockd_reject(a, LOCKD_INVALID_KEY, err.text);
	key->p = out;
	return true;
}

bool
lockd_txn(struct apicall *a, struct slice text, struct lockd_xid *out)
{
	text = lockd_trim(text);
	*out = (struct lockd_xid){ { 0 } };
	if (text.n == 0 || (lockd_xid_parse(text, out) && !lockd_xid_is_zero(out)))
		return true;
	return lockd_reject(a, LOCKD_INVALID_TXN, NULL);
}

slu_time
lockd_span(int64_t seconds, slu_time max)
{
	if (seconds <= 0)
		return 0;
	return seconds < max / SLU_SEC ? seconds * SLU_SEC : max;
}

/* --- routes ------------------------------------------------------------------- */

static void
refuse_client(struct call *c, void *api)
{
	(void)api;
	lockd_refuse_code(c, LOCKD_TC_CLIENT_REQUIRED, NULL);
}

static void
refuse_server(struct call *c, void *api)
{
	(void)api;
	lockd_refuse_code(c, LOCKD_TC_SERVER_REQUIRED, NULL);
}

/* clang-format off */
#define LOCKD .query = QUERY_ANY, .no_head = true
#define SMALL .max_body = API_SMALL_BODY
#define BOTH  (RIGHT_READ | RIGHT_WRITE)
static const struct route routes[] = {
	{ NULL, "/v1/queue/enqueue", lockd_enqueue, .take = lockd_enqueue_take, .needs = RIGHT_WRITE, .max_body = LOCKD_BODY_MAX, LOCKD },
	{ NULL, "/v1/queue/dequeue", .handler = &lockd_dequeue, .needs = RIGHT_CONSUME, SMALL, .alone = true, .worker = true, LOCKD },
	{ NULL, "/v1/queue/subscribe", .handler = &lockd_subscribe, .needs = RIGHT_CONSUME, SMALL, .alone = true, LOCKD },
	{ NULL, "/v1/queue/dequeueWithState", .handler = &lockd_dequeue_with_state, .needs = RIGHT_CONSUME, SMALL, .alone = true, .worker = true, LOCKD },
	{ NULL, "/v1/queue/subscribeWithState", .handler = &lockd_subscribe_with_state, .needs = RIGHT_CONSUME, SMALL, .alone = true, LOCKD },
	{ NULL, "/v1/queue/watch", .handler = &lockd_watch, .needs = RIGHT_READ, SMALL, .alone = true, LOCKD },
	{ NULL, "/v1/queue/ack",     .handler = &lockd_ack,     .needs = RIGHT_CONSUME, SMALL, .settles = true, LOCKD },
	{ NULL, "/v1/queue/nack",    .handler = &lockd_nack,    .needs = RIGHT_CONSUME, .max_body = API_BODY_MAX, .settles = true, LOCKD },
	{ NULL, "/v1/queue/extend",  .handler = &lockd_extend,  .needs = RIGHT_CONSUME, SMALL, .settles = true, .worker = true, LOCKD },
	{ NULL, "/v1/queue/stats",   .handler = &lockd_stats,   .needs = RIGHT_READ, SMALL, LOCKD },

	{ NULL,     "/v1/acquire",     .handler = &lockd_acquire,       .needs = NEEDS_HOLDER, SMALL, .alone = true, LOCKD },
	{ NULL,     "/v1/keepalive",   .handler = &lockd_keepalive,     .needs = NEEDS_HOLDER, SMALL, .settles = true, LOCKD },
	{ NULL,     "/v1/release",     .handler = &lockd_release,       .needs = NEEDS_HOLDER, SMALL, .settles = true, LOCKD },
	{ NULL,     "/v1/describe",    .handler = &lockd_describe,      .needs = RIGHT_READ,   SMALL, LOCKD },
	{ NULL,     "/v1/get",         .handler = &lockd_get,           .needs = NEEDS_ANY, SMALL, .alone = true, LOCKD },
	{ NULL,     "/v1/update",      lockd_update,        .needs = RIGHT_WRITE,  .take = lockd_update_take, .max_body = LOCKD_DOCUMENT_MAX, .alone = true, LOCKD },
	{ NULL,     "/v1/mutate",      .handler = &lockd_mutate,        .needs = RIGHT_WRITE,  .max_body = API_BODY_MAX, LOCKD },
	{ NULL,     "/v1/metadata",    .handler = &lockd_metadata,      .needs = RIGHT_WRITE,  SMALL, LOCKD },
	{ NULL,     "/v1/remove",      .handler = &lockd_remove,        .needs = RIGHT_WRITE,  SMALL, LOCKD },
	{ "POST",   "/v1/attachments", lockd_attach,        .needs = RIGHT_WRITE,  .take = lockd_attach_take, .max_body = LOCKD_ATTACHMENT_MAX, .alone = true, LOCKD },
	{ "GET",    "/v1/attachments", .handler = &lockd_attachments,   .needs = NEEDS_ANY, LOCKD },
	{ "DELETE", "/v1/attachments", .handler = &lockd_detach_all,    .needs = RIGHT_WRITE,  SMALL, LOCKD },
	{ "GET",    "/v1/attachment",  .handler = &lockd_attachment,    .needs = NEEDS_ANY, .alone = true, LOCKD },
	{ "DELETE", "/v1/attachment",  .handler = &lockd_detach,        .needs = RIGHT_WRITE,  SMALL, LOCKD },
	{ NULL,     "/v1/query",       .handler = &lockd_search,        .needs = RIGHT_READ,   SMALL, .alone = true, LOCKD },
	{ "POST",   "/v1/index/flush", .handler = &lockd_flush,         .needs = BOTH, SMALL, LOCKD },
	{ "GET",    "/v1/namespace",   .handler = &lockd_namespace_get, .needs = BOTH, LOCKD },
	{ "POST",   "/v1/namespace",   .handler = &lockd_namespace_set, .needs = BOTH, SMALL, LOCKD },
	{ "PUT",    "/v1/namespace",   .handler = &lockd_namespace_set, .needs = BOTH, SMALL, LOCKD },
	{ NULL,     "/v1/txn/",        refuse_client,       .needs = NEEDS_HOLDER, SMALL, .below = true, LOCKD },
	{ NULL,     "/v1/tc/",         refuse_server,       .needs = NEEDS_HOLDER, SMALL, .below = true, LOCKD },
};
/* clang-format on */

const struct dialect lockd_dialect = {
	.name = "lockd",
	.prefix = "/v1/",
	.routes = routes,
	.n_routes = COUNT(routes),
	.type = api_json,
	.errors = errors,
	.n_errors = COUNT(errors),
	.begin = begin,
	.refuse = refuse_err,
	.describe = describe,
	.read_body = lockd_body,
	.params = params,
};
