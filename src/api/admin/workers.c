/*
 * workers.c - consumers that say who they are (api/worker/workers.h): list them, and ask one to be quiet, to go on, or to stop.
 *
 *      {"workers":[{"namespace":"default","worker":"mailer-1","state":"running","host":"web-7","version":"1.4",
 *        "queues":["mail"],"slots":8,"used":3,"lost_leases":0,"late_renewals":0,"crashes":0,"since":"...","last_beat":"..."}],"cursor":"1000"}
 */
#include "api/admin/admin.h"

#include "api/audit/audit.h"
#include "api/authorize.h"
#include "api/flat/view.h"
#include "api/handler.h"
#include "api/limits.h"
#include "api/worker/workers.h"

#include <stdio.h>

struct state {
	struct slice namespace;
	struct slice queue;  /* only for the list */
	struct slice worker; /* only for the others */
	uint64_t cursor;
	uint32_t limit;
};

static const struct param list_params[] = {
	PARAM(name, struct state, namespace),
	PARAM(name, struct state, queue, .also = "topic"),
	PARAM_PAGE(struct state, API_PAGE_DEFAULT),
};

static const struct param ask_params[] = {
	PARAM(name, struct state, namespace, .required = true),
	PARAM(word, struct state, worker, .required = true),
};

static void
write_text(struct json_out *w, const char *name, struct slice text)
{
	if (text.n)
		json_out_str(w, name, text);
}

static void
write_worker(void *arg, const struct worker_shown *s)
{
	struct json_out *const w = arg;
	struct slice queues = s->queues;

	json_out_object(w, NULL);
	json_out_str(w, "namespace", s->beat.namespace);
	json_out_str(w, "worker", s->beat.name);
	json_out_str(w, "state", slice_of(worker_state_name(s->state)));
	write_text(w, "host", s->beat.host);
	write_text(w, "version", s->beat.version);
	json_out_array(w, "queues");
	while (queues.n > 0) {
		const struct slice name = slice_of(queues.p);

		json_out_str(w, NULL, name);
		slice_skip(&queues, name.n + 1);
	}
	json_out_close(w);
	json_out_u64(w, "slots", s->beat.slots);
	json_out_u64(w, "used", s->beat.used);
	json_out_u64(w, "lost_leases", s->beat.lost);
	json_out_u64(w, "late_renewals", s->beat.late);
	json_out_u64(w, "crashes", s->crashes);
	if (s->crashes)
		json_out_time(w, "crashed_at", s->crashed);
	json_out_time(w, "since", s->since);
	json_out_time(w, "last_beat", s->beat.wall);
	json_out_close(w);
}

static void
list(struct apicall *a)
{
	const struct state *const s = a->state;
	struct json_out w;
	uint64_t cursor = s->cursor;

	if (!authorize_space(a, s->namespace))
		return;
	apicall_object(a, &w);
	json_out_array(&w, "workers");
	workers_list(a->api->workers, s->namespace, s->queue, s->limit, clock_mono(a->api->clock), &cursor, write_worker, &w);
	json_out_close(&w);
	flat_view_cursor(&w, cursor);
	apicall_reply_object(a, &w, 200);
}

static void
ask(struct apicall *a)
{
	static const char *const verbs[WORKER_STATES] = { "worker_resume", "worker_quiet", "worker_stop" };
	const struct state *const s = a->state;
	char text[320];
	struct json_out w;
	int rc;

	if (!authorize_space(a, s->namespace))
		return;
	rc = workers_ask(a->api->workers, s->namespace, s->worker, a->arg, clock_mono(a->api->clock));
	audit_named(a, verbs[a->arg], s->namespace, "worker", s->worker, rc);
	(void)snprintf(text, sizeof text, "namespace %.*s has no worker %.*s; it may have been silent for 60 s",
		       (int)s->namespace.n, s->namespace.p, s->worker.n < 128 ? (int)s->worker.n : 128, s->worker.p);
	if (apicall_refused(a, rc, text))
		return;
	apicall_object(a, &w);
	json_out_str(&w, "namespace", s->namespace);
	json_out_str(&w, "worker", s->worker);
	json_out_str(&w, "state", slice_of(worker_state_name((enum worker_state)a->arg)));
	apicall_reply_object(a, &w, 200);
}

/* clang-format off */
const struct handler admin_workers = { list, sizeof(struct state), QUERY_ROWS(list_params) };
const struct handler admin_worker_quiet = { ask, sizeof(struct state), BODY_ROWS(ask_params), .arg = WORKER_QUIET };
const struct handler admin_worker_resume = { ask, sizeof(struct state), BODY_ROWS(ask_params), .arg = WORKER_RUNNING };
const struct handler admin_worker_stop = { ask, sizeof(struct state), BODY_ROWS(ask_params), .arg = WORKER_STOP };
/* clang-format on */
