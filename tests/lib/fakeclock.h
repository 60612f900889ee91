/*
 * fakeclock.h - a clock that stands still until the test moves it.
 *
 * A thread that waits on it sleeps until it is signalled or until the test has
 * moved the clock to the moment it waits for. fakeclock_sleepers() returns how many
 * threads wait for a moment that has not come, fakeclock_until() the earliest of these
 * moments. So a test sees that a thread went to sleep, and for how long. A thread whose
 * moment has come counts as awake, also before it runs.
 */
#ifndef TESTS_FAKECLOCK_H
#define TESTS_FAKECLOCK_H

#include "base/clock.h"

enum {
	FAKECLOCK_SLEEPERS = 256
};

struct fakeclock {
	struct clock clock; /* first */
	pthread_mutex_t mtx;
	slu_time mono; /* shared, under mtx, as all below */
	slu_time wall;
	struct {
		pthread_cond_t *cond; /* NULL: free */
		pthread_mutex_t *mtx;
		slu_time until;
	} sleepers[FAKECLOCK_SLEEPERS];
};

void fakeclock_init(struct fakeclock *f, slu_time mono, slu_time wall);
void fakeclock_release(struct fakeclock *f);

/* Moves both clocks on and wakes every thread whose moment has come. */
void fakeclock_advance(struct fakeclock *f, slu_time by);
void fakeclock_set_wall(struct fakeclock *f, slu_time wall);

int fakeclock_sleepers(struct fakeclock *f);
slu_time fakeclock_until(struct fakeclock *f); /* SLU_NEVER when none is timed */

#endif
