/*
 * mutate.c - /v1/mutate: the document as its holder sees it is read, changed
 * (core/mutation.h) and staged again.
 *
 *      STATE_GET ──> read, change, store: on a lane's thread if large ──> STATE_PUT
 *          ^                                                              │
 *          └───────── its holder has put another one meanwhile ──────────┘
 *
 * The put is made under the etag that was read, so two mutations of one holder are both
 * done, whatever the order.
 */
#include "api/lockd/state.h"

#include "api/document.h"
#include "api/upload.h"
#include "api/lockd/lock.h"
#include "core/mutation.h"
#include "engine/payload.h"

enum {
	TRIES = 8
};

struct state {
	struct lockd_lock l;
	struct slice texts[MUTATIONS_MAX];
	unsigned n;

	struct buf document, changed;
	struct op_put put;
	struct payload *stored;
	uint64_t etag; /* of the document that was read; 0: the key has no document */
	unsigned tries;
	struct stop gone; /* the client is gone */
	struct slu_err err;
};

static void get(struct apicall *a);

static void
let_go(struct state *s)
{
	buf_release(&s->document);
	buf_release(&s->changed);
	payload_close(s->stored);
	s->stored = NULL;
}

static void
ended(struct exchange *x, bool sent)
{
	struct apicall *const a = x->user;

	(void)sent; /* the work is done either way */
	let_go(a->state);
	apicall_free(a);
}

/* Stops a change that is not finished: the document stays. */
static void
hung_up(struct exchange *x)
{
	const struct apicall *const a = x->user;
	struct state *const s = a->state;

	stop_set(&s->gone);
}

/* --- put ---------------------------------------------------------------------- */

static void
add_counts(struct call *c, const struct state *s)
{
	static const char *const zeros[] = {
		"X-Lockd-Mutate-Bytes-Captured",
		"X-Lockd-Mutate-Spill-Count",
		"X-Lockd-Mutate-Spill-Bytes",
	};

	lockd_add_number(c, "X-Lockd-Mutate-Candidates-Seen", 1);
	lockd_add_number(c, "X-Lockd-Mutate-Candidates-Written", 1);
	lockd_add_number(c, "X-Lockd-Mutate-Bytes-Read", s->document.n);
	lockd_add_number(c, "X-Lockd-Mutate-Bytes-Written", s->changed.n);
	for (size_t i = 0; i < COUNT(zeros); i++)
		lockd_add_number(c, zeros[i], 0);
}

static void
put_done(struct apicall *a)
{
	struct state *const s = a->state;
	const enum lock_why why = a->op.lock.why;
	const bool raced = a->op.rc && (why == LOCK_ETAG || why == LOCK_KNOWN_KEY);

	if (raced && !s->l.if_etag && ++s->tries < TRIES) {
		let_go(s);
		get(a);
		return;
	}
	if (!a->op.rc)
		add_counts(call_of(a->x), s);
	lockd_state_answer(a, s->changed.n);
}

static void
put(struct apicall *a)
{
	struct state *const s = a->state;

	lockd_lock_op(a, &s->l, &a->op, OP_STATE_PUT);
	a->op.lock.if_etag = s->etag;
	a->op.lock.if_absent = s->etag == 0;
	a->op.puts = &s->put;
	a->op.n_puts = 1;
	apicall_run(a, put_done);
}

/* --- change ------------------------------------------------------------------- */

static int
change(struct apicall *a, bool may_block)
{
	struct state *const s = a->state;
	const struct op_lock *const l = &a->op.lock;
	int rc = 0;

	if (l->etag)
		rc = document_read(a->op.engine, &l->record, &l->payload, LOCKD_MUTATE_MAX, may_block,
				   &s->document, &s->err);
	else if (s->document.n == 0)
		buf_puts(&s->document, "{}");
	if (rc)
		return rc;
	if (!may_block && s->document.n + call_of(a->x)->body.n > UPLOAD_INLINE) {
		buf_clear(&s->document);
		return SLU_EBUSY; /* a long change runs on a file thread */
	}
	rc = mutations_apply(s->texts, s->n, buf_slice(&s->document), clock_wall(a->api->clock),
			     &s->gone, &s->changed, &s->err);
	s->put.m.payload = buf_slice(&s->changed);
	s->put.m.payload_size = s->changed.n;
	if (!rc && payload_is_large(a->op.engine, s->changed.n))
		rc = payload_store(a->op.engine, &s->put.m, &s->stored, &s->err);
	return rc;
}

static int
change_slowly(struct apicall *a)
{
	return change(a, true);
}

static void
changed(struct apicall *a, int rc)
{
	const struct state *const s = a->state;

	op_unpin(&a->op);
	if (rc == SLU_EINVAL)
		lockd_refuse_code(call_of(a->x), LOCKD_INVALID_MUTATIONS, s->err.text);
	else if (rc == SLU_ETOOBIG)
		lockd_refuse_code(call_of(a->x), LOCKD_DOCUMENT_TOO_LARGE, s->err.text);
	else if (rc)
		apicall_refuse(a, rc, s->err.text);
	else
		put(a);
}

static void
got(struct apicall *a)
{
	struct state *const s = a->state;
	int rc;

	if (lockd_lock_failed(a))
		return;
	if (s->l.if_etag && s->l.if_etag != a->op.lock.etag) {
		a->op.rc = SLU_ECONFLICT;
		a->op.lock.why = LOCK_ETAG;
		op_unpin(&a->op);
		lockd_lock_refuse(a, &a->op);
		return;
	}
	s->etag = a->op.lock.etag;
	buf_init(&s->document, LOCKD_MUTATE_MAX);
	buf_init(&s->changed, LOCKD_MUTATE_MAX);
	s->put = (struct op_put){ .m.type = SLICE("application/json") };
	rc = change(a, false);
	if (rc == SLU_EBUSY)
		apicall_long_job(a, change_slowly, changed);
	else
		changed(a, rc);
}

static void
get(struct apicall *a)
{
	struct state *const s = a->state;

	lockd_lock_op(a, &s->l, &a->op, OP_STATE_GET);
	lockd_lock_run(a, &s->l, got);
}

/* --- what is asked ------------------------------------------------------------ */

static void
read_texts(struct json *r, const struct json_field *f, void *place)
{
	struct state *const s = CONTAINER(place, struct state, texts);

	(void)f;
	json_array(r);
	while (json_element(r)) {
		if (s->n == MUTATIONS_MAX)
			json_fail(r, SLU_EINVAL, NULL, "expected at most %d mutations", MUTATIONS_MAX);
		else
			s->texts[s->n++] = json_text(r);
	}
}

static const struct json_field fields[] = {
	JSON_ROW("namespace", json_read_text, struct state, l.namespace),
	JSON_ROW("mutations", read_texts, struct state, texts),
};

static void
mutate(struct apicall *a)
{
	struct state *const s = a->state;

	a->x->ended = ended;
	a->x->gone = hung_up;
	if (!lockd_lock_writer(a, &s->l))
		return;
	if (s->n == 0)
		lockd_refuse_code(call_of(a->x), LOCKD_INVALID_MUTATIONS, "expected at least one mutation");
	else
		get(a);
}

const struct handler lockd_mutate = { mutate, sizeof(struct state), FIELD_ROWS(fields) };
