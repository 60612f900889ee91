/* A worker and the breakers of its jobs; and jobs that are put off. */
#include "worker_fixture.h"

#include "exec/breaker.h"

static struct {
	struct slu_breakers *set;
	struct slu_breaker *breaker;
} b;

static void
setup_breaker(struct slu_breaker_config breaker, struct slu_worker_config worker)
{
	setup_queue((struct slu_pqueue_config){ 0 });
	breaker.struct_size = sizeof breaker;
	breaker.log = f.log;
	CHECK_EQ(0, breakers_new_on(&b.set, &breaker, &f.clock.clock, NULL));
	b.breaker = slu_breaker_get(b.set, "mail");
	worker.breaker = b.breaker;
	worker = fill(worker);
	CHECK_EQ(0, slu_worker_new(&f.worker, &worker, NULL));
}

static void
teardown_breaker(void)
{
	slu_worker_free(f.worker);
	f.worker = NULL;
	slu_breakers_free(b.set);
	teardown();
}

FIXTURE(NULL, teardown_breaker);

TEST(an_open_breaker_keeps_jobs_in_the_queue_and_spends_no_attempt)
{
	static struct plan plan = { 0 };

	setup_breaker((struct slu_breaker_config){ .failures = 1, .open_cooldown = 10 * SLU_SEC },
		      (struct slu_worker_config){ .max_attempts = 1 });
	slu_breaker_report(b.breaker, false);
	put("a", &plan);
	start();
	settle(1);
	/* PW-40: no call made, the job waits for the end of the cool-down (PW-42) */
	CHECK_EQ(0, plan.runs);
	CHECK_EQ(1, stats_of().deferred);
	CHECK_EQ(0, stats_of().failed);
	CHECK_EQ(1, queue_of().scheduled);
	CHECK_EQ(START_MONO + 10 * SLU_SEC, fakeclock_until(&f.clock));
	fakeclock_advance(&f.clock, 10 * SLU_SEC);
	settle(1);
	CHECK_EQ(1, plan.runs);
	CHECK_EQ(1, plan.attempt, "the deferral did not count");
	CHECK_EQ(1, stats_of().done);
	CHECK_EQ(SLU_BREAKER_CLOSED, slu_breaker_state(b.breaker));
}

TEST(failing_jobs_open_the_breaker_and_a_good_one_closes_it)
{
	static struct plan good = { 0 };
	static struct plan limited = { .fails = 1, .rc = SLU_EBUSY };

	setup_breaker((struct slu_breaker_config){ .failures = 2 },
		      (struct slu_worker_config){ .backoff.base = SLU_HOUR, .backoff.max = SLU_HOUR });
	start();
	put("a", &limited);
	settle(1);
	put("b", &good); /* PW-41 */
	settle(1);
	CHECK_EQ(1, good.runs);
	limited.runs = 0;
	put("c", &limited);
	settle(1);
	/* PW-46: the success in between has reset the count */
	CHECK_EQ(SLU_BREAKER_CLOSED, slu_breaker_state(b.breaker));
	limited.runs = 0;
	put("d", &limited);
	settle(1);
	CHECK_EQ(SLU_BREAKER_OPEN, slu_breaker_state(b.breaker)); /* PW-46: rate limits count */
	put("e", &good);
	settle(1);
	CHECK_EQ(1, good.runs); /* PW-40 */
	fakeclock_advance(&f.clock, 30 * SLU_SEC);
	settle(1);
	CHECK_EQ(2, good.runs);
	CHECK_EQ(SLU_BREAKER_CLOSED, slu_breaker_state(b.breaker));
}

static struct slu_breaker *
by_first_letter(const struct slu_job_item *job, void *arg)
{
	(void)arg;
	if (job->object_id[0] == 'x')
		slu_panic("no destination");
	return job->object_id[0] == 'n' ? NULL : slu_breaker_get(b.set, job->object_id[0] == 'm' ? "mail" : "push");
}

TEST(a_worker_takes_the_breaker_of_each_job)
{
	static struct plan fine = { 0 }, fails = { .fails = -1 };

	setup_queue((struct slu_pqueue_config){ 0 });
	CHECK_EQ(0, breakers_new_on(&b.set, &(struct slu_breaker_config){ SLU_OPTIONS_INIT(struct slu_breaker_config), .failures = 1, .log = f.log }, &f.clock.clock, NULL));
	{
		struct slu_worker_config config = fill((struct slu_worker_config){ .breaker_of = by_first_letter, .max_attempts = 1 });

		CHECK_EQ(0, slu_worker_new(&f.worker, &config, NULL));
		config.breaker = slu_breaker_get(b.set, "mail");
		CHECK_EQ(SLU_EINVAL, slu_worker_new(&(struct slu_worker *){ NULL }, &config, NULL));
	}
	slu_breaker_report(slu_breaker_get(b.set, "mail"), false); /* it is open */
	put("m", &fine);
	put("p", &fine);
	put("n", &fine);
	put("x", &fine);
	start();
	WAIT_UNTIL(stats_of().done == 2 && stats_of().deferred == 1 && stats_of().dead == 1);
	CHECK_EQ(2, fine.runs); /* the job for mail waits, the job without a destination failed */
	put("p", &fails);
	WAIT_UNTIL(stats_of().dead == 2);
	CHECK_EQ(SLU_BREAKER_OPEN, slu_breaker_state(slu_breaker_get(b.set, "push")));
}

static int
defer_twice(const struct slu_job_item *job, void *session, void *arg, struct slu_err *err)
{
	struct plan *p = job->data;

	(void)session;
	(void)arg;
	(void)err;
	atomic_store(&p->attempt, job->attempts);
	if (atomic_fetch_add(&p->runs, 1) < 2)
		return slu_job_defer(START_WALL + 30 * SLU_SEC * (atomic_load(&p->runs)));
	return 0;
}

TEST(a_handler_that_defers_spends_no_attempt)
{
	static struct plan plan = { 0 };

	setup((struct slu_worker_config){ .handler = defer_twice, .max_attempts = 1 });
	put("a", &plan);
	start();
	for (int i = 1; i <= 2; i++) {
		WAIT_UNTIL(stats_of().deferred == (uint64_t)i);
		WAIT_UNTIL(queue_of().scheduled == 1);
		fakeclock_advance(&f.clock, 30 * SLU_SEC - 1);
		CHECK_EQ(i, plan.runs);
		fakeclock_advance(&f.clock, 1);
		WAIT_UNTIL(atomic_load(&plan.runs) == i + 1);
	}
	WAIT_UNTIL(stats_of().done == 1);
	CHECK_EQ(1, plan.attempt);
	CHECK_EQ(0, stats_of().failed);
}

TEST(a_panic_is_reported_to_the_breaker_too)
{
	static struct plan bad = { .fails = -1, .panic = "boom" };

	setup_breaker((struct slu_breaker_config){ .failures = 1 },
		      (struct slu_worker_config){ .max_attempts = 1 });
	put("a", &bad);
	start();
	settle(1);
	CHECK_EQ(SLU_BREAKER_OPEN, slu_breaker_state(b.breaker));
}

TEST(half_open_runs_as_many_jobs_as_there_are_probes)
{
	static struct plan plan = { .waits = true };

	setup_breaker((struct slu_breaker_config){ .failures = 1, .half_open_probe_count = 2 },
		      (struct slu_worker_config){ .threads = 4 });
	slu_breaker_report(b.breaker, false);
	fakeclock_advance(&f.clock, 30 * SLU_SEC);
	for (int i = 0; i < 6; i++)
		put("a", &plan);
	start();
	WAIT_UNTIL(stats_of().deferred == 4 && f.total == 2);
	CHECK_EQ(2, f.inside); /* PW-43, PW-45 */
	f.gate = true;
	WAIT_UNTIL(slu_breaker_state(b.breaker) == SLU_BREAKER_CLOSED);
	fakeclock_advance(&f.clock, 30 * SLU_SEC / 8 + 1);
	settle(4);
	CHECK_EQ(6, stats_of().done, "the rest follows soon");
}
