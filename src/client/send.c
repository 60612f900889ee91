/*
 * send.c - sends a message of any size: a multipart body of `meta` and `payload`. The payload is read
 * and sent piece by piece.
 */
#include "client/client.h"
#include "client/decode.h"
#include "client/terms.h"

#include "base/json/json_out.h"
#include "base/need.h"
#include "base/sized.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>

enum {
	BOUNDARY_TEXT = 48,
	SMALL = 256 * 1024 /* bytes of a payload that are sent with the head */
};

struct sending {
	const struct slu_send *what;
	char boundary[BOUNDARY_TEXT];
	char type[96];
	char tail[BOUNDARY_TEXT + 12];
	size_t n_tail;

	/* The state of the source. */
	size_t at;      /* position in the payload */
	size_t tail_at; /* position in the tail */
	bool ended;     /* the payload was sent */
};

/* Makes a random boundary, which no payload contains. */
static int
make_boundary(struct sending *s, struct slu_err *err)
{
	uint64_t random[2];

	if (getrandom(random, sizeof random, 0) != sizeof random)
		return slu_fail(err, SLU_EFAILED, "cannot get random numbers: %m");
	(void)snprintf(s->boundary, sizeof s->boundary, "sluice-%016" PRIx64 "%016" PRIx64,
		       random[0], random[1]);
	(void)snprintf(s->type, sizeof s->type, "multipart/related; boundary=%s", s->boundary);
	s->n_tail = (size_t)snprintf(s->tail, sizeof s->tail, "\r\n--%s--\r\n", s->boundary);
	return 0;
}

static void
out_seconds(struct json_out *w, const char *name, slu_time t)
{
	if (t > 0)
		json_out_i64(w, name, seconds_up(t));
}

static void
out_text(struct json_out *w, const char *name, const char *text)
{
	if (text)
		json_out_str(w, name, slice_of(text));
}

static void
write_terms(struct json_out *w, const struct slu_send *what)
{
	out_text(w, "priority", what->priority);
	out_text(w, "key", what->key);
	out_text(w, "share", what->share);
	out_text(w, "kind", what->kind);
	out_text(w, "idempotency_key", what->idempotency_key);
	out_text(w, "traceparent", what->traceparent);
	terms_out_time(w, "keep_result", what->keep_result);
	terms_out_time(w, "lease", what->lease);
	terms_out_time(w, "max_runtime", what->max_runtime);
	if (what->deadline)
		json_out_time(w, "deadline", what->deadline);
	terms_out_retry(w, what->retry);
	terms_out_unique(w, what->unique_key, what->unique_until, what->unique_for, false);
}

static void
write_head(struct client_request *a, const struct sending *s, const char *queue)
{
	const struct slu_send *const what = s->what;
	struct buf *const b = &a->body;
	struct json_out w;

	buf_printf(b, "--%s\r\nContent-Type: application/json\r\n"
		      "Content-Disposition: form-data; name=\"meta\"\r\n\r\n",
		   s->boundary);
	json_out_open(&w, b);
	json_out_str(&w, "namespace", slice_of(a->space));
	json_out_str(&w, "queue", slice_of(queue));
	out_seconds(&w, "delay_seconds", what->delay);
	out_seconds(&w, "visibility_timeout_seconds", what->visibility);
	out_seconds(&w, "ttl_seconds", what->ttl);
	if (what->max_attempts)
		json_out_u64(&w, "max_attempts", what->max_attempts);
	if (what->attributes)
		json_out_raw(&w, "attributes", slice_of(what->attributes));
	out_text(&w, "payload_content_type", what->content_type);
	write_terms(&w, what);
	json_out_finish(&w);
	buf_printf(b, "\r\n--%s\r\nContent-Type: application/octet-stream\r\n"
		      "Content-Disposition: form-data; name=\"payload\"\r\n\r\n",
		   s->boundary);
}

static int64_t
give(const char *from, size_t n, size_t *at, void *p, size_t size)
{
	const size_t k = n - *at < size ? n - *at : size;

	memcpy(p, from + *at, k);
	*at += k;
	return (int64_t)k;
}

static int64_t
read_body(void *arg, void *p, size_t size)
{
	struct sending *const s = arg;
	const struct slu_send *const what = s->what;
	int64_t n = 0;

	if (!s->ended && what->source)
		n = what->source(what->source_arg, p, size);
	else if (!s->ended)
		n = give(what->payload, what->size, &s->at, p, size);
	s->ended |= n == 0;
	return s->ended ? give(s->tail, s->n_tail, &s->tail_at, p, size) : n;
}

static void
rewind_body(void *arg)
{
	struct sending *const s = arg;

	s->at = s->tail_at = 0;
	s->ended = false;
}

/* Puts a small payload into the body; a larger one follows it. */
static void
add_payload(struct client_request *a, struct sending *s)
{
	const struct slu_send *const what = s->what;

	if (!what->source && what->size <= SMALL) {
		buf_put(&a->body, what->payload, what->size);
		buf_put(&a->body, s->tail, s->n_tail);
		return;
	}
	a->source = read_body;
	a->source_arg = s;
	a->rewind = what->source ? NULL : rewind_body;
}

static int
read_sent(const struct client_request *a, struct slu_sent *out, struct slu_err *err)
{
	static const struct json_field fields[] = {
		JSON_ROW("message_id", json_read_chars, struct slu_sent, id),
		JSON_FIELD(chars, struct slu_sent, correlation_id),
		JSON_FIELD(bool, struct slu_sent, duplicate),
	};

	*out = (struct slu_sent){ 0 };
	return decode_object(client_request_body(a), fields, sizeof fields / sizeof fields[0], out, "answer to enqueue", err);
}

static int
check_times(const struct slu_send *s, struct slu_err *err)
{
	const struct {
		const char *name;
		slu_time value;
	} times[] = {
		{ "delay", s->delay },
		{ "ttl", s->ttl },
		{ "keep_result", s->keep_result },
		{ "max_runtime", s->max_runtime },
		{ "deadline", s->deadline },
		{ "unique_for", s->unique_for },
	};
	int rc = need_lease(s->visibility, "visibility", err);

	rc = rc ? rc : need_lease(s->lease, "lease", err);
	for (size_t i = 0; i < sizeof times / sizeof times[0] && !rc; i++)
		rc = need_time(times[i].value, times[i].name, err);
	return rc ? rc : terms_check_retry(s->retry, err);
}

int
slu_client_send(struct slu_client *c, const char *queue, const struct slu_send *given,
		struct slu_sent *out, const struct slu_call *call, struct slu_err *err)
{
	NEED2(c, queue, err);
	NEED_AS(given, "s", err);

	struct slu_send room;
	const struct slu_send *what = SIZED(slu_send, given, &room, err);
	struct sending s = { .what = what };
	struct slu_sent unused;
	struct client_request a;
	int rc = 0;

	if (!what || check_times(what, err) || need_bytes(what->payload, what->size, "payload", err))
		return SLU_EINVAL;
	if (what->attributes)
		rc = json_check(slice_of(what->attributes), JSON_OBJECT, JSON_DEPTH - 2,
				"attributes", err);
	if (!rc)
		rc = make_boundary(&s, err);
	if (rc)
		return rc;
	client_request_init(&a, c, call, "POST", "/v1/queue/enqueue");
	a.begins = true;
	a.repeatable = what->idempotency_key != NULL;
	a.content_type = s.type;
	client_request_field(&a, "X-Correlation-Id", what->correlation_id);
	write_head(&a, &s, queue);
	add_payload(&a, &s);
	if (a.source && !a.has_timeout)
		a.until.deadline = SLU_NEVER; /* a large payload has no deadline */
	rc = client_request_run(&a, err);
	if (!rc)
		rc = read_sent(&a, out ? out : &unused, err);
	client_request_release(&a);
	return rc;
}
