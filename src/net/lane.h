/*
 * lane.h - long work on the file threads, a few jobs at a time.
 *
 *      lane_run ──> fewer than `max` run ──> a file thread: run ──> the loop: then
 *          │                                                          │
 *          └─> waits, oldest first <── takes the free place ──────────┘
 *
 * libuv has one set of file threads for the whole process. Work that computes for long
 * (queries, changes of large documents) passes a lane, so that uploads and reads always
 * find a thread that the lane does not use.
 *
 *  LANE-1  lane_run is called on the job's loop, and so is `then`, exactly once; `then`
 *          may run before lane_run returns if there is no memory.
 *  LANE-2  At most `max` jobs of a lane run at once, whichever loops they belong to. Jobs
 *          start in the order they came.
 *  LANE-3  The owner keeps the job until `then`. A lane outlives its jobs.
 */
#ifndef NET_LANE_H
#define NET_LANE_H

#include "base/list.h"
#include "net/loop.h"

#include <pthread.h>

enum {
	LANE_MAX = LOOP_FILE_THREADS / 2
};

struct lane_job {
	/* Set by the owner. */
	struct loop *loop;
	int (*run)(struct lane_job *j);           /* on a file thread */
	void (*then)(struct lane_job *j, int rc); /* on the loop; rc of run, or SLU_ENOMEM */

	/* Inner. */
	struct lane *lane;
	struct list node; /* waiting */
	uv_work_t work;
	struct loop_work start; /* posted to its loop */
	int rc;
};

struct lane {
	pthread_mutex_t lock;
	unsigned max, running;
	struct list waiting;
};

void lane_init(struct lane *l, unsigned max); /* owns nothing: no release */

/* l NULL: at once, beside any number of others. */
void lane_run(struct lane *l, struct lane_job *j);

#endif
