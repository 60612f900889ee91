/*
 * lockd_enqueue.c - /v1/queue/enqueue: a message in two parts, its payload as it comes.
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
#include "api/lockd.h"

#include "api/limits.h"
#include "api/values.h"
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
	struct slice namespace, queue, attributes, payload_content_type;
	int64_t delay_seconds, visibility_timeout_seconds, ttl_seconds, max_attempts;

	struct multipart m;
	enum part part;
	bool decoded;    /* the meta part; put and op are made of it */
	bool ended;      /* the last boundary was seen */
	struct buf meta; /* as it arrives */
	struct op_put put;
	char correlation[CORRELATION_LONGEST];

	/* The payload. */
	struct slice first;      /* its bytes, while they are one slice of the last piece */
	struct payload *payload; /* or here; NULL: not yet */
	uint64_t bytes;
	struct upload upload;

	/* Of the piece that is being read. */
	bool last;
	int rc; /* and err, or */
	struct slu_err err;
	const char *broken; /* why it is no multipart body */
	uv_work_t work;
};

static const struct json_field fields[] = {
	JSON_FIELD(text, struct state, namespace),
	JSON_FIELD(text, struct state, queue),
	JSON_FIELD(i64, struct state, delay_seconds),
	JSON_FIELD(i64, struct state, visibility_timeout_seconds),
	JSON_FIELD(i64, struct state, ttl_seconds),
	JSON_FIELD(i64, struct state, max_attempts),
	JSON_FIELD(object, struct state, attributes, .max = MESSAGE_ATTRIBUTES_MAX),
	JSON_FIELD(text, struct state, payload_content_type),
};

static void
ended(struct call *c, bool sent)
{
	struct ask *const a = c->user;
	struct state *const s = a->state;

	(void)sent; /* what was asked has happened, whoever knows it */
	if (s) {
		payload_close(s->payload);
		upload_end(&a->api->uploads, &s->upload);
		buf_release(&s->meta);
	}
	ask_free(a);
}

/* --- the meta part -------------------------------------------------------------- */

/* What the meta part says; else what the payload part does. */
static bool
take_type(struct ask *a, struct state *s)
{
	struct slice type = s->payload_content_type;
	struct slu_err err;
	char *copy;

	if (type.n == 0 && s->part == PART_PAYLOAD)
		type = s->m.type;
	if (type.n == 0)
		return true;
	if (correlation_check(type, "payload_content_type", &err)) {
		lockd_refuse_code(a->call, LOCKD_INVALID_BODY, err.text);
		return false;
	}
	copy = arena_alloc(&a->memory, type.n);
	if (!copy) {
		ask_refuse(a, SLU_ENOMEM, NULL);
		return false;
	}
	memcpy(copy, type.p, type.n);
	s->put.m.type = (struct slice){ copy, type.n };
	return true;
}

/* A message that nobody gave a correlation id has its own id as such. */
static void
correlate(struct ask *a, struct state *s)
{
	const char *const given = call_added(a->call, "X-Correlation-Id");

	if (given)
		s->put.m.correlation.n = strlen(given);
	else
		s->put.m.correlation.n = ID_UUID_TEXT - 1;
	if (given)
		memcpy(s->correlation, given, s->put.m.correlation.n);
	else
		(void)id_to_uuid(s->put.m.id, s->correlation);
	s->put.m.correlation.p = s->correlation;
}

/* False: it was refused, also because the caller may not. */
static bool
decode(struct ask *a, struct state *s)
{
	if (!lockd_json(a, buf_slice(&s->meta), fields, sizeof fields / sizeof fields[0], s))
		return false;
	s->put.as = (struct spelling){ lockd_trim(s->namespace), lockd_trim(s->queue) };
	if (!lockd_space(a, &s->namespace) || !lockd_queue(a, &s->queue, LOCKD_MISSING_QUEUE) ||
	    !take_type(a, s))
		return false;
	s->put.m.id = broker_new_id(a->api->broker);
	s->put.m.prio = 5;
	s->put.m.attributes = s->attributes;
	s->put.m.max_attempts = (uint16_t)(s->max_attempts <= 0                 ? 0
					   : s->max_attempts < API_ATTEMPTS_MAX ? s->max_attempts
										: API_ATTEMPTS_MAX);
	s->put.delay = lockd_span(s->delay_seconds, API_DELAY_MAX);
	s->put.ttl = lockd_span(s->ttl_seconds, API_DELAY_MAX);
	correlate(a, s);
	ask_op(a, &a->op, OP_ENQUEUE, s->namespace, s->queue);
	a->op.puts = &s->put;
	a->op.n_puts = 1;
	s->decoded = true;
	return ask_pass(a);
}

/* --- the payload ---------------------------------------------------------------- */

static struct engine *
engine_of(struct ask *a)
{
	return broker_engine_of(a->api->broker, ask_routes(a), a->op.space, a->op.queue);
}

static int
check_size(const struct ask *a, uint64_t n, struct slu_err *err)
{
	const uint64_t limit = atomic_load_explicit(&a->api->gate.payload, memory_order_relaxed);
	const uint64_t most = limit && limit < MESSAGE_PAYLOAD_MAX ? limit : MESSAGE_PAYLOAD_MAX;

	if (n <= most)
		return 0;
	return limit_fail(err, SLU_ETOOBIG, LIMIT_PAYLOAD, 0,
			  "a payload of more than %" PRIu64 " bytes", most);
}

/* Behind what is there. May be on a file thread. */
static int
append(struct ask *a, struct state *s, struct slice data, struct slu_err *err)
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
take_data(struct ask *a, struct state *s, struct slice data, struct slu_err *err)
{
	s->bytes += data.n;
	if (check_size(a, s->bytes, err) ||
	    upload_grow(&a->api->uploads, &s->upload, s->namespace,
			payload_is_in_memory(engine_of(a)), s->bytes, err))
		return (int)err->code;
	if (s->last && !s->payload && s->first.n == 0 && !payload_is_large(engine_of(a), data.n)) {
		s->first = data;
		return 0;
	}
	return append(a, s, data, err);
}

/* --- pieces --------------------------------------------------------------------- */

/* A part begins. False: it was refused. */
static bool
begin_part(struct ask *a, struct state *s)
{
	const struct slice name = s->m.name;

	if (s->part == PART_PAYLOAD || s->decoded) {
		s->part = PART_OTHER; /* whatever stands behind the payload */
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
	lockd_refuse_code(a->call, LOCKD_MULTIPART_ERROR,
			  "the part payload stands before the part meta");
	return false;
}

static void
take_part(struct ask *a, struct state *s, struct slice data)
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
read_piece(struct ask *a, struct state *s)
{
	struct slice in = a->call->body, data;

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

/* On the loop: what came of the piece. */
static void
piece_read(struct ask *a, struct state *s)
{
	if (s->rc)
		ask_refuse_err(a, &s->err, -1);
	else if (s->broken)
		lockd_refuse_code(a->call, LOCKD_MULTIPART_ERROR, s->broken);
	else
		call_next(a->call);
}

static void
read_on_file_thread(uv_work_t *work)
{
	struct ask *const a = work->data;

	(void)read_piece(a, a->state); /* the payload has begun: it answers nothing */
}

static void
back_on_loop(uv_work_t *work, int status)
{
	struct ask *const a = work->data;

	(void)status; /* nobody cancels it */
	piece_read(a, a->state);
}

/* False: it was refused. */
static bool
begin(struct call *c, struct api *api)
{
	struct ask *const a = ask_new(api, c);
	struct state *const s = a ? ask_state(a, sizeof *s) : NULL;

	if (!s)
		return false;
	buf_init(&s->meta, META_MAX);
	c->ended = ended;
	if (multipart_init(&s->m, call_field(c, "content-type")))
		return true;
	lockd_refuse_code(c, LOCKD_INVALID_CONTENT_TYPE, NULL);
	return false;
}

void
lockd_enqueue_take(struct call *c, void *api)
{
	struct ask *a;
	struct state *s;

	if (!c->user && !begin(c, api))
		return;
	a = c->user;
	s = a->state;
	s->last = c->arrived;
	s->work.data = a;
	if (s->part == PART_PAYLOAD && payload_is_large(engine_of(a), s->bytes + c->body.n) &&
	    uv_queue_work(loop_uv(call_loop(c)), &s->work, read_on_file_thread,
			  back_on_loop) == 0)
		return;
	if (read_piece(a, s))
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
	json_out_str(w, "correlation_id", m->correlation);
}

static void
answer(struct ask *a)
{
	const struct state *const s = a->state;
	struct json_out w;

	if (a->op.rc) {
		ask_refuse_op(a, &a->op);
		return;
	}
	json_out_init(&w, &a->call->out);
	json_out_object(&w, NULL);
	write_message(&w, s);
	json_out_close(&w);
	lockd_correlate(a->call, s->put.m.correlation);
	lockd_reply(a, 200);
}

static void
sealed(struct ask *a, struct state *s)
{
	if (s->rc)
		ask_refuse_err(a, &s->err, -1);
	else
		ask_run(a, answer);
}

static void
seal_on_file_thread(uv_work_t *work)
{
	const struct ask *const a = work->data;
	struct state *const s = a->state;

	s->rc = payload_seal(s->payload, &s->put.m, &s->err);
}

static void
sealed_on_loop(uv_work_t *work, int status)
{
	struct ask *const a = work->data;

	(void)status; /* nobody cancels it */
	sealed(a, a->state);
}

static void
seal(struct ask *a, struct state *s)
{
	s->put.m.payload = s->first;
	s->put.m.payload_size = s->bytes;
	if (s->payload && payload_is_large(engine_of(a), s->bytes) &&
	    uv_queue_work(loop_uv(call_loop(a->call)), &s->work, seal_on_file_thread,
			  sealed_on_loop) == 0)
		return;
	if (s->payload)
		s->rc = payload_seal(s->payload, &s->put.m, &s->err);
	sealed(a, s);
}

void
lockd_enqueue(struct call *c, void *api)
{
	struct ask *a;
	struct state *s;

	if (!c->user && !begin(c, api))
		return;
	a = c->user;
	s = a->state;
	s->work.data = a;
	if (!s->ended)
		lockd_refuse_code(c, LOCKD_MULTIPART_ERROR, "the body ends before its last boundary");
	else if (s->meta.n == 0)
		lockd_refuse_code(c, LOCKD_MULTIPART_ERROR, "there is no part meta");
	else if (s->decoded || decode(a, s))
		seal(a, s);
}
