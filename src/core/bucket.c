#include "core/bucket.h"

#include <assert.h>

/* At most 2^32 * 1e9, which fits. */
slu_time
bucket_time(const struct bucket_rule *r, uint32_t n)
{
	assert(r->rate >= 1 && r->rate <= BUCKET_RATE_MAX);
	return (slu_time)n * SLU_SEC / r->rate;
}

uint32_t
bucket_burst(const struct bucket_rule *r)
{
	return r->burst ? r->burst : r->rate;
}

slu_time
bucket_wait(const struct bucket_rule *r, slu_time full, uint32_t n, slu_time now)
{
	const uint32_t burst = bucket_burst(r);
	const slu_time room = bucket_time(r, burst) - bucket_time(r, n < burst ? n : burst);
	const slu_time missing = full > now ? full - now : 0;

	return missing > room ? missing - room : 0;
}

uint32_t
bucket_tokens(const struct bucket_rule *r, slu_time full, slu_time now)
{
	uint32_t low = 0, high = bucket_burst(r);

	while (low < high) { /* by bucket_wait, so that both round the same */
		const uint32_t n = high - (high - low) / 2;

		if (bucket_wait(r, full, n, now))
			high = n - 1;
		else
			low = n;
	}
	return low;
}

slu_time
bucket_take(const struct bucket_rule *r, slu_time full, uint32_t n, slu_time now)
{
	const slu_time from = full > now ? full : now;
	const slu_time cost = bucket_time(r, n);

	return from > SLU_NEVER - cost ? SLU_NEVER : from + cost;
}
