/*
 * worker_run.c - the thread function of a worker. It calls user functions only through
 * guarded(), so that a panic fails only one attempt.
 */
#include "exec/worker.h"

#include "base/contain.h"
#include "base/log.h"
#include "core/backoff.h"
#include "exec/guard.h"

#include <stdio.h>
#include <sys/random.h>

/* One delivery of one job. Owned by the thread that runs it. */
struct attempt {
	struct slu_worker *w;
	struct slu_job_item job;
	uint32_t handle;
	void *session;
	slu_time delay; /* until the retry */
	struct slu_breaker *breaker;
	slu_time defer_until; /* of slu_job_defer; -1: not called */
	struct slu_err err;
};

typedef int attempt_fn(struct attempt *a);

/* The attempt of this thread, for slu_job_defer; set while the handler runs. */
static _Thread_local struct attempt *handled;

enum {
	DEFERRED = SLU_EDOWN /* the result of slu_job_defer */
};

int
slu_job_defer(slu_time until)
{
	if (!handled || until < 0)
		return SLU_EINVAL;
	handled->defer_until = until;
	return DEFERRED;
}

static const char *
or_none(const char *s)
{
	return *s ? s : NULL;
}

static int
guarded(struct attempt *a, attempt_fn *fn, const char *what)
{
	struct panic_guard g;
	int rc;

	if (GUARD_ENTER(&g))
		rc = slu_fail(&a->err, SLU_EPANIC, "%s panicked: %s", what, g.text);
	else
		CONTAIN("it", rc = fn(a));
	guard_leave(&g);
	return rc;
}

static int
open_session(struct attempt *a)
{
	const struct slu_worker_config *c = &a->w->config;

	return c->session_open ? c->session_open(&a->session, c->arg, &a->err) : 0;
}

static int
close_session(struct attempt *a)
{
	const struct slu_worker_config *c = &a->w->config;

	if (c->session_close)
		c->session_close(a->session, c->arg);
	return 0;
}

static int
handle(struct attempt *a)
{
	const struct slu_worker_config *c = &a->w->config;

	return c->handler(&a->job, a->session, c->arg, &a->err);
}

static int
dead_letter(struct attempt *a)
{
	const struct slu_worker_config *c = &a->w->config;

	if (c->dead_letter)
		c->dead_letter(&a->job, &a->err, c->arg);
	return 0;
}

static int
choose_delay(struct attempt *a)
{
	const struct slu_backoff *b = &a->w->config.backoff;
	uint64_t random = 0;

	if (b->jitter != SLU_JITTER_NONE)
		(void)getrandom(&random, sizeof random, GRND_NONBLOCK); /* 0 is a throw, too */
	a->delay = backoff_delay(b, a->job.attempts, random);
	return 0;
}

/* An open session is always closed. The handler's result is the job's result: after 0 it may have
 * freed the data, so a panic in close is only logged. */
static int
run_in_session(struct attempt *a)
{
	struct slu_err verdict;
	int rc;

	rc = guarded(a, open_session, "session_open");
	if (rc)
		return rc;
	a->err = (struct slu_err){ 0 };
	handled = a;
	rc = guarded(a, handle, "handler");
	handled = NULL;
	verdict = a->err;
	if (guarded(a, close_session, "session_close"))
		log_error(a->w->config.log, "session not closed",
			  F_STR("object_id", or_none(a->job.object_id)),
			  F_STR("correlation_id", or_none(a->job.correlation_id)),
			  F_STR("error", a->err.text));
	a->err = verdict;
	return rc;
}

static bool
is_deferred(const struct attempt *a, int rc)
{
	return rc == DEFERRED && a->defer_until >= 0;
}

static int
run_timed(struct attempt *a)
{
	struct slu_worker *w = a->w;
	const slu_time start = clock_mono(w->clock);
	int rc;

	log_debug(w->config.log, "job started", F_STR("object_id", or_none(a->job.object_id)),
		  F_STR("correlation_id", or_none(a->job.correlation_id)),
		  F_U64("attempt", a->job.attempts));
	rc = run_in_session(a);
	metrics_observe(&w->metrics, WORKER_RUN_TIME, 0, clock_mono(w->clock) - start);
	if (a->breaker && !is_deferred(a, rc))
		slu_breaker_report(a->breaker, rc == 0);
	return rc;
}

static void
finish(struct attempt *a)
{
	struct slu_worker *w = a->w;

	log_debug(w->config.log, "job done", F_STR("object_id", or_none(a->job.object_id)),
		  F_STR("correlation_id", or_none(a->job.correlation_id)),
		  F_U64("attempt", a->job.attempts));
	pqueue_finish(w->config.queue, a->handle);
	metrics_add(&w->metrics, WORKER_DONE, 0, 1);
}

/* The handler may have filled err for this code, for another code, or not at all. */
static void
complete_err(struct slu_err *err, int rc)
{
	err->code = (enum slu_code)rc;
	if (!err->text[0])
		(void)snprintf(err->text, sizeof err->text, "%s", slu_err_row(rc)->text);
}

static void
remember(struct attempt *a)
{
	struct slu_failure f = {
		.type = slu_err_row((int)a->err.code)->c_name,
		.attempt = a->job.attempts,
		.at = clock_wall(a->w->clock),
	};

	memcpy(f.object_id, a->job.object_id, sizeof f.object_id);
	memcpy(f.correlation_id, a->job.correlation_id, sizeof f.correlation_id);
	(void)snprintf(f.error, sizeof f.error, "%.*s", (int)sizeof f.error - 1, a->err.text);
	failures_add(&a->w->failures, &f);
}

static void
log_failure(struct attempt *a, const char *then)
{
	log_error(a->w->config.log, "job failed", F_STR("object_id", or_none(a->job.object_id)),
		  F_STR("correlation_id", or_none(a->job.correlation_id)),
		  F_STR("error", a->err.text),
		  F_STR("type", slu_err_row((int)a->err.code)->c_name),
		  F_U64("attempt", a->job.attempts), F_STR("then", then),
		  F_TIME("retry_in", a->delay));
}

static void
bury(struct attempt *a)
{
	struct slu_worker *w = a->w;

	log_failure(a, "dead letter");
	if (guarded(a, dead_letter, "dead_letter"))
		log_error(w->config.log, "dead letter lost",
			  F_STR("object_id", or_none(a->job.object_id)),
			  F_STR("correlation_id", or_none(a->job.correlation_id)),
			  F_STR("error", a->err.text));
	pqueue_finish(w->config.queue, a->handle);
	metrics_add(&w->metrics, WORKER_DEAD, 0, 1);
}

static void
retry(struct attempt *a)
{
	struct slu_worker *w = a->w;
	const struct slu_err why = a->err;

	if (guarded(a, choose_delay, "backoff"))
		a->delay = w->config.backoff.max;
	a->err = why;
	log_failure(a, "retry");
	pqueue_put_back(w->config.queue, a->handle, a->delay, true);
	metrics_add(&w->metrics, WORKER_RETRIED, 0, 1);
}

static void
fail(struct attempt *a, int rc)
{
	struct slu_worker *w = a->w;

	complete_err(&a->err, rc);
	remember(a);
	metrics_add(&w->metrics, WORKER_FAILURES, 0, 1);
	if (rc == SLU_EPERMANENT || a->job.attempts >= w->config.max_attempts)
		bury(a);
	else
		retry(a);
}

static void
defer(struct attempt *a, slu_time delay)
{
	struct slu_worker *w = a->w;

	log_debug(w->config.log, "job deferred", F_STR("object_id", or_none(a->job.object_id)),
		  F_STR("correlation_id", or_none(a->job.correlation_id)),
		  F_TIME("retry_in", delay));
	pqueue_put_back(w->config.queue, a->handle, delay, false);
	metrics_add(&w->metrics, WORKER_DEFERRED, 0, 1);
}

static int
choose_breaker(struct attempt *a)
{
	const struct slu_worker_config *c = &a->w->config;

	a->breaker = c->breaker_of ? c->breaker_of(&a->job, c->arg) : c->breaker;
	return 0;
}

static void
run_job(struct attempt *a)
{
	slu_time wait;
	int rc;

	rc = guarded(a, choose_breaker, "breaker_of");
	if (!rc && a->breaker && slu_breaker_allow(a->breaker, &wait)) {
		defer(a, wait);
		return;
	}
	if (!rc)
		rc = run_timed(a);
	if (is_deferred(a, rc))
		defer(a, a->defer_until - clock_wall(a->w->clock));
	else if (rc)
		fail(a, rc);
	else
		finish(a);
}

/* Waits for a job. Returns false if the thread must leave. */
static bool
take(struct attempt *a)
{
	struct slu_worker *w = a->w;
	int rc;

	a->session = NULL;
	a->breaker = NULL;
	a->defer_until = -1;
	a->delay = 0;
	a->err = (struct slu_err){ 0 };
	do {
		rc = pqueue_take(w->config.queue, &w->waiter, w->config.poll_timeout,
				 &a->job, &a->handle);
		if (rc == SLU_ETIMEOUT)
			metrics_add(&w->metrics, WORKER_POLLS, 0, 1);
	} while (rc == SLU_ETIMEOUT);
	return rc == 0;
}

/* WORKER-1. A job that was taken too late returns to the queue unchanged. */
static bool
begin(struct attempt *a)
{
	struct slu_worker *w = a->w;
	bool begun;

	pthread_mutex_lock(&w->mtx);
	begun = w->leave != PQUEUE_LEAVE_NOW;
	if (begun)
		w->running++;
	pthread_mutex_unlock(&w->mtx);
	if (!begun)
		pqueue_put_back(w->config.queue, a->handle, 0, false);
	return begun;
}

static void
end(struct slu_worker *w)
{
	pthread_mutex_lock(&w->mtx);
	w->running--;
	pthread_mutex_unlock(&w->mtx);
}

static void
leave(struct slu_worker *w) /* WORKER-2 */
{
	pthread_mutex_lock(&w->mtx);
	w->alive--;
	if (!w->alive)
		pthread_cond_broadcast(&w->ended);
	pthread_mutex_unlock(&w->mtx);
}

void *
worker_work(void *worker)
{
	struct attempt a = { .w = worker };

	pthread_mutex_lock(&a.w->mtx); /* until the start is decided */
	pthread_mutex_unlock(&a.w->mtx);
	while (take(&a) && begin(&a)) {
		run_job(&a);
		end(a.w);
	}
	leave(a.w);
	return NULL;
}
