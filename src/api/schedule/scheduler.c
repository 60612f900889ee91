#include "api/schedule/scheduler_private.h"

#include "base/log.h"
#include "base/mem.h"

#include <inttypes.h>

#define RETRY SLU_SEC        /* SCHEDULER-3 */
#define LOOK  SLU_SEC        /* SCHEDULER-4 */
#define AGAIN (30 * SLU_SEC) /* the rows are read again, also if nothing was reported */

/* ---- Other threads ---- */

void
scheduler_notify(struct scheduler *s, struct slice queue)
{
	if (!s || (queue.n && !slice_eq(queue, SLICE(SCHEDULE_QUEUE))))
		return;
	pthread_mutex_lock(&s->mtx);
	s->changes++;
	pthread_cond_broadcast(&s->wake);
	pthread_mutex_unlock(&s->mtx);
}

/* ---- The thread ---- */

static slu_time
mono(void)
{
	return clock_mono(&clock_system);
}

/* The first failure of several in a row is logged. */
static void
note_failure(struct scheduler *s, const struct scheduled *row, const struct slu_err *err)
{
	atomic_fetch_add(&s->failed, 1);
	if (!s->failing)
		log_warn(s->log, "schedule waits", F_STR("namespace", row ? row->space : ""),
			 F_STR("schedule", row ? row->s.name : ""), F_STR("why", err->text));
	s->failing = true;
}

static void
load_if_stale(struct scheduler *s)
{
	struct slu_err err = { 0 };
	uint64_t changes;

	pthread_mutex_lock(&s->mtx);
	changes = s->changes;
	pthread_mutex_unlock(&s->mtx);
	if (!s->stale && changes == s->expected && mono() - s->loaded < AGAIN)
		return;
	s->expected = changes;
	s->loaded = mono();
	s->stale = scheduler_load(s, &err) != 0;
	if (s->stale)
		note_failure(s, NULL, &err);
}

static void
fire_due(struct scheduler *s)
{
	bool failed = s->stale;

	for (uint32_t i = 0; i < s->n; i++) {
		struct scheduled *const row = &s->rows[i];
		const slu_time now = clock_wall(&clock_system);
		struct slu_err err = { 0 };
		int rc;

		if (row->due > now || row->resume > mono())
			continue;
		rc = scheduler_fire(s, row, now, &err);
		if (rc == SLU_ECONFLICT || rc == SLU_ENOTFOUND || rc == SLU_EMOVED) {
			s->stale = true;
		} else if (rc) {
			failed = true;
			row->resume = mono() + RETRY;
			note_failure(s, row, &err);
		}
	}
	s->failing = failed;
}

/* When the thread has to look again, by the monotonic clock. */
static slu_time
next_look(const struct scheduler *s)
{
	const slu_time now = mono(), wall = clock_wall(&clock_system);
	slu_time first = s->stale ? RETRY : AGAIN;

	for (uint32_t i = 0; i < s->n; i++) {
		const slu_time pause = s->rows[i].resume > now ? s->rows[i].resume - now : 0;
		slu_time wait = s->rows[i].due > wall ? s->rows[i].due - wall : 0;

		if (s->rows[i].due == SLU_NEVER)
			continue;
		wait = wait < pause ? pause : wait;
		wait = wait < LOOK ? wait : LOOK;
		first = wait < first ? wait : first;
	}
	return now + first;
}

/* Returns false if the thread has to end. */
static bool
rest(struct scheduler *s)
{
	const slu_time until = next_look(s);
	bool stops;

	pthread_mutex_lock(&s->mtx);
	while (!s->stops && s->changes == s->expected && mono() < until)
		clock_wait(&clock_system, &s->wake, &s->mtx, until);
	stops = s->stops;
	pthread_mutex_unlock(&s->mtx);
	return !stops;
}

static void *
run(void *arg)
{
	struct scheduler *const s = arg;

	do {
		load_if_stale(s);
		fire_due(s);
	} while (rest(s));
	return NULL;
}

/* ---- Open and close ---- */

int
scheduler_new(struct scheduler **out, struct zones *zones, struct slu_log *log, struct slu_err *err)
{
	struct scheduler *const s = mem_zalloc(sizeof *s);

	*out = s;
	if (!s)
		return slu_fail(err, SLU_ENOMEM, "no memory for the schedules");
	s->zones = zones;
	s->log = log;
	s->stale = true;
	pthread_mutex_init(&s->mtx, NULL); /* these cannot fail without attributes */
	pthread_cond_init(&s->wake, NULL);
	return 0;
}

int
scheduler_start(struct scheduler *s, struct broker *b, struct slu_err *err)
{
	s->broker = b;
	if (pthread_create(&s->thread, NULL, run, s))
		return slu_fail(err, SLU_EDOWN, "no thread for the schedules");
	s->runs = true;
	return 0;
}

void
scheduler_stop(struct scheduler *s)
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
scheduler_free(struct scheduler *s)
{
	if (!s)
		return;
	scheduler_stop(s);
	scheduler_unload(s);
	mem_free(s->rows);
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
scheduler_metrics(const struct scheduler *s, struct buf *out)
{
	put_metric(out, "sluice_schedules", "gauge", "schedules that this server fires", s ? &s->schedules : NULL);
	put_metric(out, "sluice_schedule_firings_total", "counter", "messages that schedules have begun", s ? &s->fired : NULL);
	put_metric(out, "sluice_schedule_missed_total", "counter", "ticks that were missed and did not fire",
		   s ? &s->lost : NULL);
	put_metric(out, "sluice_schedule_overlaps_total", "counter",
		   "ticks that were passed over because the message before was not finished", s ? &s->overlapped : NULL);
	put_metric(out, "sluice_schedule_failures_total", "counter", "attempts to fire that failed and are repeated",
		   s ? &s->failed : NULL);
}
