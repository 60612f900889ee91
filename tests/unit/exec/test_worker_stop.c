/* The life of a worker: start, stop in its three ways, deadlines, several at once. */
#include "worker_fixture.h"

#include <sys/resource.h>
#include <unistd.h>

FIXTURE(NULL, teardown);

/* A stop on a thread of its own. */
struct stopper {
	pthread_t thread;
	struct fixture *f;
	enum slu_stop_mode mode;
	slu_time timeout;
	int rc;
};

static void *
call_stop(void *arg)
{
	struct stopper *s = arg;

	s->rc = slu_worker_stop(f.worker, s->mode, s->timeout);
	return NULL;
}

static void
stop_begin(struct stopper *s)
{
	CHECK_EQ(0, pthread_create(&s->thread, NULL, call_stop, s));
}

static int
stop_end(struct stopper *s)
{
	pthread_join(s->thread, NULL);
	return s->rc;
}

TEST(stop_now_runs_only_what_runs_already)
{
	static struct plan plan = { .waits = true };

	setup((struct slu_worker_config){ 0 });
	start();
	for (int i = 0; i < 10; i++)
		put("a", &plan);
	WAIT_UNTIL(f.inside == 1);
	CHECK_EQ(SLU_ETIMEOUT, slu_worker_stop(f.worker, SLU_STOP_NOW, SLU_NOWAIT));
	f.gate = true;
	CHECK_EQ(0, slu_worker_stop(f.worker, SLU_STOP_NOW, 0));
	CHECK_EQ(1, plan.runs);
	CHECK_EQ(9, queue_of().ready);
}

TEST(stop_ready_runs_what_is_ready_and_leaves_the_rest)
{
	static struct plan plan = { .waits = true };
	static struct stopper s = { .mode = SLU_STOP_READY };

	setup((struct slu_worker_config){ 0 });
	for (int i = 0; i < 10; i++)
		put("a", &plan);
	put_later("b", &plan, SLU_SEC);
	start();
	WAIT_UNTIL(f.inside == 1);
	stop_begin(&s);
	WAIT_UNTIL(fakeclock_sleepers(&f.clock) == 1); /* the stop waits */
	f.gate = true;
	CHECK_EQ(0, stop_end(&s));
	CHECK_EQ(10, plan.runs); /* PW-38 */
	CHECK_EQ(0, stats_of().threads);
	CHECK_EQ(1, queue_of().scheduled);
}

TEST(stop_all_waits_for_what_is_scheduled)
{
	static struct plan plan = { 0 }, flaky = { .fails = 1 };
	static struct stopper s = { .mode = SLU_STOP_ALL };

	setup((struct slu_worker_config){ .threads = 2 });
	start();
	put_later("a", &plan, SLU_SEC);
	put_later("b", &flaky, 2 * SLU_SEC);
	settle(2);
	stop_begin(&s);
	settle(3); /* the stopper sleeps, too */
	CHECK_EQ(0, plan.runs);
	fakeclock_advance(&f.clock, SLU_SEC);
	settle(3);
	CHECK_EQ(1, plan.runs);
	fakeclock_advance(&f.clock, SLU_SEC);
	/* The idle thread may have left meanwhile; the remaining threads wait for the retry. */
	WAIT_UNTIL(fakeclock_until(&f.clock) == START_MONO + 3 * SLU_SEC);
	fakeclock_advance(&f.clock, SLU_SEC);
	CHECK_EQ(0, stop_end(&s));
	CHECK_EQ(2, flaky.runs);
	CHECK_EQ(0, queue_of().depth);
}

TEST(after_the_deadline_no_further_job_is_begun)
{
	static struct plan slow = { .waits = true }, next = { 0 };
	static struct stopper s = { .mode = SLU_STOP_READY, .timeout = 3 * SLU_SEC };

	setup((struct slu_worker_config){ 0 });
	start();
	put("slow", &slow);
	WAIT_UNTIL(f.inside == 1);
	put("next", &next);
	stop_begin(&s);
	WAIT_UNTIL(fakeclock_until(&f.clock) == START_MONO + 3 * SLU_SEC);
	fakeclock_advance(&f.clock, 3 * SLU_SEC);
	CHECK_EQ(SLU_ETIMEOUT, stop_end(&s));
	CHECK_EQ(1, stats_of().running);
	CHECK_EQ(SLU_ECONFLICT, slu_worker_start(f.worker, NULL));

	s.timeout = 0; /* again, to wait for the last one */
	stop_begin(&s);
	f.gate = true;
	CHECK_EQ(0, stop_end(&s));
	CHECK_EQ(1, stats_of().done);
	CHECK_EQ(0, next.runs);
	CHECK_EQ(1, queue_of().ready);
}

TEST(a_job_that_ends_just_before_the_deadline_makes_the_stop_good)
{
	static struct plan slow = { .waits = true };
	static struct stopper s = { .mode = SLU_STOP_NOW, .timeout = 3 * SLU_SEC };

	setup((struct slu_worker_config){ 0 });
	start();
	put("slow", &slow);
	WAIT_UNTIL(f.inside == 1);
	stop_begin(&s);
	WAIT_UNTIL(fakeclock_sleepers(&f.clock) == 1);
	fakeclock_advance(&f.clock, 3 * SLU_SEC - 1);
	f.gate = true;
	CHECK_EQ(0, stop_end(&s));
}

TEST(many_may_stop_at_once_and_the_hastiest_wins)
{
	static struct plan slow = { .waits = true }, next = { 0 };
	static struct stopper s[] = {
		{ .mode = SLU_STOP_NOW },
		{ .mode = SLU_STOP_ALL },
		{ .mode = SLU_STOP_READY },
		{ .mode = SLU_STOP_NOW },
	};

	setup((struct slu_worker_config){ .threads = 3 });
	start();
	put("slow", &slow);
	put("slow", &slow);
	put("slow", &slow);
	WAIT_UNTIL(f.inside == 3);
	put("next", &next);
	EACH(i, s)
		stop_begin(&s[i]);
	WAIT_UNTIL(fakeclock_sleepers(&f.clock) == 4);
	f.gate = true;
	EACH(i, s)
		CHECK_EQ(0, stop_end(&s[i]));
	CHECK_EQ(0, next.runs);
}

static int
stop_myself(const struct slu_job_item *job, void *session, void *arg, struct slu_err *err)
{
	CHECK_EQ(SLU_EINVAL, slu_worker_stop(f.worker, SLU_STOP_NOW, SLU_SEC));
	return run_plan(job, session, arg, err);
}

TEST(a_handler_may_not_stop_its_own_worker)
{
	static struct plan plan = { 0 };

	setup((struct slu_worker_config){ .handler = stop_myself, .threads = 2 });
	start();
	put("a", &plan);
	put("b", &plan);
	settle(2);
	CHECK_EQ(2, stats_of().done, "and nothing is stopped");
	CHECK_EQ(2, stats_of().threads);
}

TEST(a_worker_can_be_started_again)
{
	static struct plan plan = { 0 };
	struct slu_err err;

	setup((struct slu_worker_config){ .threads = 2 });
	CHECK_EQ(0, slu_worker_stop(f.worker, SLU_STOP_READY, 0)); /* it does not run: fine */
	for (int round = 1; round <= 5; round++) {
		start();
		CHECK_EQ(SLU_ECONFLICT, slu_worker_start(f.worker, &err));
		CHECK_CONTAINS("runs already", err.text);
		put("a", &plan);
		settle(2);
		CHECK_EQ(0, slu_worker_stop(f.worker, (enum slu_stop_mode)(round % 3), 0));
		CHECK_EQ(0, slu_worker_stop(f.worker, SLU_STOP_NOW, 0));
		CHECK_EQ(round, plan.runs);
	}
	CHECK_EQ(SLU_EINVAL, slu_worker_stop(f.worker, (enum slu_stop_mode)3, 0));
}

TEST(free_stops_a_running_worker)
{
	static struct plan plan = { 0 };

	setup((struct slu_worker_config){ .threads = 3 });
	for (int i = 0; i < 100; i++)
		put("a", &plan);
	start();
	slu_worker_free(f.worker);
	CHECK_EQ(100, plan.runs + (int)queue_of().ready);
	CHECK_EQ(0, queue_of().running);
	f.worker = NULL;
}

TEST(threads_leave_when_their_queue_is_stopped)
{
	static struct plan plan = { .fails = 1 };

	setup((struct slu_worker_config){ .threads = 2, .backoff.kind = SLU_BACKOFF_NONE });
	for (int i = 0; i < 10; i++)
		put("a", &plan);
	start();
	CHECK_EQ(0, slu_pqueue_stop(f.queue, SLU_STOP_READY, 0));
	WAIT_UNTIL(stats_of().threads == 0);
	CHECK_EQ(10, stats_of().done, "retries come back even then");
	CHECK_EQ(0, slu_worker_stop(f.worker, SLU_STOP_READY, 0));
}

TEST(two_workers_share_a_queue)
{
	static struct plan slow = { .waits = true };
	struct slu_worker_config config;
	struct slu_worker *other;

	setup((struct slu_worker_config){ 0 });
	config = fill((struct slu_worker_config){ 0 });
	CHECK_EQ(0, slu_worker_new(&other, &config, NULL));
	start();
	CHECK_EQ(0, slu_worker_start(other, NULL));
	put("a", &slow);
	put("b", &slow);
	WAIT_UNTIL(f.inside == 2);
	f.gate = true;
	CHECK_EQ(0, slu_worker_stop(other, SLU_STOP_READY, 0));
	slu_worker_free(other);
	settle(1); /* stopping one leaves the other alone */
	CHECK_EQ(1, stats_of().threads);
	CHECK_EQ(1, stats_of().done);
}

TEST(what_makes_no_sense_is_refused)
{
	static const struct {
		struct slu_worker_config config;
		const char *says;
	} cases[] = {
		{ { .threads = 1025 }, "invalid threads: 1025; expected at most 1024" },
		{ { .poll_timeout = -1 }, "poll_timeout" },
		{ { .backoff.kind = (enum slu_backoff_kind)5 }, "kind" },
		{ { .backoff.jitter = (enum slu_jitter)2 }, "jitter" },
		{ { .backoff.kind = SLU_BACKOFF_FUNCTION }, "needs fn" },
		{ { .backoff.base = -1 }, "negative" },
		{ { .backoff.max = -1 }, "negative" },
		{ { .metrics_namespace = "no-dashes" }, "no-dashes" },
	};
	struct slu_worker_config config;
	struct slu_worker *w;
	struct slu_err err;

	setup((struct slu_worker_config){ 0 });
	EACH(i, cases) {
		config = fill(cases[i].config);
		CHECK_EQ(SLU_EINVAL, slu_worker_new(&w, &config, &err));
		CHECK_CONTAINS(cases[i].says, err.text);
	}
	config = fill((struct slu_worker_config){ 0 });
	config.handler = NULL;
	CHECK_EQ(SLU_EINVAL, slu_worker_new(&w, &config, &err));
	config.handler = run_plan;
	config.queue = NULL;
	CHECK_EQ(SLU_EINVAL, slu_worker_new(&w, &config, &err));
	CHECK_CONTAINS("a queue and a handler", err.text);
	CHECK_EQ(SLU_EINVAL, slu_worker_new(&w, NULL, NULL));
	slu_worker_free(NULL);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum {
	LIMITED = false /* sanitizers need more address space than a limit leaves */
};
#else
enum {
	LIMITED = true
};
#endif

static size_t
address_space(void)
{
	FILE *statm = fopen("/proc/self/statm", "r");
	size_t pages = 0;

	CHECK(statm && fscanf(statm, "%zu", &pages) == 1);
	fclose(statm);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

TEST(a_start_that_gets_too_few_threads_leaves_nothing_behind)
{
	static struct plan plan = { 0 };
	struct rlimit was, low;
	struct slu_err err;

	if (!LIMITED)
		test_skip("no limit on the address space under a sanitizer");
	setup((struct slu_worker_config){ .threads = 50 });
	put("a", &plan);
	getrlimit(RLIMIT_AS, &was);
	low = was;
	low.rlim_cur = address_space() + ((size_t)64 << 20); /* some stacks fit, not 50 */
	CHECK_EQ(0, setrlimit(RLIMIT_AS, &low));
	CHECK_EQ(SLU_EDOWN, slu_worker_start(f.worker, &err));
	CHECK_EQ(0, setrlimit(RLIMIT_AS, &was));
	CHECK_CONTAINS("cannot start a thread for a worker", err.text);
	CHECK_EQ(0, stats_of().threads);
	CHECK_EQ(0, plan.runs, "all or nothing");
	CHECK_EQ(1, queue_of().ready);
	start();
	settle(50);
	CHECK_EQ(1, plan.runs);
}

static void
drop_nothing(const struct slu_job_item *job, const struct slu_err *err, void *arg)
{
	(void)job;
	(void)err;
	(void)arg;
}

static int
fail_now(const struct slu_job_item *job, void *session, void *arg, struct slu_err *err)
{
	(void)session;
	(void)arg;
	return slu_fail(err, SLU_EFAILED, "attempt %u", job->attempts);
}

/* One job that fails three times, then stop: only new and enqueue may need memory. */
static void
live_once(struct slu_worker *w, struct slu_pqueue *q)
{
	const struct slu_job job = { SLU_OPTIONS_INIT(struct slu_job), .object_id = "a" };
	const int rc = slu_pqueue_enqueue(q, &job, NULL, NULL);
	struct slu_worker_stats s;
	char *text = NULL;

	CHECK(rc == 0 || rc == SLU_ENOMEM);
	CHECK_EQ(0, slu_worker_start(w, NULL));
	CHECK_EQ(0, slu_worker_stop(w, SLU_STOP_READY, 0));
	slu_worker_snapshot(w, &s);
	CHECK_EQ(rc ? 0 : 3, s.failed);
	CHECK_EQ(rc ? 0 : 1, s.dead);
	CHECK_EQ(slu_worker_metrics(w, &text) ? 1 : 0, text == NULL);
	slu_free(text);
}

TORTURE(out_of_memory_refuses_but_never_loses)
{
	struct slu_log *log = slu_log_new(SLU_LOG_OFF, SLU_LOG_LOGFMT, NULL, NULL);
	struct slu_worker_config config = {
		SLU_OPTIONS_INIT(struct slu_worker_config),
		.handler = fail_now,
		.dead_letter = drop_nothing,
		.max_attempts = 3,
		.backoff.kind = SLU_BACKOFF_NONE,
		.log = log,
	};
	struct slu_worker *w = NULL;
	struct slu_err err;
	int rc;

	if (!log)
		return;
	if (slu_pqueue_new(&config.queue, NULL, NULL) == 0) {
		rc = slu_worker_new(&w, &config, &err);
		CHECK_EQ(rc, rc ? (int)err.code : 0);
		CHECK(rc == 0 || rc == SLU_ENOMEM);
		if (rc == 0)
			live_once(w, config.queue);
		slu_worker_free(w);
		slu_pqueue_free(config.queue, NULL);
	}
	slu_log_free(log);
}

/* --- everything at once ----------------------------------------------------------- */

enum {
	PRODUCERS = 3,
	JOBS = 1000 /* each */
};

static int
fail_often(const struct slu_job_item *job, void *session, void *arg, struct slu_err *err)
{
	(void)arg;
	(void)session;
	atomic_fetch_add(&f.total, 1);
	switch ((job->seq * 7 + job->attempts) % 5) {
	case 0:
		slu_panic("job %" PRIu64, job->seq);
	case 1:
		return slu_fail(err, SLU_EDOWN, "away");
	default:
		return 0;
	}
}

static void
count_dead(const struct slu_job_item *job, const struct slu_err *err, void *arg)
{
	(void)arg;
	(void)job;
	(void)err;
	atomic_fetch_add(&f.dead, 1);
}

static void *
produce(void *arg)
{
	(void)arg;
	for (int i = 0; i < JOBS; i++)
		put("a", NULL);
	return NULL;
}

static void *
restart(void *arg)
{
	struct slu_failure list[5];

	(void)arg;
	for (int i = 0; i < 20; i++) {
		(void)slu_worker_failures(f.worker, list, 5);
		CHECK_EQ(0, slu_worker_stop(f.worker, (enum slu_stop_mode)(i % 2 ? SLU_STOP_NOW : SLU_STOP_READY), 0));
		(void)slu_worker_start(f.worker, NULL); /* the other may be faster */
	}
	return NULL;
}

TEST(every_job_ends_once_whatever_stops_and_starts_meanwhile)
{
	pthread_t threads[PRODUCERS + 2];
	struct slu_worker_stats s;

	setup((struct slu_worker_config){
		.threads = 4,
		.handler = fail_often,
		.dead_letter = count_dead,
		.max_attempts = 2,
		.backoff.kind = SLU_BACKOFF_NONE,
	});
	slu_log_set_level(f.log, SLU_LOG_OFF);
	start();
	EACH(i, threads)
		CHECK_EQ(0, pthread_create(&threads[i], NULL, i < PRODUCERS ? produce : restart, &f));
	EACH(i, threads)
		pthread_join(threads[i], NULL);
	(void)slu_worker_start(f.worker, NULL); /* it runs, or it does now */
	CHECK_EQ(0, slu_worker_stop(f.worker, SLU_STOP_ALL, 0));
	s = stats_of();
	CHECK_EQ(PRODUCERS * JOBS, s.done + s.dead);
	CHECK_EQ(f.dead, s.dead);
	CHECK_EQ(f.total, s.done + s.failed);
	CHECK_EQ(s.failed, s.retried + s.dead);
	CHECK_EQ(0, queue_of().depth + queue_of().running);
}
