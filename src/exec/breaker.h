/*
 * breaker.h - a set of breakers with a clock of the caller.
 */
#ifndef EXEC_BREAKER_H
#define EXEC_BREAKER_H

#include "base/clock.h"

#include <sluice/breaker.h>

/* As slu_breakers_new. clock outlives the set. */
int breakers_new_on(struct slu_breakers **out, const struct slu_breaker_config *config,
		    struct clock *clock, struct slu_err *err);

#endif
