/*
 * worker_fixture.h - the fixture of test_worker*.c: a queue, a clock that stands still, a log
 * that is kept, and jobs that follow a plan.
 */
#ifndef TESTS_WORKER_FIXTURE_H
#define TESTS_WORKER_FIXTURE_H

#include "fakeclock.h"
#include "test.h"

#include "base/log.h"
#include "exec/pqueue.h"

#include <sluice/worker.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define START_MONO (1000 * SLU_SEC)
#define START_WALL (1700000000 * SLU_SEC)

/* What a job does; its data. In a test it is static: the worker stops after the test returned. */
struct plan {
	int fails; /* that many attempts, then it succeeds; -1: all */
	int rc;    /* what a failing attempt returns; 0: SLU_EFAILED */
	const char *text;
	const char *panic; /* instead of returning */
	bool waits;        /* until the fixture's gate is open */
	_Atomic int runs;
	_Atomic unsigned attempt; /* as the last run saw it */
};

static struct {
	struct fakeclock clock;
	struct slu_log *log;
	struct slu_pqueue *queue;
	struct slu_worker *worker;

	_Atomic bool gate;
	_Atomic int inside; /* handlers running now */
	_Atomic int most;   /* that ran at once */
	_Atomic int total;  /* runs */
	_Atomic int opened; /* sessions */
	_Atomic int closed;
	_Atomic int dead;
	char order[64]; /* first letters of the object ids, as they ran */

	pthread_mutex_t mtx;
	struct slu_job_item dead_job; /* the last one; shared, under mtx, as all below */
	struct slu_err dead_err;
	char *lines; /* what was logged, terminated */
	size_t n_lines;
} f;

static inline void
keep_line(void *arg, enum slu_log_level level, const char *line, size_t n)
{
	(void)arg;
	(void)level;
	pthread_mutex_lock(&f.mtx);
	f.lines = realloc(f.lines, f.n_lines + n + 1);
	memcpy(f.lines + f.n_lines, line, n);
	f.n_lines += n;
	f.lines[f.n_lines] = 0;
	pthread_mutex_unlock(&f.mtx);
}

/* The first logged line that has both parts, or NULL. Free it. */
static inline char *
find_line(const char *a, const char *b)
{
	char *all, *next, *found = NULL;

	pthread_mutex_lock(&f.mtx);
	all = strdup(f.lines ? f.lines : "");
	pthread_mutex_unlock(&f.mtx);
	for (char *line = all; *line && !found; line = next) {
		next = line + strcspn(line, "\n") + 1;
		next[-1] = 0;
		if (strstr(line, a) && strstr(line, b))
			found = strdup(line);
	}
	free(all);
	return found;
}

static inline void
check_line(const char *a, const char *b)
{
	char *line = find_line(a, b);

	if (!line)
		test_fail(__FILE__, __LINE__, "no line with %s and %s", a, b);
	free(line);
}

static inline int
fail_as_planned(const struct plan *p, struct slu_err *err)
{
	const int rc = p->rc ? p->rc : SLU_EFAILED;

	if (p->panic)
		slu_panic("%s", p->panic);
	if (p->text)
		return slu_fail(err, (enum slu_code)rc, "%s", p->text);
	return rc;
}

static inline void
note_entry(const struct slu_job_item *job)
{
	const int inside = atomic_fetch_add(&f.inside, 1) + 1;
	const int turn = atomic_fetch_add(&f.total, 1);
	int most = atomic_load(&f.most);

	while (inside > most && !atomic_compare_exchange_weak(&f.most, &most, inside))
		continue;
	if (turn < (int)sizeof f.order - 1)
		f.order[turn] = job->object_id[0];
}

static inline int
run_plan(const struct slu_job_item *job, void *session, void *arg, struct slu_err *err)
{
	struct plan *p = job->data;
	int run;

	(void)arg;
	(void)session;
	note_entry(job);
	p->attempt = job->attempts;
	run = atomic_fetch_add(&p->runs, 1) + 1;
	if (p->waits)
		WAIT_UNTIL(atomic_load(&f.gate));
	atomic_fetch_sub(&f.inside, 1);
	return p->fails < 0 || run <= p->fails ? fail_as_planned(p, err) : 0;
}

static inline void
note_dead(const struct slu_job_item *job, const struct slu_err *err, void *arg)
{
	(void)arg;
	pthread_mutex_lock(&f.mtx);
	f.dead_job = *job;
	f.dead_err = *err;
	pthread_mutex_unlock(&f.mtx);
	atomic_fetch_add(&f.dead, 1);
}

/* A queue and, with the worker's config filled up, a worker that is not started. */
static inline void
setup_queue(struct slu_pqueue_config queue)
{
	memset(&f, 0, sizeof f);
	pthread_mutex_init(&f.mtx, NULL);
	fakeclock_init(&f.clock, START_MONO, START_WALL);
	f.log = slu_log_new(SLU_LOG_DEBUG, SLU_LOG_LOGFMT, keep_line, NULL);
	log_set_clock(f.log, &f.clock.clock);
	queue.struct_size = sizeof queue;
	queue.log = f.log;
	CHECK_EQ(0, pqueue_new_on(&f.queue, &queue, &f.clock.clock, NULL));
}

static inline struct slu_worker_config
fill(struct slu_worker_config config)
{
	config.struct_size = sizeof config;
	config.queue = f.queue;
	config.handler = config.handler ? config.handler : run_plan;
	config.dead_letter = config.dead_letter ? config.dead_letter : note_dead;
	config.log = f.log;
	if (!config.poll_timeout)
		config.poll_timeout = 1000 * SLU_HOUR; /* no wake-ups but those tested */
	return config;
}

static inline void
setup(struct slu_worker_config config)
{
	setup_queue((struct slu_pqueue_config){ SLU_OPTIONS_INIT(struct slu_pqueue_config) });
	config = fill(config);
	CHECK_EQ(0, slu_worker_new(&f.worker, &config, NULL));
}

static inline void
start(void)
{
	struct slu_err err = { 0 };

	if (slu_worker_start(f.worker, &err))
		test_fail(__FILE__, __LINE__, "start: %s", err.text);
}

static inline void
teardown(void)
{
	slu_worker_free(f.worker);
	slu_pqueue_free(f.queue, NULL);
	slu_log_free(f.log);
	fakeclock_release(&f.clock);
	pthread_mutex_destroy(&f.mtx);
	free(f.lines);
}

static inline void
put_later(const char *id, struct plan *plan, slu_time delay)
{
	const struct slu_job job = {
		SLU_OPTIONS_INIT(struct slu_job),
		.object_id = id,
		.correlation_id = "req-7",
		.delay = delay,
		.data = plan,
	};

	CHECK_EQ(0, slu_pqueue_enqueue(f.queue, &job, NULL, NULL));
}

static inline void
put(const char *id, struct plan *plan)
{
	put_later(id, plan, 0);
}

static inline struct slu_worker_stats
stats_of(void)
{
	struct slu_worker_stats s;

	slu_worker_snapshot(f.worker, &s);
	return s;
}

static inline struct slu_pqueue_stats
queue_of(void)
{
	struct slu_pqueue_stats s;

	slu_pqueue_snapshot(f.queue, &s);
	return s;
}

/* All threads sleep: whatever could happen by now has happened. */
static inline void
settle(int threads)
{
	/* In this order: a thread that was woken counts as a sleeper until it runs. */
	WAIT_UNTIL(queue_of().ready == 0 && stats_of().running == 0 &&
		   fakeclock_sleepers(&f.clock) == threads);
}

#endif
