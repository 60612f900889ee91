/*
 * bench.h - measures our code and a bare reference in one run.
 *
 * A figure alone means little on a shared machine. So every row has two figures: ours, and the minimal
 * code for the same work. They are measured in turns, in several rounds; the row shows the medians and
 * their ratio.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include "bench/hist.h"

#include <stdio.h>

enum {
	BENCH_ROWS_MAX = 32,
	BENCH_ROUNDS_MAX = 15
};

struct bench_row {
	const char *name;
	const char *unit;
	double ours;
	double bare;     /* 0 = nothing to compare with */
	double ratio;    /* larger is better, whatever the unit; 0 = no bare figure */
	const char *aim; /* the aim, in words */
	bool reached;
};

struct bench {
	uint32_t rounds; /* how often each side is measured */
	uint64_t jobs;   /* size of a round */
	uint64_t items;  /* pqueue: items in the heap meanwhile */
	bool quiet;      /* no progress on stderr */
	struct bench_row rows[BENCH_ROWS_MAX];
	unsigned n_rows;
};

void bench_add(struct bench *b, const struct bench_row *row);

/* Measures one side once: ours, or the bare one. */
typedef double bench_side(void *arg, bool ours);

/* Measures both sides in turns and adds the row. row.ratio is the least ratio of the aim: ours / bare, or
 * bare / ours if the figures are times. row.ours is the least figure of the aim. */
void bench_compare(struct bench *b, struct bench_row row, bool times, bench_side *side, void *arg);

/* Adds a row with the percentile p of durations, in microseconds. The aim is less than `most`. */
void bench_add_time(struct bench *b, struct bench_row row, const struct hist *times, double p,
		    double most);

/* Print all rows, as a table or as JSON. */
void bench_table(const struct bench *b, FILE *out);
void bench_json(const struct bench *b, FILE *out);

/* Prints the current measurement on stderr, if it is a terminal. */
void bench_progress(const struct bench *b, const char *what, unsigned round);

slu_time bench_now(void);
double bench_median(double *values, unsigned n);

/* The benches of the library. They return 0 or an SLU_ code. */
int bench_exec(struct bench *b);
int bench_pqueue(struct bench *b);

#endif
