/*
 * namespace.c - /v1/namespace: the query settings of a namespace.
 *
 * The settings are the document of a reserved lock key, written as clients write theirs:
 * ACQUIRE, STATE_PUT, RELEASE. So they are as durable, and concurrent changes follow each other.
 * The settings do not change queries: these always read documents.
 */
#include "api/document.h"
#include "api/lockd/lock.h"
#include "api/lockd/state.h"

#define RESERVED_KEY "~namespace"
#define TURN_MAX     (10 * SLU_SEC) /* the wait for an earlier change */

enum {
	TEXT_MAX = 4096
};

struct engines {
	struct slice preferred_engine, fallback_engine;
};

struct state {
	struct slice namespace;
	struct slice query; /* the JSON of the body */
	struct engines engines;
	struct engines asked; /* from the body; empty: the stored value stays */
	struct buf stored;
	int wrong; /* why the stored settings could not be read */
	struct lockd_lock l;
	struct op_put put;
	struct buf text;
	uint64_t etag;    /* of the stored settings */
	struct op failed; /* the op that failed */
	struct slu_err err;
};

static const struct json_field engine_fields[] = {
	JSON_FIELDS(text, struct engines, preferred_engine, fallback_engine),
};

static void
ended(struct exchange *x, bool sent)
{
	struct apicall *const a = x->user;
	struct state *const s = a->state;

	(void)sent; /* the work is done either way */
	op_unpin(&a->op);
	buf_release(&s->text);
	buf_release(&s->stored);
	apicall_free(a);
}

static void
begin(struct apicall *a)
{
	struct state *const s = a->state;

	apicall_op(a, &a->op, OP_STATE_GET, (struct slice){ 0 }, (struct slice){ 0 });
	buf_init(&s->text, TEXT_MAX);
	buf_init(&s->stored, TEXT_MAX);
	a->x->ended = ended;
	s->engines = (struct engines){ SLICE("scan"), SLICE("none") };
}

/* Sets the key that stores the settings. */
static void
name_key(struct state *s)
{
	s->l.namespace = s->namespace;
	s->l.key = SLICE(RESERVED_KEY);
	s->l.queue = SLICE(LOCK_QUEUE);
	s->l.if_version = -1;
}

static void
answer(struct apicall *a, uint64_t etag)
{
	const struct state *const s = a->state;
	struct json_out w;

	lockd_add_etag(call_of(a->x), etag);
	apicall_object(a, &w);
	json_out_str(&w, "namespace", s->namespace);
	json_out_object(&w, "query");
	json_out_str(&w, "preferred_engine", s->engines.preferred_engine);
	json_out_str(&w, "fallback_engine", s->engines.fallback_engine);
	json_out_close(&w);
	apicall_reply_object(a, &w, 200);
}

/* --- get ---------------------------------------------------------------------- */

static int
read_text(struct apicall *a)
{
	struct state *const s = a->state;

	return document_read(a->op.engine, &a->op.lock.record, &a->op.lock.payload, TEXT_MAX, true,
			     &s->text, &s->err);
}

static void
read_stored(struct state *s)
{
	struct json r;

	if (s->text.n == 0)
		return;
	json_init(&r, buf_slice(&s->text), JSON_DEPTH);
	(void)json_fields(&r, engine_fields, 2, JSON_LENIENT, &s->engines);
	(void)json_end(&r, NULL); /* the server wrote this JSON */
}

static void
answer_text(struct apicall *a, int rc)
{
	struct state *const s = a->state;

	if (apicall_refused(a, rc, s->err.text))
		return;
	read_stored(s);
	answer(a, a->op.lock.etag);
}

static void
got(struct apicall *a)
{
	if (a->op.rc)
		lockd_lock_refuse(a, &a->op);
	else if (a->op.lock.etag == 0)
		answer(a, 0);
	else
		apicall_job(a, read_text, answer_text);
}

static void
get(struct apicall *a)
{
	struct state *const s = a->state;

	begin(a);
	if (!lockd_space(a, &s->namespace))
		return;
	name_key(s);
	lockd_lock_op(a, &s->l, &a->op, OP_STATE_GET);
	apicall_run(a, got);
}

const struct handler lockd_namespace_get = { .run = get, .state = sizeof(struct state) };

/* --- set ---------------------------------------------------------------------- */

static const struct json_field fields[] = {
	JSON_FIELD(text, struct state, namespace),
	JSON_FIELD(raw, struct state, query),
};

/* Also true for an empty word. */
static bool
is_one_of(struct slice word, const char *const *words)
{
	if (word.n == 0)
		return true;
	for (; *words; words++)
		if (slice_eq(word, slice_of(*words)))
			return true;
	return false;
}

static bool
read_engines(struct apicall *a, struct state *s)
{
	static const char *const preferred[] = { "auto", "index", "scan", NULL };
	static const char *const fallback[] = { "none", "index", "scan", NULL };
	char *const room = arena_alloc(&a->memory, s->query.n);
	struct json r;

	json_init(&r, s->query.n > 0 ? s->query : SLICE("{}"), JSON_DEPTH);
	json_room(&r, room, room ? s->query.n : 0);
	(void)json_fields(&r, engine_fields, 2, JSON_LENIENT, &s->asked);
	if (json_end(&r, &s->err) || !is_one_of(s->asked.preferred_engine, preferred) ||
	    !is_one_of(s->asked.fallback_engine, fallback))
		return lockd_reject(a, LOCKD_INVALID_BODY,
				    "query: expected preferred_engine auto, index or scan, and "
				    "fallback_engine none, index or scan");
	return true;
}

static void
released(struct apicall *a)
{
	struct state *const s = a->state;

	if (s->wrong)
		apicall_refuse(a, s->wrong, s->err.text);
	else if (s->failed.rc)
		lockd_lock_refuse(a, &s->failed);
	else if (a->op.rc || a->op.lock.why != LOCK_OK)
		apicall_refuse(a, a->op.rc ? a->op.rc : SLU_EDOWN, "the change took too long; try again");
	else
		answer(a, s->etag);
}

static void
release(struct apicall *a)
{
	struct state *const s = a->state;

	s->l.if_etag = 0;
	lockd_lock_op(a, &s->l, &a->op, OP_RELEASE);
	a->op.lock.rollback = s->failed.rc != 0 || s->wrong;
	apicall_run(a, released);
}

static void
put_done(struct apicall *a)
{
	struct state *const s = a->state;

	if (a->op.rc)
		s->failed = a->op;
	s->etag = a->op.lock.etag;
	release(a);
}

static void
put(struct apicall *a)
{
	struct state *const s = a->state;
	struct json_out w;

	json_out_open(&w, &s->text);
	json_out_str(&w, "preferred_engine", s->engines.preferred_engine);
	json_out_str(&w, "fallback_engine", s->engines.fallback_engine);
	json_out_close(&w);
	lockd_lock_op(a, &s->l, &a->op, OP_STATE_PUT);
	s->put.m.payload = buf_slice(&s->text);
	s->put.m.payload_size = s->text.n;
	a->op.puts = &s->put;
	a->op.n_puts = 1;
	apicall_run(a, put_done);
}

/* Settings that the request leaves out stay. */
static void
keep_stored(struct apicall *a, int rc)
{
	struct state *const s = a->state;
	const struct engines asked = s->asked;

	op_unpin(&a->op);
	s->wrong = rc;
	if (rc) {
		release(a);
		return;
	}
	read_stored(s);
	if (asked.preferred_engine.n > 0)
		s->engines.preferred_engine = asked.preferred_engine;
	if (asked.fallback_engine.n > 0)
		s->engines.fallback_engine = asked.fallback_engine;
	s->stored = s->text; /* the names point into it */
	buf_init(&s->text, TEXT_MAX);
	put(a);
}

static void
got_stored(struct apicall *a)
{
	struct state *const s = a->state;

	if (a->op.rc) {
		s->failed = a->op;
		release(a);
	} else if (a->op.lock.etag == 0) {
		keep_stored(a, 0);
	} else {
		apicall_job(a, read_text, keep_stored);
	}
}

static void
acquired(struct apicall *a)
{
	struct state *const s = a->state;
	const uint64_t if_etag = s->l.if_etag;

	if (lockd_lock_failed(a))
		return;
	s->l.token = s->l.fence = a->op.lock.token;
	memcpy(s->l.txn.b, a->op.lock.txn, LOCKD_XID);
	s->l.if_etag = 0;
	lockd_lock_op(a, &s->l, &a->op, OP_STATE_GET);
	s->l.if_etag = if_etag;
	apicall_run(a, got_stored);
}

static void
set(struct apicall *a)
{
	struct state *const s = a->state;
	struct slice etag;

	begin(a);
	if (!lockd_space(a, &s->namespace) || !read_engines(a, s))
		return;
	name_key(s);
	etag = lockd_field(a, "if-match");
	lockd_lock_op(a, &s->l, &a->op, OP_ACQUIRE);
	a->op.lock.holder = SLICE("sluiced");
	a->op.wait = TURN_MAX;
	if (etag.n > 0 && !slice_eq(etag, SLICE("*")))
		s->l.if_etag = lockd_etag_parse(etag) ? lockd_etag_parse(etag) : UINT64_MAX;
	apicall_run(a, acquired);
}

const struct handler lockd_namespace_set = { set, sizeof(struct state), FIELD_ROWS(fields) };
