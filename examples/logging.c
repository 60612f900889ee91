/*
 * logging.c - log lines of the library go where the program wants them: here as
 * JSON into a function that counts and prints them. The level can change while
 * everything runs.
 */
#include <sluice/executor.h>

#include <stdio.h>
#include <string.h>

struct counts {
	int warn, error;
};

/* Gets whole lines, one call at a time. */
static void
write_line(void *arg, enum slu_log_level level, const char *line, size_t n)
{
	struct counts *counts = arg;

	if (level == SLU_LOG_WARN)
		counts->warn++;
	else if (level == SLU_LOG_ERROR)
		counts->error++;
	printf("%.*s", (int)n, line);
}

static int
crash(struct slu_run *run, void *arg)
{
	(void)run;
	(void)arg;
	slu_panic("a \"quoted\" word\nand a second line"); /* stays one log line */
}

int
main(void)
{
	const struct slu_task task = { SLU_OPTIONS_INIT(struct slu_task), .run = crash };
	struct slu_executor_config config = { SLU_OPTIONS_INIT(struct slu_executor_config), .max_attempts = 1 };
	struct counts counts = { 0 };
	struct slu_executor *ex;

	config.log = slu_log_new(SLU_LOG_OFF, SLU_LOG_JSON, write_line, &counts);
	if (!config.log || slu_executor_start(&ex, &config, NULL))
		return 1;
	slu_executor_submit(ex, "a", &task, NULL, NULL, NULL); /* not logged */
	slu_executor_await(ex, "a", 0, NULL);
	slu_log_set_level(config.log, SLU_LOG_INFO);
	slu_executor_submit(ex, "a", &task, NULL, NULL, NULL); /* logged as an error */
	slu_executor_await(ex, "a", 0, NULL);
	slu_executor_close(ex); /* "stopping executor", at level warn */
	slu_log_free(config.log);
	return !(counts.error == 1 && counts.warn == 1);
}
