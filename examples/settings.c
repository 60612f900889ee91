/*
 * settings.c - an executor that takes its settings from the environment: SQ_SHARDS,
 * SQ_QUEUE_SIZE and so on. What is set in code wins; zero is the default.
 */
#define _POSIX_C_SOURCE 200809L
#include <sluice/executor.h>

#include <stdio.h>
#include <stdlib.h>

int
main(void)
{
	struct slu_executor_config config = { SLU_OPTIONS_INIT(struct slu_executor_config) };
	struct slu_executor *ex;
	struct slu_err err;

	setenv("SQ_SHARDS", "two", 1); /* as somebody might */
	if (slu_executor_config_env(&config, &err) != SLU_EINVAL)
		return 1;
	printf("refused: %s\n", err.text);

	setenv("SQ_SHARDS", "2", 1);
	setenv("SQ_BASE_BACKOFF", "50ms", 1);
	if (slu_executor_config_env(&config, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	config.queue_size = 16;
	if (slu_executor_start(&ex, &config, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	(void)slu_executor_config_get(ex, &config, NULL); /* in force, defaults filled in */
	printf("%u shards, %u tasks each, %u attempts, first wait %lld ms\n",
	       config.shards, config.queue_size, config.max_attempts,
	       (long long)(config.base_backoff / SLU_MS));
	slu_executor_close(ex);
	return !(config.shards == 2 && config.queue_size == 16 &&
		 config.max_attempts == 8 && config.base_backoff == 50 * SLU_MS);
}
