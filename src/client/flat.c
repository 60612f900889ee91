/*
 * flat.c - many messages in one call: /enqueue, /ack, /nack, /extend.
 */
#include "client/client.h"
#include "client/terms.h"

#include "base/json/json.h"
#include "base/json/json_out.h"
#include "base/json/json_table.h"
#include "base/le.h"
#include "base/need.h"
#include "base/sized.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>

enum {
	PUTS_MAX = 10000,
	SETTLES_MAX = 1000,
	KEY_TEXT = 33,
	PACKED_HEAD = 12, /* of application/x-sluice-batch: docs/batch-format.md */
	PACKED_PUT = 12   /* fixed bytes of a message */
};

static void
out_text(struct json_out *w, const char *name, const char *text)
{
	if (text)
		json_out_str(w, name, slice_of(text));
}

/* --- enqueue -------------------------------------------------------------------- */

static bool
is_text(const struct slu_client_put *p)
{
	const struct slice payload = { p->payload, p->size };

	return p->size > 0 && utf8_valid(payload) && !memchr(payload.p, '\0', payload.n) && !p->content_type;
}

static void
out_payload(struct json_out *w, const struct slu_client_put *p)
{
	const struct slice payload = { p->payload, p->size };

	if (p->is_json)
		json_out_raw(w, "json", payload);
	else if (is_text(p))
		json_out_str(w, "text", payload);
	else
		json_out_base64(w, "payload", payload);
}

/* CLIENT-3: makes a unique idempotency key. */
static int
out_key(struct json_out *w, const struct slu_client *c, const struct slu_client_put *p,
	struct slu_err *err)
{
	unsigned char bytes[16];
	char text[KEY_TEXT];

	if (p->idempotency_key || !c->idempotent || p->unique_key) {
		out_text(w, "idempotency_key", p->idempotency_key);
		return 0;
	}
	if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
		return slu_fail(err, SLU_EFAILED, "cannot get random numbers: %m");
	for (size_t i = 0; i < sizeof bytes; i++)
		(void)snprintf(text + 2 * i, 3, "%02x", bytes[i]); /* fits */
	out_text(w, "idempotency_key", text);
	return 0;
}

/* Terms of the message itself. */
static void
out_terms(struct json_out *w, const struct slu_client_put *p)
{
	terms_out_time(w, "lease", p->lease);
	terms_out_time(w, "max_runtime", p->max_runtime);
	if (p->deadline)
		json_out_time(w, "deadline", p->deadline);
	terms_out_retry(w, p->retry);
}

/* All but the names of the queue and the payload. */
static int
out_members(struct json_out *w, const struct slu_client *c, const struct slu_client_put *p, struct slu_err *err)
{
	out_text(w, "priority", p->priority);
	out_text(w, "key", p->key);
	out_text(w, "share", p->share);
	out_text(w, "kind", p->kind);
	out_text(w, "batch", p->batch);
	terms_out_unique(w, p->unique_key, p->unique_until, p->unique_for, p->replace);
	out_text(w, "correlation_id", p->correlation_id);
	out_text(w, "content_type", p->content_type);
	if (p->attributes)
		json_out_raw(w, "attributes", slice_of(p->attributes));
	if (p->deliver_at)
		json_out_time(w, "deliver_after", p->deliver_at);
	else
		terms_out_time(w, "delay", p->delay);
	out_text(w, "traceparent", p->traceparent);
	terms_out_time(w, "ttl", p->ttl);
	out_terms(w, p);
	terms_out_time(w, "keep_result", p->keep_result);
	if (p->max_attempts)
		json_out_u64(w, "max_attempts", p->max_attempts);
	return out_key(w, c, p, err);
}

static int
out_put(struct client_request *a, const char *queue, const struct slu_client_put *p, struct slu_err *err)
{
	struct json_out w;
	int rc;

	json_out_open(&w, &a->body);
	out_text(&w, "namespace", a->space);
	out_text(&w, "queue", queue);
	rc = out_members(&w, a->client, p, err);
	out_payload(&w, p);
	json_out_finish(&w);
	return rc;
}

/* The server refuses a name of more than 128 bytes: there is no need for all of them. */
static void
out_name(struct buf *b, const char *name)
{
	const size_t n = strnlen(name, UINT8_MAX);

	buf_putc(b, (char)n);
	buf_put(b, name, n);
}

static void
out_packed_head(struct client_request *a, const char *queue, size_t n)
{
	char head[PACKED_HEAD] = { 'S', 'L', 'B', '1', 1, 0, 1, 0 }; /* kind 1, one queue */

	le32_put(head + 8, (uint32_t)n);
	buf_put(&a->body, head, sizeof head);
	out_name(&a->body, a->space);
	out_name(&a->body, queue);
}

static int
out_packed_put(struct client_request *a, const struct slu_client_put *p, struct slu_err *err)
{
	static const char nothing[PACKED_PUT];
	struct buf *const b = &a->body;
	const size_t at = b->n;
	struct json_out w;
	int rc;

	buf_put(b, nothing, sizeof nothing);
	json_out_open(&w, b);
	rc = out_members(&w, a->client, p, err);
	if (!p->content_type && p->is_json)
		out_text(&w, "content_type", "application/json");
	else if (is_text(p))
		out_text(&w, "content_type", "text/plain; charset=utf-8");
	json_out_finish(&w);
	if (b->failed || p->size > UINT32_MAX)
		return slu_fail(err, SLU_ETOOBIG, "invalid messages: too many bytes; expected less than 64 MiB");
	if (b->n == at + PACKED_PUT + 2)
		b->n -= 2; /* {} */
	le32_put(b->p + at, (uint32_t)(b->n - at - PACKED_PUT));
	le32_put(b->p + at + 4, (uint32_t)p->size);
	buf_put(b, p->payload, p->size);
	return rc;
}

/* Checks values that are written unescaped: they must be JSON, or they could add members. */
static int
check_put(const struct slu_client_put *p, struct slu_err *err)
{
	const struct slice payload = { p->payload, p->size };
	int rc = 0;

	rc = need_time(p->delay, "delay", err);
	rc = rc ? rc : need_time(p->ttl, "ttl", err);
	rc = rc ? rc : need_time(p->keep_result, "keep_result", err);
	rc = rc ? rc : need_time(p->lease, "lease", err);
	rc = rc ? rc : need_time(p->max_runtime, "max_runtime", err);
	rc = rc ? rc : need_time(p->unique_for, "unique_for", err);
	rc = rc ? rc : terms_check_retry(p->retry, err);
	rc = rc ? rc : need_bytes(p->payload, p->size, "payload", err);
	if (!rc && p->is_json)
		rc = json_check(payload, JSON_NONE, JSON_DEPTH - 2, "payload", err);
	if (!rc && p->attributes)
		rc = json_check(slice_of(p->attributes), JSON_OBJECT, JSON_DEPTH - 2, "attributes",
				err);
	return rc;
}

struct accepted {
	uint64_t id;
	bool duplicate;
	struct slice uid, unique;
};

static const struct json_field accepted_fields[] = {
	JSON_FIELD(u64, struct accepted, id, .min = 1, .max = INT64_MAX),
	JSON_FIELD(bool, struct accepted, duplicate),
	JSON_FIELD(raw, struct accepted, uid),
	JSON_FIELD(raw, struct accepted, unique),
};

/* Reads an id, or with `detail` an object. */
static void
read_accepted(struct json *r, bool detail, struct accepted *out)
{
	*out = (struct accepted){ 0 };
	if (detail)
		(void)json_fields(r, accepted_fields,
				  sizeof accepted_fields / sizeof accepted_fields[0], 0, out);
	else
		out->id = json_u64(r, 1, INT64_MAX);
}

static int
read_ids(const struct client_request *a, struct slu_client_put *puts, size_t n, bool detail,
	 struct slu_err *err)
{
	struct accepted one;
	struct json r;
	size_t i = 0;

	json_init(&r, client_request_body(a), JSON_DEPTH);
	json_array(&r);
	while (json_element(&r)) {
		read_accepted(&r, detail, &one);
		if (i < n) {
			puts[i].id = one.id;
			puts[i].duplicate = one.duplicate;
			puts[i].replaced = slice_eq(one.unique, SLICE("\"replaced\""));
		}
		i++;
	}
	if (i != n || json_end(&r, NULL))
		return slu_fail(err, SLU_EUNKNOWN, "malformed answer to enqueue: expected a list of %zu ids", n);
	return 0;
}

static int
out_json(struct client_request *a, const char *queue, const struct slu_client_put *puts, size_t n,
	 struct slu_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++) {
		buf_putc(&a->body, i ? ',' : '[');
		rc = check_put(&puts[i], err);
		if (!rc)
			rc = out_put(a, queue, &puts[i], err);
	}
	buf_putc(&a->body, ']');
	return rc;
}

static int
out_packed(struct client_request *a, const char *queue, const struct slu_client_put *puts, size_t n,
	   struct slu_err *err)
{
	int rc = 0;

	a->content_type = "application/x-sluice-batch";
	out_packed_head(a, queue, n);
	for (size_t i = 0; i < n && !rc; i++) {
		rc = check_put(&puts[i], err);
		if (!rc)
			rc = out_packed_put(a, &puts[i], err);
	}
	return rc;
}

static int
enqueue(struct slu_client *c, const char *queue, struct slu_client_put *puts, size_t n,
	const struct slu_call *call, struct slu_err *err)
{
	bool keyed = c->idempotent; /* without a key no message can be a duplicate */
	struct client_request a;
	int rc;

	for (size_t i = 0; i < n; i++)
		keyed |= puts[i].idempotency_key || puts[i].unique_key;
	client_request_init(&a, c, call, "POST", keyed ? "/enqueue?detail=1" : "/enqueue");
	a.begins = true;
	a.repeatable = true;
	for (size_t i = 0; i < n; i++)
		a.repeatable &= puts[i].idempotency_key || (c->idempotent && !puts[i].unique_key);
	rc = c->packed ? out_packed(&a, queue, puts, n, err) : out_json(&a, queue, puts, n, err);
	if (!rc)
		rc = client_request_run(&a, err);
	if (!rc)
		rc = read_ids(&a, puts, n, keyed, err);
	client_request_release(&a);
	return rc;
}

int
slu_client_enqueue(struct slu_client *c, const char *queue, struct slu_client_put *puts,
		   size_t n, const struct slu_call *call, struct slu_err *err)
{
	NEED3(c, queue, puts, err);

	struct sized_array a;
	int rc;

	if (n == 0 || n > PUTS_MAX)
		return slu_fail(err, SLU_EINVAL, "invalid number of messages: %zu; expected 1 to %d", n, PUTS_MAX);
	rc = sized_array(&a, puts, n, sizeof *puts, "slu_client_put", err);
	if (!rc)
		rc = enqueue(c, queue, a.items, n, call, err);
	if (!rc)
		sized_array_answer(&a, puts, n, sizeof *puts);
	sized_array_release(&a);
	return rc;
}

/* --- settle --------------------------------------------------------------------- */

static void
out_nack(struct json_out *w, const struct slu_settle *s)
{
	out_text(w, "error", s->error);
	if (s->at_once)
		json_out_str(w, "delay", SLICE("0"));
	else
		terms_out_time(w, "delay", s->time);
	if (s->defer)
		json_out_bool(w, "defer", true);
	if (s->dead)
		json_out_bool(w, "dead", true);
	terms_out_time(w, "retry_after", s->retry_after);
	out_text(w, "scope", s->scope);
	out_text(w, "priority", s->priority);
	out_text(w, "reason", s->reason);
}

static void
out_named(struct json_out *w, const char *space, const char *queue, const struct slu_settle *s)
{
	json_out_u64(w, "id", s->id);
	out_text(w, "namespace", space);
	out_text(w, "queue", queue);
	out_text(w, "lease_id", s->lease_id);
	if (s->fencing_token)
		json_out_u64(w, "fencing_token", s->fencing_token);
}

static void
out_settle(struct client_request *a, enum slu_settle_verb verb, const char *queue,
	   const struct slu_settle *s)
{
	struct json_out w;

	json_out_open(&w, &a->body);
	if (s->receipt)
		json_out_str(&w, "receipt", slice_of(s->receipt));
	else
		out_named(&w, a->space, queue, s);
	if (verb == SLU_ACK && s->result)
		json_out_raw(&w, "result", slice_of(s->result));
	if (verb != SLU_EXTEND && s->enqueue)
		json_out_raw(&w, "enqueue", slice_of(s->enqueue));
	if (verb != SLU_EXTEND && s->release)
		json_out_raw(&w, "release", slice_of(s->release));
	if (verb == SLU_EXTEND)
		terms_out_time(&w, "lease", s->time);
	if (verb == SLU_EXTEND && s->checkpoint)
		json_out_raw(&w, "checkpoint", slice_of(s->checkpoint));
	if (verb == SLU_NACK)
		out_nack(&w, s);
	json_out_finish(&w);
}

struct settle_outcome {
	uint64_t id;
	struct slice error, message;
	slu_time deliver_after, lease_expires_at;
	bool dead;
};

static void
take_outcome(const struct client_request *a, const struct settle_outcome *o, bool is_ack, struct slu_settle *item)
{
	enum refusal_kind kind;

	if (item->receipt)
		item->id = o->id;
	item->at = o->deliver_after ? o->deliver_after : o->lease_expires_at;
	item->died = o->dead;
	item->code = o->error.n ? (enum slu_code)refusal_code(o->error, 409, &kind) : SLU_OK;
	if ((item->code == SLU_ENOTFOUND || item->code == SLU_EROUNDED) && a->retried && is_ack)
		item->code = SLU_OK; /* the first try had done it */
}

/* Reads the outcome of each message, in the same order. */
static int
read_outcomes(const struct client_request *a, enum slu_settle_verb verb, struct slu_settle *items,
	      size_t n, struct slu_err *err)
{
	static const struct json_field fields[] = {
		JSON_FIELD(u64, struct settle_outcome, id),
		JSON_FIELDS(text, struct settle_outcome, error, message),
		JSON_FIELDS(time, struct settle_outcome, deliver_after, lease_expires_at),
		JSON_FIELD(bool, struct settle_outcome, dead),
	};
	char room[1024];
	struct json r;
	size_t i = 0;
	int rc = 0;

	json_init(&r, client_request_body(a), JSON_DEPTH);
	json_array(&r);
	for (; json_element(&r); i++) {
		struct settle_outcome o = { 0 };

		json_room(&r, room, sizeof room);
		json_fields(&r, fields, sizeof fields / sizeof fields[0], JSON_LENIENT, &o);
		if (i >= n)
			continue;
		take_outcome(a, &o, verb == SLU_ACK, &items[i]);
		if (items[i].code && !rc)
			rc = slu_fail(err, items[i].code, "%" PRIu64 ": %.*s", items[i].id,
				      (int)o.message.n, o.message.p);
	}
	if (json_end(&r, NULL) || i != n)
		return slu_fail(err, SLU_EUNKNOWN,
				"malformed answer: expected a list of %zu outcomes", n);
	return rc;
}

static int
settle(struct slu_client *c, enum slu_settle_verb verb, const char *queue,
       struct slu_settle *items, size_t n, const struct slu_call *call, struct slu_err *err)
{
	static const char *const paths[] = {
		[SLU_ACK] = "/ack",
		[SLU_NACK] = "/nack",
		[SLU_EXTEND] = "/extend",
	};
	struct client_request a;
	int rc = 0;

	client_request_init(&a, c, call, "POST", paths[verb]);
	a.repeatable = verb != SLU_NACK;
	for (size_t i = 0; i < n && !rc; i++) {
		items[i].code = SLU_OK;
		buf_putc(&a.body, i ? ',' : '[');
		rc = need_lease(items[i].time, "time", err);
		if (!rc && items[i].result)
			rc = json_check(slice_of(items[i].result), JSON_NONE, JSON_DEPTH - 2,
					"result", err);
		if (!rc && items[i].enqueue)
			rc = json_check(slice_of(items[i].enqueue), JSON_ARRAY, JSON_DEPTH - 2, "enqueue", err);
		if (!rc && items[i].release)
			rc = json_check(slice_of(items[i].release), JSON_OBJECT, JSON_DEPTH - 2, "release", err);
		if (!rc && items[i].checkpoint)
			rc = json_check(slice_of(items[i].checkpoint), JSON_NONE, JSON_DEPTH - 2, "checkpoint", err);
		out_settle(&a, verb, queue, &items[i]);
	}
	buf_putc(&a.body, ']');
	if (!rc)
		rc = client_request_run(&a, err);
	if (!rc)
		rc = read_outcomes(&a, verb, items, n, err);
	client_request_release(&a);
	return rc;
}

int
slu_client_settle(struct slu_client *c, enum slu_settle_verb verb, const char *queue,
		  struct slu_settle *items, size_t n, const struct slu_call *call,
		  struct slu_err *err)
{
	NEED2(c, items, err);

	struct sized_array a;
	int rc;

	if (n == 0 || n > SETTLES_MAX)
		return slu_fail(err, SLU_EINVAL, "invalid number of messages: %zu; expected 1 to %d", n, SETTLES_MAX);
	if ((unsigned)verb > SLU_EXTEND)
		return slu_fail(err, SLU_EINVAL, "invalid verb: %d; expected SLU_ACK, SLU_NACK or SLU_EXTEND",
				(int)verb);
	rc = sized_array(&a, items, n, sizeof *items, "slu_settle", err);
	if (!rc) {
		rc = settle(c, verb, queue, a.items, n, call, err);
		sized_array_answer(&a, items, n, sizeof *items); /* includes the failed ones */
	}
	sized_array_release(&a);
	return rc;
}
