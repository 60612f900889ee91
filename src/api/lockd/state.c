/*
 * state.c - /v1/get, /v1/update, /v1/remove, /v1/metadata.
 */
#include "api/lockd/state.h"

#include "api/document.h"
#include "api/upload.h"
#include "api/lockd/lock.h"
#include "base/parse.h"

/* --- get ---------------------------------------------------------------------- */

struct get {
	struct lockd_lock l;
	struct document document;
	struct mask *mask; /* NULL: the caller sees the document as it is */
	struct buf plain;
	struct slu_err err;
};

static void
add_head(struct document *d, const struct message *m)
{
	const struct op *const op = d->op;

	(void)m;
	(void)call_add(call_of(d->apicall->x), "Content-Type", SLICE("application/json")); /* every state is JSON */
	lockd_add_number(call_of(d->apicall->x), "X-Key-Version", op->lock.version);
	lockd_add_etag(call_of(d->apicall->x), op->lock.etag);
	if (op->lock.token)
		lockd_add_number(call_of(d->apicall->x), "X-Fencing-Token", op->lock.token);
}

/* A document for a caller who may only look is masked in memory. */
static int
read_plain(struct apicall *a, bool may_block)
{
	struct get *const g = a->state;

	return document_read(a->op.engine, &a->op.lock.record, &a->op.lock.payload, DOCUMENT_LARGE, may_block, &g->plain, &g->err);
}

static void
send_masked(struct apicall *a, int rc)
{
	struct get *const g = a->state;

	op_unpin(&a->op);
	if (rc == SLU_ETOOBIG)
		(void)lockd_reject(a, LOCKD_NAMESPACE_FORBIDDEN, "a document of more than 1 MiB cannot be masked");
	else if (!rc)
		(void)mask_body(g->mask, buf_slice(&g->plain), &a->x->out);
	mask_unref(g->mask);
	buf_release(&g->plain);
	if (rc == SLU_ETOOBIG || apicall_refused(a, rc ? rc : a->x->out.failed ? SLU_ENOMEM
									       : 0,
						 g->err.text))
		return;
	add_head(&g->document, NULL);
	call_answer(call_of(a->x), 200, NULL, &a->x->out);
}

static void
got(struct apicall *a)
{
	struct get *const g = a->state;

	if (lockd_lock_failed(a))
		return;
	if (a->op.lock.etag == 0) {
		lockd_add_number(call_of(a->x), "X-Key-Version", a->op.lock.version);
		call_answer_text(call_of(a->x), 204, NULL, (struct slice){ 0 });
		return;
	}
	g->mask = mask_for(a, g->l.namespace, false);
	g->document = (struct document){ .apicall = a, .op = &a->op };
	buf_init(&g->plain, DOCUMENT_LARGE);
	if (g->mask)
		apicall_try(a, read_plain, send_masked);
	else
		document_send(&g->document, a, add_head);
}

static void
get(struct apicall *a)
{
	struct get *const g = a->state;

	if (!lockd_lock_reader(a, &g->l))
		return;
	lockd_lock_op(a, &g->l, &a->op, OP_STATE_GET);
	lockd_lock_run(a, &g->l, got);
}

const struct handler lockd_get = { .run = get, .state = sizeof(struct get) };

/* --- update ------------------------------------------------------------------- */

struct update {
	struct lockd_lock l;
	struct upload upload;
	struct op_put put;
	int64_t expected_bytes; /* -1: not sent */
	bool has_sum;
	unsigned char sum[UPLOAD_SUM];
};

static void
update_ended(struct exchange *x, bool sent)
{
	struct apicall *const a = x->user;
	struct update *const u = a->state;

	(void)sent; /* the work is done either way */
	upload_close(&u->upload);
	apicall_free(a);
}

static bool
read_sum(struct slice text, unsigned char out[static UPLOAD_SUM])
{
	if (text.n != 2 * (size_t)UPLOAD_SUM)
		return false;
	for (size_t i = 0; i < UPLOAD_SUM; i++) {
		const int high = ascii_hex(text.p[2 * i]), low = ascii_hex(text.p[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		out[i] = (unsigned char)(high << 4 | low);
	}
	return true;
}

static bool
read_expected(struct apicall *a, struct update *u)
{
	const struct slice bytes = lockd_field(a, "x-expected-bytes");
	const struct slice sum = lockd_field(a, "x-expected-sha256");

	u->expected_bytes = -1;
	if (bytes.n > 0 && parse_i64(bytes, 0, INT64_MAX, &u->expected_bytes, NULL))
		return lockd_reject(a, LOCKD_INVALID_EXPECTED_BYTES, NULL);
	u->has_sum = sum.n > 0;
	if (u->has_sum && !read_sum(sum, u->sum))
		return lockd_reject(a, LOCKD_INVALID_EXPECTED_SHA256, NULL);
	return true;
}

static void
refuse_body(struct upload *i)
{
	lockd_refuse_body(i->apicall, &i->err, LOCKD_DOCUMENT_TOO_LARGE);
}

/* Checks everything but the body, before anything is stored. */
static struct apicall *
begin_update(struct call *c, void *api)
{
	struct apicall *const a = apicall_new(api, c);
	struct update *const u = a ? apicall_state(a, sizeof *u) : NULL;

	if (!u || !lockd_lock_writer(a, &u->l) || !read_expected(a, u))
		return NULL;
	lockd_lock_op(a, &u->l, &a->op, OP_STATE_PUT);
	a->op.puts = &u->put;
	a->op.n_puts = 1;
	u->put.m.type = SLICE("application/json");
	if (!apicall_pass(a))
		return NULL;
	u->upload = (struct upload){
		.apicall = a,
		.engine = broker_engine_of(a->api->broker, apicall_routes(a), u->l.namespace,
					   u->l.queue),
		.json = true,
		.sums = u->has_sum,
		.max = LOCKD_DOCUMENT_MAX,
		.refuse = refuse_body,
	};
	c->x.ended = update_ended;
	return a;
}

void
lockd_update_take(struct call *c, void *api)
{
	struct apicall *const a = c->x.user ? c->x.user : begin_update(c, api);

	if (a)
		upload_take(&((struct update *)a->state)->upload);
}

void
lockd_state_answer(struct apicall *a, uint64_t bytes)
{
	const struct op_lock *const l = &a->op.lock;
	char etag[LOCKD_ETAG_TEXT];
	struct json_out w;

	if (lockd_lock_failed(a))
		return;
	lockd_add_number(call_of(a->x), "X-Key-Version", l->version);
	lockd_add_etag(call_of(a->x), l->etag);
	apicall_object(a, &w);
	json_out_u64(&w, "new_version", l->version);
	json_out_str(&w, "new_state_etag", slice_of(lockd_etag_text(l->etag, etag)));
	json_out_u64(&w, "bytes", bytes);
	json_out_object(&w, "metadata");
	json_out_close(&w);
	apicall_reply_object(a, &w, 200);
}

static void
updated(struct apicall *a)
{
	struct update *const u = a->state;

	upload_close(&u->upload);
	lockd_state_answer(a, u->put.m.payload_size);
}

static void
stored(struct upload *i)
{
	struct apicall *const a = i->apicall;
	struct update *const u = a->state;

	if (u->expected_bytes >= 0 && (uint64_t)u->expected_bytes != i->bytes)
		lockd_refuse_code(call_of(a->x), LOCKD_EXPECTED_BYTES, NULL);
	else if (u->has_sum && memcmp(u->sum, i->sum, UPLOAD_SUM) != 0)
		lockd_refuse_code(call_of(a->x), LOCKD_EXPECTED_SHA256, NULL);
	else
		lockd_lock_run(a, &u->l, updated);
}

void
lockd_update(struct call *c, void *api)
{
	struct apicall *const a = c->x.user ? c->x.user : begin_update(c, api);
	struct update *const u = a ? a->state : NULL;

	if (u)
		upload_end(&u->upload, &u->put.m, stored);
}

/* --- remove ------------------------------------------------------------------- */

static void
removed(struct apicall *a)
{
	const bool there = a->op.count > 0;
	struct json_out w;

	if (lockd_lock_failed(a))
		return;
	lockd_add_number(call_of(a->x), "X-Key-Version", a->op.lock.version);
	apicall_object(a, &w);
	json_out_bool(&w, "removed", there);
	if (there)
		json_out_u64(&w, "new_version", a->op.lock.version);
	apicall_reply_object(a, &w, 200);
}

static void
remove_state(struct apicall *a)
{
	struct lockd_lock *const l = a->state;

	if (!lockd_lock_writer(a, l))
		return;
	lockd_lock_op(a, l, &a->op, OP_STATE_REMOVE);
	lockd_lock_run(a, l, removed);
}

const struct handler lockd_remove = { .run = remove_state, .state = sizeof(struct lockd_lock) };

/* --- metadata ----------------------------------------------------------------- */

struct metadata {
	struct lockd_lock l;
	struct slice query_hidden; /* true, false, or nothing */
};

static const struct json_field metadata_fields[] = {
	JSON_FIELD(raw, struct metadata, query_hidden),
};

static void
noted(struct apicall *a)
{
	const struct metadata *const m = a->state;
	struct json_out w;

	if (lockd_lock_failed(a))
		return;
	lockd_add_number(call_of(a->x), "X-Key-Version", a->op.lock.version);
	apicall_object(a, &w);
	json_out_str(&w, "namespace", m->l.namespace);
	json_out_str(&w, "key", m->l.key);
	json_out_u64(&w, "version", a->op.lock.version);
	json_out_object(&w, "metadata");
	json_out_bool(&w, "query_hidden", a->op.lock.hidden);
	json_out_close(&w);
	apicall_reply_object(a, &w, 200);
}

static void
metadata(struct apicall *a)
{
	struct metadata *const m = a->state;
	bool hidden;

	if (!lockd_lock_writer(a, &m->l) || !lockd_body(a, metadata_fields, 1, m))
		return;
	if (m->query_hidden.n == 0)
		m->query_hidden = lockd_field(a, "x-lockd-meta-query-hidden");
	hidden = slice_eq(m->query_hidden, SLICE("true"));
	if (!hidden && !slice_eq(m->query_hidden, SLICE("false"))) {
		lockd_refuse_code(call_of(a->x), LOCKD_INVALID_METADATA, "query_hidden: expected true or false");
		return;
	}
	lockd_lock_op(a, &m->l, &a->op, OP_STATE_META);
	a->op.lock.hidden = hidden;
	lockd_lock_run(a, &m->l, noted);
}

const struct handler lockd_metadata = { .run = metadata, .state = sizeof(struct metadata) };
