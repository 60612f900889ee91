/*
 * flat_dequeue.c - /dequeue: messages in memory, under a lease.
 */
#include "client/client.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/json_table.h"
#include "base/mem.h"
#include "base/need.h"
#include "base/sized.h"

enum {
	CLAIM_DEFAULT = 10
};

/* A longer wait is made of several: proxies and half-open connections like it better. */
#define WAIT_MAX (30 * SLU_SEC)

struct row {
	uint64_t id, fencing_token, attempts, failure_attempts, max_attempts;
	int64_t priority;
	struct slice uid, lease_id, lease_expires_at, content_type, key, correlation_id, receipt;
	struct slice attributes;
	struct slice payload;
	struct slice raw; /* no member: all of it */
};

static const struct json_field row_fields[] = {
	JSON_FIELD(u64, struct row, id, .required = true, .min = 1, .max = INT64_MAX),
	JSON_FIELD(text, struct row, uid),
	JSON_FIELD(text, struct row, receipt),
	JSON_FIELD(text, struct row, content_type),
	JSON_FIELD(text, struct row, key),
	JSON_FIELD(text, struct row, correlation_id),
	JSON_FIELD(text, struct row, lease_id),
	JSON_FIELD(text, struct row, lease_expires_at),
	JSON_FIELD(u64, struct row, fencing_token),
	JSON_FIELD(u64, struct row, attempts),
	JSON_FIELD(u64, struct row, failure_attempts),
	JSON_FIELD(u64, struct row, max_attempts),
	JSON_FIELD(i64, struct row, priority),
	JSON_FIELD(raw, struct row, attributes),
	JSON_FIELD(base64, struct row, payload),
};

/* What the strings of the messages lie in. */
struct batch {
	struct buf document; /* as it came */
	char *room;          /* what was unescaped or decoded */
	struct buf texts;    /* terminated: reserved whole, so that it does not move */
};

static const char *
keep_text(struct batch *b, struct slice s)
{
	const size_t at = b->texts.n;

	buf_put(&b->texts, s.p, s.n);
	buf_putc(&b->texts, '\0');
	return b->texts.p + at;
}

static void
take_row(struct batch *b, const struct row *w, struct slu_client_message *m)
{
	*m = (struct slu_client_message){
		.id = w->id,
		.fencing_token = w->fencing_token,
		.payload = w->payload.p,
		.size = w->payload.n,
		.attempts = (unsigned)w->attempts,
		.failures = (unsigned)w->failure_attempts,
		.max_attempts = (unsigned)w->max_attempts,
		.priority = (int32_t)w->priority,
		.uid = keep_text(b, w->uid),
		.lease_id = keep_text(b, w->lease_id),
		.lease_expires_at = keep_text(b, w->lease_expires_at),
		.content_type = keep_text(b, w->content_type),
		.key = keep_text(b, w->key),
		.correlation_id = keep_text(b, w->correlation_id),
		.attributes = keep_text(b, w->attributes),
		.receipt = keep_text(b, w->receipt),
		.raw = w->raw.p,
		.raw_size = w->raw.n,
	};
}

/* How many elements, so that there is memory for them all. */
static int
count_elements(struct slice document, size_t *n, struct slu_err *err)
{
	struct json r;

	*n = 0;
	json_init(&r, document, JSON_DEPTH);
	json_array(&r);
	while (json_element(&r))
		++*n;
	return json_end(&r, err);
}

static int
reserve(struct batch *b, struct slu_client_messages *out, size_t n)
{
	const size_t texts = b->document.n + 8 * n + 1; /* 8 ends a message */

	b->room = mem_alloc(b->document.n + 1);
	out->items = mem_array(n + 1, sizeof out->items[0]);
	buf_init(&b->texts, texts);
	return b->room && out->items && buf_reserve(&b->texts, texts) ? 0 : SLU_ENOMEM;
}

static int
misunderstood(const struct slu_err *why, struct slu_err *err)
{
	return slu_fail(err, SLU_EUNKNOWN, "the server's answer is no list of messages: %s",
			why->text);
}

static int
read_rows(struct batch *b, struct slu_client_messages *out, struct slu_err *err)
{
	const struct slice document = buf_slice(&b->document);
	struct slu_err why;
	struct json r;
	size_t n;

	if (count_elements(document, &n, &why))
		return misunderstood(&why, err);
	if (reserve(b, out, n))
		return slu_fail(err, SLU_ENOMEM, "no memory for %zu messages", n);
	json_init(&r, document, JSON_DEPTH);
	json_room(&r, b->room, document.n);
	json_array(&r);
	while (json_element(&r)) {
		struct row w = { 0 };

		json_peek(&r);
		w.raw.p = r.p;
		json_fields(&r, row_fields, sizeof row_fields / sizeof row_fields[0], JSON_LENIENT,
			    &w);
		w.raw.n = (size_t)(r.p - w.raw.p);
		take_row(b, &w, &out->items[out->n++]);
	}
	return json_end(&r, &why) ? misunderstood(&why, err) : 0;
}

void
slu_client_messages_release(struct slu_client_messages *m)
{
	struct batch *const b = m ? m->memory : NULL;

	if (!m)
		return;
	if (b) {
		buf_release(&b->document);
		buf_release(&b->texts);
		mem_free(b->room);
	}
	mem_free(b);
	mem_free(m->items);
	*m = (struct slu_client_messages){ 0 };
}

/* The answer's bytes go over to the batch. */
static int
take_answer(struct ask *a, struct slu_client_messages *out, struct slu_err *err)
{
	struct buf *const body = &a->link->http.answer.body;
	struct batch *const b = mem_zalloc(sizeof *b);

	if (!b)
		return slu_fail(err, SLU_ENOMEM, "no memory for messages");
	out->memory = b;
	b->document = *body;
	buf_init(body, b->document.max);
	return read_rows(b, out, err);
}

struct claiming {
	const char *queue;
	const struct slu_client_claim *claim;
	char process[CLIENT_OWNER_TEXT];
	const char *owner;
};

static void
write_claim(struct ask *a, slu_time left)
{
	const struct claiming *const q = a->user;

	buf_clear(&a->path);
	buf_puts(&a->path, "/dequeue");
	ask_param(a, "namespace", a->space);
	ask_param(a, "topic", q->queue);
	ask_param_u64(a, "limit", q->claim->limit ? q->claim->limit : CLAIM_DEFAULT);
	ask_param_time(a, "lease", q->claim->lease);
	ask_param_time(a, "wait", left < WAIT_MAX ? left : WAIT_MAX);
	ask_param(a, "owner", q->owner);
}

/* A part of the wait. */
static int
claim_once(struct slu_client *c, struct claiming *q, slu_time left,
	   struct slu_client_messages *out, const struct slu_call *call, struct slu_err *err)
{
	struct ask a;
	int rc;

	ask_init(&a, c, call, "GET", NULL);
	a.begins = true;
	ask_waits(&a, left);
	a.write = write_claim;
	a.user = q;
	rc = ask_run(&a, err);
	if (!rc)
		rc = take_answer(&a, out, err);
	ask_release(&a);
	return rc;
}

int
slu_client_dequeue(struct slu_client *c, const char *queue, const struct slu_client_claim *given,
		   struct slu_client_messages *out, const struct slu_call *given_call,
		   struct slu_err *err)
{
	NEED(c, err);
	NEED(queue, err);
	NEED(out, err);

	struct slu_client_claim claim_room;
	struct slu_call call_room, rest;
	const struct slu_client_claim *claim = SIZED(slu_client_claim, given, &claim_room, err);
	const struct slu_call *call = SIZED(slu_call, given_call, &call_room, err);
	struct claiming q = { .queue = queue, .claim = claim };
	const slu_time began = clock_mono(&clock_system);
	slu_time left;
	int rc;

	if (!claim || !call || need_lease(claim->lease, "lease", err) ||
	    need_time(claim->wait, "wait", err) || need_time(call->timeout, "timeout", err))
		return SLU_EINVAL;
	left = claim->wait;
	rest = *call;
	client_process(q.process);
	q.owner = q.claim->owner ? q.claim->owner : q.process;
	do {
		slu_client_messages_release(out);
		rc = claim_once(c, &q, left, out, &rest, err);
		left = q.claim->wait == SLU_NEVER ? SLU_NEVER
						  : began + q.claim->wait - clock_mono(&clock_system);
		if (call->timeout && call->timeout != SLU_NEVER) {
			rest.timeout = began + call->timeout - clock_mono(&clock_system);
			rest.timeout = rest.timeout > 0 ? rest.timeout : 1;
		}
	} while (!rc && out->n == 0 && left > 0);
	if (rc)
		slu_client_messages_release(out);
	return rc;
}
