/*
 * cli.h - the commands of `sluice`, one table row each (commands.c has the table). A
 * command with commands of its own (`queue pause`) has a table of them instead of a
 * function. Help, completion and the manual page follow from the tables.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdio.h>

#define CLI_TITLE "sluice: a queue for work"

/* What a command exits with. */
enum cli_exit {
	CLI_OK = 0,
	CLI_FAILED = 1,
	CLI_USAGE = 2,
	CLI_NOTHING = 3 /* no message, no such queue */
};

/* argv[0] is the command's own name. Returns an enum cli_exit. */
typedef int cli_fn(int argc, char **argv);

struct command {
	const char *name; /* NULL ends a table */
	cli_fn *run;
	const char *summary;
	const struct command *subs; /* NULL: it has none */
	const char *group;          /* the heading of the help that it stands below; NULL: none */
};

extern const struct command cli_commands[];

/* Run what argv names, of a table; said: the words before it ("sluice queue"). */
int cli_run(const struct command *table, const char *said, int argc, char **argv);
void cli_list(const struct command *table, const char *said, FILE *out);

cli_fn cli_ack, cli_nack, cli_extend;
cli_fn cli_admin_backup, cli_admin_restore, cli_admin_journal;
cli_fn cli_admin_log_level, cli_admin_config, cli_admin_reload;
cli_fn cli_admin_migrate_shard;
cli_fn cli_bench;
cli_fn cli_certs;
cli_fn cli_browse, cli_get, cli_delete;
cli_fn cli_completion;
cli_fn cli_context_add, cli_context_use, cli_context_list, cli_context_show;
cli_fn cli_context_rename, cli_context_remove;
cli_fn cli_demo;
cli_fn cli_help, cli_version;
cli_fn cli_dlq_list, cli_dlq_show, cli_dlq_redrive, cli_dlq_delete, cli_dlq_purge;
cli_fn cli_peek, cli_stats, cli_topics;
cli_fn cli_pull;
cli_fn cli_push;
cli_fn cli_result;
cli_fn cli_queue_list, cli_queue_show, cli_queue_set;
cli_fn cli_queue_pause, cli_queue_resume, cli_queue_purge;
cli_fn cli_queue_delete, cli_queue_apply, cli_queue_export;
cli_fn cli_queue_dequeue, cli_queue_ack, cli_queue_nack, cli_queue_extend;
cli_fn cli_lock_acquire, cli_lock_keepalive, cli_lock_release, cli_lock_run;
cli_fn cli_state_get, cli_state_put, cli_state_edit, cli_state_rm;
cli_fn cli_subscribe, cli_watch;
cli_fn cli_status;
cli_fn cli_token;
cli_fn cli_top;
cli_fn cli_torture;
cli_fn cli_work;

#endif
