#include "api/flat/claim.h"

#include "api/handler.h"
#include "api/flat/packed.h"
#include "api/flat/flat.h"
#include "api/flat/view.h"
#include "api/limits.h"
#include "api/params.h"
#include "api/stream.h"
#include "api/holder.h"
#include "form/values.h"

static const struct param params[] = {
	PARAM_QUEUE(struct flat_claim),
	PARAM(count, struct flat_claim, limit, .min = 1, .max = API_CLAIM_MAX),
	PARAM(span, struct flat_claim, wait, .max = API_WAIT_MAX),
	PARAM(span, struct flat_claim, lease, .min = SLU_MS, .max = API_LEASE_MAX),
	PARAM(owner, struct flat_claim, owner),
	PARAM(word, struct flat_claim, as),
	PARAM(word, struct flat_claim, kinds),
};

enum {
	N_PARAMS = COUNT(params)
};

int
flat_claim_decode(struct flat_claim *q, struct slice query, struct slice body, char *room,
		  struct slu_err *err)
{
	int rc;

	*q = (struct flat_claim){ .limit = API_CLAIM_DEFAULT };
	if (body.n > 0 && query.n > 0)
		return slu_fail(err, SLU_EINVAL,
				"expected parameters in the query or in the body, not in both");
	rc = body.n > 0 ? params_json(params, N_PARAMS, body, room, q, err)
			: params_query(params, N_PARAMS, query, room, q, err);
	return rc ? rc : flat_view_as(q->as, &q->form, err);
}

struct state {
	struct flat_claim q;
	struct rows rows;
	struct stream stream; /* for large payloads */
	bool kept;            /* the whole answer was written */
	bool packed;          /* answer with a batch */
	uint32_t n;           /* messages in the batch */
	struct flat_before before;
};

/* --- when it is not taken ----------------------------------------------------- */

static void
ended(struct exchange *x, bool sent)
{
	struct apicall *const a = x->user;
	const struct state *const s = a->state;

	if (a->op.n_rows == 0 || (sent && (s->kept || s->stream.whole)))
		apicall_end(a);
	else
		apicall_return(a, 0, "claim not received");
}

/* --- when it is --------------------------------------------------------------- */

static void
write_row(struct json_out *w, const struct op_row *row, const struct message *m,
	  struct slice error)
{
	const struct rows *const r = CONTAINER(w, struct rows, w);
	struct state *const s = r->apicall->state;

	(void)error; /* claims have none */
	json_out_object(w, NULL);
	flat_view_claimed(w, row, m, r->checkpoint, s->q.form, &s->before);
	json_out_close(w);
}

static void
written(struct apicall *a, int rc)
{
	struct state *const s = a->state;

	if (apicall_refused(a, rc, NULL))
		return;
	json_out_close(&s->rows.w);
	api_end_line(&a->x->out); /* here: if memory runs out, no message is delivered */
	s->kept = !a->x->out.failed;
	apicall_reply(a, 200);
}

/* --- a batch ------------------------------------------------------------------ */

static void
write_packed_row(struct json_out *w, const struct op_row *row, const struct message *m, struct slice error)
{
	struct apicall *const a = CONTAINER(w, struct rows, w)->apicall;
	struct state *const s = a->state;

	(void)error; /* claims have none */
	flat_view_packed(&a->x->out, row, m, s->rows.checkpoint);
	s->n++;
}

static void
packed_written(struct apicall *a, int rc)
{
	struct state *const s = a->state;

	if (apicall_refused(a, rc, NULL))
		return;
	packed_count(&a->x->out, 0, s->n);
	s->kept = !a->x->out.failed;
	apicall_reply_as(a, 200, packed_type);
}

static void
answer_packed(struct apicall *a, struct state *s)
{
	s->rows = (struct rows){ .apicall = a, .op = &a->op, .write = write_packed_row, .done = packed_written, .resumes = true };
	packed_write_queue(&a->x->out, PACKED_MESSAGES, a->op.space, a->op.queue);
	rows_start(&s->rows);
}

/* --- JSON --------------------------------------------------------------------- */

static void
finish(struct rows *r)
{
	json_out_close(&r->w);
}

static void
stream(struct state *s)
{
	s->stream = (struct stream){ .rows = &s->rows, .finish = finish, .wants_client = true };
	stream_start(&s->stream);
}

static void
answer(struct apicall *a)
{
	struct state *const s = a->state;

	if (a->op.rc) {
		a->op.n_rows = 0;
		apicall_refuse_op(a, &a->op);
		return;
	}
	if (a->gone) {
		call_answer(call_of(a->x), 200, api_json, NULL);
		return;
	}
	if (s->packed && !stream_has_long(&a->op)) {
		answer_packed(a, s);
		return;
	}
	s->rows = (struct rows){ .apicall = a, .op = &a->op, .write = write_row, .done = written, .resumes = true };
	json_out_init(&s->rows.w, &a->x->out);
	json_out_array(&s->rows.w, NULL);
	if (stream_is_needed(&a->op))
		stream(s);
	else
		rows_start(&s->rows);
}

/* --- the call ----------------------------------------------------------------- */

static int
decode(struct apicall *a, struct state *s, struct slu_err *err)
{
	const struct call *const c = call_of(a->x);
	char *const room = arena_alloc(&a->memory, c->query.n + 2 * c->body.n);
	int rc;

	if (!room)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	rc = flat_claim_decode(&s->q, c->query, c->body, room, err);
	if (rc)
		return rc;
	apicall_op(a, &a->op, OP_CLAIM, s->q.namespace, s->q.queue);
	s->packed = packed_is_accepted(c);
	a->op.wait = s->q.wait;
	a->op.claim.lease = s->q.lease;
	a->op.claim.holder = holder_with_version(a, s->q.namespace, holder_of(a, s->q.owner));
	a->op.claim.max_bytes = API_PAYLOAD_BYTES;
	rc = s->q.kinds.p ? value_kinds(&a->memory, s->q.kinds, &a->op.claim.kinds, err) : 0;
	if (rc)
		return rc;
	a->op.max_rows = s->q.limit;
	a->op.rows = arena_array(&a->memory, s->q.limit, sizeof *a->op.rows);
	return a->op.rows ? 0 : slu_fail(err, SLU_ENOMEM, "out of memory");
}

static void
claim(struct apicall *a)
{
	struct state *const s = a->state;
	struct slu_err err;
	int rc;

	no_err(&err);
	(void)call_add(call_of(a->x), "Cache-Control", SLICE("no-store")); /* the answer is fine without */
	rc = decode(a, s, &err);
	if (apicall_refused(a, rc, err.text))
		return;
	a->x->ended = ended;
	if (s->q.wait > 0)
		a->x->gone = apicall_gone;
	apicall_run(a, answer);
}

const struct handler flat_claim = { .run = claim, .state = sizeof(struct state) };
