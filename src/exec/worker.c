#include "exec/worker.h"

#include "base/forked.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/need.h"
#include "base/sized.h"

#include <assert.h>
#include <stdio.h>

enum {
	THREADS_MAX = 1024
};

static const struct metric metric_rows[WORKER_METRICS] = {
	[WORKER_RUN_TIME] = { "job_processing_duration_seconds", METRIC_HISTOGRAM, "time an attempt took" },
	[WORKER_FAILURES] = { "job_failures_total", METRIC_COUNTER, "attempts that failed" },
	[WORKER_DONE] = { "jobs_done_total", METRIC_COUNTER, "jobs that succeeded" },
	[WORKER_DEAD] = { "jobs_dead_total", METRIC_COUNTER, "jobs that failed for good" },
	[WORKER_RETRIED] = { "jobs_retried_total", METRIC_COUNTER, "failed attempts that will be tried again" },
	[WORKER_DEFERRED] = { "jobs_deferred_total", METRIC_COUNTER, "jobs put back by an open breaker or by slu_job_defer" },
	[WORKER_POLLS] = { "idle_polls_total", METRIC_COUNTER, "times a thread looked and found nothing" },
};

static const enum pqueue_leave leave_for[] = {
	[SLU_STOP_READY] = PQUEUE_LEAVE_WHEN_IDLE,
	[SLU_STOP_ALL] = PQUEUE_LEAVE_WHEN_DRAINED,
	[SLU_STOP_NOW] = PQUEUE_LEAVE_NOW,
};

static int
check_backoff(const struct slu_backoff *b, struct slu_err *err)
{
	if ((unsigned)b->kind > SLU_BACKOFF_FUNCTION || (unsigned)b->jitter > SLU_JITTER_FULL)
		return slu_fail(err, SLU_EINVAL, "invalid backoff: unknown kind or jitter");
	if (b->kind == SLU_BACKOFF_FUNCTION && !b->fn)
		return slu_fail(err, SLU_EINVAL, "invalid backoff: SLU_BACKOFF_FUNCTION needs fn");
	if (b->base < 0 || b->max < 0)
		return slu_fail(err, SLU_EINVAL, "invalid backoff: base or max is negative");
	return 0;
}

static int
check_config(const struct slu_worker_config *c, struct slu_err *err)
{
	if (!c->queue || !c->handler)
		return slu_fail(err, SLU_EINVAL, "a worker needs a queue and a handler");
	if (c->breaker && c->breaker_of)
		return slu_fail(err, SLU_EINVAL, "breaker and breaker_of are set; expected one of them");
	if (c->threads > THREADS_MAX)
		return slu_fail(err, SLU_EINVAL, "invalid threads: %u; expected at most %d", c->threads,
				THREADS_MAX);
	if (c->poll_timeout < 0)
		return slu_fail(err, SLU_EINVAL, "invalid poll_timeout; expected 0 or more");
	return check_backoff(&c->backoff, err);
}

static void
fill_defaults(struct slu_worker_config *c)
{
	if (!c->threads)
		c->threads = 1;
	if (!c->poll_timeout)
		c->poll_timeout = 5 * SLU_SEC;
	if (!c->max_attempts)
		c->max_attempts = 5;
	if (!c->backoff.base)
		c->backoff.base = SLU_SEC;
	if (!c->backoff.max)
		c->backoff.max = 15 * SLU_MIN;
	if (!c->failures_kept)
		c->failures_kept = 100;
	if (!c->metrics_namespace)
		c->metrics_namespace = "sluice";
}

static int
open_metrics(struct slu_worker *w, struct slu_err *err)
{
	char prefix[sizeof w->metrics.prefix];
	const int n = snprintf(prefix, sizeof prefix, "%s_worker_",
			       w->config.metrics_namespace);
	int rc = SLU_EINVAL;

	w->config.metrics_namespace = NULL; /* the caller's, not kept */
	if (n < (int)sizeof prefix)
		rc = metrics_init(&w->metrics, prefix, metric_rows, WORKER_METRICS, NULL, 1);
	if (rc)
		return slu_fail(err, rc, "metrics with the prefix \"%s\": %s", prefix,
				slu_err_row(rc)->text);
	return 0;
}

static int
open_parts(struct slu_worker *w, struct slu_err *err)
{
	int rc;

	rc = open_metrics(w, err);
	if (rc)
		return rc;
	w->threads = mem_array(w->config.threads, sizeof *w->threads);
	if (!w->threads || failures_init(&w->failures, w->config.failures_kept))
		return slu_fail(err, SLU_ENOMEM, "no memory for a worker");
	return 0;
}

int
slu_worker_new(struct slu_worker **out, const struct slu_worker_config *given,
	       struct slu_err *err)
{
	NEED(out, err);

	struct slu_worker_config room;
	const struct slu_worker_config *config = SIZED(slu_worker_config, given, &room, err);
	struct slu_worker *w;
	int rc;

	rc = config ? check_config(config, err) : SLU_EINVAL;
	if (rc)
		return rc;
	w = mem_zalloc(sizeof *w);
	if (!w)
		return slu_fail(err, SLU_ENOMEM, "no memory for a worker");
	w->born = forked_now();
	w->config = *config;
	fill_defaults(&w->config);
	w->clock = pqueue_clock(config->queue);
	pthread_mutex_init(&w->mtx, NULL);
	pthread_cond_init(&w->ended, NULL);
	rc = open_parts(w, err);
	if (rc) {
		slu_worker_free(w);
		return rc;
	}
	*out = w;
	return 0;
}

void
slu_worker_free(struct slu_worker *w)
{
	int rc;

	if (!w || w->born != forked_now())
		return;
	rc = slu_worker_stop(w, SLU_STOP_NOW, SLU_NEVER);
	assert(rc == 0); /* not from a handler of its own */
	failures_release(&w->failures);
	metrics_release(&w->metrics);
	pthread_cond_destroy(&w->ended);
	pthread_mutex_destroy(&w->mtx);
	mem_free(w->threads);
	mem_free(w);
}

/* A stop can only become faster. */
static void
hurry(struct slu_worker *w, enum pqueue_leave leave)
{
	if (leave <= w->leave)
		return;
	w->leave = leave;
	pqueue_leave(w->config.queue, &w->waiter, leave);
}

/* Waits until the threads of this run have ended, and joins them. */
static int
await_end(struct slu_worker *w, slu_time until)
{
	const uint64_t run = w->starts;

	while (w->starts == run && w->alive && clock_mono(w->clock) < until)
		clock_wait(w->clock, &w->ended, &w->mtx, until);
	if (w->starts != run)
		return 0; /* ended, and started again by another thread */
	if (w->alive) {
		hurry(w, PQUEUE_LEAVE_NOW);
		return SLU_ETIMEOUT;
	}
	while (w->n_threads)
		pthread_join(w->threads[--w->n_threads], NULL);
	return 0;
}

/* The threads wait for mtx until all of them have started, or one could not. */
static int
launch(struct slu_worker *w, struct slu_err *err)
{
	w->starts++;
	w->leave = PQUEUE_STAY;
	pqueue_leave(w->config.queue, &w->waiter, PQUEUE_STAY);
	while (w->n_threads < w->config.threads) {
		const int rc = pthread_create(&w->threads[w->n_threads], NULL,
					      worker_work, w);

		if (rc) {
			hurry(w, PQUEUE_LEAVE_NOW);
			(void)await_end(w, SLU_NEVER); /* leave is set, so they end at once */
			return slu_fail(err, SLU_EDOWN, "cannot start a thread for a worker: %s",
					strerrordesc_np(rc));
		}
		w->n_threads++;
		w->alive++;
	}
	return 0;
}

int
slu_worker_start(struct slu_worker *w, struct slu_err *err)
{
	NEED(w, err);
	NEED_OURS(w, err);

	int rc;

	pthread_mutex_lock(&w->mtx);
	if (w->n_threads)
		rc = slu_fail(err, SLU_ECONFLICT, "the worker runs already");
	else
		rc = launch(w, err);
	pthread_mutex_unlock(&w->mtx);
	if (!rc)
		log_info(w->config.log, "worker started",
			 F_U64("threads", w->config.threads));
	return rc;
}

static bool
is_own_thread(const struct slu_worker *w)
{
	for (uint32_t i = 0; i < w->n_threads; i++)
		if (pthread_equal(w->threads[i], pthread_self()))
			return true;
	return false;
}

static slu_time
deadline(struct slu_worker *w, slu_time timeout)
{
	if (timeout == 0)
		return SLU_NEVER;
	return timeout == SLU_NOWAIT ? 0 : time_add(clock_mono(w->clock), timeout);
}

int
slu_worker_stop(struct slu_worker *w, enum slu_stop_mode mode, slu_time timeout)
{
	NEED(w, NULL);
	NEED_OURS(w, NULL);

	slu_time until;
	bool ran;
	int rc = 0;

	if ((unsigned)mode > SLU_STOP_NOW || timeout < SLU_NOWAIT)
		return SLU_EINVAL;
	until = deadline(w, timeout);
	pthread_mutex_lock(&w->mtx);
	ran = w->n_threads > 0;
	if (is_own_thread(w)) {
		rc = SLU_EINVAL; /* it would wait for itself */
	} else if (ran) {
		hurry(w, leave_for[mode]);
		rc = await_end(w, until);
	}
	pthread_mutex_unlock(&w->mtx);
	if (ran && rc != SLU_EINVAL)
		log_warn(w->config.log, rc ? "worker still stopping" : "worker stopped");
	return rc;
}

uint32_t
slu_worker_failures(struct slu_worker *w, struct slu_failure *list, uint32_t n)
{
	return w && list ? failures_list(&w->failures, list, n) : 0;
}

static uint64_t
counted(const struct slu_worker *w, enum worker_metric row)
{
	return (uint64_t)metrics_get(&w->metrics, row, 0);
}

void
slu_worker_snapshot(struct slu_worker *w, struct slu_worker_stats *stats)
{
	if (!w || !stats || w->born != forked_now())
		return;
	pthread_mutex_lock(&w->mtx);
	*stats = (struct slu_worker_stats){
		.threads = w->alive,
		.running = w->running,
		.done = counted(w, WORKER_DONE),
		.failed = counted(w, WORKER_FAILURES),
		.retried = counted(w, WORKER_RETRIED),
		.dead = counted(w, WORKER_DEAD),
		.deferred = counted(w, WORKER_DEFERRED),
		.polls = counted(w, WORKER_POLLS),
	};
	pthread_mutex_unlock(&w->mtx);
}

int
slu_worker_metrics(struct slu_worker *w, char **text)
{
	NEED2(w, text, NULL);

	return metrics_text(&w->metrics, text);
}
