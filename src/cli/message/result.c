/*
 * result.c - `sluice result`: prints the result that the ack of a message stored.
 */
#include "cli/lib/session.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/json/json_table.h"
#include "base/parse.h"

/* A request waits at most this long: a middlebox may close an idle connection. */
#define ROUND (20 * SLU_SEC)

struct result_command {
	struct session s;
	const char *id; /* the id or the receipt */
	bool is_receipt;
	const char *queue;
	slu_time wait;
};

struct result_answer {
	struct slice status, result;
};

/* Sends one request that waits this long. */
static int
ask(struct result_command *r, slu_time wait, struct slice *body, struct result_answer *out, struct slu_err *err)
{
	static const struct json_field fields[] = {
		JSON_FIELD(text, struct result_answer, status, .required = true),
		JSON_FIELD(raw, struct result_answer, result),
	};
	struct cli_query *const q = &r->s.query;
	char text[DURATION_TEXT];
	int rc;

	*out = (struct result_answer){ 0 };
	query_queue(q, "/result", r->is_receipt ? NULL : r->s.space, r->queue);
	http_param(&q->path, r->is_receipt ? "receipt" : "id", r->id);
	http_param(&q->path, "wait", wait > 0 ? format_duration(wait, text, sizeof text) : NULL);
	q->timeout = wait + r->s.timeout;
	rc = query_get(q, body, err);
	return rc ? rc : query_read(*body, fields, COUNT(fields), out, err);
}

static int
show(struct result_command *r, struct slu_err *err)
{
	const slu_time end = clock_mono(&clock_system) + r->wait;
	struct result_answer a;
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
		session_nothing(&r->s, "message %s is not acked yet", r->id);
	return 0;
}

static int
run(struct session *s, struct slu_err *err)
{
	struct result_command *const r = (void *)s;
	uint64_t id;
	int rc;

	r->id = r->s.words[0];
	r->is_receipt = id_parse(slice_of(r->id), &id, NULL) != 0;
	rc = show(r, err);
	if (rc != SLU_ENOTFOUND)
		return rc;
	return session_nothing(&r->s, "no result of message %s: the message does not exist, or its result is not "
				      "kept (push --keep-result)",
			       r->id);
}

const struct command cli_result = {
	.name = "result",
	.group = "Messages",
	.summary = "print the result of a message",
	.usage = "RECEIPT|ID [options]",
	.text = "Prints the result that the ack of a message stored, as JSON. The message must be\n"
		"pushed with --keep-result. Exits 3 if it is not acked yet, or its result is not kept.\n",
	.examples = "  sluice result 318497266802130945\n"
		    "  sluice result 318497266802130945 --wait 1m\n"
		    "  id=$(sluice push sums --keep-result 1h '[1,2]')\n"
		    "  sluice result $id --json\n",
	.options = CLI_QUEUE,
	CLI_ARGS({ "-w, --wait", ARG_TIME, AT(result_command, wait), "wait this long for the ack (0)" },
		 { "--queue QUEUE", ARG_TEXT, AT(result_command, queue), "queue of the message; needed if the server has several shards" }),
	.size = sizeof(struct result_command),
	.run = run,
};
