/*
 * session.h - what every command shares: its options, its help, its connection, and how it
 * reports errors. session_run does all of it around the function of a command (cli.h); the state of
 * the command begins with a struct session.
 *
 * The server comes from --server, or SLUICE_SERVER, or the context (context.h), or is
 * 127.0.0.1:7171. The namespace comes from --namespace, or SLUICE_NAMESPACE, or the context, or is
 * "default".
 */
#ifndef CLI_LIB_SESSION_H
#define CLI_LIB_SESSION_H

#include "cli/lib/args.h"
#include "cli/cli.h"
#include "cli/lib/context.h"
#include "cli/lib/query.h"

#include <sluice/client.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct session {
	const struct command *command;
	const char *server;
	const char *space;    /* the namespace */
	const char *ca_file;  /* TLS: the CAs that the server's certificate is checked against; NULL = the system's */
	const char *cert;     /* TLS: the client's certificate; NULL = none */
	const char *cert_key; /* TLS: the key of the certificate; NULL = none */
	const char *token_file;
	const char *context_name; /* --context */
	slu_time timeout;         /* how long an answer may take */
	bool impatient;           /* do not wait for a server that is away or starts */
	bool json;
	bool yes;
	bool help;
	char **words; /* the words that are not options, ended by NULL */
	int n_words;

	struct contexts contexts;
	const struct context *context; /* the context in use; NULL = none */
	bool has_space;                /* the namespace was set, it is not the default */
	char *token;                   /* NULL = none */
	char shown[256];               /* the server, for messages */
	char engine_option[128];       /* "--engine log|memory|redis" */
	struct slu_client *client;
	struct cli_query query;
	int exit; /* the exit code of the command: enum cli_exit */
};

enum {
	SESSION_ARGS_MAX = 48, /* options of a command, with the shared ones */
	SESSION_WORD = 64
};

/* Reads the options, prints the help or connects, runs the command, reports its error and makes sure
 * that stdout took everything. argv: the words after the name. Returns an enum cli_exit. */
int session_run(const struct command *c, int argc, char **argv);

/* The state of a command before its options are read (NULL: out of memory), and all its options.
 * session_close frees it and returns the exit code. */
struct session *session_new(const struct command *c, struct arg rows[static SESSION_ARGS_MAX], size_t *n);
int session_close(struct session *s);

/* Finds server, namespace and credentials, and creates the client. */
int session_connect(struct session *s, struct slu_err *err);

/* Connects to another server, with the same credentials. Refuses to send them without TLS if the
 * first server had TLS. */
int session_reconnect(struct session *s, const char *server, struct slu_err *err);

/* Report an error on stderr (report.h), set s->exit and return 0, so that a command may end with
 * `return session_usage(...)`. fail: CLI_NOTHING for SLU_ENOTFOUND, else CLI_FAILED; usage: CLI_USAGE;
 * nothing: CLI_NOTHING. */
int session_fail(struct session *s, const struct slu_err *err);
int session_usage(struct session *s, const char *fmt, ...) SLU_PRINTF(2, 3);
int session_nothing(struct session *s, const char *fmt, ...) SLU_PRINTF(2, 3);

/* Prints a note on stderr. The exit code stays. */
void session_note(const struct session *s, const char *fmt, ...) SLU_PRINTF(2, 3);

/* Asks the user on a terminal. Returns true without asking if --yes is set. Without a terminal and --yes,
 * and if the user says no, returns false and sets s->exit. */
bool session_confirm(struct session *s, const char *fmt, ...) SLU_PRINTF(2, 3);

/* Calls fn for each word and reports each error. Returns 0. */
int session_each(struct session *s, int (*fn)(struct session *s, const char *word, struct slu_err *err),
		 struct slu_err *err);

/* Posts a JSON object of texts (query_post_texts). A path that ends in / gets the last word of the command:
 * "/v1/admin/queue/" of `queue pause` is "/v1/admin/queue/pause". */
int session_post(struct session *s, const char *path, const char *const *pairs, struct slice *out, struct slu_err *err);

/* The same, and prints the answer if --json is set. */
int session_act(struct session *s, const char *path, const char *const *pairs, struct slu_err *err);

/* Prints an answer as JSON, or as facts (facts.h). */
int session_print(const struct session *s, struct slice answer, struct slu_err *err);

/* The name of word i in the usage ("QUEUE", "bash|zsh|fish"); "" if the usage has no such word. */
void session_usage_word(const struct command *c, int i, char out[static SESSION_WORD]);

/* The value of an option, or of the variable `name` if the option is not set; NULL if both are missing. */
const char *session_or_variable(const char *said, const char *name);

/* Appends all bytes of a file to out, or stops when out has more than max. name: for errors. */
int session_read(int fd, const char *name, size_t max, struct buf *out, struct slu_err *err);

/* Blocks SIGINT, SIGTERM and SIGHUP. Returns a descriptor that reads them, or -1. */
int session_signals(void);

/* May the stream have colours? Yes, if it is a terminal and NO_COLOR is not set. */
bool session_colours(FILE *out);

#endif
