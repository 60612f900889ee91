#include "api/task/tasker_private.h"

#include "base/log.h"
#include "base/mem.h"

#include <inttypes.h>

#define RETRY SLU_SEC
#define AGAIN (30 * SLU_SEC) /* the tasks are read again, also if nothing was reported */

slu_time
tasker_mono(void)
{
	return clock_mono(&clock_system);
}

void
tasker_notify(struct tasker *s, struct slice queue)
{
	if (!s || (queue.n && !slice_eq(queue, SLICE(TASK_QUEUE))))
		return;
	pthread_mutex_lock(&s->mtx);
	s->changes++;
	pthread_cond_broadcast(&s->wake);
	pthread_mutex_unlock(&s->mtx);
}

/* ---- The thread ---- */

/* The first failure of several in a row is logged. */
static void
note_failure(struct tasker *s, const struct tasked *row, const struct slu_err *err)
{
	char id[TASK_ID_TEXT];

	atomic_fetch_add(&s->failed, 1);
	if (!s->failing)
		log_warn(s->log, "task waits", F_STR("namespace", row ? row->space : ""),
			 F_STR("task", row ? task_id_text(row->t.id, id) : ""), F_STR("why", err->text));
	s->failing = true;
}

static void
load_if_stale(struct tasker *s)
{
	struct slu_err err = { 0 };
	uint64_t changes;

	pthread_mutex_lock(&s->mtx);
	changes = s->changes;
	pthread_mutex_unlock(&s->mtx);
	if (!s->stale && changes == s->expected && tasker_mono() - s->loaded < AGAIN)
		return;
	s->expected = changes;
	s->loaded = tasker_mono();
	s->stale = tasker_load(s, &err) != 0;
	if (s->stale)
		note_failure(s, NULL, &err);
}

static bool
is_stopping(struct tasker *s)
{
	bool stops;

	pthread_mutex_lock(&s->mtx);
	stops = s->stops;
	pthread_mutex_unlock(&s->mtx);
	return stops;
}

/* One step of each task that is due: TASKER-1. */
static void
turn(struct tasker *s)
{
	bool failed = s->stale;
	uint64_t running = 0;

	for (uint32_t i = 0; i < s->n && !is_stopping(s); i++) {
		struct tasked *const row = &s->rows[i];
		struct slu_err err = { 0 };
		int rc;

		if (row->t.phase != TASK_RUNNING)
			continue;
		if (row->resume > tasker_mono() && !row->t.cancel) {
			running++;
			continue;
		}
		rc = tasker_step(s, row, &err);
		running += row->t.phase == TASK_RUNNING;
		if (rc == SLU_ENOTFOUND || rc == SLU_EMOVED) {
			s->stale = true;
		} else if (rc) {
			failed = true;
			row->resume = tasker_mono() + RETRY;
			note_failure(s, row, &err);
		}
	}
	s->failing = failed;
	atomic_store(&s->running, running);
}

/* When the thread has to look again, by the monotonic clock. */
static slu_time
next_look(const struct tasker *s)
{
	const slu_time now = tasker_mono();
	slu_time first = now + (s->stale ? RETRY : AGAIN);

	for (uint32_t i = 0; i < s->n; i++)
		if (s->rows[i].t.phase == TASK_RUNNING && s->rows[i].resume < first)
			first = s->rows[i].resume;
	return first;
}

/* Returns false if the thread has to end. */
static bool
rest(struct tasker *s)
{
	const slu_time until = next_look(s);
	bool stops;

	pthread_mutex_lock(&s->mtx);
	while (!s->stops && s->changes == s->expected && tasker_mono() < until)
		clock_wait(&clock_system, &s->wake, &s->mtx, until);
	stops = s->stops;
	pthread_mutex_unlock(&s->mtx);
	return !stops;
}

/* What was done since the progress was last stored. */
static void
store_all(struct tasker *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->rows[i].t.phase == TASK_RUNNING && s->rows[i].t.before)
			(void)tasker_store(s, &s->rows[i], NULL); /* TASK-3: otherwise the next owner counts less */
}

static void *
run(void *arg)
{
	struct tasker *const s = arg;

	do {
		load_if_stale(s);
		turn(s);
	} while (rest(s));
	store_all(s);
	return NULL;
}

/* ---- Open and close ---- */

int
tasker_new(struct tasker **out, struct slu_log *log, struct slu_err *err)
{
	struct tasker *const s = mem_zalloc(sizeof *s);

	*out = s;
	if (!s)
		return slu_fail(err, SLU_ENOMEM, "no memory for the tasks");
	s->log = log;
	s->stale = true;
	pthread_mutex_init(&s->mtx, NULL); /* these cannot fail without attributes */
	pthread_cond_init(&s->wake, NULL);
	opwait_init(&s->wait);
	s->step = mem_zalloc(sizeof *s->step);
	return s->step ? 0 : slu_fail(err, SLU_ENOMEM, "no memory for the tasks");
}

int
tasker_start(struct tasker *s, struct broker *b, struct slu_err *err)
{
	s->broker = b;
	if (pthread_create(&s->thread, NULL, run, s))
		return slu_fail(err, SLU_EDOWN, "no thread for the tasks");
	s->runs = true;
	return 0;
}

void
tasker_stop(struct tasker *s)
{
	if (!s || !s->runs)
		return;
	pthread_mutex_lock(&s->mtx);
	s->stops = true;
	pthread_cond_broadcast(&s->wake);
	pthread_mutex_unlock(&s->mtx);
	pthread_join(s->thread, NULL);
	s->runs = false;
}

void
tasker_free(struct tasker *s)
{
	if (!s)
		return;
	tasker_stop(s);
	tasker_unload(s);
	mem_free(s->rows);
	mem_free(s->step);
	opwait_release(&s->wait);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->mtx);
	mem_free(s);
}

/* ---- Metrics ---- */

static void
put_metric(struct buf *out, const char *name, const char *type, const char *help, const _Atomic uint64_t *value)
{
	buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
	if (value)
		buf_printf(out, "%s %" PRIu64 "\n", name, atomic_load(value));
}

void
tasker_metrics(const struct tasker *s, struct buf *out)
{
	put_metric(out, "sluice_tasks_running", "gauge", "tasks that this server does", s ? &s->running : NULL);
	put_metric(out, "sluice_tasks_ended_total", "counter", "tasks that this server has ended", s ? &s->ended : NULL);
	put_metric(out, "sluice_task_messages_total", "counter", "messages that tasks have changed", s ? &s->messages : NULL);
	put_metric(out, "sluice_task_refusals_total", "counter", "messages that tasks could not change", s ? &s->refused : NULL);
	put_metric(out, "sluice_task_failures_total", "counter", "steps of tasks that failed and are repeated", s ? &s->failed : NULL);
}
