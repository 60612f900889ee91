/*
 * stop.c - an orderly end. Stop refuses new tasks, runs what is queued and returns
 * when the last one has ended. With a timeout it returns earlier and says so; the
 * drain goes on, and stop can be called again.
 */
#include <sluice/executor.h>

#include <stdatomic.h>
#include <stdio.h>
#include <threads.h>

static atomic_int done;

static int
take_long(struct slu_run *run, void *arg)
{
	const struct timespec t = { .tv_nsec = 30 * 1000000 };

	(void)run;
	(void)arg;
	thrd_sleep(&t, NULL);
	atomic_fetch_add(&done, 1);
	return 0;
}

int
main(void)
{
	const struct slu_task task = { SLU_OPTIONS_INIT(struct slu_task), .run = take_long };
	struct slu_executor *ex;
	int first, late, second;

	if (slu_executor_start(&ex, NULL, NULL))
		return 1;
	for (int i = 0; i < 5; i++)
		if (slu_executor_submit(ex, "key", &task, NULL, NULL, NULL))
			return 1;

	first = slu_executor_stop(ex, 10 * SLU_MS);
	printf("after 10 ms: %s, %d of 5 done\n", slu_err_row(first)->c_name, atomic_load(&done));
	late = slu_executor_submit(ex, "key", &task, NULL, NULL, NULL);
	printf("a submit now: %s\n", slu_err_row(late)->c_name);
	second = slu_executor_stop(ex, 0);
	printf("at the end: %s, %d of 5 done\n", slu_err_row(second)->c_name, atomic_load(&done));
	slu_executor_close(ex);
	return !(first == SLU_ETIMEOUT && late == SLU_ECLOSED && second == 0 && done == 5);
}
