#include "cli/session.h"

#include "base/mem.h"
#include "cli/complete.h"
#include "cli/credentials.h"
#include "cli/report.h"
#include "client/address.h"
#include "client/client.h"

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

/* Nobody listens there: that may be a restart, or a wrong address, which is to be told soon. */
#define ABSENCE SLU_SEC

enum {
	TEXT_MAX = 512 /* of a message; what is longer is cut */
};

static int
complain(struct session *s, int code, int exit, const char *text)
{
	s->exit = exit;
	return cli_report(s->command, s->json, code, exit, text);
}

int
session_usage(struct session *s, const char *fmt, ...)
{
	char text[TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return complain(s, SLU_EINVAL, CLI_USAGE, text);
}

int
session_nothing(struct session *s, const char *fmt, ...)
{
	char text[TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return complain(s, SLU_ENOTFOUND, CLI_NOTHING, text);
}

void
session_note(const struct session *s, const char *fmt, ...)
{
	char text[TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	(void)cli_report(s->command, s->json, SLU_OK, CLI_OK, text);
}

int
session_fail(struct session *s, const struct slu_err *err)
{
	return complain(s, err->code, err->code == SLU_ENOTFOUND ? CLI_NOTHING : CLI_FAILED,
			err->text);
}

bool
session_colours(FILE *out)
{
	const char *no = getenv("NO_COLOR");

	return isatty(fileno(out)) && !(no && *no);
}

static void
print_help(const struct session_help *help, const struct arg *rows, size_t n)
{
	printf("usage: sluice %s\n\n%s\n", help->usage, help->text);
	args_help(rows, n, stdout);
	printf("\nexamples:\n%s", help->examples);
}

const char *
session_or_variable(const char *said, const char *name)
{
	const char *const value = said ? said : getenv(name);

	return value && *value ? value : NULL;
}

/* One server without its http://; several as they were given. */
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

/* --- which server, and as whom --------------------------------------------------- */

/* C2: the one that was named, or the current one if no server was. */
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

/* C1, but for the default: NULL. */
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

/* --- words ---------------------------------------------------------------------- */

/* "[ID...]": ID */
static void
bare_word(const char *p, size_t n, char out[static SESSION_WORD])
{
	if (n > 0 && p[0] == '[')
		p++, n--;
	while (n > 0 && (p[n - 1] == ']' || p[n - 1] == '.'))
		n--;
	(void)snprintf(out, SESSION_WORD, "%.*s", (int)n, p);
}

/* Words of the usage that stand for none of the call. */
static bool
is_no_word(const char *p, size_t n)
{
	return (n > 1 && p[0] == '-' && p[1] == '-') || (n == 9 && memcmp(p, "[options]", n) == 0);
}

void
session_usage_word(const struct session *s, const struct session_help *help, int i,
		   char out[static SESSION_WORD])
{
	const char *p = help->usage + strlen(s->command);
	size_t n = 0;

	out[0] = '\0';
	for (p += strspn(p, " "); *p && *p != '\n'; p += n + strspn(p + n, " ")) {
		n = strcspn(p, " \n");
		if (is_no_word(p, n))
			continue;
		if (i == 0 || memmem(p, n, "...", 3)) {
			bare_word(p, n, out);
			return;
		}
		i--;
	}
}

/* False: the words do not fit the usage; s->exit is set. */
static bool
check_words(struct session *s, const struct session_help *help, int argc, char **argv)
{
	char form[SESSION_WORD];
	struct slu_err err;

	if (argc < help->min_words) {
		session_usage_word(s, help, argc, form);
		session_usage(s, "missing %s\nusage: sluice %s; see --help", form, help->usage);
		return false;
	}
	if (argc > help->max_words) {
		session_usage(s, "unexpected word: %s\nusage: sluice %s; see --help",
			      argv[help->max_words], help->usage);
		return false;
	}
	for (int i = 0; i < argc; i++) {
		session_usage_word(s, help, i, form);
		if (args_check_form("word", form, argv[i], &err)) {
			session_usage(s, "%s", err.text);
			return false;
		}
	}
	return true;
}

bool
session_begin(struct session *s, const struct session_help *help, int *argc, char ***argv,
	      const struct arg *rows, size_t n)
{
	struct slu_err err;

	(*argc)--;
	(*argv)++;
	if (*argc > 0 && strcmp(**argv, ARGS_COMPLETE) == 0) {
		complete_session(s, help, *argc - 1, *argv + 1, rows, n);
		(void)session_end(s);
		return false;
	}
	if (args_parse(argc, *argv, rows, n, &err)) {
		s->json = s->json || args_have_json(*argc, *argv);
		session_usage(s, "%s", err.text);
		return false;
	}
	if (s->help) {
		print_help(help, rows, n);
		s->exit = CLI_OK;
		return false;
	}
	if (!check_words(s, help, *argc, *argv))
		return false;
	if (s->local || session_connect(s, &err) == 0)
		return true;
	session_usage(s, "%s", err.text);
	(void)session_end(s);
	return false;
}

int
session_end(struct session *s)
{
	query_release(&s->query);
	slu_client_free(s->client);
	s->client = NULL;
	mem_free(s->token);
	s->token = NULL;
	contexts_release(&s->contexts);
	s->context = NULL;
	if (fflush(stdout) != 0 || ferror(stdout)) {
		struct slu_err err;

		slu_fail(&err, SLU_EFAILED, "stdout: %m");
		session_fail(s, &err);
	}
	return s->exit;
}
