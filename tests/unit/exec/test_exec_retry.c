/* Failures: when a task is tried again, after how long, what is reported, which tasks wait. */
#include "exec_help.h"

#include "exec/executor.h"

#include <stdio.h>

/* --- how often --- */

TEST(a_task_that_fails_is_tried_again_until_it_succeeds)
{
	static struct probe a = PROBE("a", .fails = 2), b = PROBE("b");

	rig_submit("a", &a);
	rig_submit("b", &b);
	rig_next_retry();
	CHECK_EQ(0, a.reports); /* not an end yet */
	rig_next_retry();
	CHECK_EQ(3, a.runs);                /* SQ-28: twice in vain, then well */
	CHECK_EQ(1, b.runs);                /* SQ-09: ok is not tried again */
	CHECK_STR("b:ok a:ok", rig_ends()); /* SQ-09: one report each */
	CHECK_EQ(3, a.attempt);
	CHECK_EQ(0, rig.errors);
}

TEST(a_task_that_always_fails_runs_max_attempts_times)
{
	static const struct {
		uint32_t set;
		int want;
	} cases[] = { { 0, 8 }, { 1, 1 }, { 3, 3 }, { 5, 5 } }; /* SQ-46: five runs */

	EACH(i, cases) {
		struct probe a = PROBE("a", .fails = -1);

		rig_start((struct slu_executor_config){ .max_attempts = cases[i].set });
		rig_submit("a", &a);
		for (int run = 1; run < cases[i].want; run++)
			rig_next_retry();
		rig_settle();
		CHECK_EQ(cases[i].want, a.runs); /* SQ-29 */
		CHECK_EQ(SLU_NEVER, fakeclock_until(&rig.clock));
		CHECK_EQ(1, rig.errors); /* SQ-34: once, not per attempt */
		CHECK_EQ(cases[i].want, rig_told().attempt);
		rig_release();
	}
}

TEST(a_permanent_failure_is_not_tried_again)
{
	static struct probe a = PROBE("a", .fails = -1, .rc = SLU_EPERMANENT, .text = "no such user");

	rig_submit("a", &a);
	rig_settle();
	CHECK_EQ(1, a.runs); /* runs once ... */
	CHECK_EQ(SLU_EPERMANENT, a.result);
	CHECK_EQ(1, rig.errors); /* ... and the handler is called */
	CHECK_EQ(SLU_EPERMANENT, rig_told().rc);
	CHECK_STR("no such user", rig_told().err.text);
}

/* --- how long: the waits between the runs of a task that always fails --- */

static slu_time
as_listed(unsigned attempt, void *arg)
{
	const slu_time *times = arg;

	return times[attempt - 1];
}

struct waits_case {
	const char *label;
	struct slu_executor_config config;
	slu_time want[4];
};

static void
check_waits(const struct waits_case *c)
{
	struct probe a = PROBE("a", .fails = -1);

	rig_start(c->config);
	rig_submit("a", &a);
	for (size_t i = 0; i < COUNT(c->want); i++) {
		rig_settle();
		if (rig_wait() != c->want[i])
			test_fail(__FILE__, __LINE__, "%s: wait %zu is %" PRId64, c->label,
				  i + 1, rig_wait());
		fakeclock_advance(&rig.clock, c->want[i] - 1);
		rig_settle();
		CHECK_EQ(i + 1, a.runs, "not before its time");
		fakeclock_advance(&rig.clock, 1);
		WAIT_UNTIL(atomic_load(&a.runs) == (int)i + 2);
	}
	rig_release();
}

TEST(waits_grow_as_the_policy_says)
{
	static slu_time odd[] = { 7 * SLU_MS, 3 * SLU_SEC, 500 * SLU_SEC, 1, 2 };
	const struct waits_case cases[] = {
		/* SQ-30: 1x 2x 4x 8x of the base, to the nanosecond: no jitter */
		{ "defaults", { 0 }, { 100 * SLU_MS, 200 * SLU_MS, 400 * SLU_MS, 800 * SLU_MS } },
		/* SQ-47: first wait 50 ms */
		{ "base",
		  { .base_backoff = 50 * SLU_MS },
		  { 50 * SLU_MS, 100 * SLU_MS, 200 * SLU_MS, 400 * SLU_MS } },
		/* SQ-31: the third wait is 2 s */
		{ "cap",
		  { .base_backoff = SLU_SEC, .max_interval = 2 * SLU_SEC },
		  { SLU_SEC, 2 * SLU_SEC, 2 * SLU_SEC, 2 * SLU_SEC } },
		/* SQ-48: no wait over 5 s */
		{ "cap of 5 s",
		  { .base_backoff = 4 * SLU_SEC, .max_interval = 5 * SLU_SEC },
		  { 4 * SLU_SEC, 5 * SLU_SEC, 5 * SLU_SEC, 5 * SLU_SEC } },
		{ "cap of 20 s by default",
		  { .base_backoff = 15 * SLU_SEC },
		  { 15 * SLU_SEC, 20 * SLU_SEC, 20 * SLU_SEC, 20 * SLU_SEC } },
		/* SQ-F7: fixed, linear, exponential, or a function */
		{ "fixed",
		  { .backoff = SLU_BACKOFF_FIXED, .base_backoff = SLU_SEC },
		  { SLU_SEC, SLU_SEC, SLU_SEC, SLU_SEC } },
		{ "linear",
		  { .backoff = SLU_BACKOFF_LINEAR, .base_backoff = SLU_SEC },
		  { SLU_SEC, 2 * SLU_SEC, 3 * SLU_SEC, 4 * SLU_SEC } },
		{ "function, capped as well",
		  { .backoff = SLU_BACKOFF_FUNCTION,
		    .backoff_fn = as_listed,
		    .backoff_arg = odd },
		  { 7 * SLU_MS, 3 * SLU_SEC, 20 * SLU_SEC, 1 } },
	};

	EACH(i, cases)
		check_waits(&cases[i]);
}

TEST(without_backoff_a_retry_comes_at_once)
{
	static struct probe a = PROBE("a", .fails = 5);

	rig_start((struct slu_executor_config){ .backoff = SLU_BACKOFF_NONE });
	rig_submit("a", &a);
	rig_settle();
	CHECK_EQ(6, a.runs); /* SQ-F7: and the clock stood still */
	CHECK_EQ(0, a.result);
}

TEST(full_jitter_stays_between_nothing_and_the_delay)
{
	enum {
		N = 50
	};
	const struct slu_executor_config config = {
		SLU_OPTIONS_INIT(struct slu_executor_config),
		.backoff = SLU_BACKOFF_FIXED,
		.base_backoff = SLU_SEC,
		.jitter = SLU_JITTER_FULL,
		.max_attempts = N + 1,
	};
	static struct probe a = PROBE("a", .fails = -1);
	slu_time least = SLU_SEC, most = 0;

	rig_start(config);
	rig_submit("a", &a);
	for (int i = 0; i < N; i++) {
		slu_time wait;

		rig_settle();
		wait = rig_wait();
		CHECK(wait >= 0 && wait <= SLU_SEC); /* SQ-30: within the stated jitter */
		least = wait < least ? wait : least;
		most = wait > most ? wait : most;
		rig_next_retry();
	}
	CHECK(least < SLU_SEC / 4 && most > 3 * SLU_SEC / 4);
}

static slu_time
first_jittered_wait(slu_time wall)
{
	const struct slu_executor_config config = {
		SLU_OPTIONS_INIT(struct slu_executor_config),
		.base_backoff = SLU_SEC, .jitter = SLU_JITTER_FULL, .on_error = NULL
	};
	struct probe a = PROBE("a", .fails = 1);
	struct slu_executor *ex;
	slu_time wait;

	rig_start(config);
	slu_executor_close(rig.ex);
	fakeclock_set_wall(&rig.clock, wall);
	CHECK_EQ(0, executor_start_on(&ex, &config, &rig.clock.clock, NULL));
	rig.ex = ex;
	rig_submit("a", &a);
	rig_settle();
	wait = rig_wait();
	rig_release();
	return wait;
}

/* Jitter is there so that many processes do not come back together. */
TEST(executors_started_at_different_moments_have_different_dice)
{
	const slu_time one = first_jittered_wait(1700000000 * SLU_SEC);

	CHECK_EQ(one, first_jittered_wait(1700000000 * SLU_SEC));
	CHECK(one != first_jittered_wait(1700000000 * SLU_SEC + 1));
	CHECK(one != first_jittered_wait(1700000001 * SLU_SEC));
}

static slu_time
never(unsigned attempt, void *arg)
{
	(void)attempt;
	(void)arg;
	return SLU_NEVER;
}

TEST(a_retry_may_wait_for_ever)
{
	const struct slu_executor_config config = {
		SLU_OPTIONS_INIT(struct slu_executor_config),
		.backoff = SLU_BACKOFF_FUNCTION, .backoff_fn = never, .max_interval = SLU_NEVER
	};
	static struct probe a = PROBE("a", .fails = 1);

	rig_start(config);
	rig_submit("a", &a);
	rig_settle();
	CHECK_EQ(0, a.reports);
	CHECK_EQ(1, rig_stats().waiting);
	rig_release();
	CHECK_EQ(SLU_EFAILED, a.result); /* stop ended it */
}

/* --- tasks that wait --- */

TEST(only_its_own_key_waits_for_a_task_that_failed)
{
	static struct probe a1 = PROBE("a1", .fails = 1), a2 = PROBE("a2"), a3 = PROBE("a3");
	static struct probe b1 = PROBE("b1"), b2 = PROBE("b2");

	rig_submit("a", &a1);
	rig_submit("a", &a2);
	rig_submit("b", &b1);
	rig_settle();
	CHECK_STR("a1 b1", rig_trace()); /* EXECUTOR-3 */
	rig_submit("a", &a3);
	rig_submit("b", &b2);
	rig_settle();
	CHECK_STR("a1 b1 b2", rig_trace());
	rig_next_retry();
	CHECK_STR("a1 b1 b2 a1 a2 a3", rig_trace()); /* EXECUTOR-1 */
}

TEST(keys_of_equal_hash_do_not_wait_for_each_other)
{
	static struct probe one = PROBE("one", .fails = 1), other = PROBE("other");

	rig_start((struct slu_executor_config){ .shards = 4 });
	rig_submit("costarring", &one);
	rig_settle();
	rig_submit("liquid", &other);
	rig_settle();
	CHECK_STR("one other", rig_trace());
	rig_next_retry();
	CHECK_STR("one other one", rig_trace());
}

TEST(a_task_behind_may_fail_too_and_the_order_stays)
{
	static struct probe a1 = PROBE("a1", .fails = 1), a2 = PROBE("a2", .fails = 2);
	static struct probe a3 = PROBE("a3", .fails = -1, .rc = SLU_EPERMANENT), a4 = PROBE("a4");

	rig_submit("a", &a1);
	rig_submit("a", &a2);
	rig_submit("a", &a3);
	rig_submit("a", &a4);
	rig_next_retry();
	rig_next_retry();
	rig_next_retry();
	CHECK_STR("a1 a1 a2 a2 a2 a3 a4", rig_trace());
}

TEST_LIMIT(retries_that_are_always_due_do_not_starve_the_other_keys, 20)
{
	const struct slu_executor_config config = {
		SLU_OPTIONS_INIT(struct slu_executor_config),
		.shards = 1,
		.backoff = SLU_BACKOFF_NONE,
		.max_attempts = UINT32_MAX,
	};
	static struct probe a = PROBE("a", .fails = -1), b = PROBE("b");

	rig_start(config);
	rig_submit("a", &a);
	WAIT_UNTIL(atomic_load(&a.runs) > 10);
	rig_submit("b", &b);
	WAIT_UNTIL(atomic_load(&b.reports) == 1); /* EXECUTOR-3 */
	rig_release();
	CHECK_EQ(SLU_EFAILED, a.result);
}

TEST(a_retry_whose_time_has_come_goes_before_what_is_queued)
{
	static struct probe a = PROBE("a", .fails = 1), block = PROBE("block");
	static struct probe b = PROBE("b"), c = PROBE("c");

	rig_submit("a", &a);
	rig_settle();
	rig_block("block", &block);
	rig_submit("b", &b);
	rig_submit("c", &c);
	fakeclock_advance(&rig.clock, SLU_SEC);
	rig_open_gate();
	rig_settle();
	CHECK_STR("a block a b c", rig_trace());
}

/* --- the error handler --- */

TEST(the_error_handler_receives_key_shard_attempts_and_error)
{
	static struct probe a = PROBE("a", .fails = -1, .rc = SLU_EBUSY, .text = "come back later");
	const char *key = "customer-7";
	uint64_t id;

	rig_start((struct slu_executor_config){ .max_attempts = 2 });
	id = rig_submit(key, &a);
	rig_next_retry();
	CHECK_EQ(1, rig.errors); /* SQ-34 */
	CHECK_STR(key, rig_told().key);
	CHECK_EQ(slu_executor_shard_of(rig.ex, key), rig_told().shard);
	CHECK_EQ(id, rig_told().id);
	CHECK_EQ(2, rig_told().attempt);
	CHECK_EQ(SLU_EBUSY, rig_told().rc);
	CHECK_EQ(SLU_EBUSY, rig_told().err.code);
	CHECK_STR("come back later", rig_told().err.text);
}

TEST(an_error_without_a_sentence_gets_one)
{
	static const struct {
		int rc;
		enum slu_code code;
	} cases[] = {
		{ SLU_EBUSY, SLU_EBUSY },
		{ SLU_EFAILED, SLU_EFAILED },
		{ -5, SLU_EFAILED }, /* no code of ours */
		{ 4711, SLU_EFAILED },
	};

	EACH(i, cases) {
		struct probe a = PROBE("a", .fails = -1, .rc = cases[i].rc);

		rig_start((struct slu_executor_config){ .max_attempts = 1 });
		rig_submit("a", &a);
		rig_settle();
		CHECK_EQ(cases[i].rc, rig_told().rc);
		CHECK_EQ(cases[i].code, rig_told().err.code);
		CHECK(rig_told().err.text[0]);
		rig_release();
	}
}

TEST(without_a_handler_the_next_task_runs)
{
	const struct slu_executor_config config = { SLU_OPTIONS_INIT(struct slu_executor_config), .shards = 1, .max_attempts = 1 };
	static struct probe bad = PROBE("bad", .fails = -1), good = PROBE("good");
	static struct probe worse = PROBE("worse", .fails = -1, .panic = "x");

	rig_start(config);
	CHECK_EQ(0, slu_executor_close(rig.ex));
	CHECK_EQ(0, executor_start_on(&rig.ex, &config, &rig.clock.clock, NULL));
	rig.shards = 1;
	rig_submit("a", &bad);
	rig_submit("a", &worse);
	rig_submit("a", &good);
	rig_settle();
	CHECK_EQ(0, good.result); /* SQ-35 */
	CHECK_EQ(1, good.runs);
	CHECK_EQ(2, rig_stats().failed);
}

/* --- panics --- */

static void
panic_in_handler(const struct slu_run *run, int rc, void *arg)
{
	(void)rc;
	(void)arg;
	slu_panic("handler of %s", run->key);
}

TEST_LIMIT(a_handler_that_panics_is_contained_and_logged, 20)
{
	static struct probe bad = PROBE("bad", .fails = -1), good = PROBE("good");

	rig_start((struct slu_executor_config){
		.shards = 1, .max_attempts = 1, .on_error = panic_in_handler });
	rig_submit("a", &bad);
	rig_submit("a", &good);
	rig_settle();
	CHECK_EQ(1, bad.reports);
	CHECK_EQ(1, good.runs); /* SQ-36: the shard goes on */
	CHECK_EQ(0, good.result);
	/* SQ-63 */
	CHECK_EQ(1, rig_count_lines("shardqueue: error handler panic: handler of a"));
	CHECK_EQ(0, rig_stats().panics); /* those are the tasks' */
}

TEST(a_task_that_panics_fails_and_the_shard_goes_on)
{
	static struct probe bad = PROBE("bad", .fails = -1, .panic = "index 7 of 3");
	static struct probe good = PROBE("good");

	rig_start((struct slu_executor_config){ .shards = 1, .max_attempts = 1 });
	rig_submit("a", &bad);
	rig_submit("a", &good);
	rig_settle();
	CHECK_EQ(SLU_EPANIC, bad.result);
	CHECK_EQ(SLU_EPANIC, rig_told().rc);
	CHECK_CONTAINS("index 7 of 3", rig_told().err.text);
	CHECK_EQ(1, good.runs); /* SQ-37: the same shard, the next task */
	CHECK_EQ(1, rig_stats().panics);
	CHECK_EQ(1, rig_count_lines("shardqueue: worker 0 panic: index 7 of 3")); /* SQ-61 */
	CHECK_CONTAINS("shard=0", rig_lines());                                   /* SQ-61 */
	CHECK_EQ(1, rig_count_lines("level=error"));
}

TEST(a_panic_is_tried_again_like_any_failure)
{
	static struct probe a = PROBE("a", .fails = 2, .panic = "once more");

	rig_submit("a", &a);
	rig_next_retry();
	rig_next_retry();
	CHECK_STR("a a a", rig_trace());
	CHECK_STR("a:ok", rig_ends());
	CHECK_EQ(2, rig_stats().panics);
	CHECK_EQ(3, rig_stats().runs);
}

static void
panic_in_done(const struct slu_run *run, void *arg, int rc)
{
	(void)rc;
	atomic_fetch_add((_Atomic int *)arg, 1);
	slu_panic("done of %s", run->key);
}

static int
succeed(struct slu_run *run, void *arg)
{
	(void)run;
	(void)arg;
	return 0;
}

TEST(a_done_that_panics_is_contained_and_called_once)
{
	static struct probe good = PROBE("good");
	_Atomic int calls = 0;
	const struct slu_task task = { SLU_OPTIONS_INIT(struct slu_task), succeed, &calls, panic_in_done };

	rig_start((struct slu_executor_config){ .shards = 1 });
	CHECK_EQ(0, slu_executor_submit(rig.ex, "a", &task, NULL, NULL, NULL));
	rig_submit("a", &good);
	rig_settle();
	CHECK_EQ(1, calls); /* EXECUTOR-2 */
	CHECK_EQ(1, good.runs);
	CHECK_EQ(1, rig_count_lines("done callback panic: done of a"));
	CHECK_EQ(2, rig_stats().finished);
}

static slu_time
panic_in_backoff(unsigned attempt, void *arg)
{
	(void)attempt;
	atomic_fetch_add((_Atomic int *)arg, 1);
	slu_panic("no idea how long");
}

TEST(a_backoff_function_that_panics_ends_the_task)
{
	static struct probe bad = PROBE("bad", .fails = -1), good = PROBE("good");
	_Atomic int calls = 0;

	rig_start((struct slu_executor_config){ .shards = 1,
						.backoff = SLU_BACKOFF_FUNCTION,
						.backoff_fn = panic_in_backoff,
						.backoff_arg = &calls });
	rig_submit("a", &bad);
	rig_submit("a", &good);
	rig_settle();
	CHECK_STR("bad good", rig_trace());
	CHECK_EQ(1, calls);
	CHECK_EQ(1, bad.reports);
	CHECK(bad.result != 0);
	CHECK_EQ(2, rig_stats().runs);
}
