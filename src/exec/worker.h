/*
 * worker.h - the state of a worker, for worker*.c.
 *
 *      worker.c      new, start, stop, free, and the public look-ups
 *      worker_run.c  the threads: take a job, run it, settle it
 *
 *  WORKER-1  A job begins under mtx, and only while leave is not PQUEUE_LEAVE_NOW. So no job
 *            begins after a stop has set that.
 *  WORKER-2  A thread's last use of the worker is to lower `alive` under mtx. So a thread that
 *            reads 0 may join, even while it holds mtx.
 *  WORKER-3  Order of locks: mtx, then the queue's. No callback and no log line under either.
 */
#ifndef EXEC_WORKER_H
#define EXEC_WORKER_H

#include "base/clock.h"
#include "base/metrics.h"
#include "exec/failures.h"
#include "exec/pqueue.h"

#include <sluice/worker.h>

enum worker_metric {
	WORKER_RUN_TIME,
	WORKER_FAILURES,
	WORKER_DONE,
	WORKER_DEAD,
	WORKER_RETRIED,
	WORKER_DEFERRED,
	WORKER_POLLS,
	WORKER_METRICS
};

struct slu_worker {
	uint32_t born; /* forked.h */
	/* Constant. */
	struct slu_worker_config config; /* with defaults filled in */
	struct clock *clock;

	/* Any thread; with locks of their own. */
	struct metrics metrics;
	struct failures failures;
	struct pqueue_waiter waiter; /* under the queue's lock */

	/* Shared, under mtx. */
	pthread_mutex_t mtx;
	pthread_cond_t ended; /* alive became 0 */
	pthread_t *threads;   /* room for config.threads */
	uint32_t n_threads;   /* started and not joined; 0: the worker does not run */
	uint32_t alive;       /* of these, threads in their loop */
	uint32_t running;     /* jobs begun and not settled */
	uint64_t starts;      /* number of the present run of the worker */
	enum pqueue_leave leave;
};

/* The thread function (worker_run.c). */
void *worker_work(void *worker);

#endif
