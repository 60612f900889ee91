#include "cli/query.h"

#include "client/http.h"

#include <inttypes.h>
#include <stdio.h>

void
query_init(struct query *q, struct slu_client *client)
{
	*q = (struct query){ .client = client };
	buf_init(&q->path, 8 * 1024);
}

void
query_release(struct query *q)
{
	slu_free(q->answer.body);
	buf_release(&q->path);
	*q = (struct query){ 0 };
}

void
query_path(struct query *q, const char *path)
{
	buf_clear(&q->path);
	buf_puts(&q->path, path);
}

void
query_param(struct query *q, const char *name, const char *value)
{
	if (!value)
		return;
	buf_putc(&q->path, strchr(buf_str(&q->path), '?') ? '&' : '?');
	buf_printf(&q->path, "%s=", name);
	http_encode(&q->path, slice_of(value));
}

void
query_param_u64(struct query *q, const char *name, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof text, "%" PRIu64, value); /* fits */
	query_param(q, name, text);
}

static int
call(struct query *q, const char *method, struct slice body, struct slice *out,
     struct slu_err *err)
{
	const struct slu_request r = {
		SLU_OPTIONS_INIT(struct slu_request),
		.method = method,
		.path = buf_str(&q->path),
		.body = body.p,
		.size = body.n,
		.repeatable = strcmp(method, "GET") == 0 || strcmp(method, "PUT") == 0,
	};
	int rc;

	slu_free(q->answer.body);
	q->answer = (struct slu_answer){ 0 };
	if (q->path.failed)
		return slu_fail(err, SLU_ETOOBIG, "%.40s: too long for a request", r.path);
	rc = slu_client_call(q->client, &r, &q->answer,
			     &(struct slu_call){ SLU_OPTIONS_INIT(struct slu_call), .timeout = q->timeout, .cancel_fd = q->cancel_fd },
			     err);
	*out = (struct slice){ q->answer.body, q->answer.size };
	return rc;
}

int
query_get(struct query *q, struct slice *out, struct slu_err *err)
{
	return call(q, "GET", (struct slice){ NULL, 0 }, out, err);
}

int
query_post(struct query *q, struct slice body, struct slice *out, struct slu_err *err)
{
	return call(q, "POST", body, out, err);
}

/* When it is repeated, what it has deleted is not found: that says something else. */
int
query_delete(struct query *q, struct slice *out, struct slu_err *err)
{
	return call(q, "DELETE", (struct slice){ NULL, 0 }, out, err);
}

int
query_put(struct query *q, struct slice body, struct slice *out, struct slu_err *err)
{
	return call(q, "PUT", body, out, err);
}

struct slice
query_value(struct slice answer)
{
	const bool ended = answer.n > 0 && answer.p[answer.n - 1] == '\n';

	return (struct slice){ answer.p, answer.n - ended };
}

void
query_print(struct slice answer)
{
	const struct slice value = query_value(answer);

	printf("%.*s\n", (int)value.n, value.p);
}
