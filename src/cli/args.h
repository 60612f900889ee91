/*
 * args.h - options of a command, one table row each.
 *
 *         const struct arg rows[] = {
 *                 { "--json", ARG_FLAG, &json, "print JSON" },
 *                 { "--jobs", ARG_COUNT, &jobs, "jobs in a round" },
 *         };
 *
 * Takes `--name value` and `--name=value`; `--` ends the options. What is no option
 * stays, in order, at the front of argv. The same rows print the help.
 */
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include <sluice/err.h>

#include <stdio.h>

enum arg_kind {
	ARG_FLAG,   /* bool */
	ARG_COUNT,  /* uint64_t, 1 to 2^32 - 1 */
	ARG_NUMBER, /* uint64_t, any but 0 */
	ARG_TIME,   /* slu_time */
	ARG_TEXT    /* const char *, never empty */
};

struct arg {
	const char *name; /* "--jobs", or "--file FILE": what the help calls its value */
	enum arg_kind kind;
	void *out;
	const char *help;
};

/* *argc becomes the number of words that are no options. SLU_EINVAL names the option
 * and, for an unknown one, the nearest that exists. */
int args_parse(int *argc, char **argv, const struct arg *rows, size_t n,
	       struct slu_err *err);
void args_help(const struct arg *rows, size_t n, FILE *out);

/* The word of the list that is most like `word`, or NULL when none is near. */
const char *args_nearest(const char *word, const char *const *list, size_t n);

#endif
