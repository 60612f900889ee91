/*
 * history.c - `sluice history`: prints the recent past of a queue, or of the server.
 */
#include "cli/lib/session.h"
#include "cli/lib/table.h"

#include "base/json/json.h"

struct history_command {
	struct session s;
	const char *range;
	bool storage;
};

/* The members of the answer that are columns of the table. */
struct history_column {
	const char *member, *head;
};

static const struct history_column of_queues[] = {
	{ "in", "IN/S" },
	{ "done", "DONE/S" },
	{ "failed", "FAILED/S" },
	{ "ready", "READY" },
	{ "delayed", "DELAYED" },
	{ "leased", "LEASED" },
	{ "held", "HELD" },
	{ "dead", "DEAD" },
	{ "oldest_ms", "OLDEST MS" },
	{ "wait_p50_ms", "WAIT P50" },
	{ "wait_p99_ms", "P99" },
	{ "run_p50_ms", "RUN P50" },
	{ "run_p99_ms", "P99" },
};

static const struct history_column of_storage[] = {
	{ "syncs", "SYNCS/S" },
	{ "sync_p50_ms", "SYNC P50" },
	{ "sync_p95_ms", "P95" },
	{ "sync_p99_ms", "P99" },
	{ "puts", "PUTS/S" },
	{ "put_p50_ms", "PUT P50" },
	{ "put_p95_ms", "P95" },
	{ "put_p99_ms", "P99" },
};

enum {
	N = COUNT(of_queues) /* the most columns of a table */
};

/* Finds the arrays of the columns. */
static void
find_arrays(struct slice body, const struct history_column *columns, unsigned n, struct json at[static N], bool found[static N])
{
	struct json_str name;
	struct json r;

	json_init(&r, body, JSON_DEPTH);
	json_object(&r);
	while (json_member(&r, &name)) {
		const struct slice value = json_skip(&r);

		for (unsigned i = 0; i < n; i++) {
			if (!json_str_is(&name, slice_of(columns[i].member)))
				continue;
			json_init(&at[i], value, JSON_DEPTH);
			json_array(&at[i]);
			found[i] = true;
		}
	}
}

/* Adds a row to the table. Returns false at the end of the arrays. */
static bool
add_row(struct text_table *t, unsigned n, struct json at[static N], const bool found[static N])
{
	for (unsigned i = 0; i < n; i++) {
		struct slice value;

		if (!found[i] || !json_element(&at[i]))
			return false;
		value = json_skip(&at[i]);
		table_text(t, slice_eq(value, SLICE("null")) ? SLICE("-") : value);
	}
	return true;
}

static int
print(struct slice body, const struct history_column *columns, unsigned n)
{
	const char *heads[N];
	bool found[N] = { false };
	struct json at[N];
	struct text_table t;
	int rc;

	for (unsigned i = 0; i < n; i++)
		heads[i] = columns[i].head;
	find_arrays(body, columns, n, at, found);
	table_init(&t, heads, n, (1u << n) - 1);
	while (add_row(&t, n, at, found))
		continue;
	rc = table_print(&t, stdout, session_colours(stdout));
	table_release(&t);
	return rc;
}

static int
run(struct session *s, struct slu_err *err)
{
	const struct history_command *const h = (void *)s;
	const char *const queue = s->n_words ? s->words[0] : NULL;
	struct cli_query *const q = &s->query;
	struct slice body;
	int rc;

	query_queue(q, "/v1/admin/history", queue ? s->space : NULL, queue);
	if (h->range)
		http_param(&q->path, "range", h->range);
	if (h->storage)
		http_param(&q->path, "of", "storage");
	rc = query_get(q, &body, err);
	if (rc)
		return rc;
	if (!s->json)
		return h->storage ? print(body, of_storage, COUNT(of_storage)) : print(body, of_queues, COUNT(of_queues));
	query_print(body);
	return 0;
}

const struct command cli_history = {
	.name = "history",
	.group = "Queues",
	.summary = "print the recent past of a queue, or of the server",
	.usage = "[QUEUE] [options]",
	.text = "Prints a line for each step of time, oldest first: how many messages a second came in, were\n"
		"finished and failed, how many were in each state at the end of the step, how old the oldest\n"
		"ready message was, and how long messages waited and ran, in ms. Without QUEUE the line is about\n"
		"all queues. A queue that has not moved for an hour has no lines. The history begins when the\n"
		"server starts.\n"
		"\nWith --storage it prints how many syncs of logs, and puts into stores, a second the server did,\n"
		"and how long they took, in ms.\n",
	.examples = "  sluice history mail\n"
		    "  sluice history --range 7d --json | jq .in\n",
	.words = { 0, 1 },
	.options = CLI_QUEUE,
	CLI_ARGS({ "-r, --range RANGE", ARG_TEXT, AT(history_command, range), "10m or 1h; without QUEUE also 24h or 7d (10m)" },
		 { "--storage", ARG_FLAG, AT(history_command, storage), "of the disks and stores of the server; without QUEUE" }),
	.size = sizeof(struct history_command),
	.run = run,
};
