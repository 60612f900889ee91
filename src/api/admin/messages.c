/*
 * messages.c - messages: browse and search, one with its history, delete.
 *
 *      messages, dlq   OP_LIST, up to 1,000 rows ──> read, write those that match
 *      message         OP_GET on the queue's shard; without a queue, on the shard that has the message,
 *                      which a fan-out of OP_GET finds
 *      delete          OP_DELETE in the same way
 */
#include "api/admin/admin.h"

#include "api/admin/filter.h"
#include "api/fanout.h"
#include "api/flat/page.h"
#include "api/flat/view.h"
#include "api/handler.h"
#include "core/queue/holders.h"
#include "engine/attempts.h"

#include <inttypes.h>
#include <stdio.h>

/* --- browse ------------------------------------------------------------------- */

struct state {
	struct slice namespace;
	struct slice queue;
	struct slice state;
	uint64_t cursor;
	uint32_t limit;
	bool mask; /* show masked bodies also to a caller who may see them */
	struct admin_filter filter;

	slu_time now;
	uint32_t shown;
	struct rows rows;
};

static const struct param params[] = {
	PARAM_QUEUE(struct state),
	PARAM_PAGE(struct state, API_PAGE_DEFAULT),
	ADMIN_FILTER_PARAMS(struct state),
	PARAM(flag, struct state, mask),
	/* only for messages */
	PARAM(word, struct state, state),
};

enum {
	MESSAGES_PARAMS = COUNT(params),
	DLQ_PARAMS = MESSAGES_PARAMS - 1
};

static void
write_row(struct json_out *w, const struct op_row *row, const struct message *m,
	  struct slice error)
{
	struct rows *const r = CONTAINER(w, struct rows, w);
	struct state *const s = r->apicall->state;

	if (!admin_filter_matches(&s->filter, s->now, r->op->engine, row, rows_searched(r, m), error, &r->bytes))
		return;
	json_out_object(w, NULL);
	flat_view_message(w, row, m, error, w->b->n < API_PAYLOAD_BYTES ? FLAT_BASE64 : FLAT_NOT_SHOWN);
	rows_write_masked(r);
	json_out_close(w);
	r->enough = ++s->shown == s->limit;
}

static void
written(struct apicall *a, int rc)
{
	struct state *const s = a->state;
	struct slu_err err;

	if (apicall_refused(a, rc, NULL))
		return;
	if (s->shown == 0 && s->cursor == 0 && page_cursor(&s->rows) == 0 &&
	    admin_filter_is_rounded(&s->filter, &err)) {
		apicall_refuse(a, err.code, err.text);
		return;
	}
	page_end(&s->rows);
	json_out_u64(&s->rows.w, "looked", s->rows.at);
	page_reply(&s->rows);
}

static void
answer_page(struct apicall *a)
{
	struct state *const s = a->state;

	if (apicall_failed(a))
		return;
	s->rows = (struct rows){
		.apicall = a,
		.op = &a->op,
		.write = write_row,
		.done = written,
		.patient = !admin_filter_is_empty(&s->filter),
		.max_bytes = API_LOOK_BYTES,
	};
	rows_hide(&s->rows, s->namespace, s->mask);
	s->filter.masked = rows_are_masked(&s->rows);
	page_start(&s->rows, "messages");
}

static void
list(struct apicall *a, enum msg_state only)
{
	struct state *const s = a->state;
	struct slu_err err = { 0 };
	int rc = admin_filter_check(&s->filter, &err);

	if (apicall_refused(a, rc, err.text))
		return;
	s->now = clock_wall(a->api->clock);
	apicall_op(a, &a->op, OP_LIST, s->namespace, s->queue);
	a->op.state = only;
	a->op.cursor = s->cursor;
	apicall_run_rows(a, admin_filter_is_empty(&s->filter) ? s->limit : API_PAGE_MAX, answer_page);
}

static void
messages(struct apicall *a)
{
	const struct state *const s = a->state;
	struct slu_err err = { 0 };
	enum msg_state only;

	if (flat_view_only(s->state, &only, &err))
		apicall_refuse(a, err.code, err.text);
	else
		list(a, only);
}

static void
dlq(struct apicall *a)
{
	list(a, MSG_DEAD);
}

const struct handler admin_messages = { messages, sizeof(struct state), .query = params, .n = MESSAGES_PARAMS };
const struct handler admin_dlq = { dlq, sizeof(struct state), .query = params, .n = DLQ_PARAMS };

/* --- one message -------------------------------------------------------------- */

struct one_message {
	struct slice namespace;
	struct slice queue; /* n 0: any queue */
	struct given_id id;
	bool cancel;
	bool mask;
	struct op_row row;
	struct op_item item; /* delete, cancel */
	void (*answer)(struct apicall *a);
	struct rows rows;
};

static const struct param one_params[] = {
	PARAM(name, struct one_message, namespace, .required = true),
	PARAM(name, struct one_message, queue, .also = "topic"),
	PARAM(id, struct one_message, id, .required = true),
	/* only to show it */
	PARAM(flag, struct one_message, mask),
};

enum {
	SHOW_PARAMS = COUNT(one_params),
	CHANGE_PARAMS = SHOW_PARAMS - 1
};

/* handler.arg: the verb. lane: where the message is, if its queue is not known. */
static void
run_at(struct apicall *a, uint32_t lane)
{
	struct one_message *const o = a->state;
	struct op *const op = &a->op;

	apicall_op(a, op, (enum op_verb)a->arg, o->namespace, o->queue);
	op->cursor = (uint64_t)lane << BROKER_CURSOR_BITS;
	op->id = o->id.id;
	op->rows = &o->row;
	op->max_rows = 1;
	o->item = (struct op_item){ .id = o->id.id, .cancel = o->cancel };
	op->items = &o->item;
	op->n_items = op->verb == OP_DELETE;
	apicall_run(a, o->answer);
}

static void
refuse_one(struct apicall *a, const struct op *op, const struct one_message *o)
{
	char text[160];

	if (op->rc == SLU_ENOTFOUND && o->id.rounded) {
		apicall_refuse_id(a, op, o->id);
		return;
	}
	if (op->rc == SLU_ENOTFOUND)
		(void)snprintf(text, sizeof text,
			       "no message %" PRIu64 "; it may be finished",
			       o->id.id);
	else if (op->rc == SLU_ELEASE)
		(void)snprintf(text, sizeof text,
			       "message %" PRIu64 " is leased; wait for its holder or for the "
			       "end of the lease",
			       o->id.id);
	if (op->rc == SLU_ENOTFOUND || op->rc == SLU_ELEASE)
		apicall_refuse(a, op->rc, text);
	else
		apicall_refuse_op(a, op);
}

/* No shard has the message. A shard that did not answer may have it. */
static void
refuse_all(struct apicall *a, const struct fanout *g)
{
	const struct op none = { .rc = SLU_ENOTFOUND };
	struct fanout_missing missing = { 0 };

	fanout_missing(g, &missing);
	if (missing.n)
		apicall_refuse_err(a, &missing.err, -1);
	else
		refuse_one(a, &none, a->state);
}

static void
found(struct fanout *g)
{
	const struct fanout_part *const p = fanout_first(g);

	if (p)
		run_at(g->apicall, p->lane);
	else
		refuse_all(g->apicall, g);
}

/* Asks every shard for the message, then runs the op on the shard that has it. */
static void
look_for(struct apicall *a)
{
	const struct one_message *const o = a->state;

	fanout_find(a, OP_GET, o->namespace, o->id.id, found);
}

static void
run_one(struct apicall *a, void (*answer)(struct apicall *a))
{
	struct one_message *const o = a->state;

	o->answer = answer;
	if (o->queue.n > 0)
		run_at(a, 0);
	else
		look_for(a);
}

static void
write_event(struct json_out *w, const char *event, slu_time at)
{
	json_out_object(w, NULL);
	json_out_str(w, "event", slice_of(event));
	json_out_time(w, "at", at);
}

/* Writes the known events of the past and the next event, in order. */
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

/* The attempts that failed, oldest first: engine/attempts.h. */
static void
write_attempts(struct json_out *w, struct slice tried)
{
	struct attempts all;

	if (!attempts_read(tried, &all) || all.n == 0)
		return;
	json_out_array(w, "attempts_log");
	for (unsigned i = 0; i < all.n; i++) {
		const struct attempt_row *const one = &all.list[i];

		json_out_object(w, NULL);
		json_out_u64(w, "attempt", one->number);
		json_out_time(w, "at", one->began);
		json_out_u64(w, "took_ms", (uint64_t)(one->took / SLU_MS));
		json_out_str(w, "outcome", slice_of(attempt_outcomes[one->outcome]));
		if (one->holder.n)
			json_out_str(w, "owner", holder_name(one->holder));
		if (holder_version(one->holder).n)
			json_out_str(w, "version", holder_version(one->holder));
		json_out_u64(w, "fencing_token", one->token);
		if (one->error.n)
			json_out_str(w, "error", one->error);
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
	admin_write_version(w, row);
	write_history(w, row, m);
	write_attempts(w, CONTAINER(w, struct rows, w)->tried);
	rows_write_masked(CONTAINER(w, struct rows, w));
}

static void
one_written(struct apicall *a, int rc)
{
	struct one_message *const o = a->state;

	if (rc || o->rows.w.b->n <= 1) {
		apicall_refuse(a, rc ? rc : SLU_ECORRUPT,
			       rc ? NULL : "the record is damaged; see the log");
		return;
	}
	json_out_close(&o->rows.w);
	apicall_reply(a, 200);
}

static void
answer_one(struct apicall *a)
{
	struct one_message *const o = a->state;
	struct op *const op = &a->op;

	if (op->rc) {
		refuse_one(a, op, o);
		return;
	}
	o->rows = (struct rows){ .apicall = a, .op = op, .write = write_one, .done = one_written };
	rows_hide(&o->rows, o->namespace, o->mask);
	json_out_open(&o->rows.w, &a->x->out);
	rows_start(&o->rows);
}

static void
message(struct apicall *a)
{
	run_one(a, answer_one);
}

const struct handler admin_message = { message, sizeof(struct one_message), .query = one_params, .n = SHOW_PARAMS, .arg = OP_GET };

/* --- delete ------------------------------------------------------------------- */

static void
answer_delete(struct apicall *a)
{
	const struct one_message *const o = a->state;
	struct op *const op = &a->op;
	struct json_out w;

	op->rc = op->rc ? op->rc : o->item.rc;
	if (op->rc) {
		refuse_one(a, op, o);
		return;
	}
	apicall_object(a, &w);
	flat_view_id(&w, o->id.id);
	json_out_bool(&w, "deleted", true);
	apicall_reply_object(a, &w, 200);
}

static void delete (struct apicall *a)
{
	run_one(a, answer_delete);
}

const struct handler admin_delete = { delete, sizeof(struct one_message), .body = one_params, .n = CHANGE_PARAMS, .arg = OP_DELETE };

/* --- cancel ------------------------------------------------------------------- */

static void
answer_cancel(struct apicall *a)
{
	const struct one_message *const o = a->state;
	struct op *const op = &a->op;
	struct json_out w;

	op->rc = op->rc ? op->rc : o->item.rc;
	if (op->rc == SLU_ELEASE) {
		apicall_refuse(a, SLU_ELEASE, "the engine redis cannot cancel a message that is leased");
		return;
	}
	if (op->rc) {
		refuse_one(a, op, o);
		return;
	}
	apicall_object(a, &w);
	flat_view_id(&w, o->id.id);
	json_out_bool(&w, "running", o->item.runs);
	if (o->item.runs)
		json_out_time(&w, "lease_expires_at", o->item.until);
	apicall_reply_object(a, &w, 200);
}

static void
cancel(struct apicall *a)
{
	struct one_message *const o = a->state;

	o->cancel = true;
	run_one(a, answer_cancel);
}

const struct handler admin_cancel = { cancel, sizeof(struct one_message), .body = one_params, .n = CHANGE_PARAMS, .arg = OP_DELETE };
