/*
 * filejobs.h - long work on the file threads, a few jobs at a time.
 *
 *      filejobs_run ──> fewer than `max` run ──> a file thread: run ──> the loop: then
 *          │                                                              │
 *          └─> waits <── takes the free place ───────────────────────────┘
 *
 *      waiting ── shop ── lab ── ...        the namespaces take turns
 *                  │
 *                 shop                      the jobs of one, oldest first
 *
 * libuv has one set of file threads for the whole process. Work that computes for long
 * (queries, changes of large documents) has a limit of jobs at once, so that uploads and
 * reads always find a free thread.
 *
 *  FILEJOBS-1  filejobs_run is called on the job's loop, and so is `then`, exactly once;
 *              `then` may run before filejobs_run returns if there is no memory.
 *  FILEJOBS-2  At most `max` jobs run at once, whichever loops they belong to. The namespaces that have
 *              jobs waiting take turns; the jobs of one start in the order they came. So a namespace
 *              with many jobs delays another by one job for each place.
 *  FILEJOBS-3  The owner keeps the job until `then`. A struct filejobs outlives its jobs.
 */
#ifndef NET_FILEJOBS_H
#define NET_FILEJOBS_H

#include "base/bytes.h"
#include "base/list.h"
#include "net/loop.h"

#include <pthread.h>

enum {
	FILEJOBS_MAX = LOOP_FILE_THREADS / 2
};

struct file_job {
	/* Set by the owner. */
	struct loop *loop;
	struct slice space;                       /* its namespace; borrowed until `then` */
	int (*run)(struct file_job *j);           /* on a file thread */
	void (*then)(struct file_job *j, int rc); /* on the loop; rc: of run, or SLU_ENOMEM */

	/* Private. */
	struct filejobs *all;
	struct list node;  /* waiting: the first job of each namespace is in filejobs.waiting */
	struct list mates; /* of that first job: the others of its namespace */
	uv_work_t work;
	struct loop_work start; /* posted to its loop */
	int rc;
};

struct filejobs {
	pthread_mutex_t lock;
	unsigned max, running;
	struct list waiting;
};

void filejobs_init(struct filejobs *l, unsigned max); /* owns nothing: no release */

/* l NULL: at once, without a limit. */
void filejobs_run(struct filejobs *l, struct file_job *j);

#endif
