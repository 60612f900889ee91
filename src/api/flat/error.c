#include "api/flat/error.h"

#include "api/api.h"
#include "core/names.h"
#include "http/call.h"

#include <inttypes.h>
#include <stdio.h>

void
flat_write_error(struct json_out *w, int rc, const char *text)
{
	const struct slu_err_row *const row = slu_err_row(rc);

	json_out_str(w, "error", slice_of(row->flat_name));
	json_out_str(w, "message", slice_of(text && *text ? text : row->text));
}

void
flat_write_err(struct json_out *w, const struct slu_err *err)
{
	flat_write_error(w, (int)err->code, err->text);
	if (err->limit)
		json_out_str(w, "limit", slice_of(err->limit));
	if (err->owner)
		json_out_str(w, "owner", slice_of(err->owner));
}

void
flat_add_retry(struct call *c, const struct slu_err *err)
{
	const int status = slu_err_row((int)err->code)->flat_status;
	char text[24];

	if (status != 429 && status != 503)
		return;
	(void)snprintf(text, sizeof text, "%" PRId64, api_retry_seconds(err));
	(void)call_add(c, "Retry-After", slice_of(text)); /* the answer is fine without */
}

void
flat_refuse(struct call *c, const struct slu_err *err, int64_t index)
{
	const unsigned status = (unsigned)slu_err_row((int)err->code)->flat_status;
	struct json_out w;

	flat_add_retry(c, err);
	buf_clear(&c->x.out);
	json_out_open(&w, &c->x.out);
	flat_write_err(&w, err);
	if (index >= 0)
		json_out_i64(&w, "index", index);
	json_out_close(&w);
	api_end_line(&c->x.out);
	call_answer(c, status, api_json, &c->x.out);
}

static void
repeat(struct call *c, const char *asked, const char *name)
{
	const struct slice value = call_field(c, asked);

	if (value.n > 0 && !correlation_check(value, "it", NULL))
		(void)call_add(c, name, value); /* the answer is fine without */
}

void
flat_begin(struct call *c, const struct api *api)
{
	(void)api;
	repeat(c, "x-request-id", "X-Request-Id");
	repeat(c, "x-correlation-id", "X-Correlation-Id");
}

void
flat_describe(struct buf *out, const struct dialect_refusal *r)
{
	struct json_out w;

	json_out_open(&w, out);
	flat_write_error(&w, r->code, r->text);
	if (r->limit != LIMIT_COUNT)
		json_out_str(&w, "limit", slice_of(limit_name(r->limit)));
	if (r->status == 404 || r->status == 405)
		json_out_str(&w, "method", r->method);
	if (r->path.n > 0)
		json_out_str(&w, "path", r->path);
	json_out_close(&w);
	api_end_line(out);
}
