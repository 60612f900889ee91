/*
 * help.c - `sluice help` and `sluice version`.
 */
#include "cli/session.h"

enum {
	WORDS_MAX = 3 /* of the name of a command */
};

int
cli_help(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "help [COMMAND...]",
		.text = "The help of a command, or all commands. `sluice help queue set` is the same as\n"
			"`sluice queue set --help`.\n",
		.examples = "  sluice help\n  sluice help push\n  sluice help queue set\n",
		.max_words = WORDS_MAX,
	};
	struct session s = SESSION("help");
	const struct arg args[] = { { "-h, --help", ARG_FLAG, &s.help, "this text" } };
	char option[] = "--help";
	char *words[WORDS_MAX + 1];

	s.local = true;
	if (!session_begin(&s, &help, &argc, &argv, args, COUNT(args)))
		return s.exit;
	memcpy(words, argv, (size_t)argc * sizeof *words);
	words[argc] = option;
	if (argc == 0)
		puts(CLI_TITLE "\n");
	s.exit = cli_run(cli_commands, "sluice", argc + 1, words);
	return session_end(&s);
}

int
cli_version(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "version [options]",
		.text = "The version of this program. `sluice status` has that of the server.\n",
		.examples = "  sluice version\n",
	};
	struct session s = SESSION("version");
	const struct arg args[] = { SESSION_OUTPUT_ROWS(&s) };

	s.local = true;
	if (!session_begin(&s, &help, &argc, &argv, args, COUNT(args)))
		return s.exit;
	puts(s.json ? "{\"version\":\"" SLUICE_VERSION "\"}" : "sluice " SLUICE_VERSION);
	return session_end(&s);
}
