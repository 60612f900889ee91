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
take_etag(const struct ask *a, char *out, size_t n)
{
	struct slice etag = answer_field(&a->link->http.answer, SLICE("etag"));

	if (etag.n >= 2 && etag.p[0] == '"' && etag.p[etag.n - 1] == '"')
		etag = (struct slice){ etag.p + 1, etag.n - 2 };
	(void)snprintf(out, n, "%.*s", etag.n < n ? (int)etag.n : 0, etag.p ? etag.p : "");
}

static int
take_state(const struct ask *a, struct slu_state *out, struct slu_err *err)
{
	const struct slice version = answer_field(&a->link->http.answer, SLICE("x-key-version"));
	const struct slice body = ask_body(a);

	take_etag(a, out->etag, sizeof out->etag);
	if (version.n > 0 && parse_i64(version, 0, INT64_MAX, &out->version, NULL))
		return slu_fail(err, SLU_EUNKNOWN, "the server's answer has no version");
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
get(struct ask *a, struct slu_state *out, struct slu_err *err)
{
	int rc;

	*out = (struct slu_state){ 0 };
	rc = ask_run(a, err);
	if (!rc)
		rc = take_state(a, out, err);
	ask_release(a);
	return rc;
}

static void
of_lease(struct ask *a, const struct slu_lease *l)
{
	ask_param(a, "namespace", l->space);
	ask_param(a, "key", l->key);
	ask_lease(a, l);
}

int
slu_state_get(struct slu_client *c, const struct slu_lease *l, struct slu_state *out,
	      const struct slu_call *call, struct slu_err *err)
{
	NEED(c, err);
	NEED(l, err);
	NEED(out, err);

	struct ask a;

	ask_init(&a, c, call, "GET", "/v1/get");
	of_lease(&a, l);
	return get(&a, out, err);
}

int
slu_state_peek(struct slu_client *c, const char *key, struct slu_state *out,
	       const struct slu_call *call, struct slu_err *err)
{
	NEED(c, err);
	NEED(key, err);
	NEED(out, err);

	struct ask a;

	ask_init(&a, c, call, "GET", "/v1/get");
	ask_param(&a, "namespace", a.space);
	ask_param(&a, "key", key);
	ask_param(&a, "public", "1");
	return get(&a, out, err);
}

/* --- writing ---------------------------------------------------------------------------- */

struct written {
	int64_t version;
	char etag[72];
};

static int
read_written(const struct ask *a, struct slu_lease *l, struct slu_err *err)
{
	static const struct json_field fields[] = {
		DECODE(json_read_i64, struct written, version, "new_version"),
		DECODE(decode_chars, struct written, etag, "new_state_etag"),
	};
	struct written out = { .version = l->version };
	struct slu_err why;
	struct json r;

	json_init(&r, ask_body(a), JSON_DEPTH);
	json_fields(&r, fields, sizeof fields / sizeof fields[0], JSON_LENIENT, &out);
	if (json_end(&r, &why))
		return slu_fail(err, SLU_EUNKNOWN, "the server's answer is not understood: %s",
				why.text);
	l->version = out.version;
	memcpy(l->etag, out.etag, sizeof l->etag);
	return 0;
}

/* Without a condition the same twice is the same; with one, the first try would be what
 * the second meets. */
static void
only_if(struct ask *a, const struct slu_state_if *only)
{
	char version[24];

	a->repeatable = !only;
	if (!only)
		return;
	(void)snprintf(version, sizeof version, "%" PRId64, only->version); /* fits */
	ask_field(a, "X-If-Version", only->has_version ? version : NULL);
	ask_field(a, "X-If-State-ETag", only->etag);
}

static int
change(struct ask *a, struct slu_lease *l, const struct slu_state_if *given, struct slu_err *err)
{
	struct slu_state_if room;
	const struct slu_state_if *only = SIZED(slu_state_if, given, &room, err);
	int rc = only ? 0 : SLU_EINVAL;

	of_lease(a, l);
	if (!rc) {
		only_if(a, given ? only : NULL);
		rc = ask_run(a, err);
	}
	if (!rc)
		rc = read_written(a, l, err);
	ask_release(a);
	return rc;
}

int
slu_state_put(struct slu_client *c, struct slu_lease *l, const char *text, size_t size,
	      const struct slu_state_if *only, const struct slu_call *call, struct slu_err *err)
{
	NEED(c, err);
	NEED(l, err);
	NEED(text, err);

	struct ask a;

	ask_init(&a, c, call, "POST", "/v1/update");
	buf_put(&a.body, text, size);
	return change(&a, l, only, err);
}

int
slu_state_remove(struct slu_client *c, struct slu_lease *l, const struct slu_state_if *only,
		 const struct slu_call *call, struct slu_err *err)
{
	NEED(c, err);
	NEED(l, err);

	struct ask a;

	ask_init(&a, c, call, "POST", "/v1/remove");
	return change(&a, l, only, err);
}
