/*
 * backoff.h - the delay after the n-th failure. Pure: the caller passes a random number.
 */
#ifndef CORE_BACKOFF_H
#define CORE_BACKOFF_H

#include <sluice/retry.h>

/* attempt: number of failures, from 1. random: for jitter. The result is 0 to b->max. */
slu_time backoff_delay(const struct slu_backoff *b, unsigned attempt, uint64_t random);

#endif
