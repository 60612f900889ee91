/*
 * queues.c - GET /stats and GET /topics: the counts of queues.
 */
#include "api/flat/flat.h"

#include "api/flat/view.h"
#include "api/handler.h"
#include "api/limits.h"
#include "api/queuestats.h"

struct state {
	struct slice namespace;
	struct slice queue; /* only for stats */
	uint64_t cursor;    /* only for topics */
	uint32_t limit;
	struct queuestats queuestats;
};

static const struct param stats_params[] = {
	PARAM_QUEUE(struct state),
};

static const struct param topics_params[] = {
	PARAM(name, struct state, namespace, .required = true),
	PARAM_PAGE(struct state, API_PAGE_DEFAULT),
};

static void
answer_stats(struct apicall *a)
{
	const struct queuestats *const v = &((struct state *)a->state)->queuestats;
	struct json_out w;

	if (queuestats_refused(a, v, "no such queue in this namespace"))
		return;
	apicall_object(a, &w);
	flat_view_queue(&w, &v->sum);
	queuestats_write_shards(&w, a, v);
	fanout_write(&w, a, &v->missing);
	apicall_reply_object(a, &w, 200);
}

void
flat_reply_queues(struct apicall *a, const struct queuestats *v, const char *member, flat_write_queue *write)
{
	struct json_out w;

	if (queuestats_refused(a, v, NULL))
		return;
	apicall_object(a, &w);
	json_out_array(&w, member);
	for (uint32_t i = 0; i < v->n_queues; i++) {
		json_out_object(&w, NULL);
		write(&w, &v->queues[i]);
		queuestats_write_shard(&w, a, v, i);
		json_out_close(&w);
	}
	json_out_close(&w);
	flat_view_cursor(&w, v->cursor);
	fanout_write(&w, a, &v->missing);
	apicall_reply_object(a, &w, 200);
}

static void
answer_topics(struct apicall *a)
{
	flat_reply_queues(a, &((struct state *)a->state)->queuestats, "topics", flat_view_queue);
}

static void
stats(struct apicall *a)
{
	struct state *const s = a->state;

	queuestats_queue(a, &s->queuestats, s->namespace, s->queue, answer_stats);
}

static void
topics(struct apicall *a)
{
	struct state *const s = a->state;

	queuestats_queues(a, &s->queuestats, s->namespace, s->cursor, s->limit, answer_topics);
}

const struct handler flat_stats = { stats, sizeof(struct state), QUERY_ROWS(stats_params) };
const struct handler flat_topics = { topics, sizeof(struct state), QUERY_ROWS(topics_params) };
