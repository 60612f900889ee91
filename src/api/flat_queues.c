/*
 * flat_queues.c - GET /stats and GET /topics: queues and how much is in them.
 */
#include "api/flat.h"

#include "api/ask.h"
#include "api/flat_view.h"
#include "api/limits.h"

struct state {
	struct slice namespace;
	struct slice topic; /* of stats alone */
	uint64_t cursor;    /* of topics alone, as limit */
	uint32_t limit;
};

static const struct param stats_params[] = {
	PARAM(name, struct state, namespace, .required = true),
	PARAM(name, struct state, topic, .required = true),
};

static const struct param topics_params[] = {
	PARAM(name, struct state, namespace, .required = true),
	PARAM(number, struct state, cursor),
	PARAM(count, struct state, limit, .min = 1, .max = API_PAGE_MAX),
};

static void
answer_stats(struct ask *a)
{
	struct json_out w;

	if (a->op.rc == SLU_ENOTFOUND) {
		ask_refuse(a, a->op.rc, "no such topic in this namespace");
		return;
	}
	if (a->op.rc) {
		ask_refuse_op(a, &a->op);
		return;
	}
	json_out_init(&w, &a->call->out);
	json_out_object(&w, NULL);
	flat_view_queue(&w, a->op.queues);
	json_out_close(&w);
	ask_reply(a, 200);
}

static void
answer_topics(struct ask *a)
{
	struct json_out w;

	if (a->op.rc) {
		ask_refuse_op(a, &a->op);
		return;
	}
	json_out_init(&w, &a->call->out);
	json_out_object(&w, NULL);
	json_out_array(&w, "topics");
	for (uint32_t i = 0; i < a->op.n_queues; i++) {
		json_out_object(&w, NULL);
		flat_view_queue(&w, &a->op.queues[i]);
		json_out_close(&w);
	}
	json_out_close(&w);
	flat_view_cursor(&w, a->op.cursor);
	json_out_close(&w);
	ask_reply(a, 200);
}

static void
run(struct ask *a, const struct state *s, enum op_verb verb,
    void (*answer)(struct ask *a))
{
	ask_op(a, &a->op, verb, s->namespace, s->topic);
	a->op.cursor = s->cursor;
	a->op.max_queues = s->limit;
	a->op.queues = arena_array(&a->memory, s->limit, sizeof *a->op.queues);
	if (a->op.queues)
		ask_run(a, answer);
	else
		ask_refuse(a, SLU_ENOMEM, NULL);
}

void
flat_stats(struct call *c, void *api)
{
	struct ask *const a = ask_new(api, c);
	struct state *const s = a ? ask_state(a, sizeof *s) : NULL;

	if (!s || !ask_params(a, stats_params, sizeof stats_params / sizeof stats_params[0], s))
		return;
	s->limit = 1;
	run(a, s, OP_STATS, answer_stats);
}

void
flat_topics(struct call *c, void *api)
{
	struct ask *const a = ask_new(api, c);
	struct state *const s = a ? ask_state(a, sizeof *s) : NULL;

	if (!s)
		return;
	s->limit = API_PAGE_DEFAULT;
	if (ask_params(a, topics_params, sizeof topics_params / sizeof topics_params[0], s))
		run(a, s, OP_TOPICS, answer_topics);
}
