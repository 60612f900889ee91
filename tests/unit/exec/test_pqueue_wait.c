/* The priority queue with threads that wait for it: which thread wakes when, and which leaves.
 * The limits are short, since what goes wrong here hangs. */
#include "pqueue_fixture.h"

#include <time.h>

/* Waiting for jobs */

TEST_LIMIT(an_enqueue_wakes_a_waiter, 20)
{
	struct pop_caller c = { .timeout = SLU_NEVER };

	start(&c, call_dequeue, 1);
	put(NULL, 0);
	CHECK_EQ(0, finish(&c)); /* PW-11: the clock stood still */
	CHECK_EQ(1, c.item.seq);
}

TEST_LIMIT(a_waiter_sleeps_until_the_next_due_and_no_longer, 20)
{
	struct pop_caller c = { .timeout = SLU_HOUR };
	slu_time start_at;

	start_at = clock_mono(&f.clock.clock);
	put(NULL, 30 * SLU_SEC);
	start(&c, call_dequeue, 1);
	CHECK_EQ(start_at + 30 * SLU_SEC, fakeclock_until(&f.clock)); /* PW-17 */
	fakeclock_advance(&f.clock, 30 * SLU_SEC);
	CHECK_EQ(0, finish(&c));
	CHECK_EQ(0, c.item.waited, "PW-17: taken at the very moment");
}

TEST_LIMIT(a_job_due_before_all_others_reaches_a_sleeper, 20)
{
	struct pop_caller c = { .timeout = SLU_NEVER };
	slu_time start_at;

	start_at = clock_mono(&f.clock.clock);
	put(NULL, SLU_HOUR);
	start(&c, call_dequeue, 1);
	put(NULL, 2 * SLU_SEC); /* PW-11, PW-17 */
	WAIT_UNTIL(fakeclock_until(&f.clock) == start_at + 2 * SLU_SEC);
	put(NULL, 3 * SLU_SEC);
	fakeclock_advance(&f.clock, 2 * SLU_SEC);
	CHECK_EQ(0, finish(&c));
	CHECK_EQ(2, c.item.seq);
}

TEST_LIMIT(a_retry_that_is_due_first_reaches_a_sleeper, 20)
{
	struct pop_caller c = { .timeout = SLU_NEVER };
	struct slu_job_item item;
	slu_time start_at;
	uint32_t handle;

	start_at = clock_mono(&f.clock.clock);
	put(NULL, 0);
	put(NULL, SLU_HOUR);
	CHECK_EQ(0, pqueue_take(f.q, NULL, 0, &item, &handle));
	start(&c, call_dequeue, 1);
	pqueue_put_back(f.q, handle, SLU_SEC, true);
	WAIT_UNTIL(fakeclock_until(&f.clock) == start_at + SLU_SEC);
	fakeclock_advance(&f.clock, SLU_SEC);
	CHECK_EQ(0, finish(&c));
	CHECK_EQ(2, c.item.attempts);
}

TEST_LIMIT(a_dequeue_gives_up_at_its_timeout, 20)
{
	struct pop_caller c = { .timeout = 5 * SLU_SEC };

	put(NULL, SLU_HOUR);
	start(&c, call_dequeue, 1);
	fakeclock_advance(&f.clock, 5 * SLU_SEC - 1);
	CHECK_EQ(1, fakeclock_sleepers(&f.clock));
	CHECK(!atomic_load(&c.done)); /* PW-19: not before */
	fakeclock_advance(&f.clock, 1);
	CHECK_EQ(SLU_ETIMEOUT, finish(&c)); /* PW-18 */
	CHECK_EQ(SLU_ETIMEOUT, slu_pqueue_dequeue(f.q, 0, &c.item));
	CHECK_EQ(SLU_ETIMEOUT, slu_pqueue_dequeue(f.q, 0, &c.item));
}

/* The sentry, the only thread that sleeps until the next due, leaves by its timeout: another
 * must take over, or the job would sleep in. */
TEST_LIMIT(a_sentry_that_leaves_is_relieved, 20)
{
	struct pop_caller sentry = { .timeout = SLU_SEC };
	struct pop_caller other = { .timeout = SLU_NEVER };
	slu_time due;

	put(NULL, SLU_MIN);
	due = clock_mono(&f.clock.clock) + SLU_MIN;
	start(&sentry, call_dequeue, 1);
	start(&other, call_dequeue, 2);
	CHECK_EQ(due - SLU_MIN + SLU_SEC, fakeclock_until(&f.clock));
	fakeclock_advance(&f.clock, SLU_SEC);
	CHECK_EQ(SLU_ETIMEOUT, finish(&sentry));
	WAIT_UNTIL(fakeclock_until(&f.clock) == due); /* PW-17 */
	fakeclock_advance(&f.clock, SLU_MIN - SLU_SEC);
	CHECK_EQ(0, finish(&other));
}

/* A clock on which only the sentry is woken by time, and only when all others sleep:
 * these it leaves to the queue's signals. */
struct stepclock {
	struct clock clock; /* first */
	_Atomic slu_time now;
	_Atomic int asleep;
	int others;
};

static slu_time
step_now(struct clock *c)
{
	return atomic_load(&((struct stepclock *)c)->now);
}

static void
step_wait(struct clock *c, pthread_cond_t *cond, pthread_mutex_t *mtx, slu_time until)
{
	struct stepclock *s = (struct stepclock *)c;

	if (until == SLU_NEVER) {
		atomic_fetch_add(&s->asleep, 1);
		pthread_cond_wait(cond, mtx);
		return;
	}
	pthread_mutex_unlock(mtx);
	WAIT_UNTIL(atomic_load(&s->asleep) >= s->others);
	pthread_mutex_lock(mtx); /* the last of them has let go of it: all sleep */
	atomic_store(&s->now, until);
}

static const struct clock_ops step_ops = {
	.mono = step_now,
	.wall = step_now,
	.wait = step_wait,
};

/* Whoever is woken passes the word on as long as something is ready. */
TEST_LIMIT(jobs_that_fall_due_together_wake_a_waiter_each, 20)
{
	struct stepclock clock = { .clock.ops = &step_ops, .now = 1, .others = 9 };
	struct pop_caller c[10];
	struct slu_err err;

	teardown();
	CHECK_EQ(0, pqueue_new_on(&f.q, NULL, &clock.clock, &err));
	for (int i = 0; i < 11; i++)
		put(NULL, SLU_SEC);
	EACH(i, c) {
		c[i] = (struct pop_caller){ .timeout = SLU_NEVER };
		CHECK_EQ(0, pthread_create(&c[i].thread, NULL, call_dequeue, &c[i]));
	}
	EACH(i, c)
		CHECK_EQ(0, finish(&c[i])); /* PW-11, PW-15 */
	CHECK_EQ(1, stats_of().ready);
}

static slu_time
used_by(clockid_t clock)
{
	struct timespec ts;

	CHECK_EQ(0, clock_gettime(clock, &ts));
	return ts.tv_sec * SLU_SEC + ts.tv_nsec;
}

/* The one test on the real clock: whether a thread sleeps, only the kernel knows. A thread that polls
 * gets as much of the processor as this one does. */
TEST_LIMIT(waiting_uses_no_processor, 20)
{
	struct pop_caller c = { .timeout = SLU_NEVER };
	clockid_t clock;
	slu_time before;
	struct slu_err err;

	teardown();
	CHECK_EQ(0, slu_pqueue_new(&f.q, NULL, &err));
	put(NULL, SLU_HOUR);
	CHECK_EQ(0, pthread_create(&c.thread, NULL, call_dequeue, &c));
	CHECK_EQ(0, pthread_getcpuclockid(c.thread, &clock));
	before = used_by(CLOCK_THREAD_CPUTIME_ID);
	while (used_by(CLOCK_THREAD_CPUTIME_ID) - before < 200 * SLU_MS)
		;
	CHECK(used_by(clock) < 20 * SLU_MS); /* PW-09: polling takes about 200 */
	put(NULL, 0);
	CHECK_EQ(0, finish(&c));
	CHECK_EQ(2, c.item.seq);
	CHECK(c.item.waited < SLU_SEC); /* PW-09: woken by the enqueue */
}

/* Stopping */

TEST_LIMIT(what_is_ready_at_the_stop_is_still_handed_out, 20)
{
	struct pop_caller stopper = { .mode = SLU_STOP_READY };
	struct slu_job_item item;

	put(NULL, 0);
	put(NULL, SLU_SEC);
	put(NULL, SLU_MIN);
	fakeclock_advance(&f.clock, SLU_SEC); /* the second is due, and no thread has looked yet */
	start(&stopper, call_stop, 1);
	CHECK_EQ(1, pull()); /* PW-19 */
	CHECK(!atomic_load(&stopper.done));
	CHECK_EQ(2, pull());
	CHECK_EQ(0, finish(&stopper));
	CHECK_EQ(SLU_ECLOSED, slu_pqueue_dequeue(f.q, SLU_NEVER, &item));
	fakeclock_advance(&f.clock, SLU_MIN);
	CHECK_EQ(SLU_ECLOSED, slu_pqueue_dequeue(f.q, 0, &item), "it was not due: left");
	CHECK_EQ(1, slu_pqueue_peek(f.q, &item, 1));
	CHECK_EQ(1, stats_of().scheduled);
	CHECK_EQ(1, slu_pqueue_purge(f.q, NULL));
}

TEST_LIMIT(stop_all_waits_for_what_is_scheduled, 20)
{
	struct pop_caller stopper = { .mode = SLU_STOP_ALL };
	struct pop_caller c[2];

	put(NULL, SLU_MIN);
	EACH(i, c) {
		c[i] = (struct pop_caller){ .timeout = SLU_NEVER };
		start(&c[i], call_dequeue, (int)i + 1);
	}
	start(&stopper, call_stop, 3);
	fakeclock_advance(&f.clock, SLU_MIN);
	CHECK_EQ(0, finish(&stopper));
	CHECK_EQ(SLU_ECLOSED, finish(&c[0]) + finish(&c[1]), "one got it, one was told");
}

TEST_BARE_LIMIT(stop_now_hands_out_nothing_more, 20)
{
	struct pop_caller c = { .timeout = SLU_NEVER };

	setup(SLU_LOG_OFF, defaults);
	start(&c, call_dequeue, 1);
	CHECK_EQ(0, slu_pqueue_stop(f.q, SLU_STOP_NOW, 0));
	CHECK_EQ(SLU_ECLOSED, finish(&c));
	teardown();

	setup(SLU_LOG_OFF, defaults);
	put(NULL, 0);
	CHECK_EQ(0, slu_pqueue_stop(f.q, SLU_STOP_NOW, 0));
	CHECK_EQ(SLU_ECLOSED, slu_pqueue_dequeue(f.q, 0, &c.item));
	CHECK_EQ(1, stats_of().ready, "left for peek and purge");
	teardown();
}

TEST_LIMIT(a_stop_whose_time_is_up_closes_the_queue, 20)
{
	struct pop_caller stopper = { .mode = SLU_STOP_READY, .timeout = SLU_SEC };
	struct slu_job_item item;

	put(NULL, 0);
	start(&stopper, call_stop, 1);
	fakeclock_advance(&f.clock, SLU_SEC);
	CHECK_EQ(SLU_ETIMEOUT, finish(&stopper));
	CHECK_EQ(SLU_ECLOSED, slu_pqueue_dequeue(f.q, 0, &item));
	CHECK_EQ(1, slu_pqueue_purge(f.q, NULL));
	CHECK_EQ(0, slu_pqueue_stop(f.q, SLU_STOP_ALL, SLU_SEC), "nothing is left now");
}

TEST_LIMIT(any_number_may_stop_and_a_later_one_only_hurries, 20)
{
	struct pop_caller all[4], ready = { .mode = SLU_STOP_READY };

	put(NULL, 0);
	put(NULL, SLU_HOUR);
	EACH(i, all) {
		all[i] = (struct pop_caller){ .mode = SLU_STOP_ALL };
		start(&all[i], call_stop, (int)i + 1);
	}
	start(&ready, call_stop, 5);
	CHECK_EQ(1, pull());
	CHECK_EQ(0, finish(&ready));
	EACH(i, all) /* the hour was cut short: not all was handed out */
		CHECK_EQ(SLU_ETIMEOUT, finish(&all[i]));
	CHECK_EQ(SLU_ECLOSED, slu_pqueue_dequeue(f.q, SLU_NEVER, &ready.item));
}

/* Leaving */

TEST_BARE_LIMIT(a_waiter_leaves_at_the_moment_it_was_given, 20)
{
	static const struct {
		const char *label;
		enum pqueue_leave how;
		slu_time delay; /* of the job */
		int rc;
		bool at_once;
	} cases[] = {
		{ "now", PQUEUE_LEAVE_NOW, SLU_SEC, SLU_ECANCELED, true },
		{ "when idle", PQUEUE_LEAVE_WHEN_IDLE, SLU_SEC, SLU_ECANCELED, true },
		{ "when drained", PQUEUE_LEAVE_WHEN_DRAINED, SLU_SEC, 0, false },
	};

	EACH(i, cases) {
		struct pqueue_waiter w = { 0 };
		struct pop_caller c = { .w = &w, .timeout = SLU_NEVER };

		setup(SLU_LOG_OFF, defaults);
		put(NULL, cases[i].delay);
		start(&c, call_dequeue, 1);
		pqueue_leave(f.q, &w, cases[i].how);
		if (!cases[i].at_once)
			fakeclock_advance(&f.clock, SLU_SEC);
		CHECK_EQ(cases[i].rc, finish(&c));
		teardown();
	}
}

TEST_LIMIT(waiters_that_leave_when_drained_leave_with_the_last_job, 20)
{
	struct pqueue_waiter w = { 0 };
	struct pop_caller c[4];
	int canceled = 0;

	put(NULL, SLU_SEC);
	EACH(i, c) {
		c[i] = (struct pop_caller){ .w = &w, .timeout = SLU_NEVER };
		start(&c[i], call_dequeue, (int)i + 1);
	}
	pqueue_leave(f.q, &w, PQUEUE_LEAVE_WHEN_DRAINED);
	fakeclock_advance(&f.clock, SLU_SEC);
	EACH(i, c)
		canceled += finish(&c[i]) == SLU_ECANCELED;
	CHECK_EQ(3, canceled);
}

TEST_LIMIT(a_waiter_that_must_leave_takes_nothing_until_it_may_stay, 20)
{
	struct pqueue_waiter w = { PQUEUE_LEAVE_NOW };
	struct pop_caller c = { .w = &w, .timeout = SLU_NEVER };

	put(NULL, 0);
	call_dequeue(&c);
	CHECK_EQ(SLU_ECANCELED, c.rc, "even with a job at hand");
	pqueue_leave(f.q, &w, PQUEUE_STAY);
	call_dequeue(&c);
	CHECK_EQ(0, c.rc, "a worker may start again");
}

/* All at once */

enum {
	PRODUCERS = 3,
	CONSUMERS = 3,
	JOBS_EACH = 4000
};

struct crowd {
	struct slu_pqueue *q;
	_Atomic uint64_t put, refused, taken, retried, purged;
	_Atomic bool over;
};

static void *
produce(void *arg)
{
	static const char *const labels[] = { "high", "normal", "low" };
	struct crowd *c = arg;
	uint64_t dice = test_seed() ^ (uint64_t)(uintptr_t)&dice;

	for (int i = 0; i < JOBS_EACH; i++) {
		const uint64_t roll = test_random(&dice);
		const struct slu_job job = {
			SLU_OPTIONS_INIT(struct slu_job),
			.object_id = roll % 2 ? "object" : NULL,
			.priority = labels[roll % 3],
			.delay = roll % 5 ? 0 : (slu_time)(roll >> 40),
		};

		if (slu_pqueue_enqueue(c->q, &job, NULL, NULL))
			atomic_fetch_add(&c->refused, 1);
		else
			atomic_fetch_add(&c->put, 1);
	}
	return NULL;
}

/* Finish three of four, retry the rest. */
static void *
consume(void *arg)
{
	struct crowd *c = arg;
	struct slu_job_item item;
	uint32_t handle;
	int rc;

	while ((rc = pqueue_take(c->q, NULL, SLU_NEVER, &item, &handle)) == 0) {
		if (item.seq % 4 == 0 && item.attempts == 1) {
			atomic_fetch_add(&c->retried, 1);
			pqueue_put_back(c->q, handle, item.seq % 8 ? SLU_US : 0, true);
			continue;
		}
		pqueue_finish(c->q, handle);
		atomic_fetch_add(&c->taken, 1);
	}
	CHECK_EQ(SLU_ECLOSED, rc);
	return NULL;
}

static void *
look(void *arg)
{
	struct crowd *c = arg;

	for (int i = 0; !atomic_load(&c->over); i++) {
		struct slu_pqueue_stats stats;
		struct slu_job_item items[3];
		char *text;

		slu_pqueue_snapshot(c->q, &stats);
		CHECK_EQ(stats.depth, stats.ready + stats.scheduled);
		CHECK(slu_pqueue_peek(c->q, items, 3) <= 3);
		CHECK_EQ(0, slu_pqueue_metrics(c->q, &text));
		slu_free(text);
		if (i % 8 == 0)
			atomic_fetch_add(&c->purged, slu_pqueue_purge(c->q, NULL));
		test_yield();
	}
	return NULL;
}

/* PW-27: with the thread sanitizer this finds any race between them. */
TEST_BARE(everybody_at_once_loses_and_doubles_nothing)
{
	const struct slu_pqueue_config config = { SLU_OPTIONS_INIT(struct slu_pqueue_config), .max_in_memory = 2000 };
	struct crowd c = { 0 };
	pthread_t producers[PRODUCERS], consumers[CONSUMERS], looker;
	struct slu_err err;

	CHECK_EQ(0, slu_pqueue_new(&c.q, &config, &err));
	EACH(i, consumers)
		CHECK_EQ(0, pthread_create(&consumers[i], NULL, consume, &c));
	EACH(i, producers)
		CHECK_EQ(0, pthread_create(&producers[i], NULL, produce, &c));
	CHECK_EQ(0, pthread_create(&looker, NULL, look, &c));
	EACH(i, producers)
		pthread_join(producers[i], NULL);
	CHECK_EQ(0, slu_pqueue_stop(c.q, SLU_STOP_ALL, 0));
	EACH(i, consumers)
		pthread_join(consumers[i], NULL);
	atomic_store(&c.over, true);
	pthread_join(looker, NULL);
	atomic_fetch_add(&c.purged, slu_pqueue_purge(c.q, NULL)); /* late retries */

	CHECK_EQ(PRODUCERS * JOBS_EACH, c.put + c.refused);
	CHECK_EQ(c.put, c.taken + c.purged);
	slu_pqueue_free(c.q, NULL);
}
