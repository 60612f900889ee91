/*
 * panic.c - a task gives up from deep inside. That attempt fails with SLU_EPANIC,
 * the line is logged (to stderr here), and the worker runs the next task. Outside of
 * tasks, slu_guard is where a panic comes back.
 */
#include <sluice/executor.h>

#include <stdio.h>

static int
take(int apples, int wanted)
{
	if (wanted > apples) /* a bug of the caller, not an error to handle */
		slu_panic("%d apples wanted, there are %d", wanted, apples);
	return apples - wanted;
}

static int
sell(struct slu_run *run, void *arg)
{
	int *apples = arg;

	(void)run;
	*apples = take(*apples, 2);
	return 0;
}

static int
sell_by_hand(void *arg)
{
	*(int *)arg = take(*(int *)arg, 3);
	return 0;
}

/* Told of every task that failed for good. */
static void
on_error(const struct slu_run *run, int rc, void *arg)
{
	int *panics = arg;

	printf("%s failed after %u attempts: %s\n", run->key, run->attempt, run->err.text);
	*panics += rc == SLU_EPANIC;
}

int
main(void)
{
	int panics = 0, apples = 5;
	const struct slu_executor_config config = {
		SLU_OPTIONS_INIT(struct slu_executor_config),
		.shards = 1,
		.max_attempts = 1,
		.on_error = on_error,
		.on_error_arg = &panics,
	};
	const struct slu_task task = { SLU_OPTIONS_INIT(struct slu_task), .run = sell, .arg = &apples };
	struct slu_executor_stats stats;
	struct slu_executor *ex;

	if (slu_executor_start(&ex, &config, NULL))
		return 1;
	for (int i = 0; i < 3; i++) /* the third is one too many */
		slu_executor_submit(ex, "apples", &task, NULL, NULL, NULL);
	slu_executor_await(ex, "apples", 0, NULL);
	apples = 4; /* the same worker goes on */
	slu_executor_submit(ex, "apples", &task, NULL, NULL, NULL);
	slu_executor_stop(ex, 0);
	slu_executor_snapshot(ex, SLU_ALL_SHARDS, &stats);
	slu_executor_close(ex);
	printf("%d apples left, %llu panic\n", apples, (unsigned long long)stats.panics);
	if (slu_guard(sell_by_hand, &apples, NULL) != SLU_EPANIC) /* there are only 2 */
		return 1;
	return !(panics == 1 && stats.panics == 1 && apples == 2);
}
