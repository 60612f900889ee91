#include "bench/bench.h"

#include "base/clock.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

slu_time
bench_now(void)
{
	return clock_mono(&clock_system);
}

static int
by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double
bench_median(double *values, unsigned n)
{
	qsort(values, n, sizeof *values, by_value);
	return values[n / 2];
}

void
bench_add(struct bench *b, const struct bench_row *row)
{
	assert(b->n_rows < BENCH_ROWS_MAX);
	b->rows[b->n_rows++] = *row;
}

void
bench_compare(struct bench *b, struct bench_row row, bool times, bench_side *side, void *arg)
{
	const struct bench_row aim = row;
	double ours[BENCH_ROUNDS_MAX] = { 0 }, bare[BENCH_ROUNDS_MAX] = { 0 };

	for (unsigned i = 0; i < b->rounds; i++) {
		bench_progress(b, row.name, i);
		bare[i] = side(arg, false);
		ours[i] = side(arg, true);
	}
	row.ours = bench_median(ours, b->rounds);
	row.bare = bench_median(bare, b->rounds);
	row.ratio = times ? row.bare / row.ours : row.ours / row.bare;
	row.reached = row.ratio >= aim.ratio && row.ours >= aim.ours;
	bench_add(b, &row);
}

void
bench_add_time(struct bench *b, struct bench_row row, const struct hist *times, double p, double most)
{
	row.unit = "us";
	row.ours = (double)hist_percentile(times, p) / 1e3;
	row.reached = row.ours < most;
	bench_add(b, &row);
}

void
bench_progress(const struct bench *b, const char *what, unsigned round)
{
	if (!b->quiet && isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K%s, round %u of %u", what, round + 1, b->rounds);
}

static void
clear_progress(void)
{
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
}

void
bench_table(const struct bench *b, FILE *out)
{
	clear_progress();
	fprintf(out, "%-46s %12s %12s %7s  %-10s %s\n", "", "ours", "bare", "ratio",
		"unit", "aim");
	for (unsigned i = 0; i < b->n_rows; i++) {
		const struct bench_row *r = &b->rows[i];

		fprintf(out, "%-46s %12.3f ", r->name, r->ours);
		if (r->ratio > 0)
			fprintf(out, "%12.3f %6.2fx", r->bare, r->ratio);
		else
			fprintf(out, "%12s %7s", "", "");
		fprintf(out, "  %-10s %s%s\n", r->unit, r->aim,
			r->reached ? "" : "  NOT REACHED");
	}
	fprintf(out, "%u rounds each side in turns, medians; %ld cores\n", b->rounds,
		sysconf(_SC_NPROCESSORS_ONLN));
}

void
bench_json(const struct bench *b, FILE *out)
{
	clear_progress();
	fprintf(out, "{\"rounds\":%u,\"cores\":%ld,\"rows\":[", b->rounds,
		sysconf(_SC_NPROCESSORS_ONLN));
	for (unsigned i = 0; i < b->n_rows; i++) {
		const struct bench_row *r = &b->rows[i];

		fprintf(out, "%s{\"name\":\"%s\",\"unit\":\"%s\",\"ours\":%.6g,", i ? "," : "",
			r->name, r->unit, r->ours);
		if (r->ratio > 0)
			fprintf(out, "\"bare\":%.6g,\"ratio\":%.4g,", r->bare, r->ratio);
		fprintf(out, "\"aim\":\"%s\",\"reached\":%s}", r->aim,
			r->reached ? "true" : "false");
	}
	fputs("]}\n", out);
}
