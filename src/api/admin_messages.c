/*
 * admin_messages.c - messages: browse and search, one with its history, delete.
 *
 *      messages, dlq   OP_LIST, up to 1,000 rows ──> read, those that match are written
 *      message         OP_GET on the queue's shard, or on all of them
 *      delete          OP_DELETE in the same way
 */
#include "api/admin.h"

#include "api/admin_filter.h"
#include "api/flat_view.h"
#include "api/rows.h"

#include <inttypes.h>
#include <stdio.h>

/* --- browse ------------------------------------------------------------------- */

struct state {
	struct slice namespace;
	struct slice topic;
	struct slice state;
	uint64_t cursor;
	uint32_t limit;
	struct admin_filter filter;

	slu_time now;
	uint32_t shown;
	struct rows rows;
};

static const struct param params[] = {
	PARAM(name, struct state, namespace, .required = true),
	PARAM(name, struct state, topic, .required = true, .also = "queue"),
	PARAM(count, struct state, limit, .min = 1, .max = API_PAGE_MAX),
	PARAM(number, struct state, cursor),
	ADMIN_FILTER_PARAMS(struct state),
	/* of messages alone */
	PARAM(word, struct state, state),
};

enum {
	MESSAGES_PARAMS = sizeof params / sizeof params[0],
	DLQ_PARAMS = MESSAGES_PARAMS - 1
};

static void
write_row(struct json_out *w, const struct op_row *row, const struct message *m,
	  struct slice error)
{
	struct rows *const r = CONTAINER(w, struct rows, w);
	struct state *const s = r->ask->state;

	if (!admin_filter_matches(&s->filter, s->now, r->op->engine, row, m, error, &r->bytes))
		return;
	json_out_object(w, NULL);
	flat_view_message(w, row, m, error, w->b->n < API_PAYLOAD_BYTES ? FLAT_BASE64 : FLAT_NOT_SHOWN);
	json_out_close(w);
	r->enough = ++s->shown == s->limit;
}

/* Behind what was looked at: 0 when that was all. */
static uint64_t
cursor_after(const struct op *op, uint32_t looked)
{
	return looked < op->n_rows ? op->rows[looked - 1].after : op->cursor;
}

static void
written(struct ask *a, int rc)
{
	struct state *const s = a->state;
	struct json_out *const w = &s->rows.w;
	struct slu_err err;

	if (rc) {
		ask_refuse(a, rc, NULL);
		return;
	}
	if (s->shown == 0 && s->cursor == 0 && cursor_after(&a->op, s->rows.at) == 0 &&
	    admin_filter_is_rounded(&s->filter, &err)) {
		ask_refuse(a, err.code, err.text);
		return;
	}
	json_out_close(w);
	json_out_u64(w, "looked", s->rows.at);
	flat_view_cursor(w, cursor_after(&a->op, s->rows.at));
	json_out_close(w);
	ask_reply(a, 200);
}

static void
answer_page(struct ask *a)
{
	struct state *const s = a->state;

	if (a->op.rc) {
		ask_refuse_op(a, &a->op);
		return;
	}
	s->rows = (struct rows){
		.ask = a,
		.op = &a->op,
		.write = write_row,
		.done = written,
		.patient = !admin_filter_is_empty(&s->filter),
		.max_bytes = API_LOOK_BYTES,
	};
	json_out_init(&s->rows.w, &a->call->out);
	json_out_object(&s->rows.w, NULL);
	json_out_array(&s->rows.w, "messages");
	rows_start(&s->rows);
}

static void
list(struct ask *a, struct state *s, enum msg_state only)
{
	struct slu_err err = { 0 };
	int rc = admin_filter_check(&s->filter, &err);

	if (rc) {
		ask_refuse(a, rc, err.text);
		return;
	}
	s->now = clock_wall(a->api->clock);
	ask_op(a, &a->op, OP_LIST, s->namespace, s->topic);
	a->op.state = only;
	a->op.cursor = s->cursor;
	a->op.max_rows = admin_filter_is_empty(&s->filter) ? s->limit : API_PAGE_MAX;
	a->op.rows = arena_array(&a->memory, a->op.max_rows, sizeof *a->op.rows);
	if (a->op.rows)
		ask_run(a, answer_page);
	else
		ask_refuse(a, SLU_ENOMEM, NULL);
}

void
admin_messages(struct call *c, void *api)
{
	struct ask *const a = ask_new(api, c);
	struct state *const s = a ? ask_state(a, sizeof *s) : NULL;
	struct slu_err err = { 0 };
	enum msg_state only;

	if (!s)
		return;
	s->limit = API_PAGE_DEFAULT;
	if (!ask_params(a, params, MESSAGES_PARAMS, s))
		return;
	if (flat_view_only(s->state, &only, &err))
		ask_refuse(a, err.code, err.text);
	else
		list(a, s, only);
}

void
admin_dlq(struct call *c, void *api)
{
	struct ask *const a = ask_new(api, c);
	struct state *const s = a ? ask_state(a, sizeof *s) : NULL;

	if (!s)
		return;
	s->limit = API_PAGE_DEFAULT;
	if (ask_params(a, params, DLQ_PARAMS, s))
		list(a, s, MSG_DEAD);
}

/* --- one message -------------------------------------------------------------- */

struct one {
	struct slice namespace;
	struct slice topic; /* n 0: whichever it is in */
	struct given_id id;
	struct op_row *row;    /* a shard */
	struct op_item *items; /* delete: a shard */
	struct rows rows;
};

static const struct param one_params[] = {
	PARAM(name, struct one, namespace, .required = true),
	PARAM(name, struct one, topic, .also = "queue"),
	PARAM(id, struct one, id, .required = true),
};

enum {
	ONE_PARAMS = sizeof one_params / sizeof one_params[0]
};

/* An op on the shard of its queue, or one on each. */
static bool
spread(struct ask *a, struct one *o, enum op_verb verb)
{
	const uint32_t n = o->topic.n ? 1 : broker_shards(a->api->broker);

	a->n_ops = n;
	a->ops = arena_array(&a->memory, n, sizeof *a->ops);
	o->row = arena_array(&a->memory, n, sizeof *o->row);
	o->items = arena_array(&a->memory, n, sizeof *o->items);
	if (!a->ops || !o->row || !o->items) {
		ask_refuse(a, SLU_ENOMEM, NULL);
		return false;
	}
	for (uint32_t i = 0; i < n; i++) {
		struct op *const op = &a->ops[i];

		ask_op(a, op, verb, o->namespace, o->topic);
		op->cursor = (uint64_t)i << BROKER_CURSOR_BITS;
		op->id = o->id.id;
		op->rows = &o->row[i];
		op->max_rows = 1;
		o->items[i] = (struct op_item){ .id = o->id.id };
		op->items = &o->items[i];
		op->n_items = verb == OP_DELETE;
	}
	return true;
}

/* The op that found it; or the one that failed for another reason; or any. */
static struct op *
finder(struct ask *a)
{
	struct op *best = &a->ops[0];

	for (unsigned i = 0; i < a->n_ops; i++) {
		struct op *const op = &a->ops[i];
		const int rc = op->rc || op->verb != OP_DELETE ? op->rc : op->items->rc;

		op->rc = rc;
		if (best->rc == 0)
			break;
		if (rc != SLU_ENOTFOUND)
			best = op;
	}
	return best;
}

static void
refuse_one(struct ask *a, const struct op *op, const struct one *o)
{
	char text[160];

	if (op->rc == SLU_ENOTFOUND && o->id.rounded) {
		ask_refuse_id(a, op, o->id);
		return;
	}
	if (op->rc == SLU_ENOTFOUND)
		(void)snprintf(text, sizeof text,
			       "no message %" PRIu64 " here; perhaps it was finished before",
			       o->id.id);
	else if (op->rc == SLU_ELEASE)
		(void)snprintf(text, sizeof text,
			       "message %" PRIu64 " is leased; wait for its holder or for the "
			       "end of the lease",
			       o->id.id);
	if (op->rc == SLU_ENOTFOUND || op->rc == SLU_ELEASE)
		ask_refuse(a, op->rc, text);
	else
		ask_refuse_op(a, op);
}

static void
write_event(struct json_out *w, const char *event, slu_time at)
{
	json_out_object(w, NULL);
	json_out_str(w, "event", slice_of(event));
	json_out_time(w, "at", at);
}

/* What is known of its past and of what will happen by itself, in order. */
static void
write_history(struct json_out *w, const struct op_row *row, const struct message *m)
{
	json_out_array(w, "history");
	write_event(w, "accepted", m->accepted);
	json_out_close(w);
	if (m->due > m->accepted) {
		write_event(w, "due", m->due);
		json_out_close(w);
	}
	if (row->state == MSG_LEASED) {
		write_event(w, "leased", row->claimed);
		json_out_u64(w, "attempt", row->attempts);
		json_out_time(w, "until", row->until);
		json_out_close(w);
	}
	if (row->state == MSG_DELAYED && row->attempts > 0) {
		write_event(w, "retry", row->due);
		json_out_u64(w, "attempt", row->attempts + 1u);
		json_out_close(w);
	}
	if (row->state == MSG_DEAD) {
		write_event(w, "dead", row->due);
		json_out_str(w, "reason", slice_of(flat_view_reasons[row->reason]));
		json_out_close(w);
	}
	json_out_close(w);
}

static void
write_one(struct json_out *w, const struct op_row *row, const struct message *m,
	  struct slice error)
{
	flat_view_message(w, row, m, error, FLAT_BASE64);
	if (m->keep)
		json_out_u64(w, "keep_result_s", (uint64_t)(m->keep / SLU_SEC));
	if (m->idem.n > 0)
		json_out_str(w, "idempotency_key", m->idem);
	write_history(w, row, m);
}

static void
one_written(struct ask *a, int rc)
{
	struct one *const o = a->state;

	if (rc || o->rows.w.b->n <= 1) {
		ask_refuse(a, rc ? rc : SLU_ECORRUPT,
			   rc ? NULL : "its record is damaged; the log says where");
		return;
	}
	json_out_close(&o->rows.w);
	ask_reply(a, 200);
}

static void
answer_one(struct ask *a)
{
	struct one *const o = a->state;
	struct op *const op = finder(a);

	if (op->rc) {
		refuse_one(a, op, o);
		return;
	}
	o->rows = (struct rows){ .ask = a, .op = op, .write = write_one, .done = one_written };
	json_out_init(&o->rows.w, &a->call->out);
	json_out_object(&o->rows.w, NULL);
	rows_start(&o->rows);
}

void
admin_message(struct call *c, void *api)
{
	struct ask *const a = ask_new(api, c);
	struct one *const o = a ? ask_state(a, sizeof *o) : NULL;

	if (o && ask_params(a, one_params, ONE_PARAMS, o) && spread(a, o, OP_GET))
		ask_run(a, answer_one);
}

/* --- delete ------------------------------------------------------------------- */

static void
answer_delete(struct ask *a)
{
	const struct one *const o = a->state;
	const struct op *const op = finder(a);
	struct json_out w;

	if (op->rc) {
		refuse_one(a, op, o);
		return;
	}
	json_out_init(&w, &a->call->out);
	json_out_object(&w, NULL);
	flat_view_id(&w, o->id.id);
	json_out_bool(&w, "deleted", true);
	json_out_close(&w);
	ask_reply(a, 200);
}

void
admin_delete(struct call *c, void *api)
{
	struct ask *const a = ask_new(api, c);
	struct one *const o = a ? ask_state(a, sizeof *o) : NULL;

	if (o && ask_body(a, one_params, ONE_PARAMS, o) && spread(a, o, OP_DELETE))
		ask_run(a, answer_delete);
}
