/*
 * state.c - the document of a key: get, peek, put, remove.
 */
#include "client/client.h"
#include "client/decode.h"

#include "base/mem.h"
#include "base/need.h"
#include "base/parse.h"
#include "base/sized.h"

#include <inttypes.h>
#include <stdio.h>

/* --- reading ---------------------------------------------------------------------------- */

static void
take_etag(const struct client_request *a, char *out, size_t n)
{
	struct slice etag = answer_field(&a->link->http.answer, SLICE("etag"));

	if (etag.n >= 2 && etag.p[0] == '"' && etag.p[etag.n - 1] == '"')
		etag = (struct slice){ etag.p + 1, etag.n - 2 };
	(void)snprintf(out, n, "%.*s", etag.n < n ? (int)etag.n : 0, etag.p ? etag.p : "");
}

static int
take_state(const struct client_request *a, struct slu_state *out, struct slu_err *err)
{
	const struct slice version = answer_field(&a->link->http.answer, SLICE("x-key-version"));
	const struct slice body = client_request_body(a);

	take_etag(a, out->etag, sizeof out->etag);
	if (version.n > 0 && parse_i64(version, 0, INT64_MAX, &out->version, NULL))
		return slu_fail(err, SLU_EUNKNOWN, "malformed answer: missing version");
	if (a->status == 204)
		return 0;
	out->text = mem_alloc(body.n + 1);
	if (!out->text)
		return slu_fail(err, SLU_ENOMEM, "no memory for a state of %zu bytes", body.n);
	memcpy(out->text, body.p, body.n);
	out->text[body.n] = '\0';
	out->size = body.n;
	return 0;
}

static int
get(struct client_request *a, struct slu_state *out, struct slu_err *err)
{
	int rc;

	*out = (struct slu_state){ 0 };
	rc = client_request_run(a, err);
	if (!rc)
		rc = take_state(a, out, err);
	client_request_release(a);
	return rc;
}

static void
of_lease(struct client_request *a, const struct slu_lease *l)
{
	http_param(&a->path, "namespace", l->space);
	http_param(&a->path, "key", l->key);
	client_request_lease(a, l);
}

int
slu_state_get(struct slu_client *c, const struct slu_lease *l, struct slu_state *out,
	      const struct slu_call *call, struct slu_err *err)
{
	NEED3(c, l, out, err);

	struct client_request a;

	client_request_init(&a, c, call, "GET", "/v1/get");
	of_lease(&a, l);
	return get(&a, out, err);
}

int
slu_state_peek(struct slu_client *c, const char *key, struct slu_state *out,
	       const struct slu_call *call, struct slu_err *err)
{
	NEED3(c, key, out, err);

	struct client_request a;

	client_request_init(&a, c, call, "GET", "/v1/get");
	http_param(&a.path, "namespace", a.space);
	http_param(&a.path, "key", key);
	http_param(&a.path, "public", "1");
	return get(&a, out, err);
}

/* --- writing ---------------------------------------------------------------------------- */

struct written {
	int64_t version;
	char etag[72];
};

static int
read_written(const struct client_request *a, struct slu_lease *l, struct slu_err *err)
{
	static const struct json_field fields[] = {
		JSON_ROW("new_version", json_read_i64, struct written, version),
		JSON_ROW("new_state_etag", json_read_chars, struct written, etag),
	};
	struct written out = { .version = l->version };
	const int rc = decode_object(client_request_body(a), fields, sizeof fields / sizeof fields[0], &out, "answer", err);

	if (rc)
		return rc;
	l->version = out.version;
	memcpy(l->etag, out.etag, sizeof l->etag);
	return 0;
}

/* Without a condition the request is repeatable. With a condition the first try could make the second one
 * fail. */
static void
only_if(struct client_request *a, const struct slu_state_if *only)
{
	char version[24];

	a->repeatable = !only;
	if (!only)
		return;
	(void)snprintf(version, sizeof version, "%" PRId64, only->version); /* fits */
	client_request_field(a, "X-If-Version", only->has_version ? version : NULL);
	client_request_field(a, "X-If-State-ETag", only->etag);
}

static int
change(struct client_request *a, struct slu_lease *l, const struct slu_state_if *given, struct slu_err *err)
{
	struct slu_state_if room;
	const struct slu_state_if *only = SIZED(slu_state_if, given, &room, err);
	int rc = only ? 0 : SLU_EINVAL;

	of_lease(a, l);
	if (!rc) {
		only_if(a, given ? only : NULL);
		rc = client_request_run(a, err);
	}
	if (!rc)
		rc = read_written(a, l, err);
	client_request_release(a);
	return rc;
}

int
slu_state_put(struct slu_client *c, struct slu_lease *l, const char *text, size_t size,
	      const struct slu_state_if *only, const struct slu_call *call, struct slu_err *err)
{
	NEED3(c, l, text, err);

	struct client_request a;

	client_request_init(&a, c, call, "POST", "/v1/update");
	buf_put(&a.body, text, size);
	return change(&a, l, only, err);
}

int
slu_state_remove(struct slu_client *c, struct slu_lease *l, const struct slu_state_if *only,
		 const struct slu_call *call, struct slu_err *err)
{
	NEED2(c, l, err);

	struct client_request a;

	client_request_init(&a, c, call, "POST", "/v1/remove");
	return change(&a, l, only, err);
}
