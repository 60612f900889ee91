#include "engine/meter.h"

#include "base/mem.h"
#include "engine/op.h"

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
	[METER_BROKEN] = { "breakers_opened_total", METRIC_COUNTER,
			   "breakers that opened, also again after a failed try, or by an operator" },
	[METER_MENDED] = { "breakers_closed_total", METRIC_COUNTER, "breakers that closed" },
	[METER_LOST_WRITES] = { "lost_writes_total", METRIC_COUNTER,
				"times a store came back without writes that it had answered" },
	[METER_SYNC] = { "sync_seconds", METRIC_HISTOGRAM, "syncs of the log to disk" },
};

static const struct metric dead_rows[] = {
	{ "dead_letters_total", METRIC_COUNTER, "messages that became dead letters" },
};

static const struct metric op_rows[] = {
	{ "shard_operation_duration_seconds", METRIC_HISTOGRAM,
	  "what a shard needs for the batch that an operation is part of" },
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

/* A series per verb. */
static int
init_ops(struct metrics *m, const char *name)
{
	char text[METER_LABELS + 64];
	int rc = metrics_init(m, "sluice_", op_rows, 1, "operation", OP_VERBS);

	m->quiet = true;
	for (unsigned i = 0; i < OP_VERBS && !rc; i++) {
		(void)snprintf(text, sizeof text, "shard=\"%s\",operation=\"%s\"", name,
			       op_verb_name(i)); /* always fits */
		rc = metrics_labels(m, i, text);
	}
	return rc;
}

int
meter_init(struct meter *m, unsigned lanes, const char *const *labels, const char *name)
{
	int rc;

	*m = (struct meter){ .n = lanes };
	(void)snprintf(m->name, sizeof m->name, "%s", name); /* always fits */
	m->ops = mem_array(lanes, sizeof *m->ops);
	if (!m->ops)
		return SLU_ENOMEM;
	memset(m->ops, 0, lanes * sizeof *m->ops);
	rc = metrics_init(&m->m, "sluice_", rows, METER_ROWS, "shard", lanes);
	if (!rc)
		rc = metrics_init(&m->dead, "sluice_", dead_rows, 1, "shard", lanes * REASONS);
	for (unsigned i = 0; i < lanes && !rc; i++) {
		rc = name_shard(m, i, labels[i]);
		if (!rc)
			rc = init_ops(&m->ops[i], name);
	}
	if (rc)
		meter_release(m);
	return rc;
}

void
meter_release(struct meter *m)
{
	metrics_release(&m->m);
	metrics_release(&m->dead);
	for (unsigned i = 0; m->ops && i < m->n; i++)
		metrics_release(&m->ops[i]);
	mem_free(m->ops);
	m->ops = NULL;
}

/* Users see shards, not lanes. */
static int
sum_ops(const struct meter *m, struct metrics *sum)
{
	const int rc = init_ops(sum, m->name);

	for (unsigned i = 0; i < m->n && !rc; i++)
		metrics_merge(sum, &m->ops[i]);
	return rc;
}

static void
write_ops(const struct meter *const *meters, unsigned n, struct buf *out)
{
	struct metrics *const sums = mem_array(n, sizeof *sums);
	const struct metrics *sets[METER_MOST] = { 0 };
	int rc = sums ? 0 : SLU_ENOMEM;

	for (unsigned i = 0; sums && i < n; i++) {
		sums[i] = (struct metrics){ 0 };
		sets[i] = &sums[i];
		rc = rc ? rc : sum_ops(meters[i], &sums[i]);
	}
	if (rc)
		out->failed = true;
	else
		metrics_write_all(sets, n, out);
	for (unsigned i = 0; sums && i < n; i++)
		metrics_release(&sums[i]);
	mem_free(sums);
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
	write_ops(meters, n, out);
}

void
meter_change(const struct meter_lane *s, const struct change *c)
{
	if (!s->meter)
		return;
	if (c->kind == CHANGE_RETRY || c->kind == CHANGE_DIE) {
		meter_add(s, METER_LEASES_EXPIRED, c->expired);
		meter_add(s, METER_RETRIES, c->kind == CHANGE_RETRY && c->failed);
	}
	if (c->kind == CHANGE_DIE)
		metrics_add_own(&s->meter->dead, 0, s->lane * REASONS + c->reason - 1u, 1);
	if (c->kind == CHANGE_REDRIVE)
		meter_add(s, METER_REDRIVEN, 1);
	if (c->kind == CHANGE_BREAKER)
		meter_add(s, c->until ? METER_BROKEN : METER_MENDED, 1);
}
