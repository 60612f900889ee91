#include "api/flat/enqueue.h"

#include "api/flat/packed.h"
#include "api/flat/flat.h"
#include "api/groups.h"
#include "api/handler.h"
#include "api/flat/error.h"
#include "api/limits.h"
#include "api/split.h"

#include "base/json/json_out.h"
#include "engine/msgbatch.h"
#include "engine/payload.h"
#include "form/limits.h"

/* --- decode a batch ------------------------------------------------------------- */

int
flat_enqueue_decode_packed(struct form_puts *e, struct arena *a, struct slice body, int64_t *index,
			   struct slu_err *err)
{
	struct packed_item in;
	struct packed b;
	int rc;

	*index = -1;
	e->n = e->items = 0;
	rc = packed_open(&b, a, body, PACKED_PUT, API_ENQUEUE_MAX, err);
	if (rc)
		return rc;
	rc = form_puts_begin(e, a, b.rest.n / PACKED_PUT_BYTES < b.n ? (uint32_t)(b.rest.n / PACKED_PUT_BYTES) + 1 : b.n, err);
	if (rc)
		return rc;
	for (; e->items < b.n && !rc; e->items += !rc) {
		rc = packed_put_next(&b, &in, err);
		if (!rc)
			rc = form_puts_add(e, a, &in.queue->space, &in.queue->queue, in.payload, in.members, err);
	}
	if (!rc)
		return packed_end(&b, err);
	*index = e->items;
	return rc;
}

/* --- encode ------------------------------------------------------------------- */

static void
write_detail(const struct op_put *put, struct json_out *w)
{
	char uuid[ID_UUID_TEXT];

	json_out_object(w, NULL);
	json_out_u64(w, "id", put->m.id);
	json_out_plain(w, "uid", slice_of(id_to_uuid(put->m.id, uuid)));
	json_out_bool(w, "duplicate", put->existed);
	if (put->pending)
		json_out_bool(w, "pending", true);
	if (put->m.terms.unique && !put->pending)
		json_out_str(w, "unique", put->replaced ? SLICE("replaced") : put->existed ? SLICE("kept")
											   : SLICE("new"));
	json_out_close(w);
}

static void
write_id(const struct op_put *put, enum flat_ids form, struct json_out *w)
{
	char uuid[ID_UUID_TEXT];

	if (form == FLAT_DETAIL)
		write_detail(put, w);
	else if (form == FLAT_UUIDS)
		json_out_plain(w, NULL, slice_of(id_to_uuid(put->m.id, uuid)));
	else
		json_out_u64(w, NULL, put->m.id);
}

void
flat_enqueue_ids(const struct form_puts *e, const uint32_t *place, enum flat_ids form,
		 const bool *ok, struct json_out *w)
{
	for (uint32_t i = 0; i < e->n; i++) {
		const uint32_t at = place ? place[i] : i;

		if (ok && !ok[at])
			json_out_null(w, NULL);
		else
			write_id(&e->puts[at], form, w);
	}
}

/* --- the call ----------------------------------------------------------------- */

struct state {
	struct flat_enqueue e; /* first: flat_large_store */
	struct split split;    /* with several shards */
	struct op_item item;   /* members of a batch: the batch */
	struct slice ids;      /* "uid" */
	struct slice detail;   /* "1" */
	enum flat_ids form;    /* the form that ids and detail choose */
	bool atomic;           /* all messages are accepted, or none */
	bool step;             /* atomic, and over several shards */
	bool packed;           /* answer with a batch */
};

static const struct param params[] = {
	PARAM(word, struct state, ids),
	PARAM(word, struct state, detail),
	PARAM(flag, struct state, atomic),
};

/* Returns whether a message cannot go to another shard with the others. */
static bool
is_bound(struct apicall *a, const struct message *m)
{
	const struct engine *const e = flat_engine_of(a, m);

	return e->ops->shared || payload_is_large(e, m->payload.n);
}

/* Sets *apart if one OP_ENQUEUE cannot accept all messages. A queue that moves has several shards. */
static int
check_atomic(struct apicall *a, const struct state *s, const uint32_t *group, bool *apart, int64_t *index,
	     struct slu_err *err)
{
	struct broker_place places[SUPPLIED_MAX];
	int64_t bound = -1;
	unsigned n;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < s->e.in.n; i++) {
		const struct message *const m = &s->e.in.puts[i].m;

		*index = i;
		rc = broker_places(a->api->broker, apicall_routes(a), m->space, m->queue, places, &n, err);
		*apart |= !rc && (n > 1 || group[i] != group[0]);
		bound = bound < 0 && is_bound(a, m) ? (int64_t)i : bound;
	}
	if (rc || !*apart || bound < 0)
		return rc;
	*index = bound;
	return slu_fail(err, SLU_ESPANS, "a message of queue %.*s cannot go to another shard with the others; nothing was enqueued",
			(int)s->e.in.puts[bound].m.queue.n, s->e.in.puts[bound].m.queue.p);
}

/* Members join on the shard of their batch: one OP_FINISH. */
static int
plan_batch(struct apicall *a, struct state *s, int64_t *index, struct slu_err *err)
{
	const struct message *const first = &s->e.in.puts[0].m;

	for (uint32_t i = 0; i < s->e.in.n; i++) {
		const struct message *const m = &s->e.in.puts[i].m;

		*index = i;
		if (m->terms.batch != first->terms.batch || !slice_eq(m->space, first->space))
			return slu_fail(err, SLU_EINVAL, "batch: expected the same batch and namespace in all messages of a call");
		if (s->e.in.puts[i].replace)
			return slu_fail(err, SLU_EINVAL, "batch: a member cannot replace another message");
		if (is_bound(a, m))
			return slu_fail(err, SLU_ESPANS, "batch: a message of queue %.*s is too large for a batch, or its shard takes none; nothing was enqueued",
					(int)m->queue.n, m->queue.p);
	}
	s->item = (struct op_item){ .id = first->terms.batch };
	s->step = true;
	return 0;
}

static int
plan(struct apicall *a, struct state *s, int64_t *index, struct slu_err *err)
{
	uint32_t *const group = arena_array(&a->memory, s->e.in.n, sizeof *group);
	uint32_t n_groups;
	int rc;

	if (!group)
		return SLU_ENOMEM;
	rc = groups_make(a->api->broker, apicall_routes(a), &a->memory, s->e.in.puts, s->e.in.n, group, &n_groups);
	if (!rc && s->e.in.batch)
		rc = plan_batch(a, s, index, err);
	else if (!rc && s->atomic)
		rc = check_atomic(a, s, group, &s->step, index, err);
	if (rc)
		return rc;
	if (s->step) { /* one OP_FINISH: the shard of the first message sends the others on */
		split_none(&s->split, s->e.in.n);
		return 0;
	}
	s->e.in.puts = apicall_split(a, &s->split, group, n_groups, s->e.in.puts, s->e.in.n,
				     sizeof *s->e.in.puts);
	return s->e.in.puts ? 0 : SLU_ENOMEM;
}

static void
make_ops(struct apicall *a, struct state *s)
{
	for (unsigned i = 0; i < a->n_ops; i++) {
		const struct split_part *const part = &s->split.parts[i];
		struct op_put *const puts = s->e.in.puts + part->begin;

		apicall_op(a, &a->ops[i], s->step ? OP_FINISH : OP_ENQUEUE, puts->m.space,
			   s->item.id ? SLICE(MSGBATCH_QUEUE) : puts->m.queue);
		a->ops[i].items = &s->item;
		a->ops[i].n_items = s->item.id != 0;
		a->ops[i].puts = puts;
		a->ops[i].n_puts = part->end - part->begin;
	}
}

/* The index in the request of the item that made an op fail. */
static int64_t
item_of(const struct apicall *a, const struct op *op)
{
	const struct state *const s = a->state;
	const uint32_t at = (uint32_t)(op->puts - s->e.in.puts) + op->failed;

	if (!s->split.place)
		return at;
	for (uint32_t i = 0; i < s->e.in.n; i++)
		if (s->split.place[i] == at)
			return i;
	return -1;
}

/* The index of the item that failed; -1 if the server failed. */
static int64_t
failed_item(const struct apicall *a, const struct op *op)
{
	return slu_err_row(op->rc)->flat_status >= 500 ? -1 : item_of(a, op);
}

/* Some shards accepted their part and others did not: answer with the error and the ids. */
static void
answer_in_part(struct apicall *a, const struct op *failed)
{
	const struct state *const s = a->state;
	bool *const ok = arena_array(&a->memory, s->e.in.n, sizeof *ok);
	const struct slu_err err = apicall_err_of(failed);
	struct json_out w;

	if (!ok) {
		apicall_refuse(a, SLU_EUNKNOWN, NULL);
		return;
	}
	for (unsigned i = 0; i < a->n_ops; i++)
		for (uint32_t j = 0; j < a->ops[i].n_puts; j++)
			ok[a->ops[i].puts - s->e.in.puts + j] = a->ops[i].rc == 0;
	apicall_object(a, &w);
	api_count_limit(a->api, &err);
	flat_add_retry(call_of(a->x), &err);
	flat_write_err(&w, &err);
	if (failed_item(a, failed) >= 0)
		json_out_i64(&w, "index", failed_item(a, failed));
	json_out_array(&w, "ids");
	flat_enqueue_ids(&s->e.in, s->split.place, s->form, ok, &w);
	json_out_close(&w);
	apicall_reply_object(a, &w, (unsigned)slu_err_row(failed->rc)->flat_status);
}

static void
reply_packed(struct apicall *a, const struct state *s)
{
	packed_write(&a->x->out, PACKED_IDS, s->e.in.n);
	for (uint32_t i = 0; i < s->e.in.n; i++)
		packed_write_id(&a->x->out, &s->e.in.puts[s->split.place ? s->split.place[i] : i]);
	apicall_reply_as(a, 200, packed_type);
}

static void
answer(struct apicall *a)
{
	const struct state *const s = a->state;
	const struct op *failed = NULL;
	struct json_out w;

	flat_large_close(&s->e);
	for (unsigned i = 0; i < a->n_ops && !failed; i++)
		if (a->ops[i].rc)
			failed = &a->ops[i];
	if (failed && a->n_ops > 1) {
		answer_in_part(a, failed);
		return;
	}
	if (failed) {
		const struct slu_err err = apicall_err_of(failed);

		apicall_refuse_err(a, &err, failed_item(a, failed));
		return;
	}
	if (s->packed) {
		reply_packed(a, s);
		return;
	}
	json_out_init(&w, &a->x->out);
	json_out_array(&w, NULL);
	flat_enqueue_ids(&s->e.in, s->split.place, s->form, NULL, &w);
	apicall_reply_object(a, &w, 200);
}

static void
run(struct apicall *a)
{
	make_ops(a, a->state);
	apicall_run(a, answer);
}

/* An item without a trace has the trace of the request. */
static int
inherit_trace(struct apicall *a, struct form_puts *e)
{
	struct slice trace;

	if (value_trace(&a->memory, call_field(call_of(a->x), "traceparent"),
			call_field(call_of(a->x), "tracestate"), &trace))
		return SLU_ENOMEM;
	for (uint32_t i = 0; trace.n && i < e->n; i++)
		if (e->puts[i].m.trace.n == 0)
			e->puts[i].m.trace = trace;
	return 0;
}

static int
choose_form(struct state *s, struct slu_err *err)
{
	if (s->ids.n > 0 && !slice_eq(s->ids, SLICE("uid")))
		return slu_fail(err, SLU_EINVAL, "ids: expected uid");
	if (s->detail.n > 0 && !slice_eq(s->detail, SLICE("1")) &&
	    !slice_eq(s->detail, SLICE("0")))
		return slu_fail(err, SLU_EINVAL, "detail: expected 1");
	s->form = slice_eq(s->detail, SLICE("1")) ? FLAT_DETAIL
		  : s->ids.n                      ? FLAT_UUIDS
						  : FLAT_NUMBERS;
	return 0;
}

static int
decode(struct apicall *a, struct state *s, int64_t *index, struct slu_err *err)
{
	const struct call *const c = call_of(a->x);
	int rc;

	*index = -1;
	rc = choose_form(s, err);
	if (rc)
		return rc;
	s->packed = packed_is_accepted(c);
	rc = packed_is_sent(c) ? flat_enqueue_decode_packed(&s->e.in, &a->memory, c->body, index, err)
			       : form_puts_decode(&s->e.in, &a->memory, c->body, index, err);
	if (!rc && inherit_trace(a, &s->e.in))
		rc = slu_fail(err, SLU_ENOMEM, "out of memory");
	if (rc)
		return rc;
	s->atomic |= s->e.in.copies;
	if (s->e.in.batch || broker_lanes(a->api->broker) > 1 || groups_any(a->api->broker))
		return plan(a, s, index, err);
	split_none(&s->split, s->e.in.n);
	return 0;
}

static void
enqueue(struct apicall *a)
{
	struct state *const s = a->state;
	struct slu_err err;
	int64_t index;
	int rc;

	no_err(&err);
	rc = decode(a, s, &index, &err);
	if (rc) {
		apicall_refuse_item(a, rc, err.text, index);
		return;
	}
	make_ops(a, s);
	a->item_of = item_of;
	if (!apicall_pass(a))
		return; /* refused before anything is stored */
	if (call_of(a->x)->body.n > API_SMALL_BODY && flat_has_large(a))
		flat_large_store(a, run);
	else
		apicall_run(a, answer);
}

const struct handler flat_enqueue = { enqueue, sizeof(struct state), QUERY_ROWS(params) };
