/*
 * hist.h - a histogram of durations: the buckets grow with the duration, so any number of durations
 * takes 32 KiB, with an error of at most 1.6 percent.
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

/* The percentile p (0.99) of the durations; 0 if there are none. */
slu_time hist_percentile(const struct hist *h, double p);

#endif
