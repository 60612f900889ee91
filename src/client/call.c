/*
 * call.c - slu_client_call: a request to any path of the server's API.
 */
#include "client/client.h"

#include "base/mem.h"
#include "base/need.h"
#include "base/sized.h"

static int
take_body(struct client_request *a, struct slu_answer *out, struct slu_err *err)
{
	const struct slice body = client_request_body(a);

	out->status = a->status;
	out->body = mem_alloc(body.n + 1);
	if (!out->body)
		return slu_fail(err, SLU_ENOMEM, "no memory for an answer of %zu bytes", body.n);
	if (body.n > 0)
		memcpy(out->body, body.p, body.n);
	out->body[body.n] = '\0';
	out->size = body.n;
	return 0;
}

/* Paths whose refusal is the answer: the request is not repeated. */
static bool
is_health(const char *path)
{
	return strcmp(path, "/readyz") == 0 || strcmp(path, "/healthz") == 0;
}

int
slu_client_call(struct slu_client *c, const struct slu_request *given, struct slu_answer *out,
		const struct slu_call *call, struct slu_err *err)
{
	NEED(c, err);
	NEED_AS(given, "r", err);
	NEED(out, err);

	struct slu_request room;
	const struct slu_request *r = SIZED(slu_request, given, &room, err);
	struct client_request a;
	int rc, taken = 0;

	*out = (struct slu_answer){ 0 };
	if (!r || need_bytes(r->body, r->size, "body", err))
		return SLU_EINVAL;
	if (!r->method || !r->path)
		return slu_fail(err, SLU_EINVAL, "invalid request; expected a method and a path");
	client_request_init(&a, c, call, r->method, r->path);
	buf_put(&a.body, r->body, r->size);
	a.content_type = r->content_type;
	a.repeatable |= r->repeatable;
	if (is_health(r->path))
		a.patience = -1;
	if (r->lease)
		client_request_lease(&a, r->lease);
	rc = client_request_run(&a, err);
	if (a.status)
		taken = take_body(&a, out, rc ? NULL : err);
	client_request_release(&a);
	return rc ? rc : taken;
}
