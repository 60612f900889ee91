/*
 * text.c - times, numbers and policies as the script has them.
 */
#include "engine/redis/redis_in.h"

#include <inttypes.h>
#include <stdio.h>

/* The last number that is exact in Lua stands for all that are larger. */
#define US_MAX REPLY_NUMBER_MAX

int64_t
redis_us(slu_time t)
{
	const int64_t us = t / 1000 + (t % 1000 > 0);

	return us < US_MAX ? us : US_MAX;
}

slu_time
redis_ns(int64_t us)
{
	if (us >= US_MAX)
		return SLU_NEVER;
	return us > -US_MAX ? us * 1000 : -US_MAX * 1000;
}

slu_time
redis_later(slu_time t, slu_time by)
{
	slu_time sum;

	if (__builtin_add_overflow(t, by, &sum))
		return by > 0 ? SLU_NEVER : INT64_MIN;
	return sum;
}

void
redis_policy_text(const struct policy *p, char *out, size_t size)
{
	(void)snprintf(out, size,
		       "%" PRId64 " %u %d %" PRId64 " %" PRId64 " %d %" PRId64
		       " %u %u %u %u %" PRId64 " %" PRId64 " %u %d %d%s",
		       redis_us(p->lease), p->max_attempts, (int)p->retry.kind,
		       redis_us(p->retry.base), redis_us(p->retry.max), (int)p->retry.jitter,
		       redis_us(p->ttl), p->max_depth, p->max_rate, p->burst, p->warn_depth,
		       redis_us(p->window), redis_us(p->dlq_retention), p->dlq_max,
		       p->require_lease, p->paused,
		       p->strict ? " 1" : ""); /* older versions know 16 words */
}

int
redis_policy_read(const char *text, struct policy *out)
{
	int64_t lease, base, max, ttl, window, retention;
	int kind, jitter, require, paused, strict = 0;
	struct policy p = policy_default;

	if (sscanf(text,
		   "%" SCNd64 " %u %d %" SCNd64 " %" SCNd64 " %d %" SCNd64
		   " %u %u %u %u %" SCNd64 " %" SCNd64 " %u %d %d %d",
		   &lease, &p.max_attempts, &kind, &base, &max, &jitter, &ttl, &p.max_depth,
		   &p.max_rate, &p.burst, &p.warn_depth, &window, &retention, &p.dlq_max,
		   &require, &paused, &strict) < 16)
		return SLU_ECORRUPT;
	p.lease = redis_ns(lease);
	p.retry.kind = (enum slu_backoff_kind)kind;
	p.retry.base = redis_ns(base);
	p.retry.max = redis_ns(max);
	p.retry.jitter = (enum slu_jitter)jitter;
	p.ttl = redis_ns(ttl);
	p.window = redis_ns(window);
	p.dlq_retention = redis_ns(retention);
	p.require_lease = require;
	p.paused = paused;
	p.strict = strict;
	if (policy_check(&p, NULL))
		return SLU_ECORRUPT;
	*out = p;
	return 0;
}
