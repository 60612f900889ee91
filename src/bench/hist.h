/*
 * hist.h - how long things took: counted in buckets that grow with the time, so that
 * any number of them takes 32 KiB and is right to 1.6 percent.
 */
#ifndef BENCH_HIST_H
#define BENCH_HIST_H

#include <sluice/api.h>

enum {
	HIST_SUB_BITS = 6, /* buckets for each doubling: 64 */
	HIST_BUCKETS = 64 << HIST_SUB_BITS
};

struct hist {
	uint64_t n;
	uint64_t counts[HIST_BUCKETS];
};

void hist_add(struct hist *h, slu_time t);

/* The p-th part (0.99) of the times; 0 when there are none. */
slu_time hist_percentile(const struct hist *h, double p);

#endif
