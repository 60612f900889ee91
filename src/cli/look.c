/*
 * look.c - `sluice stats`, `topics` and `peek`: what is there, without touching it.
 */
#include "cli/find.h"
#include "cli/names.h"

#include <inttypes.h>

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

/* All queues of the namespace, page by page. */
static int
list_queues(struct rows *r, struct slu_err *err)
{
	struct query *q = &r->session->query;
	struct slice page;
	int rc;

	do {
		query_path(q, "/topics");
		query_param(q, "namespace", r->session->space);
		query_param(q, "limit", "1000");
		query_param(q, "cursor", r->cursor[0] ? r->cursor : NULL);
		rc = query_get(q, &page, err);
		if (!rc)
			rc = rows_add(r, page, "topics", err);
	} while (!rc && r->cursor[0]);
	return rc;
}

static int
one_queue(struct rows *r, const char *queue, struct slu_err *err)
{
	struct query *q = &r->session->query;
	struct slu_err why;
	struct slice body;
	int rc;

	query_path(q, "/stats");
	query_param(q, "namespace", r->session->space);
	query_param(q, "topic", queue);
	rc = query_get(q, &body, &why);
	if (rc)
		return slu_fail(err, rc, "%s: %s", queue, why.text);
	return rows_add(r, body, NULL, err);
}

static int
show_queues(struct session *s, const struct column *columns, unsigned n, const char *queue)
{
	struct slu_err err;
	struct rows r;
	int rc;

	rows_init(&r, s, columns, n);
	rc = queue ? one_queue(&r, queue, &err) : list_queues(&r, &err);
	if (!rc)
		rc = rows_end(&r, &err);
	if (rc) {
		session_fail(s, &err);
	} else if (r.n == 0) {
		names_no_queues(s);
	}
	rows_release(&r);
	return session_end(s);
}

int
cli_stats(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "stats [QUEUE] [options]",
		.text = "How many messages a queue has, by state; without QUEUE, every queue. HELD ones\n"
			"wait for another of their key, DEAD ones failed too often.\n",
		.examples = "  sluice stats\n  sluice stats mail\n"
			    "  sluice stats mail --json | jq .ready\n",
		.max_words = 1,
	};
	struct session s = SESSION("stats");
	const struct arg rows[] = { SESSION_ROWS(&s) };

	if (!session_begin(&s, &help, &argc, &argv, rows, COUNT(rows)))
		return s.exit;
	return show_queues(&s, queue_columns, COUNT(queue_columns), argc > 0 ? argv[0] : NULL);
}

int
cli_topics(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "topics [options]",
		.text = "The queues of a namespace.\n",
		.examples = "  sluice topics\n  sluice topics --namespace payments --json\n",
		.max_words = 0,
	};
	struct session s = SESSION("topics");
	const struct arg rows[] = { SESSION_ROWS(&s) };

	if (!session_begin(&s, &help, &argc, &argv, rows, COUNT(rows)))
		return s.exit;
	return show_queues(&s, topic_columns, COUNT(topic_columns), NULL);
}

/* --- peek ----------------------------------------------------------------------- */

struct peek {
	struct session s;
	const char *state;
	const char *id;
	uint64_t limit;
};

static int
peek_page(struct peek *p, const char *queue, struct rows *r, struct slu_err *err)
{
	struct query *q = &p->s.query;
	struct slice body;
	int rc;

	query_path(q, "/peek");
	query_param(q, "namespace", p->s.space);
	query_param(q, "topic", queue);
	query_param(q, "id", p->id);
	query_param(q, "state", p->id ? NULL : p->state);
	query_param(q, "cursor", r->cursor[0] ? r->cursor : NULL);
	if (!p->id)
		query_param_u64(q, "limit", p->limit - r->n);
	rc = query_get(q, &body, err);
	return rc ? rc : rows_add(r, body, "messages", err);
}

/* A page may be short, or empty, before the last one. */
static int
peek(struct peek *p, const char *queue, struct rows *r, struct slu_err *err)
{
	int rc;

	do
		rc = peek_page(p, queue, r, err);
	while (!rc && r->cursor[0] && r->n < p->limit);
	return rc ? rc : rows_end(r, err);
}

int
cli_peek(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "peek QUEUE [options]",
		.text = "Messages as they stand, without taking them: the next ones in the order they\n"
			"would be handed out, or those of a state. Exits 3 when there are none.\n",
		.examples = "  sluice peek mail\n"
			    "  sluice peek mail --state leased\n"
			    "  sluice peek mail --id 318497266802130945 --json\n",
		.min_words = 1,
		.max_words = 1,
	};
	struct peek p = { .s = SESSION("peek"), .limit = 10 };
	const struct arg rows[] = {
		{ STATE_FORM, ARG_TEXT, &p.state, "only messages in this state (ready)" },
		{ "--id ID", ARG_TEXT, &p.id, "one message" },
		{ "-l, --limit", ARG_COUNT, &p.limit, "how many, at most 1000 (10)" },
		SESSION_ROWS(&p.s),
	};
	struct slu_err err;
	struct rows r;

	if (!session_begin(&p.s, &help, &argc, &argv, rows, COUNT(rows)))
		return p.s.exit;
	rows_init(&r, &p.s, message_columns, COUNT(message_columns));
	if (peek(&p, argv[0], &r, &err)) {
		session_fail(&p.s, &err);
	} else if (r.n == 0) {
		session_nothing(&p.s, "no such message in %s: %s", argv[0],
				p.id      ? p.id
				: p.state ? p.state
					  : "ready");
	}
	rows_release(&r);
	return session_end(&p.s);
}
