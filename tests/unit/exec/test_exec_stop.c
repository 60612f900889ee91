/* Stop: refuses first, then drains in order, and every caller returns after it. */
#include "exec_help.h"

#include "exec/executor.h"

#include <stdio.h>
#include <stdlib.h>

/* A stop on a thread of its own. */
struct stopper {
	struct slu_executor *ex;
	slu_time timeout;
	pthread_t thread;
	_Atomic int rc;    /* -1: still in there */
	uint64_t finished; /* when it returned */
};

static void *
run_stop(void *arg)
{
	struct stopper *s = arg;
	struct slu_executor_stats stats;
	const int rc = slu_executor_stop(s->ex, s->timeout);

	CHECK_EQ(0, slu_executor_snapshot(s->ex, SLU_ALL_SHARDS, &stats));
	s->finished = stats.finished;
	atomic_store(&s->rc, rc);
	return NULL;
}

static void
stop_begin(struct stopper *s, struct slu_executor *ex)
{
	*s = (struct stopper){ .ex = ex, .rc = -1 };
	CHECK_EQ(0, pthread_create(&s->thread, NULL, run_stop, s));
}

static int
stop_end(struct stopper *s)
{
	pthread_join(s->thread, NULL);
	return s->rc;
}

static bool
all_closed(void)
{
	struct slu_executor_stats s;
	bool closed = true;

	for (uint32_t i = 0; i < rig.shards; i++) {
		CHECK_EQ(0, slu_executor_snapshot(rig.ex, i, &s));
		closed &= s.stopping;
	}
	return closed;
}

/* --- it refuses --- */

TEST(a_submit_after_stop_began_is_refused_and_never_runs)
{
	static struct probe block = PROBE("block"), late = PROBE("late");
	struct stopper s;
	struct slu_err err;

	rig_start((struct slu_executor_config){ .shards = 2 });
	rig_block("a", &block);
	stop_begin(&s, rig.ex);
	WAIT_UNTIL(all_closed());
	/* SQ-20: the drain is under way; SQ-38: recognisable by its code */
	CHECK_EQ(SLU_ECLOSED, rig_try("z", &late, NULL, &err));
	CHECK_EQ(SLU_ECLOSED, rig_try("a", &late, NULL, &err));
	CHECK_EQ(SLU_ECLOSED, err.code);
	rig_open_gate();
	CHECK_EQ(0, stop_end(&s));
	CHECK_EQ(SLU_ECLOSED, rig_try("a", &late, NULL, &err)); /* SQ-38: after it, too */
	CHECK_EQ(SLU_ECLOSED, slu_executor_await(rig.ex, "a", 0, &err));
	rig_release();
	CHECK_EQ(0, late.runs + late.reports); /* SQ-20: never runs */
}

static void
block_in_log(void *arg, enum slu_log_level level, const char *line, size_t n)
{
	(void)arg;
	(void)level;
	(void)n;
	if (!strstr(line, "stopping executor"))
		return;
	atomic_fetch_add(&rig.inside, 1);
	WAIT_UNTIL(atomic_load(&rig.gate));
}

/* The first stop is held up before it has closed anything. A caller that was answered
 * "stopping, not done yet" must find the door shut. */
TEST_BARE(a_stop_that_returned_refuses_submits_also_if_another_stop_came_first)
{
	static struct probe late = PROBE("late");
	struct stopper first, second;
	struct slu_executor_config config = { SLU_OPTIONS_INIT(struct slu_executor_config), .shards = 2 };

	rig_start(config);
	CHECK_EQ(0, slu_executor_close(rig.ex));
	config.log = slu_log_new(SLU_LOG_DEBUG, SLU_LOG_LOGFMT, block_in_log, NULL);
	CHECK_EQ(0, executor_start_on(&rig.ex, &config, &rig.clock.clock, NULL));
	stop_begin(&first, rig.ex);
	WAIT_UNTIL(atomic_load(&rig.inside) == 1);
	second = (struct stopper){ .ex = rig.ex, .timeout = SLU_SEC, .rc = -1 };
	CHECK_EQ(0, pthread_create(&second.thread, NULL, run_stop, &second));
	while (atomic_load(&second.rc) < 0) {
		fakeclock_advance(&rig.clock, SLU_SEC);
		test_yield();
	}
	CHECK_EQ(SLU_ECLOSED, rig_try("a", &late, NULL, NULL)); /* SQ-20 */
	rig_open_gate();
	CHECK_EQ(0, stop_end(&first));
	(void)stop_end(&second);
	CHECK_EQ(0, slu_executor_close(rig.ex));
	slu_log_free(config.log);
	slu_log_free(rig.log);
	CHECK_EQ(0, late.runs);
}

TEST(a_submit_that_waits_for_room_is_refused_at_stop)
{
	static struct probe block = PROBE("block"), wait = PROBE("wait"), p = PROBE("p");
	struct room_waiter b;
	struct stopper s;

	rig_start((struct slu_executor_config){ .shards = 1, .queue_size = 1 });
	rig_block("a", &block);
	rig_submit("a", &wait);
	rig_wait_for_room(&b, &p, (struct slu_submit){ .timeout = SLU_NEVER });
	WAIT_UNTIL(atomic_load(&rig.looks) > 0); /* it waits */
	stop_begin(&s, rig.ex);
	pthread_join(b.thread, NULL);
	CHECK_EQ(SLU_ECLOSED, b.rc);
	rig_open_gate();
	CHECK_EQ(0, stop_end(&s));
	CHECK_STR("block wait", rig_trace());
}

/* --- it drains --- */

TEST(stop_lets_the_running_task_end_and_drains_the_rest_in_order)
{
	enum {
		N = 100
	};
	static struct probe p[N];
	static char names[N][8], want[N * 8] = "first";
	static struct probe first = PROBE("first");
	struct stopper s;

	rig_start((struct slu_executor_config){ .shards = 1 });
	rig_block("a", &first);
	EACH(i, p) {
		(void)snprintf(names[i], sizeof names[i], " %zu", i);
		p[i] = (struct probe)PROBE(names[i] + 1);
		rig_submit(i % 3 ? "a" : "b", &p[i]);
		memcpy(want + strlen(want), names[i], strlen(names[i]) + 1);
	}
	stop_begin(&s, rig.ex);
	WAIT_UNTIL(all_closed());
	CHECK_EQ(-1, s.rc);
	CHECK_EQ(0, first.reports);
	rig_open_gate();
	CHECK_EQ(0, stop_end(&s));
	CHECK_EQ(0, first.result); /* SQ-21: the running one ended normally */
	CHECK_EQ(1, first.reports);
	CHECK_EQ(N + 1, rig.runs);    /* SQ-22: all that was queued has run */
	CHECK_EQ(N + 1, s.finished);  /* SQ-22: when stop returned */
	CHECK_STR(want, rig_trace()); /* SQ-23: in order of submit */
	/* SQ-60: one line, the number of shards; SQ-62: worker and remaining */
	CHECK_EQ(1, rig_count_lines("shardqueue: stopping executor, draining 1 shards"));
	CHECK_EQ(1, rig_count_lines("shardqueue: worker 0 draining 100 remaining jobs"));
}

TEST(only_shards_with_work_say_that_they_drain)
{
	static struct probe block[2] = { PROBE("b0"), PROBE("b1") }, p[5];
	struct stopper s;
	char key[32];

	rig_start((struct slu_executor_config){ .shards = 3 });
	rig_block(rig_key(rig.ex, 0, 0, key), &block[0]);
	rig_block(rig_key(rig.ex, 2, 0, key), &block[1]);
	EACH(i, p) {
		p[i] = (struct probe)PROBE("p");
		rig_submit(rig_key(rig.ex, i < 2 ? 0 : 2, (int)i, key), &p[i]);
	}
	stop_begin(&s, rig.ex);
	WAIT_UNTIL(all_closed());
	rig_open_gate();
	CHECK_EQ(0, stop_end(&s));
	CHECK_EQ(1, rig_count_lines("stopping executor, draining 3 shards")); /* SQ-60 */
	CHECK_EQ(2, rig_count_lines("remaining jobs"));                       /* SQ-62 */
	CHECK_EQ(1, rig_count_lines("worker 0 draining 2 remaining jobs"));   /* SQ-62 */
	CHECK_EQ(1, rig_count_lines("worker 2 draining 3 remaining jobs"));   /* SQ-62 */
}

TEST_LIMIT(stop_leaves_a_retry_wait_and_drains_what_is_behind_it, 20)
{
	static struct probe a1 = PROBE("a1", .fails = -1, .rc = SLU_EBUSY), a2 = PROBE("a2");
	static struct probe a3 = PROBE("a3", .fails = -1), a4 = PROBE("a4"), b = PROBE("b", .fails = -1);

	rig_start((struct slu_executor_config){ .shards = 1, .base_backoff = 10 * SLU_SEC });
	rig_submit("a", &a1);
	rig_submit("a", &a2);
	rig_submit("a", &a3);
	rig_submit("a", &a4);
	rig_submit("b", &b);
	rig_settle();
	CHECK_STR("a1 b", rig_trace());
	CHECK_EQ(0, slu_executor_stop(rig.ex, 0)); /* SQ-33: the clock stood still */
	CHECK_EQ(1, a1.runs);
	CHECK_EQ(SLU_EBUSY, a1.result); /* the last error of a1 */
	CHECK_EQ(1, b.runs);
	CHECK_EQ(SLU_EFAILED, b.result);
	CHECK_STR("a1 b a2 a3 a4", rig_trace()); /* SQ-33: the drain goes on, in order */
	CHECK_EQ(0, a2.result);
	CHECK_EQ(SLU_EFAILED, a3.result); /* one attempt each */
	CHECK_EQ(0, a4.result);
	CHECK_EQ(3, rig.errors); /* one run path: the handler is called in the drain, too */
	CHECK_EQ(5, rig_stats().runs);
	CHECK_EQ(1, rig_count_lines("worker 0 draining 5 remaining jobs"));
}

TEST(a_drain_heeds_cancel_panics_and_handlers_like_normal_work)
{
	static struct probe block = PROBE("block"), canceled = PROBE("canceled");
	static struct probe panics = PROBE("panics", .fails = -1, .panic = "in the drain");
	static struct probe last = PROBE("last");
	struct slu_cancel *token = slu_cancel_new();
	const struct slu_submit opts = { SLU_OPTIONS_INIT(struct slu_submit), .cancel = token };
	struct stopper s;

	rig_block("a", &block);
	CHECK_EQ(0, rig_try("a", &canceled, &opts, NULL));
	rig_submit("a", &panics);
	rig_submit("a", &last);
	stop_begin(&s, rig.ex);
	WAIT_UNTIL(all_closed());
	slu_cancel_fire(token, NULL);
	rig_open_gate();
	CHECK_EQ(0, stop_end(&s));
	CHECK_STR("block panics last", rig_trace());
	CHECK_STR("block:ok canceled:canceled panics:panic last:ok", rig_ends());
	CHECK_EQ(2, rig.errors);
	CHECK_EQ(1, rig_stats().panics);
	CHECK_EQ(3, rig_stats().runs);
	rig_release();
	slu_cancel_free(token);
}

/* --- callers of a stop: how often, from where --- */

TEST(stop_again_does_nothing)
{
	static struct probe a = PROBE("a");

	rig_start((struct slu_executor_config){ 0 });
	rig_submit("a", &a);
	CHECK_EQ(0, slu_executor_stop(rig.ex, 0));
	CHECK_EQ(0, slu_executor_stop(rig.ex, 0)); /* SQ-17: second */
	CHECK_EQ(0, slu_executor_stop(rig.ex, 0)); /* SQ-17: third */
	CHECK_EQ(1, rig_count_lines("stopping executor"));
	CHECK_EQ(1, a.runs);
}

static int
wait_for_stop(struct slu_run *run, void *arg)
{
	(void)arg;
	(void)run;
	WAIT_UNTIL(rig_stats().stopping);
	return 0;
}

TEST_BARE(close_drains_as_stop_does)
{
	static struct probe p[20];

	rig_start((struct slu_executor_config){ .shards = 1 });
	submit_fn(rig.ex, "a", wait_for_stop, NULL);
	EACH(i, p) {
		p[i] = (struct probe)PROBE("p");
		rig_submit("a", &p[i]);
	}
	CHECK_EQ(0, slu_executor_close(rig.ex)); /* SQ-19: reports ok ... */
	EACH(i, p)
		CHECK_EQ(1, p[i].reports); /* SQ-19: ... and has drained */
	CHECK_EQ(0, slu_executor_close(NULL));
	slu_log_free(rig.log);
}

TEST_LIMIT(every_one_of_32_stops_returns_after_the_drain, 20)
{
	static struct stopper s[32];
	static struct probe block = PROBE("block"), p[50];

	rig_start((struct slu_executor_config){ .shards = 2 });
	rig_block("a", &block);
	EACH(i, p) {
		p[i] = (struct probe)PROBE("p");
		rig_submit("a", &p[i]);
	}
	EACH(i, s)
		stop_begin(&s[i], rig.ex);
	WAIT_UNTIL(all_closed());
	EACH(i, s)
		CHECK_EQ(-1, s[i].rc); /* SQ-18: none before the drain */
	rig_open_gate();
	EACH(i, s) {
		CHECK_EQ(0, stop_end(&s[i]));
		CHECK_EQ(51, s[i].finished); /* SQ-18 */
	}
}

TEST(no_worker_is_left_after_stop)
{
	const int before = count_threads();
	struct slu_executor *ex;

	CHECK_EQ(0, slu_executor_start(&ex, &(struct slu_executor_config){ SLU_OPTIONS_INIT(struct slu_executor_config), .shards = 16 }, NULL));
	CHECK_EQ(before + 16, count_threads());
	CHECK_EQ(0, slu_executor_stop(ex, 0));
	WAIT_UNTIL(count_threads() == before); /* SQ-24: joined, gone from the list soon */
	CHECK_EQ(0, slu_executor_close(ex));
}

TEST(a_stop_with_a_timeout_gives_up_and_the_drain_goes_on)
{
	static struct probe block = PROBE("block"), a = PROBE("a");
	struct stopper s;

	rig_block("a", &block);
	rig_submit("a", &a);
	s = (struct stopper){ .ex = rig.ex, .timeout = 3 * SLU_SEC, .rc = -1 };
	CHECK_EQ(0, pthread_create(&s.thread, NULL, run_stop, &s));
	WAIT_UNTIL(fakeclock_sleepers(&rig.clock) == 1);
	fakeclock_advance(&rig.clock, 3 * SLU_SEC - 1);
	CHECK_EQ(-1, s.rc);
	fakeclock_advance(&rig.clock, 1);
	CHECK_EQ(SLU_ETIMEOUT, stop_end(&s));
	CHECK_EQ(0, a.runs);
	rig_open_gate();
	CHECK_EQ(0, slu_executor_stop(rig.ex, 0)); /* can be called again */
	CHECK_EQ(1, a.runs);
}

/* Everything that would wait for the caller itself. */
struct inside {
	struct slu_executor *ex;
	_Atomic int stop, close, await;
	_Atomic int stop_in_done;
	_Atomic int submit;
};

static int
stop_from_inside(struct slu_run *run, void *arg)
{
	struct inside *in = arg;
	const struct slu_task next = { SLU_OPTIONS_INIT(struct slu_task), .run = do_nothing };

	atomic_store(&in->stop, slu_executor_stop(in->ex, 0));
	atomic_store(&in->close, slu_executor_close(in->ex));
	atomic_store(&in->await, slu_executor_await(in->ex, run->key, 0, NULL));
	atomic_store(&in->submit, slu_executor_submit(in->ex, run->key, &next, NULL, NULL, NULL));
	return 0;
}

static void
stop_in_done(const struct slu_run *run, void *arg, int rc)
{
	struct inside *in = arg;

	(void)run;
	(void)rc;
	atomic_store(&in->stop_in_done, slu_executor_stop(in->ex, 0));
}

TEST(a_task_may_submit_but_not_stop_or_await_its_executor)
{
	struct inside in = { .stop = -1 };
	const struct slu_task task = { SLU_OPTIONS_INIT(struct slu_task), stop_from_inside, &in, stop_in_done };
	struct slu_executor *ex;

	CHECK_EQ(0, slu_executor_start(&ex, NULL, NULL));
	in.ex = ex;
	CHECK_EQ(0, slu_executor_submit(ex, "a", &task, NULL, NULL, NULL));
	CHECK_EQ(0, slu_executor_await(ex, "a", 0, NULL));
	CHECK_EQ(SLU_EINVAL, in.stop);
	CHECK_EQ(SLU_EINVAL, in.close);
	CHECK_EQ(SLU_EINVAL, in.await);
	CHECK_EQ(SLU_EINVAL, in.stop_in_done);
	CHECK_EQ(0, in.submit);
	CHECK_EQ(0, slu_executor_close(ex));
}

static int
stop_another(struct slu_run *run, void *arg)
{
	(void)run;
	CHECK_EQ(0, slu_executor_stop(arg, 0));
	return 0;
}

TEST(a_task_may_stop_another_executor)
{
	struct slu_executor *one, *other;

	CHECK_EQ(0, slu_executor_start(&one, NULL, NULL));
	CHECK_EQ(0, slu_executor_start(&other, NULL, NULL));
	submit_fn(one, "a", stop_another, other);
	CHECK_EQ(0, slu_executor_close(one));
	CHECK_EQ(0, slu_executor_close(other));
}
