/*
 * failures.h - the last so many failures of a worker: a ring, the oldest gives way.
 *
 * Safe from any thread.
 */
#ifndef EXEC_FAILURES_H
#define EXEC_FAILURES_H

#include <sluice/worker.h>

#include <pthread.h>

struct failures {
	pthread_mutex_t mtx;
	struct slu_failure *ring; /* shared, under mtx, as all below */
	uint32_t size;
	uint32_t n;    /* kept now, at most size */
	uint32_t next; /* where the next one goes */
};

int failures_init(struct failures *f, uint32_t size); /* from 1; SLU_ENOMEM */
void failures_release(struct failures *f);

void failures_add(struct failures *f, const struct slu_failure *failure);

/* Copy up to n, newest first; returns how many. */
uint32_t failures_list(struct failures *f, struct slu_failure *list, uint32_t n);

#endif
