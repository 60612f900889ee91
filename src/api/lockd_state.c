/*
 * lockd_state.c - /v1/get, /v1/update, /v1/remove, /v1/metadata; the table of routes.
 */
#include "api/lockd_state.h"

#include "api/document.h"
#include "api/intake.h"
#include "api/limits.h"
#include "api/lockd_lock.h"
#include "auth/guard.h"
#include "base/parse.h"

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
#define LOCKD    .dialect = &lockd_dialect, .query = QUERY_ANY, .no_head = true
#define SMALL    .max_body = API_SMALL_BODY
#define BOTH     (RIGHT_READ | RIGHT_WRITE)
const struct route lockd_state_routes[] = {
	{ NULL,     "/v1/acquire",     lockd_acquire,       .needs = NEEDS_HOLDER, SMALL, .alone = true, LOCKD },
	{ NULL,     "/v1/keepalive",   lockd_keepalive,     .needs = NEEDS_HOLDER, SMALL, .settles = true, LOCKD },
	{ NULL,     "/v1/release",     lockd_release,       .needs = NEEDS_HOLDER, SMALL, .settles = true, LOCKD },
	{ NULL,     "/v1/describe",    lockd_describe,      .needs = RIGHT_READ,   SMALL, LOCKD },
	{ NULL,     "/v1/get",         lockd_get,           .needs = NEEDS_ANY, SMALL, .alone = true, LOCKD },
	{ NULL,     "/v1/update",      lockd_update,        .needs = RIGHT_WRITE,  .take = lockd_update_take, .max_body = LOCKD_DOCUMENT_MAX, .alone = true, LOCKD },
	{ NULL,     "/v1/mutate",      lockd_mutate,        .needs = RIGHT_WRITE,  .max_body = API_BODY_MAX, LOCKD },
	{ NULL,     "/v1/metadata",    lockd_metadata,      .needs = RIGHT_WRITE,  SMALL, LOCKD },
	{ NULL,     "/v1/remove",      lockd_remove,        .needs = RIGHT_WRITE,  SMALL, LOCKD },
	{ "POST",   "/v1/attachments", lockd_attach,        .needs = RIGHT_WRITE,  .take = lockd_attach_take, .max_body = LOCKD_ATTACHMENT_MAX, .alone = true, LOCKD },
	{ "GET",    "/v1/attachments", lockd_attachments,   .needs = NEEDS_ANY, LOCKD },
	{ "DELETE", "/v1/attachments", lockd_detach_all,    .needs = RIGHT_WRITE,  SMALL, LOCKD },
	{ "GET",    "/v1/attachment",  lockd_attachment,    .needs = NEEDS_ANY, .alone = true, LOCKD },
	{ "DELETE", "/v1/attachment",  lockd_detach,        .needs = RIGHT_WRITE,  SMALL, LOCKD },
	{ NULL,     "/v1/query",       lockd_search,        .needs = RIGHT_READ,   SMALL, .alone = true, LOCKD },
	{ "POST",   "/v1/index/flush", lockd_flush,         .needs = BOTH, SMALL, LOCKD },
	{ "GET",    "/v1/namespace",   lockd_namespace_get, .needs = BOTH, LOCKD },
	{ "POST",   "/v1/namespace",   lockd_namespace_set, .needs = BOTH, SMALL, LOCKD },
	{ "PUT",    "/v1/namespace",   lockd_namespace_set, .needs = BOTH, SMALL, LOCKD },
	{ NULL,     "/v1/txn/",        refuse_client,       .needs = NEEDS_HOLDER, SMALL, .below = true, LOCKD },
	{ NULL,     "/v1/tc/",         refuse_server,       .needs = NEEDS_HOLDER, SMALL, .below = true, LOCKD },
};
/* clang-format on */

const unsigned lockd_state_n_routes = sizeof lockd_state_routes / sizeof lockd_state_routes[0];

/* --- get ---------------------------------------------------------------------- */

struct get {
	struct lockd_lock l;
	struct document document;
};

static void
add_head(struct document *d, const struct message *m)
{
	const struct op *const op = d->op;

	(void)m;
	(void)call_add(d->ask->call, "Content-Type", SLICE("application/json")); /* all state is */
	lockd_add_number(d->ask->call, "X-Key-Version", op->lock.version);
	lockd_add_etag(d->ask->call, op->lock.etag);
	if (op->lock.token)
		lockd_add_number(d->ask->call, "X-Fencing-Token", op->lock.token);
}

static void
got(struct ask *a)
{
	struct get *const g = a->state;

	if (a->op.rc) {
		lockd_lock_refuse(a, &a->op);
		return;
	}
	if (a->op.lock.etag == 0) {
		lockd_add_number(a->call, "X-Key-Version", a->op.lock.version);
		call_answer_text(a->call, 204, NULL, (struct slice){ 0 });
		return;
	}
	g->document = (struct document){
		.ask = a,
		.op = &a->op,
		.record = &a->op.lock.record,
		.payload = &a->op.lock.payload,
		.head = add_head,
	};
	document_send(&g->document);
}

void
lockd_get(struct call *c, void *api)
{
	struct ask *const a = ask_new(api, c);
	struct get *const g = a ? ask_state(a, sizeof *g) : NULL;

	if (!g || !lockd_lock_key(a, &g->l) || !lockd_lock_reader(a, &g->l))
		return;
	lockd_lock_op(a, &g->l, &a->op, OP_STATE_GET);
	lockd_lock_run(a, &g->l, got);
}

/* --- update ------------------------------------------------------------------- */

struct update {
	struct lockd_lock l;
	struct intake intake;
	struct op_put put;
	int64_t expected_bytes; /* -1: not said */
	bool has_sum;
	unsigned char sum[INTAKE_SUM];
};

static void
update_ended(struct call *c, bool sent)
{
	struct ask *const a = c->user;
	struct update *const u = a->state;

	(void)sent; /* what was asked has happened, whoever knows it */
	intake_close(&u->intake);
	ask_free(a);
}

static int
hex_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool
read_sum(struct slice text, unsigned char out[static INTAKE_SUM])
{
	if (text.n != 2 * (size_t)INTAKE_SUM)
		return false;
	for (size_t i = 0; i < INTAKE_SUM; i++) {
		const int high = hex_of(text.p[2 * i]), low = hex_of(text.p[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		out[i] = (unsigned char)(high << 4 | low);
	}
	return true;
}

static bool
read_expected(struct ask *a, struct update *u)
{
	const struct slice bytes = lockd_field(a, "x-expected-bytes");
	const struct slice sum = lockd_field(a, "x-expected-sha256");

	u->expected_bytes = -1;
	if (bytes.n > 0 && parse_i64(bytes, 0, INT64_MAX, &u->expected_bytes, NULL)) {
		lockd_refuse_code(a->call, LOCKD_INVALID_EXPECTED_BYTES, NULL);
		return false;
	}
	u->has_sum = sum.n > 0;
	if (u->has_sum && !read_sum(sum, u->sum)) {
		lockd_refuse_code(a->call, LOCKD_INVALID_EXPECTED_SHA256, NULL);
		return false;
	}
	return true;
}

/* All but the body; before anything of that is stored. */
static struct ask *
begin_update(struct call *c, void *api)
{
	struct ask *const a = ask_new(api, c);
	struct update *const u = a ? ask_state(a, sizeof *u) : NULL;

	if (!u || !lockd_lock_key(a, &u->l) || !lockd_lock_right(a, &u->l, LOCKD_HOLDER) ||
	    !lockd_lock_conditions(a, &u->l) || !read_expected(a, u))
		return NULL;
	lockd_lock_op(a, &u->l, &a->op, OP_STATE_PUT);
	a->op.puts = &u->put;
	a->op.n_puts = 1;
	u->put.m.type = SLICE("application/json");
	if (!ask_pass(a))
		return NULL;
	u->intake = (struct intake){
		.ask = a,
		.engine = broker_engine_of(a->api->broker, ask_routes(a), u->l.namespace,
					   u->l.queue),
		.json = true,
		.sums = u->has_sum,
		.max = LOCKD_DOCUMENT_MAX,
		.too_large = LOCKD_DOCUMENT_TOO_LARGE,
	};
	c->ended = update_ended;
	return a;
}

void
lockd_update_take(struct call *c, void *api)
{
	struct ask *const a = c->user ? c->user : begin_update(c, api);

	if (a)
		intake_take(&((struct update *)a->state)->intake);
}

void
lockd_state_answer(struct ask *a, uint64_t bytes)
{
	const struct op_lock *const l = &a->op.lock;
	char etag[LOCKD_ETAG_TEXT];
	struct json_out w;

	if (a->op.rc) {
		lockd_lock_refuse(a, &a->op);
		return;
	}
	lockd_add_number(a->call, "X-Key-Version", l->version);
	lockd_add_etag(a->call, l->etag);
	json_out_init(&w, &a->call->out);
	json_out_object(&w, NULL);
	json_out_u64(&w, "new_version", l->version);
	json_out_str(&w, "new_state_etag", slice_of(lockd_etag_text(l->etag, etag)));
	json_out_u64(&w, "bytes", bytes);
	json_out_object(&w, "metadata");
	json_out_close(&w);
	json_out_close(&w);
	lockd_reply(a, 200);
}

static void
updated(struct ask *a)
{
	struct update *const u = a->state;

	intake_close(&u->intake);
	lockd_state_answer(a, u->put.m.payload_size);
}

static void
stored(struct intake *i)
{
	struct ask *const a = i->ask;
	struct update *const u = a->state;

	if (u->expected_bytes >= 0 && (uint64_t)u->expected_bytes != i->bytes)
		lockd_refuse_code(a->call, LOCKD_EXPECTED_BYTES, NULL);
	else if (u->has_sum && memcmp(u->sum, i->sum, INTAKE_SUM) != 0)
		lockd_refuse_code(a->call, LOCKD_EXPECTED_SHA256, NULL);
	else
		lockd_lock_run(a, &u->l, updated);
}

void
lockd_update(struct call *c, void *api)
{
	struct ask *const a = c->user ? c->user : begin_update(c, api);
	struct update *const u = a ? a->state : NULL;

	if (u)
		intake_end(&u->intake, &u->put.m, stored);
}

/* --- remove ------------------------------------------------------------------- */

static void
removed(struct ask *a)
{
	const bool there = a->op.count > 0;
	struct json_out w;

	if (a->op.rc) {
		lockd_lock_refuse(a, &a->op);
		return;
	}
	lockd_add_number(a->call, "X-Key-Version", a->op.lock.version);
	json_out_init(&w, &a->call->out);
	json_out_object(&w, NULL);
	json_out_bool(&w, "removed", there);
	if (there)
		json_out_u64(&w, "new_version", a->op.lock.version);
	json_out_close(&w);
	lockd_reply(a, 200);
}

void
lockd_remove(struct call *c, void *api)
{
	struct ask *const a = ask_new(api, c);
	struct lockd_lock *const l = a ? ask_state(a, sizeof *l) : NULL;

	if (!l || !lockd_lock_key(a, l) || !lockd_lock_right(a, l, LOCKD_HOLDER) ||
	    !lockd_lock_conditions(a, l))
		return;
	lockd_lock_op(a, l, &a->op, OP_STATE_REMOVE);
	lockd_lock_run(a, l, removed);
}

/* --- metadata ----------------------------------------------------------------- */

struct metadata {
	struct lockd_lock l;
	struct slice query_hidden; /* true, false, or nothing */
};

static const struct json_field metadata_fields[] = {
	JSON_FIELD(raw, struct metadata, query_hidden),
};

static void
noted(struct ask *a)
{
	const struct metadata *const m = a->state;
	struct json_out w;

	if (a->op.rc) {
		lockd_lock_refuse(a, &a->op);
		return;
	}
	lockd_add_number(a->call, "X-Key-Version", a->op.lock.version);
	json_out_init(&w, &a->call->out);
	json_out_object(&w, NULL);
	json_out_str(&w, "namespace", m->l.namespace);
	json_out_str(&w, "key", m->l.key);
	json_out_u64(&w, "version", a->op.lock.version);
	json_out_object(&w, "metadata");
	json_out_bool(&w, "query_hidden", a->op.lock.hidden);
	json_out_close(&w);
	json_out_close(&w);
	lockd_reply(a, 200);
}

void
lockd_metadata(struct call *c, void *api)
{
	struct ask *const a = ask_new(api, c);
	struct metadata *const m = a ? ask_state(a, sizeof *m) : NULL;
	bool hidden;

	if (!m || !lockd_lock_key(a, &m->l) || !lockd_lock_right(a, &m->l, LOCKD_HOLDER) ||
	    !lockd_lock_conditions(a, &m->l) || !lockd_body(a, metadata_fields, 1, m))
		return;
	if (m->query_hidden.n == 0)
		m->query_hidden = lockd_field(a, "x-lockd-meta-query-hidden");
	hidden = slice_eq(m->query_hidden, SLICE("true"));
	if (!hidden && !slice_eq(m->query_hidden, SLICE("false"))) {
		lockd_refuse_code(c, LOCKD_INVALID_METADATA, "query_hidden: expected true or false");
		return;
	}
	lockd_lock_op(a, &m->l, &a->op, OP_STATE_META);
	a->op.lock.hidden = hidden;
	lockd_lock_run(a, &m->l, noted);
}
