/*
 * time.h - arithmetic of slu_time. Pure, unlike base/clock.h.
 */
#ifndef BASE_TIME_H
#define BASE_TIME_H

#include <sluice/api.h>

/* a + b, or SLU_NEVER if that overflows. Both are 0 or more. */
static inline slu_time
time_add(slu_time a, slu_time b)
{
	return a > SLU_NEVER - b ? SLU_NEVER : a + b;
}

#endif
