#include "api/api.h"

#include "api/ask.h"
#include "api/gather.h"
#include "api/limits.h"
#include "api/refusals.h"
#include "base/limit.h"
#include "base/lines.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "core/names.h"
#include "engine/op.h"
#include "http/call.h"
#include "http/server.h"

#include <inttypes.h>
#include <stdio.h>

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
	[OP_SECONDS] = { "op_seconds", METRIC_HISTOGRAM,
			 "time from posting an operation to its answer, waiting included" },
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

	rc = metrics_init(m, "sluice_", op_metrics, sizeof op_metrics / sizeof op_metrics[0],
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
	lane_init(&api->lane, LANE_MAX);
	uploads_init(&api->uploads);
	rc = refusals_init(api);
	if (!rc)
		rc = gate_init(&api->gate, NULL);
	if (rc) {
		api_release(api);
		return rc;
	}
	api->ops = mem_array(api->threads, sizeof *api->ops);
	api->spares = mem_array(api->threads, sizeof *api->spares);
	rc = api->ops && api->spares ? init_hits(&api->hits) : SLU_ENOMEM;
	if (!rc)
		rc = gathers_new(&api->gathers);
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
	ask_release_spares(api);
	metrics_release(&api->hits);
	refusals_release(api);
	gathers_free(api->gathers);
	api->gathers = NULL;
}

void
api_count_limit(struct api *api, const struct slu_err *err)
{
	const enum limit limit = limit_by_name(err->limit);

	if (limit != LIMIT_COUNT)
		metrics_add(&api->hits, 0, limit, 1);
}

/* Each thread has counted for itself. */
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
		{ "sluice_audit_records_total", "lines written to audit.file",
		  audit ? lines_written(audit) : 0 },
		{ "sluice_audit_dropped_total", "lines that could not be written there",
		  audit ? lines_dropped(audit) : 0 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
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

	for (size_t i = 0; api->server && i < sizeof own / sizeof own[0]; i++)
		metrics_set(&api->hits, 0, own[i].limit, server_metric(api->server, own[i].row));
	write_ops(api, out);
	metrics_write(&api->hits, out);
	refusals_metrics(api, out);
	gathers_metrics(api->gathers, out);
	write_audit(api->audit, out);
}

/* How many messages it was about. */
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
		return slu_fail(err, SLU_ESTARTING, "starting: reads back what is stored");
	return slu_fail(err, SLU_ESTARTING,
			"starting: of shard %u %" PRIu64 " of %" PRIu64 " MiB are read back",
			atomic_load(&p->shard), atomic_load(&p->done) >> 20,
			atomic_load(&p->all) >> 20);
}

void
api_write_error(struct json_out *w, int rc, const char *text)
{
	const struct slu_err_row *const row = slu_err_row(rc);

	json_out_str(w, "error", slice_of(row->flat_name));
	json_out_str(w, "message", slice_of(text && *text ? text : row->text));
}

void
api_write_err(struct json_out *w, const struct slu_err *err)
{
	api_write_error(w, (int)err->code, err->text);
	if (err->limit)
		json_out_str(w, "limit", slice_of(err->limit));
}

void
api_end_line(struct buf *out)
{
	if (out->n > 0 && out->p[out->n - 1] != '\n')
		buf_putc(out, '\n');
}

void
api_add_retry(struct call *c, const struct slu_err *err)
{
	const int status = slu_err_row((int)err->code)->flat_status;
	const slu_time after = (err->retry_after + SLU_SEC - 1) / SLU_SEC;
	char text[24];

	if (status != 429 && status != 503)
		return;
	(void)snprintf(text, sizeof text, "%" PRId64,
		       after > API_RETRY_AFTER_SECONDS ? after : API_RETRY_AFTER_SECONDS);
	(void)call_add(c, "Retry-After", slice_of(text)); /* better without */
}

void
api_refuse_err(struct call *c, const struct slu_err *err, int64_t index)
{
	const unsigned status = (unsigned)slu_err_row((int)err->code)->flat_status;
	struct json_out w;

	if (c->route->dialect) {
		c->route->dialect->refuse(c, err, index);
		return;
	}
	api_add_retry(c, err);
	buf_clear(&c->out);
	json_out_init(&w, &c->out);
	json_out_object(&w, NULL);
	api_write_err(&w, err);
	if (index >= 0)
		json_out_i64(&w, "index", index);
	json_out_close(&w);
	api_end_line(&c->out);
	call_answer(c, status, api_json, &c->out);
}

void
api_refuse(struct call *c, int rc, const char *text, int64_t index)
{
	struct slu_err err;

	(void)slu_fail(&err, (enum slu_code)rc, "%s", text ? text : "");
	api_refuse_err(c, &err, index);
}

static void
echo(struct call *c, const char *asked, const char *name)
{
	const struct slice value = call_field(c, asked);

	if (value.n > 0 && !correlation_check(value, "it", NULL))
		(void)call_add(c, name, value); /* the answer is fine without */
}

void
api_echo(struct call *c, const struct api *api)
{
	if (c->route->dialect) {
		c->route->dialect->greet(c, api);
		return;
	}
	echo(c, "x-request-id", "X-Request-Id");
	echo(c, "x-correlation-id", "X-Correlation-Id");
}

/* Whose clients look for a `detail`. */
static bool
is_lockd(struct slice path)
{
	const struct slice all = SLICE("/v1/"), ours = SLICE("/v1/admin/");

	return path.n > all.n && memcmp(path.p, all.p, all.n) == 0 &&
	       (path.n < ours.n || memcmp(path.p, ours.p, ours.n) != 0);
}

static const char *
name_in(int code, bool lockd)
{
	const struct slu_err_row *const row = slu_err_row(code);

	return lockd ? row->lockd_name : row->flat_name;
}

/* The row of the table that stands for a status. */
static const char *
name_of_status(unsigned status, bool lockd)
{
	static const enum slu_code codes[] = { SLU_ENOTFOUND, SLU_ETIMEOUT, SLU_ETOOBIG,
					       SLU_EBUSY, SLU_EDOWN };

	for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
		if (slu_err_row(codes[i])->flat_status == (int)status)
			return name_in(codes[i], lockd && status != 408);
	return name_in(SLU_EINVAL, lockd);
}

/* The limit that a refusal of the server is about, or LIMIT_COUNT. */
static enum limit
limit_of(unsigned status, const char *reason)
{
	return status == 413 ? LIMIT_BODY : limit_by_name(reason);
}

/* A body that is too long has a name of its own in the lockd dialect. NULL: not there. */
static const char *
name_of_body(struct slice path)
{
	static const struct {
		struct slice path;
		const char *name;
	} rows[] = {
		{ { "/v1/update", 10 }, "document_too_large" },
		{ { "/v1/mutate", 10 }, "document_too_large" },
		{ { "/v1/attachments", 15 }, "attachment_too_large" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (slice_eq(path, rows[i].path))
			return rows[i].name;
	return NULL;
}

/* A request has waited for the start for too long: S10 of http/server.h. */
static bool
is_starting(const char *reason)
{
	return strcmp(reason, slu_err_row(SLU_ESTARTING)->flat_name) == 0;
}

/* What a refusal that the server gives by itself is called. */
static const char *
name_of_reason(unsigned status, const char *reason, bool busy, struct slice path)
{
	if (status == 413 && name_of_body(path))
		return name_of_body(path);
	if (busy)
		return name_in(SLU_EBUSY, is_lockd(path));
	if (status == 405 && is_lockd(path))
		return reason;
	if (strcmp(reason, slu_err_row(SLU_ENOMEM)->flat_name) == 0 || is_starting(reason))
		return reason;
	return name_of_status(status, is_lockd(path));
}

/* The server itself has no memory for a request, or others hold what it may use. */
static void
note_memory(struct api *api, const char *reason)
{
	if (strcmp(reason, slu_err_row(SLU_ENOMEM)->flat_name) == 0)
		refusals_request(api, SLU_ENOMEM, NULL);
	else if (limit_by_name(reason) == LIMIT_MEMORY)
		refusals_request(api, SLU_ENOMEM, "limits.memory");
}

void
api_describe(struct buf *out, unsigned status, const char *reason, struct slice method,
	     struct slice path, void *arg)
{
	const enum limit limit = limit_of(status, reason);
	const bool busy = limit != LIMIT_COUNT && status == 503;
	const bool lockd = is_lockd(path), no_route = status == 404 || status == 405;
	struct json_out w;
	struct slu_err err;
	char text[320];
	int n = snprintf(text, sizeof text, "%s: %s", http_reason(status), reason);

	note_memory(arg, reason);
	if (is_starting(reason)) {
		(void)api_starting(arg, &err);
		(void)snprintf(text, sizeof text, "%s", err.text);
	}
	if (no_route)
		(void)snprintf(text + n, sizeof text - (size_t)n, ": %.*s %.*s", /* may be cut */
			       (int)method.n, method.p, (int)path.n, path.p);
	json_out_init(&w, out);
	json_out_object(&w, NULL);
	json_out_str(&w, "error", slice_of(name_of_reason(status, reason, busy, path)));
	json_out_str(&w, lockd ? "detail" : "message", slice_of(text));
	if (limit != LIMIT_COUNT && !lockd)
		json_out_str(&w, "limit", slice_of(limit_name(limit)));
	if (no_route && !lockd)
		json_out_str(&w, "method", method);
	if (path.n > 0 && !lockd)
		json_out_str(&w, "path", path);
	json_out_close(&w);
	api_end_line(out);
}
