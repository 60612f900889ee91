#include "bench/hist.h"

/* Values below 64 have a bucket each; above, each power of two has 64 buckets. */
static unsigned
bucket_of(uint64_t v)
{
	const unsigned small = 1u << HIST_SUB_BITS;
	unsigned shift;

	if (v < small)
		return (unsigned)v;
	shift = 63u - (unsigned)__builtin_clzll(v) - HIST_SUB_BITS;
	return (shift << HIST_SUB_BITS) + (unsigned)(v >> shift);
}

/* The middle of a bucket. */
static uint64_t
value_of(unsigned bucket)
{
	const unsigned small = 1u << HIST_SUB_BITS;
	unsigned shift;

	if (bucket < 2 * small)
		return bucket;
	shift = (bucket >> HIST_SUB_BITS) - 1;
	return ((uint64_t)(bucket - (shift << HIST_SUB_BITS)) << shift) + (1ull << shift) / 2;
}

void
hist_add(struct hist *h, slu_time t)
{
	h->counts[bucket_of(t > 0 ? (uint64_t)t : 0)]++;
	h->n++;
}

slu_time
hist_percentile(const struct hist *h, double p)
{
	const uint64_t rank = (uint64_t)(p * (double)h->n);
	uint64_t seen = 0;

	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		seen += h->counts[i];
		if (h->counts[i] > 0 && seen > (rank < h->n ? rank : h->n - 1))
			return (slu_time)value_of(i);
	}
	return 0;
}
