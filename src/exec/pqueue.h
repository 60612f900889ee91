/*
 * pqueue.h - the priority queue for the worker: takes a job and keeps its place until it
 * is settled, so that a retry cannot fail.
 */
#ifndef EXEC_PQUEUE_H
#define EXEC_PQUEUE_H

#include "base/clock.h"

#include <sluice/pqueue.h>

/* As slu_pqueue_new, with a clock of the caller. */
int pqueue_new_on(struct slu_pqueue **out, const struct slu_pqueue_config *config,
		  struct clock *clock, struct slu_err *err);

/* Ends waits in pqueue_take from outside: pqueue_leave sets `leave`. */
struct pqueue_waiter {
	int leave; /* enum pqueue_leave; shared, under the queue's lock */
};

enum pqueue_leave {
	PQUEUE_STAY,
	PQUEUE_LEAVE_WHEN_DRAINED, /* when no job is ready or scheduled */
	PQUEUE_LEAVE_WHEN_IDLE,    /* when no job is ready */
	PQUEUE_LEAVE_NOW
};

/* Any number of threads may share one waiter. */
void pqueue_leave(struct slu_pqueue *q, struct pqueue_waiter *w, enum pqueue_leave how);

/* As slu_pqueue_dequeue, but the job stays in the queue, as running, under *handle until
 * pqueue_finish or pqueue_put_back. Returns SLU_ECANCELED if `leave` ended the wait. */
int pqueue_take(struct slu_pqueue *q, struct pqueue_waiter *w, slu_time timeout,
		struct slu_job_item *item, uint32_t *handle);
void pqueue_finish(struct slu_pqueue *q, uint32_t handle);

/* Makes the job ready again after delay. Never fails, also if the queue is full or stopped. spent
 * false: the delivery does not count as an attempt. */
void pqueue_put_back(struct slu_pqueue *q, uint32_t handle, slu_time delay, bool spent);

struct clock *pqueue_clock(const struct slu_pqueue *q);

#endif
