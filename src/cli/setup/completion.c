/*
 * completion.c - `sluice completion`: scripts that complete words in a shell. The scripts for sluice call
 * `sluice --complete` (complete.h) each time. The scripts for sluiced contain its options and their
 * values, from the table of its settings.
 */
#include "cli/cli.h"

#include "cli/lib/session.h"
#include "conf/options.h"

#include <stdlib.h>

/* --- sluice --------------------------------------------------------------------- */

static const char bash_sluice[] =
	"# bash completion for sluice; made by `sluice completion bash`\n"
	"_sluice() {\n"
	"\tlocal word\n"
	"\tCOMPREPLY=()\n"
	"\twhile IFS=$'\\t' read -r word _; do\n"
	"\t\tCOMPREPLY+=(\"$word\")\n"
	"\t\t[[ $word != *= ]] || compopt -o nospace 2>/dev/null\n"
	"\tdone < <(\"${COMP_WORDS[0]}\" --complete \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
	"}\n"
	"complete -o default -F _sluice sluice\n";

static const char zsh_sluice[] =
	"#compdef sluice\n"
	"# zsh completion for sluice; made by `sluice completion zsh`\n"
	"_sluice() {\n"
	"\tlocal -a all open\n"
	"\tlocal line\n"
	"\tfor line in \"${(@f)$(sluice --complete \"${(@)words[2,CURRENT]}\" 2>/dev/null)}\"; do\n"
	"\t\tif [[ $line == *= ]]; then\n"
	"\t\t\topen+=(\"$line\")\n"
	"\t\telif [[ $line == *$'\\t'* ]]; then\n"
	"\t\t\tall+=(\"${line%%$'\\t'*}:${line#*$'\\t'}\")\n"
	"\t\telif [[ -n $line ]]; then\n"
	"\t\t\tall+=(\"$line\")\n"
	"\t\tfi\n"
	"\tdone\n"
	"\t(( ! $#open )) || compadd -S '' -- \"${open[@]}\"\n"
	"\tif (( $#all )); then\n"
	"\t\t_describe sluice all\n"
	"\telif (( ! $#open )); then\n"
	"\t\t_files\n"
	"\tfi\n"
	"}\n"
	"if [[ ${funcstack[1]} == _sluice ]]; then\n"
	"\t_sluice \"$@\"\n"
	"else\n"
	"\tcompdef _sluice sluice\n"
	"fi\n";

static const char fish_sluice[] =
	"# fish completion for sluice; made by `sluice completion fish`\n"
	"function __sluice\n"
	"\tset -l last (commandline -ct)\n"
	"\tset -l all (sluice --complete (commandline -opc)[2..] \"$last\" 2>/dev/null)\n"
	"\tif set -q all[1]\n"
	"\t\tprintf '%s\\n' $all\n"
	"\telse\n"
	"\t\t__fish_complete_path \"$last\"\n"
	"\tend\n"
	"end\n"
	"complete -c sluice -f -a '(__sluice)'\n";

/* --- sluiced -------------------------------------------------------------------- */

/* An option of sluiced: "engine" and its form, "log|memory|redis". */
typedef void option_fn(const char *name, const char *form);

/* Calls fn for each option of `sluiced --help`: "  --engine log|memory|redis" */
static void
each_option(option_fn *fn)
{
	char *text = NULL, *rest = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return;
	conf_help(engine_rows, f);
	(void)fclose(f); /* writing to memory cannot fail */
	for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest)) {
		char *const name = strncmp(line, "  --", 4) == 0 ? line + 4 : NULL;
		char *const space = name ? strchr(name, ' ') : NULL;

		if (space)
			*space = '\0';
		if (name)
			fn(name, space ? space + 1 : "");
	}
	free(text);
}

static void
bash_name(const char *name, const char *form)
{
	(void)form;
	printf(" --%s", name);
}

/* Prints the listed values. Alternatives in capitals stand for any value. */
static void
print_choices(const char *form)
{
	char word[SESSION_WORD];

	for (const char *p = form; *p; p += *p == '|') {
		const size_t n = strcspn(p, "|");

		(void)snprintf(word, sizeof word, "%.*s", (int)n, p);
		if (n > 0 && !strpbrk(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
			printf(" %s", word);
		p += n;
	}
}

static void
bash_choices(const char *name, const char *form)
{
	if (!strchr(form, '|'))
		return;
	printf("\t--%s) all='", name);
	print_choices(form);
	puts("' ;;");
}

static void
print_bash_sluiced(void)
{
	puts("# bash completion for sluiced; made by `sluice completion bash sluiced`\n"
	     "_sluiced() {\n"
	     "\tlocal all= cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
	     "\tcase $prev in");
	each_option(bash_choices);
	fputs("\t*) [[ $cur != -* ]] || all='", stdout);
	each_option(bash_name);
	puts("' ;;\n"
	     "\tesac\n"
	     "\tmapfile -t COMPREPLY < <(compgen -W \"$all\" -- \"$cur\")\n"
	     "}\n"
	     "complete -o default -F _sluiced sluiced");
}

static void
zsh_option(const char *name, const char *form)
{
	if (strchr(form, '|')) {
		printf("\t\t'--%s:value:(", name);
		print_choices(form);
		puts(")' \\");
	} else {
		printf("\t\t'--%s%s' \\\n", name, *form ? ":value:_files" : "");
	}
}

static void
print_zsh_sluiced(void)
{
	puts("#compdef sluiced\n"
	     "# zsh completion for sluiced; made by `sluice completion zsh sluiced`\n"
	     "_sluiced() {\n"
	     "\t_arguments \\");
	each_option(zsh_option);
	puts("\n}\n"
	     "if [[ ${funcstack[1]} == _sluiced ]]; then\n"
	     "\t_sluiced \"$@\"\n"
	     "else\n"
	     "\tcompdef _sluiced sluiced\n"
	     "fi");
}

static void
fish_option(const char *name, const char *form)
{
	printf("complete -c sluiced -l %s", name);
	if (strchr(form, '|')) {
		fputs(" -x -a '", stdout);
		print_choices(form);
		fputs("'", stdout);
	} else if (*form) {
		fputs(" -r", stdout);
	}
	puts("");
}

static void
print_fish_sluiced(void)
{
	puts("# fish completion for sluiced; made by `sluice completion fish sluiced`");
	each_option(fish_option);
}

/* --- the command ---------------------------------------------------------------- */

static const struct {
	const char *name, *sluice;
	void (*print_sluiced)(void);
} shells[] = {
	{ "bash", bash_sluice, print_bash_sluiced },
	{ "zsh", zsh_sluice, print_zsh_sluiced },
	{ "fish", fish_sluice, print_fish_sluiced },
};

static int
run(struct session *s, struct slu_err *err)
{
	(void)err;
	for (size_t i = 0; i < COUNT(shells); i++) {
		if (strcmp(s->words[0], shells[i].name) != 0)
			continue;
		if (s->n_words > 1 && strcmp(s->words[1], "sluiced") == 0)
			shells[i].print_sluiced();
		else
			fputs(shells[i].sluice, stdout);
	}
	return 0;
}

const struct command cli_completion = {
	.name = "completion",
	.group = "Setup",
	.summary = "print a script that completes commands in a shell",
	.usage = "bash|zsh|fish [sluice|sluiced]",
	.text = "Prints a script that completes commands, options, their values, and names of queues\n"
		"and namespaces, for `sluice` or for the server, `sluiced`. `make install` installs both\n"
		"scripts for all shells.\n",
	.examples = "  source <(sluice completion bash)\n"
		    "  source <(sluice completion bash sluiced)\n"
		    "  sluice completion zsh > ~/.zfunc/_sluice\n"
		    "  sluice completion fish > ~/.config/fish/completions/sluice.fish\n",
	.run = run,
};
