#include "server/limits.h"

#include <unistd.h>

enum {
	CONSUMERS_EACH = 64,
	CONSUMERS_LEAST = 128,
	CONSUMERS_MOST = 4096
};

static void
set_gate(struct gate *g, const struct conf_limits *l)
{
	atomic_store(&g->rate, l->rate);
	atomic_store(&g->burst, l->burst);
	atomic_store(&g->batch, l->batch);
	atomic_store(&g->payload, l->payload);
}

static void
set_quota(struct quota *q, const struct conf_limits *l)
{
	quota_set(&q->rate, l->queue_rate);
	quota_set(&q->burst, l->queue_burst);
	quota_set(&q->depth, l->queue_depth);
	quota_set(&q->waiting, l->waiting);
	quota_set(&q->queue_waiting, l->queue_waiting);
}

/* As many as the processors can serve, unless it was said. */
static uint32_t
consumers(uint32_t said)
{
	const long processors = sysconf(_SC_NPROCESSORS_ONLN);
	const long each = processors > 0 ? processors * CONSUMERS_EACH : 0;

	if (said)
		return said;
	if (each < CONSUMERS_LEAST)
		return CONSUMERS_LEAST;
	return each < CONSUMERS_MOST ? (uint32_t)each : CONSUMERS_MOST;
}

void
limits_commit(void *node, const struct conf *now)
{
	struct node *const n = node;

	set_gate(&n->api.gate, &now->limits);
	set_quota(broker_quota(n->broker), &now->limits);
	server_set_limits(n->server, now->limits.connections, (size_t)now->limits.memory);
	atomic_store(&n->api.metric_queues, now->metric_queues);
	atomic_store(&n->api.stats_timeout, now->stats_timeout);
	atomic_store(&n->api.max_consumers, consumers(now->max_consumers));
	atomic_store(&n->api.unsettled, now->unsettled);
}
