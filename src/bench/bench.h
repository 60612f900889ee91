/*
 * bench.h - measuring ourselves beside a bare reference, in one run.
 *
 * A figure on its own says little on a machine that others use too. So every row has
 * two: ours, and the least that could do the same work, measured in turns, several
 * rounds, the medians of which are shown with their ratio.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <sluice/api.h>

#include <stdio.h>

enum {
	BENCH_ROWS_MAX = 32,
	BENCH_ROUNDS_MAX = 15
};

struct bench_row {
	const char *name;
	const char *unit;
	double ours;
	double bare;     /* 0: there is nothing to compare with */
	double ratio;    /* the better the larger, whatever the unit; 0: no bare figure */
	const char *aim; /* what was set out to be reached, in words */
	bool reached;
};

struct bench {
	uint32_t rounds; /* how often each side is measured */
	uint64_t jobs;   /* size of a round */
	uint64_t items;  /* pqueue: items in the heap */
	bool quiet;      /* no progress on stderr */
	struct bench_row rows[BENCH_ROWS_MAX];
	unsigned n_rows;
};

void bench_add(struct bench *b, const struct bench_row *row);

/* Print all rows. */
void bench_table(const struct bench *b, FILE *out);
void bench_json(const struct bench *b, FILE *out);

/* Say on stderr what is being measured, if it is a terminal. */
void bench_progress(const struct bench *b, const char *what, unsigned round);

slu_time bench_now(void);
double bench_median(double *values, unsigned n);

/* The p-th part (0.99) of n times; sorts them. */
slu_time bench_percentile(slu_time *times, size_t n, double p);

/* The two benches. 0 or an SLU_ code. */
int bench_exec(struct bench *b);
int bench_pqueue(struct bench *b);

#endif
