#include "cli/args.h"
#include "cli/cli.h"
#include "cli/report.h"

#include <string.h>

enum {
	COMMANDS_MAX = 64 /* of a table */
};

/* clang-format off */
#define RUN(word, fn, text)     { .name = (word), .run = (fn), .summary = (text) }
#define MAIN(head, word, fn, text) { .name = (word), .run = (fn), .summary = (text), .group = (head) }
#define HEAD(head, word, table, text) { .name = (word), .summary = (text), .subs = (table), .group = (head) }

static const struct command queue_commands[] = {
	RUN("list",   cli_queue_list,   "queues: depth, age, what has happened in them"),
	RUN("show",   cli_queue_show,   "one queue, with all its knobs"),
	RUN("set",    cli_queue_set,    "change the knobs of a queue"),
	RUN("pause",  cli_queue_pause,  "hand out nothing until it is resumed"),
	RUN("resume", cli_queue_resume, "hand out messages again"),
	RUN("purge",  cli_queue_purge,  "delete all that is neither leased nor dead"),
	RUN("delete", cli_queue_delete, "delete a queue: an empty one, or by force with its messages"),
	RUN("apply",  cli_queue_apply,  "make queues as a file says"),
	RUN("export", cli_queue_export, "print queues and their knobs as such a file"),
	RUN("dequeue", cli_queue_dequeue, "take a message, its payload to a file, variables for the shell"),
	RUN("ack",    cli_queue_ack,    "the message that was taken is done"),
	RUN("nack",   cli_queue_nack,   "it failed, or has to wait"),
	RUN("extend", cli_queue_extend, "keep its lease"),
	{ 0 }
};

static const struct command dlq_commands[] = {
	RUN("list",    cli_dlq_list,    "dead letters, oldest first"),
	RUN("show",    cli_dlq_show,    "one dead letter, with its history"),
	RUN("redrive", cli_dlq_redrive, "try them again, here or in another queue"),
	RUN("delete",  cli_dlq_delete,  "delete some of them"),
	RUN("purge",   cli_dlq_purge,   "delete all of them"),
	{ 0 }
};

static const struct command lock_commands[] = {
	RUN("acquire",   cli_lock_acquire,   "take the lease of a key, variables for the shell"),
	RUN("keepalive", cli_lock_keepalive, "keep it"),
	RUN("release",   cli_lock_release,   "give it back"),
	RUN("run",       cli_lock_run,       "run a command that holds it"),
	{ 0 }
};

static const struct command state_commands[] = {
	RUN("get",  cli_state_get,  "print the document of a key"),
	RUN("put",  cli_state_put,  "set it"),
	RUN("edit", cli_state_edit, "change it in an editor"),
	RUN("rm",   cli_state_rm,   "remove it"),
	{ 0 }
};

static const struct command admin_commands[] = {
	RUN("backup",    cli_admin_backup,    "copy a running server to a folder or a tar file"),
	RUN("restore",   cli_admin_restore,   "make a data folder out of a backup"),
	RUN("journal",   cli_admin_journal,   "check, show or salvage the log of a shard"),
	RUN("log-level", cli_admin_log_level, "see or change what the server logs"),
	RUN("reload",    cli_admin_reload,    "have the server read its settings again"),
	RUN("migrate-shard", cli_admin_migrate_shard, "carry a queue from one shard to another"),
	RUN("config",    cli_admin_config,    "every setting of the server, and where it came from"),
	{ 0 }
};

static const struct command context_commands[] = {
	RUN("add",    cli_context_add,    "give a name to a server, a namespace and credentials"),
	RUN("use",    cli_context_use,    "make a context the current one"),
	RUN("list",   cli_context_list,   "the contexts"),
	RUN("show",   cli_context_show,   "one context"),
	RUN("rename", cli_context_rename, "give a context another name"),
	RUN("remove", cli_context_remove, "forget a context"),
	{ 0 }
};

/* In the order of the groups. */
const struct command cli_commands[] = {
	MAIN("Messages", "push",       cli_push,       "put messages into a queue"),
	MAIN("Messages", "pull",       cli_pull,       "take messages out of a queue"),
	MAIN("Messages", "work",       cli_work,       "run a command for every message of a queue"),
	MAIN("Messages", "subscribe",  cli_subscribe,  "print messages as they come, over one connection"),
	MAIN("Messages", "ack",        cli_ack,        "a message is done"),
	MAIN("Messages", "nack",       cli_nack,       "a message failed, or has to wait"),
	MAIN("Messages", "extend",     cli_extend,     "keep the lease of a message"),
	MAIN("Messages", "result",     cli_result,     "what the ack of a message brought"),
	MAIN("Messages", "get",        cli_get,        "one message, with its history"),
	MAIN("Messages", "delete",     cli_delete,     "delete messages"),
	MAIN("Queues",   "stats",      cli_stats,      "how many messages the queues have"),
	MAIN("Queues",   "topics",     cli_topics,     "which queues there are"),
	MAIN("Queues",   "peek",       cli_peek,       "look at messages without taking them"),
	MAIN("Queues",   "browse",     cli_browse,     "search the messages of a queue"),
	MAIN("Queues",   "top",        cli_top,        "watch the queues live"),
	MAIN("Queues",   "watch",      cli_watch,      "tell whenever a queue has something to take, or no more"),
	HEAD("Queues",   "queue",      queue_commands, "list, show, set, pause, resume, purge, delete, apply or export queues; dequeue, ack, nack, extend"),
	HEAD("Queues",   "dlq",        dlq_commands,   "list, show, redrive, delete or purge dead letters"),
	HEAD("Locks",    "lock",       lock_commands,  "acquire, keep or release the lease of a key, or run under it"),
	HEAD("Locks",    "state",      state_commands, "get, put, edit or remove the document of a key"),
	MAIN("Server",   "status",     cli_status,     "which server this is, and how it is"),
	HEAD("Server",   "admin",      admin_commands, "backup, restore, log of a shard, log level, settings"),
	MAIN("Server",   "bench",      cli_bench,      "measure a server, the executor or the priority queue"),
	MAIN("Server",   "torture",    cli_torture,    "hurt a server and see whether it keeps its promises"),
	HEAD("Setup",    "context",    context_commands, "name servers with their namespace and credentials, and choose one"),
	MAIN("Setup",    "token",      cli_token,      "make a token, or a key, for development"),
	MAIN("Setup",    "certs",      cli_certs,      "certificates to try TLS with"),
	MAIN("Setup",    "completion", cli_completion, "print a script that completes commands in a shell"),
	MAIN("Help",     "help",       cli_help,       "the help of a command"),
	MAIN("Help",     "version",    cli_version,    "the version of this program"),
	MAIN("Help",     "demo",       cli_demo,       "watch keys run in parallel, each in its own order"),
	{ 0 }
};
/* clang-format on */

void
cli_list(const struct command *table, const char *said, FILE *out)
{
	const char *group = NULL;

	fprintf(out, "usage: %s COMMAND [options]\n%s", said, table->group ? "" : "\n");
	for (const struct command *c = table; c->name; c++) {
		if (c->group && c->group != group && (!group || strcmp(c->group, group) != 0))
			fprintf(out, "\n%s:\n", c->group);
		group = c->group;
		fprintf(out, "  %-14s %s\n", c->name, c->summary);
	}
	fprintf(out, "\n`%s COMMAND --help` says more, with examples.\n", said);
}

static int
unknown(const struct command *table, const char *said, const char *word, bool json)
{
	char text[256];
	const char *names[COMMANDS_MAX];
	const char *near;
	size_t n = 0;

	for (const struct command *c = table; c->name && n < COMMANDS_MAX; c++)
		names[n++] = c->name;
	near = args_nearest(word, names, n);
	(void)snprintf(text, sizeof text, "no command %.64s%s%s%s\nsee `%s --help`", word,
		       near ? "; did you mean " : "", near ? near : "", near ? "?" : "", said);
	return cli_report(said + strlen("sluice") + (said[6] == ' '), json, SLU_EINVAL, CLI_USAGE, text);
}

int
cli_run(const struct command *table, const char *said, int argc, char **argv)
{
	char words[64];

	if (argc < 1) {
		cli_list(table, said, stderr);
		return CLI_USAGE;
	}
	if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0) {
		cli_list(table, said, stdout);
		return CLI_OK;
	}
	for (const struct command *c = table; c->name; c++) {
		if (strcmp(argv[0], c->name) != 0)
			continue;
		if (!c->subs)
			return c->run(argc, argv);
		(void)snprintf(words, sizeof words, "%s %s", said, c->name); /* fits */
		return cli_run(c->subs, words, argc - 1, argv + 1);
	}
	return unknown(table, said, argv[0], args_have_json(argc, argv));
}
