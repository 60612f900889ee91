#include "client/remote.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/json_out.h"
#include "base/json_table.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>

void
remote_init(struct remote *rem, const struct address *address, slu_time timeout, int stop_fd)
{
	*rem = (struct remote){ .timeout = timeout, .stop_fd = stop_fd };
	http_init(&rem->http, address);
	buf_init(&rem->path, 8 * 1024);
	buf_init(&rem->body, 2 * REMOTE_BODY_MAX);
}

void
remote_release(struct remote *rem)
{
	http_release(&rem->http);
	buf_release(&rem->path);
	buf_release(&rem->body);
}

/* --- calls ---------------------------------------------------------------------- */

/* The code whose name on the flat API is this, or one that fits the status. */
static int
code_of(struct slice name, unsigned status)
{
	for (int code = SLU_CODE_BASE + 1; code < SLU_CODE_END; code++)
		if (slice_eq(name, slice_of(slu_err_row(code)->flat_name)))
			return code;
	for (int code = SLU_CODE_BASE + 1; code < SLU_CODE_END; code++)
		if (slu_err_row(code)->flat_status == (int)status)
			return code;
	return status >= 500 ? SLU_EDOWN : SLU_EINVAL;
}

struct refusal {
	struct slice error, message;
};

/* What to do about it, where the server cannot know. */
static const char *
advice(const struct remote *rem, int code)
{
	const bool has_token = rem->http.address.token != NULL;

	if (code == SLU_EAUTH && has_token)
		return "; the token that was sent is no good here: get another";
	if (code == SLU_EAUTH)
		return "; set SLUICE_TOKEN or say --token-file (`sluice token` makes one)";
	if (code == SLU_EFORBIDDEN && has_token)
		return "; the token that was sent does not allow it";
	return "";
}

static int
refused(struct remote *rem, struct slu_err *err)
{
	static const struct json_field fields[] = {
		JSON_FIELD(text, struct refusal, error),
		JSON_FIELD(text, struct refusal, message),
	};
	const struct slice body = buf_slice(&rem->http.answer.body);
	struct refusal why = { 0 };
	struct json r;
	char room[1024];
	int code;

	json_init(&r, body, JSON_DEPTH);
	json_room(&r, room, sizeof room);
	json_fields(&r, fields, sizeof fields / sizeof fields[0], JSON_LENIENT, &why);
	if (json_end(&r, NULL))
		why = (struct refusal){ 0 };
	code = code_of(why.error, rem->http.answer.status);
	if (why.message.n == 0)
		return slu_fail(err, code, "the server answered with status %u",
				rem->http.answer.status);
	return slu_fail(err, code, "%.*s%s", (int)why.message.n, why.message.p,
			advice(rem, code));
}

static int
call(struct remote *rem, struct http_call *c, slu_time wait, struct slu_err *err)
{
	const slu_time now = clock_mono(&clock_system);
	int rc;

	if (rem->path.failed || rem->body.failed)
		return slu_fail(err, SLU_ETOOBIG, "%.40s: the request would be too large",
				buf_str(&rem->path));
	c->path = buf_str(&rem->path);
	c->until = (struct patience){ time_add(now, time_add(wait, rem->timeout)), rem->stop_fd };
	rc = http_call(&rem->http, c, err);
	if (!rc && rem->http.answer.status >= 300)
		rc = refused(rem, err);
	return rc;
}

void
remote_path(struct remote *rem, const char *path)
{
	buf_clear(&rem->path);
	buf_puts(&rem->path, path);
}

void
remote_param(struct remote *rem, const char *name, const char *value)
{
	if (!value)
		return;
	buf_putc(&rem->path, strchr(buf_str(&rem->path), '?') ? '&' : '?');
	buf_printf(&rem->path, "%s=", name);
	http_encode(&rem->path, slice_of(value));
}

void
remote_param_u64(struct remote *rem, const char *name, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof text, "%" PRIu64, value); /* fits */
	remote_param(rem, name, text);
}

static void
param_time(struct remote *rem, const char *name, slu_time t)
{
	char text[DURATION_TEXT];

	if (t > 0)
		remote_param(rem, name, format_duration(t, text, sizeof text));
}

int
remote_get(struct remote *rem, struct slice *out, struct slu_err *err)
{
	struct http_call c = { .method = "GET", .repeatable = true };
	const int rc = call(rem, &c, 0, err);

	*out = buf_slice(&rem->http.answer.body);
	return rc;
}

int
remote_post(struct remote *rem, struct slice body, struct slice *out, struct slu_err *err)
{
	struct http_call c = { .method = "POST", .body = body };
	const int rc = call(rem, &c, 0, err);

	*out = buf_slice(&rem->http.answer.body);
	return rc;
}

int
remote_put_to(struct remote *rem, struct slice body, struct slice *out, struct slu_err *err)
{
	struct http_call c = { .method = "PUT", .body = body, .repeatable = true };
	const int rc = call(rem, &c, 0, err);

	*out = buf_slice(&rem->http.answer.body);
	return rc;
}

/* --- enqueue -------------------------------------------------------------------- */

static void
out_text(struct json_out *w, const char *name, const char *text)
{
	if (text)
		json_out_str(w, name, slice_of(text));
}

static void
out_time(struct json_out *w, const char *name, slu_time t)
{
	char text[DURATION_TEXT];

	if (t > 0)
		json_out_str(w, name, slice_of(format_duration(t, text, sizeof text)));
}

static void
out_payload(struct json_out *w, const struct remote_put *p)
{
	if (p->is_json)
		json_out_raw(w, "json", p->payload);
	else if (p->payload.n > 0 && utf8_valid(p->payload) &&
		 !memchr(p->payload.p, '\0', p->payload.n))
		json_out_str(w, "text", p->payload);
	else
		json_out_base64(w, "payload", p->payload);
}

void
remote_put_begin(struct remote *rem)
{
	buf_clear(&rem->body);
	buf_putc(&rem->body, '[');
	rem->n_puts = 0;
	rem->all_keyed = true;
}

size_t
remote_put_bytes(const struct remote *rem)
{
	return rem->body.n;
}

void
remote_put(struct remote *rem, const struct remote_put *p)
{
	struct json_out w;

	if (rem->n_puts++ > 0)
		buf_putc(&rem->body, ',');
	rem->all_keyed &= p->idempotency_key != NULL;
	json_out_init(&w, &rem->body);
	json_out_object(&w, NULL);
	out_text(&w, "namespace", p->space);
	out_text(&w, "topic", p->queue);
	out_text(&w, "priority", p->priority);
	out_text(&w, "key", p->key);
	out_text(&w, "idempotency_key", p->idempotency_key);
	out_text(&w, "correlation_id", p->correlation_id);
	out_time(&w, "delay", p->delay);
	out_time(&w, "ttl", p->ttl);
	out_time(&w, "keep_result", p->keep_result);
	if (p->max_attempts)
		json_out_u64(&w, "max_attempts", p->max_attempts);
	out_payload(&w, p);
	json_out_close(&w);
	json_out_end(&w);
}

static int
read_ids(struct remote *rem, uint64_t *ids, struct slu_err *err)
{
	struct json r;
	size_t n = 0;

	json_init(&r, buf_slice(&rem->http.answer.body), JSON_DEPTH);
	json_array(&r);
	while (json_element(&r)) {
		const uint64_t id = json_u64(&r, 1, INT64_MAX);

		if (n < rem->n_puts)
			ids[n] = id;
		n++;
	}
	if (n != rem->n_puts)
		json_fail(&r, SLU_EUNKNOWN, NULL, "expected %zu ids", rem->n_puts);
	if (json_end(&r, err))
		return slu_fail(err, SLU_EUNKNOWN, "the server's answer to enqueue is no list of ids");
	return 0;
}

int
remote_put_send(struct remote *rem, uint64_t *ids, struct slu_err *err)
{
	struct http_call c = { .method = "POST", .repeatable = rem->all_keyed };
	int rc;

	buf_putc(&rem->body, ']');
	remote_path(rem, "/enqueue");
	c.body = buf_slice(&rem->body);
	rc = call(rem, &c, 0, err);
	return rc ? rc : read_ids(rem, ids, err);
}

/* --- dequeue -------------------------------------------------------------------- */

struct row {
	struct remote_message m;
	struct slice payload, text, json;
};

#define ROW(how, member, ...)                                         \
	{                                                             \
		.name = { #member, sizeof #member - 1 },              \
		.read = json_read_##how,                              \
		.offset = offsetof(struct row, m.member),             \
		.size = sizeof(((struct remote_message *)0)->member), \
		__VA_ARGS__                                           \
	}

static const struct json_field message_fields[] = {
	ROW(u64, id, .required = true, .min = 1, .max = INT64_MAX),
	ROW(text, uid),
	ROW(text, namespace),
	ROW(text, topic),
	ROW(text, content_type),
	ROW(text, key),
	ROW(text, correlation_id),
	ROW(text, lease_id),
	ROW(text, lease_expires_at),
	ROW(u64, fencing_token),
	ROW(u64, attempts),
	ROW(u64, failure_attempts),
	ROW(u64, max_attempts),
	ROW(i64, priority),
	ROW(raw, attributes),
	JSON_FIELD(base64, struct row, payload),
	JSON_FIELD(text, struct row, text),
	JSON_FIELD(raw, struct row, json),
};

enum {
	N_MESSAGE_FIELDS = sizeof message_fields / sizeof message_fields[0]
};

void
remote_messages_release(struct remote_messages *m)
{
	buf_release(&m->document);
	mem_free(m->room);
	mem_free(m->items);
	*m = (struct remote_messages){ 0 };
}

/* Trade buffers: the answer's bytes stay while the connection goes on. */
static void
take_body(struct remote *rem, struct remote_messages *m)
{
	const struct buf body = rem->http.answer.body;

	if (m->document.max == 0)
		buf_init(&m->document, HTTP_BODY_MAX);
	rem->http.answer.body = m->document;
	m->document = body;
}

/* How many elements, so that there is memory for them all; counts in one pass. */
static size_t
count_elements(struct slice document)
{
	struct json r;
	size_t n = 0;

	json_init(&r, document, JSON_DEPTH);
	json_array(&r);
	while (json_element(&r))
		n++;
	return json_end(&r, NULL) ? 0 : n;
}

static int
reserve(struct remote_messages *m, size_t n)
{
	mem_free(m->room);
	mem_free(m->items);
	m->n = 0;
	m->room = mem_alloc(m->document.n + 1);
	m->items = mem_array(n + 1, sizeof m->items[0]);
	return m->room && m->items ? 0 : SLU_ENOMEM;
}

static void
read_message(struct json *r, struct remote_message *out)
{
	struct row w = { 0 };
	const char *begin;
	uint64_t given;

	json_peek(r);
	begin = r->p;
	given = json_fields(r, message_fields, N_MESSAGE_FIELDS, JSON_LENIENT, &w);
	*out = w.m;
	out->raw = (struct slice){ begin, (size_t)(r->p - begin) };
	out->payload = w.payload;
	if (given >> (N_MESSAGE_FIELDS - 2) & 1)
		out->payload = w.text;
	if (given >> (N_MESSAGE_FIELDS - 1) & 1)
		out->payload = w.json;
}

static int
read_messages(struct remote_messages *m, struct slu_err *err)
{
	const struct slice document = buf_slice(&m->document);
	const size_t n = count_elements(document);
	struct slu_err why;
	struct json r;

	if (reserve(m, n))
		return slu_fail(err, SLU_ENOMEM, "no memory for %zu messages", n);
	json_init(&r, document, JSON_DEPTH);
	json_room(&r, m->room, document.n);
	json_array(&r);
	while (json_element(&r))
		read_message(&r, &m->items[m->n++]);
	if (json_end(&r, &why)) {
		m->n = 0;
		return slu_fail(err, SLU_EUNKNOWN, "the server's answer is no list of messages: %s",
				why.text);
	}
	return 0;
}

int
remote_dequeue(struct remote *rem, const struct remote_claim *claim, struct remote_messages *out,
	       struct slu_err *err)
{
	struct http_call c = { .method = "GET", .repeatable = true, .waits = true };
	int rc;

	out->n = 0;
	remote_path(rem, "/dequeue");
	remote_param(rem, "namespace", claim->space);
	remote_param(rem, "topic", claim->queue);
	remote_param_u64(rem, "limit", claim->limit);
	param_time(rem, "lease", claim->lease);
	param_time(rem, "wait", claim->wait);
	rc = call(rem, &c, claim->wait, err);
	if (rc)
		return rc;
	take_body(rem, out);
	return read_messages(out, err);
}

/* --- settle --------------------------------------------------------------------- */

static void
out_settle(struct json_out *w, enum remote_verb verb, const struct remote_settle *s)
{
	json_out_object(w, NULL);
	json_out_u64(w, "id", s->id);
	out_text(w, "namespace", s->space);
	out_text(w, "topic", s->queue);
	if (s->lease_id.n > 0)
		json_out_str(w, "lease_id", s->lease_id);
	if (s->token)
		json_out_u64(w, "fencing_token", s->token);
	if (s->error.n > 0)
		json_out_str(w, "error", s->error);
	if (s->result.n > 0)
		json_out_raw(w, "result", s->result);
	out_time(w, verb == REMOTE_EXTEND ? "lease" : "delay", s->time);
	if (s->at_once)
		json_out_str(w, "delay", SLICE("0"));
	if (s->defer)
		json_out_bool(w, "defer", true);
	if (s->dead)
		json_out_bool(w, "dead", true);
	json_out_close(w);
	json_out_end(w);
}

static const char *const settle_paths[] = {
	[REMOTE_ACK] = "/ack",
	[REMOTE_NACK] = "/nack",
	[REMOTE_EXTEND] = "/extend",
};

/* Of a list: what became of each, in the same order. */
static int
read_outcomes(struct remote *rem, const struct remote_settle *items, size_t n,
	      struct slu_err *err)
{
	static const struct json_field fields[] = {
		JSON_FIELD(text, struct refusal, error),
		JSON_FIELD(text, struct refusal, message),
	};
	const struct slice body = buf_slice(&rem->http.answer.body);
	char room[1024];
	struct json r;
	size_t i = 0;
	int rc = 0;

	json_init(&r, body, JSON_DEPTH);
	json_array(&r);
	while (json_element(&r)) {
		struct refusal why = { 0 };

		json_room(&r, room, sizeof room);
		json_fields(&r, fields, sizeof fields / sizeof fields[0], JSON_LENIENT, &why);
		if (why.error.n > 0 && !rc && i < n)
			rc = slu_fail(err, code_of(why.error, 409), "%" PRIu64 ": %.*s",
				      items[i].id, (int)why.message.n, why.message.p);
		i++;
	}
	if (json_end(&r, NULL) || i != n)
		return slu_fail(err, SLU_EUNKNOWN,
				"the server's answer is no list of %zu outcomes", n);
	return rc;
}

int
remote_settle_all(struct remote *rem, enum remote_verb verb,
		  const struct remote_settle *items, size_t n, struct slu_err *err)
{
	struct http_call c = { .method = "POST", .repeatable = verb == REMOTE_EXTEND };
	struct json_out w;
	int rc;

	remote_path(rem, settle_paths[verb]);
	buf_clear(&rem->body);
	for (size_t i = 0; i < n; i++) {
		buf_putc(&rem->body, i ? ',' : '[');
		json_out_init(&w, &rem->body);
		out_settle(&w, verb, &items[i]);
	}
	buf_putc(&rem->body, ']');
	c.body = buf_slice(&rem->body);
	rc = call(rem, &c, 0, err);
	return rc ? rc : read_outcomes(rem, items, n, err);
}

int
remote_settle(struct remote *rem, enum remote_verb verb, const struct remote_settle *s,
	      struct slu_err *err)
{
	struct http_call c = { .method = "POST", .repeatable = verb == REMOTE_EXTEND };
	struct json_out w;

	remote_path(rem, settle_paths[verb]);
	buf_clear(&rem->body);
	json_out_init(&w, &rem->body);
	out_settle(&w, verb, s);
	c.body = buf_slice(&rem->body);
	return call(rem, &c, 0, err);
}
