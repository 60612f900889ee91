#include "test.h"

#include "base/mem.h"
#include "base/metrics.h"

#include <sluice/err.h>

#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	M_RUNS,
	M_DEPTH,
	M_TIME
};

static const struct metric rows[] = {
	[M_RUNS] = { "runs_total", METRIC_COUNTER, "jobs run" },
	[M_DEPTH] = { "depth", METRIC_GAUGE, "jobs waiting" },
	[M_TIME] = { "run_seconds", METRIC_HISTOGRAM, "time a run took" },
};

enum {
	TEXT_MAX = 1 << 20
};

/* The value of a sample, name and labels spelled whole, or -1. */
static double
sample(const char *text, const char *name)
{
	const size_t n = strlen(name);

	for (const char *p = text; p; p = strchr(p, '\n')) {
		p += *p == '\n';
		if (strncmp(p, name, n) == 0 && p[n] == ' ')
			return strtod(p + n, NULL);
	}
	return -1;
}

static struct metrics m;
static struct buf text;

static void
init(unsigned n_series)
{
	buf_init(&text, TEXT_MAX);
	CHECK_EQ(0, metrics_init(&m, "sluice_exec_", rows, COUNT(rows), "shard",
				 n_series));
}

static void
release(void)
{
	metrics_release(&m);
	buf_release(&text);
}

FIXTURE(NULL, release);

static const char *
show(void)
{
	buf_clear(&text);
	metrics_write(&m, &text);
	CHECK(!text.failed);
	return buf_str(&text);
}

TEST(counters_and_gauges_are_shown_per_series)
{
	init(2);
	metrics_add(&m, M_RUNS, 0, 3);
	metrics_add(&m, M_RUNS, 0, 4);
	metrics_add(&m, M_RUNS, 1, UINT64_MAX);
	metrics_set(&m, M_DEPTH, 0, -5);
	metrics_set(&m, M_DEPTH, 1, 9);
	metrics_add(&m, M_DEPTH, 1, (uint64_t)-2);
	CHECK_CONTAINS("# HELP sluice_exec_runs_total jobs run\n"
		       "# TYPE sluice_exec_runs_total counter\n"
		       "sluice_exec_runs_total{shard=\"0\"} 7\n"
		       "sluice_exec_runs_total{shard=\"1\"} 18446744073709551615\n"
		       "# HELP sluice_exec_depth jobs waiting\n"
		       "# TYPE sluice_exec_depth gauge\n"
		       "sluice_exec_depth{shard=\"0\"} -5\n"
		       "sluice_exec_depth{shard=\"1\"} 7\n",
		       show());
	CHECK_EQ(7, metrics_get(&m, M_RUNS, 0));
	CHECK_EQ(-5, metrics_get(&m, M_DEPTH, 0));
}

TEST(a_histogram_is_cumulative_and_in_seconds)
{
	const char *t;

	init(2);
	metrics_observe(&m, M_TIME, 1, 500);              /* under the first bound */
	metrics_observe(&m, M_TIME, 1, 2 * SLU_MS);       /* in 2.5 ms */
	metrics_observe_own(&m, M_TIME, 1, 20 * SLU_SEC); /* in 25 s */
	metrics_observe(&m, M_TIME, 1, SLU_HOUR);         /* above the last */
	t = show();
	CHECK_CONTAINS("# TYPE sluice_exec_run_seconds histogram\n", t);
	CHECK(sample(t, "sluice_exec_run_seconds_bucket{shard=\"1\",le=\"1e-06\"}") == 1);
	CHECK(sample(t, "sluice_exec_run_seconds_bucket{shard=\"1\",le=\"0.001\"}") == 1);
	CHECK(sample(t, "sluice_exec_run_seconds_bucket{shard=\"1\",le=\"0.0025\"}") == 2);
	CHECK(sample(t, "sluice_exec_run_seconds_bucket{shard=\"1\",le=\"10\"}") == 2);
	CHECK(sample(t, "sluice_exec_run_seconds_bucket{shard=\"1\",le=\"25\"}") == 3);
	CHECK(sample(t, "sluice_exec_run_seconds_bucket{shard=\"1\",le=\"60\"}") == 3);
	CHECK(sample(t, "sluice_exec_run_seconds_bucket{shard=\"1\",le=\"+Inf\"}") == 4);
	CHECK(sample(t, "sluice_exec_run_seconds_count{shard=\"1\"}") == 4);
	CHECK(sample(t, "sluice_exec_run_seconds_count{shard=\"0\"}") == 0);
	CHECK_CONTAINS("sluice_exec_run_seconds_sum{shard=\"1\"} 3620.002000500\n", t);
	CHECK_EQ(4, metrics_get(&m, M_TIME, 1));
}

/* Which bucket's count rose? Its bound in ns; -1 is +Inf. */
static double
bound_hit(const char *t)
{
	for (const char *p = strstr(t, "le=\""); p; p = strstr(p + 1, "le=\"")) {
		char *end;
		const double bound = strtod(p + 4, &end);

		if (strtod(strchr(end, ' '), NULL) > 0)
			return strncmp(p + 4, "+Inf", 4) == 0 ? -1 : bound * 1e9;
	}
	return 0;
}

static double
bound_of(slu_time time)
{
	double hit;

	init(1);
	metrics_observe(&m, M_TIME, 0, time);
	hit = bound_hit(show());
	release();
	return hit;
}

TEST(every_bound_belongs_to_its_own_bucket_and_one_more_to_the_next)
{
	static const double steps[] = { 1, 2.5, 5 };
	double before = 0, bound = 1e3;

	for (int i = 0; before < 25e9; i++) {
		CHECK_EQ(bound, bound_of((slu_time)before + 1), "one past the last bound");
		CHECK_EQ(bound, bound_of((slu_time)(before + bound) / 2), "between");
		CHECK_EQ(bound, bound_of((slu_time)bound), "the bound itself");
		before = bound;
		bound = 1e3 * steps[(i + 1) % 3];
		for (int decade = 0; decade < (i + 1) / 3; decade++)
			bound *= 10;
	}
	CHECK_EQ(25000000000, before);
	CHECK_EQ(60000000000, bound_of(25000000001));
	CHECK_EQ(60000000000, bound_of(60000000000));
	CHECK_EQ(-1, bound_of(60000000001));
}

TEST(odd_times_have_a_bucket_too)
{
	CHECK_EQ(1000, bound_of(0));
	CHECK_EQ(1000, bound_of(1));
	CHECK_EQ(1000, bound_of(-1), "a clock that went back");
	CHECK_EQ(1000, bound_of(INT64_MIN));
	CHECK_EQ(-1, bound_of(INT64_MAX));
}

/* Powers of two are where finding a bucket could go wrong. */
TEST(a_bucket_never_holds_more_than_its_bound_says)
{
	for (int bit = 0; bit < 40; bit++) {
		for (slu_time d = -1; d <= 1; d++) {
			const slu_time t = ((slu_time)1 << bit) + d;
			const double bound = bound_of(t);

			CHECK(bound == -1 ? t > 60 * SLU_SEC : (double)t <= bound);
			CHECK(bound <= 1000 || (double)t > bound / 2.51);
		}
	}
}

TEST(a_set_without_a_label_shows_bare_names)
{
	buf_init(&text, TEXT_MAX);
	CHECK_EQ(0, metrics_init(&m, "x_", rows, COUNT(rows), NULL, 1));
	metrics_add(&m, M_RUNS, 0, 1);
	metrics_observe(&m, M_TIME, 0, SLU_SEC);
	CHECK_CONTAINS("\nx_runs_total 1\n", show());
	CHECK_CONTAINS("\nx_run_seconds_bucket{le=\"1\"} 1\n", show());
	CHECK_CONTAINS("\nx_run_seconds_sum 1.000000000\n", show());
}

TEST(a_series_may_have_a_name_and_it_is_escaped)
{
	init(2);
	CHECK_EQ(0, metrics_name(&m, 1, "first"));
	CHECK_EQ(0, metrics_name(&m, 1, "a\"b\\c\nd"));
	CHECK_CONTAINS("\nsluice_exec_depth{shard=\"0\"} 0\n", show());
	CHECK_CONTAINS("\nsluice_exec_depth{shard=\"a\\\"b\\\\c\\nd\"} 0\n",
		       show());
}

TEST(a_series_may_have_several_labels)
{
	init(2);
	CHECK_EQ(0, metrics_labels(&m, 1, "route=\"/ack\",status=\"2xx\""));
	metrics_observe(&m, M_TIME, 1, 1);
	CHECK_CONTAINS("sluice_exec_runs_total{route=\"/ack\",status=\"2xx\"} 0\n",
		       show());
	CHECK_EQ(1, sample(show(), "sluice_exec_run_seconds_bucket{route=\"/ack\","
				   "status=\"2xx\",le=\"1e-06\"}"));
}

static const struct metric size_rows[] = {
	{ "batch_messages", METRIC_SIZES, "messages of a batch" },
};

TEST(sizes_are_counted_in_powers_of_two)
{
	static const slu_time sizes[] = { 0, 1, 2, 3, 4, 5, 1 << 23, (1 << 23) + 1 };

	buf_init(&text, TEXT_MAX);
	CHECK_EQ(0, metrics_init(&m, "x_", size_rows, 1, NULL, 1));
	for (size_t i = 0; i < COUNT(sizes); i++)
		metrics_observe_own(&m, 0, 0, sizes[i]);
	CHECK_CONTAINS("# TYPE x_batch_messages histogram\n", show());
	CHECK_EQ(2, sample(show(), "x_batch_messages_bucket{le=\"1\"}"));
	CHECK_EQ(3, sample(show(), "x_batch_messages_bucket{le=\"2\"}"));
	CHECK_EQ(5, sample(show(), "x_batch_messages_bucket{le=\"4\"}"));
	CHECK_EQ(7, sample(show(), "x_batch_messages_bucket{le=\"8388608\"}"));
	CHECK_EQ(8, sample(show(), "x_batch_messages_bucket{le=\"+Inf\"}"));
	CHECK_EQ(15 + (2 << 23) + 1, sample(show(), "x_batch_messages_sum"));
}

TEST(sets_of_several_threads_are_put_together)
{
	struct metrics one, two;

	init(2);
	CHECK_EQ(0, metrics_init(&one, "x_", rows, COUNT(rows), "shard", 2));
	CHECK_EQ(0, metrics_init(&two, "x_", rows, COUNT(rows), "shard", 2));
	metrics_add_own(&one, M_RUNS, 1, 3);
	metrics_add_own(&two, M_RUNS, 1, 4);
	metrics_observe_own(&two, M_TIME, 0, SLU_SEC);
	metrics_merge(&m, &one);
	metrics_merge(&m, &two);
	CHECK_EQ(7, metrics_get(&m, M_RUNS, 1));
	CHECK_EQ(1, metrics_get(&m, M_TIME, 0));
	CHECK_EQ(1, sample(show(), "sluice_exec_run_seconds_sum{shard=\"0\"}"));
	metrics_release(&one);
	metrics_release(&two);
}

TEST(a_help_text_is_escaped)
{
	static const struct metric odd[] = {
		{ "n", METRIC_GAUGE, "a \"b\" \\ c\nd" },
	};

	buf_init(&text, TEXT_MAX);
	CHECK_EQ(0, metrics_init(&m, "", odd, 1, NULL, 1));
	CHECK_STR("# HELP n a \"b\" \\\\ c\\nd\n# TYPE n gauge\nn 0\n",
		  show());
}

TEST(a_prefix_must_be_the_start_of_a_metric_name)
{
	static const struct {
		const char *label;
		const char *prefix;
		int want;
	} cases[] = {
		{ "good", "sluice_x:1_", 0 },
		{ "empty", "", 0 },
		{ "starts with a digit", "1x", SLU_EINVAL },
		{ "dash", "a-b", SLU_EINVAL },
		{ "not ASCII", "gr\303\274n", SLU_EINVAL },
		{ "63 bytes", "aaaaaaaaaabbbbbbbbbbccccccccccaaaaaaaaaabbbbbbbbbbccccccccccxyz",
		  0 },
		{ "64 bytes", "aaaaaaaaaabbbbbbbbbbccccccccccaaaaaaaaaabbbbbbbbbbccccccccccwxyz",
		  SLU_EINVAL },
	};

	EACH(i, cases) {
		CHECK_EQ(cases[i].want, metrics_init(&m, cases[i].prefix, rows,
						     COUNT(rows), NULL, 1));
		metrics_release(&m);
	}
}

/* A line of the text format is "# HELP name text", "# TYPE name kind" or
 * "name{labels} value". */
static const char *
skip_name(const char *p)
{
	CHECK(isalpha((unsigned char)*p) || *p == '_' || *p == ':');
	while (isalnum((unsigned char)*p) || *p == '_' || *p == ':')
		p++;
	return p;
}

static const char *
skip_labels(const char *p)
{
	do {
		p = skip_name(p + 1);
		CHECK(p[0] == '=' && p[1] == '"');
		for (p += 2; *p != '"'; p++) {
			CHECK(*p && *p != '\n');
			p += *p == '\\';
		}
		p++;
	} while (*p == ',');
	CHECK_EQ('}', *p);
	return p + 1;
}

static void
check_line(const char *p)
{
	char *end;

	if (strncmp(p, "# HELP ", 7) == 0 || strncmp(p, "# TYPE ", 7) == 0) {
		CHECK_EQ(' ', *skip_name(p + 7));
		return;
	}
	p = skip_name(p);
	if (*p == '{')
		p = skip_labels(p);
	CHECK_EQ(' ', *p);
	strtod(p + 1, &end);
	CHECK(end > p + 1 && *end == '\n');
}

static void
check_text(const char *t)
{
	while (*t) {
		const char *end = strchr(t, '\n');

		CHECK(end);
		check_line(t);
		t = end + 1;
	}
}

TEST(every_line_is_well_formed)
{
	init(3);
	CHECK_EQ(0, metrics_name(&m, 2, "q\"}\n x 1"));
	check_text(show());
}

TEST(a_text_too_large_for_its_buffer_fails_the_buffer)
{
	struct buf small;

	CHECK_EQ(0, metrics_init(&m, "x_", rows, COUNT(rows), "shard", 4));
	buf_init(&small, 100);
	metrics_write(&m, &small);
	CHECK(small.failed);
	buf_release(&small);
}

/* SQ-59: threads write while another one scrapes; the race checker watches. */
enum {
	WRITERS = 3,
	ROUNDS = 20000
};

struct writer {
	struct metrics *m;
	unsigned series;
	_Atomic int *running;
};

static void *
write_much(void *arg)
{
	struct writer *w = arg;

	for (int i = 0; i < ROUNDS; i++) {
		metrics_add(w->m, M_RUNS, 0, 1);
		metrics_set(w->m, M_DEPTH, w->series, i);
		metrics_observe(w->m, M_TIME, 0, i * SLU_US);
		metrics_observe_own(w->m, M_TIME, 1 + w->series, i * SLU_US);
	}
	atomic_fetch_sub(w->running, 1);
	return NULL;
}

static void
scrape_until_done(_Atomic int *running)
{
	double last = 0;

	do {
		const char *t = show();
		const double n = sample(t, "sluice_exec_run_seconds_count{shard=\"0\"}");

		CHECK(n == sample(t, "sluice_exec_run_seconds_bucket"
				     "{shard=\"0\",le=\"+Inf\"}"));
		CHECK(n >= last);
		last = n;
	} while (atomic_load(running) > 0);
}

TEST(writers_and_a_scraper_do_not_disturb_each_other)
{
	_Atomic int running = WRITERS;
	struct writer writers[WRITERS];
	pthread_t threads[WRITERS];

	init(1 + WRITERS);
	EACH(i, writers) {
		writers[i] = (struct writer){ &m, (unsigned)i, &running };
		CHECK_EQ(0, pthread_create(&threads[i], NULL, write_much, &writers[i]));
	}
	scrape_until_done(&running);
	EACH(i, threads)
		pthread_join(threads[i], NULL);
	CHECK_EQ(WRITERS * ROUNDS, metrics_get(&m, M_RUNS, 0), "no add is lost");
	CHECK_EQ(WRITERS * ROUNDS, metrics_get(&m, M_TIME, 0));
	for (unsigned i = 0; i < WRITERS; i++)
		CHECK_EQ(ROUNDS, metrics_get(&m, M_TIME, 1 + i), "each its own");
}

TORTURE(the_text_comes_as_a_string_of_its_own)
{
	char *own = NULL;
	int rc;

	rc = metrics_init(&m, "x_", rows, COUNT(rows), "shard", 2);
	if (rc == 0) {
		metrics_add(&m, M_RUNS, 1, 5);
		rc = metrics_text(&m, &own);
	}
	CHECK(rc == 0 || (rc == SLU_ENOMEM && !own));
	if (rc == 0)
		CHECK_CONTAINS("x_runs_total{shard=\"1\"} 5\n", own);
	mem_free(own);
	metrics_release(&m);
}

TORTURE(memory_may_run_out_anywhere)
{
	int rc;

	buf_init(&text, TEXT_MAX);
	rc = metrics_init(&m, "x_", rows, COUNT(rows), "shard", 2);
	if (rc == 0)
		rc = metrics_name(&m, 0, "first");
	if (rc == 0)
		rc = metrics_name(&m, 0, "second");
	if (rc == 0)
		metrics_write(&m, &text);
	CHECK(rc == 0 || rc == SLU_ENOMEM);
	CHECK(rc || text.failed || strstr(buf_str(&text), "{shard=\"second\"}"));
	release();
}
