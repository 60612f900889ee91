/*
 * pqueue.h - what the worker needs of a priority queue beyond the public calls: to
 * take a job and keep its place until it is settled, so that a retry cannot fail.
 */
#ifndef EXEC_PQUEUE_H
#define EXEC_PQUEUE_H

#include "base/clock.h"

#include <sluice/pqueue.h>

/* As slu_pqueue_new, on a clock of the caller's. */
int pqueue_new_on(struct slu_pqueue **out, const struct slu_pqueue_config *config,
		  struct clock *clock, struct slu_err *err);

/* A caller that waits in pqueue_take, seen from outside: set `leave` through
 * pqueue_leave and the wait ends. */
struct pqueue_waiter {
	int leave; /* shared, under the queue's lock: an enum pqueue_leave */
};

enum pqueue_leave {
	PQUEUE_STAY,
	PQUEUE_LEAVE_WHEN_DRAINED, /* nothing ready and nothing scheduled */
	PQUEUE_LEAVE_WHEN_IDLE,    /* nothing ready */
	PQUEUE_LEAVE_NOW
};

/* Any number of threads may share one waiter. */
void pqueue_leave(struct slu_pqueue *q, struct pqueue_waiter *w, enum pqueue_leave how);

/* As slu_pqueue_dequeue, but the job stays in the queue as `running` under *handle
 * until pqueue_finish or pqueue_put_back. SLU_ECANCELED: told to leave. */
int pqueue_take(struct slu_pqueue *q, struct pqueue_waiter *w, slu_time timeout,
		struct slu_job_item *item, uint32_t *handle);
void pqueue_finish(struct slu_pqueue *q, uint32_t handle);

/* Ready again after delay; never fails, a full or stopped queue takes it too.
 * With `spent` false the delivery does not count as an attempt. */
void pqueue_put_back(struct slu_pqueue *q, uint32_t handle, slu_time delay, bool spent);

struct clock *pqueue_clock(const struct slu_pqueue *q);

#endif
