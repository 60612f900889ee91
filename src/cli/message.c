/*
 * message.c - `sluice browse`, `get` and `delete`: messages by what they hold, or by id.
 */
#include "cli/facts.h"
#include "cli/find.h"
#include "cli/progress.h"
#include "cli/rows.h"

#include "base/id.h"
#include "base/json_out.h"

#include <inttypes.h>

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

int
cli_browse(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "browse QUEUE [options]",
		.text = "Search the messages of a queue without taking them: those of a state, of a key,\n"
			"with a text in their payload. All conditions have to hold. Exits 3 when there\n"
			"are none.\n",
		.examples = "  sluice browse mail --state delayed\n"
			    "  sluice browse mail --text alice@example.com --limit 1000\n"
			    "  sluice browse mail --older-than 1h --key customer-7 --json\n",
		.min_words = 1,
		.max_words = 1,
	};
	struct session s = SESSION("browse");
	struct find f = { .limit = 100 };
	const struct arg args[] = {
		{ STATE_FORM, ARG_TEXT, &f.state, "only messages in this state (all)" },
		{ "-l, --limit", ARG_COUNT, &f.limit, "how many to show (100)" },
		FIND_ROWS(&f),
		SESSION_ROWS(&s),
	};
	struct slu_err err;
	struct rows r;

	if (!session_begin(&s, &help, &argc, &argv, args, COUNT(args)))
		return s.exit;
	rows_init(&r, &s, columns, COUNT(columns));
	if (find_show(&f, &s, "/v1/admin/messages", argv[0], &r, &err)) {
		session_fail(&s, &err);
	} else if (r.n == 0) {
		session_nothing(&s, "no such message in %s", argv[0]);
	}
	rows_release(&r);
	return session_end(&s);
}

/* --- get ------------------------------------------------------------------------ */

int
message_show(struct session *s, const char *id, struct slu_err *err)
{
	struct slice body;
	int rc;

	query_path(&s->query, "/v1/admin/message");
	query_param(&s->query, "namespace", s->space);
	query_param(&s->query, "id", id);
	rc = query_get(&s->query, &body, err);
	if (!rc && s->json)
		query_print(body);
	else if (!rc)
		rc = facts_print(body, session_colours(stdout), err);
	return rc;
}

int
cli_get(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "get ID... [options]",
		.text = "A message as it stands, whichever queue of the namespace it is in, and what is\n"
			"known of its history. Exits 3 when there is none.\n",
		.examples = "  sluice get 318497266802130945\n"
			    "  sluice get 01a1de06-b1c9-7000-8000-000000000000 --json | jq .history\n",
		.min_words = 1,
		.max_words = SESSION_ANY,
	};
	struct session s = SESSION("get");
	const struct arg args[] = { SESSION_ROWS(&s) };
	struct slu_err err;

	if (!session_begin(&s, &help, &argc, &argv, args, COUNT(args)))
		return s.exit;
	for (int i = 0; i < argc; i++)
		if (message_show(&s, argv[i], &err))
			session_fail(&s, &err);
	return session_end(&s);
}

/* --- delete --------------------------------------------------------------------- */

static int
delete_one(struct session *s, const char *id, struct slu_err *err)
{
	struct slice answer;
	struct json_out w;
	struct buf body;
	int rc;

	buf_init(&body, 4096);
	json_out_init(&w, &body);
	json_out_object(&w, NULL);
	json_out_str(&w, "namespace", slice_of(s->space));
	json_out_str(&w, "id", slice_of(id));
	json_out_close(&w);
	query_path(&s->query, "/v1/admin/message/delete");
	rc = query_post(&s->query, buf_slice(&body), &answer, err);
	buf_release(&body);
	if (!rc && s->json)
		query_print(answer);
	return rc;
}

int
cli_delete(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "delete ID... [options]",
		.text = "Delete messages, in whatever state but leased: they cannot be had back.\n",
		.examples = "  sluice delete 318497266802130945\n"
			    "  sluice delete 318497266802130945 --yes\n",
		.min_words = 1,
		.max_words = SESSION_ANY,
	};
	struct session s = SESSION("delete");
	bool yes = false;
	const struct arg args[] = {
		{ "-y, --yes", ARG_FLAG, &yes, "do not ask" },
		SESSION_ROWS(&s),
	};
	struct slu_err err;

	if (!session_begin(&s, &help, &argc, &argv, args, COUNT(args)))
		return s.exit;
	if (confirm(&s, yes, "delete %d %s of namespace %s", argc, argc == 1 ? "message" : "messages", s.space))
		for (int i = 0; i < argc; i++)
			if (delete_one(&s, argv[i], &err))
				session_fail(&s, &err);
	return session_end(&s);
}
