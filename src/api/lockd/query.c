/*
 * query.c - /v1/query: the committed documents of a namespace, in the order of their keys;
 * /v1/index/flush, which has no work to do.
 *
 *      KEYS ──> a page of keys ──> a lane's thread: read, match, write ┐
 *       ^                                                             │
 *       ├────────────── the page is done ─────────────────────────────┤
 *       │                                                             │
 *       └─ more <── piece sent <────── rows of documents are large ───┘
 *
 * A query has no index: it reads documents. So its work is bounded: it ends at its limit, after
 * KEYS_MAX keys, BYTES_MAX bytes or STEPS_MAX steps (selector_cost per byte), and when the server
 * stops; then it answers with a cursor. It also ends when its client hangs up. After SLICE_STEPS
 * other queries go first. A document that is too large to read into memory, or for this
 * selector, is an error, not a miss.
 */
#include "api/authorize.h"
#include "api/document.h"
#include "api/handler.h"
#include "api/lockd/lock.h"
#include "api/lockd/state.h"
#include "base/log.h"
#include "base/parse.h"
#include "core/lql.h"
#include "core/selector.h"
#include "http/query.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	LIMIT_DEFAULT = 100,
	LIMIT_MAX = 1000,
	PAGE = 64,            /* keys that are pinned at the same time */
	KEYS_MAX = 10000,     /* keys that a call reads */
	BYTES_MAX = 32 << 20, /* bytes of documents that a call reads */
	STEPS_MAX = 128 << 20,
	SLICE_STEPS = 16 << 20,
	DOCUMENT_STEPS = 512 << 20, /* steps for one document */
	CURSOR_TEXT = LOCK_KEY_MAX + 1,
	METADATA_TEXT = 512
};

struct state {
	/* The request. */
	struct slice namespace, selector, cursor, returns;
	int64_t limit;
	struct selector *conditions;
	bool documents;
	bool scan; /* the request names the engine scan */

	/* The progress. */
	struct op_key keys[PAGE];
	char last[CURSOR_TEXT]; /* the last key that was read */
	unsigned at;            /* in the page */
	uint32_t found, seen;
	uint32_t candidates;          /* seen, without our own keys */
	uint64_t bytes, steps, slice; /* slice: steps of this job */
	uint64_t captured;            /* bytes of documents in the answer */
	struct stop gone;             /* the client is gone */
	bool more;                    /* keys behind the page */
	bool ended;                   /* no more keys are read */
	bool begun;                   /* call_begin */
	struct json_out w;
	struct buf document;
	struct slu_err err;
};

static void page(struct apicall *a);

static void
call_ended(struct exchange *x, bool sent)
{
	struct apicall *const a = x->user;
	struct state *const s = a->state;

	(void)sent; /* nothing was changed */
	op_unpin(&a->op);
	selector_free(s->conditions);
	buf_release(&s->document);
	apicall_free(a);
}

static void
hung_up(struct exchange *x)
{
	const struct apicall *const a = x->user;
	struct state *const s = a->state;

	stop_set(&s->gone);
}

/* --- matching, on a file thread ------------------------------------------------ */

/* Reserved keys begin with a character that names cannot have. */
static bool
is_reserved(const char *key)
{
	return key[0] == '~';
}

/* The number of steps to match this document. */
static uint64_t
steps_of(const struct state *s, const struct op_key *k)
{
	const uint64_t bytes = k->payload.pin ? k->payload.size : k->record.size;

	return bytes * selector_cost(s->conditions);
}

/* MASK-1: conditions are about what the caller sees. */
static int
hide(struct apicall *a, struct state *s)
{
	struct mask *const m = mask_for(a, s->namespace, false);
	struct buf masked;

	if (!m)
		return 0;
	buf_init(&masked, MASKED_MAX);
	(void)mask_body(m, buf_slice(&s->document), &masked);
	mask_unref(m);
	buf_release(&s->document);
	s->document = masked;
	return masked.failed ? SLU_ENOMEM : 0;
}

static int
matches(struct apicall *a, const struct op_key *k, bool *fits)
{
	struct state *const s = a->state;
	const uint64_t steps = steps_of(s, k);
	int rc;

	*fits = true;
	if (!s->documents && selector_is_empty(s->conditions))
		return 0;
	if (steps > DOCUMENT_STEPS)
		return slu_fail(&s->err, SLU_ETOOBIG, "key %s: its document is too large for so many "
						      "conditions: ask for less, or hide it (query_hidden)",
				k->name);
	s->steps += steps;
	s->slice += steps;
	buf_clear(&s->document);
	rc = document_read(a->op.engine, &k->record, &k->payload, LOCKD_MUTATE_MAX, true,
			   &s->document, &s->err);
	s->bytes += s->document.n;
	if (rc == SLU_ETOOBIG)
		return slu_fail(&s->err, rc, "key %s: its document is too large to be searched: hide it "
					     "(query_hidden)",
				k->name);
	if (rc == SLU_ECORRUPT) {
		log_warn(a->api->log, "document cannot be read", F_STR("key", k->name),
			 F_STR("why", s->err.text));
		*fits = false;
		return 0;
	}
	if (!rc)
		rc = hide(a, s);
	if (rc || selector_is_empty(s->conditions))
		return rc;
	return selector_match(s->conditions, buf_slice(&s->document), &s->gone, fits, &s->err);
}

static void
write_row(struct apicall *a, const struct op_key *k)
{
	struct state *const s = a->state;
	struct json_out w;

	s->found++;
	if (!s->documents) {
		json_out_str(&s->w, NULL, slice_of(k->name));
		return;
	}
	apicall_object(a, &w);
	json_out_str(&w, "ns", s->namespace);
	json_out_str(&w, "key", slice_of(k->name));
	json_out_u64(&w, "ver", k->version);
	s->captured += s->document.n;
	json_out_raw(&w, "doc", buf_slice(&s->document));
	json_out_close(&w);
	buf_putc(&a->x->out, '\n');
}

static bool
is_full(const struct apicall *a)
{
	const struct state *const s = a->state;

	return s->documents && a->x->out.n >= DOCUMENT_PIECE;
}

/* Does the next call continue with this document? Every call reads at least one. */
static bool
is_enough(const struct apicall *a, const struct op_key *k)
{
	const struct state *const s = a->state;

	return s->seen > 0 && (s->steps + steps_of(s, k) > STEPS_MAX ||
			       atomic_load_explicit(&a->api->draining, memory_order_relaxed));
}

/* Matches keys of the page until a piece is full, or a slice is used up. */
static int
look(struct apicall *a)
{
	struct state *const s = a->state;
	int rc = 0;

	s->slice = 0;
	while (!rc && s->at < a->op.n_keys && !s->ended && !is_full(a) && s->slice < SLICE_STEPS) {
		const struct op_key *const k = &s->keys[s->at];
		bool fits = false;

		if (stop_is_set(&s->gone))
			return slu_fail(&s->err, SLU_ECANCELED, "the client is gone");
		s->ended = is_enough(a, k);
		if (s->ended)
			return 0;
		s->at++;

		if (!is_reserved(k->name))
			rc = matches(a, k, &fits);
		if (rc)
			return rc;
		if (fits)
			write_row(a, k);
		memcpy(s->last, k->name, sizeof s->last);
		s->seen++;
		s->candidates += !is_reserved(k->name);
		s->ended = s->found == (uint32_t)s->limit || s->seen == KEYS_MAX ||
			   s->bytes >= BYTES_MAX;
	}
	return rc;
}

/* --- answers ------------------------------------------------------------------ */

/* Returns true if keys are left. */
static bool
has_rest(const struct apicall *a)
{
	const struct state *const s = a->state;

	return s->more || s->at < a->op.n_keys;
}

static void
add_cursor(struct apicall *a)
{
	const struct state *const s = a->state;

	/* The body of keys has it, too; a client without trailers asks once more. */
	if (has_rest(a))
		(void)call_add(call_of(a->x), "X-Lockd-Query-Cursor", slice_of(s->last));
	(void)call_add(call_of(a->x), "X-Lockd-Query-Index-Seq", SLICE("0"));
	if (!s->documents)
		(void)call_add(call_of(a->x), "X-Lockd-Query-Metadata", SLICE("{\"engine\":\"scan\"}"));
}

static void
put_count(struct json_out *w, const char *name, uint64_t count)
{
	char text[24];

	(void)snprintf(text, sizeof text, "%" PRIu64, count); /* fits */
	json_out_str(w, name, slice_of(text));
}

/* The trailer of documents: what was looked at. Documents are matched in memory, so nothing is
 * spilled. engine: documents were read although an index was asked for. */
static void
add_counts(struct apicall *a)
{
	const struct state *const s = a->state;
	struct json_out w;
	struct buf text;

	buf_init(&text, METADATA_TEXT);
	json_out_open(&w, &text);
	if (!s->scan)
		json_out_str(&w, "engine", SLICE("scan"));
	put_count(&w, "query_candidates_seen", s->candidates);
	put_count(&w, "query_candidates_matched", s->found);
	put_count(&w, "query_bytes_captured", s->captured);
	put_count(&w, "query_spill_count", 0);
	put_count(&w, "query_spill_bytes", 0);
	json_out_close(&w);
	if (!text.failed)
		(void)call_add(call_of(a->x), "X-Lockd-Query-Metadata", buf_slice(&text));
	buf_release(&text);
}

static void
answer_keys(struct apicall *a)
{
	struct state *const s = a->state;

	json_out_close(&s->w);
	if (has_rest(a))
		json_out_str(&s->w, "cursor", slice_of(s->last));
	json_out_object(&s->w, "metadata");
	json_out_str(&s->w, "engine", SLICE("scan"));
	json_out_close(&s->w);
	json_out_close(&s->w);
	add_cursor(a);
	apicall_reply(a, 200);
}

static void
begin_rows(struct apicall *a)
{
	struct state *const s = a->state;

	s->begun = true;
	call_begin(call_of(a->x), 200, "application/x-ndjson");
}

/* The last piece of rows, with trailers for the values that are known now. */
static void
answer_rows(struct apicall *a)
{
	const struct state *const s = a->state;

	if (!s->begun) {
		begin_rows(a);
		return;
	}
	add_cursor(a);
	add_counts(a);
	exchange_piece(a->x, true);
}

static void
refuse(struct apicall *a, int rc)
{
	const struct state *const s = a->state;

	if (s->begun)
		exchange_break(a->x);
	else if (rc == SLU_ETOOBIG)
		lockd_refuse_code(call_of(a->x), LOCKD_DOCUMENT_TOO_LARGE, s->err.text);
	else
		apicall_refuse(a, rc, s->err.text);
}

/* Runs on the loop after `look`. */
static void
go_on(struct apicall *a, int rc)
{
	const struct state *const s = a->state;

	if (rc || a->x->out.failed) {
		refuse(a, rc ? rc : SLU_ENOMEM);
	} else if (is_full(a) && s->begun) {
		exchange_piece(a->x, false);
	} else if (is_full(a)) {
		begin_rows(a);
	} else if (!s->ended && s->at < a->op.n_keys) {
		apicall_long_job(a, look, go_on);
	} else if (!s->ended && s->more) {
		op_unpin(&a->op);
		page(a);
	} else if (s->documents) {
		answer_rows(a);
	} else {
		answer_keys(a);
	}
}

static void
more(struct exchange *x)
{
	apicall_long_job(x->user, look, go_on);
}

static void
got_page(struct apicall *a)
{
	struct state *const s = a->state;

	if (a->op.rc) {
		s->err = apicall_err_of(&a->op);
		refuse(a, a->op.rc);
		return;
	}
	s->more = a->op.lock.more;
	s->at = 0;
	apicall_long_job(a, look, go_on);
}

static void
page(struct apicall *a)
{
	struct state *const s = a->state;

	apicall_op(a, &a->op, OP_KEYS, s->namespace, SLICE(LOCK_QUEUE));
	a->op.lock.key = slice_of(s->last);
	a->op.keys = s->keys;
	a->op.max_keys = PAGE;
	apicall_run(a, got_page);
}

/* --- what is asked ------------------------------------------------------------ */

static const struct json_field fields[] = {
	JSON_FIELD(text, struct state, namespace),
	JSON_FIELD(raw, struct state, selector),
	JSON_FIELD(text, struct state, cursor),
	JSON_FIELD(i64, struct state, limit),
	JSON_ROW("return", json_read_text, struct state, returns),
};

static bool
read_limit(struct apicall *a, struct state *s)
{
	const struct slice text = lockd_query(a, "limit");

	if (s->limit == 0 && text.n > 0 && parse_i64(text, INT64_MIN, INT64_MAX, &s->limit, &s->err))
		return lockd_reject(a, LOCKD_INVALID_BODY, s->err.text);
	if (s->limit <= 0)
		s->limit = LIMIT_DEFAULT;
	if (s->limit > LIMIT_MAX)
		s->limit = LIMIT_MAX;
	return true;
}

static bool
read_cursor(struct apicall *a, struct state *s)
{
	if (s->cursor.n == 0)
		s->cursor = lockd_query(a, "cursor");
	if (s->cursor.n >= sizeof s->last)
		return lockd_reject(a, LOCKD_INVALID_BODY, "cursor: expected the cursor of an answer");
	if (s->cursor.n > 0)
		memcpy(s->last, s->cursor.p, s->cursor.n);
	return true;
}

static bool
read_return(struct apicall *a, struct state *s)
{
	if (s->returns.n == 0)
		s->returns = lockd_query(a, "return");
	s->documents = slice_eq(s->returns, SLICE("documents"));
	if (s->documents || s->returns.n == 0 || slice_eq(s->returns, SLICE("keys")))
		return true;
	return lockd_reject(a, LOCKD_INVALID_BODY, "return: expected keys or documents");
}

/* Every engine reads documents; an unknown engine is refused. */
static bool
read_engine(struct apicall *a, struct state *s)
{
	const struct slice engine = lockd_query(a, "engine");

	s->scan = slice_eq(engine, SLICE("scan"));
	if (engine.n == 0 || slice_eq(engine, SLICE("auto")) || slice_eq(engine, SLICE("scan")) ||
	    slice_eq(engine, SLICE("index")))
		return true;
	return lockd_reject(a, LOCKD_INVALID_BODY, "engine: expected auto, index or scan");
}

static bool
refuse_selector(struct apicall *a, int rc, const struct slu_err *err)
{
	char text[sizeof err->text + 16];

	if (rc != SLU_EINVAL)
		return !apicall_refused(a, rc, NULL);
	(void)snprintf(text, sizeof text, "selector: %s", err->text); /* fits */
	return lockd_reject(a, LOCKD_INVALID_BODY, text);
}

/* Parameters that are expressions: ?/status=open, ?or.eq{field=/n,value=1}, ?eq.field=/n. A
 * condition may have been cut at its first =. */
static int
add_params(struct apicall *a, struct lql *l, struct slu_err *err)
{
	const size_t size = call_of(a->x)->query.n;
	char *const room = arena_alloc(&a->memory, 2 * size + 1);
	struct query_param p;
	struct query q;
	char *whole;
	int rc = 0;

	if (!room)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	query_init(&q, call_of(a->x)->query, room, size);
	whole = room + size;
	while (!rc && query_next(&q, &p)) {
		size_t n = p.name.n;

		if (!lql_is_expression(p.name))
			continue;
		memcpy(whole, p.name.p, n);
		if (p.value.n > 0) {
			whole[n++] = '=';
			memcpy(whole + n, p.value.p, p.value.n);
			n += p.value.n;
		}
		rc = lql_add(l, (struct slice){ whole, n }, err);
		whole += n;
	}
	return rc;
}

/* {"and":[selector,selector]} */
struct selector_parts {
	struct buf text;
	unsigned n;
	size_t first; /* where the first one begins */
};

static void
put_part(struct selector_parts *p, struct slice json)
{
	if (p->n++ == 0)
		p->first = p->text.n;
	else
		buf_putc(&p->text, ',');
	buf_put(&p->text, json.p, json.n);
}

/* A single selector is used as sent: positions in errors fit the request. */
static struct slice
all_of(const struct selector_parts *p)
{
	if (p->n == 0)
		return SLICE("{}");
	if (p->n > 1)
		return buf_slice(&p->text);
	return (struct slice){ p->text.p + p->first, p->text.n - p->first - 2 };
}

/* Adds the LQL expressions of the query, as JSON. */
static int
put_lql(struct apicall *a, struct slice text, struct selector_parts *out, struct slu_err *err)
{
	struct lql *const l = arena_alloc(&a->memory, sizeof *l);
	int rc;

	if (!l)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	lql_init(l);
	rc = lql_add_text(l, text, err);
	if (!rc)
		rc = add_params(a, l, err);
	if (!rc && l->n > 0) {
		put_part(out, SLICE(""));
		rc = lql_write(l, &out->text, err);
	}
	return rc;
}

/* A document must match the selectors of the body and of the query. */
static bool
read_selector(struct apicall *a, struct state *s)
{
	const struct slice param = lockd_query(a, "selector");
	const bool json = param.n > 0 && param.p[0] == '{';
	struct selector_parts parts = { 0 };
	int rc;

	buf_init(&parts.text, LOCKD_MUTATE_MAX);
	buf_puts(&parts.text, "{\"and\":[");
	if (s->selector.n > 0 && !slice_eq(s->selector, SLICE("null")))
		put_part(&parts, s->selector);
	if (json)
		put_part(&parts, param);
	rc = put_lql(a, json ? SLICE("") : param, &parts, &s->err);
	buf_puts(&parts.text, "]}");
	if (!rc && parts.text.failed)
		rc = slu_fail(&s->err, SLU_ENOMEM, "out of memory");
	if (!rc)
		rc = selector_new(&s->conditions, all_of(&parts), clock_wall(a->api->clock), &s->err);
	buf_release(&parts.text);
	return rc == 0 || refuse_selector(a, rc, &s->err);
}

static void
begin_answer(struct apicall *a, struct state *s)
{
	struct call *const c = call_of(a->x);

	/* The body of the answer has it, too. */
	(void)call_add(c, "X-Lockd-Query-Return", s->documents ? SLICE("documents") : SLICE("keys"));
	if (s->documents) {
		c->x.more = more;
		(void)call_add(c, "Trailer",
			       SLICE("X-Lockd-Query-Cursor, X-Lockd-Query-Index-Seq, "
				     "X-Lockd-Query-Metadata"));
		return;
	}
	json_out_open(&s->w, &c->x.out);
	json_out_str(&s->w, "namespace", s->namespace);
	json_out_array(&s->w, "keys");
}

static void
search(struct apicall *a)
{
	struct state *const s = a->state;

	apicall_op(a, &a->op, OP_KEYS, (struct slice){ 0 }, (struct slice){ 0 });
	buf_init(&s->document, LOCKD_MUTATE_MAX);
	a->x->ended = call_ended;
	a->x->gone = hung_up;
	if (!lockd_space(a, &s->namespace) || !read_limit(a, s) || !read_cursor(a, s) ||
	    !read_return(a, s) || !read_engine(a, s) || !read_selector(a, s))
		return;
	begin_answer(a, s);
	page(a);
}

const struct handler lockd_search = { search, sizeof(struct state), FIELD_ROWS(fields) };

/* --- flush -------------------------------------------------------------------- */

struct flush {
	struct slice namespace, mode;
};

static const struct json_field flush_fields[] = {
	JSON_FIELDS(text, struct flush, namespace, mode),
};

/* Nothing to do: a query always sees all committed documents. */
static void
flush(struct apicall *a)
{
	struct flush *const f = a->state;
	struct json_out w;
	bool async;

	if (!lockd_space(a, &f->namespace) || !authorize_space(a, f->namespace))
		return;
	if (f->mode.n == 0)
		f->mode = SLICE("wait");
	async = slice_eq(f->mode, SLICE("async"));
	if (!async && !slice_eq(f->mode, SLICE("wait"))) {
		(void)lockd_reject(a, LOCKD_INVALID_BODY, "mode: expected wait or async");
		return;
	}
	apicall_object(a, &w);
	json_out_str(&w, "namespace", f->namespace);
	json_out_str(&w, "mode", f->mode);
	json_out_bool(&w, "accepted", true);
	json_out_bool(&w, "flushed", true);
	json_out_bool(&w, "pending", false);
	json_out_close(&w);
	a->n_ops = 0;
	apicall_reply(a, async ? 202 : 200);
}

const struct handler lockd_flush = { flush, sizeof(struct flush), FIELD_ROWS(flush_fields) };
