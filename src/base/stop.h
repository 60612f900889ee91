/*
 * stop.h - a flag with which one thread asks another to end its work early.
 *
 *         stop_set(&job->stop);                           any thread
 *
 *         while (more && !stop_is_set(&job->stop)) ...    the worker, now and then
 */
#ifndef BASE_STOP_H
#define BASE_STOP_H

#include <stdatomic.h>
#include <stdbool.h>

struct stop {
	_Atomic bool set; /* zeroed: not set */
};

static inline void
stop_set(struct stop *s)
{
	atomic_store_explicit(&s->set, true, memory_order_relaxed);
}

/* s NULL: false. */
static inline bool
stop_is_set(const struct stop *s)
{
	return s && atomic_load_explicit(&s->set, memory_order_relaxed);
}

#endif
