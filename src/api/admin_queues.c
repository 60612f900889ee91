/*
 * admin_queues.c - queues as they stand, and what is done to a whole queue.
 */
#include "api/admin.h"

#include "api/ask.h"
#include "api/flat_policy.h"
#include "api/flat_view.h"
#include "api/limits.h"

#include <stdio.h>

struct state {
	struct slice namespace;
	struct slice topic;
	uint64_t cursor; /* of the list alone, as limit */
	uint32_t limit;
	struct op_queue queue; /* as it was found: for show and purge */
};

static const struct param list_params[] = {
	PARAM(name, struct state, namespace),
	PARAM(number, struct state, cursor),
	PARAM(count, struct state, limit, .min = 1, .max = API_PAGE_MAX),
};

static const struct param one_params[] = {
	PARAM(name, struct state, namespace, .required = true),
	PARAM(name, struct state, topic, .required = true),
};

enum {
	LIST_PARAMS = sizeof list_params / sizeof list_params[0],
	ONE_PARAMS = sizeof one_params / sizeof one_params[0]
};

/* --- answer ------------------------------------------------------------------- */

static void
write_queue(struct json_out *w, const struct op_queue *q)
{
	flat_view_queue(w, q);
	if (q->oldest >= 0)
		json_out_u64(w, "oldest_ready_ms", (uint64_t)(q->oldest / SLU_MS));
	json_out_object(w, "since_start");
	json_out_u64(w, "accepted", q->totals.accepted);
	json_out_u64(w, "delivered", q->totals.delivered);
	json_out_u64(w, "finished", q->totals.done);
	json_out_u64(w, "failed", q->totals.failed);
	json_out_u64(w, "died", q->totals.died);
	json_out_close(w);
}

/* False: it has been answered. */
static bool
is_there(struct ask *a)
{
	const struct state *const s = a->state;
	char text[320];

	if (!a->op.rc)
		return true;
	if (a->op.rc != SLU_ENOTFOUND) {
		ask_refuse_op(a, &a->op);
		return false;
	}
	(void)snprintf(text, sizeof text, "namespace %.*s has no queue %.*s",
		       (int)s->namespace.n, s->namespace.p, (int)s->topic.n, s->topic.p);
	ask_refuse(a, a->op.rc, text);
	return false;
}

static void
answer_list(struct ask *a)
{
	struct json_out w;

	if (!is_there(a))
		return;
	json_out_init(&w, &a->call->out);
	json_out_object(&w, NULL);
	json_out_array(&w, "queues");
	for (uint32_t i = 0; i < a->op.n_queues; i++) {
		json_out_object(&w, NULL);
		write_queue(&w, &a->op.queues[i]);
		json_out_close(&w);
	}
	json_out_close(&w);
	flat_view_cursor(&w, a->op.cursor);
	json_out_close(&w);
	ask_reply(a, 200);
}

static void
answer_one(struct ask *a)
{
	const struct state *const s = a->state;
	struct json_out w;

	if (!is_there(a))
		return;
	json_out_init(&w, &a->call->out);
	json_out_object(&w, NULL);
	write_queue(&w, &s->queue);
	json_out_object(&w, "policy");
	flat_policy_encode(&a->op.policy, &w);
	json_out_close(&w);
	json_out_close(&w);
	ask_reply(a, 200);
}

static void
answer_pause(struct ask *a)
{
	const struct state *const s = a->state;
	struct json_out w;

	if (!is_there(a))
		return;
	json_out_init(&w, &a->call->out);
	json_out_object(&w, NULL);
	json_out_str(&w, "namespace", s->namespace);
	json_out_str(&w, "topic", s->topic);
	json_out_bool(&w, "paused", a->op.policy.paused);
	json_out_close(&w);
	ask_reply(a, 200);
}

static void
answer_purge(struct ask *a)
{
	const struct state *const s = a->state;
	struct json_out w;

	if (a->op.rc == SLU_EBUSY) {
		ask_refuse(a, SLU_EBUSY, "the purge before is still being freed: a moment");
		return;
	}
	if (!is_there(a))
		return;
	json_out_init(&w, &a->call->out);
	json_out_object(&w, NULL);
	json_out_str(&w, "namespace", s->namespace);
	json_out_str(&w, "topic", s->topic);
	json_out_u64(&w, "purged", a->op.count);
	json_out_close(&w);
	ask_reply(a, 200);
}

/* --- the calls ---------------------------------------------------------------- */

void
admin_queues(struct call *c, void *api)
{
	struct ask *const a = ask_new(api, c);
	struct state *const s = a ? ask_state(a, sizeof *s) : NULL;

	if (!s)
		return;
	s->limit = API_PAGE_DEFAULT;
	if (!ask_params(a, list_params, LIST_PARAMS, s))
		return;
	ask_op(a, &a->op, OP_TOPICS, s->namespace, (struct slice){ 0 });
	a->op.cursor = s->cursor;
	a->op.max_queues = s->limit;
	a->op.queues = arena_array(&a->memory, s->limit, sizeof *a->op.queues);
	if (a->op.queues)
		ask_run(a, answer_list);
	else
		ask_refuse(a, SLU_ENOMEM, NULL);
}

/* The queue that the call names, found: then `next`. */
static void
find(struct call *c, struct api *api, bool body, void (*next)(struct ask *a))
{
	struct ask *const a = ask_new(api, c);
	struct state *const s = a ? ask_state(a, sizeof *s) : NULL;

	if (!s)
		return;
	if (body ? !ask_body(a, one_params, ONE_PARAMS, s)
		 : !ask_params(a, one_params, ONE_PARAMS, s))
		return;
	ask_op(a, &a->op, OP_STATS, s->namespace, s->topic);
	a->op.queues = &s->queue;
	a->op.max_queues = 1;
	ask_run(a, next);
}

static void
go_on(struct ask *a, enum op_verb verb, bool paused, void (*next)(struct ask *a))
{
	const struct state *const s = a->state;

	if (!is_there(a))
		return;
	ask_op(a, &a->op, verb, s->namespace, s->topic);
	a->op.policy.paused = paused;
	ask_run(a, next);
}

static void
show(struct ask *a)
{
	go_on(a, OP_POLICY_GET, false, answer_one);
}

static void
pause_it(struct ask *a)
{
	go_on(a, OP_PAUSE, true, answer_pause);
}

static void
resume_it(struct ask *a)
{
	go_on(a, OP_PAUSE, false, answer_pause);
}

static void
purge_it(struct ask *a)
{
	go_on(a, OP_PURGE, false, answer_purge);
}

void
admin_queue(struct call *c, void *api)
{
	find(c, api, false, show);
}

void
admin_pause(struct call *c, void *api)
{
	find(c, api, true, pause_it);
}

void
admin_resume(struct call *c, void *api)
{
	find(c, api, true, resume_it);
}

void
admin_purge(struct call *c, void *api)
{
	find(c, api, true, purge_it);
}
