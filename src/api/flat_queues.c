/*
 * flat_queues.c - GET /stats and GET /topics: queues and how much is in them.
 */
#include "api/flat.h"

#include "api/flat_view.h"
#include "api/limits.h"
#include "api/survey.h"

struct state {
	struct slice namespace;
	struct slice topic; /* of stats alone */
	uint64_t cursor;    /* of topics alone, as limit */
	uint32_t limit;
	struct survey survey;
};

static const struct param stats_params[] = {
	PARAM(name, struct state, namespace, .required = true),
	PARAM(name, struct state, topic, .required = true, .also = "queue"),
};

static const struct param topics_params[] = {
	PARAM(name, struct state, namespace, .required = true),
	PARAM(number, struct state, cursor),
	PARAM(count, struct state, limit, .min = 1, .max = API_PAGE_MAX),
};

static void
answer_stats(struct ask *a)
{
	const struct survey *const v = &((struct state *)a->state)->survey;
	struct json_out w;

	if (survey_refused(a, v, "no such topic in this namespace"))
		return;
	json_out_init(&w, &a->call->out);
	json_out_object(&w, NULL);
	flat_view_queue(&w, &v->sum);
	survey_write_shards(&w, a, v);
	gather_write(&w, a, &v->missing);
	json_out_close(&w);
	ask_reply(a, 200);
}

static void
answer_topics(struct ask *a)
{
	const struct survey *const v = &((struct state *)a->state)->survey;
	struct json_out w;

	if (survey_refused(a, v, NULL))
		return;
	json_out_init(&w, &a->call->out);
	json_out_object(&w, NULL);
	json_out_array(&w, "topics");
	for (uint32_t i = 0; i < v->n_queues; i++) {
		json_out_object(&w, NULL);
		flat_view_queue(&w, &v->queues[i]);
		survey_write_shard(&w, a, v, i);
		json_out_close(&w);
	}
	json_out_close(&w);
	flat_view_cursor(&w, v->cursor);
	gather_write(&w, a, &v->missing);
	json_out_close(&w);
	ask_reply(a, 200);
}

void
flat_stats(struct call *c, void *api)
{
	struct ask *const a = ask_new(api, c);
	struct state *const s = a ? ask_state(a, sizeof *s) : NULL;

	if (!s || !ask_params(a, stats_params, sizeof stats_params / sizeof stats_params[0], s))
		return;
	survey_queue(a, &s->survey, s->namespace, s->topic, answer_stats);
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
		survey_queues(a, &s->survey, s->namespace, s->cursor, s->limit, answer_topics);
}
