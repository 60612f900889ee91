/*
 * act.c - `sluice message run`, `delay`, `priority`, `move`, `edit`, `cancel` and `search`.
 */
#include "cli/lib/find.h"

#include "base/parse.h"

#include <stdio.h>

struct act {
	struct session s;
	const char *version;
	slu_time delay;
	const char *priority, *to, *text;
};

/* Sends the action that the command is called on each id; the first word is the queue. name, value: what the action
 * needs; name NULL = nothing. option: of the command, for a missing value. */
static int
act(struct session *s, const char *name, const char *value, const char *option, struct slu_err *err)
{
	const struct act *const c = (void *)s;
	int rc = 0;

	if (name && !value)
		return session_usage(s, "missing %s", option);
	for (int i = 1; i < s->n_words && !rc; i++) {
		const char *body[12] = { "namespace", s->space, "queue", s->words[0], "id", s->words[i] };
		unsigned n = 6;
		struct slice answer;

		if (c->version) {
			body[n++] = "version";
			body[n++] = c->version;
		}
		if (name) {
			body[n++] = name;
			body[n++] = value;
		}
		rc = session_post(s, "/v1/admin/message/", body, &answer, err);
		if (!rc)
			rc = session_print(s, answer, err);
	}
	return rc;
}

static int
run_now(struct session *s, struct slu_err *err)
{
	return act(s, NULL, NULL, NULL, err);
}

static int
delay(struct session *s, struct slu_err *err)
{
	const struct act *const c = (void *)s;
	char text[DURATION_TEXT];

	return act(s, "delay", c->delay > 0 ? format_duration(c->delay, text, sizeof text) : NULL, "--for TIME", err);
}

static int
priority(struct session *s, struct slu_err *err)
{
	return act(s, "priority", ((const struct act *)s)->priority, "--priority N", err);
}

static int
move(struct session *s, struct slu_err *err)
{
	return act(s, "to", ((const struct act *)s)->to, "--to QUEUE", err);
}

static int
edit(struct session *s, struct slu_err *err)
{
	return act(s, "text", ((const struct act *)s)->text, "--text TEXT", err);
}

#define VERSION                                                                                               \
	{                                                                                                     \
		"--version VERSION", ARG_TEXT, AT(act, version), "only if the message has this version (any)" \
	}

#define OTHER                                                                                      \
	"Another message with a new id takes its place, with the same fields. Messages that are\n" \
	"leased, that have been due and have a key, or whose result is waited for are refused.\n"

const struct command cli_message_run = {
	.name = "message run",
	.summary = "make delayed messages due now",
	.usage = "QUEUE ID... [options]",
	.text = "Makes delayed messages due now. They keep their ids. Messages with a key are refused: their\n"
		"order would change.\n",
	.examples = "  sluice message run mail 318497266802130945\n",
	.options = CLI_QUEUE,
	CLI_ARGS(VERSION),
	.size = sizeof(struct act),
	.run = run_now,
};

const struct command cli_message_delay = {
	.name = "message delay",
	.summary = "delay messages that wait",
	.usage = "QUEUE ID... --for TIME [options]",
	.text = "Delays messages that wait. " OTHER,
	.examples = "  sluice message delay mail 318497266802130945 --for 10m\n",
	.options = CLI_QUEUE,
	CLI_ARGS({ "--for", ARG_TIME, AT(act, delay), "how long, from now" }, VERSION),
	.size = sizeof(struct act),
	.run = delay,
};

const struct command cli_message_priority = {
	.name = "message priority",
	.summary = "change the priority of messages that wait",
	.usage = "QUEUE ID... --priority N [options]",
	.text = "Changes the priority of messages that wait; lower numbers go first. " OTHER,
	.examples = "  sluice message priority mail 318497266802130945 --priority high\n",
	.options = CLI_QUEUE,
	CLI_ARGS({ "-p, --priority N", ARG_TEXT, AT(act, priority), "a number, or high, normal, low" }, VERSION),
	.size = sizeof(struct act),
	.run = priority,
};

const struct command cli_message_move = {
	.name = "message move",
	.summary = "move messages that wait to another queue",
	.usage = "QUEUE ID... --to QUEUE [options]",
	.text = "Moves messages that wait, or dead letters, to another queue of the namespace. " OTHER,
	.examples = "  sluice message move mail 318497266802130945 --to mail-slow\n",
	.options = CLI_QUEUE,
	CLI_ARGS({ "--to QUEUE", ARG_TEXT, AT(act, to), "the other queue" }, VERSION),
	.size = sizeof(struct act),
	.run = move,
};

const struct command cli_message_edit = {
	.name = "message edit",
	.summary = "change the body of a message and requeue it",
	.usage = "QUEUE ID... --text TEXT [options]",
	.text = "Changes the body of messages that wait, or of dead letters, and requeues them. " OTHER,
	.examples = "  sluice message edit mail 318497266802130945 --text '{\"to\":\"ann@example.com\"}'\n",
	.options = CLI_QUEUE,
	CLI_ARGS({ "--text TEXT", ARG_TEXT, AT(act, text), "the new body" }, VERSION),
	.size = sizeof(struct act),
	.run = edit,
};

/* --- cancel --------------------------------------------------------------------- */

static int
cancel_one(struct session *s, const char *id, struct slu_err *err)
{
	const char *const body[] = { "namespace", s->space, "id", id, NULL };
	struct slice answer;
	int rc;

	rc = session_post(s, "/v1/admin/message/", body, &answer, err);
	return rc ? rc : session_print(s, answer, err);
}

static int
cancel(struct session *s, struct slu_err *err)
{
	if (!session_confirm(s, "cancel %d %s of namespace %s", s->n_words, s->n_words == 1 ? "message" : "messages",
			     s->space))
		return 0;
	return session_each(s, cancel_one, err);
}

const struct command cli_message_cancel = {
	.name = "message cancel",
	.summary = "cancel messages, also those that run",
	.usage = "ID... [options]",
	.text = "Deletes messages. A message that runs is canceled: its worker learns it when it extends\n"
		"the lease, and the message is gone when the worker settles it or the lease ends. Until\n"
		"then its key is held.\n",
	.examples = "  sluice message cancel 318497266802130945 --yes\n",
	.options = CLI_QUEUE | CLI_YES,
	.run = cancel,
};

/* --- search --------------------------------------------------------------------- */

static const struct column columns[] = {
	{ "queue", "QUEUE", COLUMN_TEXT },
	{ "id", "ID", COLUMN_NUMBER },
	{ "status", "STATE", COLUMN_TEXT },
	{ "priority", "PRIO", COLUMN_NUMBER },
	{ "attempts", "ATTEMPTS", COLUMN_NUMBER },
	{ "key", "KEY", COLUMN_TEXT },
	{ "correlation_id", "CORRELATION", COLUMN_TEXT },
	{ "enqueued_at", "ENQUEUED", COLUMN_TIME },
	{ "payload", "PAYLOAD", COLUMN_BASE64 },
};

static int
find_all(struct session *s, struct slu_err *err)
{
	return search(s, "/v1/admin/search", columns, COUNT(columns), "messages", err);
}

const struct command cli_message_search = {
	.name = "message search",
	.summary = "search the messages of all queues",
	.usage = "[options]",
	.text = "Lists the messages of all queues of the namespace that match all conditions; at least one is\n"
		"needed. Exits 3 if no message matches.\n",
	.examples = "  sluice message search --key customer-7\n"
		    "  sluice message search --attribute tenant=acme --state dead --json\n",
	.options = CLI_QUEUE,
	CLI_ARGS({ STATE_FORM, ARG_TEXT, AT(finder, find.state), "only messages in this state (all)" },
		 { "-l, --limit", ARG_COUNT, AT(finder, find.limit), "how many to show (100)" },
		 FIND_ROWS(finder)),
	CLI_STATE(struct finder, .find.limit = 100),
	.run = find_all,
};
