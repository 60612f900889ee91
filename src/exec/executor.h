/*
 * executor.h - the executor with a clock of the caller, for tests; and its settings.
 */
#ifndef EXEC_EXECUTOR_H
#define EXEC_EXECUTOR_H

#include "base/clock.h"

#include <sluice/executor.h>

int executor_start_on(struct slu_executor **out,
		      const struct slu_executor_config *config, struct clock *clock,
		      struct slu_err *err);

/* Fills in the defaults. Returns SLU_EINVAL if a setting is not valid. (executor_config.c) */
int executor_config_check(struct slu_executor_config *config, struct slu_err *err);

/* Copies the part of a config that fits the caller's struct_size. (executor_config.c) */
int executor_config_give(const struct slu_executor_config *from, struct slu_executor_config *into,
			 struct slu_err *err);

#endif
