#include "server/limits.h"

#include "base/mem.h"
#include "conf/quotas.h"
#include "server/machine.h"
#include "server/shards.h"

#include <unistd.h>

enum {
	CONSUMERS_EACH = 64,
	CONSUMERS_LEAST = 128,
	CONSUMERS_MOST = 4096,
	INDEX_PERCENT = 70, /* of the memory of the machine, if the setting is missing */
	TRENDS_MAX = 10000  /* queues of all shards with a history */
};

static void
set_gate(struct ratelimit *g, const struct conf_limits *l)
{
	atomic_store(&g->rate, l->rate);
	atomic_store(&g->burst, l->burst);
	atomic_store(&g->batch, l->batch);
	atomic_store(&g->payload, l->payload);
}

/* A part of the memory: the rest is for payloads in transit and for the system. */
static uint64_t
index_limit(uint64_t said)
{
	return said ? said : machine_memory() / 100 * INDEX_PERCENT;
}

static void
set_quota(struct quota *q, const struct conf_limits *l)
{
	quota_set(&q->rate, l->queue_rate);
	quota_set(&q->burst, l->queue_burst);
	quota_set(&q->depth, l->queue_depth);
	quota_set(&q->waiting, l->waiting);
	quota_set(&q->queue_waiting, l->queue_waiting);
	quota_set(&q->shares, l->shares);
	quota_set(&q->outbox, l->outbox);
	quota_set(&q->max_queues, l->queues);
	quota_set(&q->max_space_queues, l->namespace_queues);
	atomic_store(&q->index_limit, index_limit(l->index_memory));
	atomic_store(&q->index_full, 0);
}

int
limits_prepare(void *node, const struct conf *old, const struct conf *next, struct slu_err *err)
{
	const struct conf_limits *const l = &next->limits;
	struct node *const n = node;
	struct space_quota *const rows = mem_array(l->quotas.n + 1, sizeof *rows);
	struct conf_quota q;
	int rc = rows ? 0 : slu_fail(err, SLU_ENOMEM, "no memory for limits.quotas");

	(void)old;
	for (unsigned i = 0; i < l->quotas.n && !rc; i++) {
		rc = conf_quota_parse(l->quotas.items[i], &q, err);
		rows[i] = (struct space_quota){
			.messages = q.messages,
			.bytes = q.bytes,
			.has_messages = q.has_messages,
			.has_bytes = q.has_bytes,
		};
		memcpy(rows[i].name, q.name, sizeof q.name);
	}
	if (rc) {
		mem_free(rows);
		return rc;
	}
	n->quotas = (struct space_quotas){
		.messages = l->namespace_messages,
		.bytes = l->namespace_bytes,
		.rows = rows,
		.n = l->quotas.n,
	};
	return 0;
}

void
limits_abandon(void *node)
{
	struct node *const n = node;

	mem_free(n->quotas.rows);
	n->quotas = (struct space_quotas){ 0 };
}

static bool
has_quotas(const struct engine_ops *engine)
{
	return engine->quotas;
}

int
limits_check(const struct conf *conf, struct slu_err *err)
{
	const struct conf_limits *const l = &conf->limits;
	const char *const key = l->namespace_messages ? "limits.namespace_messages"
				: l->namespace_bytes  ? "limits.namespace_bytes"
				: l->quotas.n         ? "limits.quotas"
						      : NULL;

	const struct engine_ops *const engine = key ? shards_without(conf, has_quotas) : NULL;

	if (!engine)
		return 0;
	return slu_fail(err, SLU_EINVAL, "%s: engine %s does not count what a namespace holds; "
					 "leave the limit unset, or use another engine",
			key, engine->name);
}

/* If the setting is missing: CONSUMERS_EACH per processor, within bounds. */
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

	set_gate(&n->api.ratelimit, &now->limits);
	set_quota(broker_quota(n->broker), &now->limits);
	atomic_store(&broker_quota(n->broker)->has_quotas,
		     n->quotas.messages || n->quotas.bytes || n->quotas.n);
	spaces_limit(broker_quota(n->broker)->spaces, &n->quotas);
	n->quotas = (struct space_quotas){ 0 };
	atomic_store_explicit(&broker_quota(n->broker)->hold, now->hold_max, memory_order_relaxed);
	quota_set(&broker_quota(n->broker)->trends, TRENDS_MAX / broker_lanes(n->broker));
	atomic_store_explicit(&broker_quota(n->broker)->idle, now->queues_idle, memory_order_relaxed);
	server_set_limits(n->server, now->limits.connections, (size_t)now->limits.memory);
	atomic_store(&n->api.metric_queues, now->metric_queues);
	atomic_store(&n->api.disk_warn, now->disk_warn);
	atomic_store(&n->api.console, now->console != 0);
	atomic_store(&n->api.stats_timeout, now->stats_timeout);
	atomic_store(&n->api.max_consumers, consumers(now->max_consumers));
	atomic_store(&n->api.unsettled, now->unsettled);
	uploads_limit(&n->api.uploads, now->limits.uploads, now->limits.upload_bytes, now->limits.memory);
}
