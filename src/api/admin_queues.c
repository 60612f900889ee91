/*
 * admin_queues.c - queues as they stand, and what is done to a whole queue.
 */
#include "api/admin.h"

#include "api/flat_policy.h"
#include "api/flat_view.h"
#include "api/limits.h"
#include "api/survey.h"

#include <stdio.h>

struct state {
	struct slice namespace;
	struct slice topic;
	uint64_t cursor; /* of the list alone, as limit */
	uint32_t limit;
	struct op_queue queue; /* as it was found: for pause and purge */
	struct survey survey;  /* of the others */
};

static const struct param list_params[] = {
	PARAM(name, struct state, namespace),
	PARAM(number, struct state, cursor),
	PARAM(count, struct state, limit, .min = 1, .max = API_PAGE_MAX),
};

static const struct param one_params[] = {
	PARAM(name, struct state, namespace, .required = true),
	PARAM(name, struct state, topic, .required = true, .also = "queue"),
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

enum {
	NOT_THERE = 320 /* bytes of a sentence */
};

static const char *
say_not_there(const struct state *s, char text[static NOT_THERE])
{
	(void)snprintf(text, NOT_THERE, "namespace %.*s has no queue %.*s", (int)s->namespace.n,
		       s->namespace.p, (int)s->topic.n, s->topic.p);
	return text;
}

/* False: it has been answered. */
static bool
is_there(struct ask *a)
{
	char text[NOT_THERE];

	if (!a->op.rc)
		return true;
	if (a->op.rc != SLU_ENOTFOUND) {
		ask_refuse_op(a, &a->op);
		return false;
	}
	ask_refuse(a, a->op.rc, say_not_there(a->state, text));
	return false;
}

static void
answer_list(struct ask *a)
{
	const struct survey *const v = &((struct state *)a->state)->survey;
	struct json_out w;

	if (survey_refused(a, v, NULL))
		return;
	json_out_init(&w, &a->call->out);
	json_out_object(&w, NULL);
	json_out_array(&w, "queues");
	for (uint32_t i = 0; i < v->n_queues; i++) {
		json_out_object(&w, NULL);
		write_queue(&w, &v->queues[i]);
		survey_write_shard(&w, a, v, i);
		json_out_close(&w);
	}
	json_out_close(&w);
	flat_view_cursor(&w, v->cursor);
	gather_write(&w, a, &v->missing);
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
	write_queue(&w, &s->survey.sum);
	survey_write_shards(&w, a, &s->survey);
	json_out_object(&w, "policy");
	flat_policy_encode(&a->op.policy, &w);
	json_out_close(&w);
	gather_write(&w, a, &s->survey.missing);
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
	flat_view_place(&w, s->namespace, s->topic);
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
	flat_view_place(&w, s->namespace, s->topic);
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
	survey_queues(a, &s->survey, s->namespace, s->cursor, s->limit, answer_list);
}

/* The queue that the call names, found: then `next`. */
static void
find(struct call *c, struct api *api, void (*next)(struct ask *a))
{
	struct ask *const a = ask_new(api, c);
	struct state *const s = a ? ask_state(a, sizeof *s) : NULL;

	if (!s || !ask_body(a, one_params, ONE_PARAMS, s))
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

/* What it has, then its policy. */
static void
show(struct ask *a)
{
	const struct state *const s = a->state;
	char text[NOT_THERE];

	if (survey_refused(a, &s->survey, say_not_there(s, text)))
		return;
	ask_op(a, &a->op, OP_POLICY_GET, s->namespace, s->topic);
	ask_run(a, answer_one);
}

void
admin_queue(struct call *c, void *api)
{
	struct ask *const a = ask_new(api, c);
	struct state *const s = a ? ask_state(a, sizeof *s) : NULL;

	if (s && ask_params(a, one_params, ONE_PARAMS, s))
		survey_queue(a, &s->survey, s->namespace, s->topic, show);
}

void
admin_pause(struct call *c, void *api)
{
	find(c, api, pause_it);
}

void
admin_resume(struct call *c, void *api)
{
	find(c, api, resume_it);
}

void
admin_purge(struct call *c, void *api)
{
	find(c, api, purge_it);
}
