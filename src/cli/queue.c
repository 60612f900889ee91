/*
 * queue.c - `sluice queue`: queues as they stand, their knobs, pause, resume, purge.
 */
#include "cli/facts.h"
#include "cli/knob_names.h"
#include "cli/knobs.h"
#include "cli/names.h"
#include "cli/progress.h"
#include "cli/rows.h"

#include "base/json.h"
#include "base/json_out.h"
#include "base/json_table.h"

#include <inttypes.h>

static const struct column columns[] = {
	{ "display_namespace", "NAMESPACE", COLUMN_TEXT },
	{ "display_topic", "QUEUE", COLUMN_TEXT },
	{ "shard", "SHARD", COLUMN_MAYBE },
	{ "ready", "READY", COLUMN_NUMBER },
	{ "delayed", "DELAYED", COLUMN_NUMBER },
	{ "leased", "LEASED", COLUMN_NUMBER },
	{ "held", "HELD", COLUMN_NUMBER },
	{ "dead", "DEAD", COLUMN_NUMBER },
	{ "oldest_ready_ms", "OLDEST", COLUMN_MILLIS },
	{ "paused", "PAUSED", COLUMN_TEXT },
};

/* --- list ----------------------------------------------------------------------- */

static int
list(struct rows *r, bool all, struct slu_err *err)
{
	struct query *q = &r->session->query;
	struct slice page;
	int rc;

	do {
		query_path(q, "/v1/admin/queues");
		query_param(q, "namespace", all ? NULL : r->session->space);
		query_param(q, "limit", "1000");
		query_param(q, "cursor", r->cursor[0] ? r->cursor : NULL);
		rc = query_get(q, &page, err);
		if (!rc)
			rc = rows_add(r, page, "queues", err);
	} while (!rc && r->cursor[0]);
	return rc ? rc : rows_end(r, err);
}

int
cli_queue_list(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "queue list [options]",
		.text = "The queues of a namespace, or of all: how much is where, how long the oldest\n"
			"ready message has been waiting, and whether the queue is paused. Where there\n"
			"are several shards, on which it is: one that moves has a line for each.\n",
		.examples = "  sluice queue list\n  sluice queue list --all\n"
			    "  sluice queue list --json | jq 'select(.dead > 0)'\n",
	};
	struct session s = SESSION("queue list");
	bool all = false;
	const struct arg args[] = {
		{ "-a, --all", ARG_FLAG, &all, "of all namespaces" },
		SESSION_ROWS(&s),
	};
	struct slu_err err;
	struct rows r;

	if (!session_begin(&s, &help, &argc, &argv, args, COUNT(args)))
		return s.exit;
	rows_init(&r, &s, columns, COUNT(columns));
	if (list(&r, all, &err)) {
		session_fail(&s, &err);
	} else if (r.n == 0 && all) {
		session_nothing(&s, "no queues yet");
	} else if (r.n == 0) {
		names_no_queues(&s);
	}
	rows_release(&r);
	return session_end(&s);
}

/* --- show ----------------------------------------------------------------------- */

int
cli_queue_show(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "queue show QUEUE [options]",
		.text = "One queue: how much is where, what has happened in it since the server was\n"
			"started, and all its knobs.\n",
		.examples = "  sluice queue show mail\n"
			    "  sluice queue show mail --json | jq .policy.max_attempts\n",
		.min_words = 1,
		.max_words = 1,
	};
	struct session s = SESSION("queue show");
	const struct arg args[] = { SESSION_ROWS(&s) };
	struct slu_err err;
	struct slice body;
	int rc;

	if (!session_begin(&s, &help, &argc, &argv, args, COUNT(args)))
		return s.exit;
	query_path(&s.query, "/v1/admin/queue");
	query_param(&s.query, "namespace", s.space);
	query_param(&s.query, "topic", argv[0]);
	rc = query_get(&s.query, &body, &err);
	if (!rc && s.json)
		query_print(body);
	else if (!rc)
		rc = facts_print(body, session_colours(stdout), &err);
	if (rc)
		session_fail(&s, &err);
	return session_end(&s);
}

/* --- set ------------------------------------------------------------------------ */

/* name=value into name, and the value; NULL: it is none. */
static char *
split(char *word, struct slu_err *err)
{
	char *equals = strchr(word, '=');

	if (!equals || equals == word) {
		slu_fail(err, SLU_EINVAL, "%s: expected KNOB=VALUE", word);
		return NULL;
	}
	*equals = '\0';
	return equals + 1;
}

/* The knobs of `retry` are written retry.base=5s: in an object of their own. */
static int
write_knobs(struct json_out *w, int n, char **words, struct slu_err *err)
{
	static const char retry[] = "retry.";
	bool inner = false;

	json_out_object(w, NULL);
	for (int i = 0; i < n; i++) {
		const char *value;

		if (strncmp(words[i], retry, sizeof retry - 1) == 0)
			continue;
		value = split(words[i], err);
		if (!value)
			return SLU_EINVAL;
		knob_write(w, words[i], value);
	}
	for (int i = 0; i < n; i++) {
		const char *value;

		if (strncmp(words[i], retry, sizeof retry - 1) != 0)
			continue;
		value = split(words[i], err);
		if (!value)
			return SLU_EINVAL;
		if (!inner)
			json_out_object(w, "retry");
		inner = true;
		knob_write(w, words[i] + sizeof retry - 1, value);
	}
	if (inner)
		json_out_close(w);
	json_out_close(w);
	return 0;
}

static int
set(struct session *s, const char *queue, bool reset, struct slice body, struct slice *out,
    struct slu_err *err)
{
	query_path(&s->query, "/v1/admin/queue/policy");
	query_param(&s->query, "namespace", s->space);
	query_param(&s->query, "topic", queue);
	return reset ? query_put(&s->query, body, out, err)
		     : query_post(&s->query, body, out, err);
}

/* A refusal may be for a name that is almost one. argv[i] is the name alone by now. */
static void
suggest_knob(struct slu_err *err, int n, char **names)
{
	for (int i = 0; i < n && err->code == SLU_EINVAL; i++) {
		const char *near = knob_nearest(names[i]);
		struct slu_err why = *err;

		if (!near)
			continue;
		slu_fail(err, SLU_EINVAL, "no knob %s; did you mean %s? (%s)", names[i], near, why.text);
		return;
	}
}

int
cli_queue_set(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "queue set QUEUE KNOB=VALUE... [options]",
		.text = "Change the knobs of a queue; those that are not named stay. Knobs: lease,\n"
			"max_attempts, retry.kind, retry.base, retry.max, retry.jitter, ttl, max_depth,\n"
			"warn_depth, max_rate, burst, idempotency_window, idempotency, dlq_retention,\n"
			"dlq_max, require_lease, paused.\n"
			"docs/api.md says what each does.\n",
		.examples = "  sluice queue set mail max_attempts=10 lease=1m\n"
			    "  sluice queue set mail retry.kind=linear retry.base=5s\n"
			    "  sluice queue set mail --reset dlq_retention=7d\n",
		.min_words = 1,
		.max_words = 1 + 32,
	};
	struct session s = SESSION("queue set");
	bool reset = false;
	const struct arg args[] = {
		{ "--reset", ARG_FLAG, &reset, "knobs that are not named get their defaults" },
		SESSION_ROWS(&s),
	};
	struct slice answer;
	struct json_out w;
	struct slu_err err;
	struct buf body;
	int rc;

	if (!session_begin(&s, &help, &argc, &argv, args, COUNT(args)))
		return s.exit;
	if (argc == 1 && !reset) {
		session_usage(&s, "set what? Name a KNOB=VALUE, or say --reset");
		return session_end(&s);
	}
	buf_init(&body, 64 * 1024);
	json_out_init(&w, &body);
	if (write_knobs(&w, argc - 1, argv + 1, &err)) {
		session_usage(&s, "%s", err.text);
		buf_release(&body);
		return session_end(&s);
	}
	rc = set(&s, argv[0], reset, buf_slice(&body), &answer, &err);
	if (!rc && s.json)
		query_print(answer);
	else if (!rc)
		rc = facts_print(answer, session_colours(stdout), &err);
	if (rc) {
		suggest_knob(&err, argc - 1, argv + 1);
		session_fail(&s, &err);
	}
	buf_release(&body);
	return session_end(&s);
}

/* --- pause, resume, purge ------------------------------------------------------- */

/* POST the name of the queue; the answer. */
static int
tell(struct session *s, const char *path, const char *queue, struct slice *out,
     struct slu_err *err)
{
	struct json_out w;
	struct buf body;
	int rc;

	buf_init(&body, 4096);
	json_out_init(&w, &body);
	json_out_object(&w, NULL);
	json_out_str(&w, "namespace", slice_of(s->space));
	json_out_str(&w, "topic", slice_of(queue));
	json_out_close(&w);
	query_path(&s->query, path);
	rc = query_post(&s->query, buf_slice(&body), out, err);
	buf_release(&body);
	return rc;
}

static int
pause_or_resume(int argc, char **argv, const char *name, const struct session_help *help)
{
	struct session s = SESSION(name);
	const struct arg args[] = { SESSION_ROWS(&s) };
	const bool pauses = strcmp(argv[0], "pause") == 0;
	struct slice answer;
	struct slu_err err;

	if (!session_begin(&s, help, &argc, &argv, args, COUNT(args)))
		return s.exit;
	for (int i = 0; i < argc; i++) {
		if (tell(&s, pauses ? "/v1/admin/queue/pause" : "/v1/admin/queue/resume", argv[i],
			 &answer, &err))
			session_fail(&s, &err);
		else if (s.json)
			query_print(answer);
	}
	return session_end(&s);
}

int
cli_queue_pause(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "queue pause QUEUE... [options]",
		.text = "A paused queue takes messages and hands out none, also after a restart. Whoever\n"
			"waits for one goes on waiting; what is handed out can be settled. Exits 3 when there\n"
			"is no such queue; `sluice queue set QUEUE paused=true` makes a new one paused.\n",
		.examples = "  sluice queue pause mail\n  sluice queue pause mail sms\n",
		.min_words = 1,
		.max_words = SESSION_ANY,
	};

	return pause_or_resume(argc, argv, "queue pause", &help);
}

int
cli_queue_resume(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "queue resume QUEUE... [options]",
		.text = "Hand out messages again.\n",
		.examples = "  sluice queue resume mail\n",
		.min_words = 1,
		.max_words = SESSION_ANY,
	};

	return pause_or_resume(argc, argv, "queue resume", &help);
}

struct depth {
	uint64_t ready, delayed, held;
};

static int
ask_depth(struct session *s, const char *queue, uint64_t *out, struct slu_err *err)
{
	static const struct json_field fields[] = {
		JSON_FIELD(u64, struct depth, ready),
		JSON_FIELD(u64, struct depth, delayed),
		JSON_FIELD(u64, struct depth, held),
	};
	struct depth d = { 0 };
	struct slice body;
	struct json r;
	int rc;

	query_path(&s->query, "/v1/admin/queue");
	query_param(&s->query, "namespace", s->space);
	query_param(&s->query, "topic", queue);
	rc = query_get(&s->query, &body, err);
	if (rc)
		return rc;
	json_init(&r, body, JSON_DEPTH);
	json_fields(&r, fields, COUNT(fields), JSON_LENIENT, &d);
	*out = d.ready + d.delayed + d.held;
	return json_end(&r, err) ? SLU_EUNKNOWN : 0;
}

static int
purge(struct session *s, const char *queue, struct slu_err *err)
{
	static const struct json_field fields[] = {
		{ .name = { "purged", 6 }, .read = json_read_u64, .size = sizeof(uint64_t) },
	};
	struct slice answer;
	uint64_t n = 0;
	struct json r;
	int rc;

	rc = tell(s, "/v1/admin/queue/purge", queue, &answer, err);
	if (rc)
		return rc;
	json_init(&r, answer, JSON_DEPTH);
	json_fields(&r, fields, COUNT(fields), JSON_LENIENT, &n);
	if (json_end(&r, err))
		return SLU_EUNKNOWN;
	if (s->json)
		query_print(answer);
	else
		printf("%" PRIu64 " purged\n", n);
	return 0;
}

int
cli_queue_purge(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "queue purge QUEUE [options]",
		.text = "Delete all messages of a queue that are neither leased nor dead: they cannot be\n"
			"had back. `sluice dlq purge` deletes dead letters.\n",
		.examples = "  sluice queue purge mail\n  sluice queue purge mail --yes\n",
		.min_words = 1,
		.max_words = 1,
	};
	struct session s = SESSION("queue purge");
	bool yes = false;
	const struct arg args[] = {
		{ "-y, --yes", ARG_FLAG, &yes, "do not ask" },
		SESSION_ROWS(&s),
	};
	struct slu_err err;
	uint64_t n;
	int rc;

	if (!session_begin(&s, &help, &argc, &argv, args, COUNT(args)))
		return s.exit;
	rc = ask_depth(&s, argv[0], &n, &err);
	if (!rc && confirm(&s, yes, "delete %" PRIu64 " messages of queue %s in namespace %s", n, argv[0], s.space))
		rc = purge(&s, argv[0], &err);
	if (rc)
		session_fail(&s, &err);
	return session_end(&s);
}
