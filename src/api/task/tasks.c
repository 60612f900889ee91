#include "api/task/tasks.h"

#include "api/limits.h"
#include "auth/identity.h"
#include "base/limit.h"

#include <stdlib.h>

enum {
	TRIES = 20 /* changes of one task at the same time */
};

static void
end(struct apicall *a, struct task_call *c, int rc)
{
	if (rc && c->err.code != (enum slu_code)rc)
		(void)slu_fail(&c->err, (enum slu_code)rc, "%s", slu_err_row(rc)->text);
	c->then(a, rc, &c->err);
}

static void
end_with_op(struct apicall *a, struct task_call *c)
{
	c->err = apicall_err_of(&a->op);
	end(a, c, a->op.rc);
}

/* ---- Storing ---- */

static void
store(struct apicall *a, struct task_call *c, void (*then)(struct apicall *a))
{
	const int rc = task_put(&c->t, c->space, &a->memory, &c->put);

	if (rc) {
		end(a, c, rc);
		return;
	}
	apicall_op(a, &a->op, OP_SCHEDULE, c->space, SLICE(TASK_QUEUE));
	c->item = (struct op_item){ .id = task_message_id(c->space, c->t.id), .number = c->number };
	a->op.items = &c->item;
	a->op.n_items = 1;
	a->op.puts = &c->put;
	a->op.n_puts = 1;
	apicall_run(a, then);
}

/* ---- Begin ---- */

static void
begun(struct apicall *a)
{
	end_with_op(a, a->part);
}

static void
counted(struct apicall *a)
{
	struct task_call *const c = a->part;
	struct task *const t = &c->t;
	const struct identity *const who = a->x->who;

	if (a->op.rc) {
		if (a->op.rc == SLU_ENOTFOUND)
			(void)slu_fail(&c->err, SLU_ENOTFOUND, "namespace %.*s has no queue %.*s", (int)c->space.n, c->space.p,
				       (int)t->queue.n, t->queue.p);
		else
			c->err = apicall_err_of(&a->op);
		end(a, c, a->op.rc);
		return;
	}
	for (int i = MSG_READY; i < MSG_STATES; i++)
		if (t->state == MSG_NONE ? i == MSG_READY || i == MSG_DELAYED || i == MSG_HELD : i == (int)t->state)
			t->total += c->queue.count[i];
	t->id = broker_new_id(a->api->broker, c->space, SLICE(TASK_QUEUE));
	t->by = who ? who->name : (struct slice){ 0 };
	t->created = clock_wall(a->api->clock);
	t->phase = TASK_RUNNING;
	store(a, c, begun);
}

static void
count(struct apicall *a, struct slice queue, void (*then)(struct apicall *a))
{
	struct task_call *const c = a->part;

	apicall_op(a, &a->op, OP_STATS, c->space, queue);
	a->op.queues = &c->queue;
	a->op.max_queues = 1;
	apicall_run(a, then);
}

/* TASKS-1 */
static void
limited(struct apicall *a)
{
	struct task_call *const c = a->part;

	if (a->op.rc && a->op.rc != SLU_ENOTFOUND)
		end_with_op(a, c);
	else if (!a->op.rc && c->queue.count[MSG_DELAYED] >= TASKS_MAX)
		end(a, c, limit_fail(&c->err, SLU_EBUSY, LIMIT_TASKS, 0, "namespace %.*s: more than %d tasks", (int)c->space.n, c->space.p, TASKS_MAX));
	else
		count(a, c->t.queue, counted);
}

void
tasks_begin(struct apicall *a, struct task_call *c, tasks_then *then)
{
	int rc;

	a->part = c;
	c->then = then;
	rc = task_check(&c->t, &c->err);
	if (rc)
		end(a, c, rc);
	else
		count(a, SLICE(TASK_QUEUE), limited);
}

/* ---- Get, cancel ---- */

static void find(struct apicall *a);

/* Copies the record to the memory of the apicall, where the texts of the task stay. */
static int
read_task(struct apicall *a, const struct message *m, struct task *out, struct slu_err *err)
{
	const size_t n = m->payload.n;
	char *const room = arena_array(&a->memory, n + 1, 2);

	if (!room)
		return SLU_ENOMEM;
	memcpy(room, m->payload.p, n);
	return task_decode((struct slice){ room, n }, room + n + 1, out, err);
}

static void
take_row(struct json_out *w, const struct op_row *row, const struct message *m, struct slice error)
{
	struct task_call *const c = CONTAINER(w, struct task_call, rows.w);
	const uint64_t id = c->t.id;

	(void)error;
	c->rc = read_task(c->rows.apicall, m, &c->t, &c->err);
	if (!c->rc && c->t.id != id) /* two ids with one hash */
		c->rc = SLU_ENOTFOUND;
	c->number = row->number;
}

static void
canceled(struct apicall *a)
{
	struct task_call *const c = a->part;
	const bool late = a->op.rc == SLU_ECONFLICT || a->op.rc == SLU_ENOTFOUND;

	if (late && ++c->tries < TRIES)
		find(a);
	else
		end_with_op(a, c);
}

static void
taken(struct apicall *a, int rc)
{
	struct task_call *const c = a->part;

	rc = rc ? rc : c->rc;
	if (!rc && !c->number)
		rc = SLU_ECORRUPT;
	if (rc || !c->cancels || c->t.cancel || c->t.phase != TASK_RUNNING) {
		end(a, c, rc);
		return;
	}
	c->t.cancel = true;
	store(a, c, canceled);
}

static void
found(struct apicall *a)
{
	struct task_call *const c = a->part;

	if (a->op.rc) {
		char id[TASK_ID_TEXT];

		if (a->op.rc == SLU_ENOTFOUND)
			(void)slu_fail(&c->err, SLU_ENOTFOUND, "namespace %.*s has no task %s; tasks that have ended are forgotten",
				       (int)c->space.n, c->space.p, task_id_text(c->t.id, id));
		else
			c->err = apicall_err_of(&a->op);
		end(a, c, a->op.rc);
		return;
	}
	c->rows = (struct rows){ .apicall = a, .op = &a->op, .write = take_row, .done = taken };
	json_out_init(&c->rows.w, &a->x->out);
	rows_start(&c->rows);
}

static void
find(struct apicall *a)
{
	struct task_call *const c = a->part;

	c->number = 0;
	c->rc = 0;
	apicall_op(a, &a->op, OP_GET, c->space, SLICE(TASK_QUEUE));
	a->op.id = task_message_id(c->space, c->t.id);
	a->op.rows = &c->row;
	a->op.max_rows = 1;
	apicall_run(a, found);
}

void
tasks_get(struct apicall *a, struct task_call *c, tasks_then *then)
{
	a->part = c;
	c->then = then;
	find(a);
}

void
tasks_cancel(struct apicall *a, struct task_call *c, tasks_then *then)
{
	c->cancels = true;
	tasks_get(a, c, then);
}

/* ---- List ---- */

static void
take_task(struct json_out *w, const struct op_row *row, const struct message *m, struct slice error)
{
	struct task_list *const l = CONTAINER(w, struct task_list, rows.w);
	struct task *const t = &l->tasks[l->n];

	(void)row;
	(void)error;
	if (l->n == l->room || read_task(l->rows.apicall, m, t, &l->err))
		return;
	l->n += !l->queue.n || slice_eq(t->queue, l->queue);
}

static int
newest_first(const void *a, const void *b)
{
	const struct task *const x = a, *const y = b;

	return (x->id < y->id) - (x->id > y->id);
}

static void
listed(struct apicall *a, int rc)
{
	struct task_list *const l = a->part;

	if (l->n > 1)
		qsort(l->tasks, l->n, sizeof *l->tasks, newest_first);
	if (rc)
		(void)slu_fail(&l->err, (enum slu_code)rc, "%s", slu_err_row(rc)->text);
	l->then(a, rc, &l->err);
}

static void
list_rows(struct apicall *a)
{
	struct task_list *const l = a->part;

	if (a->op.rc) {
		l->err = apicall_err_of(&a->op);
		l->then(a, a->op.rc, &l->err);
		return;
	}
	l->room = a->op.n_rows;
	l->tasks = arena_array(&a->memory, l->room + 1, sizeof *l->tasks);
	if (!l->tasks) {
		op_unpin(&a->op);
		listed(a, SLU_ENOMEM);
		return;
	}
	l->rows = (struct rows){ .apicall = a, .op = &a->op, .write = take_task, .done = listed, .patient = true };
	json_out_init(&l->rows.w, &a->x->out);
	rows_start(&l->rows);
}

void
tasks_list(struct apicall *a, struct task_list *l, tasks_then *then)
{
	a->part = l;
	l->then = then;
	l->n = 0;
	apicall_op(a, &a->op, OP_LIST, l->space, SLICE(TASK_QUEUE));
	apicall_run_rows(a, API_PAGE_MAX, list_rows);
}
