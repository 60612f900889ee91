/*
 * clock.h - time as an argument.
 *
 * Code that waits or reads the time takes a struct clock: clock_system in production, a
 * clock that the test moves by hand in tests (tests/lib/fakeclock.h).
 *
 *   mono  nanoseconds since some moment; never steps, never goes back
 *   boot  the same, and also counts while the machine is suspended
 *   wall  nanoseconds since 1970 UTC; may step: only shown or stored, never waited for
 *   wait  sleeps on a condition variable until a signal, or until mono reaches `until`;
 *         may return early: the caller checks its condition
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include "base/time.h"

#include <sluice/api.h>

#include <pthread.h>

struct clock;

struct clock_ops {
	slu_time (*mono)(struct clock *c);
	slu_time (*wall)(struct clock *c);
	slu_time (*boot)(struct clock *c); /* NULL: the same as mono */
	void (*wait)(struct clock *c, pthread_cond_t *cond, pthread_mutex_t *mtx,
		     slu_time until);
};

struct clock {
	const struct clock_ops *ops; /* first member of every clock's struct */
};

extern struct clock clock_system;

static inline slu_time
clock_mono(struct clock *c)
{
	return c->ops->mono(c);
}

static inline slu_time
clock_wall(struct clock *c)
{
	return c->ops->wall(c);
}

static inline slu_time
clock_boot(struct clock *c)
{
	return c->ops->boot ? c->ops->boot(c) : c->ops->mono(c);
}

/* The caller holds mtx, at the call and after it. until SLU_NEVER: waits for a signal only. */
static inline void
clock_wait(struct clock *c, pthread_cond_t *cond, pthread_mutex_t *mtx,
	   slu_time until)
{
	c->ops->wait(c, cond, mtx, until);
}

#endif
