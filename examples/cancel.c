/*
 * cancel.c - calling tasks off. One token covers a task that runs, one that waits
 * for a retry and one that is queued; a fourth has a deadline instead. Each gets
 * exactly one final report.
 */
#include <sluice/executor.h>

#include <stdatomic.h>
#include <stdio.h>
#include <threads.h>

static const struct timespec ms = { .tv_nsec = 1000000 };
static atomic_int running, canceled, timed_out, never_ran;

/* A task that takes long asks now and then whether it is still wanted. */
static int
work_until_called_off(struct slu_run *run, void *arg)
{
	(void)arg;
	atomic_fetch_add(&running, 1);
	while (!slu_cancel_fired(run->cancel))
		thrd_sleep(&ms, NULL);
	return slu_fail(&run->err, SLU_EFAILED, "left half done");
}

static int
fail(struct slu_run *run, void *arg)
{
	(void)arg;
	atomic_fetch_add(&running, 1);
	return slu_fail(&run->err, SLU_EDOWN, "nobody answers");
}

static void
report(const struct slu_run *run, void *arg, int rc)
{
	(void)arg;
	printf("%-8s %s, attempts %u: %s\n", run->key, slu_err_row(rc)->c_name,
	       run->attempt, run->err.text);
	atomic_fetch_add(&canceled, rc == SLU_ECANCELED);
	atomic_fetch_add(&timed_out, rc == SLU_ETIMEOUT);
	atomic_fetch_add(&never_ran, run->attempt == 0);
}

int
main(void)
{
	const struct slu_executor_config config = { SLU_OPTIONS_INIT(struct slu_executor_config), .base_backoff = SLU_HOUR,
						    .max_interval = SLU_HOUR };
	const struct slu_task busy = { SLU_OPTIONS_INIT(struct slu_task), .run = work_until_called_off, .done = report };
	const struct slu_task failing = { SLU_OPTIONS_INIT(struct slu_task), .run = fail, .done = report };
	struct slu_submit opts = { SLU_OPTIONS_INIT(struct slu_submit), .cancel = slu_cancel_new() };
	const struct slu_submit brief = { SLU_OPTIONS_INIT(struct slu_submit), .expire = SLU_MIN }; /* ends before the retry */
	struct slu_executor *ex;

	if (!opts.cancel || slu_executor_start(&ex, &config, NULL))
		return 1;
	slu_executor_submit(ex, "waits", &failing, &opts, NULL, NULL);
	slu_executor_submit(ex, "expires", &failing, &brief, NULL, NULL);
	while (atomic_load(&running) < 2)
		thrd_sleep(&ms, NULL);
	slu_executor_submit(ex, "runs", &busy, &opts, NULL, NULL);
	while (atomic_load(&running) < 3)
		thrd_sleep(&ms, NULL);
	slu_executor_submit(ex, "runs", &busy, &opts, NULL, NULL); /* behind it */

	slu_cancel_fire(opts.cancel, "user closed the window");
	slu_cancel_free(opts.cancel); /* tasks that carry it keep it alive */
	slu_executor_await(ex, "runs", 0, NULL);
	slu_executor_await(ex, "waits", 0, NULL);
	slu_executor_close(ex);
	return !(canceled == 3 && timed_out == 1 && never_ran == 1);
}
