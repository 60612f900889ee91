/*
 * retry_policies.c - how long a failed task waits before it is tried again: each
 * kind of backoff, one of your own, and the error that is never retried.
 */
#define _POSIX_C_SOURCE 200809L
#include <sluice/executor.h>

#include <stdio.h>
#include <time.h>

struct trial {
	const char *name;
	enum slu_backoff_kind kind;
	int fails_with;
	int want_ms[4]; /* waits, ended by -1 */
	slu_time last;
	int right;
};

static int
fail_thrice(struct slu_run *run, void *arg)
{
	struct trial *t = arg;
	struct timespec ts;
	slu_time now;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = ts.tv_sec * SLU_SEC + ts.tv_nsec;
	if (run->attempt > 1) {
		printf("%5.1f ms", (double)(now - t->last) / SLU_MS);
		t->right += now - t->last >= t->want_ms[run->attempt - 2] * SLU_MS;
	}
	t->last = now;
	return run->attempt > 3 ? 0 : slu_fail(&run->err, t->fails_with, "not yet");
}

static slu_time
own_delay(unsigned attempt, void *arg)
{
	(void)arg;
	return attempt == 1 ? 30 * SLU_MS : 5 * SLU_MS;
}

static int
try_policy(struct trial *t)
{
	const struct slu_executor_config config = {
		SLU_OPTIONS_INIT(struct slu_executor_config),
		.shards = 1,
		.max_attempts = 4,
		.base_backoff = 10 * SLU_MS,
		.max_interval = 35 * SLU_MS, /* no wait is longer */
		.backoff = t->kind,
		.backoff_fn = own_delay, /* for SLU_BACKOFF_FUNCTION */
	};
	const struct slu_task task = { SLU_OPTIONS_INIT(struct slu_task), .run = fail_thrice, .arg = t };
	struct slu_executor *ex;
	int waits = 0;

	while (t->want_ms[waits] >= 0)
		waits++;
	printf("%-12s", t->name);
	if (slu_executor_start(&ex, &config, NULL))
		return 1;
	slu_executor_submit(ex, "key", &task, NULL, NULL, NULL);
	slu_executor_await(ex, "key", 0, NULL); /* a stop would cut the waits short */
	slu_executor_close(ex);
	puts("");
	return t->right != waits;
}

int
main(void)
{
	struct trial trials[] = {
		{ "exponential", SLU_BACKOFF_EXPONENTIAL, SLU_EFAILED, { 10, 20, 35, -1 }, 0, 0 },
		{ "linear", SLU_BACKOFF_LINEAR, SLU_EFAILED, { 10, 20, 30, -1 }, 0, 0 },
		{ "fixed", SLU_BACKOFF_FIXED, SLU_EFAILED, { 10, 10, 10, -1 }, 0, 0 },
		{ "none", SLU_BACKOFF_NONE, SLU_EFAILED, { 0, 0, 0, -1 }, 0, 0 },
		{ "function", SLU_BACKOFF_FUNCTION, SLU_EFAILED, { 30, 5, 5, -1 }, 0, 0 },
		{ "permanent", SLU_BACKOFF_NONE, SLU_EPERMANENT, { -1 }, 0, 0 },
	};
	int wrong = 0;

	for (size_t i = 0; i < sizeof trials / sizeof trials[0]; i++)
		wrong += try_policy(&trials[i]);
	return wrong ? 1 : 0;
}
