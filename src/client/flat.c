/*
 * flat.c - many messages a call: /enqueue, /ack, /nack, /extend.
 */
#include "client/client.h"

#include "base/json.h"
#include "base/json_out.h"
#include "base/json_table.h"
#include "base/need.h"
#include "base/parse.h"
#include "base/sized.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>

enum {
	PUTS_MAX = 10000,
	SETTLES_MAX = 1000,
	KEY_TEXT = 33
};

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

/* --- enqueue -------------------------------------------------------------------- */

static void
out_payload(struct json_out *w, const struct slu_client_put *p)
{
	const struct slice payload = { p->payload, p->size };

	if (p->is_json)
		json_out_raw(w, "json", payload);
	else if (p->size > 0 && utf8_valid(payload) && !memchr(payload.p, '\0', payload.n) &&
		 !p->content_type)
		json_out_str(w, "text", payload);
	else
		json_out_base64(w, "payload", payload);
}

/* Q3: a key that nobody else makes. */
static int
out_key(struct json_out *w, const struct slu_client *c, const struct slu_client_put *p,
	struct slu_err *err)
{
	unsigned char bytes[16];
	char text[KEY_TEXT];

	if (p->idempotency_key || !c->idempotent) {
		out_text(w, "idempotency_key", p->idempotency_key);
		return 0;
	}
	if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
		return slu_fail(err, SLU_EFAILED, "no random numbers: %m");
	for (size_t i = 0; i < sizeof bytes; i++)
		(void)snprintf(text + 2 * i, 3, "%02x", bytes[i]); /* fits */
	out_text(w, "idempotency_key", text);
	return 0;
}

static int
out_put(struct ask *a, const char *queue, const struct slu_client_put *p, struct slu_err *err)
{
	struct json_out w;
	int rc;

	json_out_init(&w, &a->body);
	json_out_object(&w, NULL);
	out_text(&w, "namespace", a->space);
	out_text(&w, "topic", queue);
	out_text(&w, "priority", p->priority);
	out_text(&w, "key", p->key);
	rc = out_key(&w, a->client, p, err);
	out_text(&w, "correlation_id", p->correlation_id);
	out_text(&w, "content_type", p->content_type);
	if (p->attributes)
		json_out_raw(&w, "attributes", slice_of(p->attributes));
	if (p->deliver_at)
		json_out_time(&w, "deliver_after", p->deliver_at);
	else
		out_time(&w, "delay", p->delay);
	out_text(&w, "traceparent", p->traceparent);
	out_time(&w, "ttl", p->ttl);
	out_time(&w, "keep_result", p->keep_result);
	if (p->max_attempts)
		json_out_u64(&w, "max_attempts", p->max_attempts);
	out_payload(&w, p);
	json_out_close(&w);
	json_out_end(&w);
	return rc;
}

/* What is written as it is must be JSON, or it could add members of its own. */
static int
check_put(const struct slu_client_put *p, struct slu_err *err)
{
	const struct slice payload = { p->payload, p->size };
	int rc = 0;

	rc = need_time(p->delay, "delay", err);
	rc = rc ? rc : need_time(p->ttl, "ttl", err);
	rc = rc ? rc : need_time(p->keep_result, "keep_result", err);
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
	struct slice uid;
};

static const struct json_field accepted_fields[] = {
	JSON_FIELD(u64, struct accepted, id, .min = 1, .max = INT64_MAX),
	JSON_FIELD(bool, struct accepted, duplicate),
	JSON_FIELD(raw, struct accepted, uid),
};

/* An id, or with `detail` an object. */
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
read_ids(const struct ask *a, struct slu_client_put *puts, size_t n, bool detail,
	 struct slu_err *err)
{
	struct accepted one;
	struct json r;
	size_t i = 0;

	json_init(&r, ask_body(a), JSON_DEPTH);
	json_array(&r);
	while (json_element(&r)) {
		read_accepted(&r, detail, &one);
		if (i < n) {
			puts[i].id = one.id;
			puts[i].duplicate = one.duplicate;
		}
		i++;
	}
	if (i != n || json_end(&r, NULL))
		return slu_fail(err, SLU_EUNKNOWN, "the server's answer to enqueue is no list of %zu ids", n);
	return 0;
}

static int
enqueue(struct slu_client *c, const char *queue, struct slu_client_put *puts, size_t n,
	const struct slu_call *call, struct slu_err *err)
{
	bool keyed = c->idempotent; /* else nothing can be a duplicate */
	struct ask a;
	int rc = 0;

	for (size_t i = 0; i < n; i++)
		keyed |= puts[i].idempotency_key != NULL;
	ask_init(&a, c, call, "POST", keyed ? "/enqueue?detail=1" : "/enqueue");
	a.begins = true;
	a.repeatable = true;
	for (size_t i = 0; i < n && !rc; i++) {
		a.repeatable &= puts[i].idempotency_key != NULL || c->idempotent;
		buf_putc(&a.body, i ? ',' : '[');
		rc = check_put(&puts[i], err);
		if (!rc)
			rc = out_put(&a, queue, &puts[i], err);
	}
	buf_putc(&a.body, ']');
	if (!rc)
		rc = ask_run(&a, err);
	if (!rc)
		rc = read_ids(&a, puts, n, keyed, err);
	ask_release(&a);
	return rc;
}

int
slu_client_enqueue(struct slu_client *c, const char *queue, struct slu_client_put *puts,
		   size_t n, const struct slu_call *call, struct slu_err *err)
{
	NEED(c, err);
	NEED(queue, err);
	NEED(puts, err);

	struct sized_array a;
	int rc;

	if (n == 0 || n > PUTS_MAX)
		return slu_fail(err, SLU_EINVAL, "%zu messages; a call has 1 to %d", n, PUTS_MAX);
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
		out_time(w, "delay", s->time);
	if (s->defer)
		json_out_bool(w, "defer", true);
	if (s->dead)
		json_out_bool(w, "dead", true);
}

static void
out_named(struct json_out *w, const char *space, const char *queue, const struct slu_settle *s)
{
	json_out_u64(w, "id", s->id);
	out_text(w, "namespace", space);
	out_text(w, "topic", queue);
	out_text(w, "lease_id", s->lease_id);
	if (s->fencing_token)
		json_out_u64(w, "fencing_token", s->fencing_token);
}

static void
out_settle(struct ask *a, enum slu_settle_verb verb, const char *queue,
	   const struct slu_settle *s)
{
	struct json_out w;

	json_out_init(&w, &a->body);
	json_out_object(&w, NULL);
	if (s->receipt)
		json_out_str(&w, "receipt", slice_of(s->receipt));
	else
		out_named(&w, a->space, queue, s);
	if (verb == SLU_ACK && s->result)
		json_out_raw(&w, "result", slice_of(s->result));
	if (verb == SLU_EXTEND)
		out_time(&w, "lease", s->time);
	if (verb == SLU_NACK)
		out_nack(&w, s);
	json_out_close(&w);
	json_out_end(&w);
}

struct outcome {
	uint64_t id;
	struct slice error, message;
	slu_time deliver_after, lease_expires_at;
	bool dead;
};

static void
take_outcome(const struct ask *a, const struct outcome *o, bool is_ack, struct slu_settle *item)
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

/* What became of each, in the same order. */
static int
read_outcomes(const struct ask *a, enum slu_settle_verb verb, struct slu_settle *items,
	      size_t n, struct slu_err *err)
{
	static const struct json_field fields[] = {
		JSON_FIELD(u64, struct outcome, id),
		JSON_FIELD(text, struct outcome, error),
		JSON_FIELD(text, struct outcome, message),
		JSON_FIELD(time, struct outcome, deliver_after),
		JSON_FIELD(time, struct outcome, lease_expires_at),
		JSON_FIELD(bool, struct outcome, dead),
	};
	char room[1024];
	struct json r;
	size_t i = 0;
	int rc = 0;

	json_init(&r, ask_body(a), JSON_DEPTH);
	json_array(&r);
	for (; json_element(&r); i++) {
		struct outcome o = { 0 };

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
				"the server's answer is no list of %zu outcomes", n);
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
	struct ask a;
	int rc = 0;

	ask_init(&a, c, call, "POST", paths[verb]);
	a.repeatable = verb != SLU_NACK;
	for (size_t i = 0; i < n && !rc; i++) {
		items[i].code = SLU_OK;
		buf_putc(&a.body, i ? ',' : '[');
		rc = need_lease(items[i].time, "time", err);
		if (!rc && items[i].result)
			rc = json_check(slice_of(items[i].result), JSON_NONE, JSON_DEPTH - 2,
					"result", err);
		out_settle(&a, verb, queue, &items[i]);
	}
	buf_putc(&a.body, ']');
	if (!rc)
		rc = ask_run(&a, err);
	if (!rc)
		rc = read_outcomes(&a, verb, items, n, err);
	ask_release(&a);
	return rc;
}

int
slu_client_settle(struct slu_client *c, enum slu_settle_verb verb, const char *queue,
		  struct slu_settle *items, size_t n, const struct slu_call *call,
		  struct slu_err *err)
{
	NEED(c, err);
	NEED(items, err);

	struct sized_array a;
	int rc;

	if (n == 0 || n > SETTLES_MAX)
		return slu_fail(err, SLU_EINVAL, "%zu messages; a call has 1 to %d", n, SETTLES_MAX);
	if ((unsigned)verb > SLU_EXTEND)
		return slu_fail(err, SLU_EINVAL, "invalid verb: %d; expected SLU_ACK, SLU_NACK or SLU_EXTEND",
				(int)verb);
	rc = sized_array(&a, items, n, sizeof *items, "slu_settle", err);
	if (!rc) {
		rc = settle(c, verb, queue, a.items, n, call, err);
		sized_array_answer(&a, items, n, sizeof *items); /* also of those that failed */
	}
	sized_array_release(&a);
	return rc;
}
