/* Cancel tokens and expiry: one final report wherever the task is, no run after it. */
#include "exec_help.h"

#include <stdio.h>

static const struct slu_submit *
with(struct slu_submit *opts, struct slu_cancel *token)
{
	*opts = (struct slu_submit){ SLU_OPTIONS_INIT(struct slu_submit), .cancel = token };
	return opts;
}

TEST(a_task_canceled_while_queued_never_runs)
{
	static struct probe block = PROBE("block"), a = PROBE("a"), b = PROBE("b");
	struct slu_cancel *token = slu_cancel_new();
	struct slu_submit opts;

	rig_block("a", &block);
	CHECK_EQ(0, rig_try("a", &a, with(&opts, token), NULL));
	rig_submit("a", &b);
	slu_cancel_fire(token, "user closed the window");
	slu_cancel_free(token); /* the task keeps it alive */
	rig_open_gate();
	rig_settle();
	CHECK_EQ(0, a.runs); /* SQ-26: never runs */
	CHECK_EQ(1, a.reports);
	CHECK_EQ(SLU_ECANCELED, a.result);
	CHECK_EQ(0, a.attempt);
	CHECK_EQ(1, rig.errors);
	CHECK_EQ(SLU_ECANCELED, rig_told().rc);
	CHECK_CONTAINS("user closed the window", rig_told().err.text); /* SQ-26: the reason */
	CHECK_STR("block b", rig_trace());
	CHECK_STR("block:ok a:canceled b:ok", rig_ends());
}

TEST(a_token_fired_before_submit_refuses_the_task)
{
	struct slu_cancel *token = slu_cancel_new();
	static struct probe a = PROBE("a");
	struct slu_submit opts;
	struct slu_err err;

	slu_cancel_fire(token, "too late");
	CHECK_EQ(SLU_ECANCELED, rig_try("a", &a, with(&opts, token), &err));
	CHECK_CONTAINS("too late", err.text);
	CHECK_EQ(0, rig_stats().submitted);
	rig_release();
	CHECK_EQ(0, a.runs + a.reports);
	slu_cancel_free(token);
}

/* --- during the wait for a retry --- */

TEST_LIMIT(a_task_canceled_during_its_wait_is_reported_at_once, 20)
{
	struct slu_cancel *token = slu_cancel_new();
	static struct probe a1 = PROBE("a1", .fails = -1), a2 = PROBE("a2");
	struct slu_submit opts;

	CHECK_EQ(0, rig_try("a", &a1, with(&opts, token), NULL));
	rig_submit("a", &a2);
	rig_settle();
	CHECK_EQ(1, a1.runs);
	slu_cancel_fire(token, "enough");
	WAIT_UNTIL(atomic_load(&a2.reports) == 1); /* SQ-32: the clock stood still */
	fakeclock_advance(&rig.clock, SLU_HOUR);
	rig_settle();
	CHECK_STR("a1 a2", rig_trace());            /* SQ-32: no further run */
	CHECK_STR("a1:canceled a2:ok", rig_ends()); /* SQ-32: one report */
	CHECK_EQ(1, rig.errors);
	CHECK_EQ(1, a1.attempt);
	CHECK_CONTAINS("enough", rig_told().err.text);
	rig_release();
	slu_cancel_free(token);
}

TEST(a_held_task_that_is_canceled_is_passed_over_in_its_turn)
{
	struct slu_cancel *token = slu_cancel_new();
	static struct probe a1 = PROBE("a1", .fails = 1), a2 = PROBE("a2"), a3 = PROBE("a3");
	struct slu_submit opts;

	rig_submit("a", &a1);
	CHECK_EQ(0, rig_try("a", &a2, with(&opts, token), NULL));
	rig_submit("a", &a3);
	rig_settle();
	slu_cancel_fire(token, NULL);
	rig_next_retry();
	CHECK_STR("a1 a1 a3", rig_trace());
	CHECK_STR("a1:ok a2:canceled a3:ok", rig_ends()); /* EXECUTOR-1 */
	rig_release();
	slu_cancel_free(token);
}

TEST(one_token_calls_off_all_waiting_keys_at_once)
{
	enum {
		KEYS = 20
	};
	struct slu_cancel *token = slu_cancel_new();
	static struct probe p[KEYS];
	struct slu_submit opts;
	char key[32];

	rig_start((struct slu_executor_config){ .shards = 3 });
	EACH(i, p) {
		p[i] = (struct probe)PROBE("p", .fails = -1);
		(void)snprintf(key, sizeof key, "k%zu", i);
		CHECK_EQ(0, rig_try(key, &p[i], with(&opts, token), NULL));
	}
	rig_settle();
	slu_cancel_fire(token, NULL);
	WAIT_UNTIL(atomic_load(&rig.reports) == KEYS);
	CHECK_EQ(KEYS, rig.runs);
	rig_release();
	slu_cancel_free(token);
}

/* Two keys wait; the second token fires when the first has just been dealt with and
 * the worker looks through all keys that wait, which are many, for another one. */
enum {
	OTHERS = 2000
};

static slu_time
wait_as_set(unsigned attempt, void *arg)
{
	(void)attempt;
	return *(const _Atomic slu_time *)arg;
}

static void
cancel_one_after_the_other(uint64_t spin)
{
	struct slu_cancel *token[2] = { slu_cancel_new(), slu_cancel_new() };
	struct probe p[2] = { PROBE("p", .fails = -1), PROBE("p", .fails = -1) };
	struct slu_submit opts;

	CHECK_EQ(0, rig_try("a", &p[0], with(&opts, token[0]), NULL));
	CHECK_EQ(0, rig_try("b", &p[1], with(&opts, token[1]), NULL));
	WAIT_UNTIL(rig_stats().waiting == OTHERS + 2);
	slu_cancel_fire(token[0], NULL);
	while (atomic_load(&p[0].reports) == 0)
		continue;
	while (spin-- > 0)
		(void)atomic_load(&p[0].reports);
	slu_cancel_fire(token[1], NULL);
	WAIT_UNTIL(atomic_load(&p[1].reports) == 1); /* the clock stands still */
	slu_cancel_free(token[0]);
	slu_cancel_free(token[1]);
}

TEST_LIMIT(a_cancel_is_not_overlooked_while_another_is_handled, 20)
{
	static struct probe others[OTHERS];
	_Atomic slu_time wait = SLU_HOUR;
	const struct slu_executor_config config = {
		SLU_OPTIONS_INIT(struct slu_executor_config),
		.shards = 1,
		.queue_size = 2 * OTHERS,
		.backoff = SLU_BACKOFF_FUNCTION,
		.backoff_fn = wait_as_set,
		.backoff_arg = &wait,
		.max_interval = SLU_HOUR,
	};
	uint64_t dice = test_seed();
	char key[32];

	rig_start(config);
	EACH(i, others) {
		others[i] = (struct probe)PROBE("o", .fails = -1);
		(void)snprintf(key, sizeof key, "o%zu", i);
		rig_submit(key, &others[i]);
	}
	rig_settle();
	atomic_store(&wait, SLU_SEC); /* so a and b are looked at first */
	for (int round = 0; round < 300; round++)
		cancel_one_after_the_other(test_random(&dice) % 3000);
}

/* Each is found at once, however many others wait before it: looking through them for
 * every one would be ten thousand million looks. */
TEST_LIMIT(calling_off_half_of_many_does_not_look_through_the_other_half, 60)
{
	enum {
		EACH_HALF = SANITIZED ? 10000 : 100000
	};
	_Atomic slu_time wait = SLU_SEC;
	const struct slu_executor_config config = {
		SLU_OPTIONS_INIT(struct slu_executor_config),
		.shards = 1,
		.queue_size = 2 * EACH_HALF + 1,
		.backoff = SLU_BACKOFF_FUNCTION,
		.backoff_fn = wait_as_set,
		.backoff_arg = &wait,
		.max_interval = SLU_HOUR,
	};
	static struct probe p[2 * EACH_HALF];
	struct slu_cancel *token = slu_cancel_new();
	struct slu_submit opts;
	char key[32];

	rig_start(config);
	for (int i = 0; i < 2 * EACH_HALF; i++) {
		(void)snprintf(key, sizeof key, "k%d", i);
		if (i == EACH_HALF) {
			rig_settle();
			atomic_store(&wait, SLU_HOUR); /* so these are looked at last */
		}
		p[i] = (struct probe)PROBE("", .fails = -1);
		with(&opts, i < EACH_HALF ? NULL : token);
		CHECK_EQ(0, rig_try(key, &p[i], &opts, NULL));
	}
	WAIT_UNTIL(rig_stats().waiting == 2 * EACH_HALF);
	slu_cancel_fire(token, NULL);
	WAIT_UNTIL(atomic_load(&rig.reports) == EACH_HALF);
	for (int i = 0; i < 2 * EACH_HALF; i++)
		CHECK_EQ(i < EACH_HALF ? 0 : 1, p[i].reports);
	rig_release();
	slu_cancel_free(token);
}

/* --- while it runs, and while submit waits for room --- */

TEST(a_running_task_that_fails_after_its_cancel_is_not_tried_again)
{
	struct slu_cancel *token = slu_cancel_new();
	static struct probe a = PROBE("a", .fails = -1, .waits = true), b = PROBE("b", .waits = true);
	struct slu_submit opts;

	CHECK_EQ(0, rig_try("a", &a, with(&opts, token), NULL));
	WAIT_UNTIL(atomic_load(&a.runs) == 1);
	slu_cancel_fire(token, "while running");
	rig_open_gate();
	rig_settle();
	CHECK_EQ(1, a.runs);
	CHECK_EQ(1, a.reports);
	CHECK_EQ(SLU_ECANCELED, a.result);
	CHECK_CONTAINS("while running", rig_told().err.text);
	rig_submit("a", &b);
	rig_release();
	slu_cancel_free(token);
}

TEST(a_running_task_that_succeeds_after_its_cancel_has_succeeded)
{
	struct slu_cancel *token = slu_cancel_new();
	static struct probe a = PROBE("a", .waits = true);
	struct slu_submit opts;

	CHECK_EQ(0, rig_try("a", &a, with(&opts, token), NULL));
	WAIT_UNTIL(atomic_load(&a.runs) == 1);
	slu_cancel_fire(token, NULL);
	rig_release();
	CHECK_EQ(0, a.result);
	CHECK_EQ(0, rig.errors);
	slu_cancel_free(token);
}

static void
fill_shard(struct probe *block, struct probe *wait)
{
	rig_start((struct slu_executor_config){ .shards = 1, .queue_size = 1 });
	rig_block("a", block);
	rig_submit("a", wait);
}

TEST_LIMIT(a_submit_that_waits_for_room_returns_when_canceled, 20)
{
	static struct probe block = PROBE("block"), wait = PROBE("wait"), p = PROBE("p");
	struct slu_cancel *token = slu_cancel_new();
	struct room_waiter b;

	fill_shard(&block, &wait);
	rig_wait_for_room(&b, &p, (struct slu_submit){ .cancel = token, .timeout = SLU_NEVER });
	WAIT_UNTIL(atomic_load(&rig.looks) > 0); /* it waits */
	slu_cancel_fire(token, "changed my mind");
	pthread_join(b.thread, NULL);  /* SQ-41: at once, the clock stood still */
	CHECK_EQ(SLU_ECANCELED, b.rc); /* SQ-41: the cancel error */
	CHECK_CONTAINS("changed my mind", b.err.text);
	CHECK_EQ(2, rig_stats().submitted);
	rig_release();
	CHECK_EQ(0, p.runs + p.reports);
	slu_cancel_free(token);
}

/* --- expiry --- */

TEST(a_task_that_waited_too_long_is_not_run)
{
	static struct probe block = PROBE("block"), a = PROBE("a"), b = PROBE("b");
	const struct slu_submit opts = { SLU_OPTIONS_INIT(struct slu_submit), .expire = 10 * SLU_SEC };

	rig_block("x", &block);
	CHECK_EQ(0, rig_try("a", &a, &opts, NULL));
	fakeclock_advance(&rig.clock, 4 * SLU_SEC);
	CHECK_EQ(0, rig_try("a", &b, &opts, NULL));
	fakeclock_advance(&rig.clock, 6 * SLU_SEC); /* a's time is up, b's is not */
	rig_open_gate();
	rig_settle();
	CHECK_STR("block b", rig_trace());
	CHECK_STR("block:ok a:timeout b:ok", rig_ends());
	CHECK_EQ(SLU_ETIMEOUT, a.result);
	CHECK_EQ(0, rig_told().attempt);
}

TEST(no_retry_is_begun_after_the_expiry)
{
	static struct probe a = PROBE("a", .fails = -1);
	const struct slu_submit opts = { SLU_OPTIONS_INIT(struct slu_submit), .expire = 300 * SLU_MS };

	CHECK_EQ(0, rig_try("a", &a, &opts, NULL));
	rig_next_retry(); /* at 100 ms; the next would be at 300 */
	CHECK_EQ(2, a.runs);
	CHECK_EQ(1, a.reports);
	CHECK_EQ(SLU_ETIMEOUT, a.result);
	CHECK_EQ(SLU_NEVER, fakeclock_until(&rig.clock));
}

TEST(a_held_task_expires_in_its_turn)
{
	static struct probe a1 = PROBE("a1", .fails = 1), a2 = PROBE("a2");
	const struct slu_submit opts = { SLU_OPTIONS_INIT(struct slu_submit), .expire = 50 * SLU_MS };

	rig_submit("a", &a1);
	CHECK_EQ(0, rig_try("a", &a2, &opts, NULL));
	rig_next_retry();
	CHECK_STR("a1 a1", rig_trace());
	CHECK_STR("a1:ok a2:timeout", rig_ends());
}

/* The time that a report takes is time, too. */
static void
take_a_minute(const struct slu_run *run, void *arg, int rc)
{
	(void)arg;
	(void)run;
	(void)rc;
	fakeclock_advance(&rig.clock, SLU_MIN);
	WAIT_UNTIL(atomic_load(&rig.gate));
}

TEST(a_task_that_expires_during_the_report_before_it_is_not_run)
{
	const struct slu_submit opts = { SLU_OPTIONS_INIT(struct slu_submit), .expire = SLU_SEC };
	static struct probe a = PROBE("a");
	const struct slu_task slow = { SLU_OPTIONS_INIT(struct slu_task), do_nothing, NULL, take_a_minute };

	CHECK_EQ(0, slu_executor_submit(rig.ex, "x", &slow, NULL, NULL, NULL));
	WAIT_UNTIL(clock_mono(&rig.clock.clock) > 1000 * SLU_SEC);
	CHECK_EQ(0, rig_try("a", &a, &opts, NULL));
	fakeclock_advance(&rig.clock, SLU_SEC);
	rig_open_gate();
	rig_settle();
	CHECK_EQ(0, a.runs);
	CHECK_EQ(SLU_ETIMEOUT, a.result);
}

/* --- stress --- */

enum {
	STRESS_TASKS = 300,
	STRESS_TOKENS = 8
};

struct stress {
	struct slu_cancel *tokens[STRESS_TOKENS];
	uint64_t seed;
};

static void *
fire_tokens(void *arg)
{
	struct stress *s = arg;
	uint64_t dice = s->seed;

	for (int i = 0; i < STRESS_TOKENS; i++) {
		for (uint64_t spin = test_random(&dice) % 200000; spin > 0; spin--)
			__asm__ volatile("");
		slu_cancel_fire(s->tokens[i], "stress");
	}
	return NULL;
}

static void
stress_round(struct probe *p, uint64_t *dice)
{
	struct stress s = { .seed = test_random(dice) };
	pthread_t thread;
	char key[8];
	int accepted = 0;

	for (int i = 0; i < STRESS_TOKENS; i++)
		s.tokens[i] = slu_cancel_new();
	CHECK_EQ(0, pthread_create(&thread, NULL, fire_tokens, &s));
	for (int i = 0; i < STRESS_TASKS; i++) {
		const struct slu_submit opts = {
			SLU_OPTIONS_INIT(struct slu_submit),
			.cancel = s.tokens[test_random(dice) % STRESS_TOKENS],
			.timeout = SLU_NEVER,
		};

		p[i] = (struct probe)PROBE("p", .fails = (int)(test_random(dice) % 4) - 1);
		(void)snprintf(key, sizeof key, "k%d", (int)(test_random(dice) % 16));
		accepted += rig_try(key, &p[i], &opts, NULL) == 0;
	}
	pthread_join(thread, NULL);
	WAIT_UNTIL(rig_stats().finished == rig_stats().submitted);
	CHECK_EQ(accepted, rig.reports);
	for (int i = 0; i < STRESS_TASKS; i++)
		CHECK(p[i].reports <= 1);
	for (int i = 0; i < STRESS_TOKENS; i++)
		slu_cancel_free(s.tokens[i]);
}

TEST(stress_cancel_gives_one_report_and_no_run_after_it)
{
	static struct probe p[STRESS_TASKS];
	const struct slu_executor_config config = {
		SLU_OPTIONS_INIT(struct slu_executor_config),
		.shards = 2, .queue_size = 16, .backoff = SLU_BACKOFF_NONE, .max_attempts = 3
	};
	const int rounds = SANITIZED ? 20 : 100;
	uint64_t dice = test_seed();

	for (int i = 0; i < rounds; i++) { /* SQ-74: cancel, seeded */

		rig_start(config);
		stress_round(p, &dice);
		rig_release();
	}
}
