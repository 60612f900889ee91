/*
 * complete.h - completions of a command line, one a line with a description after a tab. The scripts
 * of `sluice completion` call `sluice --complete WORD... LAST`, which prints them.
 *
 * The completions come from the tables of commands and options. QUEUE, NAMESPACE and CONTEXT in a
 * usage or an option stand for names that are looked up.
 */
#ifndef CLI_LIB_COMPLETE_H
#define CLI_LIB_COMPLETE_H

#include "cli/cli.h"

/* The first word of a call that lists completions. */
#define COMPLETE_OPTION "--complete"

/* Prints completions for the last of the words after `sluice`. Returns an enum cli_exit. */
int complete(const struct command *const *table, int argc, char **argv);

#endif
