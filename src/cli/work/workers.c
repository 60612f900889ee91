/*
 * workers.c - `sluice worker list`, `quiet`, `resume` and `stop`: workers that say who they are (docs/api.md).
 */
#include "cli/lib/rows.h"

static const struct column columns[] = {
	{ "worker", "WORKER", COLUMN_TEXT },
	{ "state", "STATE", COLUMN_TEXT },
	{ "host", "HOST", COLUMN_MAYBE },
	{ "version", "VERSION", COLUMN_MAYBE },
	{ "queues", "QUEUES", COLUMN_TEXT },
	{ "used", "USED", COLUMN_NUMBER },
	{ "slots", "SLOTS", COLUMN_NUMBER },
	{ "lost_leases", "LOST", COLUMN_NUMBER },
	{ "late_renewals", "LATE", COLUMN_NUMBER },
	{ "crashes", "CRASHES", COLUMN_NUMBER },
	{ "last_beat", "LAST BEAT", COLUMN_TIME },
};

struct workers_command {
	struct session s;
	const char *queue;
};

static const struct rows_list workers = { "/v1/admin/workers?limit=1000", "workers", ROWS_COLUMNS(columns),
					  .none = "no worker has told its name in the last 60 s", .may_be_empty = true };

static int
list(struct session *s, struct slu_err *err)
{
	query_queue(&s->query, workers.path, s->space, NULL);
	http_param(&s->query.path, "queue", ((const struct workers_command *)s)->queue);
	return rows_get(s, &workers, err);
}

/* Sends what the command is called: quiet, resume, stop. */
static int
ask(struct session *s, const char *word, struct slu_err *err)
{
	const char *const body[] = { "namespace", s->space, "worker", word, NULL };

	return session_act(s, "/v1/admin/worker/", body, err);
}

const struct command cli_worker_list = {
	.name = "worker list",
	.summary = "list the workers that say who they are",
	.usage = "[options]",
	.text = "Lists the workers of a namespace: consumers that send the field Sluice-Worker, as `sluice\n"
		"work` and the workers of all client libraries do. A worker is forgotten 60 s after its last\n"
		"beat, or at once if it says that it ends. LOST: leases that it lost. LATE: leases that it\n"
		"extended when less than a quarter was left. CRASHES: processes of this name that ended\n"
		"with messages in their hands. With several servers, each knows the workers that are\n"
		"connected to it.\n",
	.examples = "  sluice worker list\n"
		    "  sluice worker list --queue mail --json | jq -r .worker\n",
	.options = CLI_QUEUE,
	CLI_ARGS({ "-q, --queue QUEUE", ARG_TEXT, AT(workers_command, queue), "only workers of this queue" }),
	.size = sizeof(struct workers_command),
	.run = list,
};

#define ASKED                                                                                     \
	"The worker receives the request with its next beat, within 5 s. `sluice work` and the\n" \
	"workers of all client libraries follow it; another program may ignore it.\n"

const struct command cli_worker_quiet = {
	.name = "worker quiet",
	.summary = "ask workers to take no more messages",
	.usage = "WORKER... [options]",
	.text = "Asks workers to take no more messages. They go on with the messages that they have.\n" ASKED,
	.examples = "  sluice worker quiet web-7:1234\n",
	.options = CLI_QUEUE,
	.each = ask,
};

const struct command cli_worker_resume = {
	.name = "worker resume",
	.summary = "let quiet workers take messages again",
	.usage = "WORKER... [options]",
	.text = "Lets quiet workers take messages again.\n" ASKED,
	.examples = "  sluice worker resume web-7:1234\n",
	.options = CLI_QUEUE,
	.each = ask,
};

const struct command cli_worker_stop = {
	.name = "worker stop",
	.summary = "ask workers to end",
	.usage = "WORKER... [options]",
	.text = "Asks workers to end when the messages that they have are done. Whatever started a worker may\n"
		"start it again.\n" ASKED,
	.examples = "  sluice worker stop web-7:1234\n",
	.options = CLI_QUEUE,
	.each = ask,
};
