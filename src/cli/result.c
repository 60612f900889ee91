/*
 * result.c - `sluice result`: what the ack of a message brought.
 */
#include "cli/session.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/json_table.h"
#include "base/parse.h"

/* A connection that is idle for longer may be cut on its way: the server is asked again. */
#define ROUND (20 * SLU_SEC)

struct result {
	struct session s;
	const char *id; /* or the receipt */
	bool is_receipt;
	const char *queue;
	slu_time wait;
};

struct answer {
	struct slice status, result;
};

/* One request, which waits for so long. */
static int
ask(struct result *r, slu_time wait, struct slice *body, struct answer *out, struct slu_err *err)
{
	static const struct json_field fields[] = {
		JSON_FIELD(text, struct answer, status, .required = true),
		JSON_FIELD(raw, struct answer, result),
	};
	struct query *const q = &r->s.query;
	char text[DURATION_TEXT];
	struct json in;
	int rc;

	*out = (struct answer){ 0 };
	query_path(q, "/result");
	query_param(q, r->is_receipt ? "receipt" : "id", r->id);
	query_param(q, "namespace", r->is_receipt ? NULL : r->s.space);
	query_param(q, "topic", r->queue);
	query_param(q, "wait", wait > 0 ? format_duration(wait, text, sizeof text) : NULL);
	q->timeout = wait + r->s.timeout;
	rc = query_get(q, body, err);
	if (rc)
		return rc;
	json_init(&in, *body, JSON_DEPTH);
	json_fields(&in, fields, COUNT(fields), JSON_LENIENT, out);
	return json_end(&in, err) ? SLU_EUNKNOWN : 0;
}

static int
show(struct result *r, struct slu_err *err)
{
	const slu_time end = clock_mono(&clock_system) + r->wait;
	struct answer a;
	struct slice body;
	slu_time left;
	bool done;
	int rc;

	do {
		left = end - clock_mono(&clock_system);
		left = left < 0 ? 0 : left;
		rc = ask(r, left < ROUND ? left : ROUND, &body, &a, err);
		if (rc)
			return rc;
		done = slice_eq(a.status, SLICE("done"));
	} while (!done && left > 0);
	if (r->s.json)
		query_print(body);
	else if (done)
		printf("%.*s\n", a.result.n ? (int)a.result.n : 4, a.result.n ? a.result.p : "null");
	if (!done && r->s.json)
		r->s.exit = CLI_NOTHING;
	else if (!done)
		session_nothing(&r->s, "message %s is not done yet", r->id);
	return 0;
}

int
cli_result(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "result RECEIPT|ID [options]",
		.text = "Print the result that the ack of a message brought, as JSON. The message was pushed\n"
			"with --keep-result. Exits 3 when it is not done yet, or its result is not kept.\n",
		.examples = "  sluice result 318497266802130945\n"
			    "  sluice result 318497266802130945 --wait 1m\n"
			    "  id=$(sluice push sums --keep-result 1h '[1,2]')\n"
			    "  sluice result $id --json\n",
		.min_words = 1,
		.max_words = 1,
	};
	struct result r = { .s = SESSION("result") };
	const struct arg rows[] = {
		{ "-w, --wait", ARG_TIME, &r.wait, "wait so long for the ack (0)" },
		{ "--queue QUEUE", ARG_TEXT, &r.queue, "the queue of the message; needed where there are several shards" },
		SESSION_ROWS(&r.s),
	};
	struct slu_err err;
	uint64_t id;
	int rc;

	if (!session_begin(&r.s, &help, &argc, &argv, rows, COUNT(rows)))
		return r.s.exit;
	r.id = argv[0];
	r.is_receipt = id_parse(slice_of(r.id), &id, NULL) != 0;
	rc = show(&r, &err);
	if (rc == SLU_ENOTFOUND)
		session_nothing(&r.s, "no result of message %s: there is no such message, or its result is not "
				      "kept (push --keep-result)",
				r.id);
	else if (rc)
		session_fail(&r.s, &err);
	return session_end(&r.s);
}
