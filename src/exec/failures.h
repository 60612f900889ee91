/*
 * failures.h - the last failures of a worker: a ring that overwrites the oldest. Any thread.
 */
#ifndef EXEC_FAILURES_H
#define EXEC_FAILURES_H

#include <sluice/worker.h>

#include <pthread.h>

struct failures {
	pthread_mutex_t mtx;

	/* Shared, under mtx. */
	struct slu_failure *ring;
	uint32_t size; /* of ring */
	uint32_t n;    /* failures in it */
	uint32_t next; /* index of the next failure */
};

int failures_init(struct failures *f, uint32_t size); /* from 1; SLU_ENOMEM */
void failures_release(struct failures *f);

void failures_add(struct failures *f, const struct slu_failure *failure);

/* Copies up to n failures, newest first. Returns their number. */
uint32_t failures_list(struct failures *f, struct slu_failure *list, uint32_t n);

#endif
