#include "cli/session.h"

#include "base/mem.h"
#include "cli/credentials.h"
#include "cli/escape.h"
#include "client/address.h"
#include "client/client.h"

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

/* Nobody listens there: that may be a restart, or a wrong address, which is to be told soon. */
#define ABSENCE SLU_SEC

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

/* The text may be the server's. One write: threads say things, too. */
static void
say(const struct session *s, const char *text)
{
	struct buf shown;

	buf_init(&shown, SIZE_MAX);
	escape_put(&shown, slice_of(text), true);
	fprintf(stderr, "sluice %s: %s\n", s->command, buf_str(&shown));
	buf_release(&shown);
}

void
session_note(const struct session *s, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap); /* cut is fine */
	va_end(ap);
	say(s, text);
}

int
session_fail(struct session *s, const struct slu_err *err)
{
	say(s, err->text);
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

static int
connect_later(struct session *s, struct slu_err *err)
{
	const char *const server = session_or_variable(s->server, "SLUICE_SERVER");
	const char *const space = session_or_variable(s->space, "SLUICE_NAMESPACE");
	int rc;

	s->server = server ? server : ADDRESS_DEFAULT;
	s->space = space ? space : "default";
	s->ca_file = session_or_variable(s->ca_file, "SLUICE_CA_FILE");
	s->cert = session_or_variable(s->cert, "SLUICE_CERT");
	s->cert_key = session_or_variable(s->cert_key, "SLUICE_CERT_KEY");
	show_server(s);
	rc = credentials_token(s->token_file, &s->token, err);
	return rc ? rc : open_client(s, err);
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
		mem_free(s->token);
		session_usage(s, "%s", err.text);
		return false;
	}
	return true;
}

int
session_end(struct session *s)
{
	query_release(&s->query);
	slu_client_free(s->client);
	s->client = NULL;
	mem_free(s->token);
	s->token = NULL;
	if (fflush(stdout) != 0 || ferror(stdout)) {
		fprintf(stderr, "sluice %s: stdout: %m\n", s->command);
		s->exit = CLI_FAILED;
	}
	return s->exit;
}
