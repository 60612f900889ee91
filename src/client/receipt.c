/*
 * receipt.c - ack, nack and extend by a receipt; and receipts as a line of text, for another
 * process.
 *
 *      received by       its receipt            as text            settled by
 *      lease API         has a lease_id         a JSON object      the lease API
 *      flat API          has none, but a token  base/receipt.h     the flat API
 */
#include "client/receipt.h"

#include "base/id.h"
#include "base/json/json_out.h"
#include "base/need.h"
#include "base/receipt.h"
#include "base/sized.h"

#include <stdio.h>

/* --- of the flat API -------------------------------------------------------------------- */

static bool
is_flat(const struct slu_receipt *r)
{
	return !r->lease_id[0];
}

static char *
write_flat(const struct slu_receipt *r)
{
	struct receipt flat = { slice_of(r->space), slice_of(r->queue), 0, r->token };
	struct buf b;

	if (id_from_uuid(slice_of(r->id), &flat.id, NULL) || flat.space.n > RECEIPT_NAME ||
	    flat.queue.n > RECEIPT_NAME)
		return NULL;
	buf_init(&b, RECEIPT_TEXT + 1);
	receipt_write(&flat, &b);
	buf_putc(&b, '\0');
	if (!b.failed)
		return b.p;
	buf_release(&b);
	return NULL;
}

static int
parse_flat(struct slu_receipt *r, struct slice text, struct slu_err *err)
{
	char room[RECEIPT_TEXT];
	struct receipt flat;
	const int rc = receipt_parse(text, room, &flat, err);

	if (rc)
		return rc;
	memcpy(r->space, flat.space.p, flat.space.n);
	memcpy(r->queue, flat.queue.p, flat.queue.n);
	id_to_uuid(flat.id, r->id);
	r->token = flat.token;
	return 0;
}

/* Settles by the flat API; item has the outcome. */
static int
settle_flat(struct slu_client *c, enum slu_settle_verb verb, const struct slu_receipt *r,
	    struct slu_settle *item, const struct slu_call *call, struct slu_err *err)
{
	char *const text = write_flat(r);
	int rc;

	if (!text)
		return slu_fail(err, SLU_EINVAL, "invalid receipt: missing message");
	item->receipt = text;
	rc = slu_client_settle(c, verb, NULL, item, 1, call, err);
	item->receipt = NULL;
	slu_free(text);
	return rc;
}

static int
nack_flat(struct slu_client *c, const struct slu_receipt *r, const struct slu_nack *nack,
	  const struct slu_call *call, struct slu_err *err)
{
	struct slu_settle item = {
		SLU_OPTIONS_INIT(struct slu_settle),
		.error = nack->error,
		.time = nack->delay,
		.at_once = nack->delay == 0,
		.defer = nack->defer,
		.dead = nack->dead,
	};

	return settle_flat(c, SLU_NACK, r, &item, call, err);
}

static int
extend_flat(struct slu_client *c, const struct slu_receipt *r, slu_time by, slu_time *until,
	    const struct slu_call *call, struct slu_err *err)
{
	struct slu_settle item = { SLU_OPTIONS_INIT(struct slu_settle), .time = by };
	const int rc = settle_flat(c, SLU_EXTEND, r, &item, call, err);

	*until = item.at;
	return rc;
}

/* --- of the lease API ------------------------------------------------------------------- */

static void
out_some(struct json_out *w, const char *name, const char *text)
{
	if (text[0])
		json_out_str(w, name, slice_of(text));
}

/* Writes the members that all three requests and the text have. */
static void
out_receipt(struct json_out *w, struct buf *b, const struct slu_receipt *r)
{
	json_out_open(w, b);
	json_out_str(w, "namespace", slice_of(r->space));
	json_out_str(w, "queue", slice_of(r->queue));
	json_out_str(w, "message_id", slice_of(r->id));
	json_out_str(w, "lease_id", slice_of(r->lease_id));
	out_some(w, "txn_id", r->txn);
	json_out_u64(w, "fencing_token", r->token);
	out_some(w, "meta_etag", r->etag);
	if (!r->state.id[0])
		return;
	out_some(w, "state_etag", r->state.etag);
	json_out_str(w, "state_lease_id", slice_of(r->state.id));
	json_out_u64(w, "state_fencing_token", r->state.token);
}

static int
run(struct client_request *a, struct json_out *w, struct slu_err *err)
{
	json_out_finish(w);
	return client_request_run(a, err);
}

int
slu_client_ack(struct slu_client *c, const struct slu_receipt *r, const struct slu_call *call,
	       struct slu_err *err)
{
	NEED2(c, r, err);

	struct slu_settle item = { SLU_OPTIONS_INIT(struct slu_settle) };
	struct json_out w;
	struct client_request a;
	int rc;

	if (is_flat(r))
		return settle_flat(c, SLU_ACK, r, &item, call, err);
	client_request_init(&a, c, call, "POST", "/v1/queue/ack");
	a.repeatable = true;
	out_receipt(&w, &a.body, r);
	rc = run(&a, &w, err);
	if (rc == SLU_ENOTFOUND && a.retried)
		rc = 0; /* the first try had done it */
	client_request_release(&a);
	return rc;
}

/* Makes a dead letter by the flat API: the lease API cannot. */
static int
bury(struct slu_client *c, const struct slu_receipt *r, const struct slu_nack *nack,
     const struct slu_call *call, struct slu_err *err)
{
	struct json_out w;
	struct client_request a;

	client_request_init(&a, c, call, "POST", "/nack");
	json_out_open(&w, &a.body);
	json_out_str(&w, "namespace", slice_of(r->space));
	json_out_str(&w, "queue", slice_of(r->queue));
	json_out_str(&w, "id", slice_of(r->id));
	json_out_u64(&w, "fencing_token", r->token);
	json_out_bool(&w, "dead", true);
	if (nack->error)
		json_out_str(&w, "error", slice_of(nack->error));
	json_out_finish(&w);
	return client_request_finish(&a, err);
}

int
slu_client_nack(struct slu_client *c, const struct slu_receipt *r, const struct slu_nack *given,
		const struct slu_call *call, struct slu_err *err)
{
	NEED2(c, r, err);

	struct slu_nack room;
	const struct slu_nack *nack = SIZED(slu_nack, given, &room, err);
	struct json_out w;
	struct client_request a;

	if (!nack || need_time(nack->delay, "delay", err))
		return SLU_EINVAL;
	if (is_flat(r))
		return nack_flat(c, r, nack, call, err);
	if (nack->dead)
		return bury(c, r, nack, call, err);
	client_request_init(&a, c, call, "POST", "/v1/queue/nack");
	out_receipt(&w, &a.body, r);
	json_out_str(&w, "intent", nack->defer ? SLICE("defer") : SLICE("failure"));
	if (nack->delay > 0)
		json_out_i64(&w, "delay_seconds", seconds_up(nack->delay));
	if (nack->error && !nack->defer)
		json_out_str(&w, "last_error", slice_of(nack->error));
	json_out_finish(&w);
	return client_request_finish(&a, err);
}

struct extended {
	char etag[72];
	slu_time until, state_until;
};

static int
read_extended(const struct client_request *a, struct slu_receipt *r, slu_time *until, struct slu_err *err)
{
	static const struct json_field fields[] = {
		JSON_ROW("meta_etag", json_read_chars, struct extended, etag),
		JSON_ROW("lease_expires_at_unix", decode_seconds, struct extended, until),
		JSON_ROW("state_lease_expires_at_unix", decode_seconds, struct extended, state_until),
	};
	struct extended e = { .etag = "" };
	const int rc = decode_object(client_request_body(a), fields, sizeof fields / sizeof fields[0], &e,
				     "answer to extend", err);

	if (rc)
		return rc;
	memcpy(r->etag, e.etag, sizeof r->etag);
	r->state.until = e.state_until;
	*until = e.until;
	return 0;
}

int
slu_client_extend(struct slu_client *c, struct slu_receipt *r, slu_time by,
		  const struct slu_call *call, struct slu_err *err)
{
	NEED2(c, r, err);

	slu_time until;

	return receipt_extend(c, r, by, &until, call, err);
}

int
receipt_extend(struct slu_client *c, struct slu_receipt *r, slu_time by, slu_time *until,
	       const struct slu_call *call, struct slu_err *err)
{
	struct json_out w;
	struct client_request a;
	int rc;

	if (need_lease(by, "by", err))
		return SLU_EINVAL;
	if (is_flat(r))
		return extend_flat(c, r, by, until, call, err);
	client_request_init(&a, c, call, "POST", "/v1/queue/extend");
	a.repeatable = true;
	out_receipt(&w, &a.body, r);
	json_out_i64(&w, "extend_by_seconds", seconds_up(by));
	rc = run(&a, &w, err);
	if (!rc)
		rc = read_extended(&a, r, until, err);
	client_request_release(&a);
	return rc;
}

/* --- as text -------------------------------------------------------------------------- */

char *
slu_receipt_write(const struct slu_receipt *r)
{
	if (!r)
		return NULL;

	struct json_out w;
	struct buf b;

	if (is_flat(r))
		return write_flat(r);
	buf_init(&b, 4096);
	out_receipt(&w, &b, r);
	if (r->state.id[0])
		json_out_str(&w, "state_txn_id", slice_of(r->state.txn));
	json_out_finish(&w);
	buf_putc(&b, '\0');
	if (!b.failed)
		return b.p;
	buf_release(&b);
	return NULL;
}

void
receipt_name_state(struct slu_receipt *r, const char *owner)
{
	struct slu_lease *const l = &r->state;

	if (!l->id[0])
		return;
	memcpy(l->space, r->space, sizeof l->space);
	(void)snprintf(l->owner, sizeof l->owner, "%s", owner);
	(void)snprintf(l->key, sizeof l->key, "q/%.80s/state/%.40s", r->queue, r->id);
}

int
slu_receipt_parse(struct slu_receipt *r, const char *text, struct slu_err *err)
{
	NEED2(r, text, err);

	static const struct json_field fields[] = { RECEIPT_FIELDS(struct slu_receipt, ) };
	struct slu_err why;
	struct json j;

	*r = (struct slu_receipt){ 0 };
	if (text[strspn(text, " \t\r\n")] != '{')
		return parse_flat(r, slice_of(text), err);
	json_init(&j, slice_of(text), JSON_DEPTH);
	json_fields(&j, fields, sizeof fields / sizeof fields[0], JSON_LENIENT, r);
	if (json_end(&j, &why))
		return slu_fail(err, SLU_EINVAL, "invalid receipt: %s", why.text);
	if (!r->queue[0] || !r->id[0] || !r->lease_id[0])
		return slu_fail(err, SLU_EINVAL, "invalid receipt: missing queue, message or lease");
	receipt_name_state(r, "");
	return 0;
}
