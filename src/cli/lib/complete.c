#include "cli/lib/complete.h"

#include "cli/lib/knobs.h"
#include "cli/lib/names.h"

/* At a prompt the user does not wait longer for names. */
#define COMPLETE_TIMEOUT (500 * SLU_MS)

/* --- names ---------------------------------------------------------------------- */

/* Skips names with characters that a shell could interpret. */
static void
print_name(void *arg, const char *name)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

	if (name[0] != '-' && !name[strspn(name, plain)])
		args_print_completion(name, arg, NULL);
}

static void
print_queues(struct session *s, char *begun)
{
	(void)names_queues(s, print_name, begun, NULL); /* without a server there are no names */
}

static void
print_spaces(struct session *s, char *begun)
{
	(void)names_spaces(s, print_name, begun, NULL);
}

static void
print_knobs(struct session *s, char *begun)
{
	char word[64];

	(void)s;
	for (const char *const *k = knob_names; *k; k++) {
		(void)snprintf(word, sizeof word, "%s=", *k);
		args_print_completion(word, begun, NULL);
	}
}

static void
print_contexts(struct session *s, char *begun)
{
	struct slu_err err;

	if (contexts_load(&s->contexts, &err))
		return;
	for (unsigned i = 0; i < s->contexts.n; i++)
		args_print_completion(s->contexts.items[i].name, begun, NULL);
}

static const struct {
	const char *form;
	bool asks; /* needs a server */
	void (*print)(struct session *s, char *begun);
} sources[] = {
	{ "QUEUE", true, print_queues },
	{ "NAMESPACE", true, print_spaces },
	{ "CONTEXT", false, print_contexts },
	{ "KNOB=VALUE", false, print_knobs },
};

/* --- a command ------------------------------------------------------------------ */

/* Reads the options before the last word: they name the server. */
static bool
read_options(struct session *s, int argc, char **argv, const struct arg *rows, size_t n)
{
	struct slu_err err;

	s->timeout = COMPLETE_TIMEOUT;
	s->impatient = true;
	return args_parse(&argc, argv, rows, n, s, &err) == 0 && session_connect(s, &err) == 0;
}

static void
complete_word(struct session *s, int argc, char **argv, const struct arg *rows, size_t n)
{
	char *const last = argc > 0 ? argv[argc - 1] : (char[]){ "" };
	char form[SESSION_WORD];
	struct arg_blank blank;
	int before = argc - 1; /* words before the last one */

	if (args_complete(argc, argv, rows, n, &blank))
		return;
	if (blank.form) {
		(void)snprintf(form, sizeof form, "%s", blank.form);
		before--;
	} else {
		session_usage_word(s->command, blank.word, form);
		if (blank.word == 0 && s->command->names)
			s->command->names(print_name, last);
	}
	args_print_form(form, last);
	for (size_t i = 0; i < COUNT(sources); i++)
		if (strcmp(sources[i].form, form) == 0 &&
		    (!sources[i].asks || read_options(s, before, argv, rows, n)))
			sources[i].print(s, last);
}

static int
complete_command(const struct command *c, int argc, char **argv)
{
	struct arg rows[SESSION_ARGS_MAX];
	size_t n;
	struct session *const s = session_new(c, rows, &n);

	if (!s)
		return CLI_FAILED;
	complete_word(s, argc, argv, rows, n);
	return session_close(s);
}

int
complete(const struct command *const *table, int argc, char **argv)
{
	if (argc > 1 && table == cli_commands && strcmp(argv[0], "help") == 0)
		return complete(table, argc - 1, argv + 1);
	for (const struct command *const *c = table; *c; c++) {
		if (argc <= 1)
			args_print_completion(command_word(*c), argc ? argv[0] : "", (*c)->summary);
		else if (strcmp(argv[0], command_word(*c)) == 0)
			return (*c)->subs ? complete((*c)->subs, argc - 1, argv + 1)
					  : complete_command(*c, argc - 1, argv + 1);
	}
	return CLI_OK;
}
