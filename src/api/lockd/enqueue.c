/*
 * enqueue.c - /v1/queue/enqueue: a message in two parts, its payload as it comes.
 *
 *      meta      {"queue":"orders","delay_seconds":0,"payload_content_type":"text/plain"}
 *      payload   any bytes, or no such part
 *
 *      take ──> meta is whole: decoded, admitted ──> payload ──> call_next ──> take ...
 *                                                       │
 *                    small: in memory, of a body that came whole not even copied
 *                    large: a file thread appends each piece to a file
 *      handle ──> sealed ──> the op ──> its id
 *
 * Nothing is stored before the caller is known to be allowed to store it, and no message
 * names a payload that is not on disk.
 */
#include "api/lockd/lockd.h"

#include "api/limits.h"
#include "form/retry.h"
#include "form/unique.h"
#include "form/values.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/limit.h"
#include "engine/payload.h"
#include "http/multipart.h"

#include <inttypes.h>

enum {
	META_MAX = 128 << 10 /* attributes have at most 64 KiB */
};

enum part {
	PART_NONE,
	PART_META,
	PART_PAYLOAD,
	PART_OTHER
};

struct state {
	/* As sent in the meta part. */
	struct slice kind, namespace, queue, attributes, payload_content_type;
	int64_t delay_seconds, visibility_timeout_seconds, ttl_seconds, max_attempts;
	struct slice traceparent, tracestate;
	struct form_unique unique;

	struct multipart m;
	enum part part;
	bool decoded;    /* the meta part was decoded into put and op */
	bool ended;      /* the last boundary was seen */
	struct buf meta; /* as it arrives */
	struct op_put put;
	char correlation[CORRELATION_LONGEST];

	/* The payload. */
	struct slice first;      /* the payload, while it is one slice of the last piece */
	struct payload *payload; /* otherwise the payload; NULL: not opened */
	uint64_t bytes;
	struct hash_stream digest; /* of these bytes, with an idempotency key */
	struct upload_share upload;

	/* For the current piece. */
	bool last;
	int rc; /* the error, with err */
	struct slu_err err;
	const char *broken; /* or the fault of the multipart body; NULL: none */
};

static const struct json_field fields[] = {
	JSON_FIELDS(text, struct state, namespace, queue),
	JSON_FIELDS(i64, struct state, delay_seconds, visibility_timeout_seconds, ttl_seconds, max_attempts),
	JSON_FIELD(object, struct state, attributes, .max = MESSAGE_ATTRIBUTES_MAX),
	JSON_FIELD(text, struct state, payload_content_type),
	/* Of our own: the members of the flat API that lockd does not have. */
	JSON_ROW("priority", json_read_priority, struct state, put.m.prio),
	JSON_ROW("key", json_read_key, struct state, put.m.key),
	JSON_ROW("share", json_read_share, struct state, put.m.share),
	JSON_ROW("kind", json_read_kind, struct state, kind),
	JSON_ROW("idempotency_key", json_read_key, struct state, put.m.idem),
	JSON_ROW("keep_result", json_read_span, struct state, put.m.keep, .min = SLU_SEC, .max = API_KEEP_MAX),
	JSON_ROW("lease", json_read_span, struct state, put.m.terms.lease, .min = SLU_MS, .max = API_LEASE_MAX),
	JSON_ROW("max_runtime", json_read_span, struct state, put.m.terms.run, .min = SLU_MS, .max = API_DELAY_MAX),
	JSON_ROW("deadline", json_read_time, struct state, put.deadline),
	JSON_ROW("retry", form_retry_read_terms, struct state, put.m.terms),
	JSON_ROW("unique", form_unique_read, struct state, unique),
	JSON_FIELDS(text, struct state, traceparent, tracestate),
};

static void
ended(struct exchange *x, bool sent)
{
	struct apicall *const a = x->user;
	struct state *const s = a->state;

	(void)sent; /* the work is done either way */
	if (s) {
		payload_close(s->payload);
		uploads_end(&a->api->uploads, &s->upload);
		buf_release(&s->meta);
	}
	apicall_free(a);
}

/* --- the meta part -------------------------------------------------------------- */

/* The type of the meta part, or of the payload part. */
static bool
take_type(struct apicall *a, struct state *s)
{
	struct slice type = s->payload_content_type;
	struct slu_err err;
	char *copy;

	if (type.n == 0 && s->part == PART_PAYLOAD)
		type = s->m.type;
	if (type.n == 0)
		return true;
	if (correlation_check(type, "payload_content_type", &err))
		return lockd_reject(a, LOCKD_INVALID_BODY, err.text);
	copy = arena_alloc(&a->memory, type.n);
	if (!copy)
		return !apicall_refused(a, SLU_ENOMEM, NULL);
	memcpy(copy, type.p, type.n);
	s->put.m.type = (struct slice){ copy, type.n };
	return true;
}

/* A unique message has its key as an idempotency key. */
static bool
take_unique(struct apicall *a, struct state *s)
{
	const struct form_unique *const u = &s->unique;

	if (!u->key.n)
		return true;
	if (s->put.m.idem.n)
		return lockd_reject(a, LOCKD_INVALID_BODY, "expected unique or idempotency_key, not both");
	if (u->replace)
		return lockd_reject(a, LOCKD_INVALID_BODY, "unique: invalid mode replace; expected keep for a payload that is sent while it is read");
	s->put.m.idem = u->key;
	s->put.m.terms.unique = u->until;
	s->put.m.terms.unique_for = u->time;
	return true;
}

/* Checks the members of our own. */
static bool
take_terms(struct apicall *a, struct state *s)
{
	if (s->put.m.share.n && s->kind.n)
		return lockd_reject(a, LOCKD_INVALID_BODY, "expected share or kind, not both");
	if (s->kind.n && value_kind(&a->memory, s->kind, &s->put.m.share, NULL))
		return !apicall_refused(a, SLU_ENOMEM, NULL);
	if (s->put.deadline && s->ttl_seconds > 0)
		return lockd_reject(a, LOCKD_INVALID_BODY, "expected ttl_seconds or deadline, not both");
	if (s->put.deadline < 0)
		s->put.deadline = 1; /* a time before 1970 is past, too */
	if (!take_unique(a, s))
		return false;
	message_digest_begin(&s->digest);
	return !apicall_refused(a, value_trace(&a->memory, s->traceparent, s->tracestate, &s->put.m.trace), NULL);
}

static void
correlate(struct apicall *a, struct state *s)
{
	const char *const given = call_added(call_of(a->x), "X-Correlation-Id");

	if (!given)
		return;
	s->put.m.correlation = (struct slice){ s->correlation, strlen(given) };
	memcpy(s->correlation, given, s->put.m.correlation.n);
}

/* False: it was refused, also because the caller may not. */
static bool
decode(struct apicall *a, struct state *s)
{
	s->put.m.prio = 5;
	if (!lockd_json(a, buf_slice(&s->meta), fields, COUNT(fields), s))
		return false;
	s->put.as = (struct spelling){ lockd_trim(s->namespace), lockd_trim(s->queue) };
	if (!lockd_space(a, &s->namespace) || !lockd_queue(a, &s->queue, LOCKD_MISSING_QUEUE) ||
	    !take_type(a, s) || !take_terms(a, s))
		return false;
	s->put.m.attributes = s->attributes;
	s->put.m.max_attempts = (uint16_t)(s->max_attempts <= 0                 ? 0
					   : s->max_attempts < API_ATTEMPTS_MAX ? s->max_attempts
										: API_ATTEMPTS_MAX);
	s->put.delay = lockd_span(s->delay_seconds, API_DELAY_MAX);
	s->put.ttl = lockd_span(s->ttl_seconds, API_DELAY_MAX);
	correlate(a, s);
	apicall_op(a, &a->op, OP_ENQUEUE, s->namespace, s->queue);
	a->op.puts = &s->put;
	a->op.n_puts = 1;
	s->decoded = true;
	return apicall_pass(a);
}

/* --- the payload ---------------------------------------------------------------- */

static struct engine *
engine_of(struct apicall *a)
{
	return broker_engine_of(a->api->broker, apicall_routes(a), a->op.space, a->op.queue);
}

static int
check_size(const struct apicall *a, uint64_t n, struct slu_err *err)
{
	const uint64_t limit = atomic_load_explicit(&a->api->ratelimit.payload, memory_order_relaxed);
	const uint64_t most = limit && limit < MESSAGE_PAYLOAD_MAX ? limit : MESSAGE_PAYLOAD_MAX;

	if (n <= most)
		return 0;
	return limit_fail(err, SLU_ETOOBIG, LIMIT_PAYLOAD, 0,
			  "a payload of more than %" PRIu64 " bytes", most);
}

/* Appends to the payload. May run on a file thread. */
static int
append(struct apicall *a, struct state *s, struct slice data, struct slu_err *err)
{
	const struct slice first = s->first;
	int rc = 0;

	s->first.n = 0;
	if (!s->payload)
		rc = payload_open(engine_of(a), &s->payload, err);
	if (!rc && first.n > 0)
		rc = payload_write(s->payload, first.p, first.n, err);
	return rc ? rc : payload_write(s->payload, data.p, data.n, err);
}

static int
take_data(struct apicall *a, struct state *s, struct slice data, struct slu_err *err)
{
	s->bytes += data.n;
	if (check_size(a, s->bytes, err) ||
	    uploads_grow(&a->api->uploads, &s->upload, s->namespace,
			 payload_is_in_memory(engine_of(a)), s->bytes, err))
		return (int)err->code;
	if (s->put.m.idem.n > 0)
		hash_more(&s->digest, data.p, data.n);
	if (s->last && !s->payload && s->first.n == 0 && !payload_is_large(engine_of(a), data.n)) {
		s->first = data;
		return 0;
	}
	return append(a, s, data, err);
}

/* --- pieces --------------------------------------------------------------------- */

/* A part begins. Returns false if it refused the call. */
static bool
begin_part(struct apicall *a, struct state *s)
{
	const struct slice name = s->m.name;

	if (s->part == PART_PAYLOAD || s->decoded) {
		s->part = PART_OTHER; /* a part behind the payload */
		return true;
	}
	if (slice_eq(name, SLICE("meta")) && s->meta.n == 0) {
		s->part = PART_META;
		return true;
	}
	if (!slice_eq(name, SLICE("payload"))) {
		s->part = PART_OTHER;
		return true;
	}
	s->part = PART_PAYLOAD;
	if (s->meta.n > 0)
		return decode(a, s);
	return lockd_reject(a, LOCKD_MULTIPART_ERROR,
			    "invalid body: the part payload is before the part meta");
}

static void
take_part(struct apicall *a, struct state *s, struct slice data)
{
	if (s->part == PART_PAYLOAD)
		s->rc = take_data(a, s, data, &s->err);
	else if (s->part == PART_META)
		buf_put(&s->meta, data.p, data.n);
	if (s->meta.failed)
		s->rc = slu_fail(&s->err, s->meta.n + data.n > META_MAX ? SLU_ETOOBIG : SLU_ENOMEM,
				 "the part meta has more than %d bytes", META_MAX);
}

/* Read a piece. False: the call was answered. On a file thread only parts behind the
 * payload begin, and those ask for nothing. */
static bool
read_piece(struct apicall *a, struct state *s)
{
	struct slice in = call_of(a->x)->body, data;

	while (!s->rc) {
		switch (multipart_next(&s->m, &in, &data)) {
		case MULTIPART_MORE:
			return true;
		case MULTIPART_END:
			s->ended = true;
			return true;
		case MULTIPART_PART:
			if (!begin_part(a, s))
				return false;
			break;
		case MULTIPART_DATA:
			take_part(a, s, data);
			break;
		case MULTIPART_REFUSED:
			s->broken = s->m.why;
			return true;
		}
	}
	return true;
}

/* Continues on the loop after a piece was read. */
static void
piece_read(struct apicall *a, struct state *s)
{
	if (s->rc)
		apicall_refuse_err(a, &s->err, -1);
	else if (s->broken)
		lockd_refuse_code(call_of(a->x), LOCKD_MULTIPART_ERROR, s->broken);
	else
		call_next(call_of(a->x));
}

static int
read_slowly(struct apicall *a)
{
	(void)read_piece(a, a->state); /* true: no part begins here that could be refused */
	return 0;
}

static void
read_done(struct apicall *a, int rc)
{
	struct state *const s = a->state;

	if (rc)
		s->rc = slu_fail(&s->err, (enum slu_code)rc, "out of memory");
	piece_read(a, s);
}

/* Returns false if it refused the call. */
static bool
begin(struct call *c, struct api *api)
{
	struct apicall *const a = apicall_new(api, c);
	struct state *const s = a ? apicall_state(a, sizeof *s) : NULL;

	if (!s)
		return false;
	buf_init(&s->meta, META_MAX);
	c->x.ended = ended;
	if (multipart_init(&s->m, call_field(c, "content-type")))
		return true;
	lockd_refuse_code(c, LOCKD_INVALID_CONTENT_TYPE, NULL);
	return false;
}

void
lockd_enqueue_take(struct call *c, void *api)
{
	struct apicall *a;
	struct state *s;

	if (!c->x.user && !begin(c, api))
		return;
	a = c->x.user;
	s = a->state;
	s->last = c->x.arrived;
	if (s->part == PART_PAYLOAD && payload_is_large(engine_of(a), s->bytes + c->body.n))
		apicall_job(a, read_slowly, read_done);
	else if (read_piece(a, s))
		piece_read(a, s);
}

/* --- the message ------------------------------------------------------------------ */

static void
write_message(struct json_out *w, const struct state *s)
{
	const int64_t visibility = s->visibility_timeout_seconds;
	const struct message *const m = &s->put.m;
	char uuid[ID_UUID_TEXT];

	json_out_str(w, "namespace", s->namespace);
	json_out_str(w, "queue", s->queue);
	json_out_str(w, "message_id", slice_of(id_to_uuid(m->id, uuid)));
	json_out_i64(w, "attempts", 0);
	json_out_u64(w, "max_attempts", s->put.max_attempts);
	json_out_i64(w, "not_visible_until_unix",
		     (m->due + (s->put.delay ? SLU_SEC - 1 : 0)) / SLU_SEC);
	json_out_i64(w, "visibility_timeout_seconds",
		     visibility > 0 ? visibility : LOCKD_VISIBILITY / SLU_SEC);
	json_out_u64(w, "payload_bytes", m->payload_size);
}

/* A message without a correlation id uses its message id, which the owner of its shard gives. */
static void
answer(struct apicall *a)
{
	const struct state *const s = a->state;
	const struct message *const m = &s->put.m;
	char uuid[ID_UUID_TEXT];
	struct slice correlation;
	struct json_out w;

	if (apicall_failed(a))
		return;
	correlation = m->correlation.n ? m->correlation : slice_of(id_to_uuid(m->id, uuid));
	apicall_object(a, &w);
	write_message(&w, s);
	json_out_str(&w, "correlation_id", correlation);
	if (m->idem.n > 0)
		json_out_bool(&w, "duplicate", s->put.existed);
	json_out_close(&w);
	lockd_correlate(call_of(a->x), correlation);
	apicall_reply(a, 200);
}

static void
sealed(struct apicall *a, int rc)
{
	struct state *const s = a->state;

	if (rc && s->err.code != (enum slu_code)rc)
		apicall_refuse(a, rc, NULL);
	else if (rc)
		apicall_refuse_err(a, &s->err, -1);
	else
		apicall_run(a, answer);
}

static int
seal_payload(struct apicall *a)
{
	struct state *const s = a->state;

	return payload_seal(s->payload, &s->put.m, &s->err);
}

static void
seal(struct apicall *a, struct state *s)
{
	s->put.m.payload = s->first;
	s->put.m.payload_size = s->bytes;
	s->put.m.digest = s->put.m.idem.n > 0 ? message_digest_end(&s->digest) : 0;
	if (s->payload && payload_is_large(engine_of(a), s->bytes))
		apicall_job(a, seal_payload, sealed);
	else
		sealed(a, s->payload ? seal_payload(a) : 0);
}

void
lockd_enqueue(struct call *c, void *api)
{
	struct apicall *a;
	struct state *s;

	if (!c->x.user && !begin(c, api))
		return;
	a = c->x.user;
	s = a->state;
	if (!s->ended)
		lockd_refuse_code(c, LOCKD_MULTIPART_ERROR, "invalid body: it ends before its last boundary");
	else if (s->meta.n == 0)
		lockd_refuse_code(c, LOCKD_MULTIPART_ERROR, "invalid body: the part meta is missing");
	else if (s->decoded || decode(a, s))
		seal(a, s);
}
