/*
 * times.h - the current time, and sleeping.
 */
#ifndef TORTURE_TIMES_H
#define TORTURE_TIMES_H

#include "base/clock.h"

#include <time.h>

static inline slu_time
time_now(void)
{
	return clock_mono(&clock_system);
}

static inline void
sleep_ms(uint64_t ms)
{
	nanosleep(&(struct timespec){ (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 }, NULL);
}

#endif
