/*
 * clock.h - time as an argument.
 *
 * Code that waits or stamps takes a struct clock. In production it is
 * clock_system; a test passes one it moves by hand (tests/lib/fakeclock.h), so
 * that "20 seconds later" takes no time and nothing is early or late by luck.
 *
 *   mono  nanoseconds since some moment; never steps, never goes back
 *   boot  the same, but goes on while the machine is suspended
 *   wall  nanoseconds since 1970 UTC; may step, so only ever shown or stored
 *   wait  sleep on a condition variable until it is signalled or mono reaches
 *         `until`; may return early, callers check what they wait for
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <sluice/api.h>

#include <pthread.h>

struct clock;

struct clock_ops {
	slu_time (*mono)(struct clock *c);
	slu_time (*wall)(struct clock *c);
	slu_time (*boot)(struct clock *c); /* NULL: it is mono */
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

/* mtx is held at the call and at the return. SLU_NEVER waits for a signal only. */
static inline void
clock_wait(struct clock *c, pthread_cond_t *cond, pthread_mutex_t *mtx,
	   slu_time until)
{
	c->ops->wait(c, cond, mtx, until);
}

/* a + b without overflow: SLU_NEVER is more than any moment. Both >= 0. */
static inline slu_time
time_add(slu_time a, slu_time b)
{
	return a > SLU_NEVER - b ? SLU_NEVER : a + b;
}

#endif
