#include "api/flat/view.h"

#include "api/flat/packed.h"
#include "form/values.h"
#include "base/id.h"
#include "base/le.h"
#include "base/parse.h"
#include "base/receipt.h"
#include "base/utf8.h"
#include "core/queue/holders.h"

#include <inttypes.h>
#include <stdio.h>

const char *const flat_view_states[MSG_STATES] = {
	[MSG_READY] = "ready",
	[MSG_DELAYED] = "delayed",
	[MSG_LEASED] = "leased",
	[MSG_HELD] = "held",
	[MSG_DEAD] = "dead",
	[MSG_DAMAGED] = "damaged",
};

const char *const flat_view_reasons[DEAD_REASONS] = {
	[DEAD_NOT] = "none",
	[DEAD_MAX_ATTEMPTS] = "max_attempts",
	[DEAD_EXPIRED] = "expired",
	[DEAD_REJECTED] = "rejected",
};

#define PLACE_FORM ",\"namespace\":\"\",\"topic\":\"\",\"queue\":\"\"" /* without the names */

enum {
	SPACE_AT = sizeof(",\"namespace\":\"") - 1
};

void
flat_view_place(struct json_out *w, struct slice space, struct slice queue)
{
	json_out_str(w, "namespace", space);
	json_out_str(w, "topic", queue);
	json_out_str(w, "queue", queue);
}

void
flat_view_id(struct json_out *w, uint64_t id)
{
	char uuid[ID_UUID_TEXT];

	json_out_u64(w, "id", id);
	json_out_plain(w, "uid", (struct slice){ id_to_uuid(id, uuid), ID_UUID_TEXT - 1 });
}

/* The members that only some messages have. */
static void
text_if_any(struct json_out *w, const char *name, struct slice text)
{
	if (text.n > 0)
		json_out_str(w, name, text);
}

static void
json_if_any(struct json_out *w, const char *name, struct slice text)
{
	if (text.n > 0)
		json_out_stored(w, name, text);
}

static void
write_trace(struct json_out *w, struct slice trace)
{
	const size_t n = MESSAGE_TRACE_PARENT;

	if (trace.n == 0)
		return;
	json_out_str(w, "traceparent", (struct slice){ trace.p, n });
	text_if_any(w, "tracestate", (struct slice){ trace.p + n, trace.n - n });
}

/* Of a dead letter that came from another queue. */
static void
write_source(struct json_out *w, const struct message *m)
{
	if (m->source.n == 0)
		return;
	json_out_object(w, "dead_letter_of");
	json_out_str(w, "queue", m->source);
	if (m->reason < DEAD_REASONS)
		json_out_str(w, "reason", slice_of(flat_view_reasons[m->reason]));
	text_if_any(w, "error", m->error);
	json_out_close(w);
}

static void
write_unique(struct json_out *w, const struct message *m)
{
	static const char *const until[UNIQUES] = { [UNIQUE_STARTED] = "started", [UNIQUE_DONE] = "done" };
	const uint64_t unique = m->terms.unique;

	if (!unique)
		return;
	json_out_object(w, "unique");
	json_out_str(w, "key", m->idem);
	if (until[unique])
		json_out_str(w, "until", slice_of(until[unique]));
	else
		json_out_time(w, "until", m->terms.unique_end);
	json_out_close(w);
}

static void
write_extras(struct json_out *w, const struct message *m)
{
	text_if_any(w, "key", m->key);
	text_if_any(w, "share", share_of_line(m->share));
	text_if_any(w, "kind", kind_of_line(m->share));
	text_if_any(w, "rule", m->rule);
	write_unique(w, m);
	if (m->terms.batch)
		json_out_u64(w, "batch", m->terms.batch);
	text_if_any(w, "correlation_id", m->correlation);
	json_if_any(w, "attributes", m->attributes);
	text_if_any(w, "content_type", m->type);
	write_trace(w, m->trace);
	write_source(w, m);
}

/* Writes the members of flat_view_place as they were written before, if the names are the same. */
static bool
repeat_place(struct json_out *w, const struct flat_place *place, struct slice space, struct slice queue)
{
	if (place->n == 0 || !slice_eq((struct slice){ place->text + SPACE_AT, place->space }, space) ||
	    !slice_eq((struct slice){ place->text + place->queue_at, place->queue }, queue))
		return false;
	buf_put(w->b, place->text, place->n);
	return true;
}

/* Keeps what flat_view_place wrote behind `at`. */
static void
keep_place(const struct json_out *w, size_t at, struct slice space, struct slice queue, struct flat_place *place)
{
	const size_t n = w->b->n - at, names = space.n + 2 * queue.n;

	place->n = 0;
	if (w->b->failed || n > sizeof place->text || n != strlen(PLACE_FORM) + names)
		return; /* a name with an escape */
	memcpy(place->text, w->b->p + at, n);
	place->n = n;
	place->space = space.n;
	place->queue = queue.n;
	place->queue_at = SPACE_AT + space.n + strlen("\",\"topic\":\"");
}

/* The object has members already. */
static void
write_place(struct json_out *w, const struct message *m, struct flat_place *place)
{
	const size_t at = w->b->n;

	if (repeat_place(w, place, m->space, m->queue))
		return;
	flat_view_place(w, m->space, m->queue);
	keep_place(w, at, m->space, m->queue, place);
}

static void
write_facts(struct json_out *w, const struct op_row *row, const struct message *m)
{
	json_out_i64(w, "priority", row->prio);
	json_out_u64(w, "attempts", row->attempts);
	json_out_u64(w, "failure_attempts", row->failures);
	json_out_u64(w, "max_attempts", row->max_attempts);
	write_extras(w, m);
	if (m->accepted == 0)
		return; /* the record cannot be read */
	json_out_time(w, "enqueued_at", m->accepted);
	json_out_time(w, "created_at", m->sent ? m->sent : m->accepted);
	json_out_time(w, "deliver_after", m->due);
}

/* Whether write_extras writes more than the content type. */
static bool
has_more(const struct message *m)
{
	return m->key.n | m->share.n | m->rule.n | m->terms.unique | m->terms.batch | m->correlation.n | m->attributes.n |
	       m->trace.n | m->source.n;
}

/* Writes the members of write_facts as they were written before, if they are the same. */
static bool
repeat_facts(struct json_out *w, const struct flat_facts *f, const struct op_row *row, const struct message *m)
{
	if (f->n == 0 || f->accepted != m->accepted || f->due != m->due || f->sent != m->sent || f->prio != row->prio ||
	    f->attempts != row->attempts || f->failures != row->failures || f->max_attempts != row->max_attempts ||
	    !slice_eq((struct slice){ f->type_text, f->type }, m->type) || has_more(m))
		return false;
	buf_put(w->b, f->text, f->n);
	return true;
}

/* Keeps what write_facts wrote behind `at`. */
static void
keep_facts(const struct json_out *w, size_t at, const struct op_row *row, const struct message *m, struct flat_facts *f)
{
	const size_t n = w->b->n - at;

	f->n = 0;
	if (w->b->failed || n > sizeof f->text || m->type.n > sizeof f->type_text || has_more(m))
		return;
	f->n = n;
	f->accepted = m->accepted;
	f->sent = m->sent;
	f->due = m->due;
	f->prio = row->prio;
	f->attempts = row->attempts;
	f->failures = row->failures;
	f->max_attempts = row->max_attempts;
	f->type = (uint16_t)m->type.n;
	if (m->type.n)
		memcpy(f->type_text, m->type.p, m->type.n);
	memcpy(f->text, w->b->p + at, n);
}

static void
write_given(struct json_out *w, const struct op_row *row, const struct message *m, struct flat_before *before)
{
	size_t at;

	if (!before) {
		flat_view_place(w, m->space, m->queue);
		write_facts(w, row, m);
		return;
	}
	write_place(w, m, &before->place);
	at = w->b->n;
	if (repeat_facts(w, &before->facts, row, m))
		return;
	write_facts(w, row, m);
	keep_facts(w, at, row, m, &before->facts);
}

static void
write_lease(struct json_out *w, const struct op_row *row)
{
	char lease[VALUE_LEASE_TEXT];

	json_out_time(w, "lease_expires_at", row->until);
	json_out_plain(w, "lease_id", slice_of(value_lease_text(row->token, lease)));
	json_out_u64(w, "fencing_token", row->token);
}

static void
write_receipt(struct json_out *w, const struct op_row *row, const struct message *m)
{
	const struct receipt r = { m->space, m->queue, row->id, row->token };
	char bytes[RECEIPT_BYTES];

	json_out_base64url(w, "receipt", (struct slice){ bytes, receipt_encode(&r, bytes) });
}

int
flat_view_as(struct slice name, enum flat_as *as, struct slu_err *err)
{
	char shown[SHOWN_TEXT];

	*as = slice_eq(name, SLICE("text"))   ? FLAT_TEXT
	      : slice_eq(name, SLICE("json")) ? FLAT_JSON
					      : FLAT_BASE64;
	if (*as || name.n == 0 || slice_eq(name, SLICE("base64")))
		return 0;
	return slu_fail(err, SLU_EINVAL, "as: invalid value %s; expected text, json or base64",
			parse_shown(name, shown));
}

static void
write_payload(struct json_out *w, struct slice payload, enum flat_as as)
{
	if (as == FLAT_JSON && json_check(payload, JSON_NONE, JSON_DEPTH, "payload", NULL) == 0)
		json_out_raw(w, "json", payload);
	else if (as != FLAT_BASE64 && utf8_valid(payload))
		json_out_str(w, "text", payload);
	else
		json_out_base64(w, "payload", payload);
}

void
flat_view_claimed(struct json_out *w, const struct op_row *row, const struct message *m,
		  struct slice checkpoint, enum flat_as as, struct flat_before *before)
{
	flat_view_id(w, row->id);
	write_receipt(w, row, m);
	if (flat_view_has_payload(m))
		write_payload(w, m->payload, as);
	write_lease(w, row);
	write_given(w, row, m, before);
	json_if_any(w, "checkpoint", checkpoint);
}

static bool
has_extras(const struct message *m)
{
	return m->key.n | m->share.n | m->correlation.n | m->attributes.n | m->type.n | m->trace.n | m->source.n;
}

static size_t
write_packed_members(struct buf *out, const struct message *m, struct slice checkpoint)
{
	const size_t at = out->n;
	struct json_out w;

	if (!has_extras(m) && !checkpoint.n)
		return 0;
	json_out_open(&w, out);
	write_extras(&w, m);
	json_if_any(&w, "checkpoint", checkpoint);
	json_out_finish(&w);
	return out->n - at;
}

static void
put_fixed(char *p, const struct op_row *row, const struct message *m, size_t members)
{
	le32_put(p, (uint32_t)members);
	le32_put(p + 4, (uint32_t)m->payload.n);
	le16_put(p + 8, 0); /* the queue of the claim */
	le16_put(p + 10, row->attempts);
	le16_put(p + 12, row->failures);
	le16_put(p + 14, row->max_attempts);
	le64_put(p + 16, row->id);
	le64_put(p + 24, row->token);
	le64_put(p + 32, (uint64_t)row->until);
	le64_put(p + 40, (uint64_t)m->accepted);
	le64_put(p + 48, (uint64_t)m->due);
	le32_put(p + 56, (uint32_t)row->prio);
	le32_put(p + 60, 0);
}

void
flat_view_packed(struct buf *out, const struct op_row *row, const struct message *m, struct slice checkpoint)
{
	const size_t at = out->n;
	size_t members;

	if (!buf_add(out, PACKED_MESSAGE_BYTES))
		return;
	members = write_packed_members(out, m, checkpoint);
	put_fixed(out->p + at, row, m, members); /* the buffer may have moved */
	buf_put(out, m->payload.p, m->payload.n);
}

const char *
flat_view_status(const struct op_row *row)
{
	if (row->state == MSG_LEASED && row->flags & MSG_EXTENDED)
		return "processing";
	return flat_view_states[row->state];
}

static void
write_dead(struct json_out *w, const struct op_row *row)
{
	json_out_str(w, "reason", slice_of(flat_view_reasons[row->reason]));
	json_out_time(w, "dead_since", row->due);
}

/* Who has the message and until when. Lease id and token settle it: only the holder gets them. */
static void
write_holder(struct json_out *w, const struct op_row *row)
{
	if (row->state != MSG_LEASED) {
		json_out_null(w, "lease_expires_at");
		return;
	}
	json_out_time(w, "lease_expires_at", row->until);
	if (row->claimed)
		json_out_time(w, "claimed_at", row->claimed);
	if (row->holder)
		json_out_str(w, "owner", holder_name(shared_text_slice(row->holder)));
	if (row->flags & MSG_CANCELED)
		json_out_bool(w, "canceled", true);
}

void
flat_view_message(struct json_out *w, const struct op_row *row, const struct message *m,
		  struct slice error, enum flat_as as)
{
	flat_view_id(w, row->id);
	json_out_str(w, "status", slice_of(flat_view_status(row)));
	if (as != FLAT_NOT_SHOWN && flat_view_has_payload(m) && row->state != MSG_DAMAGED)
		write_payload(w, m->payload, as);
	if (m->accepted)
		json_out_u64(w, "payload_size", m->payload_size);
	write_given(w, row, m, NULL);
	if (row->state == MSG_DELAYED)
		json_out_time(w, "next_delivery", row->due);
	if (row->expires != SLU_NEVER)
		json_out_time(w, "expires_at", row->expires);
	write_holder(w, row);
	if (row->state == MSG_DEAD)
		write_dead(w, row);
	if (row->state == MSG_DAMAGED && m->accepted)
		json_out_time(w, "damaged_since", row->due);
	text_if_any(w, "error", error);
}

bool
flat_view_warns(const struct op_queue *q)
{
	uint64_t depth = 0;

	for (unsigned i = MSG_READY; i < MSG_DEAD; i++)
		depth += q->count[i];
	return (q->warn_depth > 0 && depth > q->warn_depth) || (q->warn_age > 0 && q->oldest > q->warn_age);
}

void
flat_view_counts(struct json_out *w, const struct op_queue *q)
{
	uint64_t total = 0;

	for (unsigned i = MSG_READY; i < MSG_STATES; i++) {
		json_out_u64(w, flat_view_states[i], q->count[i]);
		total += q->count[i];
	}
	json_out_u64(w, "total", total);
}

void
flat_view_pause(struct json_out *w, const struct pause_note *p)
{
	if (p->by[0])
		json_out_str(w, "paused_by", slice_of(p->by));
	if (p->reason[0])
		json_out_str(w, "pause_reason", slice_of(p->reason));
	if (p->until)
		json_out_time(w, "paused_until", p->until);
}

void
flat_view_queue(struct json_out *w, const struct op_queue *q)
{
	flat_view_place(w, slice_of(q->space), slice_of(q->name));
	json_out_str(w, "display_namespace", slice_of(q->space_shown));
	json_out_str(w, "display_topic", slice_of(q->shown));
	flat_view_counts(w, q);
	json_out_bool(w, "paused", q->paused);
	flat_view_pause(w, &q->pause);
	if (q->draining)
		json_out_bool(w, "draining", true);
	json_out_bool(w, "warning", flat_view_warns(q));
}

void
flat_view_since(struct json_out *w, const struct ledger_totals *t)
{
	json_out_object(w, "since_start");
	json_out_u64(w, "accepted", t->accepted);
	json_out_u64(w, "delivered", t->delivered);
	json_out_u64(w, "finished", t->done);
	json_out_u64(w, "failed", t->failed);
	json_out_u64(w, "died", t->died);
	json_out_close(w);
}

void
flat_view_queue_details(struct json_out *w, const struct op_queue *q)
{
	flat_view_queue(w, q);
	if (q->tags[0])
		json_out_str(w, "tags", slice_of(q->tags));
	if (q->warn_depth)
		json_out_u64(w, "warn_depth", q->warn_depth);
	if (q->warn_age)
		json_out_u64(w, "warn_age_ms", (uint64_t)(q->warn_age / SLU_MS));
	if (q->oldest >= 0)
		json_out_u64(w, "oldest_ready_ms", (uint64_t)(q->oldest / SLU_MS));
	if (q->wait)
		json_out_u64(w, "wait_p95_ms", (uint64_t)(q->wait / SLU_MS));
	if (q->empty)
		json_out_u64(w, "empty_in_ms", (uint64_t)(q->empty / SLU_MS));
	json_out_u64(w, "consumers", q->workers);
	if (q->workers) {
		json_out_u64(w, "slots", q->slots);
		json_out_u64(w, "slots_used", q->used);
	}
	flat_view_since(w, &q->totals);
}

void
flat_view_cursor(struct json_out *w, uint64_t cursor)
{
	char text[24];

	(void)snprintf(text, sizeof text, "%" PRIu64, cursor);
	if (cursor)
		json_out_str(w, "cursor", slice_of(text));
}

enum msg_state
flat_view_state(struct slice name)
{
	for (unsigned i = MSG_READY; i < MSG_STATES; i++)
		if (slice_eq(name, slice_of(flat_view_states[i])))
			return i;
	return MSG_NONE;
}

int
flat_view_only(struct slice name, enum msg_state *only, struct slu_err *err)
{
	*only = flat_view_state(name);
	if (*only || name.n == 0 || slice_eq(name, SLICE("all")))
		return 0;
	return slu_fail(err, SLU_EINVAL,
			"state: expected all, ready, delayed, leased, held, dead or damaged");
}
