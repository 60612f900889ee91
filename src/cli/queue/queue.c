/*
 * queue.c - `sluice queue`: list, show, set, pause, drain, resume and purge queues.
 */
#include "cli/lib/knobs.h"
#include "cli/lib/names.h"
#include "cli/lib/progress.h"
#include "cli/lib/rows.h"

#include "base/clock.h"
#include "base/json/json.h"
#include "base/json/json_out.h"
#include "base/json/json_table.h"
#include "base/parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum {
	LOOK = 500 * 1000 * 1000 /* ns between two looks */
};

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
	{ "wait_p95_ms", "WAIT P95", COLUMN_MILLIS },
	{ "consumers", "WORKERS", COLUMN_NUMBER },
	{ "paused", "PAUSED", COLUMN_TEXT },
	{ "paused_until", "UNTIL", COLUMN_MAYBE },
	{ "pause_reason", "REASON", COLUMN_MAYBE },
	{ "draining", "DRAINING", COLUMN_MAYBE },
	{ "tags", "TAGS", COLUMN_MAYBE },
};

/* --- list ----------------------------------------------------------------------- */

struct queue_list {
	struct session s;
	bool all;
};

static int
list(struct session *s, struct slu_err *err)
{
	struct queue_list *const l = (void *)s;
	struct listing r;
	int rc;

	rows_init(&r, &l->s, columns, COUNT(columns));
	rc = rows_pages(&r, "/v1/admin/queues", l->all ? NULL : l->s.space, "queues", err);
	if (!rc && r.n == 0 && l->all)
		session_nothing(&l->s, "no queues yet");
	else if (!rc && r.n == 0)
		names_no_queues(&l->s);
	rows_release(&r);
	return rc;
}

const struct command cli_queue_list = {
	.name = "queue list",
	.summary = "list queues: messages by state, age, paused",
	.usage = "[options]",
	.text = "Lists the queues of a namespace, or of all namespaces: messages by state, how long\n"
		"the oldest ready message has been waiting, and whether the queue is paused. With\n"
		"several shards it names the shard; a queue that is moving has a line for each shard.\n",
	.examples = "  sluice queue list\n  sluice queue list --all\n"
		    "  sluice queue list --json | jq 'select(.dead > 0)'\n",
	.options = CLI_QUEUE,
	CLI_ARGS({ "-a, --all", ARG_FLAG, AT(queue_list, all), "all namespaces" }),
	.size = sizeof(struct queue_list),
	.run = list,
};

/* --- show ----------------------------------------------------------------------- */

static int
show(struct session *s, struct slu_err *err)
{
	struct slice body;
	int rc;

	query_queue(&s->query, "/v1/admin/queue", s->space, s->words[0]);
	rc = query_get(&s->query, &body, err);
	return rc ? rc : session_print(s, body, err);
}

const struct command cli_queue_show = {
	.name = "queue show",
	.summary = "show a queue with all its knobs",
	.usage = "QUEUE [options]",
	.text = "Shows a queue: messages by state, counters since the server was started, and all\n"
		"knobs.\n",
	.examples = "  sluice queue show mail\n"
		    "  sluice queue show mail --json | jq .policy.max_attempts\n",
	.options = CLI_QUEUE,
	.run = show,
};

/* --- set ------------------------------------------------------------------------ */

/* Splits name=value: `word` becomes the name. Returns the value, or NULL if the word has no =. */
static char *
split(char *word, struct slu_err *err)
{
	char *equals = strchr(word, '=');

	if (!equals || equals == word) {
		slu_fail(err, SLU_EINVAL, "invalid knob: %s; expected KNOB=VALUE", word);
		return NULL;
	}
	*equals = '\0';
	return equals + 1;
}

/* Writes the knobs as members. Knobs of `retry` (retry.base=5s) go into an inner object. */
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

struct queue_set {
	struct session s;
	bool reset;
};

/* Adds a suggestion if a name is similar to a knob. write_knobs has cut the words to names. */
static void
suggest_knob(struct slu_err *err, int n, char **names)
{
	for (int i = 0; i < n && err->code == SLU_EINVAL; i++) {
		const char *near = knob_nearest(names[i]);
		struct slu_err why = *err;

		if (!near)
			continue;
		slu_fail(err, SLU_EINVAL, "unknown knob: %s; did you mean %s? (%s)", names[i], near, why.text);
		return;
	}
}

static int
set(struct session *s, struct slu_err *err)
{
	const bool reset = ((struct queue_set *)s)->reset;
	struct slice answer;
	struct json_out w;
	struct buf body;
	int rc;

	if (s->n_words == 1 && !reset)
		return session_usage(s, "nothing to set: expected KNOB=VALUE or --reset");
	buf_init(&body, 64 * 1024);
	json_out_init(&w, &body);
	if (write_knobs(&w, s->n_words - 1, s->words + 1, err)) {
		buf_release(&body);
		return session_usage(s, "%s", err->text);
	}
	query_queue(&s->query, "/v1/admin/queue/policy", s->space, s->words[0]);
	rc = (reset ? query_put : query_post)(&s->query, buf_slice(&body), &answer, err);
	if (!rc)
		rc = session_print(s, answer, err);
	if (rc)
		suggest_knob(err, s->n_words - 1, s->words + 1);
	buf_release(&body);
	return rc;
}

const struct command cli_queue_set = {
	.name = "queue set",
	.summary = "change the knobs of a queue",
	.usage = "QUEUE KNOB=VALUE... [options]",
	.text = "Changes knobs of a queue; the other knobs do not change. Knobs: lease,\n"
		"max_attempts, retry.kind, retry.base, retry.max, retry.jitter, ttl, max_depth,\n"
		"warn_depth, warn_age, tags, max_rate, burst, idempotency_window, idempotency,\n"
		"dlq_retention, dlq_max, require_lease, paused, draining, share_weights, concurrency,\n"
		"share_concurrency, rate, rate_burst, share_rate, share_rate_burst, key_rate,\n"
		"key_rate_burst, limit_attribute, attribute_concurrency, attribute_rate,\n"
		"attribute_rate_burst, dead_letter_queue, breakers, rules, max_runtime.\n"
		"docs/api.md describes them.\n",
	.examples = "  sluice queue set mail max_attempts=10 lease=1m\n"
		    "  sluice queue set mail retry.kind=linear retry.base=5s\n"
		    "  sluice queue set mail --reset dlq_retention=7d\n",
	.words = { 1, 1 + 32 },
	.options = CLI_QUEUE,
	CLI_ARGS({ "--reset", ARG_FLAG, AT(queue_set, reset), "set the other knobs to their defaults" }),
	.size = sizeof(struct queue_set),
	.run = set,
};

/* --- pause, drain, resume, purge ------------------------------------------------------- */

/* POST the name of the queue to /v1/admin/queue/VERB; the verb is the command's. */
static int
post(struct session *s, const char *queue, struct slice *out, struct slu_err *err)
{
	const char *const body[] = { "namespace", s->space, "queue", queue, NULL };

	return session_post(s, "/v1/admin/queue/", body, out, err);
}

struct pause_command {
	struct session s;
	const char *reason;
	slu_time time;
};

static int
pause_queue(struct session *s, const char *queue, struct slu_err *err)
{
	const struct pause_command *const p = (const void *)s;
	char time[DURATION_TEXT];
	const char *const body[] = {
		"namespace",
		s->space,
		"queue",
		queue,
		"reason",
		p->reason ? p->reason : "",
		"for",
		format_duration(p->time, time, sizeof time),
		NULL,
	};

	return session_act(s, "/v1/admin/queue/", body, err);
}

static int
change(struct session *s, const char *queue, struct slu_err *err)
{
	const char *const body[] = { "namespace", s->space, "queue", queue, NULL };

	return session_act(s, "/v1/admin/queue/", body, err);
}

const struct command cli_queue_pause = {
	.name = "queue pause",
	.summary = "stop deliveries until the queue is resumed",
	.usage = "QUEUE... [options]",
	.text = "A paused queue accepts messages and delivers none, also after a restart. Consumers\n"
		"keep waiting; delivered messages can be settled. With --for it resumes by itself. Exits 3\n"
		"if the queue does not exist;\n"
		"`sluice queue set QUEUE paused=true` creates a paused queue.\n",
	.examples = "  sluice queue pause mail\n  sluice queue pause mail sms --for 30m --reason \"deploy of the relay\"\n",
	.options = CLI_QUEUE,
	CLI_ARGS({ "--for", ARG_TIME, AT(pause_command, time), "resume by itself after this time, such as 30m" },
		 { "--reason", ARG_TEXT, AT(pause_command, reason), "why; shown wherever the queue is shown" }),
	.size = sizeof(struct pause_command),
	.each = pause_queue,
};

const struct command cli_queue_resume = {
	.name = "queue resume",
	.summary = "deliver and accept again",
	.usage = "QUEUE... [options]",
	.text = "Starts the deliveries of a paused queue again, and lets a queue that is drained accept\n"
		"messages again.\n",
	.examples = "  sluice queue resume mail\n",
	.options = CLI_QUEUE,
	.each = change,
};

struct depth {
	uint64_t ready, delayed, held, leased;
};

static int
ask_depth(struct session *s, const char *queue, struct depth *out, struct slu_err *err)
{
	static const struct json_field fields[] = {
		JSON_FIELDS(u64, struct depth, ready, delayed, held, leased),
	};
	struct slice body;
	int rc;

	*out = (struct depth){ 0 };
	query_queue(&s->query, "/v1/admin/queue", s->space, queue);
	rc = query_get(&s->query, &body, err);
	return rc ? rc : query_read(body, fields, COUNT(fields), out, err);
}

struct drain_command {
	struct session s;
	slu_time wait; /* 0: do not */
};

/* Follows the queue until it is empty, or until the time, with a line of progress on a terminal. */
static int
follow(struct session *s, const char *queue, slu_time wait, struct slu_err *err)
{
	const slu_time end = time_add(clock_mono(&clock_system), wait);
	struct progress line;
	uint64_t left, most;
	struct depth d;
	int rc = ask_depth(s, queue, &d, err);

	most = left = d.ready + d.delayed + d.held + d.leased;
	progress_begin(&line, "draining", most, false);
	while (!rc && left && clock_mono(&clock_system) < end) {
		progress_at(&line, most > left ? most - left : 0);
		(void)nanosleep(&(struct timespec){ .tv_nsec = LOOK }, NULL);
		rc = ask_depth(s, queue, &d, err);
		left = d.ready + d.delayed + d.held + d.leased;
	}
	progress_end(&line);
	if (rc || !left)
		return rc;
	session_note(s, "queue %s still has %" PRIu64 " messages, %" PRIu64 " of them leased", queue, left, d.leased);
	s->exit = CLI_FAILED;
	return 0;
}

static int
drain(struct session *s, const char *queue, struct slu_err *err)
{
	const slu_time wait = ((const struct drain_command *)s)->wait;
	const int rc = change(s, queue, err);

	return rc || !wait ? rc : follow(s, queue, wait, err);
}

const struct command cli_queue_drain = {
	.name = "queue drain",
	.summary = "accept no more messages, and deliver those that wait",
	.usage = "QUEUE... [options]",
	.text = "A queue that is drained refuses new messages with `queue_draining`, also after a\n"
		"restart, until it is resumed. The messages that it has are delivered as before, with their\n"
		"retries, and its dead letters can be redriven. With --wait the command ends when the queue\n"
		"has no more messages, dead letters aside; it exits 1 if it still has some after that time.\n",
	.examples = "  sluice queue drain mail\n  sluice queue drain mail sms --wait 10m\n  sluice queue resume mail\n",
	.options = CLI_QUEUE,
	CLI_ARGS({ "--wait", ARG_TIME, AT(drain_command, wait), "then wait until the queue is empty, at most so long" }),
	.size = sizeof(struct drain_command),
	.each = drain,
};

static int
purge(struct session *s, const char *queue, struct slu_err *err)
{
	struct slice answer;
	uint64_t n;
	int rc = post(s, queue, &answer, err);

	if (!rc)
		rc = query_read_u64(answer, "purged", &n, err);
	if (!rc && s->json)
		query_print(answer);
	else if (!rc)
		printf("%" PRIu64 " purged\n", n);
	return rc;
}

static int
run_purge(struct session *s, struct slu_err *err)
{
	struct depth d;
	int rc = ask_depth(s, s->words[0], &d, err);
	const uint64_t n = d.ready + d.delayed + d.held;

	if (!rc && session_confirm(s, "delete %" PRIu64 " messages of queue %s in namespace %s", n, s->words[0], s->space))
		rc = purge(s, s->words[0], err);
	return rc;
}

const struct command cli_queue_purge = {
	.name = "queue purge",
	.summary = "delete all messages that are neither leased nor dead",
	.usage = "QUEUE [options]",
	.text = "Deletes all messages of a queue that are neither leased nor dead. A deleted message\n"
		"cannot be restored. `sluice dlq purge` deletes dead letters.\n",
	.examples = "  sluice queue purge mail\n  sluice queue purge mail --yes\n",
	.options = CLI_QUEUE | CLI_YES,
	.run = run_purge,
};
