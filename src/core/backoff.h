/*
 * backoff.h - the delay after the n-th failure. Pure: the caller brings the dice.
 */
#ifndef CORE_BACKOFF_H
#define CORE_BACKOFF_H

#include <sluice/retry.h>

/* attempt counts failures, from 1. random is used for jitter only. Never negative,
 * never above b->max, never overflows. */
slu_time backoff_delay(const struct slu_backoff *b, unsigned attempt, uint64_t random);

#endif
