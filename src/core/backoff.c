#include "core/backoff.h"

static slu_time
exponential(const struct slu_backoff *b, unsigned attempt)
{
	slu_time delay = b->base;

	while (--attempt && delay < b->max)
		delay = delay > b->max / 2 ? b->max : delay * 2;
	return delay;
}

static slu_time
linear(const struct slu_backoff *b, unsigned attempt)
{
	return b->base > b->max / attempt ? b->max : b->base * attempt;
}

static slu_time
plain_delay(const struct slu_backoff *b, unsigned attempt)
{
	switch (b->kind) {
	case SLU_BACKOFF_EXPONENTIAL:
		return exponential(b, attempt);
	case SLU_BACKOFF_LINEAR:
		return linear(b, attempt);
	case SLU_BACKOFF_FIXED:
		return b->base;
	case SLU_BACKOFF_FUNCTION:
		return b->fn(attempt, b->arg);
	case SLU_BACKOFF_NONE:
		break;
	}
	return 0;
}

slu_time
backoff_delay(const struct slu_backoff *b, unsigned attempt, uint64_t random)
{
	slu_time delay = plain_delay(b, attempt ? attempt : 1);

	if (delay > b->max)
		delay = b->max;
	if (delay <= 0)
		return 0;
	if (b->jitter == SLU_JITTER_FULL)
		return (slu_time)(random % ((uint64_t)delay + 1));
	return delay;
}
