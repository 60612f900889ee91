/*
 * worker.h - threads that run the jobs of a priority queue.
 *
 *      dequeue ─> breaker? ─> session open ─> handler ─> session close ─┬─> done
 *                    │ open                                             ├─> retry: back
 *                    └─> back into the queue until the cool-down ends   │   into the queue
 *                        (no attempt is spent)                          └─> dead letter
 *
 * A handler that fails or panics fails its job, never the worker. A failed job returns to
 * its queue with a delay until max_attempts deliveries have failed; then dead_letter gets it.
 * A retry needs no new memory, and no queue refuses it, not even a full or stopped one.
 *
 * Several workers may serve one queue. A worker can be started again after a stop. Any thread
 * may call these functions, but a handler may not stop its own worker (SLU_EINVAL).
 *
 * The callbacks of a config (handler, session_open, session_close, breaker_of, dead_letter,
 * the backoff's fn) run on the worker's threads: callbacks of one attempt on one thread, one
 * after the other; with `threads` over 1, callbacks of different jobs at once.
 */
#ifndef SLUICE_WORKER_H
#define SLUICE_WORKER_H

#include <sluice/breaker.h>
#include <sluice/panic.h>
#include <sluice/pqueue.h>
#include <sluice/retry.h>

SLU_BEGIN_DECLS

struct slu_worker;

/* Runs one job. Returns 0 if it is done, SLU_EPERMANENT to make it a dead letter at once, any other
 * value for a retry. Fill err for a text of your own. With several threads, calls overlap. */
typedef int slu_job_fn(const struct slu_job_item *job, void *session, void *arg,
		       struct slu_err *err);

/*
 * Defers the job of the handler on this thread to a moment of the wall clock (a past one: at once),
 * without counting an attempt:
 *
 *         if (rate_limited_until)
 *                 return slu_job_defer(rate_limited_until);
 *
 * Returns the code that the handler has to return. The job returns to its queue even if that is
 * full or stopped, counts as deferred, and its breaker gets no report. Returns SLU_EINVAL if until
 * is negative, or if no handler of a worker runs on this thread.
 */
SLU_API int slu_job_defer(slu_time until);

/* Returns the breaker of a job's destination, or NULL. Must not block. */
typedef struct slu_breaker *slu_breaker_fn(const struct slu_job_item *job, void *arg);

/* Gets a job that has failed with err and will not run again. Free job->data here. Thread: the one of
 * the last attempt; calls overlap. */
typedef void slu_dead_fn(const struct slu_job_item *job, const struct slu_err *err,
			 void *arg);

struct slu_worker_config {
	size_t struct_size;         /* SLU_OPTIONS_INIT */
	struct slu_pqueue *queue;   /* required; outlives the worker */
	slu_job_fn *handler;        /* required */
	void *arg;                  /* argument of all callbacks here */
	uint32_t threads;           /* 0: 1; at most 1024 */
	slu_time poll_timeout;      /* 0: 5 s; how often an idle thread wakes up */
	uint32_t max_attempts;      /* 0: 5 */
	struct slu_backoff backoff; /* zeros: exponential, 1 s, at most 15 min */
	slu_dead_fn *dead_letter;   /* NULL: dead letters are only logged */

	/* Every attempt gets a new session, which is always closed. Both may be NULL. If open fails,
	 * the attempt fails. A panic in close is logged, and the handler's result counts. */
	int (*session_open)(void **session, void *arg, struct slu_err *err);
	void (*session_close)(void *session, void *arg);

	/* The worker calls slu_breaker_allow before each attempt and slu_breaker_report after it;
	 * every failed attempt counts, also a permanent one. May be NULL. */
	struct slu_breaker *breaker;
	slu_breaker_fn *breaker_of;    /* instead of breaker, for jobs of several destinations */
	uint32_t failures_kept;        /* recent failures to keep; 0: 100 */
	const char *metrics_namespace; /* "sluice": sluice_worker_job_failures_total ... */
	struct slu_log *log;
};

SLU_API int slu_worker_new(struct slu_worker **out,
			   const struct slu_worker_config *config,
			   struct slu_err *err);

/* Stops it first, as with SLU_STOP_NOW. NULL is fine. Not from a handler. */
SLU_API void slu_worker_free(struct slu_worker *w);

/* Returns SLU_ECONFLICT if the worker runs, SLU_EDOWN if the system has no more threads: then no
 * thread runs. */
SLU_API int slu_worker_start(struct slu_worker *w, struct slu_err *err);

/*
 * Ends the threads. SLU_STOP_READY runs ready jobs first, SLU_STOP_ALL also scheduled ones,
 * SLU_STOP_NOW lets only running jobs end. Other jobs stay in the queue. After timeout (0:
 * SLU_NEVER; SLU_NOWAIT) no further job begins, and the call returns SLU_ETIMEOUT while the last
 * jobs run; call it again to wait for them. Any number of callers; a later call can only make the
 * stop faster. Stopping a worker that does not run is fine.
 *
 * If its queue is stopped and drained, the threads end by themselves; then a stop is only needed
 * before another start.
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

/* Copies up to n recent failures, newest first. Returns their number. */
SLU_API uint32_t slu_worker_failures(struct slu_worker *w, struct slu_failure *list,
				     uint32_t n);

struct slu_worker_stats {
	uint32_t threads;     /* that run */
	uint32_t running;     /* jobs that run */
	uint64_t done;        /* jobs */
	uint64_t failed;      /* attempts */
	uint64_t retried;     /* failed attempts whose job returned to the queue */
	uint64_t dead;        /* jobs passed to dead_letter */
	uint64_t deferred;    /* by an open breaker, or by slu_job_defer */
	uint64_t polls;       /* times that an idle thread found no job */
	uint64_t reserved[4]; /* 0 */
};

SLU_API void slu_worker_snapshot(struct slu_worker *w, struct slu_worker_stats *stats);

/* *text: job_processing_duration_seconds, job_failures_total, jobs_done_total,
 * jobs_dead_total, jobs_retried_total, jobs_deferred_total, idle_polls_total. Free it
 * with slu_free. */
SLU_API int slu_worker_metrics(struct slu_worker *w, char **text);

SLU_END_DECLS

#endif
