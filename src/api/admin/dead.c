/*
 * dead.c - POST /v1/admin/dlq/redrive and .../delete: dead letters, some or all.
 *
 *      {"namespace":"a","queue":"b","ids":[1,"2"]}                the named ones: flat/dead.c
 *      {"namespace":"a","queue":"b","error":"timeout","limit":500}     those that match
 *
 *      OP_LIST, 1,000 rows ──> read, match ──> OP_REDRIVE, OP_DELETE      in place
 *                                         └──> OP_ENQUEUE, OP_DELETE      to another queue
 *
 *  REDRIVE-1  A request looks at one page and answers with a cursor: behind the last message
 *             that it did not change, so that the cursor stays valid. `more` is false at the end.
 *  REDRIVE-2  A dead letter for another queue is accepted there before it is deleted here, with
 *             an idempotency key of its own: a request that is cut in between and repeated does
 *             not make a second message.
 */
#include "api/admin/admin.h"

#include "api/admin/filter.h"
#include "api/flat/flat.h"
#include "api/handler.h"
#include "api/rows.h"
#include "base/mem.h"
#include "engine/payload.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	COPY_KEY = 48 /* "sluice-redrive-", an id */
};

struct state {
	struct slice namespace;
	struct slice queue;
	struct slice to; /* redrive: the target queue; n 0: the same queue */
	uint64_t cursor;
	uint32_t limit;
	bool dry_run;
	struct admin_filter filter;

	slu_time now;
	struct rows rows;
	uint64_t kept;           /* the last message that is not changed: REDRIVE-1 */
	struct op_item *items;   /* those that match */
	struct op_put *puts;     /* to: the same */
	struct payload **stored; /* to: payloads with a file of their own, or NULL */
	uint32_t n;
	uint64_t done;
	bool more;
	int rc; /* why a message could not be copied */
	struct slu_err err;
};

static const struct param params[] = {
	PARAM_QUEUE(struct state),
	PARAM_PAGE(struct state, API_PAGE_MAX),
	PARAM(flag, struct state, dry_run),
	ADMIN_FILTER_PARAMS(struct state),
	/* only for redrive */
	PARAM(name, struct state, to),
};

enum {
	REDRIVE_PARAMS = COUNT(params),
	DELETE_PARAMS = REDRIVE_PARAMS - 1
};

/* --- answer ------------------------------------------------------------------- */

static void
answer(struct apicall *a)
{
	struct state *const s = a->state;
	struct json_out w;
	char cursor[24];

	apicall_object(a, &w);
	json_out_u64(&w, a->arg == OP_REDRIVE ? "redriven" : "deleted", s->done);
	json_out_u64(&w, "matched", s->n);
	json_out_u64(&w, "looked", s->rows.at);
	json_out_bool(&w, "more", s->more);
	(void)snprintf(cursor, sizeof cursor, "%" PRIu64, s->kept);
	if (s->more)
		json_out_str(&w, "cursor", slice_of(cursor));
	apicall_reply_object(a, &w, 200);
}

static void
settled(struct apicall *a)
{
	struct state *const s = a->state;

	if (apicall_failed(a))
		return;
	for (uint32_t i = 0; i < s->n; i++)
		s->done += s->items[i].rc == 0;
	answer(a);
}

/* --- the change --------------------------------------------------------------- */

static void
settle(struct apicall *a, enum op_verb verb)
{
	struct state *const s = a->state;

	apicall_op(a, &a->op, verb, s->namespace, s->queue);
	a->op.items = s->items;
	a->op.n_items = s->n;
	apicall_run(a, settled);
}

static void
close_stored(struct state *s)
{
	for (uint32_t i = 0; s->stored && i < s->limit; i++)
		payload_close(s->stored[i]);
	s->stored = NULL;
}

/* REDRIVE-2: the other queue has accepted all messages. */
static void
copied(struct apicall *a)
{
	close_stored(a->state);
	if (a->op.rc)
		apicall_refuse_op(a, &a->op);
	else
		settle(a, OP_DELETE);
}

static void
copy(struct apicall *a)
{
	struct state *const s = a->state;

	apicall_op(a, &a->op, OP_ENQUEUE, s->namespace, s->to);
	a->op.puts = s->puts;
	a->op.n_puts = s->n;
	apicall_run(a, copied);
}

static void
change(struct apicall *a)
{
	struct state *const s = a->state;
	struct slu_err err;

	if (s->n == 0 && s->cursor == 0 && !s->more && admin_filter_is_rounded(&s->filter, &err))
		apicall_refuse(a, err.code, err.text);
	else if (s->n == 0 || s->dry_run)
		answer(a);
	else if (s->to.n > 0)
		copy(a);
	else
		settle(a, (enum op_verb)a->arg);
}

/* --- which -------------------------------------------------------------------- */

/* Copies a payload with a file of its own to a new file on the shard of the other queue. */
static int
copy_payload(struct rows *r, const struct op_row *row, struct op_put *put,
	     struct payload **out)
{
	struct state *const s = r->apicall->state;
	struct engine *const from = r->op->engine;
	char *const piece = mem_alloc(ENGINE_PIECE);
	int rc = piece ? 0 : SLU_ENOMEM;

	if (!rc)
		rc = payload_open(broker_engine_of(r->apicall->api->broker, apicall_routes(r->apicall),
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

/* Makes a new message from the record of a dead letter. Copies the record to the memory of the apicall. */
static int
make_put(struct rows *r, const struct op_row *row, struct op_put *put, struct payload **stored)
{
	struct state *const s = r->apicall->state;
	char *const record = arena_alloc(&r->apicall->memory, row->record.size);
	char *const key = arena_alloc(&r->apicall->memory, COPY_KEY);
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
	put->m.terms.batch = 0; /* the member has failed */
	put->m.queue = s->to;
	put->m.idem = (struct slice){ key, (size_t)n };
	if (!row->payload.pin)
		return 0;
	put->m.file = 0;
	put->m.mark = 0;
	return copy_payload(r, row, put, stored);
}

/* For rows_start: writes nothing, and collects the dead letters that match. */
static void
take_row(struct json_out *w, const struct op_row *row, const struct message *m,
	 struct slice error)
{
	struct rows *const r = CONTAINER(w, struct rows, w);
	struct state *const s = r->apicall->state;

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
taken(struct apicall *a, int rc)
{
	struct state *const s = a->state;

	s->more = s->rows.at < a->op.n_rows || a->op.cursor != 0;
	if (!rc && !s->rc) {
		change(a);
		return;
	}
	close_stored(s);
	apicall_refuse(a, rc ? rc : s->rc, rc ? NULL : s->err.text);
}

/* Takes all rows of the page without reading their records. */
static void
take_all(struct apicall *a)
{
	struct state *const s = a->state;
	struct json_out *const w = &s->rows.w;

	s->rows.apicall = a;
	s->rows.op = &a->op;
	for (; s->rows.at < a->op.n_rows && !s->rows.enough; s->rows.at++)
		take_row(w, &a->op.rows[s->rows.at], &(struct message){ 0 }, (struct slice){ 0 });
	op_unpin(&a->op);
	taken(a, 0);
}

static void
found(struct apicall *a)
{
	struct state *const s = a->state;

	if (apicall_failed(a))
		return;
	if (s->to.n == 0 && admin_filter_is_empty(&s->filter)) {
		take_all(a);
		return;
	}
	s->rows = (struct rows){
		.apicall = a,
		.op = &a->op,
		.write = take_row,
		.done = taken,
		.patient = true,
		.max_bytes = s->to.n > 0 ? API_PAYLOAD_BYTES : API_LOOK_BYTES,
	};
	json_out_init(&s->rows.w, &a->x->out);
	rows_start(&s->rows);
}

/* --- the calls ---------------------------------------------------------------- */

static int
check(const struct state *s, struct slu_err *err)
{
	if (slice_eq(s->to, s->queue))
		return slu_fail(err, SLU_EINVAL, "to: expected another queue");
	return admin_filter_check(&s->filter, err);
}

static bool
make_room(struct apicall *a, struct state *s)
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
look(struct apicall *a)
{
	struct state *const s = a->state;
	struct slu_err err = { 0 };
	int rc = check(s, &err);

	if (s->to.n > 0 && s->limit > API_COPY_MAX)
		s->limit = API_COPY_MAX;
	s->kept = s->cursor;
	s->now = clock_wall(a->api->clock);
	apicall_op(a, &a->op, OP_LIST, s->namespace, s->queue);
	a->op.state = MSG_DEAD;
	a->op.cursor = s->cursor;
	if (!rc && !make_room(a, s))
		rc = SLU_ENOMEM;
	if (rc)
		apicall_refuse(a, rc, err.text);
	else
		apicall_run(a, found);
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

static const struct handler redrive = { look, sizeof(struct state), .body = params, .n = REDRIVE_PARAMS, .arg = OP_REDRIVE };
static const struct handler delete = { look, sizeof(struct state), .body = params, .n = DELETE_PARAMS, .arg = OP_DELETE };

void
admin_dead_redrive(struct call *c, void *api)
{
	apicall_start(c, api, has_ids(c->body) ? &flat_redrive : &redrive);
}

void
admin_dead_delete(struct call *c, void *api)
{
	apicall_start(c, api, has_ids(c->body) ? &flat_delete : &delete);
}
