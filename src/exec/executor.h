/*
 * executor.h - the executor as tests see it: on a clock of their own.
 */
#ifndef EXEC_EXECUTOR_H
#define EXEC_EXECUTOR_H

#include "base/clock.h"

#include <sluice/executor.h>

int executor_start_on(struct slu_executor **out,
		      const struct slu_executor_config *config, struct clock *clock,
		      struct slu_err *err);

/* In executor_config.c: fill in the defaults and refuse what makes no sense. */
int executor_config_check(struct slu_executor_config *config, struct slu_err *err);

/* The same file: copy as much of a config as the caller's struct has. */
int executor_config_give(const struct slu_executor_config *from, struct slu_executor_config *into,
			 struct slu_err *err);

#endif
