/*
 * convert.c - converts times, numbers and policies to and from the form of the script.
 */
#include "engine/redis/redis_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* The last number that is exact in Lua stands for all larger numbers. */
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
	/* Older versions read only the first 16 words. */
	static const char *const more[2][2] = { { "", " 1" }, { " 0 1", " 1 1" } };

	(void)snprintf(out, size,
		       "%" PRId64 " %u %d %" PRId64 " %" PRId64 " %d %" PRId64
		       " %u %u %u %u %" PRId64 " %" PRId64 " %u %d %d%s",
		       redis_us(p->lease), p->max_attempts, (int)p->retry.kind,
		       redis_us(p->retry.base), redis_us(p->retry.max), (int)p->retry.jitter,
		       redis_us(p->ttl), p->max_depth, p->max_rate, p->burst, p->warn_depth,
		       redis_us(p->window), redis_us(p->dlq_retention), p->dlq_max,
		       p->require_lease, p->paused,
		       more[p->draining][p->strict]);
}

bool
redis_take_u64(const char **text, int base, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(*text, &end, base);
	if (end == *text || errno)
		return false;
	*text = end;
	return true;
}

bool
redis_take_i64(const char **text, int64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoll(*text, &end, 10);
	if (end == *text || errno)
		return false;
	*text = end;
	return true;
}

int
redis_policy_read(const char *text, struct policy *out)
{
	struct policy p = policy_default;
	int64_t v[18] = { 0 };
	unsigned n = 0;

	while (n < COUNT(v) && redis_take_i64(&text, &v[n]))
		n++;
	if (n < 16)
		return SLU_ECORRUPT;
	p.lease = redis_ns(v[0]);
	p.max_attempts = (unsigned)v[1];
	p.retry.kind = (enum slu_backoff_kind)v[2];
	p.retry.base = redis_ns(v[3]);
	p.retry.max = redis_ns(v[4]);
	p.retry.jitter = (enum slu_jitter)v[5];
	p.ttl = redis_ns(v[6]);
	p.max_depth = (unsigned)v[7];
	p.max_rate = (unsigned)v[8];
	p.burst = (unsigned)v[9];
	p.warn_depth = (unsigned)v[10];
	p.window = redis_ns(v[11]);
	p.dlq_retention = redis_ns(v[12]);
	p.dlq_max = (unsigned)v[13];
	p.require_lease = v[14];
	p.paused = v[15];
	p.strict = v[16];
	p.draining = v[17];
	if (policy_check(&p, NULL))
		return SLU_ECORRUPT;
	*out = p;
	return 0;
}
