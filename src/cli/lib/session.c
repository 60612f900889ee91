#include "cli/lib/session.h"

#include "base/mem.h"
#include "cli/lib/credentials.h"
#include "cli/lib/facts.h"
#include "cli/lib/report.h"
#include "client/address.h"
#include "client/client.h"
#include "engine/engine.h"

#include <assert.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* How long to wait for a server that refuses connections: it may start again, or the address is wrong. */
#define ABSENCE SLU_SEC
#define TIMEOUT (30 * SLU_SEC)

enum {
	TEXT_MAX = 512 /* bytes of a message; a longer text is cut */
};

static int
report(const struct session *s, int code, int exit, const char *fmt, va_list ap)
{
	char text[TEXT_MAX];

	(void)vsnprintf(text, sizeof text, fmt, ap);
	return cli_report(s->command->name, s->json, code, exit, text);
}

int
session_usage(struct session *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	s->exit = report(s, SLU_EINVAL, CLI_USAGE, fmt, ap);
	va_end(ap);
	return 0;
}

int
session_nothing(struct session *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	s->exit = report(s, SLU_ENOTFOUND, CLI_NOTHING, fmt, ap);
	va_end(ap);
	return 0;
}

void
session_note(const struct session *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)report(s, SLU_OK, CLI_OK, fmt, ap);
	va_end(ap);
}

int
session_fail(struct session *s, const struct slu_err *err)
{
	s->exit = cli_report(s->command->name, s->json, err->code,
			     err->code == SLU_ENOTFOUND ? CLI_NOTHING : CLI_FAILED, err->text);
	return 0;
}

bool
session_confirm(struct session *s, const char *fmt, ...)
{
	char question[TEXT_MAX], answer[16] = "";
	va_list ap;

	if (s->yes)
		return true;
	va_start(ap, fmt);
	(void)vsnprintf(question, sizeof question, fmt, ap); /* cut is fine */
	va_end(ap);
	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
		session_usage(s, "%s? Use --yes: there is no terminal to ask on", question);
		return false;
	}
	fprintf(stderr, "%s? [y/N] ", question);
	if (fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
		return true;
	session_note(s, "nothing was changed");
	s->exit = CLI_FAILED;
	return false;
}

int
session_read(int fd, const char *name, size_t max, struct buf *out, struct slu_err *err)
{
	char room[64 * 1024];
	ssize_t n = 1;

	while (n > 0 && out->n <= max) {
		n = read(fd, room, sizeof room);
		if (n > 0)
			buf_put(out, room, (size_t)n);
	}
	if (n < 0)
		return slu_fail(err, SLU_EFAILED, "%s: %m", name);
	return out->failed ? slu_fail(err, SLU_ENOMEM, "%s: out of memory", name) : 0;
}

int
session_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL); /* cannot fail */
	return signalfd(-1, &set, SFD_CLOEXEC);
}

bool
session_colours(FILE *out)
{
	const char *no = getenv("NO_COLOR");

	return isatty(fileno(out)) && !(no && *no);
}

int
session_each(struct session *s, int (*fn)(struct session *s, const char *word, struct slu_err *err),
	     struct slu_err *err)
{
	for (int i = 0; i < s->n_words; i++)
		if (fn(s, s->words[i], err))
			session_fail(s, err);
	return 0;
}

int
session_post(struct session *s, const char *path, const char *const *pairs, struct slice *out, struct slu_err *err)
{
	query_path(&s->query, path);
	if (path[strlen(path) - 1] == '/')
		buf_puts(&s->query.path, command_word(s->command));
	return query_post_texts(&s->query, pairs, out, err);
}

int
session_act(struct session *s, const char *path, const char *const *pairs, struct slu_err *err)
{
	struct slice answer;
	const int rc = session_post(s, path, pairs, &answer, err);

	if (!rc && s->json)
		query_print(answer);
	return rc;
}

int
session_print(const struct session *s, struct slice answer, struct slu_err *err)
{
	if (!s->json)
		return facts_print(answer, session_colours(stdout), err);
	query_print(answer);
	return 0;
}

const char *
session_or_variable(const char *said, const char *name)
{
	const char *const value = said ? said : getenv(name);

	return value && *value ? value : NULL;
}

/* Shows one server without http://, and several as they were given. */
static void
show_server(struct session *s)
{
	struct address address;

	if (address_parse(&address, s->server, NULL) == 0)
		(void)snprintf(s->shown, sizeof s->shown, "%s", address.text);
	else
		(void)snprintf(s->shown, sizeof s->shown, "%s", s->server); /* cut is fine */
}

static int
open_client(struct session *s, struct slu_err *err)
{
	const struct slu_client_config config = {
		SLU_OPTIONS_INIT(struct slu_client_config),
		.servers = s->server,
		.space = s->space,
		.token = s->token,
		.ca_file = s->ca_file,
		.cert = s->cert,
		.cert_key = s->cert_key,
		.timeout = s->timeout > 0 ? s->timeout : 1,
		.patience = s->timeout > 0 && !s->impatient ? s->timeout : -1,
	};
	const int rc = slu_client_new(&s->client, &config, err);

	if (rc)
		return rc;
	client_set_absence(s->client, ABSENCE);
	query_init(&s->query, s->client);
	return 0;
}

/* --- server, namespace and credentials ------------------------------------------- */

/* CONTEXT-2: uses the named context, or the current one if no server is named. */
static int
find_context(struct session *s, struct slu_err *err)
{
	const char *const named = session_or_variable(s->context_name, "SLUICE_CONTEXT");
	struct context *found = NULL;
	int rc;

	if (!named && session_or_variable(s->server, "SLUICE_SERVER"))
		return 0;
	rc = contexts_load(&s->contexts, err);
	if (!rc && (named || s->contexts.current[0]))
		rc = contexts_find(&s->contexts, named ? named : s->contexts.current, &found, err);
	s->context = found;
	return rc;
}

/* CONTEXT-1 without the default: returns NULL instead. */
static const char *
resolve(const struct session *s, const char *said, const char *variable, enum context_field f)
{
	const char *const value = session_or_variable(said, variable);

	return value || !s->context ? value : s->context->values[f];
}

static int
find_token(struct session *s, struct slu_err *err)
{
	const struct context *const c = s->context;
	int rc = credentials_token(s->token_file, &s->token, err);

	if (rc || s->token || !c)
		return rc;
	if (c->values[CONTEXT_TOKEN_FILE])
		return credentials_file(c->values[CONTEXT_TOKEN_FILE], &s->token, err);
	s->token = c->values[CONTEXT_TOKEN] ? mem_strdup(c->values[CONTEXT_TOKEN]) : NULL;
	return c->values[CONTEXT_TOKEN] && !s->token ? slu_fail(err, SLU_ENOMEM, "out of memory") : 0;
}

int
session_connect(struct session *s, struct slu_err *err)
{
	int rc = find_context(s, err);

	if (rc)
		return rc;
	s->server = resolve(s, s->server, "SLUICE_SERVER", CONTEXT_SERVER);
	s->space = resolve(s, s->space, "SLUICE_NAMESPACE", CONTEXT_NAMESPACE);
	s->has_space = s->space != NULL;
	s->server = s->server ? s->server : ADDRESS_DEFAULT;
	s->space = s->space ? s->space : "default";
	s->ca_file = resolve(s, s->ca_file, "SLUICE_CA_FILE", CONTEXT_CA_FILE);
	s->cert = resolve(s, s->cert, "SLUICE_CERT", CONTEXT_CERT);
	s->cert_key = resolve(s, s->cert_key, "SLUICE_CERT_KEY", CONTEXT_CERT_KEY);
	show_server(s);
	rc = find_token(s, err);
	return rc ? rc : open_client(s, err);
}

int
session_reconnect(struct session *s, const char *server, struct slu_err *err)
{
	struct address before, next;
	int rc = address_parse(&next, server, err);

	if (rc)
		return rc;
	if (address_parse(&before, s->server, NULL) == 0 && before.tls && !next.tls)
		return slu_fail(err, SLU_EFORBIDDEN, "%s has no TLS: your credentials are not sent there", server);
	query_release(&s->query);
	slu_client_free(s->client);
	s->client = NULL;
	s->server = server;
	show_server(s);
	rc = open_client(s, err);
	s->server = s->shown; /* `server` may go */
	return rc;
}

/* --- words ---------------------------------------------------------------------- */

/* "[ID...]" becomes ID */
static void
bare_word(const char *p, size_t n, char out[static SESSION_WORD])
{
	if (n > 0 && p[0] == '[')
		p++, n--;
	while (n > 0 && (p[n - 1] == ']' || p[n - 1] == '.'))
		n--;
	(void)snprintf(out, SESSION_WORD, "%.*s", (int)n, p);
}

/* The next word of a usage that is neither an option nor its value; n 0: no more. */
static struct slice
next_word(const char **usage)
{
	bool is_value = false;

	for (;;) {
		const char *const p = *usage + strspn(*usage, " ");
		const struct slice word = { p, strcspn(p, " \n") };
		const bool is_option = word.n > 0 && p[0] == '-' && !slice_eq(word, SLICE("--"));

		*usage = p + word.n;
		if (word.n == 0 || (!is_value && p[0] != '-' && !slice_eq(word, SLICE("[options]"))))
			return word;
		is_value = is_option;
	}
}

static bool
repeats(struct slice word)
{
	return memmem(word.p, word.n, "...", 3);
}

void
session_usage_word(const struct command *c, int i, char out[static SESSION_WORD])
{
	const char *usage = c->usage;
	struct slice word = next_word(&usage);

	while (word.n > 0 && i-- > 0 && !repeats(word))
		word = next_word(&usage);
	bare_word(word.p, word.n, out);
}

/* The fewest and the most words of a command. */
static void
count_words(const struct command *c, int out[static 2])
{
	const char *usage = c->usage;

	memcpy(out, c->words, sizeof c->words);
	if (out[1])
		return;
	for (struct slice word = next_word(&usage); word.n > 0; word = next_word(&usage)) {
		out[0] += word.p[0] != '[';
		out[1] += repeats(word) ? CLI_ANY : 1;
	}
}

static int
wrong_words(struct session *s, struct slu_err *err)
{
	const struct command *const c = s->command;
	char form[SESSION_WORD];
	int rc = 0, words[2];

	count_words(c, words);
	if (s->n_words < words[0]) {
		session_usage_word(c, s->n_words, form);
		return slu_fail(err, SLU_EINVAL, "missing %s\nusage: sluice %s %s", form, c->name, c->usage);
	}
	if (s->n_words > words[1])
		return slu_fail(err, SLU_EINVAL, "unexpected word: %s\nusage: sluice %s %s", s->words[words[1]],
				c->name, c->usage);
	for (int i = 0; i < s->n_words && !rc; i++) {
		session_usage_word(c, i, form);
		rc = args_check_form("word", form, s->words[i], err);
	}
	return rc;
}

/* --- the options that commands share ---------------------------------------------- */

/* clang-format off */
static const struct {
	unsigned option; /* enum cli_options; 0: every command has it */
	struct arg row;
} shared[] = {
	{ CLI_YES,        { "-y, --yes", ARG_FLAG, AT(session, yes), "do not ask" } },
	{ CLI_NAMESPACE,  { "-n, --namespace NAMESPACE", ARG_TEXT, AT(session, space), "the namespace (SLUICE_NAMESPACE, default)" } },
	{ CLI_CONNECTION, { "-s, --server ADDRESS", ARG_TEXT, AT(session, server), "host:port, https://host:port or unix:PATH; several with commas (SLUICE_SERVER, 127.0.0.1:7171)" } },
	{ CLI_CONNECTION, { "--ca-file FILE", ARG_TEXT, AT(session, ca_file), "https: CAs that the server's certificate is checked against (SLUICE_CA_FILE, the system's)" } },
	{ CLI_CONNECTION, { "--cert FILE", ARG_TEXT, AT(session, cert), "https: certificate of this client (SLUICE_CERT)" } },
	{ CLI_CONNECTION, { "--cert-key FILE", ARG_TEXT, AT(session, cert_key), "https: key of the certificate (SLUICE_CERT_KEY)" } },
	{ CLI_CONNECTION, { "--token-file FILE", ARG_TEXT, AT(session, token_file), "file with the token (SLUICE_TOKEN, SLUICE_TOKEN_FILE)" } },
	{ CLI_CONNECTION, { "--context CONTEXT", ARG_TEXT, AT(session, context_name), "use this context: server, namespace, credentials (SLUICE_CONTEXT, the current one)" } },
	{ CLI_TIMEOUT,    { "--timeout", ARG_TIME, AT(session, timeout), "how long an answer may take (30s)" } },
	{ CLI_JSON,       { "--json", ARG_FLAG, AT(session, json), "print JSON, for scripts" } },
	{ 0,              { "-h, --help", ARG_FLAG, AT(session, help), "print this help" } },
};
/* clang-format on */

/* The row of an option with the form ENGINE, which stands for the engines of the server. */
static struct arg
own_row(struct session *s, const struct arg *row)
{
	static const char form[] = "--engine ENGINE";
	char names[96];
	struct arg out = *row;

	if (strcmp(row->name, form) != 0)
		return out;
	(void)snprintf(s->engine_option, sizeof s->engine_option, "--engine %s",
		       engine_names(engine_rows, "|", names, sizeof names)); /* fits */
	out.name = s->engine_option;
	return out;
}

struct session *
session_new(const struct command *c, struct arg rows[static SESSION_ARGS_MAX], size_t *n)
{
	struct session *s = mem_zalloc(c->size ? c->size : sizeof *s);

	*n = 0;
	if (!s)
		return NULL;
	if (c->defaults)
		memcpy(s, c->defaults, c->size);
	for (const struct arg *own = c->args; own && own->name; own++)
		rows[(*n)++] = own_row(s, own);
	for (size_t i = 0; i < COUNT(shared); i++)
		if (!shared[i].option || shared[i].option & c->options)
			rows[(*n)++] = shared[i].row;
	assert(*n <= SESSION_ARGS_MAX);
	s->command = c;
	s->timeout = s->timeout ? s->timeout : TIMEOUT;
	return s;
}

static void
print_help(const struct command *c, const struct arg *rows, size_t n)
{
	printf("usage: sluice %s %s\n\n", c->name, c->usage);
	puts(c->text);
	if (c->list)
		c->list(stdout);
	args_help(rows, n, stdout);
	printf("\nexamples:\n%s", c->examples);
}

/* Runs the command after its options are read. */
static void
run(struct session *s)
{
	struct slu_err err = { 0 };

	if (wrong_words(s, &err))
		session_usage(s, "%s; see `sluice %s --help`", err.text, s->command->name);
	else if (s->command->options & CLI_CONNECTION && session_connect(s, &err))
		session_usage(s, "%s", err.text);
	else if (s->command->each)
		(void)session_each(s, s->command->each, &err);
	else if (s->command->run(s, &err))
		session_fail(s, &err);
}

int
session_run(const struct command *c, int argc, char **argv)
{
	struct arg rows[SESSION_ARGS_MAX];
	size_t n;
	struct session *const s = session_new(c, rows, &n);
	struct slu_err err;

	if (!s)
		return cli_report(c->name, false, SLU_ENOMEM, CLI_FAILED, "out of memory");
	if (args_parse(&argc, argv, rows, n, s, &err)) {
		s->json = s->json || args_have_json(argc, argv);
		session_usage(s, "%s", err.text);
	} else if (s->help) {
		print_help(c, rows, n);
	} else {
		argv[argc] = NULL; /* the word was an option */
		s->words = argv;
		s->n_words = argc;
		run(s);
	}
	return session_close(s);
}

int
session_close(struct session *s)
{
	struct slu_err err;
	int exit;

	query_release(&s->query);
	slu_client_free(s->client);
	mem_free(s->token);
	contexts_release(&s->contexts);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		slu_fail(&err, SLU_EFAILED, "stdout: %m");
		session_fail(s, &err);
	}
	exit = s->exit;
	mem_free(s);
	return exit;
}
