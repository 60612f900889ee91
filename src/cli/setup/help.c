/*
 * help.c - `sluice help` and `sluice version`: help and version of the program.
 */
#include "cli/lib/session.h"

enum {
	WORDS_MAX = 3 /* words in the name of a command */
};

static int
help(struct session *s, struct slu_err *err)
{
	char option[] = "--help";
	char *words[WORDS_MAX + 2] = { NULL };

	(void)err;
	memcpy(words, s->words, (size_t)s->n_words * sizeof *words);
	words[s->n_words] = option;
	if (s->n_words == 0)
		puts(CLI_TITLE "\n");
	s->exit = cli_run(cli_commands, "sluice", s->n_words + 1, words);
	return 0;
}

const struct command cli_help = {
	.name = "help",
	.group = "Help",
	.summary = "print the help of a command",
	.usage = "[COMMAND...]",
	.text = "Prints the help of a command, or the list of commands. `sluice help queue set` is the\n"
		"same as `sluice queue set --help`.\n",
	.examples = "  sluice help\n  sluice help push\n  sluice help queue set\n",
	.words = { 0, WORDS_MAX },
	.run = help,
};

static int
version(struct session *s, struct slu_err *err)
{
	(void)err;
	puts(s->json ? "{\"version\":\"" SLUICE_VERSION "\"}" : "sluice " SLUICE_VERSION);
	return 0;
}

const struct command cli_version = {
	.name = "version",
	.group = "Help",
	.summary = "print the version of this program",
	.usage = "[options]",
	.text = "Prints the version of this program. `sluice status` prints the server's version.\n",
	.examples = "  sluice version\n",
	.options = CLI_JSON,
	.run = version,
};
