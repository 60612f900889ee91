/*
 * limits.c - `sluice queue limits`, `shares`, `holds`, `hold` and `release`.
 */
#include "cli/lib/rows.h"

#include "base/json/json_out.h"
#include "base/parse.h"

#include <stdio.h>

/* --- limits, shares, holds ------------------------------------------------------ */

static const struct column limit_columns[] = {
	{ "scope", "SCOPE", COLUMN_TEXT },
	{ "name", "NAME", COLUMN_MAYBE },
	{ "ready", "READY", COLUMN_NUMBER },
	{ "leased", "LEASED", COLUMN_NUMBER },
	{ "concurrency", "CONCURRENCY", COLUMN_NUMBER },
	{ "tokens", "TOKENS", COLUMN_NUMBER },
	{ "rate", "RATE", COLUMN_NUMBER },
	{ "next_delivery", "NEXT", COLUMN_TIME },
	{ "hold_until", "HOLD", COLUMN_TIME },
};

static const struct column share_columns[] = {
	{ "name", "SHARE", COLUMN_TEXT },
	{ "weight", "WEIGHT", COLUMN_NUMBER },
	{ "messages", "MESSAGES", COLUMN_NUMBER },
	{ "ready", "READY", COLUMN_NUMBER },
	{ "leased", "LEASED", COLUMN_NUMBER },
	{ "delivered", "DELIVERED", COLUMN_NUMBER },
	{ "oldest_ready_ms", "OLDEST", COLUMN_MILLIS },
	{ "hold_until", "HOLD", COLUMN_TIME },
};

static const struct column kind_columns[] = {
	{ "kind", "KIND", COLUMN_TEXT },
	{ "messages", "MESSAGES", COLUMN_NUMBER },
	{ "ready", "READY", COLUMN_NUMBER },
	{ "leased", "LEASED", COLUMN_NUMBER },
	{ "consumers_waiting", "WAITING", COLUMN_NUMBER },
};

static const struct column hold_columns[] = {
	{ "scope", "SCOPE", COLUMN_TEXT },
	{ "name", "NAME", COLUMN_MAYBE },
	{ "until", "UNTIL", COLUMN_TIME },
};

static const struct column breaker_columns[] = {
	{ "breaker", "BREAKER", COLUMN_TEXT },
	{ "scope", "SCOPE", COLUMN_TEXT },
	{ "name", "NAME", COLUMN_MAYBE },
	{ "state", "STATE", COLUMN_TEXT },
	{ "until", "UNTIL", COLUMN_TIME },
};

#define PATH "/v1/admin/queue/limits"

/* clang-format off */
static const struct rows_list
	limits   = { PATH, "limits", ROWS_COLUMNS(limit_columns), "no limits", true, true },
	shares   = { PATH "?order=messages", "limits", ROWS_COLUMNS(share_columns), "no limits", true, true },
	kinds    = { PATH "?order=kind", "kinds", ROWS_COLUMNS(kind_columns), "no kinds", true, true },
	holds    = { PATH, "holds", ROWS_COLUMNS(hold_columns), "no holds", false, true },
	breakers = { PATH, "breakers", ROWS_COLUMNS(breaker_columns), "no breakers", true, true };
/* clang-format on */

const struct command cli_queue_breakers = {
	.name = "queue breakers",
	.summary = "list the breakers that are not closed",
	.usage = "QUEUE [options]",
	.text = "Lists the breakers of a queue that are open or half-open, at most 100. An open breaker\n"
		"stops the deliveries of its scope until a moment; a half-open one lets one message through.\n",
	.examples = "  sluice queue breakers jobs\n",
	.options = CLI_QUEUE,
	.run = rows_run,
	.rows = &breakers,
};

const struct command cli_queue_limits = {
	.name = "queue limits",
	.summary = "show what a queue uses of its limits",
	.usage = "QUEUE [options]",
	.text = "Shows the limits of a queue and what is used of them now: leased messages of\n"
		"concurrency, deliveries that a rate still allows, holds. The first line is the queue;\n"
		"then come the 20 shares that are nearest to a limit, and the 20 values of limit_attribute.\n",
	.examples = "  sluice queue limits jobs\n"
		    "  sluice queue limits jobs --json | jq 'select(.tokens == 0)'\n",
	.options = CLI_QUEUE,
	.run = rows_run,
	.rows = &limits,
};

const struct command cli_queue_shares = {
	.name = "queue shares",
	.summary = "show the 20 shares with the most messages",
	.usage = "QUEUE [options]",
	.text = "Shows the 20 shares of a queue that have the most messages: weight, messages, and\n"
		"deliveries since the share has messages. A line without a name is all messages\n"
		"without a share.\n",
	.examples = "  sluice queue shares jobs\n",
	.options = CLI_QUEUE,
	.run = rows_run,
	.rows = &shares,
};

const struct command cli_queue_kinds = {
	.name = "queue kinds",
	.summary = "show the kinds of messages of a queue",
	.usage = "QUEUE [options]",
	.text = "Shows the kinds of messages that a queue has, those with the most messages first, and how\n"
		"many consumers wait for each. A kind with ready messages that no consumer takes waits.\n",
	.examples = "  sluice queue kinds jobs\n"
		    "  sluice queue kinds jobs --json | jq 'select(.ready > 0 and .consumers_waiting == 0)'\n",
	.options = CLI_QUEUE,
	.run = rows_run,
	.rows = &kinds,
};

const struct command cli_queue_holds = {
	.name = "queue holds",
	.summary = "list what is on hold",
	.usage = "QUEUE [options]",
	.text = "Lists the holds of a queue. A hold stops the deliveries of the queue, a share, a key\n"
		"or a value of limit_attribute until a moment.\n",
	.examples = "  sluice queue holds jobs\n",
	.options = CLI_QUEUE,
	.run = rows_run,
	.rows = &holds,
};

/* --- hold, release -------------------------------------------------------------- */

struct scoped {
	struct session s;
	const char *share, *key, *value;
	bool plain;
	slu_time time;
};

static const char *
scope_of(const struct scoped *c)
{
	if (c->share || c->plain)
		return "share";
	if (c->key)
		return "key";
	return c->value ? "attribute" : "queue";
}

/* breaker: its name; NULL: a hold. */
static int
send_scope(struct scoped *c, const char *breaker, slu_time time, struct slu_err *err)
{
	struct session *const s = &c->s;
	const char *const name = c->share ? c->share : c->key ? c->key
							      : c->value;
	char text[DURATION_TEXT];
	struct slice answer;
	struct json_out w;
	struct buf body;
	int rc;

	if ((c->share != NULL) + (c->key != NULL) + (c->value != NULL) + c->plain > 1)
		return session_usage(s, "--share, --key, --attribute and --no-share exclude each other");
	buf_init(&body, 4096);
	json_out_open(&w, &body);
	json_out_str(&w, "namespace", slice_of(s->space));
	json_out_str(&w, "queue", slice_of(s->words[0]));
	json_out_str(&w, "scope", slice_of(scope_of(c)));
	if (name)
		json_out_str(&w, "name", slice_of(name));
	if (breaker) {
		json_out_str(&w, "breaker", slice_of(breaker));
		json_out_str(&w, "state", slice_of(time ? "open" : "closed"));
	}
	json_out_str(&w, "for", slice_of(format_duration(time, text, sizeof text)));
	json_out_finish(&w);
	query_path(&s->query, breaker ? "/v1/admin/queue/breaker" : "/v1/admin/queue/hold");
	rc = query_post(&s->query, buf_slice(&body), &answer, err);
	if (!rc && s->json)
		query_print(answer);
	buf_release(&body);
	return rc;
}

static int
hold(struct session *s, struct slu_err *err)
{
	struct scoped *const c = (void *)s;

	if (c->time <= 0)
		return session_usage(s, "missing --for TIME");
	return send_scope(c, NULL, c->time, err);
}

static int
release(struct session *s, struct slu_err *err)
{
	return send_scope((struct scoped *)s, NULL, 0, err);
}

#define SCOPES                                                                                             \
	{ "--share SHARE", ARG_TEXT, AT(scoped, share), "one share instead of the queue" },                \
		{ "--key KEY", ARG_TEXT, AT(scoped, key), "one ordering key instead of the queue" },       \
		{ "--attribute VALUE", ARG_TEXT, AT(scoped, value), "one value of limit_attribute" },      \
	{                                                                                                  \
		"--no-share", ARG_FLAG, AT(scoped, plain), "messages without a share instead of the queue" \
	}

const struct command cli_queue_hold = {
	.name = "queue hold",
	.summary = "deliver nothing of a queue, share, key or value for a while",
	.usage = "QUEUE --for TIME [options]",
	.text = "Nothing of the queue, of one share, of one key or of one value of limit_attribute is\n"
		"delivered for so long, at most hold.max of the server. Of two holds the later end counts. Leases stay.\n",
	.examples = "  sluice queue hold jobs --for 10m\n"
		    "  sluice queue hold jobs --share alice --for 30s\n",
	.options = CLI_QUEUE,
	CLI_ARGS({ "--for", ARG_TIME, AT(scoped, time), "how long" }, SCOPES),
	.size = sizeof(struct scoped),
	.run = hold,
};

const struct command cli_queue_release = {
	.name = "queue release",
	.summary = "end a hold",
	.usage = "QUEUE [options]",
	.text = "Ends the hold of a queue, share, key or value, also one that a nack has set.\n"
		"`sluice queue holds` lists the holds.\n",
	.examples = "  sluice queue release jobs\n"
		    "  sluice queue release jobs --key customer-7\n",
	.options = CLI_QUEUE,
	CLI_ARGS(SCOPES),
	.size = sizeof(struct scoped),
	.run = release,
};

/* --- break, mend ---------------------------------------------------------------- */

static int
break_it(struct session *s, struct slu_err *err)
{
	struct scoped *const c = (void *)s;

	if (c->time <= 0)
		return session_usage(s, "missing --for TIME");
	return send_scope(c, s->words[1], c->time, err);
}

static int
mend(struct session *s, struct slu_err *err)
{
	return send_scope((struct scoped *)s, s->words[1], 0, err);
}

const struct command cli_queue_break = {
	.name = "queue break",
	.summary = "open a breaker",
	.usage = "QUEUE BREAKER --for TIME [options]",
	.text = "Opens a breaker of the queue for so long: nothing of its scope is delivered. Then one\n"
		"message is tried. --share, --key or --attribute name the scope of a breaker that has one.\n",
	.examples = "  sluice queue break jobs smtp --for 10m\n",
	.options = CLI_QUEUE,
	.words = { 2, 2 },
	CLI_ARGS({ "--for", ARG_TIME, AT(scoped, time), "how long" }, SCOPES),
	.size = sizeof(struct scoped),
	.run = break_it,
};

const struct command cli_queue_mend = {
	.name = "queue mend",
	.summary = "close a breaker",
	.usage = "QUEUE BREAKER [options]",
	.text = "Closes a breaker of the queue, without a try. `sluice queue breakers` lists those that\n"
		"are not closed.\n",
	.examples = "  sluice queue mend jobs smtp\n",
	.options = CLI_QUEUE,
	.words = { 2, 2 },
	CLI_ARGS(SCOPES),
	.size = sizeof(struct scoped),
	.run = mend,
};
