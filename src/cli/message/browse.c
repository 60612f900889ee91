/*
 * browse.c - `sluice browse`, `get` and `delete`: messages by conditions, or by id.
 */
#include "cli/lib/find.h"

/* --- browse --------------------------------------------------------------------- */

static const struct column columns[] = {
	{ "id", "ID", COLUMN_NUMBER },
	{ "status", "STATE", COLUMN_TEXT },
	{ "priority", "PRIO", COLUMN_NUMBER },
	{ "attempts", "ATTEMPTS", COLUMN_NUMBER },
	{ "owner", "OWNER", COLUMN_MAYBE },
	{ "key", "KEY", COLUMN_TEXT },
	{ "correlation_id", "CORRELATION", COLUMN_TEXT },
	{ "enqueued_at", "ENQUEUED", COLUMN_TIME },
	{ "payload_size", "BYTES", COLUMN_NUMBER },
	{ "payload", "PAYLOAD", COLUMN_BASE64 },
};

static int
browse(struct session *s, struct slu_err *err)
{
	return search(s, "/v1/admin/messages", columns, COUNT(columns), "messages", err);
}

const struct command cli_browse = {
	.name = "browse",
	.group = "Queues",
	.summary = "search the messages of a queue",
	.usage = "QUEUE [options]",
	.text = "Lists the messages of a queue without taking them: messages in a state, with a key,\n"
		"with a text in the payload. A message matches if all conditions hold. Exits 3 if no\n"
		"message matches.\n",
	.examples = "  sluice browse mail --state delayed\n"
		    "  sluice browse mail --text alice@example.com --limit 1000\n"
		    "  sluice browse mail --older-than 1h --key customer-7 --json\n",
	.options = CLI_QUEUE,
	CLI_ARGS({ STATE_FORM, ARG_TEXT, AT(finder, find.state), "only messages in this state (all)" },
		 { "-l, --limit", ARG_COUNT, AT(finder, find.limit), "how many to show (100)" },
		 FIND_ROWS(finder)),
	CLI_STATE(struct finder, .find.limit = 100),
	.run = browse,
};

/* --- get ------------------------------------------------------------------------ */

int
message_show(struct session *s, const char *id, struct slu_err *err)
{
	struct slice body;
	int rc;

	query_queue(&s->query, "/v1/admin/message", s->space, NULL);
	http_param(&s->query.path, "id", id);
	rc = query_get(&s->query, &body, err);
	return rc ? rc : session_print(s, body, err);
}

const struct command cli_get = {
	.name = "get",
	.group = "Messages",
	.summary = "print messages with their history",
	.usage = "ID... [options]",
	.text = "Prints messages of any queue of the namespace, with their history and the last 10\n"
		"attempts that failed. Exits 3 if a message does not exist.\n",
	.examples = "  sluice get 318497266802130945\n"
		    "  sluice get 01a1de06-b1c9-7000-8000-000000000000 --json | jq .history\n"
		    "  sluice get 318497266802130945 --json | jq .attempts_log\n",
	.options = CLI_QUEUE,
	.each = message_show,
};

/* --- delete --------------------------------------------------------------------- */

static int
delete_one(struct session *s, const char *id, struct slu_err *err)
{
	const char *const body[] = { "namespace", s->space, "id", id, NULL };

	return session_act(s, "/v1/admin/message/delete", body, err);
}

static int
delete_messages(struct session *s, struct slu_err *err)
{
	if (!session_confirm(s, "delete %d %s of namespace %s", s->n_words, s->n_words == 1 ? "message" : "messages",
			     s->space))
		return 0;
	return session_each(s, delete_one, err);
}

const struct command cli_delete = {
	.name = "delete",
	.group = "Messages",
	.summary = "delete messages",
	.usage = "ID... [options]",
	.text = "Deletes messages that are not leased. A deleted message cannot be restored.\n",
	.examples = "  sluice delete 318497266802130945\n"
		    "  sluice delete 318497266802130945 --yes\n",
	.options = CLI_QUEUE | CLI_YES,
	.run = delete_messages,
};
