/*
 * cli.h - the commands of `sluice`. A command is one row (struct command) and one function,
 * in one file; commands.c lists the rows. A command with commands of its own (`queue`) has a
 * table of them instead of a function. Parsing, help, completion and the manual page follow
 * from the row.
 *
 *         struct pull {
 *                 struct session s;
 *                 uint64_t limit;
 *         };
 *
 *         static int
 *         run(struct session *s, struct slu_err *err)
 *
 *         const struct command cli_pull = {
 *                 .name = "pull",
 *                 .usage = "QUEUE [options]",
 *                 .options = CLI_QUEUE,
 *                 CLI_STATE(struct pull, .limit = 1),
 *                 CLI_ARGS({ "--limit", ARG_COUNT, AT(pull, limit), "..." }),
 *                 .run = run,
 *                 ...
 *         };
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <sluice/err.h>

#include <stdio.h>

#define CLI_TITLE "sluice: a queue for work"

/* The exit code of a command. */
enum cli_exit {
	CLI_OK = 0,
	CLI_FAILED = 1,
	CLI_USAGE = 2,
	CLI_NOTHING = 3 /* no message, no such queue */
};

/* The options that a command has besides its own; all have --help. */
enum cli_options {
	CLI_JSON = 1 << 0,       /* --json */
	CLI_CONNECTION = 1 << 1, /* --server, credentials and --context; the command gets a client */
	CLI_TIMEOUT = 1 << 2,    /* --timeout */
	CLI_NAMESPACE = 1 << 3,  /* --namespace */
	CLI_YES = 1 << 4,        /* --yes, for session_confirm */
	CLI_SERVER = CLI_JSON | CLI_CONNECTION | CLI_TIMEOUT,
	CLI_QUEUE = CLI_SERVER | CLI_NAMESPACE
};

struct session;
struct rows_list;

enum {
	CLI_ANY = 1 << 20 /* words[1]: no limit */
};

/* s: begins the state of the command; it has the words that are not options. Returns 0, or the code
 * of an error that session_run reports. A function that reports by itself (session_usage,
 * session_nothing) returns 0. */
typedef int cli_fn(struct session *s, struct slu_err *err);

struct command {
	const char *name;    /* all words: "queue pause" */
	const char *summary; /* a line of the list of commands */
	const char *group;   /* the heading in the list of commands; NULL = none */

	const struct command *const *subs; /* commands of its own, ended by NULL; NULL = the members below are set */

	const char *usage;       /* what follows the name: "QUEUE [options]" */
	const char *text;        /* what the command does */
	const char *examples;    /* lines that begin with two spaces */
	void (*list)(FILE *out); /* prints more help after the text; NULL = none */

	/* Calls `each` with every value that the first word can have, for completions; NULL = any word. */
	void (*names)(void (*each)(void *arg, const char *name), void *arg);

	int words[2];           /* the fewest and the most words besides options; zeros = as usage shows */
	unsigned options;       /* enum cli_options */
	const struct arg *args; /* its own options, ended by a zeroed row; NULL = none */
	size_t size;            /* size of the state in bytes */
	const void *defaults;   /* the initial state; NULL = zeros */
	cli_fn *run;
	const struct rows_list *rows; /* for rows_run: the list to print (lib/rows.h) */

	/* Instead of run: called for each word, and each error is reported. */
	int (*each)(struct session *s, const char *word, struct slu_err *err);
};

/* clang-format off */
#define CLI_STATE(type, ...) .size = sizeof(type), .defaults = &(const type){ __VA_ARGS__ }
#define CLI_ARGS(...)        .args = (const struct arg[]){ __VA_ARGS__, { 0 } }
/* clang-format on */

extern const struct command *const cli_commands[];

/* The last word of the name: "pause". */
const char *command_word(const struct command *c);

/* Runs the command of the table that argv names. said: the words before it ("sluice queue"). Returns
 * an enum cli_exit. */
int cli_run(const struct command *const *table, const char *said, int argc, char **argv);

extern const struct command cli_ack, cli_nack, cli_extend;
extern const struct command cli_admin_backup, cli_admin_restore, cli_admin_journal;
extern const struct command cli_admin_log_level, cli_admin_config, cli_admin_reload;
extern const struct command cli_admin_migrate_shard, cli_admin_node, cli_admin_store, cli_admin_projection;
extern const struct command cli_bench;
extern const struct command cli_browse, cli_get, cli_delete;
extern const struct command cli_certs;
extern const struct command cli_completion;
extern const struct command cli_context_add, cli_context_use, cli_context_list, cli_context_show;
extern const struct command cli_context_rename, cli_context_remove;
extern const struct command cli_demo;
extern const struct command cli_dlq_list, cli_dlq_show, cli_dlq_redrive, cli_dlq_delete, cli_dlq_purge, cli_dlq_groups;
extern const struct command cli_help, cli_version;
extern const struct command cli_inbox;
extern const struct command cli_lock_list, cli_lock_force_release;
extern const struct command cli_lock_acquire, cli_lock_keepalive, cli_lock_release, cli_lock_run;
extern const struct command cli_message_run, cli_message_delay, cli_message_priority, cli_message_move, cli_message_edit, cli_message_cancel;
extern const struct command cli_message_search;
extern const struct command cli_peek, cli_stats, cli_topics;
extern const struct command cli_pull;
extern const struct command cli_push;
extern const struct command cli_queue_list, cli_queue_show, cli_queue_set;
extern const struct command cli_queue_pause, cli_queue_drain, cli_queue_resume, cli_queue_purge;
extern const struct command cli_queue_limits, cli_queue_shares, cli_queue_kinds, cli_queue_priorities, cli_queue_keys, cli_queue_holds, cli_queue_hold, cli_queue_release,
	cli_queue_breakers, cli_queue_break, cli_queue_mend;
extern const struct command cli_queue_delete, cli_queue_apply, cli_queue_export;
extern const struct command cli_queue_dequeue, cli_queue_ack, cli_queue_nack, cli_queue_extend;
extern const struct command cli_result;
extern const struct command cli_why;
extern const struct command cli_history;
extern const struct command cli_admin_audit;
extern const struct command cli_batch_create, cli_batch_close, cli_batch_show, cli_batch_list;
extern const struct command cli_schedule_set, cli_schedule_list, cli_schedule_show, cli_schedule_next, cli_schedule_delete;
extern const struct command cli_schedule_pause, cli_schedule_resume, cli_schedule_run;
extern const struct command cli_state_get, cli_state_put, cli_state_edit, cli_state_rm;
extern const struct command cli_status;
extern const struct command cli_subscribe, cli_watch;
extern const struct command cli_task_start, cli_task_list, cli_task_show, cli_task_wait, cli_task_cancel;
extern const struct command cli_token;
extern const struct command cli_top;
extern const struct command cli_torture;
extern const struct command cli_work;
extern const struct command cli_worker_list, cli_worker_quiet, cli_worker_resume, cli_worker_stop;

#endif
