/*
 * why.c - GET /why: why a message is not running now.
 *
 *      {"id":..., "status":"held", "reason":"behind", "text":"behind message 7 of its key, ...",
 *       "reasons":[{"reason":"behind", "text":"...", "behind":7, "owner":"w1", "until":"..."}],
 *       "consumers_waiting":2, "leased":1, "estimate":"..."}
 *
 * A batch, its members and its callback have its counters, too: "batch":{"id":..., "role":"member", "members":3, ...}.
 *
 * With the queue the op asks its shard, otherwise all shards. A shard that does not answer is a reason, too: 200 with
 * `down`.
 */
#include "api/flat/flat.h"

#include "api/fanout.h"
#include "api/flat/view.h"
#include "api/flat/whybatch.h"
#include "api/handler.h"
#include "base/id.h"
#include "engine/why_text.h"

#include <stdio.h>

struct state {
	struct given_id id;
	struct receipt receipt; /* instead of id, namespace and queue */
	struct slice namespace;
	struct slice queue; /* n 0: any queue */
	struct op_row rows[OP_WHY_ROWS];
	struct op_queue found;
	struct op answer; /* of the WHY, while the batch is looked for */
	struct whybatch batch;
};

static const struct param params[] = {
	PARAM(id, struct state, id),
	PARAM(receipt, struct state, receipt),
	PARAM(name, struct state, namespace),
	PARAM(name, struct state, queue, .also = "topic"),
};

/* ---- The answer ---- */

/* The members that only some reasons have. */
static void
write_parts(struct json_out *w, const struct why_fact *f, struct slice owner)
{
	char uuid[ID_UUID_TEXT];

	if (f->why == WHY_BEHIND) {
		json_out_u64(w, "behind", f->id);
		json_out_plain(w, "behind_uid", (struct slice){ id_to_uuid(f->id, uuid), ID_UUID_TEXT - 1 });
		json_out_str(w, "status", slice_of(f->state < MSG_STATES ? flat_view_states[f->state] : "unknown"));
	}
	if (f->why == WHY_BEHIND || f->why == WHY_AHEAD) {
		json_out_u64(w, "ahead", f->n < WHY_COUNT ? f->n : WHY_COUNT);
		json_out_bool(w, "more", f->n > WHY_COUNT);
	}
	if (owner.n)
		json_out_str(w, "owner", owner);
	if (f->until)
		json_out_time(w, "until", f->until);
}

static void
write_fact(struct json_out *w, const struct op *op, const struct why_fact *f)
{
	char text[WHY_TEXT];

	json_out_object(w, NULL);
	json_out_str(w, "reason", slice_of(why_name(f->why)));
	json_out_str(w, "text", slice_of(why_text_of(op, f, text)));
	write_parts(w, f, why_holder(op, f));
	json_out_close(w);
}

/* Without a reason the message is next. */
static void
write_facts(struct json_out *w, const struct op *op)
{
	const struct why_facts *const y = &op->why;
	const uint64_t n = y->n < WHY_FACTS ? y->n : WHY_FACTS;
	char text[WHY_TEXT];

	json_out_str(w, "reason", slice_of(why_name(y->facts[0].why)));
	json_out_str(w, "text", slice_of(why_text_of(op, &y->facts[0], text)));
	json_out_array(w, "reasons");
	for (uint64_t i = 0; i < n; i++)
		write_fact(w, op, &y->facts[i]);
	json_out_close(w);
}

/* The message that stands for a batch waits for its members, and for nothing else. */
static void
write_batch_facts(struct json_out *w, const struct whybatch *it)
{
	char text[WHYBATCH_TEXT];

	(void)whybatch_text(it, text);
	json_out_str(w, "reason", SLICE("batch"));
	json_out_str(w, "text", slice_of(text));
	json_out_array(w, "reasons");
	json_out_object(w, NULL);
	json_out_str(w, "reason", SLICE("batch"));
	json_out_str(w, "text", slice_of(text));
	if (it->b.outcome == MSGBATCH_OPEN && it->b.deadline)
		json_out_time(w, "until", it->b.deadline);
	json_out_close(w);
	json_out_close(w);
}

static void
reply(struct apicall *a)
{
	struct state *const s = a->state;
	const struct op *const op = &s->answer;
	const bool is_batch = s->batch.id == s->id.id && s->batch.id;
	struct json_out w;

	apicall_object(a, &w);
	flat_view_id(&w, s->id.id);
	flat_view_place(&w, slice_of(op->queues->space_shown), slice_of(op->queues->shown));
	json_out_str(&w, "status", slice_of(flat_view_status(op->rows)));
	json_out_u64(&w, "attempts", op->rows->attempts);
	if (is_batch)
		write_batch_facts(&w, &s->batch);
	else
		write_facts(&w, op);
	whybatch_write(&w, &s->batch);
	if (op->kind[0])
		json_out_str(&w, "kind", slice_of(op->kind));
	if (op->rule[0])
		json_out_str(&w, "rule", slice_of(op->rule));
	if (op->breaker[0])
		json_out_str(&w, "breaker", slice_of(op->breaker));
	json_out_u64(&w, "consumers_waiting", op->count);
	json_out_u64(&w, "leased", op->queues->count[MSG_LEASED]);
	if (op->why.estimate && !is_batch)
		json_out_time(&w, "estimate", op->why.estimate);
	op_unpin(&s->answer);
	apicall_reply_object(a, &w, 200);
}

/* Takes over the answer and all that it refers to. */
static void
take(struct apicall *a, struct op *op)
{
	struct state *const s = a->state;

	memmove(s->rows, op->rows, op->n_rows * sizeof *op->rows);
	memmove(&s->found, op->queues, sizeof s->found);
	s->answer = *op;
	s->answer.rows = s->rows;
	s->answer.queues = &s->found;
	op->n_rows = 0;
	whybatch_find(a, &s->batch, slice_of(s->found.space), slice_of(s->found.name), s->id.id, reply);
}

/* The shard of the message, or a shard that may have it, does not answer. */
static void
reply_down(struct apicall *a, const struct slu_err *err)
{
	const struct state *const s = a->state;
	char text[sizeof err->text + 40];
	struct json_out w;

	(void)snprintf(text, sizeof text, "its shard does not answer: %s", err->text);
	apicall_object(a, &w);
	flat_view_id(&w, s->id.id);
	json_out_str(&w, "reason", slice_of(why_name(WHY_DOWN)));
	json_out_str(&w, "text", slice_of(text));
	json_out_array(&w, "reasons");
	json_out_object(&w, NULL);
	json_out_str(&w, "reason", slice_of(why_name(WHY_DOWN)));
	json_out_str(&w, "text", slice_of(text));
	json_out_close(&w);
	json_out_close(&w);
	apicall_reply_object(a, &w, 200);
}

/* ---- The question ---- */

static void
answer(struct apicall *a)
{
	const struct state *const s = a->state;

	if (op_is_failure(a->op.rc)) {
		const struct slu_err err = apicall_err_of(&a->op);

		reply_down(a, &err);
	} else if (a->op.rc) {
		apicall_refuse_id(a, &a->op, s->id);
	} else {
		take(a, &a->op);
	}
}

static void
refuse_all(struct apicall *a, const struct fanout *g)
{
	const struct state *const s = a->state;
	const struct op none = { .rc = SLU_ENOTFOUND };
	struct fanout_missing missing = { 0 };

	fanout_missing(g, &missing);
	if (!missing.n)
		apicall_refuse_id(a, &none, s->id);
	else if (op_is_failure(missing.err.code))
		reply_down(a, &missing.err);
	else
		apicall_refuse_err(a, &missing.err, -1); /* the engine cannot say it */
}

static void
found(struct fanout *g)
{
	struct fanout_part *const p = fanout_first(g);

	if (p)
		take(g->apicall, &p->op);
	else
		refuse_all(g->apicall, g);
}

static void
why(struct apicall *a)
{
	struct state *const s = a->state;
	struct slu_err err;

	if (flat_take_receipt(&s->receipt, &s->id, &s->namespace, &s->queue, &err)) {
		apicall_refuse(a, err.code, err.text);
		return;
	}
	(void)call_add(call_of(a->x), "Cache-Control", SLICE("no-store")); /* the answer is fine without */
	if (s->queue.n == 0) {
		fanout_find(a, OP_WHY, s->namespace, s->id.id, found);
		return;
	}
	apicall_op(a, &a->op, OP_WHY, s->namespace, s->queue);
	a->op.id = s->id.id;
	a->op.rows = s->rows;
	a->op.max_rows = OP_WHY_ROWS;
	a->op.queues = &s->found;
	a->op.max_queues = 1;
	apicall_run(a, answer);
}

const struct handler flat_why = { why, sizeof(struct state), QUERY_ROWS(params) };
