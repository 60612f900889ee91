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
all_closed(struct rig *r)
{
	struct slu_executor_stats s;
	bool closed = true;

	for (uint32_t i = 0; i < r->shards; i++) {
		CHECK_EQ(0, slu_executor_snapshot(r->ex, i, &s));
		closed &= s.stopping;
	}
	return closed;
}

/* --- it refuses --- */

TEST(a_submit_after_stop_began_is_refused_and_never_runs)
{
	struct probe block = PROBE("block"), late = PROBE("late");
	struct stopper s;
	struct slu_err err;
	struct rig r;

	rig_start(&r, (struct slu_executor_config){ .shards = 2 });
	rig_block(&r, "a", &block);
	stop_begin(&s, r.ex);
	WAIT_UNTIL(all_closed(&r));
	/* SQ-20: the drain is under way; SQ-38: recognisable by its code */
	CHECK_EQ(SLU_ECLOSED, rig_try(&r, "z", &late, NULL, &err));
	CHECK_EQ(SLU_ECLOSED, rig_try(&r, "a", &late, NULL, &err));
	CHECK_EQ(SLU_ECLOSED, err.code);
	rig_open_gate(&r);
	CHECK_EQ(0, stop_end(&s));
	CHECK_EQ(SLU_ECLOSED, rig_try(&r, "a", &late, NULL, &err)); /* SQ-38: after it, too */
	CHECK_EQ(SLU_ECLOSED, slu_executor_await(r.ex, "a", 0, &err));
	rig_release(&r);
	CHECK_EQ(0, late.runs + late.reports); /* SQ-20: never runs */
}

static void
block_in_log(void *arg, enum slu_log_level level, const char *line, size_t n)
{
	struct rig *r = arg;

	(void)level;
	(void)n;
	if (!strstr(line, "stopping executor"))
		return;
	atomic_fetch_add(&r->inside, 1);
	WAIT_UNTIL(atomic_load(&r->gate));
}

/* The first to stop is held up before it has closed anything. Whoever has been told
 * "stopping, not done yet" must find the door shut. */
TEST(a_stop_that_returned_has_closed_the_door_whoever_came_first)
{
	struct probe late = PROBE("late");
	struct stopper first, second;
	struct slu_executor_config config = { SLU_OPTIONS_INIT(struct slu_executor_config), .shards = 2 };
	struct rig r;

	rig_start(&r, config);
	CHECK_EQ(0, slu_executor_close(r.ex));
	config.log = slu_log_new(SLU_LOG_DEBUG, SLU_LOG_LOGFMT, block_in_log, &r);
	CHECK_EQ(0, executor_start_on(&r.ex, &config, &r.clock.clock, NULL));
	stop_begin(&first, r.ex);
	WAIT_UNTIL(atomic_load(&r.inside) == 1);
	second = (struct stopper){ .ex = r.ex, .timeout = SLU_SEC, .rc = -1 };
	CHECK_EQ(0, pthread_create(&second.thread, NULL, run_stop, &second));
	while (atomic_load(&second.rc) < 0) {
		fakeclock_advance(&r.clock, SLU_SEC);
		test_yield();
	}
	CHECK_EQ(SLU_ECLOSED, rig_try(&r, "a", &late, NULL, NULL)); /* SQ-20 */
	rig_open_gate(&r);
	CHECK_EQ(0, stop_end(&first));
	(void)stop_end(&second);
	CHECK_EQ(0, slu_executor_close(r.ex));
	slu_log_free(config.log);
	slu_log_free(r.log);
	CHECK_EQ(0, late.runs);
}

struct blocked {
	struct rig *rig;
	struct probe *probe;
	_Atomic int rc;
	pthread_t thread;
};

static void *
submit_blocked(void *arg)
{
	struct blocked *b = arg;
	const struct slu_submit patient = { SLU_OPTIONS_INIT(struct slu_submit), .timeout = SLU_NEVER };

	rig_count_looks();
	atomic_store(&b->rc, rig_try(b->rig, "a", b->probe, &patient, NULL));
	return NULL;
}

TEST(a_submit_that_waits_for_room_is_refused_at_stop)
{
	struct probe block = PROBE("block"), wait = PROBE("wait"), p = PROBE("p");
	struct rig r;
	struct blocked b = { .rig = &r, .probe = &p, .rc = -1 };
	struct stopper s;

	rig_start(&r, (struct slu_executor_config){ .shards = 1, .queue_size = 1 });
	rig_block(&r, "a", &block);
	rig_submit(&r, "a", &wait);
	CHECK_EQ(0, pthread_create(&b.thread, NULL, submit_blocked, &b));
	WAIT_UNTIL(atomic_load(&r.looks) > 0); /* it waits */
	stop_begin(&s, r.ex);
	pthread_join(b.thread, NULL);
	CHECK_EQ(SLU_ECLOSED, b.rc);
	rig_open_gate(&r);
	CHECK_EQ(0, stop_end(&s));
	CHECK_STR("block wait", rig_trace(&r));
	rig_release(&r);
}

/* --- it drains --- */

TEST(stop_lets_the_running_task_end_and_drains_the_rest_in_order)
{
	enum {
		N = 100
	};
	static struct probe p[N];
	static char names[N][8], want[N * 8] = "first";
	struct probe first = PROBE("first");
	struct stopper s;
	struct rig r;

	rig_start(&r, (struct slu_executor_config){ .shards = 1 });
	rig_block(&r, "a", &first);
	EACH(i, p) {
		(void)snprintf(names[i], sizeof names[i], " %zu", i);
		p[i] = (struct probe)PROBE(names[i] + 1);
		rig_submit(&r, i % 3 ? "a" : "b", &p[i]);
		memcpy(want + strlen(want), names[i], strlen(names[i]) + 1);
	}
	stop_begin(&s, r.ex);
	WAIT_UNTIL(all_closed(&r));
	CHECK_EQ(-1, s.rc);
	CHECK_EQ(0, first.reports);
	rig_open_gate(&r);
	CHECK_EQ(0, stop_end(&s));
	CHECK_EQ(0, first.result); /* SQ-21: the running one ended normally */
	CHECK_EQ(1, first.reports);
	CHECK_EQ(N + 1, r.runs);        /* SQ-22: all that was queued has run */
	CHECK_EQ(N + 1, s.finished);    /* SQ-22: when stop returned */
	CHECK_STR(want, rig_trace(&r)); /* SQ-23: in order of submit */
	/* SQ-60: one line, the number of shards; SQ-62: worker and remaining */
	CHECK_EQ(1, rig_count_lines(&r, "shardqueue: stopping executor, draining 1 shards"));
	CHECK_EQ(1, rig_count_lines(&r, "shardqueue: worker 0 draining 100 remaining jobs"));
	rig_release(&r);
}

TEST(only_shards_with_work_say_that_they_drain)
{
	struct probe block[2] = { PROBE("b0"), PROBE("b1") }, p[5];
	struct stopper s;
	struct rig r;
	char key[32];

	rig_start(&r, (struct slu_executor_config){ .shards = 3 });
	rig_block(&r, rig_key(r.ex, 0, 0, key), &block[0]);
	rig_block(&r, rig_key(r.ex, 2, 0, key), &block[1]);
	EACH(i, p) {
		p[i] = (struct probe)PROBE("p");
		rig_submit(&r, rig_key(r.ex, i < 2 ? 0 : 2, (int)i, key), &p[i]);
	}
	stop_begin(&s, r.ex);
	WAIT_UNTIL(all_closed(&r));
	rig_open_gate(&r);
	CHECK_EQ(0, stop_end(&s));
	CHECK_EQ(1, rig_count_lines(&r, "stopping executor, draining 3 shards")); /* SQ-60 */
	CHECK_EQ(2, rig_count_lines(&r, "remaining jobs"));                       /* SQ-62 */
	CHECK_EQ(1, rig_count_lines(&r, "worker 0 draining 2 remaining jobs"));   /* SQ-62 */
	CHECK_EQ(1, rig_count_lines(&r, "worker 2 draining 3 remaining jobs"));   /* SQ-62 */
	rig_release(&r);
}

TEST_LIMIT(stop_leaves_a_retry_wait_and_drains_what_is_behind_it, 20)
{
	struct probe a1 = PROBE("a1", .fails = -1, .rc = SLU_EBUSY), a2 = PROBE("a2");
	struct probe a3 = PROBE("a3", .fails = -1), a4 = PROBE("a4"), b = PROBE("b", .fails = -1);
	struct rig r;

	rig_start(&r, (struct slu_executor_config){ .shards = 1, .base_backoff = 10 * SLU_SEC });
	rig_submit(&r, "a", &a1);
	rig_submit(&r, "a", &a2);
	rig_submit(&r, "a", &a3);
	rig_submit(&r, "a", &a4);
	rig_submit(&r, "b", &b);
	rig_settle(&r);
	CHECK_STR("a1 b", rig_trace(&r));
	CHECK_EQ(0, slu_executor_stop(r.ex, 0)); /* SQ-33: the clock stood still */
	CHECK_EQ(1, a1.runs);
	CHECK_EQ(SLU_EBUSY, a1.result); /* the last error of a1 */
	CHECK_EQ(1, b.runs);
	CHECK_EQ(SLU_EFAILED, b.result);
	CHECK_STR("a1 b a2 a3 a4", rig_trace(&r)); /* SQ-33: the drain goes on, in order */
	CHECK_EQ(0, a2.result);
	CHECK_EQ(SLU_EFAILED, a3.result); /* one attempt each */
	CHECK_EQ(0, a4.result);
	CHECK_EQ(3, r.errors); /* one run path: the handler is told in the drain, too */
	CHECK_EQ(5, rig_stats(&r).runs);
	CHECK_EQ(1, rig_count_lines(&r, "worker 0 draining 5 remaining jobs"));
	rig_release(&r);
}

TEST(a_drain_heeds_cancel_panics_and_handlers_like_normal_work)
{
	struct probe block = PROBE("block"), canceled = PROBE("canceled");
	struct probe panics = PROBE("panics", .fails = -1, .panic = "in the drain");
	struct probe last = PROBE("last");
	struct slu_cancel *token = slu_cancel_new();
	const struct slu_submit opts = { SLU_OPTIONS_INIT(struct slu_submit), .cancel = token };
	struct stopper s;
	struct rig r;

	rig_start(&r, (struct slu_executor_config){ .shards = 1 });
	rig_block(&r, "a", &block);
	CHECK_EQ(0, rig_try(&r, "a", &canceled, &opts, NULL));
	rig_submit(&r, "a", &panics);
	rig_submit(&r, "a", &last);
	stop_begin(&s, r.ex);
	WAIT_UNTIL(all_closed(&r));
	slu_cancel_fire(token, NULL);
	rig_open_gate(&r);
	CHECK_EQ(0, stop_end(&s));
	CHECK_STR("block panics last", rig_trace(&r));
	CHECK_STR("block:ok canceled:canceled panics:panic last:ok", rig_ends(&r));
	CHECK_EQ(2, r.errors);
	CHECK_EQ(1, rig_stats(&r).panics);
	CHECK_EQ(3, rig_stats(&r).runs);
	rig_release(&r);
	slu_cancel_free(token);
}

/* --- who calls it, how often, from where --- */

TEST(stop_again_does_nothing)
{
	struct probe a = PROBE("a");
	struct rig r;

	rig_start(&r, (struct slu_executor_config){ 0 });
	rig_submit(&r, "a", &a);
	CHECK_EQ(0, slu_executor_stop(r.ex, 0));
	CHECK_EQ(0, slu_executor_stop(r.ex, 0)); /* SQ-17: second */
	CHECK_EQ(0, slu_executor_stop(r.ex, 0)); /* SQ-17: third */
	CHECK_EQ(1, rig_count_lines(&r, "stopping executor"));
	CHECK_EQ(1, a.runs);
	rig_release(&r);
}

static int
wait_for_stop(struct slu_run *run, void *arg)
{
	struct rig *r = arg;

	(void)run;
	WAIT_UNTIL(rig_stats(r).stopping);
	return 0;
}

TEST(close_drains_as_stop_does)
{
	struct probe p[20];
	struct rig r;

	rig_start(&r, (struct slu_executor_config){ .shards = 1 });
	submit_fn(r.ex, "a", wait_for_stop, &r);
	EACH(i, p) {
		p[i] = (struct probe)PROBE("p");
		rig_submit(&r, "a", &p[i]);
	}
	CHECK_EQ(0, slu_executor_close(r.ex)); /* SQ-19: reports ok ... */
	EACH(i, p)
		CHECK_EQ(1, p[i].reports); /* SQ-19: ... and has drained */
	CHECK_EQ(0, slu_executor_close(NULL));
	slu_log_free(r.log);
}

TEST_LIMIT(every_one_of_32_stops_returns_after_the_drain, 20)
{
	static struct stopper s[32];
	struct probe block = PROBE("block"), p[50];
	struct rig r;

	rig_start(&r, (struct slu_executor_config){ .shards = 2 });
	rig_block(&r, "a", &block);
	EACH(i, p) {
		p[i] = (struct probe)PROBE("p");
		rig_submit(&r, "a", &p[i]);
	}
	EACH(i, s)
		stop_begin(&s[i], r.ex);
	WAIT_UNTIL(all_closed(&r));
	EACH(i, s)
		CHECK_EQ(-1, s[i].rc); /* SQ-18: none before the drain */
	rig_open_gate(&r);
	EACH(i, s) {
		CHECK_EQ(0, stop_end(&s[i]));
		CHECK_EQ(51, s[i].finished); /* SQ-18 */
	}
	rig_release(&r);
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
	struct probe block = PROBE("block"), a = PROBE("a");
	struct stopper s;
	struct rig r;

	rig_start(&r, (struct slu_executor_config){ .shards = 1 });
	rig_block(&r, "a", &block);
	rig_submit(&r, "a", &a);
	s = (struct stopper){ .ex = r.ex, .timeout = 3 * SLU_SEC, .rc = -1 };
	CHECK_EQ(0, pthread_create(&s.thread, NULL, run_stop, &s));
	WAIT_UNTIL(fakeclock_sleepers(&r.clock) == 1);
	fakeclock_advance(&r.clock, 3 * SLU_SEC - 1);
	CHECK_EQ(-1, s.rc);
	fakeclock_advance(&r.clock, 1);
	CHECK_EQ(SLU_ETIMEOUT, stop_end(&s));
	CHECK_EQ(0, a.runs);
	rig_open_gate(&r);
	CHECK_EQ(0, slu_executor_stop(r.ex, 0)); /* can be called again */
	CHECK_EQ(1, a.runs);
	rig_release(&r);
}

/* Everything that would wait for the caller itself. */
struct inside {
	struct slu_executor *ex;
	_Atomic int stop, close, await;
	_Atomic int stop_in_done;
	_Atomic int submit;
};

static int
do_nothing(struct slu_run *run, void *arg)
{
	(void)run;
	(void)arg;
	return 0;
}

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
