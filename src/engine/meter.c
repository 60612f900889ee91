#include "engine/meter.h"

#include <sluice/err.h>

#include <assert.h>
#include <stdio.h>

static const struct metric rows[METER_ROWS] = {
	[METER_BATCH] = { "shard_batch_ops", METRIC_SIZES, "operations that ran as one batch" },
	[METER_CLAIM_WAIT] = { "claim_wait_seconds", METRIC_HISTOGRAM,
			       "from a dequeue that got messages to its first one" },
	[METER_MESSAGE_WAIT] = { "message_wait_seconds", METRIC_HISTOGRAM,
				 "from when a message was due to when it was handed out" },
	[METER_PROCESSING] = { "processing_seconds", METRIC_HISTOGRAM,
			       "from handing a message out to its ack or nack" },
	[METER_LEASES_EXPIRED] = { "leases_expired_total", METRIC_COUNTER,
				   "leases that ran out, unsettled" },
	[METER_RETRIES] = { "retries_total", METRIC_COUNTER,
			    "messages that failed and will be handed out again" },
	[METER_REDRIVEN] = { "messages_redriven_total", METRIC_COUNTER,
			     "dead letters that started anew" },
	[METER_LOST_WRITES] = { "lost_writes_total", METRIC_COUNTER,
				"times a store came back without writes that it had answered" },
	[METER_SYNC] = { "sync_seconds", METRIC_HISTOGRAM, "syncs of the log to disk" },
};

static const struct metric dead_rows[] = {
	{ "dead_letters_total", METRIC_COUNTER, "messages that became dead letters" },
};

static const char *const reasons[] = {
	[DEAD_MAX_ATTEMPTS] = "max_attempts",
	[DEAD_EXPIRED] = "expired",
	[DEAD_REJECTED] = "rejected",
};

enum {
	REASONS = DEAD_REJECTED /* those above, from 1 on */
};

static int
name_shard(struct meter *m, unsigned shard, const char *labels)
{
	char text[METER_LABELS + 32];
	int rc = metrics_labels(&m->m, shard, labels);

	for (unsigned i = 0; i < REASONS && !rc; i++) {
		(void)snprintf(text, sizeof text, "%s,reason=\"%s\"", labels,
			       reasons[i + 1]); /* always fits */
		rc = metrics_labels(&m->dead, shard * REASONS + i, text);
	}
	return rc;
}

int
meter_init(struct meter *m, unsigned shards, const char *const *labels)
{
	int rc;

	*m = (struct meter){ 0 };
	rc = metrics_init(&m->m, "sluice_", rows, METER_ROWS, "shard", shards);
	if (!rc)
		rc = metrics_init(&m->dead, "sluice_", dead_rows, 1, "shard", shards * REASONS);
	for (unsigned i = 0; i < shards && !rc; i++)
		rc = name_shard(m, i, labels[i]);
	if (rc)
		meter_release(m);
	return rc;
}

void
meter_release(struct meter *m)
{
	metrics_release(&m->m);
	metrics_release(&m->dead);
}

void
meter_write(const struct meter *const *meters, unsigned n, struct buf *out)
{
	const struct metrics *sets[METER_MOST] = { 0 };

	assert(n > 0 && n <= METER_MOST);
	for (unsigned i = 0; i < n; i++)
		sets[i] = &meters[i]->m;
	metrics_write_all(sets, n, out);
	for (unsigned i = 0; i < n; i++)
		sets[i] = &meters[i]->dead;
	metrics_write_all(sets, n, out);
}

void
meter_change(const struct meter_shard *s, const struct change *c)
{
	if (!s->meter)
		return;
	if (c->kind == CHANGE_RETRY || c->kind == CHANGE_DIE) {
		meter_add(s, METER_LEASES_EXPIRED, c->expired);
		meter_add(s, METER_RETRIES, c->kind == CHANGE_RETRY && c->failed);
	}
	if (c->kind == CHANGE_DIE)
		metrics_add_own(&s->meter->dead, 0, s->shard * REASONS + c->reason - 1u, 1);
	if (c->kind == CHANGE_REDRIVE)
		meter_add(s, METER_REDRIVEN, 1);
}
