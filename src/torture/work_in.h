/*
 * work_in.h - what the clients share; for work*.c alone.
 */
#ifndef TORTURE_WORK_IN_H
#define TORTURE_WORK_IN_H

#include "torture/work.h"

enum {
	WORK_KEEP = 16, /* messages with an idempotency key that a producer tries again */
	WORK_IDLE_MS = 5
};

struct worker {
	struct torture *torture;
	struct caller caller;
	pthread_t thread;
	bool running;
	void (*work)(struct worker *w);

	struct item keyed[WORK_KEEP]; /* of a producer: sent before, under an idempotency key */
	unsigned n_keyed;
};

static inline bool
work_goes_on(const struct worker *w)
{
	return !atomic_load(&w->torture->stopping) && !atomic_load(&w->torture->history.full);
}

/* Take locks, count in their state, let them go: work_lock.c. */
void work_locks(struct worker *w);

#endif
