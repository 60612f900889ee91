/*
 * standin.h - one thread of the broker that stands in for lanes whose thread hangs in commit.
 *
 *      lane's thread:   take ops ──> run ──> commit . . . . . . . . . . . . . ──> answer
 *                                               │ after LANE_SLOW
 *      stand-in:                                └──> lane_attend, every STANDIN_PERIOD
 *
 * A sync takes some 100 us, and may take minutes on a disk that hangs. The lane's thread syncs itself,
 * because a second thread would cost two switches for every batch. So another thread must end waits,
 * handle cancels and take new ops while the sync hangs.
 *
 *  STANDIN-1  The stand-in looks at the lanes every STANDIN_PERIOD while they run batches. After
 *             STANDIN_QUIET looks without a batch it sleeps without a timer, and the next commit wakes
 *             it. So a commit makes a system call only after a quiet time.
 *  STANDIN-2  The stand-in attends to a lane only while the lane's thread is in commit (LANE-13).
 */
#ifndef BROKER_STANDIN_H
#define BROKER_STANDIN_H

#include "base/clock.h"

#include <sluice/err.h>

#include <stdatomic.h>

struct lane;

#define STANDIN_PERIOD (25 * SLU_MS)

enum {
	STANDIN_QUIET = 40
};

struct standin {
	/* Fixed once started. */
	struct clock *clock;
	struct lane *const *lanes; /* lanes[0 .. *n - 1] stay while the stand-in runs */
	const _Atomic uint32_t *n;
	pthread_t thread;
	bool started;

	/* Shared. */
	_Atomic bool awake;
	pthread_mutex_t mtx;
	pthread_cond_t news; /* awake or stopping was set */
	bool stopping;       /* under mtx */

	/* The thread's. */
	uint64_t batches; /* of all lanes at the last look */
	unsigned quiet;   /* looks without a batch */
};

/* Starts the thread. Does nothing if it has started. Returns SLU_EDOWN. */
int standin_start(struct standin *st, struct clock *clock, struct lane *const *lanes,
		  const _Atomic uint32_t *n, struct slu_err *err);

/* The threads of all lanes have ended. Zeroed is fine. */
void standin_stop(struct standin *st);

/* Ends the sleep of STANDIN-1. */
void standin_rouse(struct standin *st);

/* A commit begins. NULL is fine. */
static inline void
standin_wake(struct standin *st)
{
	if (st && !atomic_load(&st->awake))
		standin_rouse(st);
}

#endif
