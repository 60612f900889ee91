/*
 * args.h - options of a command, one table row each.
 *
 *         const struct arg rows[] = {
 *                 { "--json", ARG_FLAG, &json, "print JSON" },
 *                 { "-n, --namespace NAMESPACE", ARG_TEXT, &space, "whose queue it is" },
 *                 { "--state ready|dead", ARG_TEXT, &state, "only messages in this state" },
 *         };
 *
 * Takes `--name value`, `--name=value`, `-n value`, `-nvalue` and flags together (`-qy`); `--`
 * ends the options. Words that are not options stay, in order, at the front of argv. The same
 * rows print the help and complete words in a shell.
 *
 * A form with | in it lists the values that are allowed: `high|normal|low|N`. An alternative
 * in capitals, or that ends so (`interval=TIME`), stands for any value; N for a number.
 */
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include <sluice/err.h>

#include <stdio.h>

/* The first word of a command that only lists completions for its last word. */
#define ARGS_COMPLETE "--complete"

enum arg_kind {
	ARG_FLAG,   /* bool */
	ARG_COUNT,  /* uint64_t, 1 to 2^32 - 1 */
	ARG_NUMBER, /* uint64_t, any but 0 */
	ARG_TIME,   /* slu_time */
	ARG_TEXT    /* const char *, never empty */
};

struct arg {
	const char *name; /* "--jobs", "-f, --file FILE": perhaps a letter, perhaps the form of its value */
	enum arg_kind kind;
	void *out;
	const char *help;
};

/* *argc becomes the number of words that are not options. SLU_EINVAL names the option
 * and, for an unknown one, the nearest that exists. If argv[0] is ARGS_COMPLETE it lists
 * completions and ends the process. */
int args_parse(int *argc, char **argv, const struct arg *rows, size_t n,
	       struct slu_err *err);
void args_help(const struct arg *rows, size_t n, FILE *out);

/* The word of the list that is most like `word`, or NULL when none is near. */
const char *args_nearest(const char *word, const char *const *list, size_t n);

/* SLU_EINVAL if the form lists the values that are allowed, and this is none of them. */
int args_check_form(const char *what, const char *form, const char *value, struct slu_err *err);

/* Print the values that the form lists and that begin with `begun`. */
void args_print_form(const char *form, const char *begun);

/* One completion on a line, with a description after a tab (NULL: none), if it begins so. */
void args_print_completion(const char *word, const char *begun, const char *description);

/* What the last of the words should be. */
struct arg_blank {
	const char *form; /* of an option's value; NULL: it is a word */
	int word;         /* the number of that word, 0 the first */
};

/* Print options, or the listed values of one, that the last word may be: true. False: out
 * says what it should be. */
bool args_complete(int argc, char **argv, const struct arg *rows, size_t n,
		   struct arg_blank *out);

/* Does --json stand among the options? For errors found before all options are read. */
bool args_have_json(int argc, char **argv);

#endif
