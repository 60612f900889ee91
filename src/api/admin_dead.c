/*
 * admin_dead.c - POST /v1/admin/dlq/redrive and .../delete: dead letters, some or all.
 *
 *      {"namespace":"a","topic":"b","ids":[1,"2"]}                these: see flat_dead.c
 *      {"namespace":"a","topic":"b","error":"timeout","limit":500}     those that match
 *
 *      OP_LIST, 1,000 rows ──> read, match ──> OP_REDRIVE, OP_DELETE      in place
 *                                         └──> OP_ENQUEUE, OP_DELETE      to another queue
 *
 *  D1  A call looks at one page and says where to go on: behind the last that it left
 *      alone, so that the cursor stays good. `more` is false when there is no more.
 *  D2  A dead letter that goes to another queue is accepted there before it is deleted
 *      here, under an idempotency key of its own: a call that is cut in between and made
 *      again makes no second one.
 */
#include "api/admin.h"

#include "api/admin_filter.h"
#include "api/flat.h"
#include "api/rows.h"
#include "api/values.h"
#include "base/mem.h"
#include "engine/payload.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	COPY_KEY = 48 /* "sluice-redrive-", an id */
};

struct state {
	struct slice namespace;
	struct slice topic;
	struct slice to; /* redrive: another queue, or n 0 */
	uint64_t cursor;
	uint32_t limit;
	bool dry_run;
	struct admin_filter filter;

	enum op_verb verb;
	slu_time now;
	struct rows rows;
	uint64_t kept;           /* the last that was left alone: D1 */
	struct op_item *items;   /* those that match */
	struct op_put *puts;     /* to: the same */
	struct payload **stored; /* to: payloads that have a file of their own, or NULL */
	uint32_t n;
	uint64_t done;
	bool more;
	int rc; /* of what could not be copied */
	struct slu_err err;
};

static const struct param params[] = {
	PARAM(name, struct state, namespace, .required = true),
	PARAM(name, struct state, topic, .required = true, .also = "queue"),
	PARAM(number, struct state, cursor),
	PARAM(count, struct state, limit, .min = 1, .max = API_PAGE_MAX),
	PARAM(flag, struct state, dry_run),
	ADMIN_FILTER_PARAMS(struct state),
	/* of redrive alone */
	PARAM(name, struct state, to),
};

enum {
	REDRIVE_PARAMS = sizeof params / sizeof params[0],
	DELETE_PARAMS = REDRIVE_PARAMS - 1
};

/* --- answer ------------------------------------------------------------------- */

static void
answer(struct ask *a)
{
	struct state *const s = a->state;
	struct json_out w;
	char cursor[24];

	json_out_init(&w, &a->call->out);
	json_out_object(&w, NULL);
	json_out_u64(&w, s->verb == OP_REDRIVE ? "redriven" : "deleted", s->done);
	json_out_u64(&w, "matched", s->n);
	json_out_u64(&w, "looked", s->rows.at);
	json_out_bool(&w, "more", s->more);
	(void)snprintf(cursor, sizeof cursor, "%" PRIu64, s->kept);
	if (s->more)
		json_out_str(&w, "cursor", slice_of(cursor));
	json_out_close(&w);
	ask_reply(a, 200);
}

static void
settled(struct ask *a)
{
	struct state *const s = a->state;

	if (a->op.rc) {
		ask_refuse_op(a, &a->op);
		return;
	}
	for (uint32_t i = 0; i < s->n; i++)
		s->done += s->items[i].rc == 0;
	answer(a);
}

/* --- the change --------------------------------------------------------------- */

static void
settle(struct ask *a, enum op_verb verb)
{
	struct state *const s = a->state;

	ask_op(a, &a->op, verb, s->namespace, s->topic);
	a->op.items = s->items;
	a->op.n_items = s->n;
	ask_run(a, settled);
}

static void
close_stored(struct state *s)
{
	for (uint32_t i = 0; s->stored && i < s->limit; i++)
		payload_close(s->stored[i]);
	s->stored = NULL;
}

/* D2: all of them are there now. */
static void
copied(struct ask *a)
{
	close_stored(a->state);
	if (a->op.rc)
		ask_refuse_op(a, &a->op);
	else
		settle(a, OP_DELETE);
}

static void
copy(struct ask *a)
{
	struct state *const s = a->state;

	ask_op(a, &a->op, OP_ENQUEUE, s->namespace, s->to);
	a->op.puts = s->puts;
	a->op.n_puts = s->n;
	ask_run(a, copied);
}

static void
change(struct ask *a)
{
	struct state *const s = a->state;
	struct slu_err err;

	if (s->n == 0 && s->cursor == 0 && !s->more && admin_filter_is_rounded(&s->filter, &err))
		ask_refuse(a, err.code, err.text);
	else if (s->n == 0 || s->dry_run)
		answer(a);
	else if (s->to.n > 0)
		copy(a);
	else
		settle(a, s->verb);
}

/* --- which -------------------------------------------------------------------- */

/* A payload that has a file of its own gets another one, on the shard it goes to. */
static int
copy_payload(struct rows *r, const struct op_row *row, struct op_put *put,
	     struct payload **out)
{
	struct state *const s = r->ask->state;
	struct engine *const from = r->op->engine;
	char *const piece = mem_alloc(ENGINE_PIECE);
	int rc = piece ? 0 : SLU_ENOMEM;

	if (!rc)
		rc = payload_open(broker_engine_of(r->ask->api->broker, ask_routes(r->ask),
						   s->namespace, s->to),
				  out, &s->err);
	for (uint64_t at = 0; !rc && at < row->payload.size;) {
		const uint64_t left = row->payload.size - at;
		const size_t n = left < ENGINE_PIECE ? (size_t)left : ENGINE_PIECE;

		rc = engine_read(from, &row->payload, at, n, piece, true, &s->err);
		if (!rc)
			rc = payload_write(*out, piece, n, &s->err);
		at += n;
		r->bytes += n;
	}
	if (!rc)
		rc = payload_seal(*out, &put->m, &s->err);
	mem_free(piece);
	return rc;
}

/* A new message out of an old one's record, which lives in the ask from now on. */
static int
make_put(struct rows *r, const struct op_row *row, struct op_put *put, struct payload **stored)
{
	struct state *const s = r->ask->state;
	char *const record = arena_alloc(&r->ask->memory, row->record.size);
	char *const key = arena_alloc(&r->ask->memory, COPY_KEY);
	int n, rc;

	if (!record || !key)
		return SLU_ENOMEM;
	memcpy(record, r->record.p, r->record.n);
	*put = (struct op_put){ 0 };
	rc = message_decode((struct slice){ record, row->record.size }, &put->m, &s->err);
	if (rc)
		return rc;
	n = snprintf(key, COPY_KEY, "sluice-redrive-%" PRIu64, row->id);
	put->m.id = 0;
	put->m.due = 0;
	put->m.queue = s->to;
	put->m.idem = (struct slice){ key, (size_t)n };
	if (!row->payload.pin)
		return 0;
	put->m.file = 0;
	put->m.mark = 0;
	return copy_payload(r, row, put, stored);
}

/* For rows_start: nothing is written, what matches is noted. */
static void
take_row(struct json_out *w, const struct op_row *row, const struct message *m,
	 struct slice error)
{
	struct rows *const r = CONTAINER(w, struct rows, w);
	struct state *const s = r->ask->state;

	if (!admin_filter_matches(&s->filter, s->now, r->op->engine, row, m, error, &r->bytes)) {
		s->kept = row->id;
		return;
	}
	if (s->to.n > 0 && !s->dry_run)
		s->rc = make_put(r, row, &s->puts[s->n], &s->stored[s->n]);
	if (s->rc) {
		r->enough = true;
		return;
	}
	s->items[s->n++] = (struct op_item){ .id = row->id };
	if (s->dry_run)
		s->kept = row->id;
	r->enough = s->n == s->limit;
}

static void
taken(struct ask *a, int rc)
{
	struct state *const s = a->state;

	s->more = s->rows.at < a->op.n_rows || a->op.cursor != 0;
	if (!rc && !s->rc) {
		change(a);
		return;
	}
	close_stored(s);
	ask_refuse(a, rc ? rc : s->rc, rc ? NULL : s->err.text);
}

/* All of them: no record has to be read for that. */
static void
take_all(struct ask *a)
{
	struct state *const s = a->state;
	struct json_out *const w = &s->rows.w;

	s->rows.ask = a;
	s->rows.op = &a->op;
	for (; s->rows.at < a->op.n_rows && !s->rows.enough; s->rows.at++)
		take_row(w, &a->op.rows[s->rows.at], &(struct message){ 0 }, (struct slice){ 0 });
	op_unpin(&a->op);
	taken(a, 0);
}

static void
found(struct ask *a)
{
	struct state *const s = a->state;

	if (a->op.rc) {
		ask_refuse_op(a, &a->op);
		return;
	}
	if (s->to.n == 0 && admin_filter_is_empty(&s->filter)) {
		take_all(a);
		return;
	}
	s->rows = (struct rows){
		.ask = a,
		.op = &a->op,
		.write = take_row,
		.done = taken,
		.patient = true,
		.max_bytes = s->to.n > 0 ? API_PAYLOAD_BYTES : API_LOOK_BYTES,
	};
	json_out_init(&s->rows.w, &a->call->out);
	rows_start(&s->rows);
}

/* --- the calls ---------------------------------------------------------------- */

static int
check(const struct state *s, struct slu_err *err)
{
	if (slice_eq(s->to, s->topic))
		return slu_fail(err, SLU_EINVAL, "to: expected another queue than the topic");
	return admin_filter_check(&s->filter, err);
}

static bool
make_room(struct ask *a, struct state *s)
{
	a->op.max_rows = API_PAGE_MAX;
	a->op.rows = arena_array(&a->memory, API_PAGE_MAX, sizeof *a->op.rows);
	s->items = arena_array(&a->memory, s->limit, sizeof *s->items);
	if (s->to.n > 0) {
		s->puts = arena_array(&a->memory, s->limit, sizeof *s->puts);
		s->stored = arena_array(&a->memory, s->limit, sizeof(struct payload *));
	}
	if (s->stored)
		memset(s->stored, 0, s->limit * sizeof(struct payload *));
	return a->op.rows && s->items && (s->to.n == 0 || (s->puts && s->stored));
}

static void
look(struct ask *a, struct state *s)
{
	struct slu_err err = { 0 };
	int rc = check(s, &err);

	if (s->to.n > 0 && s->limit > API_COPY_MAX)
		s->limit = API_COPY_MAX;
	s->kept = s->cursor;
	s->now = clock_wall(a->api->clock);
	ask_op(a, &a->op, OP_LIST, s->namespace, s->topic);
	a->op.state = MSG_DEAD;
	a->op.cursor = s->cursor;
	if (!rc && !make_room(a, s))
		rc = SLU_ENOMEM;
	if (rc)
		ask_refuse(a, rc, err.text);
	else
		ask_run(a, found);
}

/* Does the body name ids? */
static bool
has_ids(struct slice body)
{
	struct json_str name;
	struct json r;

	json_init(&r, body, JSON_DEPTH);
	json_object(&r);
	while (json_member(&r, &name)) {
		if (json_str_is(&name, SLICE("ids")))
			return true;
		json_skip(&r);
	}
	return false;
}

static void
dead(struct call *c, struct api *api, enum op_verb verb)
{
	struct ask *const a = ask_new(api, c);
	struct state *const s = a ? ask_state(a, sizeof *s) : NULL;

	if (!s)
		return;
	s->verb = verb;
	s->limit = API_PAGE_MAX;
	if (ask_body(a, params, verb == OP_REDRIVE ? REDRIVE_PARAMS : DELETE_PARAMS, s))
		look(a, s);
}

void
admin_dead_redrive(struct call *c, void *api)
{
	if (has_ids(c->body))
		flat_redrive(c, api);
	else
		dead(c, api, OP_REDRIVE);
}

void
admin_dead_delete(struct call *c, void *api)
{
	if (has_ids(c->body))
		flat_delete(c, api);
	else
		dead(c, api, OP_DELETE);
}
