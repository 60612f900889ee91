#include "api/task/tasker_private.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

enum {
	TRIES = 20 /* changes of a task at the same time */
};

static struct tasked *
task_at(const struct tasker *s, uint32_t i)
{
	return CONTAINER(duty_row(&s->duty, i), struct tasked, row);
}

/* ---- Store ---- */

static int
store_once(struct tasker *s, struct tasked *one, struct slu_err *err)
{
	struct arena memory = { 0 };
	struct op_put put;
	int rc = task_put(&one->t, slice_of(one->row.space), &memory, &put);

	rc = rc ? slu_fail(err, SLU_ENOMEM, "out of memory") : duty_store(&s->duty, &one->row, &put, 1, err);
	if (!rc)
		one->stored = duty_mono();
	arena_release(&memory);
	return rc;
}

/* Another caller has changed the task: it can only have canceled it. */
static int
look_again(struct tasker *s, struct tasked *one, struct slu_err *err)
{
	struct tasked now = { 0 };
	const int rc = duty_look(&s->duty, &one->row, &now.row, err);

	if (!rc) {
		one->row.number = now.row.number;
		one->t.cancel |= now.t.cancel;
	}
	mem_free(now.row.memory);
	return rc;
}

int
tasker_store(struct tasker *s, struct tasked *one, struct slu_err *err)
{
	int rc = store_once(s, one, err);

	for (int i = 0; rc == SLU_ECONFLICT && i < TRIES; i++) {
		rc = look_again(s, one, err);
		if (!rc)
			rc = store_once(s, one, err);
	}
	return rc;
}

/* What was done since the progress was last stored. */
static void
end(struct duty *d)
{
	struct tasker *const s = CONTAINER(d, struct tasker, duty);

	for (uint32_t i = 0; i < d->n; i++)
		if (task_at(s, i)->t.phase == TASK_RUNNING && task_at(s, i)->t.before)
			(void)tasker_store(s, task_at(s, i), NULL); /* TASK-3: otherwise the next owner counts less */
}

/* ---- Rows ---- */

/* TASK-3: a pass begins. */
static int
decode(struct duty *d, struct slice doc, char *room, struct duty_row *row, struct slu_err *err)
{
	struct task *const t = &CONTAINER(row, struct tasked, row)->t;
	const int rc = task_decode(doc, room, t, err);

	(void)d;
	if (rc || t->phase != TASK_RUNNING)
		return rc;
	t->looked = t->refused = 0;
	t->matched = t->dry_run ? 0 : t->done;
	t->error[0] = '\0';
	return 0;
}

static const char *
name_of(const struct duty_row *row, char *room, size_t size)
{
	assert(size >= TASK_ID_TEXT);
	return task_id_text(CONTAINER(row, const struct tasked, row)->t.id, room);
}

/* A task that runs here keeps its progress. */
static bool
renew(struct duty_row *row, const struct duty_row *now)
{
	struct tasked *const old = CONTAINER(row, struct tasked, row);
	const struct tasked *const one = CONTAINER(now, const struct tasked, row);

	if (old->t.phase != TASK_RUNNING || one->t.phase != TASK_RUNNING)
		return true;
	old->t.cancel |= one->t.cancel;
	if (one->t.cancel)
		row->resume = 0;
	return false;
}

static int
by_space_newest_first(const void *a, const void *b)
{
	const struct tasked *const x = a, *const y = b;
	const int c = strcmp(x->row.space, y->row.space);

	return c ? c : (x->t.id < y->t.id) - (x->t.id > y->t.id);
}

void
tasker_count(struct tasker *s)
{
	int64_t n = 0;

	for (uint32_t i = 0; i < s->duty.n; i++)
		n += task_at(s, i)->t.phase == TASK_RUNNING;
	metrics_set(&s->duty.metrics, TASKER_RUNNING, 0, n);
}

/* Forgets tasks that ended long ago: TASKS-1 of api/task/tasks.h. */
static void
forget_old(struct duty *d)
{
	struct tasker *const s = CONTAINER(d, struct tasker, duty);
	const slu_time now = clock_wall(&clock_system);
	uint32_t ended = 0;

	if (d->n > 1)
		qsort(d->rows, d->n, sizeof(struct tasked), by_space_newest_first);
	for (uint32_t i = 0; i < d->n; i++) {
		struct tasked *const one = task_at(s, i);

		if (i == 0 || strcmp(one->row.space, task_at(s, i - 1)->row.space) != 0)
			ended = 0;
		ended += one->t.phase != TASK_RUNNING;
		if (!one->row.seen || one->t.phase == TASK_RUNNING || (ended <= TASKS_ENDED_MAX && now - one->t.ended <= TASK_KEPT))
			continue;
		(void)duty_store(d, &one->row, NULL, 0, NULL); /* otherwise at the next load */
		one->row.seen = false;
	}
	tasker_count(s);
}

static slu_time
pause_of(const struct duty_row *row)
{
	return CONTAINER(row, const struct tasked, row)->t.phase == TASK_RUNNING ? 0 : SLU_NEVER;
}

/* ---- Open and close ---- */

static void
release(struct duty *d)
{
	mem_free(CONTAINER(d, struct tasker, duty)->step);
}

static const struct metric metrics[TASKER_METRICS] = {
	[DUTY_FAILURES] = { "task_failures_total", METRIC_COUNTER, "steps of tasks that failed and are repeated" },
	[TASKER_ENDED] = { "tasks_ended_total", METRIC_COUNTER, "tasks that this server has ended" },
	[TASKER_MESSAGES] = { "task_messages_total", METRIC_COUNTER, "messages that tasks have changed" },
	[TASKER_REFUSED] = { "task_refusals_total", METRIC_COUNTER, "messages that tasks could not change" },
	[TASKER_RUNNING] = { "tasks_running", METRIC_GAUGE, "tasks that this server does" },
};

static const struct duty_kind kind = {
	.noun = "task",
	.waits = "task waits",
	.queue = TASK_QUEUE,
	.size = sizeof(struct tasker),
	.row_size = sizeof(struct tasked),
	.metrics = metrics,
	.n_metrics = TASKER_METRICS,
	.decode = decode,
	.name = name_of,
	.renew = renew,
	.loaded = forget_old,
	.pause = pause_of,
	.act = tasker_step,
	.end = end,
	.release = release,
};

int
tasker_new(struct duty **out, struct slu_log *log, struct slu_err *err)
{
	const int rc = duty_new(out, &kind, log, err);
	struct tasker *s;

	if (rc)
		return rc;
	s = CONTAINER(*out, struct tasker, duty);
	s->step = mem_zalloc(sizeof *s->step);
	return s->step ? 0 : slu_fail(err, SLU_ENOMEM, "no memory for the tasks");
}
