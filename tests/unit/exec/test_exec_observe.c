/* What can be seen from outside: metrics, the snapshot, the status of a task. */
#include "exec_help.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* --- metrics --- */

/* The value of a sample, which must be there exactly once. */
static double
sample(struct slu_executor *ex, const char *name, uint32_t shard)
{
	char *text, line[128];
	const char *at;
	double value;

	(void)snprintf(line, sizeof line, "\nsluice_shardqueue_%s{shard=\"%u\"} ", name, shard);
	CHECK_EQ(0, slu_executor_metrics(ex, &text));
	at = strstr(text, line);
	if (!at || strstr(at + 1, line))
		test_fail(__FILE__, __LINE__, "%s: none or two in\n%s", line, text);
	value = strtod(at + strlen(line), NULL);
	slu_free(text);
	return value;
}

static void
check_family(const char *text, const char *name, const char *kind)
{
	char line[128];

	(void)snprintf(line, sizeof line, "# TYPE mycelian_shardqueue_%s %s\n", name, kind);
	CHECK_CONTAINS(line, text);
}

TEST(with_namespace_mycelian_there_are_exactly_the_four_names_of_the_design)
{
	const struct slu_executor_config config = { SLU_OPTIONS_INIT(struct slu_executor_config), .metrics_namespace = "mycelian" };
	struct slu_executor *ex;
	char *text;
	int families = 0;

	CHECK_EQ(0, slu_executor_start(&ex, &config, NULL));
	CHECK_EQ(0, slu_executor_metrics(ex, &text));
	check_family(text, "submissions_total", "counter");
	check_family(text, "queue_full_total", "counter");
	check_family(text, "run_duration_seconds", "histogram");
	check_family(text, "queue_depth", "gauge");
	for (const char *at = strstr(text, "# TYPE "); at; at = strstr(at + 1, "# TYPE "))
		families++;
	CHECK_EQ(4, families);
	for (const char *at = text; *at; at = strchr(at, '\n') + 1) /* SQ-58: one prefix */
		CHECK(at[0] == '#' || strncmp(at, "mycelian_shardqueue_", 20) == 0);
	CHECK_CONTAINS("\nmycelian_shardqueue_run_duration_seconds_count{shard=\"3\"} 0\n", text);
	slu_free(text);
	CHECK_EQ(0, slu_executor_close(ex));
}

TEST(submissions_and_refusals_are_counted_per_shard)
{
	const struct slu_submit nowait = { SLU_OPTIONS_INIT(struct slu_submit), .timeout = SLU_NOWAIT };
	static struct probe block = PROBE("block"), p[4], q = PROBE("q");
	char key[32];

	rig_start((struct slu_executor_config){ .shards = 2, .queue_size = 2 });
	rig_key(rig.ex, 1, 0, key);
	rig_block(key, &block);
	EACH(i, p) {
		p[i] = (struct probe)PROBE("p");
		(void)rig_try(key, &p[i], &nowait, NULL);
	}
	CHECK(sample(rig.ex, "submissions_total", 1) == 3); /* SQ-54: accepted ones */
	CHECK(sample(rig.ex, "queue_full_total", 1) == 2);  /* SQ-55: full errors */
	CHECK(sample(rig.ex, "submissions_total", 0) == 0);
	rig_submit(rig_key(rig.ex, 0, 0, key), &q);
	CHECK(sample(rig.ex, "submissions_total", 0) == 1);
	CHECK(sample(rig.ex, "queue_full_total", 0) == 0);
}

TEST(runs_are_counted_with_retries_and_without_skipped_tasks)
{
	struct slu_cancel *token = slu_cancel_new();
	const struct slu_submit opts = { SLU_OPTIONS_INIT(struct slu_submit), .cancel = token };
	static struct probe block = PROBE("block"), a = PROBE("a", .fails = 2);
	static struct probe skipped = PROBE("skipped");
	static struct probe panics = PROBE("panics", .fails = -1, .rc = 0, .panic = "x");

	rig_start((struct slu_executor_config){ .shards = 1, .max_attempts = 3 });
	rig_block("x", &block);
	CHECK_EQ(0, rig_try("x", &skipped, &opts, NULL));
	slu_cancel_fire(token, NULL);
	rig_submit("a", &a);
	rig_open_gate();
	rig_next_retry();
	rig_next_retry();
	CHECK(sample(rig.ex, "run_duration_seconds_count", 0) == 4); /* SQ-56: block, 3 times a */
	rig_submit("p", &panics);
	rig_settle();
	CHECK(sample(rig.ex, "run_duration_seconds_count", 0) == 5); /* SQ-56: a panic is a run */
	CHECK_EQ(5, rig_stats().runs);
	rig_release();
	slu_cancel_free(token);
}

/* A run that takes 3 seconds, its report another 60. */
static int
take_three(struct slu_run *run, void *arg)
{
	(void)arg;
	(void)run;
	fakeclock_advance(&rig.clock, 3 * SLU_SEC);
	return 0;
}

static void
take_sixty(const struct slu_run *run, void *arg, int rc)
{
	(void)arg;
	(void)run;
	(void)rc;
	fakeclock_advance(&rig.clock, SLU_MIN);
}

TEST(a_run_lasts_from_its_begin_to_its_end)
{
	const struct slu_task task = { SLU_OPTIONS_INIT(struct slu_task), take_three, NULL, take_sixty };
	const struct slu_task two[] = { task, task };
	char *text;

	CHECK_EQ(0, slu_executor_submit_batch(rig.ex, "a", two, 2, NULL, NULL, NULL));
	CHECK_EQ(0, slu_executor_stop(rig.ex, 0));
	CHECK(sample(rig.ex, "run_duration_seconds_sum", 0) == 6); /* SQ-56: no report in it */
	CHECK_EQ(0, slu_executor_metrics(rig.ex, &text));
	CHECK_CONTAINS("run_duration_seconds_bucket{shard=\"0\",le=\"2.5\"} 0\n", text);
	CHECK_CONTAINS("run_duration_seconds_bucket{shard=\"0\",le=\"5\"} 2\n", text);
	slu_free(text);
}

TEST(the_depth_is_true_while_tasks_run_and_while_keys_wait)
{
	static struct probe bad = PROBE("bad", .fails = 1), held = PROBE("held"), block = PROBE("block");
	static struct probe p = PROBE("p"), q = PROBE("q");

	CHECK(sample(rig.ex, "queue_depth", 0) == 0);
	rig_submit("bad", &bad);
	rig_settle();
	CHECK(sample(rig.ex, "queue_depth", 0) == 1); /* SQ-57: it waits for its retry */
	rig_block("x", &block);
	CHECK(sample(rig.ex, "queue_depth", 0) == 1); /* SQ-57: what runs waits no more */
	rig_submit("x", &p);
	rig_submit("y", &q);
	CHECK(sample(rig.ex, "queue_depth", 0) == 3); /* SQ-57: while a job runs */
	rig_open_gate();
	rig_settle();
	CHECK(sample(rig.ex, "queue_depth", 0) == 1);
	rig_submit("bad", &held);
	rig_settle();
	CHECK(sample(rig.ex, "queue_depth", 0) == 2); /* SQ-57: behind it, too */
	rig_next_retry();
	CHECK(sample(rig.ex, "queue_depth", 0) == 0);
}

/* --- under load --- */

struct load {
	struct slu_executor *ex;
	_Atomic bool stop;
	_Atomic uint64_t accepted;
};

static int
fail_sometimes(struct slu_run *run, void *arg)
{
	(void)arg;
	return run->attempt == 1 && run->id % 7 == 0 ? SLU_EFAILED : 0;
}

static void *
submit_load(void *arg)
{
	struct load *load = arg;
	char key[16];

	for (int i = 0; !atomic_load(&load->stop); i++) {
		(void)snprintf(key, sizeof key, "k%d", i % 50);
		submit_fn(load->ex, key, fail_sometimes, NULL);
		atomic_fetch_add(&load->accepted, 1);
	}
	return NULL;
}

TEST(scrapes_during_load_are_safe_and_never_go_back)
{
	const struct slu_executor_config config = { SLU_OPTIONS_INIT(struct slu_executor_config), .shards = 2, .base_backoff = SLU_US };
	const int scrapes = SANITIZED ? 100 : 500;
	struct load load = { .stop = false };
	struct slu_executor_stats s;
	double last = 0;
	pthread_t threads[2];

	CHECK_EQ(0, slu_executor_start(&load.ex, &config, NULL));
	EACH(i, threads)
		CHECK_EQ(0, pthread_create(&threads[i], NULL, submit_load, &load));
	for (int i = 0; i < scrapes; i++) { /* SQ-59: the thread sanitizer watches */
		const double now = sample(load.ex, "submissions_total", 0);

		CHECK(now >= last);
		last = now;
		CHECK(sample(load.ex, "queue_depth", 1) <= 129);
		CHECK_EQ(0, slu_executor_snapshot(load.ex, SLU_ALL_SHARDS, &s));
		CHECK(s.finished <= s.submitted);
	}
	atomic_store(&load.stop, true);
	EACH(i, threads)
		pthread_join(threads[i], NULL);
	CHECK_EQ(0, slu_executor_stop(load.ex, 0));
	CHECK(sample(load.ex, "submissions_total", 0) + sample(load.ex, "submissions_total", 1) ==
	      (double)load.accepted); /* SQ-54 */
	CHECK(sample(load.ex, "queue_depth", 0) == 0);
	CHECK_EQ(0, slu_executor_close(load.ex));
}

static slu_time
cpu_time(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * SLU_SEC + ts.tv_nsec;
}

/* Time itself is what is measured here. */
static void
pause_really(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 200 * SLU_MS }, NULL);
}

TEST_LIMIT(an_idle_executor_uses_no_cpu, 20)
{
	static struct probe bad = PROBE("bad", .fails = -1);
	slu_time before;

	rig_start((struct slu_executor_config){ .shards = 8, .base_backoff = 10 * SLU_SEC });
	rig_submit("bad", &bad); /* one worker waits for a retry, the others for work */
	rig_settle();
	before = cpu_time();
	pause_really();
	CHECK(cpu_time() - before < 20 * SLU_MS); /* SQ-25 */
}

TEST(an_idle_executor_on_the_system_clock_uses_no_cpu)
{
	struct slu_executor *ex;
	slu_time before;

	CHECK_EQ(0, slu_executor_start(&ex, NULL, NULL));
	submit_fn(ex, "a", fail_sometimes, NULL);
	CHECK_EQ(0, slu_executor_await(ex, "a", 0, NULL));
	before = cpu_time();
	pause_really();
	CHECK(cpu_time() - before < 20 * SLU_MS); /* SQ-25 */
	CHECK_EQ(0, slu_executor_close(ex));
}

/* --- the snapshot --- */

TEST(a_snapshot_counts_each_shard_and_all_together)
{
	static struct probe bad = PROBE("bad", .fails = -1, .rc = SLU_EPERMANENT), good = PROBE("good");
	struct slu_executor_stats one;
	char key[32];

	rig_start((struct slu_executor_config){ .shards = 3 });
	rig_submit(rig_key(rig.ex, 0, 0, key), &bad);
	rig_submit(rig_key(rig.ex, 2, 0, key), &good);
	rig_settle();
	CHECK_EQ(0, slu_executor_snapshot(rig.ex, 0, &one));
	CHECK_EQ(1, one.submitted);
	CHECK_EQ(1, one.failed);
	CHECK_EQ(0, slu_executor_snapshot(rig.ex, 1, &one));
	CHECK_EQ(0, one.submitted);
	CHECK_EQ(2, rig_stats().finished);
	CHECK_EQ(1, rig_stats().failed);
	CHECK_EQ(3, rig_stats().shards);
	CHECK(!rig_stats().stopping);
	CHECK_EQ(SLU_EINVAL, slu_executor_snapshot(rig.ex, 3, &one));
}

/* --- the status of a task --- */

TEST(a_task_can_be_asked_for_from_submit_to_end)
{
	static struct probe block = PROBE("block"), a1 = PROBE("a1", .fails = 1), a2 = PROBE("a2");
	static struct probe b = PROBE("b");
	uint64_t id_a1, id_a2, id_b;

	rig_block("x", &block);
	id_a1 = rig_submit("a", &a1);
	id_a2 = rig_submit("a", &a2);
	id_b = rig_submit("b", &b);
	/* SQ-F5: state, attempts, position */
	CHECK_EQ(SLU_TASK_RUNNING, rig_status(block.id).state);
	CHECK_EQ(1, rig_status(block.id).attempts);
	CHECK_EQ(SLU_TASK_QUEUED, rig_status(id_a1).state);
	CHECK_EQ(0, rig_status(id_a1).position);
	CHECK_EQ(1, rig_status(id_a2).position);
	CHECK_EQ(2, rig_status(id_b).position);
	CHECK_EQ(0, rig_status(id_b).attempts);
	rig_open_gate();
	rig_settle();
	CHECK_EQ(SLU_TASK_FINISHED, rig_status(block.id).state);
	CHECK_EQ(SLU_TASK_FINISHED, rig_status(id_b).state);
	CHECK_EQ(SLU_TASK_RETRYING, rig_status(id_a1).state);
	CHECK_EQ(1, rig_status(id_a1).attempts);
	CHECK_EQ(100 * SLU_MS, rig_status(id_a1).retry_in);
	CHECK_EQ(SLU_TASK_HELD, rig_status(id_a2).state);
	CHECK_EQ(1, rig_status(id_a2).position);
	fakeclock_advance(&rig.clock, 30 * SLU_MS);
	CHECK_EQ(70 * SLU_MS, rig_status(id_a1).retry_in);
	rig_next_retry();
	CHECK_EQ(SLU_TASK_FINISHED, rig_status(id_a1).state);
	CHECK_EQ(SLU_TASK_FINISHED, rig_status(id_a2).state);
}

TEST(a_retry_that_runs_shows_its_attempt_and_the_tasks_behind_it)
{
	static struct probe a1 = PROBE("a1", .fails = 1), a2 = PROBE("a2"), a3 = PROBE("a3");
	uint64_t id1, id2, id3;

	id1 = rig_submit("a", &a1);
	rig_settle();
	id2 = rig_submit("a", &a2);
	id3 = rig_submit("a", &a3);
	rig_settle();
	a1.waits = true;
	fakeclock_advance(&rig.clock, SLU_SEC);
	WAIT_UNTIL(atomic_load(&a1.runs) == 2);
	CHECK_EQ(SLU_TASK_RUNNING, rig_status(id1).state); /* SQ-F5 */
	CHECK_EQ(2, rig_status(id1).attempts);
	CHECK_EQ(SLU_TASK_HELD, rig_status(id2).state);
	CHECK_EQ(1, rig_status(id2).position);
	CHECK_EQ(2, rig_status(id3).position);
}

/* Two keys, each with a task behind a retry. When the retries have succeeded, the
 * one behind has its turn: it has not failed and waits for no retry. */
TEST(a_task_whose_turn_has_come_is_queued_not_retrying)
{
	static struct probe a1 = PROBE("a1", .fails = 1), a2 = PROBE("a2");
	static struct probe b1 = PROBE("b1", .fails = 1), b2 = PROBE("b2");
	uint64_t id;

	rig_submit("a", &a1);
	rig_submit("b", &b1);
	rig_settle();
	rig_submit("a", &a2);
	id = rig_submit("b", &b2);
	rig_settle();
	a2.waits = true;
	fakeclock_advance(&rig.clock, SLU_SEC);
	WAIT_UNTIL(atomic_load(&a2.runs) == 1);
	CHECK_STR("a1 b1 a1 b1 a2", rig_trace());
	CHECK_EQ(SLU_TASK_QUEUED, rig_status(id).state);
	CHECK_EQ(0, rig_status(id).attempts);
	CHECK_EQ(0, rig_status(id).position);
	CHECK_EQ(0, rig_status(id).retry_in);
}

TEST(a_retry_that_is_overdue_is_due_now)
{
	static struct probe bad = PROBE("bad", .fails = 1), block = PROBE("block");
	uint64_t id;

	id = rig_submit("bad", &bad);
	rig_settle();
	rig_block("x", &block);
	fakeclock_advance(&rig.clock, SLU_MIN);
	CHECK_EQ(SLU_TASK_RETRYING, rig_status(id).state);
	CHECK_EQ(0, rig_status(id).retry_in); /* not a time in the past */
}

TEST(an_id_that_was_never_given_is_not_found)
{
	struct slu_task_status status;
	static struct probe a = PROBE("a");
	uint64_t id;

	rig_start((struct slu_executor_config){ .shards = 2 });
	id = rig_submit("a", &a);
	CHECK_EQ(0, slu_executor_status(rig.ex, id, &status));
	CHECK_EQ(SLU_ENOTFOUND, slu_executor_status(rig.ex, id + 1, &status));
	CHECK_EQ(SLU_ENOTFOUND, slu_executor_status(rig.ex, 0, &status));
	CHECK_EQ(SLU_ENOTFOUND, slu_executor_status(rig.ex, UINT64_MAX, &status));
}

/* A task is seen in one of its states at any moment, and never goes back. */
TEST(status_asked_during_load_never_goes_back)
{
	const struct slu_executor_config config = { SLU_OPTIONS_INIT(struct slu_executor_config), .shards = 1, .base_backoff = SLU_US };
	const int tasks = SANITIZED ? 500 : 5000;
	struct slu_executor *ex;

	CHECK_EQ(0, slu_executor_start(&ex, &config, NULL));
	for (int i = 0; i < tasks; i++) {
		const uint64_t id = submit_fn(ex, "k", fail_sometimes, NULL);
		struct slu_task_status s = { .state = SLU_TASK_QUEUED };
		unsigned attempts = 0;

		while (s.state != SLU_TASK_FINISHED) {
			CHECK_EQ(0, slu_executor_status(ex, id, &s));
			CHECK(s.state == SLU_TASK_FINISHED || s.attempts >= attempts);
			attempts = s.attempts;
		}
		CHECK_EQ(0, slu_executor_status(ex, id, &s));
		CHECK_EQ(SLU_TASK_FINISHED, s.state);
	}
	CHECK_EQ(0, slu_executor_close(ex));
}
