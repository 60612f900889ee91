/*
 * result.c - GET /result: what the ack of a message brought.
 *
 *      200  {"id":..., "status":"done", "result":{...}, "expires_at":"..."}
 *      202  {"id":..., "status":"pending"}      not acked within `wait`
 *      404                                      no such message, or no longer kept
 */
#include "api/flat/flat.h"

#include "api/handler.h"
#include "api/flat/view.h"
#include "api/limits.h"
#include "engine/engine.h"

struct state {
	struct given_id id;
	struct receipt receipt; /* instead of id, namespace and queue */
	struct slice namespace;
	struct slice queue;
	slu_time wait;

	char *text; /* NULL: none */
};

static const struct param params[] = {
	PARAM(id, struct state, id),
	PARAM(receipt, struct state, receipt),
	PARAM(name, struct state, namespace),
	PARAM(name, struct state, queue, .also = "topic"),
	PARAM(span, struct state, wait, .max = API_WAIT_MAX),
};

static void
answer_pending(struct apicall *a)
{
	const struct state *const s = a->state;
	struct json_out w;

	apicall_object(a, &w);
	flat_view_id(&w, s->id.id);
	json_out_str(&w, "status", SLICE("pending"));
	apicall_reply_object(a, &w, 202);
}

static void
answer_done(struct apicall *a, int rc)
{
	const struct state *const s = a->state;
	struct slice text = { s->text, s->text ? a->op.result.size : 0 };
	struct json_out w;

	op_unpin(&a->op);
	if (!rc)
		rc = mask_for_caller(a, s->namespace, &text);
	if (apicall_refused(a, rc, NULL))
		return;
	apicall_object(a, &w);
	flat_view_id(&w, s->id.id);
	json_out_str(&w, "status", SLICE("done"));
	if (s->text)
		json_out_stored(&w, "result", text);
	else
		json_out_null(&w, "result");
	json_out_time(&w, "expires_at", a->op.until);
	apicall_reply_object(a, &w, 200);
}

/* Reads the result into the memory of the apicall, if there is one. */
static int
read_text(struct apicall *a, bool may_block)
{
	struct state *const s = a->state;
	const struct op_ref *const ref = &a->op.result;

	if (!ref->pin)
		return 0;
	if (!s->text)
		s->text = arena_alloc(&a->memory, ref->size);
	if (!s->text)
		return SLU_ENOMEM;
	return engine_read(a->op.engine, ref, 0, ref->size, s->text, may_block, NULL);
}

static void
answer(struct apicall *a)
{
	const struct state *const s = a->state;

	if (a->op.rc == SLU_ETIMEOUT)
		answer_pending(a);
	else if (a->op.rc)
		apicall_refuse_id(a, &a->op, s->id);
	else
		apicall_try(a, read_text, answer_done);
}

int
flat_take_receipt(const struct receipt *r, struct given_id *id, struct slice *namespace, struct slice *queue,
		  struct slu_err *err)
{
	if (r->id && (id->id || namespace->n > 0 || queue->n > 0))
		return slu_fail(err, SLU_EINVAL,
				"expected a receipt alone, or id and namespace; not both");
	if (r->id) {
		id->id = r->id;
		*namespace = r->space;
		*queue = r->queue;
	}
	if (id->id == 0)
		return slu_fail(err, SLU_EINVAL, "receipt or id: is required");
	if (namespace->n == 0)
		return slu_fail(err, SLU_EINVAL, "namespace: is required");
	return 0;
}

static void
result(struct apicall *a)
{
	struct state *const s = a->state;
	struct slu_err err;

	if (flat_take_receipt(&s->receipt, &s->id, &s->namespace, &s->queue, &err)) {
		apicall_refuse(a, err.code, err.text);
		return;
	}
	if (s->queue.n == 0 && broker_lanes(a->api->broker) > 1) {
		apicall_refuse(a, SLU_EINVAL, "with several shards, queue is required, or the receipt");
		return;
	}
	(void)call_add(call_of(a->x), "Cache-Control", SLICE("no-store")); /* the answer is fine without */
	apicall_op(a, &a->op, OP_RESULT, s->namespace, s->queue);
	a->op.id = s->id.id;
	a->op.wait = s->wait;
	if (s->wait > 0)
		a->x->gone = apicall_gone;
	apicall_run(a, answer);
}

const struct handler flat_result = { result, sizeof(struct state), QUERY_ROWS(params) };
