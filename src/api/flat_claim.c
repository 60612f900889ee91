#include "api/flat_claim.h"

#include "api/flat_view.h"
#include "api/limits.h"
#include "api/params.h"
#include "api/stream.h"
#include "api/taker.h"
#include "base/log.h"

static const struct param params[] = {
	PARAM(name, struct flat_claim, namespace, .required = true),
	PARAM(name, struct flat_claim, topic, .required = true, .also = "queue"),
	PARAM(count, struct flat_claim, limit, .min = 1, .max = API_CLAIM_MAX),
	PARAM(span, struct flat_claim, wait, .max = API_WAIT_MAX),
	PARAM(span, struct flat_claim, lease, .min = SLU_MS, .max = API_LEASE_MAX),
	PARAM(owner, struct flat_claim, owner),
	PARAM(word, struct flat_claim, as),
};

enum {
	N_PARAMS = sizeof params / sizeof params[0]
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
	struct stream stream; /* when there are large payloads */
	bool kept;            /* an answer has been written that hands the rows over */
};

/* --- when it is not taken ----------------------------------------------------- */

/* On the shard's thread: the last that is heard of it. */
static void
returned(struct op *op)
{
	ask_free(op->owner);
}

static void
ended(struct call *c, bool sent)
{
	struct ask *const a = c->user;
	const struct state *const s = a->state;
	struct op *const op = &a->op;

	if (op->n_rows == 0 || (sent && (s->kept || s->stream.whole))) {
		ask_end(a);
		return;
	}
	log_debug(a->api->log, "claim not received", F_U64("messages", op->n_rows),
		  F_CALL(c));
	op->done = returned;
	if (broker_return(a->api->broker, op, 0)) {
		op_unpin(op); /* stopped: the leases end by themselves */
		ask_end(a);
	}
}

/* --- when it is --------------------------------------------------------------- */

static void
write_row(struct json_out *w, const struct op_row *row, const struct message *m,
	  struct slice error)
{
	const struct rows *const r = CONTAINER(w, struct rows, w);
	const struct state *const s = r->ask->state;

	(void)error; /* claims have none */
	json_out_object(w, NULL);
	flat_view_claimed(w, row, m, s->q.form);
	json_out_close(w);
}

static void
written(struct ask *a, int rc)
{
	struct state *const s = a->state;

	if (rc) {
		ask_refuse(a, rc, NULL);
		return;
	}
	json_out_close(&s->rows.w);
	api_end_line(&a->call->out); /* now: if there is no memory for it, nothing is kept */
	s->kept = !a->call->out.failed;
	ask_reply(a, 200);
}

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
answer(struct ask *a)
{
	struct state *const s = a->state;

	if (a->op.rc) {
		a->op.n_rows = 0;
		ask_refuse_op(a, &a->op);
		return;
	}
	if (a->gone) {
		call_answer(a->call, 200, api_json, NULL);
		return;
	}
	s->rows = (struct rows){ .ask = a, .op = &a->op, .write = write_row, .done = written };
	json_out_init(&s->rows.w, &a->call->out);
	json_out_array(&s->rows.w, NULL);
	if (stream_is_needed(&a->op))
		stream(s);
	else
		rows_start(&s->rows);
}

/* --- the call ----------------------------------------------------------------- */

static int
decode(struct ask *a, struct state *s, struct slu_err *err)
{
	const struct call *const c = a->call;
	char *const room = arena_alloc(&a->memory, c->query.n + 2 * c->body.n);
	int rc;

	if (!room)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	rc = flat_claim_decode(&s->q, c->query, c->body, room, err);
	if (rc)
		return rc;
	ask_op(a, &a->op, OP_CLAIM, s->q.namespace, s->q.topic);
	a->op.wait = s->q.wait;
	a->op.lease = s->q.lease;
	a->op.taker = taker_of(a, s->q.owner);
	a->op.max_bytes = API_PAYLOAD_BYTES;
	a->op.max_rows = s->q.limit;
	a->op.rows = arena_array(&a->memory, s->q.limit, sizeof *a->op.rows);
	return a->op.rows ? 0 : slu_fail(err, SLU_ENOMEM, "out of memory");
}

void
flat_claim(struct call *c, void *api)
{
	struct ask *const a = ask_new(api, c);
	struct state *const s = a ? ask_state(a, sizeof *s) : NULL;
	struct slu_err err = { 0 };
	int rc;

	if (!s)
		return;
	(void)call_add(c, "Cache-Control", SLICE("no-store")); /* 503 when it fails below */
	rc = decode(a, s, &err);
	if (rc) {
		ask_refuse(a, rc, err.text);
		return;
	}
	c->ended = ended;
	if (s->q.wait > 0)
		c->gone = ask_gone;
	ask_run(a, answer);
}
