/*
 * A program outside of the tree, as a user writes it. Compiles as C and as C++;
 * test_install.py builds it with pkg-config alone.
 */
#include <sluice/err.h>
#include <sluice/executor.h>
#include <sluice/log.h>

#include <stdio.h>
#include <string.h>

static int
check_err(void)
{
	struct slu_err err;

	if (slu_fail(&err, SLU_EQFULL, "no room for %d", 7) != SLU_EQFULL)
		return 1;
	if (strcmp(err.text, "no room for 7") != 0)
		return 1;
	return strcmp(slu_err_row(SLU_EQFULL)->c_name, "SLU_EQFULL") != 0;
}

static int
check_log(void)
{
	struct slu_log *log = slu_log_new(SLU_LOG_WARN, SLU_LOG_JSON, NULL, NULL);

	if (!log)
		return 1;
	slu_log_set_level(log, SLU_LOG_OFF);
	slu_log_free(log);
	return 0;
}

static int
add_one(struct slu_run *run, void *arg)
{
	(void)run;
	++*(int *)arg;
	return 0;
}

/* Tasks of one key never overlap, so that the sum needs no lock. */
static int
check_executor(void)
{
	struct slu_executor *ex;
	struct slu_task task;
	int sum = 0;

	memset(&task, 0, sizeof task);
	task.struct_size = sizeof task;
	task.run = add_one;
	task.arg = &sum;
	if (slu_executor_start(&ex, NULL, NULL))
		return 1;
	for (int i = 0; i < 1000; i++)
		if (slu_executor_submit(ex, "key", &task, NULL, NULL, NULL))
			return 1;
	return slu_executor_close(ex) || sum != 1000;
}

int
main(void)
{
	if (check_err() || check_log() || check_executor())
		return 1;
	puts("works");
	return 0;
}
