/*
 * tasker_book.c - reads and stores the tasks of this node.
 */
#include "api/task/tasker_private.h"

#include "base/log.h"
#include "base/mem.h"

#include <stdlib.h>

enum {
	PAGE = 100, /* rows and queues of an answer */
	TRIES = 20  /* changes of a task at the same time */
};

static void
own_op(struct tasker *s, struct op *op, enum op_verb verb, const char *space)
{
	opwait_op(&s->wait, op, verb, slice_of(space), SLICE(TASK_QUEUE));
	op->route.local = true;
}

void
tasker_unload(struct tasker *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		mem_free(s->rows[i].doc);
	s->n = 0;
}

/* ---- Rows ---- */

static int
read_row(const struct op *op, const struct op_row *row, struct tasked *out, struct slu_err *err)
{
	const size_t n = row->record.size;
	struct message m;
	int rc;

	out->doc = mem_alloc(2 * n + 1);
	if (!out->doc)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	rc = engine_read(op->engine, &row->record, 0, n, out->doc, true, err);
	if (!rc)
		rc = message_decode((struct slice){ out->doc, n }, &m, err);
	if (rc)
		return rc;
	(void)snprintf(out->space, sizeof out->space, "%.*s", (int)m.space.n, m.space.p);
	out->number = row->number;
	out->accepted = m.accepted;
	return task_decode(m.payload, out->doc + n, &out->t, err);
}

static struct tasked *
find_row(struct tasker *s, const struct tasked *one)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->rows[i].t.id == one->t.id && strcmp(s->rows[i].space, one->space) == 0)
			return &s->rows[i];
	return NULL;
}

/* TASK-3 */
static void
begin_pass(struct tasked *row)
{
	struct task *const t = &row->t;

	if (t->phase != TASK_RUNNING)
		return;
	t->looked = t->refused = 0;
	t->matched = t->dry_run ? 0 : t->done;
	t->error[0] = '\0';
}

/* Takes *one over, or what a caller has changed of a task that runs here. */
static int
take_row(struct tasker *s, struct tasked *one, struct slu_err *err)
{
	struct tasked *const old = find_row(s, one);

	one->seen = true;
	if (old && old->t.phase == TASK_RUNNING && one->t.phase == TASK_RUNNING) {
		old->number = one->number;
		old->t.cancel |= one->t.cancel;
		old->seen = true;
		mem_free(one->doc);
		return 0;
	}
	begin_pass(one);
	if (old) {
		mem_free(old->doc);
		*old = *one;
		return 0;
	}
	if (!mem_room(&s->rows, &s->room, s->n + 1, sizeof *s->rows))
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	s->rows[s->n++] = *one;
	return 0;
}

/* A task that cannot be read does not stop the others. */
static int
add_row(struct tasker *s, const struct op *op, const struct op_row *row, struct slu_err *err)
{
	struct tasked one = { 0 };
	struct slu_err why = { 0 };
	int rc = read_row(op, row, &one, &why);

	if (!rc)
		rc = take_row(s, &one, err);
	else if (rc == SLU_ENOMEM)
		(void)slu_fail(err, SLU_ENOMEM, "out of memory");
	else
		log_error(s->log, "task is not done", F_STR("namespace", one.space), F_STR("why", why.text));
	if (rc)
		mem_free(one.doc);
	return rc == SLU_ENOMEM ? rc : 0;
}

/* The tasks of a namespace. A shard that this node has lost meanwhile has none. */
static int
load_space(struct tasker *s, const char *space, struct slu_err *err)
{
	struct op_row rows[PAGE];
	uint64_t cursor = 0;
	int rc = 0;

	do {
		struct op op;

		own_op(s, &op, OP_LIST, space);
		op.cursor = cursor;
		op.rows = rows;
		op.max_rows = PAGE;
		rc = opwait_run(&s->wait, s->broker, &op, 1);
		if (rc == SLU_EMOVED)
			return 0;
		if (rc)
			return slu_fail(err, (enum slu_code)rc, "%s", op.err.text);
		for (uint32_t i = 0; i < op.n_rows && !rc; i++)
			rc = add_row(s, &op, &rows[i], err);
		op_unpin(&op);
		cursor = op.cursor;
	} while (cursor && !rc);
	return rc;
}

static int
load_spaces(struct tasker *s, struct slu_err *err)
{
	struct op_queue *const queues = mem_array(PAGE, sizeof *queues);
	uint64_t cursor = 0;
	int rc = queues ? 0 : slu_fail(err, SLU_ENOMEM, "out of memory");

	while (!rc) {
		struct op op;

		own_op(s, &op, OP_QUEUES, "");
		op.cursor = cursor;
		op.queues = queues;
		op.max_queues = PAGE;
		rc = opwait_run(&s->wait, s->broker, &op, 1);
		if (rc)
			(void)slu_fail(err, (enum slu_code)rc, "%s", op.err.text);
		for (uint32_t i = 0; !rc && i < op.n_queues; i++)
			rc = load_space(s, queues[i].space, err);
		cursor = op.cursor;
		if (!cursor)
			break;
	}
	mem_free(queues);
	return rc;
}

/* ---- Forget ---- */

static int
by_space_newest_first(const void *a, const void *b)
{
	const struct tasked *const x = a, *const y = b;
	const int c = strcmp(x->space, y->space);

	return c ? c : (x->t.id < y->t.id) - (x->t.id > y->t.id);
}

static void
forget(struct tasker *s, const struct tasked *row)
{
	struct op_item item = { .id = task_message_id(slice_of(row->space), row->t.id), .number = row->number, .remove = true };
	struct op op;

	own_op(s, &op, OP_SCHEDULE, row->space);
	op.items = &item;
	op.n_items = 1;
	if (opwait_run(&s->wait, s->broker, &op, 1) == 0) /* otherwise at the next load */
		s->expected++;
}

/* Removes rows that are not there any more, and tasks that ended long ago: TASKS-1 of api/task/tasks.h. */
static void
tidy(struct tasker *s)
{
	const slu_time now = clock_wall(&clock_system);
	uint32_t kept = 0, ended = 0;

	if (s->n > 1)
		qsort(s->rows, s->n, sizeof *s->rows, by_space_newest_first);
	for (uint32_t i = 0; i < s->n; i++) {
		struct tasked *const row = &s->rows[i];
		bool goes = !row->seen;

		if (i == 0 || strcmp(row->space, s->rows[i - 1].space) != 0)
			ended = 0;
		ended += row->t.phase != TASK_RUNNING;
		if (row->seen && row->t.phase != TASK_RUNNING && (ended > TASKS_ENDED_MAX || now - row->t.ended > TASK_KEPT)) {
			forget(s, row);
			goes = true;
		}
		if (goes)
			mem_free(row->doc);
		else
			s->rows[kept++] = *row;
	}
	s->n = kept;
}

int
tasker_load(struct tasker *s, struct slu_err *err)
{
	int rc;

	for (uint32_t i = 0; i < s->n; i++)
		s->rows[i].seen = false;
	rc = load_spaces(s, err);
	if (!rc)
		tidy(s);
	return rc;
}

/* ---- Store ---- */

/* Another caller has changed the task: it can only have canceled it. */
static int
look_again(struct tasker *s, struct tasked *row, struct slu_err *err)
{
	struct tasked now = { 0 };
	struct op_row found;
	struct op op;
	int rc;

	own_op(s, &op, OP_GET, row->space);
	op.id = task_message_id(slice_of(row->space), row->t.id);
	op.rows = &found;
	op.max_rows = 1;
	rc = opwait_run(&s->wait, s->broker, &op, 1);
	if (rc)
		return rc;
	rc = read_row(&op, &found, &now, err);
	op_unpin(&op);
	row->number = found.number;
	row->t.cancel |= !rc && now.t.cancel;
	mem_free(now.doc);
	return rc;
}

static int
store_once(struct tasker *s, struct tasked *row, struct slu_err *err)
{
	struct op_item item = { .id = task_message_id(slice_of(row->space), row->t.id), .number = row->number };
	struct arena memory = { 0 };
	struct op_put put;
	struct op op;
	int rc = task_put(&row->t, slice_of(row->space), &memory, &put);

	if (rc)
		return slu_fail(err, (enum slu_code)rc, "out of memory");
	own_op(s, &op, OP_SCHEDULE, row->space);
	op.items = &item;
	op.n_items = 1;
	op.puts = &put;
	op.n_puts = 1;
	rc = opwait_run(&s->wait, s->broker, &op, 1);
	if (rc && err)
		*err = op.err;
	if (!rc) {
		s->expected++;
		row->number = put.m.number;
		row->stored = tasker_mono();
	}
	arena_release(&memory);
	return rc;
}

int
tasker_store(struct tasker *s, struct tasked *row, struct slu_err *err)
{
	int rc = store_once(s, row, err);

	for (int i = 0; rc == SLU_ECONFLICT && i < TRIES; i++) {
		rc = look_again(s, row, err);
		if (!rc)
			rc = store_once(s, row, err);
	}
	return rc;
}
