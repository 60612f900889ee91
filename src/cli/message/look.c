/*
 * look.c - `sluice stats`, `topics` and `peek`: lists queues and messages, changes nothing.
 */
#include "cli/lib/find.h"
#include "cli/lib/names.h"

static const struct column queue_columns[] = {
	{ "display_topic", "QUEUE", COLUMN_TEXT },
	{ "shard", "SHARD", COLUMN_MAYBE },
	{ "ready", "READY", COLUMN_NUMBER },
	{ "delayed", "DELAYED", COLUMN_NUMBER },
	{ "leased", "LEASED", COLUMN_NUMBER },
	{ "held", "HELD", COLUMN_NUMBER },
	{ "dead", "DEAD", COLUMN_NUMBER },
	{ "damaged", "DAMAGED", COLUMN_NUMBER },
	{ "total", "TOTAL", COLUMN_NUMBER },
	{ "paused", "PAUSED", COLUMN_TEXT },
};

static const struct column topic_columns[] = {
	{ "display_topic", "QUEUE", COLUMN_TEXT },
	{ "shard", "SHARD", COLUMN_MAYBE },
	{ "total", "MESSAGES", COLUMN_NUMBER },
};

static const struct column message_columns[] = {
	{ "id", "ID", COLUMN_NUMBER },
	{ "status", "STATE", COLUMN_TEXT },
	{ "priority", "PRIO", COLUMN_NUMBER },
	{ "attempts", "ATTEMPTS", COLUMN_NUMBER },
	{ "owner", "OWNER", COLUMN_MAYBE },
	{ "key", "KEY", COLUMN_TEXT },
	{ "enqueued_at", "ENQUEUED", COLUMN_TIME },
	{ "payload_size", "BYTES", COLUMN_NUMBER },
	{ "payload", "PAYLOAD", COLUMN_BASE64 },
};

static int
one_queue(struct listing *r, const char *queue, struct slu_err *err)
{
	struct cli_query *q = &r->session->query;
	struct slu_err why;
	struct slice body;
	int rc;

	query_queue(q, "/stats", r->session->space, queue);
	rc = query_get(q, &body, &why);
	if (rc)
		return slu_fail(err, rc, "%s: %s", queue, why.text);
	rc = rows_add(r, body, NULL, err);
	return rc ? rc : rows_end(r, err);
}

/* Shows the queue that is named, or all queues of the namespace. */
static int
show_queues(struct session *s, const struct column *columns, unsigned n, struct slu_err *err)
{
	struct listing r;
	int rc;

	rows_init(&r, s, columns, n);
	rc = s->n_words ? one_queue(&r, s->words[0], err)
			: rows_pages(&r, "/topics", s->space, "topics", err);
	if (!rc && r.n == 0)
		names_no_queues(s);
	rows_release(&r);
	return rc;
}

static int
stats(struct session *s, struct slu_err *err)
{
	return show_queues(s, queue_columns, COUNT(queue_columns), err);
}

const struct command cli_stats = {
	.name = "stats",
	.group = "Queues",
	.summary = "count the messages of queues",
	.usage = "[QUEUE] [options]",
	.text = "Counts the messages of a queue, or of every queue, by state. HELD messages wait for\n"
		"another message of their key; DEAD messages are dead letters.\n",
	.examples = "  sluice stats\n  sluice stats mail\n"
		    "  sluice stats mail --json | jq .ready\n",
	.options = CLI_QUEUE,
	.run = stats,
};

static int
topics(struct session *s, struct slu_err *err)
{
	return show_queues(s, topic_columns, COUNT(topic_columns), err);
}

const struct command cli_topics = {
	.name = "topics",
	.group = "Queues",
	.summary = "list the queues",
	.usage = "[options]",
	.text = "Lists the queues of a namespace.\n",
	.examples = "  sluice topics\n  sluice topics --namespace payments --json\n",
	.options = CLI_QUEUE,
	.run = topics,
};

/* --- peek ----------------------------------------------------------------------- */

static int
peek(struct session *s, struct slu_err *err)
{
	return search(s, "/peek", message_columns, COUNT(message_columns), "messages", err);
}

const struct command cli_peek = {
	.name = "peek",
	.group = "Queues",
	.summary = "list messages without taking them",
	.usage = "QUEUE [options]",
	.text = "Lists messages without taking them: the next ones in the order of delivery, or the\n"
		"messages in a state. Exits 3 if there are none.\n",
	.examples = "  sluice peek mail\n"
		    "  sluice peek mail --state leased\n"
		    "  sluice peek mail --id 318497266802130945 --json\n",
	.options = CLI_QUEUE,
	CLI_ARGS({ STATE_FORM, ARG_TEXT, AT(finder, find.state), "only messages in this state (ready)" },
		 { "--id ID", ARG_TEXT, AT(finder, find.id), "one message" },
		 { "-l, --limit", ARG_COUNT, AT(finder, find.limit), "how many messages, at most 1000 (10)" }),
	CLI_STATE(struct finder, .find.limit = 10),
	.run = peek,
};
