/*
 * flat_dequeue.c - /dequeue: takes messages under a lease, into memory.
 */
#include "client/client.h"

#include "base/clock.h"
#include "base/json/json.h"
#include "base/json/json_table.h"
#include "base/mem.h"
#include "base/need.h"
#include "base/sized.h"

enum {
	CLAIM_DEFAULT = 10
};

/* A longer wait is split into requests of this length: proxies close idle connections. */
#define WAIT_MAX (30 * SLU_SEC)

struct message_row {
	uint64_t id, fencing_token, attempts, failure_attempts, max_attempts;
	int64_t priority;
	struct slice uid, lease_id, lease_expires_at, content_type, key, share, kind, correlation_id, receipt;
	struct slice attributes, checkpoint;
	struct slice payload;
	struct slice raw; /* empty = the whole object */
};

static const struct json_field row_fields[] = {
	JSON_FIELD(u64, struct message_row, id, .required = true, .min = 1, .max = INT64_MAX),
	JSON_FIELDS(text, struct message_row, uid, receipt, content_type, key, share, kind, correlation_id),
	JSON_FIELDS(text, struct message_row, lease_id, lease_expires_at),
	JSON_FIELDS(u64, struct message_row, fencing_token, attempts, failure_attempts, max_attempts),
	JSON_FIELD(i64, struct message_row, priority),
	JSON_FIELDS(raw, struct message_row, attributes, checkpoint),
	JSON_FIELD(base64, struct message_row, payload),
};

/* The memory of the messages' strings. */
struct message_batch {
	struct buf document; /* the answer as it came */
	char *room;          /* unescaped and decoded texts */
	struct buf texts;    /* zero-terminated texts; reserved as a whole, so that it does not move */
};

static const char *
keep_text(struct message_batch *b, struct slice s)
{
	const size_t at = b->texts.n;

	buf_put(&b->texts, s.p, s.n);
	buf_putc(&b->texts, '\0');
	return b->texts.p + at;
}

static void
take_row(struct message_batch *b, const struct message_row *w, struct slu_client_message *m)
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
		.share = keep_text(b, w->share),
		.kind = keep_text(b, w->kind),
		.correlation_id = keep_text(b, w->correlation_id),
		.attributes = keep_text(b, w->attributes),
		.checkpoint = keep_text(b, w->checkpoint),
		.receipt = keep_text(b, w->receipt),
		.raw = w->raw.p,
		.raw_size = w->raw.n,
	};
}

/* Counts the elements, to allocate them at once. */
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
reserve(struct message_batch *b, struct slu_client_messages *out, size_t n)
{
	const size_t texts = b->document.n + 11 * n + 1; /* 11 ends a message */

	b->room = mem_alloc(b->document.n + 1);
	out->items = mem_array(n + 1, sizeof out->items[0]);
	buf_init(&b->texts, texts);
	return b->room && out->items && buf_reserve(&b->texts, texts) ? 0 : SLU_ENOMEM;
}

static int
misunderstood(const struct slu_err *why, struct slu_err *err)
{
	return slu_fail(err, SLU_EUNKNOWN, "malformed answer: expected a list of messages: %s",
			why->text);
}

static int
read_rows(struct message_batch *b, struct slu_client_messages *out, struct slu_err *err)
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
		struct message_row w = { 0 };

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
	struct message_batch *const b = m ? m->memory : NULL;

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

/* Moves the bytes of the answer to the batch. */
static int
take_answer(struct client_request *a, struct slu_client_messages *out, struct slu_err *err)
{
	struct buf *const body = &a->link->http.answer.body;
	struct message_batch *const b = mem_zalloc(sizeof *b);

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
write_claim(struct client_request *a, slu_time left)
{
	const struct claiming *const q = a->user;

	buf_clear(&a->path);
	buf_puts(&a->path, "/dequeue");
	http_param(&a->path, "namespace", a->space);
	http_param(&a->path, "queue", q->queue);
	http_param_u64(&a->path, "limit", q->claim->limit ? q->claim->limit : CLAIM_DEFAULT);
	client_request_param_time(a, "lease", q->claim->lease);
	client_request_param_time(a, "wait", left < WAIT_MAX ? left : WAIT_MAX);
	http_param(&a->path, "owner", q->owner);
	if (q->claim->kinds)
		http_param(&a->path, "kinds", q->claim->kinds);
}

/* Makes one request of the wait. */
static int
claim_once(struct slu_client *c, struct claiming *q, slu_time left,
	   struct slu_client_messages *out, const struct slu_call *call, struct slu_err *err)
{
	struct client_request a;
	int rc;

	client_request_init(&a, c, call, "GET", NULL);
	a.begins = true;
	client_request_waits(&a, left);
	a.write = write_claim;
	a.user = q;
	rc = client_request_run(&a, err);
	if (!rc)
		rc = take_answer(&a, out, err);
	client_request_release(&a);
	return rc;
}

int
slu_client_dequeue(struct slu_client *c, const char *queue, const struct slu_client_claim *given,
		   struct slu_client_messages *out, const struct slu_call *given_call,
		   struct slu_err *err)
{
	NEED3(c, queue, out, err);

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
