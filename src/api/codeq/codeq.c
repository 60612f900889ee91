#include "api/codeq/codeq.h"

#include "api/api.h"
#include "api/authorize.h"
#include "api/refusals.h"
#include "api/upgrade/upgrade.h"
#include "auth/guard.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/random.h>

/* --- errors ------------------------------------------------------------------- */

unsigned
codeq_status(int rc)
{
	return (unsigned)slu_err_row(rc)->flat_status;
}

static void
write_error(struct buf *out, const char *text)
{
	struct json_out w;

	buf_clear(out);
	json_out_open(&w, out);
	json_out_str(&w, "error", slice_of(text));
	json_out_close(&w);
	api_end_line(out);
}

void
codeq_refuse(struct apicall *a, unsigned status, const char *fmt, ...)
{
	char text[320];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof text, fmt, args); /* a long text is cut */
	va_end(args);
	write_error(&a->x->out, text);
	call_answer(call_of(a->x), status, api_json, &a->x->out);
}

void
codeq_refuse_rc(struct apicall *a, int rc, const char *text)
{
	codeq_refuse(a, codeq_status(rc), "%s", text && *text ? text : slu_err_row(rc)->text);
}

/* dialect.refuse. A limit names itself, as codeQ does. */
static void
refuse(struct call *c, const struct slu_err *err, int64_t index)
{
	const unsigned status = codeq_status((int)err->code);
	struct buf *const out = &c->x.out;
	struct json_out w;
	char seconds[24];

	(void)index; /* no action has a list that fails as a whole */
	buf_clear(out);
	json_out_open(&w, out);
	json_out_str(&w, "error", slice_of(err->text));
	if (status == 429 || status == 503) {
		(void)snprintf(seconds, sizeof seconds, "%" PRId64, api_retry_seconds(err));
		(void)call_add(c, "Retry-After", slice_of(seconds)); /* the answer is fine without */
		json_out_i64(&w, "retryAfterSeconds", api_retry_seconds(err));
	}
	if (err->limit)
		json_out_str(&w, "operation", slice_of(err->limit));
	json_out_close(&w);
	api_end_line(out);
	call_answer(c, status, api_json, out);
}

static void
describe(struct buf *out, const struct dialect_refusal *r)
{
	write_error(out, r->text);
}

/* --- the caller --------------------------------------------------------------- */

static const unsigned needs[] = {
	[CODEQ_PRODUCER] = RIGHT_WRITE,
	[CODEQ_WORKER] = RIGHT_CONSUME,
	[CODEQ_EITHER] = NEEDS_ANY,
	[CODEQ_ADMINS] = RIGHT_ADMIN,
};

static bool
forbid(struct apicall *a, unsigned status, const char *text)
{
	refusals_caller(a->api, a->x, REFUSAL_SCOPE, text);
	codeq_refuse(a, status, "%s", text);
	return false;
}

/* CODEQ-1, CODEQ-TOKEN-2. Returns false if it refused the call. */
static bool
check_token(struct apicall *a, const struct codeq_token *t, const struct codeq_action *action)
{
	char text[96];

	if (!t->tenant[0])
		return forbid(a, 403, "invalid tenant: the claims tid, tenantId, organizationId differ, or are not [a-z][a-z0-9-]{1,62}");
	if (action->who == CODEQ_ADMINS && !(t->scopes & CODEQ_ADMIN))
		return forbid(a, 401, "Admin only");
	if (action->who == CODEQ_PRODUCER && t->works)
		return forbid(a, 403, "expected the token of a producer, without eventTypes");
	if (action->who != CODEQ_WORKER)
		return true;
	if (!t->works)
		return forbid(a, 403, "expected the token of a worker, with eventTypes");
	(void)snprintf(text, sizeof text, "needs the scope %s", codeq_scope_name(action->scope)); /* fits */
	return t->scopes & action->scope || forbid(a, 403, text);
}

/* The identity of a token of codeQ replaces the identity that other dialects see. A token with scopes of Sluice
 * has its rights by them. */
static bool
enter(struct apicall *a, const struct codeq_action *action)
{
	struct codeq_call *const s = codeq_of(a);
	struct identity *const who = a->x->who;
	struct slice space;

	a->terms.needs = needs[action->who];
	if (who && who->codeq && who->n_grants == 0) {
		a->x->who = identity_ref(who->codeq);
		identity_unref(who);
		s->token = ((struct identity *)a->x->who)->token;
		if (!check_token(a, s->token, action))
			return false;
	}
	space = s->token ? slice_of(s->token->tenant) : identity_home(a->x->who);
	(void)snprintf(s->space, sizeof s->space, "%.*s", (int)space.n, space.p); /* fits: a name */
	return authorize_space(a, slice_of(s->space));
}

/* --- requests ----------------------------------------------------------------- */

struct slice
codeq_rest(struct apicall *a)
{
	const struct call *const c = call_of(a->x);
	const size_t head = strlen(c->route->path), tail = c->route->tail ? strlen(c->route->tail) : 0;

	return (struct slice){ c->path.p + head, c->path.n - head - tail };
}

struct slice
codeq_copy(struct apicall *a, struct slice text)
{
	char *const p = arena_alloc(&a->memory, text.n + 1);

	if (!p)
		return (struct slice){ 0 };
	memcpy(p, text.p, text.n);
	p[text.n] = '\0';
	return (struct slice){ p, text.n };
}

static const struct codeq_action *const actions[] = {
	&codeq_create,
	&codeq_create_batch,
	&codeq_claim,
	&codeq_claim_batch,
	&codeq_heartbeat,
	&codeq_abandon,
	&codeq_nack,
	&codeq_result,
	&codeq_result_batch,
	&codeq_task_get,
	&codeq_result_get,
	&codeq_queues,
	&codeq_queue,
	&codeq_cleanup,
	&codeq_raft,
	&codeq_topic_put,
	&codeq_topic_get,
	&codeq_topic_delete,
	&codeq_subscribe,
	&codeq_subscription_beat,
};

enum {
	CREATE,
	CREATE_BATCH,
	CLAIM,
	CLAIM_BATCH,
	HEARTBEAT,
	ABANDON,
	NACK,
	RESULT,
	RESULT_BATCH,
	TASK_GET,
	RESULT_GET,
	QUEUES,
	QUEUE,
	CLEANUP,
	RAFT,
	TOPIC_PUT,
	TOPIC_GET,
	TOPIC_DELETE,
	SUBSCRIBE,
	SUBSCRIPTION_BEAT,
	N_ACTIONS
};

_Static_assert(COUNT(actions) == N_ACTIONS, "a row for each");

static void
run(struct apicall *a)
{
	const struct codeq_action *const action = actions[a->arg];
	struct codeq_call *const s = codeq_of(a);

	if (!enter(a, action))
		return;
	(void)call_add(call_of(a->x), "Cache-Control", SLICE("no-store")); /* the answer is fine without */
	s->own = action->own ? arena_alloc(&a->memory, action->own) : NULL;
	if (action->own && !s->own) {
		apicall_refuse(a, SLU_ENOMEM, NULL);
		return;
	}
	if (s->own)
		memset(s->own, 0, action->own);
	action->run(a);
}

/* --- the dialect -------------------------------------------------------------- */

static const struct param wait_params[] = {
	PARAM_ROW("waitSeconds", count, struct codeq_call, wait, .max = UINT32_MAX),
};

static const struct param deletion_params[] = {
	PARAM_ROW("deletionPolicy", word, struct codeq_call, deletion),
};

#define HANDLER(action, ...) \
	(&(const struct handler){ .run = run, .state = sizeof(struct codeq_call), .arg = (action), __VA_ARGS__ })

/* The id of the request is repeated, or made. */
static void
begin(struct call *c, const struct api *api)
{
	const struct slice given = call_field(c, "x-request-id");
	unsigned char r[16] = { 0 };
	char text[33];

	(void)api;
	if (given.n > 0 && !correlation_check(given, "it", NULL)) {
		(void)call_add(c, "X-Request-Id", given); /* the answer is fine without */
		return;
	}
	(void)getrandom(r, sizeof r, 0); /* an id that repeats is no harm */
	for (unsigned i = 0; i < sizeof r; i++)
		(void)snprintf(text + 2 * i, 3, "%02x", r[i]); /* fits */
	(void)call_add(c, "X-Request-Id", slice_of(text));     /* the same */
}

#define BASE "/v1/codeq"

/* clang-format off */
static const struct route routes[] = {
	{ "POST", BASE "/tasks",               .handler = HANDLER(CREATE),       .needs = RIGHT_WRITE, .max_body = CODEQ_BODY, .framed = true },
	{ "POST", BASE "/tasks/batch",         .handler = HANDLER(CREATE_BATCH), .needs = RIGHT_WRITE, .max_body = CODEQ_BATCH_BODY, .framed = true },
	{ "POST", BASE "/tasks/claim",         .handler = HANDLER(CLAIM),        .needs = RIGHT_CONSUME, .max_body = 64 << 10, .alone = true, .framed = true },
	{ "POST", BASE "/tasks/claim/batch",   .handler = HANDLER(CLAIM_BATCH),  .needs = RIGHT_CONSUME, .max_body = 64 << 10, .framed = true },
	{ "POST", BASE "/tasks/batch/results", .handler = HANDLER(RESULT_BATCH), .needs = RIGHT_CONSUME, .max_body = CODEQ_BATCH_BODY, .settles = true, .framed = true },
	{ "POST", BASE "/tasks/", .tail = "/heartbeat", .handler = HANDLER(HEARTBEAT), .needs = RIGHT_CONSUME, .max_body = 64 << 10, .settles = true, .framed = true },
	{ "POST", BASE "/tasks/", .tail = "/abandon",   .handler = HANDLER(ABANDON),   .needs = RIGHT_CONSUME, .max_body = 64 << 10, .settles = true, .framed = true },
	{ "POST", BASE "/tasks/", .tail = "/nack",      .handler = HANDLER(NACK),      .needs = RIGHT_CONSUME, .max_body = 128 << 10, .settles = true, .framed = true },
	{ "POST", BASE "/tasks/", .tail = "/result",    .handler = HANDLER(RESULT),    .needs = RIGHT_CONSUME, .max_body = CODEQ_BODY, .settles = true, .framed = true },
	{ "GET",  BASE "/tasks/", .tail = "/result",    .handler = HANDLER(RESULT_GET, QUERY_ROWS(wait_params)), .needs = NEEDS_ANY, .query = QUERY_READ, .alone = true },
	{ "GET",  BASE "/tasks/", .tail = "",           .handler = HANDLER(TASK_GET),  .needs = NEEDS_ANY },
	{ "GET",  BASE "/stream",              upgrade_enter, .needs = NEEDS_ANY },
	{ "POST", BASE "/workers/subscriptions", .handler = HANDLER(SUBSCRIBE), .needs = RIGHT_CONSUME, .max_body = 64 << 10 },
	{ "POST", BASE "/workers/subscriptions/", .tail = "/heartbeat", .handler = HANDLER(SUBSCRIPTION_BEAT), .needs = RIGHT_CONSUME, .max_body = 4 << 10 },
	{ "GET",  BASE "/raft/status",         .handler = HANDLER(RAFT),     .needs = NEEDS_ANY },
	{ "GET",  BASE "/admin/queues",        .handler = HANDLER(QUEUES),   .needs = RIGHT_ADMIN },
	{ "GET",  BASE "/admin/queues/", .tail = "", .handler = HANDLER(QUEUE), .needs = RIGHT_ADMIN },
	{ "POST", BASE "/admin/tasks/cleanup", .handler = HANDLER(CLEANUP),  .needs = RIGHT_ADMIN, .max_body = 64 << 10 },
	{ "PUT",    BASE "/admin/topics/", .tail = "", .handler = HANDLER(TOPIC_PUT),    .needs = RIGHT_ADMIN, .max_body = 1 << 20 },
	{ "GET",    BASE "/admin/topics/", .tail = "", .handler = HANDLER(TOPIC_GET),    .needs = RIGHT_ADMIN },
	{ "DELETE", BASE "/admin/topics/", .tail = "", .handler = HANDLER(TOPIC_DELETE, QUERY_ROWS(deletion_params)), .needs = RIGHT_ADMIN, .query = QUERY_READ },
};
/* clang-format on */

const struct dialect codeq_dialect = {
	.name = "codeq",
	.prefix = BASE "/",
	.base = BASE,
	.routes = routes,
	.n_routes = COUNT(routes),
	.type = "application/json",
	.begin = begin,
	.refuse = refuse,
	.describe = describe,
};
