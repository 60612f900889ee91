/*
 * flat_result.c - GET /result: what the ack of a message brought.
 *
 *      200  {"id":..., "status":"done", "result":{...}, "expires_at":"..."}
 *      202  {"id":..., "status":"pending"}      not acked within `wait`
 *      404                                      no such message, or no longer kept
 */
#include "api/flat.h"

#include "api/ask.h"
#include "api/flat_view.h"
#include "api/limits.h"
#include "engine/engine.h"

struct state {
	struct given_id id;
	struct receipt receipt; /* instead of id, namespace and topic */
	struct slice namespace;
	struct slice topic;
	slu_time wait;

	uv_work_t work;
	char *text; /* NULL: there is none */
	int rc;
};

static const struct param params[] = {
	PARAM(id, struct state, id),
	PARAM(receipt, struct state, receipt),
	PARAM(name, struct state, namespace),
	PARAM(name, struct state, topic, .also = "queue"),
	PARAM(span, struct state, wait, .max = API_WAIT_MAX),
};

static void
answer_pending(struct ask *a)
{
	const struct state *const s = a->state;
	struct json_out w;

	json_out_init(&w, &a->call->out);
	json_out_object(&w, NULL);
	flat_view_id(&w, s->id.id);
	json_out_str(&w, "status", SLICE("pending"));
	json_out_close(&w);
	ask_reply(a, 202);
}

static void
answer_done(struct ask *a)
{
	const struct state *const s = a->state;
	struct json_out w;

	op_unpin(&a->op);
	if (s->rc) {
		ask_refuse(a, s->rc, NULL);
		return;
	}
	json_out_init(&w, &a->call->out);
	json_out_object(&w, NULL);
	flat_view_id(&w, s->id.id);
	json_out_str(&w, "status", SLICE("done"));
	if (s->text)
		json_out_stored(&w, "result", (struct slice){ s->text, a->op.result.size });
	else
		json_out_null(&w, "result");
	json_out_time(&w, "expires_at", a->op.until);
	json_out_close(&w);
	ask_reply(a, 200);
}

/* The text into the ask's memory. */
static int
read_text(struct ask *a, bool may_block)
{
	struct state *const s = a->state;
	const struct op_ref *const ref = &a->op.result;

	if (!s->text)
		s->text = arena_alloc(&a->memory, ref->size);
	if (!s->text)
		return SLU_ENOMEM;
	return engine_read(a->op.engine, ref, 0, ref->size, s->text, may_block, NULL);
}

static void
run_on_file_thread(uv_work_t *work)
{
	struct ask *const a = work->data;

	((struct state *)a->state)->rc = read_text(a, true);
}

static void
back_on_loop(uv_work_t *work, int status)
{
	(void)status; /* nobody cancels it */
	answer_done(work->data);
}

static void
answer(struct ask *a)
{
	struct state *const s = a->state;

	if (a->op.rc == SLU_ETIMEOUT) {
		answer_pending(a);
		return;
	}
	if (a->op.rc) {
		ask_refuse_id(a, &a->op, s->id);
		return;
	}
	if (a->op.result.pin)
		s->rc = read_text(a, false);
	s->work.data = a;
	if (s->rc == SLU_EBUSY &&
	    uv_queue_work(loop_uv(call_loop(a->call)), &s->work, run_on_file_thread,
			  back_on_loop) == 0)
		return;
	answer_done(a);
}

/* The names and the id, out of the receipt if there is one. */
static int
take_which(struct state *s, struct slu_err *err)
{
	const bool named = s->id.id || s->namespace.n > 0 || s->topic.n > 0;

	if (s->receipt.id && named)
		return slu_fail(err, SLU_EINVAL,
				"expected a receipt alone, or id and namespace; not both");
	if (s->receipt.id) {
		s->id.id = s->receipt.id;
		s->namespace = s->receipt.space;
		s->topic = s->receipt.queue;
	}
	if (s->id.id == 0)
		return slu_fail(err, SLU_EINVAL, "receipt or id: is required");
	if (s->namespace.n == 0)
		return slu_fail(err, SLU_EINVAL, "namespace: is required");
	return 0;
}

void
flat_result(struct call *c, void *api)
{
	struct ask *const a = ask_new(api, c);
	struct state *const s = a ? ask_state(a, sizeof *s) : NULL;
	struct slu_err err;

	if (!s || !ask_params(a, params, sizeof params / sizeof params[0], s))
		return;
	if (take_which(s, &err)) {
		ask_refuse(a, err.code, err.text);
		return;
	}
	if (s->topic.n == 0 && broker_shards(a->api->broker) > 1) {
		ask_refuse(a, SLU_EINVAL, "topic or queue is required where there are several shards, or the receipt");
		return;
	}
	(void)call_add(c, "Cache-Control", SLICE("no-store")); /* a wish, no more */
	ask_op(a, &a->op, OP_RESULT, s->namespace, s->topic);
	a->op.id = s->id.id;
	a->op.wait = s->wait;
	if (s->wait > 0)
		c->gone = ask_gone;
	ask_run(a, answer);
}
