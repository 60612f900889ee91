#include "api/api.h"

#include "api/limits.h"
#include "core/names.h"
#include "engine/op.h"
#include "http/call.h"

#include <stdio.h>

const char api_json[] = "application/json";

enum {
	OPS_TOTAL,
	OP_ERRORS,
	OP_SECONDS
};

static const struct metric op_metrics[] = {
	[OPS_TOTAL] = { "ops_total", METRIC_COUNTER, "operations answered" },
	[OP_ERRORS] = { "op_errors_total", METRIC_COUNTER, "operations answered with an error" },
	[OP_SECONDS] = { "op_seconds", METRIC_HISTOGRAM,
			 "time from posting an operation to its answer, waiting included" },
};

int
api_init(struct api *api)
{
	int rc;

	api->started = clock_wall(api->clock);
	rc = metrics_init(&api->ops, "sluice_", op_metrics,
			  sizeof op_metrics / sizeof op_metrics[0], "verb", OP_VERBS);
	for (unsigned i = 0; i < OP_VERBS && !rc; i++)
		rc = metrics_name(&api->ops, i, op_verb_name(i));
	if (rc)
		metrics_release(&api->ops);
	return rc;
}

void
api_release(struct api *api)
{
	metrics_release(&api->ops);
}

void
api_count(struct api *api, const struct op *op, slu_time took)
{
	metrics_add(&api->ops, OPS_TOTAL, op->verb, 1);
	if (op->rc)
		metrics_add(&api->ops, OP_ERRORS, op->verb, 1);
	metrics_observe(&api->ops, OP_SECONDS, op->verb, took);
}

void
api_write_error(struct json_out *w, int rc, const char *text)
{
	const struct slu_err_row *const row = slu_err_row(rc);

	json_out_str(w, "error", slice_of(row->flat_name));
	json_out_str(w, "message", slice_of(text && *text ? text : row->text));
}

void
api_refuse(struct call *c, int rc, const char *text, int64_t index)
{
	const unsigned status = (unsigned)slu_err_row(rc)->flat_status;
	struct json_out w;
	char after[16];

	if (status == 429 || status == 503) {
		(void)snprintf(after, sizeof after, "%d", API_RETRY_AFTER_SECONDS);
		(void)call_add(c, "Retry-After", slice_of(after)); /* better without */
	}
	buf_clear(&c->out);
	json_out_init(&w, &c->out);
	json_out_object(&w, NULL);
	api_write_error(&w, rc, text);
	if (index >= 0)
		json_out_i64(&w, "index", index);
	json_out_close(&w);
	call_answer(c, status, api_json, &c->out);
}

static void
echo(struct call *c, const char *asked, const char *name)
{
	const struct slice value = call_field(c, asked);

	if (value.n > 0 && !correlation_check(value, "it", NULL))
		(void)call_add(c, name, value); /* the answer is fine without */
}

void
api_echo(struct call *c)
{
	echo(c, "x-request-id", "X-Request-Id");
	echo(c, "x-correlation-id", "X-Correlation-Id");
}

/* The row of the table that stands for a status. */
static const char *
name_of_status(unsigned status)
{
	static const enum slu_code codes[] = { SLU_ENOTFOUND, SLU_ETIMEOUT, SLU_ETOOBIG,
					       SLU_EBUSY, SLU_EDOWN };

	for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
		if (slu_err_row(codes[i])->flat_status == (int)status)
			return slu_err_row(codes[i])->flat_name;
	return slu_err_row(SLU_EINVAL)->flat_name;
}

void
api_describe(struct buf *out, unsigned status, const char *reason, struct slice path,
	     void *arg)
{
	struct json_out w;
	char text[128];

	(void)arg;
	(void)snprintf(text, sizeof text, "%s: %s", http_reason(status), reason); /* may be cut */
	json_out_init(&w, out);
	json_out_object(&w, NULL);
	json_out_str(&w, "error", slice_of(name_of_status(status)));
	json_out_str(&w, "message", slice_of(text));
	if (path.n > 0)
		json_out_str(&w, "path", path);
	json_out_close(&w);
}
