/*
 * completion.c - `sluice completion`: scripts that complete commands in a shell. Commands
 * come out of the table; options are asked of `sluice COMMAND --help` when they are wanted,
 * names of queues of the server, if there is one.
 */
#include "cli/cli.h"

#include "cli/session.h"

#include <string.h>

/* The names of `sluice topics`. A name that no queue can have is dropped, whatever server sent
 * it: it might do something in a shell. */
#define TOPICS "sed -n '2,$s/^\\([A-Za-z0-9._-][A-Za-z0-9._-]*\\) .*/\\1/p'"

/* --- bash ----------------------------------------------------------------------- */

static void
print_words(const struct command *table)
{
	for (const struct command *c = table; c->name; c++)
		printf("%s%s", c == table ? "" : " ", c->name);
}

static void
print_bash(void)
{
	puts("# bash completion for sluice; made by `sluice completion bash`\n"
	     "_sluice() {\n"
	     "\tlocal cur=${COMP_WORDS[COMP_CWORD]} words=() word\n"
	     "\tfor word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
	     "\t\t[[ $word == -* ]] || words+=(\"$word\")\n"
	     "\tdone\n"
	     "\tCOMPREPLY=()\n"
	     "\tlocal command=(\"${words[@]:0:1}\") all=()\n"
	     "\tcase ${words[0]} in");
	fputs("\t'') all=(", stdout);
	print_words(cli_commands);
	puts(") ;;");
	for (const struct command *c = cli_commands; c->name; c++) {
		if (!c->subs)
			continue;
		printf("\t%s)\n\t\tif [[ ${#words[@]} -eq 1 ]]; then\n\t\t\tall=(", c->name);
		print_words(c->subs);
		puts(")\n\t\telse\n\t\t\tcommand+=(\"${words[1]}\")\n\t\tfi ;;");
	}
	/* compgen -W would run $(...) in a name; so would the shell in what is completed. */
	puts("\tesac\n"
	     "\tif [[ $cur == -* && ${#command[@]} -gt 0 ]]; then\n"
	     "\t\tmapfile -t all < <(\"${COMP_WORDS[0]}\" \"${command[@]}\" --help 2>/dev/null | sed -n 's/^  \\(--[a-z-]*\\).*/\\1/p')\n"
	     "\telif [[ ${#all[@]} -eq 0 ]]; then\n"
	     "\t\tmapfile -t all < <(\"${COMP_WORDS[0]}\" topics --timeout 500ms 2>/dev/null | " TOPICS ")\n"
	     "\tfi\n"
	     "\tfor word in \"${all[@]}\"; do\n"
	     "\t\t[[ $word == \"$cur\"* ]] && COMPREPLY+=(\"$(printf %q \"$word\")\")\n"
	     "\tdone\n"
	     "}\n"
	     "complete -o default -F _sluice sluice");
}

/* --- zsh ------------------------------------------------------------------------ */

static void
print_described(const struct command *table, const char *name)
{
	printf("\tlocal -a %s=(\n", name);
	for (const struct command *c = table; c->name; c++)
		printf("\t\t'%s:%s'\n", c->name, c->summary);
	puts("\t)");
}

static void
print_zsh(void)
{
	puts("#compdef sluice\n"
	     "# zsh completion for sluice; made by `sluice completion zsh`\n"
	     "_sluice() {");
	print_described(cli_commands, "commands");
	for (const struct command *c = cli_commands; c->name; c++)
		if (c->subs)
			print_described(c->subs, c->name);
	puts("\tlocal -a command=(${words[2]})\n"
	     "\tif (( CURRENT == 2 )); then\n"
	     "\t\t_describe command commands\n"
	     "\t\treturn\n"
	     "\tfi\n"
	     "\tcase $command in");
	for (const struct command *c = cli_commands; c->name; c++)
		if (c->subs)
			printf("\t%s)\n\t\tif (( CURRENT == 3 )); then\n"
			       "\t\t\t_describe command %s\n\t\t\treturn\n\t\tfi\n"
			       "\t\tcommand+=(${words[3]}) ;;\n",
			       c->name, c->name);
	puts("\tesac\n"
	     "\tif [[ ${words[CURRENT]} == -* ]]; then\n"
	     "\t\tcompadd -- ${(f)\"$(sluice $command --help 2>/dev/null | sed -n 's/^  \\(--[a-z-]*\\).*/\\1/p')\"}\n"
	     "\telse\n"
	     "\t\tcompadd -- ${(f)\"$(sluice topics --timeout 500ms 2>/dev/null | " TOPICS ")\"}\n"
	     "\t\t_files\n"
	     "\tfi\n"
	     "}\n"
	     "if [[ ${funcstack[1]} == _sluice ]]; then\n"
	     "\t_sluice \"$@\"\n"
	     "else\n"
	     "\tcompdef _sluice sluice\n"
	     "fi");
}

/* --- fish ----------------------------------------------------------------------- */

static void
print_fish(void)
{
	puts("# fish completion for sluice; made by `sluice completion fish`\n"
	     "function __sluice_words\n"
	     "\tstring match -v -- '-*' (commandline -opc)[2..]\n"
	     "end\n"
	     "function __sluice_options\n"
	     "\tsluice (__sluice_words)[1..2] --help 2>/dev/null |"
	     " string replace -rf '^  (--[a-z-]+)(?: [A-Za-z0-9|.]+)? {2,}(.*)' '$1\\t$2'\n"
	     "\tor sluice (__sluice_words)[1] --help 2>/dev/null |"
	     " string replace -rf '^  (--[a-z-]+)(?: [A-Za-z0-9|.]+)? {2,}(.*)' '$1\\t$2'\n"
	     "end\n"
	     "function __sluice_queues\n"
	     "\tsluice topics --timeout 500ms 2>/dev/null | string replace -rf '^([A-Za-z0-9._-]+) +[0-9].*' '$1'\n"
	     "end\n"
	     "complete -c sluice -n 'test (count (__sluice_words)) -ge 1; and string match -q -- \"-*\" (commandline -ct)' -a '(__sluice_options)'\n"
	     "complete -c sluice -n 'test (count (__sluice_words)) -ge 1' -a '(__sluice_queues)'");
	for (const struct command *c = cli_commands; c->name; c++) {
		printf("complete -c sluice -f -n 'test (count (__sluice_words)) -eq 0' -a %s -d '%s'\n",
		       c->name, c->summary);
		for (const struct command *sub = c->subs; sub && sub->name; sub++)
			printf("complete -c sluice -f -n 'string join -- \" \" (__sluice_words) | string match -q -- %s' -a %s -d '%s'\n",
			       c->name, sub->name, sub->summary);
	}
}

/* --- the command ---------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*print)(void);
} shells[] = {
	{ "bash", print_bash },
	{ "zsh", print_zsh },
	{ "fish", print_fish },
};

int
cli_completion(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "completion bash|zsh|fish",
		.text = "Print a script that completes commands, options and names of queues. `make\n"
			"install` puts it where the shells look for it.\n",
		.examples = "  source <(sluice completion bash)\n"
			    "  sluice completion zsh > ~/.zfunc/_sluice\n"
			    "  sluice completion fish > ~/.config/fish/completions/sluice.fish\n",
		.min_words = 1,
		.max_words = 1,
	};
	struct session s = SESSION("completion");
	const struct arg args[] = { { "--help", ARG_FLAG, &s.help, "this text" } };
	bool known = false;

	if (!session_begin(&s, &help, &argc, &argv, args, COUNT(args)))
		return s.exit;
	for (size_t i = 0; i < COUNT(shells); i++) {
		if (strcmp(argv[0], shells[i].name) != 0)
			continue;
		shells[i].print();
		known = true;
	}
	if (!known)
		session_usage(&s, "%s: expected bash, zsh or fish", argv[0]);
	return session_end(&s);
}
