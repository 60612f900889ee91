#include "cli/lib/query.h"

#include "base/json/json.h"
#include "base/json/json_out.h"
#include "base/json/json_table.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	BODY_MAX = 64 * 1024,
	CURSOR = 32
};

void
query_init(struct cli_query *q, struct slu_client *client)
{
	*q = (struct cli_query){ .client = client };
	buf_init(&q->path, 8 * 1024);
}

void
query_release(struct cli_query *q)
{
	slu_free(q->answer.body);
	buf_release(&q->path);
	*q = (struct cli_query){ 0 };
}

void
query_path(struct cli_query *q, const char *path)
{
	buf_clear(&q->path);
	buf_puts(&q->path, path);
}

void
query_queue(struct cli_query *q, const char *path, const char *space, const char *queue)
{
	query_path(q, path);
	http_param(&q->path, "namespace", space);
	http_param(&q->path, "queue", queue);
}

static int
call(struct cli_query *q, const char *method, struct slice body, struct slice *out,
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
		return slu_fail(err, SLU_ETOOBIG, "%.40s...: request too long", r.path);
	rc = slu_client_call(q->client, &r, &q->answer,
			     &(struct slu_call){ SLU_OPTIONS_INIT(struct slu_call), .timeout = q->timeout, .cancel_fd = q->cancel_fd },
			     err);
	*out = (struct slice){ q->answer.body, q->answer.size };
	return rc;
}

int
query_get(struct cli_query *q, struct slice *out, struct slu_err *err)
{
	return call(q, "GET", (struct slice){ NULL, 0 }, out, err);
}

int
query_post(struct cli_query *q, struct slice body, struct slice *out, struct slu_err *err)
{
	return call(q, "POST", body, out, err);
}

/* A DELETE is not repeated: the second one would answer that the queue does not exist. */
int
query_delete(struct cli_query *q, struct slice *out, struct slu_err *err)
{
	return call(q, "DELETE", (struct slice){ NULL, 0 }, out, err);
}

int
query_put(struct cli_query *q, struct slice body, struct slice *out, struct slu_err *err)
{
	return call(q, "PUT", body, out, err);
}

static int
send_texts(struct cli_query *q, const char *method, const char *const *pairs, struct slice *out,
	   struct slu_err *err)
{
	struct json_out w;
	struct buf body;
	int rc;

	buf_init(&body, BODY_MAX);
	json_out_open(&w, &body);
	for (; *pairs; pairs += 2)
		json_out_str(&w, pairs[0], slice_of(pairs[1]));
	json_out_close(&w);
	rc = call(q, method, buf_slice(&body), out, err);
	buf_release(&body);
	return rc;
}

int
query_post_texts(struct cli_query *q, const char *const *pairs, struct slice *out, struct slu_err *err)
{
	return send_texts(q, "POST", pairs, out, err);
}

int
query_put_texts(struct cli_query *q, const char *const *pairs, struct slice *out, struct slu_err *err)
{
	return send_texts(q, "PUT", pairs, out, err);
}

int
query_read(struct slice answer, const struct json_field *fields, size_t n, void *out,
	   struct slu_err *err)
{
	struct json r;

	json_init(&r, answer, JSON_DEPTH);
	json_fields(&r, fields, n, JSON_LENIENT, out);
	return json_end(&r, err) ? SLU_EUNKNOWN : 0;
}

int
query_read_u64(struct slice answer, const char *name, uint64_t *out, struct slu_err *err)
{
	const struct json_field field = {
		.name = slice_of(name),
		.read = json_read_u64,
		.size = sizeof *out,
	};

	*out = 0;
	return query_read(answer, &field, 1, out, err);
}

static int
read_page(struct slice page, const char *array, char cursor[static CURSOR], struct missing *missing,
	  int (*fn)(void *arg, struct json *in, struct slu_err *err), void *arg, struct slu_err *err)
{
	struct json_str name;
	struct json in;
	int rc = 0;

	cursor[0] = '\0';
	json_init(&in, page, JSON_DEPTH);
	json_object(&in);
	while (!rc && json_member(&in, &name)) {
		if (json_str_is(&name, slice_of(array))) {
			json_array(&in);
			while (!rc && json_element(&in))
				rc = fn(arg, &in, err);
		} else if (json_str_is(&name, SLICE("missing"))) {
			missing_read(missing, &in);
		} else if (json_str_is(&name, SLICE("cursor"))) {
			const struct slice c = json_text(&in);

			(void)snprintf(cursor, CURSOR, "%.*s", (int)c.n, c.p);
		}
	}
	if (rc)
		return rc;
	return json_end(&in, err) ? SLU_EUNKNOWN : 0;
}

int
query_each(struct cli_query *q, const struct query_list *list,
	   int (*fn)(void *arg, struct json *in, struct slu_err *err), void *arg, struct slu_err *err)
{
	char cursor[CURSOR] = "";
	unsigned pages = 0;
	struct slice page = { 0 };
	int rc;

	q->missing = (struct missing){ 0 };
	do {
		query_queue(q, list->path, list->space, list->queue);
		http_param(&q->path, "limit", "1000");
		http_param(&q->path, "cursor", cursor[0] ? cursor : NULL);
		rc = query_get(q, &page, err);
		if (!rc)
			rc = read_page(page, list->array, cursor, &q->missing, fn, arg, err);
	} while (!rc && cursor[0] && ++pages != list->pages);
	return rc;
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
