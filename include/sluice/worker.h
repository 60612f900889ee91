/*
 * worker.h - threads that run the jobs of a priority queue.
 *
 *      dequeue ─> breaker? ─> session open ─> handler ─> session close ─┬─> done
 *                    │ open                                             ├─> retry: back
 *                    └─> back into the queue until the cool-down ends   │   into the queue
 *                        (no attempt is spent)                          └─> dead letter
 *
 * A handler that fails or panics fails its job, never the worker. A failed job goes
 * back into its queue with a delay until max_attempts deliveries have failed, then
 * dead_letter gets it. A retry never needs new memory and is never refused, not even
 * by a full or stopped queue.
 *
 * Several workers may serve one queue. A worker can be started again after a stop.
 * All functions are safe from any thread; a handler may not stop its own worker
 * (SLU_EINVAL).
 *
 * All callbacks of a config (handler, session_open and _close, breaker_of, dead_letter, the
 * backoff's fn) run on the worker's threads: those of one attempt on one thread, one after
 * the other; with `threads` over 1 those of different jobs at once.
 */
#ifndef SLUICE_WORKER_H
#define SLUICE_WORKER_H

#include <sluice/breaker.h>
#include <sluice/panic.h>
#include <sluice/pqueue.h>
#include <sluice/retry.h>

SLU_BEGIN_DECLS

struct slu_worker;

/* Run one job. 0: done. SLU_EPERMANENT: dead letter at once. Anything else: retry.
 * Fill err for a sentence of your own. Two run at once if there are two threads. */
typedef int slu_job_fn(const struct slu_job_item *job, void *session, void *arg,
		       struct slu_err *err);

/*
 * Put the job that this thread's handler runs off, until a moment of the wall clock (one that
 * has passed: at once), without spending an attempt:
 *
 *         if (rate_limited_until)
 *                 return slu_job_defer(rate_limited_until);
 *
 * Returns the code that the handler has to return; the job goes back into its queue even if
 * that is full or stopped, counts as deferred, and its breaker hears nothing. SLU_EINVAL: until
 * is negative, or no handler of a worker runs on this thread.
 */
SLU_API int slu_job_defer(slu_time until);

/* Which breaker a job is for, by its destination; NULL: none. Must not block. */
typedef struct slu_breaker *slu_breaker_fn(const struct slu_job_item *job, void *arg);

/* The end of the line: job failed for good with err. Free job->data here. Thread: the one
 * that ran the last attempt; two may run at once. */
typedef void slu_dead_fn(const struct slu_job_item *job, const struct slu_err *err,
			 void *arg);

struct slu_worker_config {
	size_t struct_size;         /* SLU_OPTIONS_INIT */
	struct slu_pqueue *queue;   /* required; outlives the worker */
	slu_job_fn *handler;        /* required */
	void *arg;                  /* for all callbacks here */
	uint32_t threads;           /* 0: 1; at most 1024 */
	slu_time poll_timeout;      /* 0: 5 s; an idle thread looks around this often */
	uint32_t max_attempts;      /* 0: 5 */
	struct slu_backoff backoff; /* zeros: exponential, 1 s, at most 15 min */
	slu_dead_fn *dead_letter;   /* may be NULL: logged only */

	/* A fresh session for every attempt, closed whatever happens. Both may be NULL.
	 * A failing open fails the attempt. A close that panics is logged; what the
	 * handler returned counts. */
	int (*session_open)(void **session, void *arg, struct slu_err *err);
	void (*session_close)(void *session, void *arg);

	/* May be NULL. Asked before each attempt, told after: an attempt that failed in
	 * any way, also for good, is a failure to it. */
	struct slu_breaker *breaker;
	slu_breaker_fn *breaker_of;    /* or one by job, for jobs of several destinations: asked
					* before each attempt; not both */
	uint32_t failures_kept;        /* how many recent failures to remember; 0: 100 */
	const char *metrics_namespace; /* "sluice": sluice_worker_job_failures_total ... */
	struct slu_log *log;
};

SLU_API int slu_worker_new(struct slu_worker **out,
			   const struct slu_worker_config *config,
			   struct slu_err *err);

/* Stops it first, as with SLU_STOP_NOW. NULL is fine; not from a handler. */
SLU_API void slu_worker_free(struct slu_worker *w);

/* SLU_ECONFLICT when it runs already, SLU_EDOWN when the system has no thread to
 * give: then none runs. */
SLU_API int slu_worker_start(struct slu_worker *w, struct slu_err *err);

/*
 * End the threads: SLU_STOP_READY runs what is ready first, SLU_STOP_ALL also what
 * is scheduled, SLU_STOP_NOW only what runs already. What is left stays in the queue.
 * After timeout (0: SLU_NEVER; SLU_NOWAIT) no further job is begun and SLU_ETIMEOUT is returned
 * while the last jobs still run; call again to wait for them. Any number of callers; a
 * later call can only hurry. Stopping a worker that does not run is fine.
 *
 * When its queue has been stopped and is drained, the threads end by themselves; a
 * stop is then only needed before another start.
 */
SLU_API int slu_worker_stop(struct slu_worker *w, enum slu_stop_mode mode,
			    slu_time timeout);

struct slu_failure {
	char object_id[SLU_OBJECT_ID_MAX + 1];
	char correlation_id[SLU_CORRELATION_MAX + 1];
	char error[160];
	const char *type; /* of the error, as in err.h: "SLU_EDOWN" */
	unsigned attempt;
	slu_time at;          /* wall clock */
	uint64_t reserved[2]; /* 0 */
};

/* The most recent failures, newest first: up to n of them. Returns how many. */
SLU_API uint32_t slu_worker_failures(struct slu_worker *w, struct slu_failure *list,
				     uint32_t n);

struct slu_worker_stats {
	uint32_t threads; /* alive now */
	uint32_t running; /* jobs running now */
	uint64_t done;
	uint64_t failed;      /* attempts that failed */
	uint64_t retried;     /* failed attempts that went back into the queue */
	uint64_t dead;        /* jobs that went to dead_letter */
	uint64_t deferred;    /* put back by an open breaker, or by slu_job_defer */
	uint64_t polls;       /* times a thread looked and found nothing */
	uint64_t reserved[4]; /* 0 */
};

SLU_API void slu_worker_snapshot(struct slu_worker *w, struct slu_worker_stats *stats);

/* *text: job_processing_duration_seconds, job_failures_total, jobs_done_total,
 * jobs_dead_total, jobs_retried_total, jobs_deferred_total, idle_polls_total. Free it
 * with slu_free. */
SLU_API int slu_worker_metrics(struct slu_worker *w, char **text);

SLU_END_DECLS

#endif
