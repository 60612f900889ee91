#include "cli/complete.h"

#include "cli/knob_names.h"
#include "cli/names.h"

#include "base/mem.h"

/* A server that takes longer is no help at a prompt. */
#define COMPLETE_TIMEOUT (500 * SLU_MS)

/* --- commands ------------------------------------------------------------------- */

/* The command lists its own: it has the table of its options. */
static int
complete_one(const struct command *c, int argc, char **argv)
{
	char option[] = ARGS_COMPLETE;
	char **all = mem_zalloc(((size_t)argc + 2) * sizeof *all);
	int exit;

	if (!all)
		return CLI_FAILED;
	all[0] = argv[0];
	all[1] = option;
	memcpy(all + 2, argv + 1, (size_t)(argc - 1) * sizeof *all);
	exit = c->run(argc + 1, all);
	mem_free(all);
	return exit;
}

int
complete_commands(const struct command *table, int argc, char **argv)
{
	if (argc <= 1) {
		for (const struct command *c = table; c->name; c++)
			args_print_completion(c->name, argc ? argv[0] : "", c->summary);
		return CLI_OK;
	}
	if (table == cli_commands && strcmp(argv[0], "help") == 0)
		return complete_commands(table, argc - 1, argv + 1);
	for (const struct command *c = table; c->name; c++)
		if (strcmp(argv[0], c->name) == 0)
			return c->subs ? complete_commands(c->subs, argc - 1, argv + 1)
				       : complete_one(c, argc, argv);
	return CLI_OK;
}

/* --- names ---------------------------------------------------------------------- */

/* A name that a shell might run, whatever server sent it, is left out. */
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
	(void)names_queues(s, print_name, begun, NULL); /* no server: no names */
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
	bool asks; /* a server */
	void (*print)(struct session *s, char *begun);
} sources[] = {
	{ "QUEUE", true, print_queues },
	{ "NAMESPACE", true, print_spaces },
	{ "CONTEXT", false, print_contexts },
	{ "KNOB=VALUE", false, print_knobs },
};

/* --- a command ------------------------------------------------------------------ */

/* The options that stand before the last word say which server is asked. */
static bool
read_options(struct session *s, int argc, char **argv, const struct arg *rows, size_t n)
{
	struct slu_err err;

	s->timeout = COMPLETE_TIMEOUT;
	s->impatient = true;
	return args_parse(&argc, argv, rows, n, &err) == 0 && session_connect(s, &err) == 0;
}

void
complete_session(struct session *s, const struct session_help *help, int argc, char **argv,
		 const struct arg *rows, size_t n)
{
	char *const last = argc > 0 ? argv[argc - 1] : (char[]){ "" };
	char form[SESSION_WORD];
	struct arg_blank blank;
	int before = argc - 1; /* words that are whole */

	if (args_complete(argc, argv, rows, n, &blank))
		return;
	if (blank.form) {
		(void)snprintf(form, sizeof form, "%s", blank.form);
		before--;
	} else {
		session_usage_word(s, help, blank.word, form);
	}
	args_print_form(form, last);
	for (size_t i = 0; i < COUNT(sources); i++)
		if (strcmp(sources[i].form, form) == 0 &&
		    (!sources[i].asks || read_options(s, before, argv, rows, n)))
			sources[i].print(s, last);
}
