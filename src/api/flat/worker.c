/*
 * worker.c - POST /worker: a beat of a worker that makes no other call, and what the worker is asked.
 *
 *      POST /worker   Sluice-Worker: name=mailer-1; slots=8; used=8
 *      {"namespace":"default","queue":"mail"}
 *      {"state":"running"}
 */
#include "api/authorize.h"
#include "api/flat/flat.h"
#include "api/handler.h"
#include "api/worker/workers.h"

struct state {
	struct slice namespace;
	struct slice queue;
};

static const struct param params[] = {
	PARAM(name, struct state, namespace, .required = true),
	PARAM(name, struct state, queue, .also = "topic"),
};

static void
worker(struct apicall *a)
{
	const struct state *const s = a->state;
	enum worker_state state = WORKER_RUNNING;
	struct slu_err err = { 0 };
	struct worker_beat b;
	struct json_out w;

	if (!authorize_space(a, s->namespace))
		return;
	if (!a->worker) {
		apicall_refuse(a, SLU_EINVAL, "expected the field Sluice-Worker: name=NAME; slots=N; used=N");
		return;
	}
	b = *a->worker;
	b.namespace = s->namespace;
	b.queue = s->queue;
	b.wall = clock_wall(a->api->clock);
	if (apicall_refused(a, workers_beat(a->api->workers, &b, clock_mono(a->api->clock), &state, &err), err.text))
		return;
	apicall_object(a, &w);
	json_out_str(&w, "state", slice_of(worker_state_name(state)));
	apicall_reply_object(a, &w, 200);
}

const struct handler flat_worker = { worker, sizeof(struct state), BODY_ROWS(params) };
