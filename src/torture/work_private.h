/*
 * work_private.h - what the clients share; for work*.c only.
 */
#ifndef TORTURE_WORK_PRIVATE_H
#define TORTURE_WORK_PRIVATE_H

#include "torture/work.h"

enum {
	WORK_KEEP = 16, /* messages with an idempotency key that a producer may send again */
	WORK_IDLE_MS = 5
};

struct torture_worker {
	struct torture *torture;
	struct caller caller;
	pthread_t thread;
	bool running;
	void (*work)(struct torture_worker *w);

	struct push_item keyed[WORK_KEEP]; /* producer: messages sent before, with an idempotency key */
	unsigned n_keyed;
};

static inline bool
work_goes_on(const struct torture_worker *w)
{
	return !atomic_load(&w->torture->stopping) && !atomic_load(&w->torture->history.full);
}

/* A new message with random choices. */
struct push_item work_item(struct torture *t, struct dice *d);

/* The thread of a client that makes batches (work_batch.c). */
void work_batches(struct torture_worker *w);

/* The thread of a client that sets schedules (work_schedule.c). */
void work_schedules(struct torture_worker *w);

/* The thread of a locker (work_lock.c): takes locks, counts in their state, releases them. */
void work_locks(struct torture_worker *w);

#endif
