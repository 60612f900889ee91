#include "api/api.h"

#include "api/apicall.h"
#include "api/fanout.h"
#include "api/queue/known.h"
#include "api/limits.h"
#include "api/refusals.h"
#include "api/codeq/subscribers.h"
#include "api/worker/workers.h"
#include "base/limit.h"
#include "base/lines.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "engine/op.h"
#include "net/server.h"

#include <inttypes.h>

const char api_json[] = "application/json";

enum {
	OPS_TOTAL,
	OP_ERRORS,
	OP_MESSAGES,
	OP_SECONDS
};

static const struct metric op_metrics[] = {
	[OPS_TOTAL] = { "ops_total", METRIC_COUNTER, "operations answered" },
	[OP_ERRORS] = { "op_errors_total", METRIC_COUNTER, "operations answered with an error" },
	[OP_MESSAGES] = { "op_messages", METRIC_SIZES, "messages of an operation" },
	[OP_SECONDS] = { "op_seconds", METRIC_HISTOGRAM, "time from posting an operation to its answer, waiting included" },
};

static const struct metric hit_metrics[] = {
	{ "limits_hit_total", METRIC_COUNTER, "requests refused for a limit" },
};

static int
init_hits(struct metrics *m)
{
	int rc;

	rc = metrics_init(m, "sluice_", hit_metrics, 1, "limit", LIMIT_COUNT);
	for (unsigned i = 0; i < LIMIT_COUNT && !rc; i++)
		rc = metrics_name(m, i, limit_name((enum limit)i));
	return rc;
}

static int
init_ops(struct metrics *m)
{
	int rc;

	rc = metrics_init(m, "sluice_", op_metrics, COUNT(op_metrics),
			  "verb", OP_VERBS);
	for (unsigned i = 0; i < OP_VERBS && !rc; i++)
		rc = metrics_name(m, i, op_verb_name(i));
	return rc;
}

int
api_init(struct api *api)
{
	int rc;

	api->started = clock_wall(api->clock);
	api->threads = api->threads ? api->threads : 1;
	atomic_store(&api->metric_queues, API_METRIC_QUEUES);
	filejobs_init(&api->filejobs, FILEJOBS_MAX);
	uploads_init(&api->uploads);
	zones_init(&api->zones);
	masks_init(&api->masks);
	rc = refusals_init(api);
	if (!rc)
		rc = ratelimit_init(&api->ratelimit, NULL);
	if (rc) {
		api_release(api);
		return rc;
	}
	api->ops = mem_array(api->threads, sizeof *api->ops);
	api->spares = mem_array(api->threads, sizeof *api->spares);
	rc = api->ops && api->spares ? init_hits(&api->hits) : SLU_ENOMEM;
	if (!rc)
		rc = fanouts_new(&api->fanouts);
	if (!rc)
		rc = known_new(&api->known, api->threads);
	if (!rc)
		rc = workers_new(&api->workers, NULL);
	if (!rc)
		rc = subscribers_new(&api->subscribers);
	for (unsigned i = 0; i < api->threads && !rc; i++)
		rc = init_ops(&api->ops[i]);
	if (rc)
		api_release(api);
	return rc;
}

void
api_release(struct api *api)
{
	for (unsigned i = 0; api->ops && i < api->threads; i++)
		metrics_release(&api->ops[i]);
	mem_free(api->ops);
	api->ops = NULL;
	apicall_release_spares(api);
	metrics_release(&api->hits);
	masks_release(&api->masks);
	refusals_release(api);
	fanouts_free(api->fanouts);
	api->fanouts = NULL;
	known_free(api->known);
	api->known = NULL;
	workers_free(api->workers);
	api->workers = NULL;
	subscribers_free(api->subscribers);
	api->subscribers = NULL;
	zones_release(&api->zones);
}

void
api_count_limit(struct api *api, const struct slu_err *err)
{
	const enum limit limit = limit_by_name(err->limit);

	if (limit != LIMIT_COUNT)
		metrics_add(&api->hits, 0, limit, 1);
}

/* Each thread counts for itself. */
static void
write_ops(const struct api *api, struct buf *out)
{
	struct metrics sum;

	if (init_ops(&sum)) {
		out->failed = true;
	} else {
		for (unsigned i = 0; i < api->threads; i++)
			metrics_merge(&sum, &api->ops[i]);
		metrics_write(&sum, out);
	}
	metrics_release(&sum);
}

static void
write_audit(const struct lines *audit, struct buf *out)
{
	const struct {
		const char *name, *help;
		uint64_t value;
	} rows[] = {
		{ "sluice_audit_records_total", "lines written to audit.file", audit ? lines_written(audit) : 0 },
		{ "sluice_audit_dropped_total", "lines that could not be written there", audit ? lines_dropped(audit) : 0 },
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		buf_printf(out, "# HELP %s %s\n# TYPE %s counter\n%s %" PRIu64 "\n", rows[i].name,
			   rows[i].help, rows[i].name, rows[i].name, rows[i].value);
}

/* What the server refuses by itself is counted there. */
void
api_metrics(struct api *api, struct buf *out)
{
	static const struct {
		enum limit limit;
		enum server_metric row;
	} own[] = {
		{ LIMIT_CONNECTIONS, SERVER_TURNED_AWAY },
		{ LIMIT_MEMORY, SERVER_NO_MEMORY },
		{ LIMIT_BODY, SERVER_TOO_LARGE },
	};

	for (size_t i = 0; api->server && i < COUNT(own); i++)
		metrics_set(&api->hits, 0, own[i].limit, server_metric(api->server, own[i].row));
	write_ops(api, out);
	metrics_write(&api->hits, out);
	refusals_metrics(api, out);
	fanouts_metrics(api->fanouts, out);
	write_audit(api->audit, out);
}

/* The number of messages of the op. */
static uint32_t
messages_of(const struct op *op)
{
	if (op->n_puts || op->n_items)
		return op->n_puts + op->n_items;
	return op->n_rows;
}

void
api_count(struct api *api, unsigned thread, const struct op *op, slu_time took)
{
	struct metrics *const m = &api->ops[thread];

	metrics_add_own(m, OPS_TOTAL, op->verb, 1);
	if (op->rc)
		metrics_add_own(m, OP_ERRORS, op->verb, 1);
	metrics_observe_own(m, OP_SECONDS, op->verb, took);
	metrics_observe_own(m, OP_MESSAGES, op->verb, messages_of(op));
}

int
api_starting(const struct api *api, struct slu_err *err)
{
	const struct broker_progress *const p = api->progress;

	if (!p || !atomic_load(&p->all))
		return slu_fail(err, SLU_ESTARTING, "starting: reading the log");
	return slu_fail(err, SLU_ESTARTING,
			"starting: of shard %u %" PRIu64 " of %" PRIu64 " MiB are read back",
			atomic_load(&p->shard), atomic_load(&p->done) >> 20,
			atomic_load(&p->all) >> 20);
}

void
api_end_line(struct buf *out)
{
	if (out->n > 0 && out->p[out->n - 1] != '\n')
		buf_putc(out, '\n');
}

int64_t
api_retry_seconds(const struct slu_err *err)
{
	const int64_t after = (err->retry_after + SLU_SEC - 1) / SLU_SEC;

	return after > API_RETRY_AFTER_SECONDS ? after : API_RETRY_AFTER_SECONDS;
}
