#include "bench/backlog.h"

struct backlog_bench {
	struct bench *bench;
	struct served *full;
	const struct served *few;
	const struct scenario_conf *conf;
	double full_rate[BENCH_ROUNDS_MAX], few_rate[BENCH_ROUNDS_MAX];
	struct figures figures; /* figures of the current part */
};

static const char full_queue[] = "backlog";
static const char few_queue[] = "few";

/* Memory per message. Payloads are in files; the page cache of the kernel does not count as memory of the
 * server. */
static int
fill(struct backlog_bench *k, double *bytes_each, struct slu_err *err)
{
	const int64_t empty = served_memory(k->full);
	int rc;

	bench_progress(k->bench, "fill", 0);
	rc = scenario_fill(k->full, k->conf, full_queue, k->conf->messages, err);
	*bytes_each = (double)(served_memory(k->full) - empty) / (double)k->conf->messages;
	return rc;
}

static int
take(struct backlog_bench *k, const struct served *s, const char *queue, double *rate,
     struct slu_err *err)
{
	const int rc = scenario_take(s, k->conf, queue, BACKLOG_FEW, &k->figures, err);

	*rate = figures_rate(&k->figures);
	return rc;
}

static int
measure_round(struct backlog_bench *k, unsigned round, struct slu_err *err)
{
	int rc;

	bench_progress(k->bench, "dequeue", round);
	rc = scenario_fill(k->few, k->conf, few_queue, BACKLOG_FEW, err);
	if (!rc)
		rc = take(k, k->few, few_queue, &k->few_rate[round], err);
	if (!rc)
		rc = take(k, k->full, full_queue, &k->full_rate[round], err);
	return rc;
}

/* Measures from the start of the process to the first delivered message. */
static int
measure_start(struct backlog_bench *k, double *seconds, struct slu_err *err)
{
	struct scenario_conf one = *k->conf;
	slu_time began;
	int rc;

	bench_progress(k->bench, "restart", 0);
	one.connections = one.batch = 1;
	served_kill(k->full);
	began = bench_now();
	rc = served_start(k->full, err);
	if (!rc)
		rc = scenario_take(k->full, &one, full_queue, 1, &k->figures, err);
	*seconds = (double)(bench_now() - began) / 1e9;
	return rc;
}

static void
add_rows(struct backlog_bench *k, double bytes_each, double start)
{
	const double full = bench_median(k->full_rate, k->bench->rounds);
	const double few = bench_median(k->few_rate, k->bench->rounds);
	const struct bench_row rows[] = {
		{ "memory of a queued message", "bytes", bytes_each, 0, 0, "at most 84 bytes",
		  bytes_each <= 84 },
		{ "dequeue from the backlog (bare: of 10 thousand)", "msg/s", full, few, full / few,
		  "at least 0.8x", full >= 0.8 * few },
		{ "kill, start, first delivery", "s", start, 0, 0, "under 10 s", start < 10 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		bench_add(k->bench, &rows[i]);
}

int
bench_backlog(struct bench *b, struct served *full, const struct served *few,
	      const struct scenario_conf *conf, struct slu_err *err)
{
	struct backlog_bench k = { .bench = b, .full = full, .few = few, .conf = conf };
	double bytes_each = 0, start = 0;
	int rc;

	rc = fill(&k, &bytes_each, err);
	for (unsigned i = 0; i < b->rounds && !rc; i++)
		rc = measure_round(&k, i, err);
	if (!rc)
		rc = measure_start(&k, &start, err);
	if (!rc)
		add_rows(&k, bytes_each, start);
	return rc;
}
