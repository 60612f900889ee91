#include "cli/lib/args.h"
#include "cli/cli.h"
#include "cli/lib/report.h"
#include "cli/lib/session.h"

#include <string.h>

enum {
	COMMANDS_MAX = 64 /* the most commands of a table */
};

/* clang-format off */
#define HEAD(head, word, text, ...) \
	&(const struct command){ .name = (word), .group = (head), .summary = (text), \
				 .subs = (const struct command *const[]){ __VA_ARGS__, NULL } }

/* In the order of the groups. */
const struct command *const cli_commands[] = {
	&cli_push, &cli_pull, &cli_work, &cli_subscribe, &cli_ack, &cli_nack, &cli_extend, &cli_result,
	&cli_why, &cli_get, &cli_delete,
	HEAD("Messages", "message", "run, delay, re-prioritise, move or edit messages that wait; cancel; search over all queues",
	     &cli_message_run, &cli_message_delay, &cli_message_priority, &cli_message_move, &cli_message_edit, &cli_message_cancel, &cli_message_search),

	&cli_stats, &cli_topics, &cli_peek, &cli_browse, &cli_top, &cli_watch, &cli_history,
	HEAD("Queues", "queue", "manage queues: list, show, set, pause, drain, resume, purge, limits, shares, kinds, priorities, keys, holds, hold, release, breakers, break, mend, delete, apply, export; dequeue, ack, nack, extend",
	     &cli_queue_list, &cli_queue_show, &cli_queue_set, &cli_queue_pause, &cli_queue_drain, &cli_queue_resume, &cli_queue_purge,
	     &cli_queue_limits, &cli_queue_shares, &cli_queue_kinds, &cli_queue_priorities, &cli_queue_keys, &cli_queue_holds, &cli_queue_hold, &cli_queue_release, &cli_queue_breakers,
	     &cli_queue_break, &cli_queue_mend,
	     &cli_queue_delete, &cli_queue_apply, &cli_queue_export, &cli_queue_dequeue, &cli_queue_ack, &cli_queue_nack,
	     &cli_queue_extend),
	HEAD("Queues", "dlq", "list, group, show, redrive, delete or purge dead letters",
	     &cli_dlq_list, &cli_dlq_groups, &cli_dlq_show, &cli_dlq_redrive, &cli_dlq_delete, &cli_dlq_purge),
	HEAD("Queues", "batch", "create, close, show or list batches of messages",
	     &cli_batch_create, &cli_batch_close, &cli_batch_show, &cli_batch_list),
	HEAD("Queues", "schedule", "set, list, show, delete, pause, resume or run schedules, and print their next ticks",
	     &cli_schedule_set, &cli_schedule_list, &cli_schedule_show, &cli_schedule_next, &cli_schedule_delete,
	     &cli_schedule_pause, &cli_schedule_resume, &cli_schedule_run),
	HEAD("Queues", "task", "redrive, move, delete, re-prioritise, run or delay many messages in the server: start, list, show, wait, cancel",
	     &cli_task_start, &cli_task_list, &cli_task_show, &cli_task_wait, &cli_task_cancel),
	HEAD("Queues", "worker", "list, quiet, resume or stop workers",
	     &cli_worker_list, &cli_worker_quiet, &cli_worker_resume, &cli_worker_stop),

	HEAD("Locks", "lock", "acquire, extend or release the lease of a key, or run a command under it; list the keys that are held, force-release one",
	     &cli_lock_acquire, &cli_lock_keepalive, &cli_lock_release, &cli_lock_run, &cli_lock_list,
	     &cli_lock_force_release),
	HEAD("Locks", "state", "get, put, edit or remove the document of a key",
	     &cli_state_get, &cli_state_put, &cli_state_edit, &cli_state_rm),

	&cli_status,
	HEAD("Server", "admin", "manage a server: backup, restore, log of a shard, objects and nodes of a store, copy in a database, log level, settings, moves between shards",
	     &cli_admin_backup, &cli_admin_restore, &cli_admin_journal, &cli_admin_store, &cli_admin_projection, &cli_admin_node, &cli_admin_log_level, &cli_admin_reload,
	     &cli_admin_migrate_shard, &cli_admin_config, &cli_admin_audit),
	&cli_inbox, &cli_bench, &cli_torture,

	HEAD("Setup", "context", "manage contexts: named servers with namespace and credentials",
	     &cli_context_add, &cli_context_use, &cli_context_list, &cli_context_show, &cli_context_rename,
	     &cli_context_remove),
	&cli_token, &cli_certs, &cli_completion,

	&cli_help, &cli_version, &cli_demo,
	NULL
};
/* clang-format on */

const char *
command_word(const struct command *c)
{
	const char *const space = strrchr(c->name, ' ');

	return space ? space + 1 : c->name;
}

static void
list(const struct command *const *table, const char *said, FILE *out)
{
	const char *group = NULL;

	fprintf(out, "usage: %s COMMAND [options]\n%s", said, (*table)->group ? "" : "\n");
	for (; *table; table++) {
		const struct command *const c = *table;

		if (c->group && (!group || strcmp(c->group, group) != 0))
			fprintf(out, "\n%s:\n", c->group);
		group = c->group;
		fprintf(out, "  %-14s %s\n", command_word(c), c->summary);
	}
	fprintf(out, "\n`%s COMMAND --help` has details and examples.\n", said);
}

static int
unknown(const struct command *const *table, const char *said, const char *word, bool json)
{
	char text[256];
	const char *names[COMMANDS_MAX];
	const char *near;
	size_t n = 0;

	while (n < COMMANDS_MAX && table[n]) {
		names[n] = command_word(table[n]);
		n++;
	}
	near = args_nearest(word, names, n);
	(void)snprintf(text, sizeof text, "unknown command: %.64s%s%s%s\nsee `%s --help`", word,
		       near ? "; did you mean " : "", near ? near : "", near ? "?" : "", said);
	return cli_report(said + strlen("sluice") + (said[6] == ' '), json, SLU_EINVAL, CLI_USAGE, text);
}

int
cli_run(const struct command *const *table, const char *said, int argc, char **argv)
{
	char words[64];

	if (argc < 1) {
		list(table, said, stderr);
		return CLI_USAGE;
	}
	if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0) {
		list(table, said, stdout);
		return CLI_OK;
	}
	for (const struct command *const *c = table; *c; c++) {
		if (strcmp(argv[0], command_word(*c)) != 0)
			continue;
		if (!(*c)->subs)
			return session_run(*c, argc - 1, argv + 1);
		(void)snprintf(words, sizeof words, "%s %s", said, (*c)->name); /* fits */
		return cli_run((*c)->subs, words, argc - 1, argv + 1);
	}
	return unknown(table, said, argv[0], args_have_json(argc, argv));
}
