/*
 * batch.c - `sluice batch`: create, close, show and list batches of messages.
 */
#include "cli/lib/rows.h"

#include "base/json/json.h"
#include "base/json/json_out.h"
#include "base/parse.h"

#include <inttypes.h>

/* --- create ---------------------------------------------------------------------- */

struct batch_create {
	struct session s;
	const char *callback, *deadline, *message;
	slu_time timeout;
};

/* {"queue":"mail","text":"all"}, or the object of --message */
static int
write_callback(const struct batch_create *c, struct json_out *w, struct slu_err *err)
{
	int rc = 0;

	if (c->message) {
		rc = json_check(slice_of(c->message), JSON_OBJECT, JSON_DEPTH - 1, "--message", err);
		if (!rc)
			json_out_raw(w, "callback", slice_of(c->message));
	} else if (c->callback) {
		json_out_object(w, "callback");
		json_out_str(w, "queue", slice_of(c->callback));
		json_out_str(w, "text", slice_of(c->s.n_words > 0 ? c->s.words[0] : ""));
		json_out_close(w);
	}
	return rc;
}

static int
create(struct session *s, struct slu_err *err)
{
	const struct batch_create *const c = (void *)s;
	char text[DURATION_TEXT];
	struct slice answer = { 0 };
	struct json_out w;
	struct buf body;
	uint64_t id;
	int rc;

	if (c->callback && c->message)
		return session_usage(s, "--callback and --message exclude each other");
	if (s->n_words > 0 && !c->callback)
		return session_usage(s, "a payload needs --callback");
	buf_init(&body, 256 * 1024);
	json_out_open(&w, &body);
	json_out_str(&w, "namespace", slice_of(s->space));
	if (c->timeout)
		json_out_str(&w, "timeout", slice_of(format_duration(c->timeout, text, sizeof text)));
	if (c->deadline)
		json_out_str(&w, "deadline", slice_of(c->deadline));
	rc = write_callback(c, &w, err);
	json_out_finish(&w);
	query_path(&s->query, "/batches");
	if (!rc)
		rc = query_post(&s->query, buf_slice(&body), &answer, err);
	buf_release(&body);
	if (!rc)
		rc = query_read_u64(answer, "id", &id, err);
	if (!rc && s->json)
		query_print(answer);
	else if (!rc)
		printf("%" PRIu64 "\n", id);
	return rc;
}

const struct command cli_batch_create = {
	.name = "batch create",
	.summary = "make a batch of messages",
	.usage = "[PAYLOAD] [options]",
	.text = "Makes a batch and prints its id. Messages join it with `sluice push --batch`. When the\n"
		"batch is closed and all its messages have ended, a message with PAYLOAD begins in the\n"
		"queue of --callback.\n",
	.examples = "  batch=$(sluice batch create 'all sent' --callback reports --timeout 1h)\n"
		    "  sluice push mail 'hello' --batch $batch\n"
		    "  sluice batch close $batch\n",
	.words = { 0, 1 },
	.options = CLI_QUEUE,
	CLI_ARGS({ "-c, --callback QUEUE", ARG_TEXT, AT(batch_create, callback), "queue of the message that begins when all have ended" },
		 { "-m, --message JSON", ARG_TEXT, AT(batch_create, message), "that message, as of /enqueue, instead of --callback" },
		 { "--timeout", ARG_TIME, AT(batch_create, timeout), "let it begin after this time at the latest" },
		 { "--deadline MOMENT", ARG_TEXT, AT(batch_create, deadline), "the same as a moment, like 2026-11-16T08:00:00Z" }),
	.size = sizeof(struct batch_create),
	.run = create,
};

/* --- list, show, close -------------------------------------------------------------- */

static const struct column columns[] = {
	{ "id", "BATCH", COLUMN_NUMBER },
	{ "status", "STATUS", COLUMN_TEXT },
	{ "members", "MESSAGES", COLUMN_NUMBER },
	{ "done", "DONE", COLUMN_NUMBER },
	{ "failed", "FAILED", COLUMN_NUMBER },
	{ "created_at", "CREATED", COLUMN_TIME },
};

static const struct rows_list batches = { "/batches?limit=1000", "batches", ROWS_COLUMNS(columns) };

const struct command cli_batch_list = {
	.name = "batch list",
	.summary = "list the batches of a namespace",
	.usage = "[options]",
	.text = "Lists the batches of a namespace, and how many of their messages are done or failed. A\n"
		"batch is kept for 24 h after its callback began.\n",
	.examples = "  sluice batch list\n  sluice batch list --json | jq .status\n",
	.options = CLI_QUEUE,
	.run = rows_run,
	.rows = &batches,
};

static int
show(struct session *s, struct slu_err *err)
{
	struct slice body;
	int rc;

	query_path(&s->query, "/batch");
	http_param(&s->query.path, "namespace", s->space);
	http_param(&s->query.path, "id", s->words[0]);
	rc = query_get(&s->query, &body, err);
	return rc ? rc : session_print(s, body, err);
}

const struct command cli_batch_show = {
	.name = "batch show",
	.summary = "show a batch",
	.usage = "BATCH [options]",
	.text = "Shows a batch: how many messages it has, how many are done or failed, how it ended, and\n"
		"its callback.\n",
	.examples = "  sluice batch show 318497266802130945\n",
	.words = { 1, 1 },
	.options = CLI_QUEUE,
	.run = show,
};

static int
close_batch(struct session *s, const char *id, struct slu_err *err)
{
	const char *const body[] = { "namespace", s->space, "id", id, NULL };

	return session_act(s, "/batches/", body, err);
}

const struct command cli_batch_close = {
	.name = "batch close",
	.summary = "let no more messages join a batch",
	.usage = "BATCH... [options]",
	.text = "Closes batches: no more messages join them. A batch calls back when it is closed and all\n"
		"its messages have ended.\n",
	.examples = "  sluice batch close 318497266802130945\n",
	.options = CLI_QUEUE,
	.each = close_batch,
};
