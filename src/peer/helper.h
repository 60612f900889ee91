/*
 * helper.h - a few threads that run jobs which may block, for a thread that must not block.
 *
 *      helper_post ──> waiting ──> a thread: run(job)
 *
 *  HELPER-1  A posted job runs exactly once. Jobs start in the order in which they were posted. helper_stop
 *            returns when all jobs have run.
 *  HELPER-2  If all threads are busy when a job is posted, another thread starts, up to `most`. If no thread
 *            can be started, the job runs in helper_post.
 *
 * helper_post: any thread. init, stop: the owner's thread.
 */
#ifndef PEER_HELPER_H
#define PEER_HELPER_H

#include "base/list.h"

#include <pthread.h>

enum {
	HELPER_MOST = 4
};

struct helper_job {
	struct list node;                    /* inner */
	void (*run)(struct helper_job *job); /* the job may be freed in it */
};

struct helper {
	const char *name; /* of its threads */
	unsigned most;

	/* Shared, under mtx. */
	pthread_mutex_t mtx;
	pthread_cond_t news;
	struct list waiting; /* struct helper_job */
	unsigned n_waiting;
	bool stopping;
	unsigned idle;
	unsigned n; /* threads */
	pthread_t threads[HELPER_MOST];
};

/* most: at most HELPER_MOST. */
void helper_init(struct helper *h, const char *name, unsigned most);

void helper_post(struct helper *h, struct helper_job *job);

/* HELPER-1. No job is posted after it. */
void helper_stop(struct helper *h);

#endif
