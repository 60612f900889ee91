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
 * A set has one label (or none) and a fixed number of series; a series is named by
 * its number unless metrics_name gives it a name, or metrics_labels several labels.
 * All calls but init, name, labels and release are safe from any thread; a writer
 * costs one relaxed atomic add, and the calls that end in _own, for a series that
 * only one thread writes, none. So what many threads count often has a set for each
 * of them, which metrics_merge puts together to be shown.
 *
 * Histograms are of times, with buckets from 1 us to 60 s, shown in seconds; or of
 * sizes, with the powers of two up to 2^23.
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
	METRIC_SIZES      /* the same of whole numbers */
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
	char **labels; /* per series, as they are shown; NULL: its number */
	struct metric_cell *cells;
	bool quiet; /* may be set: series that have counted nothing are not shown */
};

/* rows and label are kept, not copied. SLU_ENOMEM, or SLU_EINVAL when prefix is
 * too long or no metric name. */
int metrics_init(struct metrics *m, const char *prefix, const struct metric *rows,
		 unsigned n_rows, const char *label, unsigned n_series);
void metrics_release(struct metrics *m);
int metrics_name(struct metrics *m, unsigned series, const char *name);

/* All labels of a series as they are shown: route="/ack",status="2xx". The caller has
 * escaped what must be. SLU_ENOMEM. */
int metrics_labels(struct metrics *m, unsigned series, const char *labels);

void metrics_add(struct metrics *m, unsigned row, unsigned series, uint64_t n);
void metrics_add_own(struct metrics *m, unsigned row, unsigned series, uint64_t n);
void metrics_set(struct metrics *m, unsigned row, unsigned series, int64_t value);
void metrics_observe(struct metrics *m, unsigned row, unsigned series, slu_time t);
void metrics_observe_own(struct metrics *m, unsigned row, unsigned series, slu_time t);

/* Add what `from` has, a set of the same rows and series. Gauges are added, too. */
void metrics_merge(struct metrics *m, const struct metrics *from);

/* What a counter or gauge shows now, or how many a histogram has seen. */
int64_t metrics_get(const struct metrics *m, unsigned row, unsigned series);

/* Append the set as Prometheus text: # HELP, # TYPE, samples. */
void metrics_write(const struct metrics *m, struct buf *out);

/* The same of n sets that have the same rows, as if they were one. */
void metrics_write_all(const struct metrics *const *sets, unsigned n, struct buf *out);

/* The same as a string of its own, to be freed by the caller. SLU_ENOMEM, also when
 * it would be longer than METRICS_TEXT_MAX. */
int metrics_text(const struct metrics *m, char **text);

#endif
