/*
 * workers.c - `sluice worker list`, `quiet`, `resume` and `stop`: workers that say who they are (docs/api.md).
 */
#include "cli/lib/rows.h"

#include "base/json/json_out.h"

static const struct column columns[] = {
	{ "worker", "WORKER", COLUMN_TEXT },
	{ "state", "STATE", COLUMN_TEXT },
	{ "host", "HOST", COLUMN_MAYBE },
	{ "version", "VERSION", COLUMN_MAYBE },
	{ "queues", "QUEUES", COLUMN_TEXT },
	{ "used", "USED", COLUMN_NUMBER },
	{ "slots", "SLOTS", COLUMN_NUMBER },
	{ "lost_leases", "LOST", COLUMN_NUMBER },
	{ "last_beat", "LAST BEAT", COLUMN_TIME },
};

struct workers_command {
	struct session s;
	const char *queue;
};

static int
list(struct session *s, struct slu_err *err)
{
	const struct workers_command *const c = (void *)s;
	struct listing r;
	struct slice body;
	int rc;

	rows_init(&r, s, columns, COUNT(columns));
	do {
		query_path(&s->query, "/v1/admin/workers");
		http_param(&s->query.path, "namespace", s->space);
		http_param(&s->query.path, "queue", c->queue);
		http_param(&s->query.path, "limit", "1000");
		if (r.cursor[0])
			http_param(&s->query.path, "cursor", r.cursor);
		rc = query_get(&s->query, &body, err);
		if (!rc)
			rc = rows_add(&r, body, "workers", err);
	} while (!rc && r.cursor[0]);
	if (!rc)
		rc = rows_end(&r, err);
	if (!rc && r.n == 0 && !s->json)
		session_nothing(s, "no worker has told its name in the last 60 s");
	rows_release(&r);
	return rc;
}

static int
ask(struct session *s, const char *verb, const char *word, struct slu_err *err)
{
	struct slice answer;
	struct json_out w;
	struct buf body;
	int rc;

	buf_init(&body, 4096);
	json_out_open(&w, &body);
	json_out_str(&w, "namespace", slice_of(s->space));
	json_out_str(&w, "worker", slice_of(word));
	json_out_finish(&w);
	query_path(&s->query, "/v1/admin/worker/");
	buf_puts(&s->query.path, verb);
	rc = query_post(&s->query, buf_slice(&body), &answer, err);
	if (!rc && s->json)
		query_print(answer);
	buf_release(&body);
	return rc;
}

static int
quiet(struct session *s, const char *word, struct slu_err *err)
{
	return ask(s, "quiet", word, err);
}

static int
resume(struct session *s, const char *word, struct slu_err *err)
{
	return ask(s, "resume", word, err);
}

static int
stop(struct session *s, const char *word, struct slu_err *err)
{
	return ask(s, "stop", word, err);
}

const struct command cli_worker_list = {
	.name = "worker list",
	.summary = "list the workers that say who they are",
	.usage = "[options]",
	.text = "Lists the workers of a namespace: consumers that send the field Sluice-Worker, as `sluice\n"
		"work` and the workers of all client libraries do. A worker is forgotten 60 s after its last\n"
		"beat. With several servers, each knows the workers that are connected to it.\n",
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
	.each = quiet,
};

const struct command cli_worker_resume = {
	.name = "worker resume",
	.summary = "let quiet workers take messages again",
	.usage = "WORKER... [options]",
	.text = "Lets quiet workers take messages again.\n" ASKED,
	.examples = "  sluice worker resume web-7:1234\n",
	.options = CLI_QUEUE,
	.each = resume,
};

const struct command cli_worker_stop = {
	.name = "worker stop",
	.summary = "ask workers to end",
	.usage = "WORKER... [options]",
	.text = "Asks workers to end when the messages that they have are done. Whatever started a worker may\n"
		"start it again.\n" ASKED,
	.examples = "  sluice worker stop web-7:1234\n",
	.options = CLI_QUEUE,
	.each = stop,
};
