#include "cli/session.h"

#include "base/mem.h"
#include "cli/credentials.h"
#include "net/tls_context.h"

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

int
session_usage(struct session *s, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "sluice %s: ", s->command);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	s->exit = CLI_USAGE;
	return s->exit;
}

void
session_note(const struct session *s, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap); /* cut is fine */
	va_end(ap);
	fprintf(stderr, "sluice %s: %s\n", s->command, text); /* one write: threads */
}

int
session_fail(struct session *s, const struct slu_err *err)
{
	fprintf(stderr, "sluice %s: %s\n", s->command, err->text);
	s->exit = err->code == SLU_ENOTFOUND ? CLI_NOTHING : CLI_FAILED;
	return s->exit;
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

/* What was said, or the variable, or NULL. */
static const char *
or_variable(const char *said, const char *name)
{
	const char *const value = said ? said : getenv(name);

	return value && *value ? value : NULL;
}

static int
open_tls(struct session *s, struct slu_err *err)
{
	const struct tls_client_conf conf = { s->ca_file, s->cert, s->cert_key };

	return tls_context_client(&s->tls, &conf, err);
}

static int
connect_later(struct session *s, struct slu_err *err)
{
	const char *const server = or_variable(s->server, "SLUICE_SERVER");
	struct address address;
	int rc;

	s->ca_file = or_variable(s->ca_file, "SLUICE_CA_FILE");
	s->cert = or_variable(s->cert, "SLUICE_CERT");
	s->cert_key = or_variable(s->cert_key, "SLUICE_CERT_KEY");
	rc = address_parse(&address, server ? server : ADDRESS_DEFAULT, err);
	if (!rc && address.tls)
		rc = open_tls(s, err);
	if (!rc)
		rc = credentials_token(s->token_file, &s->token, err);
	if (rc) {
		tls_context_unref(s->tls);
		return rc;
	}
	address.context = s->tls;
	address.token = s->token;
	remote_init(&s->remote, &address, s->timeout, -1);
	s->opened = true;
	return 0;
}

bool
session_begin(struct session *s, const struct session_help *help, int *argc, char ***argv,
	      const struct arg *rows, size_t n)
{
	struct slu_err err;

	(*argc)--;
	(*argv)++;
	if (args_parse(argc, *argv, rows, n, &err)) {
		session_usage(s, "%s", err.text);
		return false;
	}
	if (s->help) {
		print_help(help, rows, n);
		s->exit = CLI_OK;
		return false;
	}
	if (*argc < help->min_words || *argc > help->max_words) {
		session_usage(s, "%s\nusage: sluice %s; see --help",
			      *argc < help->min_words ? "something is missing" : (*argv)[help->max_words],
			      help->usage);
		return false;
	}
	if (connect_later(s, &err)) {
		session_usage(s, "%s", err.text);
		return false;
	}
	return true;
}

int
session_end(struct session *s)
{
	if (s->opened)
		remote_release(&s->remote);
	s->opened = false;
	tls_context_unref(s->tls);
	s->tls = NULL;
	mem_free(s->token);
	s->token = NULL;
	if (fflush(stdout) != 0 || ferror(stdout)) {
		fprintf(stderr, "sluice %s: stdout: %m\n", s->command);
		s->exit = CLI_FAILED;
	}
	return s->exit;
}
