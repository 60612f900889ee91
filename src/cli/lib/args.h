/*
 * args.h - options of a command, one table row each.
 *
 *         static const struct arg rows[] = {
 *                 { "--json", ARG_FLAG, AT(peek, json), "print JSON" },
 *                 { "-l, --limit", ARG_COUNT, AT(peek, limit), "how many (10)" },
 *                 { "--state ready|dead", ARG_TEXT, AT(peek, state), "only messages in this state" },
 *         };
 *
 * The values go to the members of a struct peek that the rows name.
 *
 * Accepts `--name value`, `--name=value`, `-n value`, `-nvalue` and joined flags (`-qy`); `--`
 * ends the options. Words that are not options stay, in order, at the front of argv. The same
 * rows print the help and complete words in a shell.
 *
 * A form with | lists the allowed values: `high|normal|low|N`. An alternative in capitals, or one
 * that ends in capitals (`interval=TIME`), stands for any value; N stands for a number.
 */
#ifndef CLI_LIB_ARGS_H
#define CLI_LIB_ARGS_H

#include <sluice/err.h>

#include <stddef.h>
#include <stdio.h>

#define AT(type, member) offsetof(struct type, member)

enum arg_kind {
	ARG_FLAG,   /* bool */
	ARG_COUNT,  /* uint64_t, 1 to 2^32 - 1 */
	ARG_NUMBER, /* uint64_t, any but 0 */
	ARG_TIME,   /* slu_time */
	ARG_TEXT    /* const char *, never empty */
};

struct arg {
	const char *name; /* "--jobs", "-f, --file FILE": a letter and the form of the value are optional */
	enum arg_kind kind;
	size_t at; /* where the value goes in the struct */
	const char *help;
};

/* Writes the values to `out`, the struct of the rows. *argc becomes the number of words that are not options. Returns
 * SLU_EINVAL if an option is wrong; the text names it and, if it is unknown, the nearest that exists. */
int args_parse(int *argc, char **argv, const struct arg *rows, size_t n, void *out,
	       struct slu_err *err);
void args_help(const struct arg *rows, size_t n, FILE *out);

/* The word of the list that is most like `word`; NULL if no word is similar. */
const char *args_nearest(const char *word, const char *const *list, size_t n);

/* Returns SLU_EINVAL if the form lists the allowed values and `value` is not in the list. */
int args_check_form(const char *what, const char *form, const char *value, struct slu_err *err);

/* Prints the listed values of the form that begin with `begun`. */
void args_print_form(const char *form, const char *begun);

/* Prints one completion if it begins with `begun`: a line, with a description after a tab (NULL = none). */
void args_print_completion(const char *word, const char *begun, const char *description);

/* What the last word of a command line should be. */
struct arg_blank {
	const char *form; /* the form of an option's value; NULL = the word is not a value */
	int word;         /* the index of the word, without options */
};

/* Prints the options, or the listed values of an option, that complete the last word, and returns
 * true. Returns false if the last word is something else; `out` describes it. */
bool args_complete(int argc, char **argv, const struct arg *rows, size_t n,
		   struct arg_blank *out);

/* Is --json among the options? For errors found before all options are read. */
bool args_have_json(int argc, char **argv);

#endif
