/*
 * complete.h - words that a command line may go on with, one a line with a description after
 * a tab. `sluice --complete WORD... LAST` prints them; the scripts of `sluice completion` call it.
 *
 * The tables of commands and options say what is expected. QUEUE, NAMESPACE and the like in a
 * usage or option stand for names that are looked up.
 */
#ifndef CLI_COMPLETE_H
#define CLI_COMPLETE_H

#include "cli/session.h"

/* Completions for the last of the words behind `sluice`. */
int complete_commands(const struct command *table, int argc, char **argv);

/* Completions for the last of the words behind the name of a command. */
void complete_session(struct session *s, const struct session_help *help, int argc, char **argv,
		      const struct arg *rows, size_t n);

#endif
