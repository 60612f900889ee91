/* What a worker does with jobs. Its life - start, stop, deadlines - is in
 * test_worker_stop.c. */
#include "worker_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

FIXTURE(NULL, teardown);

TEST(one_thread_runs_jobs_one_at_a_time_in_order)
{
	static struct plan plan = { 0 };

	setup((struct slu_worker_config){ 0 });
	for (const char *id = "abcdefghijklmnopqrstuvwxyz"; *id; id++)
		put((const char[]){ *id, 0 }, &plan);
	start();
	settle(1);
	CHECK_EQ(26, stats_of().done);
	CHECK_EQ(1, f.most); /* PW-33 */
	CHECK_STR("abcdefghijklmnopqrstuvwxyz", f.order);
	CHECK_EQ(0, queue_of().running);
}

TEST_BARE(an_idle_thread_looks_around_every_poll_timeout)
{
	static const struct {
		slu_time set, want;
	} cases[] = { { 0, 5 * SLU_SEC }, { 250 * SLU_MS, 250 * SLU_MS } };

	EACH(i, cases) {
		struct slu_worker_config config;

		setup_queue((struct slu_pqueue_config){ 0 });
		config = fill((struct slu_worker_config){ 0 });
		config.poll_timeout = cases[i].set;
		CHECK_EQ(0, slu_worker_new(&f.worker, &config, NULL));
		start();
		for (uint64_t n = 1; n <= 3; n++) {
			/* PW-34 */
			WAIT_UNTIL(fakeclock_until(&f.clock) == START_MONO + (slu_time)n * cases[i].want);
			fakeclock_advance(&f.clock, cases[i].want - 1);
			CHECK_EQ(n - 1, stats_of().polls);
			fakeclock_advance(&f.clock, 1);
			WAIT_UNTIL(stats_of().polls == n);
		}
		/* PW-34: the clock stands still, yet the stop is noticed */
		CHECK_EQ(0, slu_worker_stop(f.worker, SLU_STOP_NOW, 0));
		teardown();
	}
}

TEST(a_job_that_fails_in_any_way_leaves_the_worker_alive)
{
	static struct plan plans[] = {
		{ .fails = -1 },
		{ .fails = -1, .rc = SLU_EPERMANENT },
		{ .fails = -1, .rc = -5 },
		{ .fails = -1, .rc = 123456 },
		{ .fails = -1, .rc = SLU_ETIMEOUT },
		{ .fails = -1, .panic = "index out of range" },
	};
	static struct plan good = { 0 };

	setup((struct slu_worker_config){ .max_attempts = 1 });
	start();
	EACH(i, plans) {
		put("bad", &plans[i]);
		put("good", &good);
		settle(1);
		CHECK_EQ(i + 1, stats_of().dead);
		CHECK_EQ(i + 1, good.runs); /* PW-35: the next one runs */
		CHECK_EQ(1, stats_of().threads);
	}
}

TEST(a_failure_is_one_log_line_with_fields)
{
	static struct plan plan = { .fails = 1, .rc = SLU_EDOWN, .text = "smtp: 421 try later" };
	static struct plan mute = { .fails = 1, .rc = SLU_EBUSY };
	static struct plan panic = { .fails = 1, .panic = "no \"key\"" };

	setup((struct slu_worker_config){ .max_attempts = 2 });
	put("order-1", &plan);
	put("order-2", &mute);
	put("order-3", &panic);
	start();
	settle(1);
	/* PW-36 */
	check_line("level=error event=\"job failed\" object_id=order-1 correlation_id=req-7 "
		   "error=\"smtp: 421 try later\" type=SLU_EDOWN attempt=1",
		   "then=retry retry_in=1");
	check_line("object_id=order-2 correlation_id=req-7 error=\"limit reached\" type=SLU_EBUSY", "job failed");
	check_line("error=\"handler panicked: no \\\"key\\\"\" type=SLU_EPANIC", "order-3");
}

TEST(recent_failures_are_kept_newest_first_and_bounded)
{
	static struct plan plans[] = {
		{ .fails = -1, .text = "first" },
		{ .fails = -1, .text = "second" },
		{ .fails = -1, .rc = SLU_EDOWN, .text = "third" },
		{ .fails = -1, .rc = 999 },
		{ .fails = -1, .panic = "fifth" },
	};
	struct slu_failure list[10];
	char id[2] = "a";

	setup((struct slu_worker_config){ .max_attempts = 1, .failures_kept = 3 });
	start();
	CHECK_EQ(0, slu_worker_failures(f.worker, list, 10));
	EACH(i, plans) {
		fakeclock_advance(&f.clock, SLU_SEC);
		put(id, &plans[i]);
		settle(1);
		id[0]++;
	}
	/* PW-37 */
	CHECK_EQ(3, slu_worker_failures(f.worker, list, 10));
	CHECK_STR("e", list[0].object_id);
	CHECK_STR("handler panicked: fifth", list[0].error);
	CHECK_STR("SLU_EPANIC", list[0].type);
	CHECK_STR("req-7", list[0].correlation_id);
	CHECK_EQ(1, list[0].attempt);
	CHECK_EQ(START_WALL + 5 * SLU_SEC, list[0].at);
	CHECK_STR("SLU_?", list[1].type);
	CHECK_STR("unknown error", list[1].error);
	CHECK_STR("c", list[2].object_id);
	CHECK_STR("third", list[2].error);
	CHECK_EQ(1, slu_worker_failures(f.worker, list, 1));
	CHECK_STR("e", list[0].object_id);
}

TEST(a_long_error_text_is_cut)
{
	static char text[300];
	static struct plan plan = { .fails = -1, .text = text };
	struct slu_failure failure;

	memset(text, 'x', sizeof text);
	text[sizeof text - 1] = 0;
	setup((struct slu_worker_config){ .max_attempts = 1 });
	put("a", &plan);
	start();
	settle(1);
	CHECK_EQ(1, slu_worker_failures(f.worker, &failure, 1));
	CHECK_EQ(sizeof failure.error - 1, strlen(failure.error));
}

/* --- retries and the end of the line ------------------------------------------ */

TEST(a_failed_job_returns_by_itself_at_its_time)
{
	static struct plan plan = { .fails = 2 };

	setup((struct slu_worker_config){ 0 });
	put("a", &plan);
	start();
	settle(1);
	CHECK_EQ(1, plan.runs);
	CHECK_EQ(1, queue_of().scheduled);
	/* PW-F2: after 1 s, not a moment sooner; then after 2 s */
	CHECK_EQ(START_MONO + SLU_SEC, fakeclock_until(&f.clock));
	fakeclock_advance(&f.clock, SLU_SEC - 1);
	CHECK_EQ(1, queue_of().scheduled);
	fakeclock_advance(&f.clock, 1);
	settle(1);
	CHECK_EQ(2, plan.runs);
	CHECK_EQ(START_MONO + 3 * SLU_SEC, fakeclock_until(&f.clock));
	fakeclock_advance(&f.clock, 2 * SLU_SEC);
	settle(1);
	CHECK_EQ(3, plan.runs);
	CHECK_EQ(3, plan.attempt);
	CHECK_EQ(1, stats_of().done);
	CHECK_EQ(2, stats_of().retried);
	CHECK_EQ(2, stats_of().failed);
	CHECK_EQ(0, queue_of().depth);
}

static slu_time
seven_times(unsigned attempt, void *arg)
{
	(void)arg;
	return 7 * attempt;
}

static slu_time
panicking(unsigned attempt, void *arg)
{
	(void)arg;
	slu_panic("attempt %u", attempt);
}

TEST_BARE(the_backoff_says_when)
{
	static const struct {
		const char *label;
		struct slu_backoff backoff;
		slu_time want[3];
	} cases[] = {
		{ "exponential by default", { 0 }, { SLU_SEC, 2 * SLU_SEC, 4 * SLU_SEC } },
		{ "capped", { .base = 600 * SLU_SEC }, { 600 * SLU_SEC, 900 * SLU_SEC, 900 * SLU_SEC } },
		{ "linear", { .kind = SLU_BACKOFF_LINEAR, .base = 10, .max = 1000 }, { 10, 20, 30 } },
		{ "fixed", { .kind = SLU_BACKOFF_FIXED, .base = 10, .max = 1000 }, { 10, 10, 10 } },
		{ "function", { .kind = SLU_BACKOFF_FUNCTION, .max = 20, .fn = seven_times }, { 7, 14, 20 } },
		{ "a function that panics", { .kind = SLU_BACKOFF_FUNCTION, .max = 9, .fn = panicking }, { 9, 9, 9 } },
	};

	EACH(i, cases) {
		struct plan plan = { .fails = -1 };
		slu_time now = START_MONO;

		setup((struct slu_worker_config){ .backoff = cases[i].backoff });
		put("a", &plan);
		start();
		EACH(n, cases[i].want) {
			settle(1);
			CHECK_EQ(n + 1, plan.runs);
			if (fakeclock_until(&f.clock) != now + cases[i].want[n])
				test_fail(__FILE__, __LINE__, "%s: retry %zu", cases[i].label, n + 1);
			fakeclock_advance(&f.clock, cases[i].want[n]);
			now += cases[i].want[n];
		}
		settle(1);
		teardown();
	}
}

TEST(no_backoff_retries_at_once_until_the_attempts_are_spent)
{
	static struct plan plan = { .fails = -1 };

	setup((struct slu_worker_config){ .backoff.kind = SLU_BACKOFF_NONE });
	put("a", &plan);
	start();
	settle(1);
	CHECK_EQ(5, plan.runs, "which are 5 by default");
	CHECK_EQ(1, f.dead);
}

TEST(jitter_spreads_retries_between_0_and_the_delay)
{
	static struct plan plan = { .fails = -1 };
	struct slu_job_item items[50];
	slu_time least = SLU_NEVER, most = 0;

	setup((struct slu_worker_config){
		.backoff = {
			.kind = SLU_BACKOFF_FIXED,
			.jitter = SLU_JITTER_FULL,
			.base = SLU_HOUR,
			.max = SLU_HOUR,
		},
	});
	for (int i = 0; i < 50; i++)
		put("a", &plan);
	start();
	settle(1);
	CHECK_EQ(50, slu_pqueue_peek(f.queue, items, 50));
	EACH(i, items) {
		least = items[i].ready_at < least ? items[i].ready_at : least;
		most = items[i].ready_at > most ? items[i].ready_at : most;
	}
	CHECK(least >= START_WALL && most <= START_WALL + SLU_HOUR);
	CHECK(most - least > SLU_MIN);
}

TEST(a_job_that_is_exhausted_or_hopeless_goes_to_the_dead_letter)
{
	static struct plan poor = { .fails = -1, .rc = SLU_EDOWN, .text = "still down" };
	static struct plan bad = { .fails = -1, .rc = SLU_EPERMANENT, .text = "no such address" };

	setup((struct slu_worker_config){ .max_attempts = 3, .backoff.kind = SLU_BACKOFF_NONE });
	put("poor", &poor);
	start();
	settle(1);
	/* PW-F9 */
	CHECK_EQ(1, f.dead);
	CHECK_EQ(3, poor.runs);
	CHECK_STR("poor", f.dead_job.object_id);
	CHECK_STR("req-7", f.dead_job.correlation_id);
	CHECK_EQ(3, f.dead_job.attempts);
	CHECK(f.dead_job.data == &poor);
	CHECK_EQ(SLU_EDOWN, f.dead_err.code);
	CHECK_STR("still down", f.dead_err.text);
	check_line("event=\"job failed\" object_id=poor", "attempt=3 then=\"dead letter\"");

	put("bad", &bad);
	settle(1);
	CHECK_EQ(1, bad.runs, "no retry of what fails for good");
	CHECK_EQ(2, f.dead);
	CHECK_STR("bad", f.dead_job.object_id);
	CHECK_EQ(2, stats_of().dead);
	CHECK_EQ(2, stats_of().retried);
	CHECK_EQ(0, queue_of().depth + queue_of().running);
}

static void
lose(const struct slu_job_item *job, const struct slu_err *err, void *arg)
{
	(void)err;
	(void)arg;
	slu_panic("cannot store %s", job->object_id);
}

TEST(a_dead_letter_that_panics_is_logged_and_the_worker_goes_on)
{
	static struct plan bad = { .fails = -1 }, good = { 0 };

	setup((struct slu_worker_config){ .max_attempts = 1, .dead_letter = lose });
	put("bad", &bad);
	put("good", &good);
	start();
	settle(1);
	CHECK_EQ(1, stats_of().dead);
	CHECK_EQ(1, good.runs);
	check_line("level=error event=\"dead letter lost\" object_id=bad",
		   "error=\"dead_letter panicked: cannot store bad\"");
}

TEST(a_retry_has_room_in_a_full_queue)
{
	static struct plan plan = { .fails = 1 };
	struct slu_job job = { SLU_OPTIONS_INIT(struct slu_job), .object_id = "b", .data = &plan };
	struct slu_worker_config config;

	setup_queue((struct slu_pqueue_config){ .max_in_memory = 1 });
	config = fill((struct slu_worker_config){ 0 });
	CHECK_EQ(0, slu_worker_new(&f.worker, &config, NULL));
	put("a", &plan);
	start();
	settle(1);
	CHECK_EQ(1, queue_of().scheduled);
	CHECK_EQ(SLU_EQFULL, slu_pqueue_enqueue(f.queue, &job, NULL, NULL));
	fakeclock_advance(&f.clock, SLU_SEC);
	settle(1);
	CHECK_EQ(1, stats_of().done);
}

/* --- sessions ------------------------------------------------------------------ */

/* A real resource: a file is open as long as the session is. */
static int
open_file(void **session, void *arg, struct slu_err *err)
{
	const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)arg;
	if (fd < 0)
		return slu_fail(err, SLU_EDOWN, "open /dev/null: %m");
	atomic_fetch_add(&f.opened, 1);
	*session = (void *)(intptr_t)(fd + 1);
	return 0;
}

static void
close_file(void *session, void *arg)
{
	(void)arg;
	CHECK(session != NULL);
	CHECK_EQ(0, close((int)(intptr_t)session - 1));
	atomic_fetch_add(&f.closed, 1);
}

static int
count_open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	CHECK(dir != NULL);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

TEST_LIMIT(open_handles_are_constant_after_10000_failing_jobs, 240)
{
	static struct plan plans[] = {
		{ .fails = -1 },
		{ .fails = -1, .panic = "boom" },
		{ .fails = -1, .rc = SLU_EPERMANENT },
		{ .fails = -1, .rc = SLU_ENOMEM },
	};
	int before;

	setup((struct slu_worker_config){
		.threads = 2,
		.max_attempts = 2,
		.backoff.kind = SLU_BACKOFF_NONE,
		.session_open = open_file,
		.session_close = close_file,
	});
	slu_log_set_level(f.log, SLU_LOG_OFF);
	before = count_open_files();
	start();
	for (int i = 0; i < 10000; i++)
		put("a", &plans[i % 4]);
	settle(2);
	/* PW-39: a fresh one per attempt, always closed */
	CHECK_EQ(10000, f.dead);
	CHECK_EQ(17500, f.total);
	CHECK_EQ(17500, f.opened);
	CHECK_EQ(17500, f.closed);
	CHECK_EQ(before, count_open_files());
	CHECK_EQ(100, slu_worker_failures(f.worker, (struct slu_failure[200]){ { .attempt = 0 } }, 200)); /* PW-37 */
}

TEST(threads_of_a_pool_run_jobs_in_parallel_sessions)
{
	static struct plan plan = { .waits = true };

	setup((struct slu_worker_config){
		.threads = 4,
		.session_open = open_file,
		.session_close = close_file,
	});
	start();
	for (int i = 0; i < 10; i++)
		put("a", &plan);
	WAIT_UNTIL(f.inside == 4);        /* PW-F5: N workers, N parallel jobs */
	CHECK_EQ(4, f.opened - f.closed); /* PW-F5: each with a session of its own */
	CHECK_EQ(4, stats_of().running);
	CHECK_EQ(4, queue_of().running);
	f.gate = true;
	settle(4);
	CHECK_EQ(10, stats_of().done);
	CHECK_EQ(4, f.most);
	CHECK_EQ(10, f.closed);
}

/* A session cannot see its job; the fixture's counters tell which attempt it is. */
static int
open_badly(void **session, void *arg, struct slu_err *err)
{
	const int n = atomic_fetch_add(&f.opened, 1);

	(void)arg;
	*session = &f;
	if (n == 0)
		return slu_fail(err, SLU_EDOWN, "database is away");
	if (n == 1)
		slu_panic("no pool");
	(void)slu_fail(err, SLU_EINVAL, "said, but not meant"); /* returns 0 below */
	return 0;
}

static void
close_badly(void *session, void *arg)
{
	(void)arg;
	CHECK(session == &f);
	if (atomic_fetch_add(&f.closed, 1) < 2)
		slu_panic("rollback");
}

TEST(hooks_of_a_session_may_fail_and_panic)
{
	static struct plan plan = { .fails = 0 };
	struct slu_failure list[8];

	setup((struct slu_worker_config){
		.backoff.kind = SLU_BACKOFF_NONE,
		.max_attempts = 9,
		.session_open = open_badly,
		.session_close = close_badly,
		.handler = run_plan,
	});
	start();
	put("a", &plan);
	/* Attempts 1 and 2 never reach the handler; in 3 it succeeds, and that the close
	 * panics does not undo it. */
	settle(1);
	CHECK_EQ(3, f.opened);
	CHECK_EQ(1, f.closed, "what was not opened is not closed");
	CHECK_EQ(1, plan.runs, "a job that is done is not run again");
	CHECK_EQ(1, stats_of().done);
	CHECK_EQ(2, slu_worker_failures(f.worker, list, 8));
	CHECK_STR("session_open panicked: no pool", list[0].error);
	CHECK_STR("database is away", list[1].error);

	plan = (struct plan){ .fails = 1 };
	put("b", &plan);
	settle(1);
	(void)slu_worker_failures(f.worker, list, 1);
	CHECK_STR("the task failed", list[0].error); /* the handler's, not the close's */
}

/* --- logs and metrics ------------------------------------------------------------ */

TEST(one_correlation_id_is_in_the_lines_of_queue_and_worker)
{
	static const char *const events[] = {
		"event=\"job enqueued\"",
		"event=\"job dequeued\"",
		"event=\"job started\"",
		"event=\"job failed\"",
		"event=\"job scheduled\"", /* for its retry */
		"event=\"job done\"",
	};
	static struct plan plan = { .fails = 1 };

	setup((struct slu_worker_config){ 0 });
	put("order-1", &plan);
	start();
	settle(1);
	fakeclock_advance(&f.clock, SLU_SEC);
	settle(1);
	EACH(i, events) /* PW-25 */
		check_line(events[i], " object_id=order-1 correlation_id=req-7 ");
}

/* Where in the log the first line with both parts begins. */
static long
position(const char *time, const char *event)
{
	char *line = find_line(time, event);
	long at;

	if (!line)
		test_fail(__FILE__, __LINE__, "no %s at %s", event, time);
	at = strstr(f.lines, line) - f.lines;
	free(line);
	return at;
}

TEST(the_trace_of_a_delayed_job_shows_its_steps)
{
	static struct plan plan = { 0 };
	long scheduled, dequeued, started, done;

	setup((struct slu_worker_config){ 0 });
	start();
	put_later("a", &plan, 30 * SLU_MIN);
	settle(1);
	fakeclock_advance(&f.clock, 30 * SLU_MIN - 1);
	CHECK_EQ(1, queue_of().scheduled);
	fakeclock_advance(&f.clock, 1);
	settle(1);
	CHECK_EQ(0, slu_worker_stop(f.worker, SLU_STOP_NOW, 0));
	/* PW-49: START_WALL is 22:13:20 */
	scheduled = position("T22:13:20.000Z", "event=\"job scheduled\" object_id=a");
	(void)position("T22:43:20.000Z", "event=\"job promoted\" object_id=a");
	dequeued = position("T22:43:20.000Z", "event=\"job dequeued\" object_id=a");
	started = position("T22:43:20.000Z", "event=\"job started\" object_id=a");
	done = position("T22:43:20.000Z", "event=\"job done\" object_id=a");
	CHECK(scheduled < dequeued && dequeued < started && started < done);
}

static int
take_time(const struct slu_job_item *job, void *session, void *arg, struct slu_err *err)
{
	fakeclock_advance(&f.clock, 2 * SLU_SEC);
	return run_plan(job, session, arg, err);
}

TEST(metrics_count_what_happened)
{
	static struct plan good = { 0 }, flaky = { .fails = 2 }, bad = { .fails = -1 };
	char *text;

	setup((struct slu_worker_config){
		.handler = take_time,
		.max_attempts = 3,
		.backoff.kind = SLU_BACKOFF_NONE,
		.metrics_namespace = "shop",
	});
	for (int i = 0; i < 4; i++)
		put("good", &good);
	put("flaky", &flaky);
	put("bad", &bad);
	start();
	settle(1);
	CHECK_EQ(0, slu_worker_metrics(f.worker, &text));
	CHECK_CONTAINS("\nshop_worker_job_processing_duration_seconds_count 10\n", text); /* PW-F14 */
	CHECK_CONTAINS("\nshop_worker_job_processing_duration_seconds_sum 20.000000000\n", text);
	CHECK_CONTAINS("\nshop_worker_job_processing_duration_seconds_bucket{le=\"2.5\"} 10\n", text);
	CHECK_CONTAINS("\nshop_worker_job_failures_total 5\n", text); /* PW-F15 */
	CHECK_CONTAINS("\nshop_worker_jobs_done_total 5\n", text);
	CHECK_CONTAINS("\nshop_worker_jobs_dead_total 1\n", text);
	CHECK_CONTAINS("\nshop_worker_jobs_retried_total 4\n", text);
	slu_free(text);
}
