/*
 * metrics.h - counters, gauges and histograms, one table row each.
 *
 *         enum { M_RUNS, M_DEPTH, M_TIME };
 *         static const struct metric rows[] = {
 *                 [M_RUNS]  = { "runs_total", METRIC_COUNTER, "jobs run" },
 *                 [M_DEPTH] = { "depth", METRIC_GAUGE, "jobs waiting" },
 *                 [M_TIME]  = { "run_seconds", METRIC_HISTOGRAM, "time a run took" },
 *         };
 *
 *         metrics_init(&m, "sluice_exec_", rows, COUNT(rows), "shard", n_shards);
 *         metrics_add(&m, M_RUNS, shard, 1);
 *         metrics_write(&m, &text);           Prometheus text, format 0.0.4
 *
 * A set has one label (or none) and a fixed number of series. The value of the label is
 * the number of the series, unless metrics_name sets it, or metrics_labels sets several
 * labels.
 *
 * Any thread may call anything but init, name, labels and release. A write is one
 * relaxed atomic add; the functions that end in _own, for a series with one writing
 * thread, do without. Numbers that many threads count often have a set for each thread,
 * which metrics_merge adds up for the output.
 *
 * A histogram counts times, in buckets from 1 us to 60 s, written in seconds; or sizes,
 * in buckets of powers of two up to 2^23.
 */
#ifndef BASE_METRICS_H
#define BASE_METRICS_H

#include "base/bytes.h"

enum {
	METRICS_TEXT_MAX = 1 << 30 /* 65,535 shards fit */
};

enum metric_kind {
	METRIC_COUNTER,
	METRIC_GAUGE,
	METRIC_HISTOGRAM, /* of times */
	METRIC_SIZES      /* histogram of whole numbers */
};

struct metric {
	const char *name;
	enum metric_kind kind;
	const char *help;
};

struct metric_cell; /* one value of one series */

struct metrics {
	char prefix[64];
	const struct metric *rows;
	unsigned n_rows;
	const char *label; /* NULL: no label */
	unsigned n_series;
	char **labels; /* of each series, as text of the output; NULL: its number */
	struct metric_cell *cells;
	bool quiet; /* set by the caller: metrics_write leaves out series without a count */
};

/* Keeps pointers to rows and label. Returns SLU_ENOMEM, or SLU_EINVAL if prefix is too long or
 * not valid in the name of a metric. */
int metrics_init(struct metrics *m, const char *prefix, const struct metric *rows,
		 unsigned n_rows, const char *label, unsigned n_series);
void metrics_release(struct metrics *m);
int metrics_name(struct metrics *m, unsigned series, const char *name);

/* Sets all labels of a series as text of the output: route="/ack",status="2xx". The caller has
 * escaped the values. Returns SLU_ENOMEM if memory is out. */
int metrics_labels(struct metrics *m, unsigned series, const char *labels);

void metrics_add(struct metrics *m, unsigned row, unsigned series, uint64_t n);
void metrics_add_own(struct metrics *m, unsigned row, unsigned series, uint64_t n);
void metrics_set(struct metrics *m, unsigned row, unsigned series, int64_t value);
void metrics_observe(struct metrics *m, unsigned row, unsigned series, slu_time t);
void metrics_observe_own(struct metrics *m, unsigned row, unsigned series, slu_time t);

/* Adds the values of `from`, gauges too. `from` has the same rows and series. */
void metrics_merge(struct metrics *m, const struct metrics *from);

/* The value of a counter or gauge, or the number of observations of a histogram. */
int64_t metrics_get(const struct metrics *m, unsigned row, unsigned series);

/* Appends the set as Prometheus text: # HELP, # TYPE, samples. */
void metrics_write(const struct metrics *m, struct buf *out);

/* The same for n sets with the same rows, as if they were one. */
void metrics_write_all(const struct metrics *const *sets, unsigned n, struct buf *out);

/* The same as a new string, which the caller frees. Returns SLU_ENOMEM if memory is out, or the
 * text would be longer than METRICS_TEXT_MAX. */
int metrics_text(const struct metrics *m, char **text);

#endif
