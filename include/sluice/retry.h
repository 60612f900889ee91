/*
 * retry.h - the delay before a failed task runs again.
 *
 *         exponential   base, 2 base, 4 base ... up to max        (the default)
 *         linear        base, 2 base, 3 base ... up to max
 *         fixed         base, base, base ...
 *         none          at once
 *         function      the result of your function, up to max
 *
 * The number of attempts is a setting of its own: max_attempts.
 */
#ifndef SLUICE_RETRY_H
#define SLUICE_RETRY_H

#include <sluice/api.h>

SLU_BEGIN_DECLS

enum slu_backoff_kind {
	SLU_BACKOFF_EXPONENTIAL,
	SLU_BACKOFF_LINEAR,
	SLU_BACKOFF_FIXED,
	SLU_BACKOFF_NONE,
	SLU_BACKOFF_FUNCTION
};

enum slu_jitter {
	SLU_JITTER_NONE, /* the delay itself */
	SLU_JITTER_FULL  /* evenly between 0 and the delay */
};

/* attempt: the number of failures, from 1. A negative result counts as 0. Must not block.
 * Thread: the worker whose task failed; two workers may call it at once. */
typedef slu_time slu_backoff_fn(unsigned attempt, void *arg);

struct slu_backoff {
	enum slu_backoff_kind kind;
	enum slu_jitter jitter;
	slu_time base;
	slu_time max;
	slu_backoff_fn *fn; /* SLU_BACKOFF_FUNCTION only */
	void *arg;
	uint64_t reserved[2]; /* 0 */
};

SLU_END_DECLS

#endif
