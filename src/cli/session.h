/*
 * session.h - what every command that speaks to a server shares: its options, its
 * help, its connection, and how it fails.
 *
 *         struct session s = SESSION("push");
 *         const struct arg rows[] = { { "--key", ... }, SESSION_ROWS(&s) };
 *
 *         if (!session_begin(&s, &help, &argc, &argv, rows, COUNT(rows)))
 *                 return s.exit;
 *         ...
 *         return session_end(&s);
 *
 * The server is that of --server, or SLUICE_SERVER, or of the context (context.h), or 127.0.0.1:7171. The
 * namespace is that of --namespace, or SLUICE_NAMESPACE, or of the context, or "default".
 */
#ifndef CLI_SESSION_H
#define CLI_SESSION_H

#include "cli/args.h"
#include "cli/cli.h"
#include "cli/context.h"
#include "cli/query.h"

#include <sluice/client.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct session {
	const char *command; /* "push" */
	const char *server;
	const char *space;                     /* the namespace; session_begin resolves it */
	const char *ca_file, *cert, *cert_key; /* of TLS; NULL: none */
	const char *token_file;
	slu_time timeout;
	bool impatient;           /* a server that is away or starts is not waited for: the command sees to that */
	const char *context_name; /* of --context */
	bool local;               /* the command needs no server and no context */
	bool json;
	bool help;

	struct contexts contexts;
	const struct context *context; /* the one in use; NULL: none */
	bool has_space;                /* the namespace was named, it is not the default */
	char *token;                   /* NULL: none */
	char shown[256];               /* the server, as messages show it */
	struct slu_client *client;
	struct query query;
	int exit; /* what the command exits with: enum cli_exit */
};

/* clang-format off */
#define SESSION(name) { .command = (name), .timeout = 30 * SLU_SEC }

/* The rows that every command ends with. */
#define SESSION_ROWS(s) SESSION_NAMESPACE_ROW(s), SESSION_SERVER_ROWS(s)
#define SESSION_NAMESPACE_ROW(s) \
	{ "-n, --namespace NAMESPACE", ARG_TEXT, &(s)->space, "whose queue it is (SLUICE_NAMESPACE, default)" }

/* Without a namespace: for what is about the whole server. */
#define SESSION_SERVER_ROWS(s) \
	SESSION_CONNECTION_ROWS(s), \
	{ "--timeout", ARG_TIME, &(s)->timeout, "how long an answer may take (30s)" }, \
	SESSION_OUTPUT_ROWS(s)

/* The parts, for a command that uses --timeout for something else. */
#define SESSION_CONNECTION_ROWS(s) \
	{ "-s, --server ADDRESS", ARG_TEXT, &(s)->server, \
	  "host:port, https://host:port or unix:PATH (SLUICE_SERVER, 127.0.0.1:7171)" }, \
	{ "--ca-file FILE", ARG_TEXT, &(s)->ca_file, \
	  "https: who may have signed the server's certificate (SLUICE_CA_FILE, the system's)" }, \
	{ "--cert FILE", ARG_TEXT, &(s)->cert, \
	  "https: the certificate to show to the server (SLUICE_CERT)" }, \
	{ "--cert-key FILE", ARG_TEXT, &(s)->cert_key, "https: its key (SLUICE_CERT_KEY)" }, \
	{ "--token-file FILE", ARG_TEXT, &(s)->token_file, \
	  "the token to show (SLUICE_TOKEN, SLUICE_TOKEN_FILE)" }, \
	{ "--context CONTEXT", ARG_TEXT, &(s)->context_name, \
	  "server, namespace and credentials by name (SLUICE_CONTEXT, the current one)" }
#define SESSION_OUTPUT_ROWS(s) \
	{ "--json", ARG_FLAG, &(s)->json, "print JSON, for scripts" }, \
	{ "-h, --help", ARG_FLAG, &(s)->help, "this text" }
/* clang-format on */

struct session_help {
	const char *usage;    /* "push QUEUE [PAYLOAD...] [options]" */
	const char *text;     /* what it does */
	const char *examples; /* lines, each with two spaces before it */
	int min_words, max_words;
};

enum {
	SESSION_ANY = 1 << 20, /* max_words: no limit */
	SESSION_WORD = 64
};

/* Takes the options off and the command's name; the words are left in argv. False: the
 * command is done (help, or a wrong call) and s->exit says how. */
bool session_begin(struct session *s, const struct session_help *help, int *argc,
		   char ***argv, const struct arg *rows, size_t n);

/* Report an error on stderr (report.h) and set s->exit, which is also returned. fail: CLI_NOTHING for
 * SLU_ENOTFOUND, else CLI_FAILED; usage: CLI_USAGE; nothing: CLI_NOTHING, there is no such thing. */
int session_fail(struct session *s, const struct slu_err *err);
int session_usage(struct session *s, const char *fmt, ...) SLU_PRINTF(2, 3);
int session_nothing(struct session *s, const char *fmt, ...) SLU_PRINTF(2, 3);

/* Something to know that is no failure, on stderr. */
void session_note(const struct session *s, const char *fmt, ...) SLU_PRINTF(2, 3);

/* Close, make sure that stdout took everything. Returns s->exit. */
int session_end(struct session *s);

/* For complete.h: find server, namespace and credentials, and make the client. */
int session_connect(struct session *s, struct slu_err *err);

/* What the usage calls word i ("QUEUE", "bash|zsh|fish"); "": it has no such word. */
void session_usage_word(const struct session *s, const struct session_help *help, int i,
			char out[static SESSION_WORD]);

/* What an option said, or else the variable; NULL: neither says anything. */
const char *session_or_variable(const char *said, const char *name);

/* Colours belong on this stream: it is a terminal and NO_COLOR is not set. */
bool session_colours(FILE *out);

#endif
