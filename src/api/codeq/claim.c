/*
 * claim.c - POST /tasks/claim and POST /tasks/claim/batch.
 *
 *      claim         any of the commands (api/anyclaim.h), the first of the list that has a task; 200, or 204 after the wait
 *      claim/batch   the commands in turn until there are `count` tasks, without a wait
 */
#include "api/anyclaim.h"
#include "api/codeq/task.h"
#include "api/document.h"
#include "api/limits.h"

enum {
	LARGE_MAX = 16 << 20 /* bytes of a payload of another API */
};

struct state {
	struct anyclaim any; /* claim */
	struct rows rows;
	struct slice commands[CODEQ_COMMANDS]; /* folded */
	unsigned n;
	int64_t lease, wait, count; /* seconds; count: of a batch */
	bool has_commands;
	bool kept; /* the whole answer was written */

	/* claim/batch */
	struct op *ops; /* one a command that was asked */
	unsigned asked; /* ops that have an answer */
	unsigned shown; /* ops whose rows were written */
	uint32_t granted;
	_Atomic unsigned returns; /* ops on their way back, and return_all itself */
};

static struct state *
state_of(struct apicall *a)
{
	return codeq_of(a)->own;
}

/* --- the request -------------------------------------------------------------- */

static void
read_commands(struct json *r, const struct json_field *f, void *place)
{
	struct state *const s = place;
	struct slu_err err = { 0 };

	(void)f;
	s->has_commands = true;
	json_array(r);
	while (json_element(r)) {
		const struct slice text = json_text(r);
		char *const folded = json_take_room(r, NAME_TEXT);

		if (!folded || s->n == CODEQ_COMMANDS)
			json_fail(r, SLU_EINVAL, NULL, "expected at most %d commands", CODEQ_COMMANDS);
		else if (name_fold(text, "command", folded, &err))
			json_fail(r, SLU_EINVAL, NULL, "%.100s", err.text);
		else
			s->commands[s->n++] = slice_of(folded);
	}
}

static const struct json_field fields[] = {
	{ .name = { "commands", 8 }, .read = read_commands },
	JSON_ROW("leaseSeconds", json_read_i64, struct state, lease),
	JSON_ROW("waitSeconds", json_read_i64, struct state, wait),
	JSON_FIELD(i64, struct state, count),
};

/* A worker that names no command gets the commands of its token. */
static int
take_types(struct apicall *a, struct slu_err *err)
{
	const struct codeq_token *const t = codeq_of(a)->token;
	struct state *const s = state_of(a);

	for (unsigned i = 0; s->n == 0 && t && !t->any_type && i < t->n_types; i++)
		s->commands[i] = t->types[i];
	if (s->n == 0 && t && !t->any_type)
		s->n = t->n_types;
	return s->n ? 0 : slu_fail(err, SLU_EINVAL, "commands: expected 1 to %d", CODEQ_COMMANDS);
}

static int
check_types(struct apicall *a, struct slu_err *err)
{
	const struct codeq_token *const t = codeq_of(a)->token;
	const struct state *const s = state_of(a);

	for (unsigned i = 0; t && i < s->n; i++)
		if (!codeq_token_has_type(t, s->commands[i]))
			return slu_fail(err, SLU_EFORBIDDEN, "command %.*s is not among the eventTypes of the token",
					(int)s->commands[i].n, s->commands[i].p);
	return 0;
}

static int
read_request(struct apicall *a, struct slu_err *err)
{
	struct state *const s = state_of(a);
	const struct slice body = call_of(a->x)->body;
	const size_t room = body.n + CODEQ_COMMANDS * NAME_TEXT;
	char *const p = arena_alloc(&a->memory, room);
	struct json r;
	int rc = 0;

	if (!p)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	if (body.n > 0) {
		json_init(&r, body, JSON_DEPTH);
		json_room(&r, p, room);
		(void)json_fields(&r, fields, COUNT(fields), JSON_LENIENT, s); /* absent members have their defaults */
		rc = json_end(&r, err);
	}
	if (!rc)
		rc = take_types(a, err);
	if (!rc)
		rc = check_types(a, err);
	s->lease = s->lease > 0 ? s->lease : CODEQ_LEASE;
	if (s->lease > API_LEASE_MAX / SLU_SEC)
		s->lease = API_LEASE_MAX / SLU_SEC;
	s->wait = s->wait < 0 ? 0 : s->wait > CODEQ_WAIT ? CODEQ_WAIT
							 : s->wait;
	return rc;
}

/* --- a task ------------------------------------------------------------------- */

static void
write_row(struct json_out *w, const struct op_row *row, const struct message *m, struct slice error)
{
	struct rows *const r = CONTAINER(w, struct rows, w);
	struct apicall *const a = r->apicall;
	struct codeq_view view = { .row = row, .m = m, .payload = m->payload, .owner = holder_of(a, (struct slice){ 0 }) };
	struct slu_err err = { 0 };
	struct buf large;

	(void)error; /* claims have none */
	if (!row->payload.pin) {
		codeq_task_write(w, NULL, &a->memory, &view);
		return;
	}
	buf_init(&large, LARGE_MAX);
	view.without_payload = document_read(r->op->engine, &row->record, &row->payload, LARGE_MAX, true, &large, &err) != 0;
	view.payload = buf_slice(&large);
	codeq_task_write(w, NULL, &a->memory, &view);
	buf_release(&large);
}

static void
show(struct apicall *a, struct op *op, void (*done)(struct apicall *a, int rc))
{
	struct state *const s = state_of(a);
	const struct json_out w = s->rows.w;
	bool large = false;

	for (uint32_t i = 0; i < op->n_rows; i++)
		large |= op->rows[i].payload.pin != NULL;
	s->rows = (struct rows){ .apicall = a, .op = op, .write = write_row, .done = done, .patient = large, .w = w };
	rows_start(&s->rows);
}

/* --- one ---------------------------------------------------------------------- */

static void
ended(struct exchange *x, bool sent)
{
	struct apicall *const a = x->user;
	struct state *const s = state_of(a);

	if (!s->any.won || (sent && s->kept))
		apicall_end(a);
	else
		anyclaim_return(&s->any, a);
}

static void
written(struct apicall *a, int rc)
{
	struct state *const s = state_of(a);

	if (apicall_refused(a, rc, NULL))
		return;
	if (a->x->out.n == 0) { /* the record is damaged: it was set aside */
		s->any.won = NULL;
		call_answer(call_of(a->x), 204, NULL, NULL);
		return;
	}
	api_end_line(&a->x->out); /* here: if memory runs out, no task is delivered */
	s->kept = !a->x->out.failed;
	apicall_reply(a, 200);
}

static void
claimed(struct apicall *a)
{
	struct state *const s = state_of(a);

	if (s->any.won && !a->gone) {
		json_out_init(&s->rows.w, &a->x->out);
		show(a, s->any.won->op, written);
	} else if (s->any.failed && s->any.failed->rc != SLU_ECANCELED) {
		apicall_refuse_op(a, s->any.failed);
	} else {
		call_answer(call_of(a->x), 204, NULL, NULL);
	}
}

static void
begin_claim(struct apicall *a, struct op *op, struct slice command)
{
	apicall_op(a, op, OP_CLAIM, codeq_space(a), command);
	op->claim.lease = state_of(a)->lease * SLU_SEC;
	op->claim.holder = holder_of(a, (struct slice){ 0 });
	op->claim.max_bytes = API_PAYLOAD_BYTES;
}

static void
begin_one(struct apicall *a, struct anyclaim_one *one)
{
	begin_claim(a, one->op, *(const struct slice *)one->tag);
}

static void
claim(struct apicall *a)
{
	struct state *const s = state_of(a);
	struct slu_err err = { 0 };
	int rc = read_request(a, &err);

	if (!rc)
		rc = anyclaim_init(&s->any, a, s->n);
	if (rc) {
		codeq_refuse_rc(a, rc, err.text);
		return;
	}
	s->any.begin = begin_one;
	s->any.then = claimed;
	s->any.wait = s->wait * SLU_SEC;
	for (unsigned i = 0; i < s->n; i++)
		s->any.claims[i].tag = &s->commands[i];
	a->x->ended = ended;
	if (s->wait > 0)
		a->x->gone = apicall_gone;
	anyclaim_run(&s->any, a);
}

/* --- a batch ------------------------------------------------------------------ */

static void
one_back(struct op *op)
{
	struct apicall *const a = op->owner;

	if (atomic_fetch_sub(&state_of(a)->returns, 1) == 1)
		apicall_free(a);
}

/* Nothing of it was received. */
static void
return_all(struct apicall *a)
{
	struct state *const s = state_of(a);

	atomic_store(&s->returns, 1);
	for (unsigned i = 0; i < s->asked; i++) {
		if (s->ops[i].rc || s->ops[i].n_rows == 0)
			continue;
		s->ops[i].done = one_back;
		atomic_fetch_add(&s->returns, 1); /* before the lane may answer */
		if (broker_return(a->api->broker, &s->ops[i], 0) == 0)
			continue;
		op_unpin(&s->ops[i]); /* stopped: the leases end by themselves */
		atomic_fetch_sub(&s->returns, 1);
	}
	one_back(&s->ops[0]);
}

static void
batch_ended(struct exchange *x, bool sent)
{
	struct apicall *const a = x->user;
	struct state *const s = state_of(a);

	if (s->granted == 0 || (sent && s->kept))
		apicall_end(a);
	else
		return_all(a);
}

static void show_next(struct apicall *a);

static void
shown(struct apicall *a, int rc)
{
	if (apicall_refused(a, rc, NULL))
		return;
	state_of(a)->shown++;
	show_next(a);
}

/* A command whose claim failed ends the list. */
static void
finish(struct apicall *a)
{
	struct state *const s = state_of(a);
	struct json_out *const w = &s->rows.w;
	const struct op *const last = &s->ops[s->asked - 1];

	json_out_close(w);
	if (last->rc)
		json_out_str(w, "error", slice_of(apicall_err_of(last).text));
	json_out_close(w);
	api_end_line(&a->x->out);
	s->kept = !a->x->out.failed;
	apicall_reply(a, 200);
}

static void
show_next(struct apicall *a)
{
	struct state *const s = state_of(a);

	while (s->shown < s->asked && (s->ops[s->shown].rc || s->ops[s->shown].n_rows == 0))
		s->shown++;
	if (s->shown < s->asked)
		show(a, &s->ops[s->shown], shown);
	else
		finish(a);
}

static void ask_next(struct apicall *a);

static void
answered(struct apicall *a)
{
	struct state *const s = state_of(a);
	const struct op *const op = &s->ops[s->asked++];

	s->granted += op->rc ? 0 : op->n_rows;
	if (!op->rc && s->granted < s->count && s->asked < s->n) {
		ask_next(a);
	} else if (s->granted > 0) {
		json_out_open(&s->rows.w, &a->x->out);
		json_out_array(&s->rows.w, "tasks");
		show_next(a);
	} else if (op->rc) {
		apicall_refuse_op(a, op);
	} else {
		call_answer(call_of(a->x), 204, NULL, NULL);
	}
}

static void
ask_next(struct apicall *a)
{
	struct state *const s = state_of(a);
	struct op *const op = &s->ops[s->asked];

	begin_claim(a, op, s->commands[s->asked]);
	op->max_rows = (uint32_t)(s->count - s->granted);
	op->rows = arena_array(&a->memory, op->max_rows, sizeof *op->rows);
	if (!op->rows) {
		apicall_refuse(a, SLU_ENOMEM, NULL); /* what was granted goes back */
		return;
	}
	a->ops = op;
	a->n_ops = 1;
	apicall_run(a, answered);
}

static void
claim_batch(struct apicall *a)
{
	struct state *const s = state_of(a);
	struct slu_err err = { 0 };
	int rc = read_request(a, &err);

	if (!rc && (s->count < 1 || s->count > CODEQ_CLAIMS))
		rc = slu_fail(&err, SLU_EINVAL, "count: expected 1 to %d", CODEQ_CLAIMS);
	s->ops = rc ? NULL : arena_array(&a->memory, s->n, sizeof *s->ops);
	if (rc || !s->ops) {
		codeq_refuse_rc(a, rc ? rc : SLU_ENOMEM, err.text);
		return;
	}
	a->x->ended = batch_ended;
	ask_next(a);
}

const struct codeq_action codeq_claim = { claim, sizeof(struct state), CODEQ_WORKER, CODEQ_CLAIM };
const struct codeq_action codeq_claim_batch = { claim_batch, sizeof(struct state), CODEQ_WORKER, CODEQ_CLAIM };
