/*
 * dead.c - POST /dlq/redrive and /dlq/delete: what becomes of dead letters.
 *
 *      {"namespace":"a","queue":"b","ids":[1,"2","0190..."]}    these
 *      {"namespace":"a","queue":"b","limit":500}                the oldest, so many
 *
 * Either way they are looked up first, so that only dead letters are touched: an id
 * of anything else gets 404.
 *
 *      ids    OP_GET each   ──┐
 *      limit  OP_LIST       ──┴─> items ──> OP_REDRIVE, OP_DELETE
 */
#include "api/flat/flat.h"

#include "api/handler.h"
#include "api/flat/settle.h"
#include "api/limits.h"
#include "form/values.h"

struct state {
	struct slice namespace;
	struct slice queue;
	struct slice ids; /* the JSON of the member */
	uint64_t limit;

	enum op_verb verb;
	struct op_item *items; /* all named messages */
	uint32_t n;
	struct op_item *dead; /* the dead letters among them */
	uint32_t n_dead;
	bool more; /* more dead letters than limit */
};

static const struct json_field fields[] = {
	JSON_FIELD(name, struct state, namespace, .required = true),
	JSON_FIELD(name, struct state, queue, .required = true, .also = { "topic", 5 }),
	JSON_FIELD(raw, struct state, ids),
	JSON_FIELD(u64, struct state, limit, .min = 1, .max = API_PAGE_MAX),
};

/* --- decode ------------------------------------------------------------------- */

static int
decode_ids(struct state *s, struct arena *a, struct slu_err *err)
{
	const struct json_field field = { .size = sizeof(struct given_id) };
	struct given_id id = { 0 };
	struct json r;

	s->items = arena_array(a, API_PAGE_MAX, sizeof *s->items);
	if (!s->items)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	json_init(&r, s->ids, JSON_DEPTH);
	json_array(&r);
	while (json_element(&r)) {
		if (s->n == API_PAGE_MAX) {
			json_fail(&r, SLU_EINVAL, r.p, "expected at most %d ids", API_PAGE_MAX);
			continue;
		}
		json_read_id(&r, &field, &id);
		s->items[s->n++] = (struct op_item){
			.id = id.id,
			.rounded = id.rounded,
			.rc = SLU_ENOTFOUND,
		};
	}
	json_blame(&r, SLICE("ids"));
	return json_end(&r, NULL) ? json_explain(&r, -1, err) : 0;
}

static int
decode(struct state *s, struct arena *a, struct slice body, struct slu_err *err)
{
	char *const room = arena_alloc(a, body.n);
	struct json r;

	if (!room)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	json_init(&r, body, JSON_DEPTH);
	json_room(&r, room, body.n);
	(void)json_fields(&r, fields, COUNT(fields), JSON_STRICT, s);
	if (json_end(&r, NULL))
		return json_explain(&r, -1, err);
	if ((s->ids.n > 0) == (s->limit > 0))
		return slu_fail(err, SLU_EINVAL, "expected ids or limit, one of the two");
	return s->ids.n > 0 ? decode_ids(s, a, err) : 0;
}

/* --- answer ------------------------------------------------------------------- */

/* Returns how many items were changed, and copies the outcomes into the named items. */
static uint64_t
count_done(struct state *s)
{
	uint64_t done = 0;
	uint32_t at = 0;

	for (uint32_t i = 0; i < s->n_dead; i++) {
		done += s->dead[i].rc == 0;
		while (at < s->n && s->items[at].id != s->dead[i].id)
			at++;
		if (at < s->n)
			s->items[at++].rc = s->dead[i].rc;
	}
	return done;
}

static void
answer(struct apicall *a)
{
	struct state *const s = a->state;
	uint32_t failed = 0;
	struct json_out w;

	if (apicall_failed(a))
		return;
	apicall_object(a, &w);
	json_out_u64(&w, s->verb == OP_REDRIVE ? "redriven" : "deleted", count_done(s));
	if (s->limit)
		json_out_bool(&w, "more", s->more);
	if (!s->limit)
		json_out_array(&w, "results");
	for (uint32_t i = 0; i < s->n; i++)
		failed += flat_settle_outcome(s->verb, &s->items[i], 0, &w) != 0;
	flat_settle_failed(call_of(a->x), failed);
	if (!s->limit)
		json_out_close(&w);
	apicall_reply_object(a, &w, 200);
}

/* --- the call ----------------------------------------------------------------- */

static void
change(struct apicall *a)
{
	struct state *const s = a->state;

	a->ops = &a->op;
	a->n_ops = 1;
	apicall_op(a, &a->op, s->verb, s->namespace, s->queue);
	a->op.items = s->dead;
	a->op.n_items = s->n_dead;
	if (s->n_dead > 0)
		apicall_run(a, answer);
	else
		answer(a);
}

static void
add_dead(struct state *s, const struct op_row *row)
{
	if (row->state == MSG_DEAD)
		s->dead[s->n_dead++] = (struct op_item){ .id = row->id };
}

/* The first op that failed with another code than SLU_ENOTFOUND. */
static const struct op *
failed(const struct apicall *a)
{
	for (unsigned i = 0; i < a->n_ops; i++)
		if (a->ops[i].rc && a->ops[i].rc != SLU_ENOTFOUND)
			return &a->ops[i];
	return NULL;
}

/* Takes the dead letters that OP_GET or OP_LIST found. */
static void
found(struct apicall *a)
{
	const struct op *const bad = failed(a);
	struct state *const s = a->state;

	for (unsigned i = 0; i < a->n_ops; i++) {
		struct op *const op = &a->ops[i];

		if (op->rc)
			continue;
		for (uint32_t j = 0; j < op->n_rows; j++)
			add_dead(s, &op->rows[j]);
		op_unpin(op);
	}
	s->more = s->limit && (a->ops->cursor != 0 || s->n_dead == s->limit);
	if (bad)
		apicall_refuse_op(a, bad);
	else
		change(a);
}

static int
look_up(struct apicall *a, struct state *s)
{
	a->n_ops = s->n;
	a->ops = arena_array(&a->memory, s->n, sizeof *a->ops);
	s->dead = arena_array(&a->memory, s->n, sizeof *s->dead);
	for (uint32_t i = 0; i < s->n; i++) {
		struct op_row *const row = arena_alloc(&a->memory, sizeof *row);

		if (!row || !a->ops || !s->dead)
			return SLU_ENOMEM;
		apicall_op(a, &a->ops[i], OP_GET, s->namespace, s->queue);
		a->ops[i].id = s->items[i].id;
		a->ops[i].rows = row;
		a->ops[i].max_rows = 1;
	}
	return 0;
}

static int
list(struct apicall *a, struct state *s)
{
	apicall_op(a, &a->op, OP_LIST, s->namespace, s->queue);
	a->op.state = MSG_DEAD;
	a->op.max_rows = (uint32_t)s->limit;
	a->op.rows = arena_array(&a->memory, s->limit, sizeof *a->op.rows);
	s->dead = arena_array(&a->memory, s->limit, sizeof *s->dead);
	return a->op.rows && s->dead ? 0 : SLU_ENOMEM;
}

static void
dead(struct apicall *a)
{
	struct state *const s = a->state;
	struct slu_err err = { 0 };
	int rc;

	s->verb = (enum op_verb)a->arg;
	rc = decode(s, &a->memory, call_of(a->x)->body, &err);
	if (!rc)
		rc = s->limit ? list(a, s) : look_up(a, s);
	if (rc)
		apicall_refuse(a, rc, err.text);
	else
		apicall_run(a, found);
}

const struct handler flat_redrive = { dead, sizeof(struct state), .arg = OP_REDRIVE };
const struct handler flat_delete = { dead, sizeof(struct state), .arg = OP_DELETE };
