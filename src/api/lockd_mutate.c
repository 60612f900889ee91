/*
 * lockd_mutate.c - /v1/mutate: the document as its holder sees it is read, changed
 * (core/mutation.h) and staged again.
 *
 *      STATE_GET ──> read, change, store: on a lane's thread if large ──> STATE_PUT
 *          ^                                                              │
 *          └───────── its holder has put another one meanwhile ──────────┘
 *
 * The put is made under the etag that was read, so two mutations of one holder are both
 * done, whatever the order.
 */
#include "api/lockd_state.h"

#include "api/document.h"
#include "api/intake.h"
#include "api/lockd_lock.h"
#include "base/mem.h"
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
	uint64_t etag; /* of the document that was read; 0: there was none */
	unsigned tries;
	struct stop gone; /* the client is */
	struct slu_err err;
};

static void get(struct ask *a);

static void
let_go(struct state *s)
{
	buf_release(&s->document);
	buf_release(&s->changed);
	payload_close(s->stored);
	s->stored = NULL;
}

static void
ended(struct call *c, bool sent)
{
	struct ask *const a = c->user;

	(void)sent; /* what was asked has happened, whoever knows it */
	let_go(a->state);
	ask_free(a);
}

/* What is not changed yet stays as it is. */
static void
hung_up(struct call *c)
{
	const struct ask *const a = c->user;
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
	for (size_t i = 0; i < sizeof zeros / sizeof zeros[0]; i++)
		lockd_add_number(c, zeros[i], 0);
}

static void
put_done(struct ask *a)
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
		add_counts(a->call, s);
	lockd_state_answer(a, s->changed.n);
}

static void
put(struct ask *a)
{
	struct state *const s = a->state;

	lockd_lock_op(a, &s->l, &a->op, OP_STATE_PUT);
	a->op.lock.if_etag = s->etag;
	a->op.lock.if_absent = s->etag == 0;
	a->op.puts = &s->put;
	a->op.n_puts = 1;
	ask_run(a, put_done);
}

/* --- change ------------------------------------------------------------------- */

static int
change(struct ask *a, bool may_block)
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
	if (!may_block && s->document.n + a->call->body.n > INTAKE_INLINE) {
		buf_clear(&s->document);
		return SLU_EBUSY; /* it takes its time */
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
change_slowly(struct ask *a)
{
	return change(a, true);
}

static void
changed(struct ask *a, int rc)
{
	const struct state *const s = a->state;

	op_unpin(&a->op);
	if (rc == SLU_EINVAL)
		lockd_refuse_code(a->call, LOCKD_INVALID_MUTATIONS, s->err.text);
	else if (rc == SLU_ETOOBIG)
		lockd_refuse_code(a->call, LOCKD_DOCUMENT_TOO_LARGE, s->err.text);
	else if (rc)
		ask_refuse(a, rc, s->err.text);
	else
		put(a);
}

static void
got(struct ask *a)
{
	struct state *const s = a->state;
	int rc;

	if (a->op.rc) {
		lockd_lock_refuse(a, &a->op);
		return;
	}
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
		ask_long_job(a, change_slowly, changed);
	else
		changed(a, rc);
}

static void
get(struct ask *a)
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
	{ .name = { "namespace", 9 },
	  .read = json_read_text,
	  .offset = offsetof(struct state, l.namespace),
	  .size = sizeof(struct slice) },
	{ .name = { "mutations", 9 },
	  .read = read_texts,
	  .offset = offsetof(struct state, texts) },
};

void
lockd_mutate(struct call *c, void *api)
{
	struct ask *const a = ask_new(api, c);
	struct state *const s = a ? ask_state(a, sizeof *s) : NULL;

	if (!s)
		return;
	c->ended = ended;
	c->gone = hung_up;
	if (!lockd_body(a, fields, sizeof fields / sizeof fields[0], s) ||
	    !lockd_lock_key(a, &s->l) || !lockd_lock_right(a, &s->l, LOCKD_HOLDER) ||
	    !lockd_lock_conditions(a, &s->l))
		return;
	if (s->n == 0) {
		lockd_refuse_code(c, LOCKD_INVALID_MUTATIONS, "expected at least one mutation");
		return;
	}
	get(a);
}
