/*
 * config.h - settings of a server as files, looked at before a server has them.
 */
#ifndef CLI_CONFIG_H
#define CLI_CONFIG_H

#include <stdbool.h>

/* What is wrong with a file, and what is odd. Returns an enum cli_exit. */
int config_check(const char *file, bool json);

/* Which queues live elsewhere by the second file. Returns an enum cli_exit: CLI_FAILED when
 * one of the files is wrong, or a server would refuse to go from one to the other. */
int config_diff(const char *old, const char *new, bool json);

#endif
