/*
 * worker.h - a worker from inside: what its threads share.
 *
 *      worker.c      life: new, start, stop, free, and what can be asked
 *      worker_run.c  the threads: take a job, run it, settle it
 *
 *  K1  A job is begun under mtx and only while leave is not PQUEUE_LEAVE_NOW. So
 *      once a stop has set that, nothing begins any more.
 *  K2  A thread's last use of the worker is to lower `alive` under mtx. So whoever
 *      sees 0 there may join, even holding mtx.
 *  K3  Locks: mtx, then the queue's own. No callback and no log line under either.
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
	/* Fixed once made. */
	struct slu_worker_config config; /* defaults filled in */
	struct clock *clock;

	/* Safe from any thread as they are. */
	struct metrics metrics;
	struct failures failures;
	struct pqueue_waiter waiter; /* under the queue's lock */

	/* Shared, under mtx. */
	pthread_mutex_t mtx;
	pthread_cond_t ended; /* alive became 0 */
	pthread_t *threads;   /* room for config.threads */
	uint32_t n_threads;   /* started and not joined; 0: the worker does not run */
	uint32_t alive;       /* of those, still in their loop */
	uint32_t running;     /* jobs begun and not settled */
	uint64_t starts;      /* tells one run of the worker from the next */
	enum pqueue_leave leave;
};

/* In worker_run.c: the thread function. */
void *worker_work(void *worker);

#endif
