/*
 * status.c - `sluice status`: which server this is, how it is, how much it holds.
 *
 * What it says of itself is in its metrics, a line each:
 *
 *      sluice_info{version="0.1.0",engine="log",durability="sync"} 1
 *      sluice_messages{state="ready"} 12
 */
#include "cli/session.h"

#include "base/clock.h"
#include "base/json_out.h"
#include "base/parse.h"

#include <inttypes.h>
#include <stdlib.h>

struct status {
	char ready[256]; /* "yes", or why not */
	char version[64], engine[64], durability[64];
	uint64_t shards, queues;
	char map_hash[32], map_version[32]; /* "": it has none */
	double start;                       /* unix seconds; 0: not said */
	struct {
		const char *state;
		uint64_t n;
	} messages[6];
};

/* The text of a label of the line, or false. */
static bool
label(struct slice line, const char *name, char *out, size_t room)
{
	const size_t n = strlen(name);

	for (size_t i = 1; i + n + 2 < line.n; i++) {
		const char *value = line.p + i + n + 2;
		const char *end;

		if ((line.p[i - 1] != '{' && line.p[i - 1] != ',') ||
		    memcmp(line.p + i, name, n) != 0 || memcmp(line.p + i + n, "=\"", 2) != 0)
			continue;
		end = memchr(value, '"', (size_t)(line.p + line.n - value));
		if (!end)
			return false;
		(void)snprintf(out, room, "%.*s", (int)(end - value), value);
		return true;
	}
	return false;
}

/* Is the line a value of this metric? */
static bool
is_metric(struct slice line, const char *name)
{
	const size_t n = strlen(name);

	return line.n > n && memcmp(line.p, name, n) == 0 &&
	       (line.p[n] == '{' || line.p[n] == ' ');
}

static double
value_of(struct slice line)
{
	char text[64];
	size_t at = line.n;

	while (at > 0 && line.p[at - 1] != ' ')
		at--;
	(void)snprintf(text, sizeof text, "%.*s", (int)(line.n - at), line.p + at);
	return strtod(text, NULL);
}

static void
take_messages(struct status *s, struct slice line)
{
	char state[32];

	if (!label(line, "state", state, sizeof state))
		return;
	for (size_t i = 0; i < COUNT(s->messages); i++)
		if (strcmp(state, s->messages[i].state) == 0)
			s->messages[i].n = (uint64_t)value_of(line);
}

static void
take_line(struct status *s, struct slice line)
{
	if (is_metric(line, "sluice_info")) {
		(void)label(line, "version", s->version, sizeof s->version);
		(void)label(line, "engine", s->engine, sizeof s->engine);
		(void)label(line, "durability", s->durability, sizeof s->durability);
	}
	if (is_metric(line, "sluice_shard_ops_total"))
		s->shards++;
	if (is_metric(line, "sluice_shard_map_info")) {
		(void)label(line, "hash", s->map_hash, sizeof s->map_hash);
		(void)label(line, "version", s->map_version, sizeof s->map_version);
	}
	if (is_metric(line, "sluice_queues"))
		s->queues = (uint64_t)value_of(line);
	if (is_metric(line, "process_start_time_seconds"))
		s->start = value_of(line);
	if (is_metric(line, "sluice_messages"))
		take_messages(s, line);
}

static int
ask(struct session *t, struct status *s, struct slu_err *err)
{
	struct slu_err why;
	struct slice body;
	int rc;

	query_path(&t->query, "/readyz");
	rc = query_get(&t->query, &body, &why);
	if (rc && t->query.answer.status == 0)
		return slu_fail(err, rc, "%s", why.text);
	(void)snprintf(s->ready, sizeof s->ready, "%s%s", rc ? "no: " : "yes",
		       rc ? why.text : "");
	query_path(&t->query, "/metrics");
	rc = query_get(&t->query, &body, err);
	while (!rc && body.n > 0) {
		const char *lf = memchr(body.p, '\n', body.n);
		const size_t n = lf ? (size_t)(lf - body.p) : body.n;

		take_line(s, (struct slice){ body.p, n });
		body.p += lf ? n + 1 : n;
		body.n -= lf ? n + 1 : n;
	}
	return rc;
}

/* --- print ---------------------------------------------------------------------- */

/* Whole seconds, or -1 when the server does not say. */
static slu_time
uptime(const struct status *s)
{
	const slu_time now = clock_wall(&clock_system) / SLU_SEC;
	const slu_time t = s->start > 0 ? now - (slu_time)s->start : -1;

	return s->start > 0 && t < 0 ? 0 : t;
}

static void
print_json(const struct session *t, const struct status *s)
{
	struct json_out w;
	struct buf b;

	buf_init(&b, 4096);
	json_out_init(&w, &b);
	json_out_object(&w, NULL);
	json_out_str(&w, "server", slice_of(t->shown));
	json_out_bool(&w, "ready", strcmp(s->ready, "yes") == 0);
	json_out_str(&w, "version", slice_of(s->version));
	json_out_str(&w, "engine", slice_of(s->engine));
	json_out_str(&w, "durability", slice_of(s->durability));
	if (s->start > 0)
		json_out_i64(&w, "uptime_seconds", uptime(s));
	json_out_u64(&w, "shards", s->shards);
	if (*s->map_hash) {
		json_out_object(&w, "shard_map");
		json_out_raw(&w, "version", slice_of(s->map_version));
		json_out_str(&w, "hash", slice_of(s->map_hash));
		json_out_close(&w);
	}
	json_out_u64(&w, "queues", s->queues);
	json_out_object(&w, "messages");
	for (size_t i = 0; i < COUNT(s->messages); i++)
		json_out_u64(&w, s->messages[i].state, s->messages[i].n);
	json_out_close(&w);
	json_out_close(&w);
	json_out_end(&w);
	puts(buf_str(&b));
	buf_release(&b);
}

static void
print_text(const struct session *t, const struct status *s)
{
	char text[DURATION_TEXT];

	printf("server      %s\n", t->shown);
	printf("ready       %s\n", s->ready);
	printf("version     %s\n", s->version);
	printf("engine      %s\n", s->engine);
	printf("durability  %s\n", s->durability);
	if (s->start > 0)
		printf("uptime      %s\n", format_duration(uptime(s) * SLU_SEC, text, sizeof text));
	printf("shards      %" PRIu64 "\n", s->shards);
	if (*s->map_hash)
		printf("shard map   version %s, hash %s\n", s->map_version, s->map_hash);
	printf("queues      %" PRIu64 "\n", s->queues);
	printf("messages    ");
	for (size_t i = 0; i < COUNT(s->messages); i++)
		printf("%s%" PRIu64 " %s", i ? ", " : "", s->messages[i].n, s->messages[i].state);
	putchar('\n');
}

int
cli_status(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "status [options]",
		.text = "Which server this is, how it keeps messages, whether it takes work. Exits 1\n"
			"when it does not.\n",
		.examples = "  sluice status\n  sluice status --server unix:/run/sluice.sock --json\n",
		.max_words = 0,
	};
	struct session t = SESSION("status");
	const struct arg rows[] = { SESSION_ROWS(&t) };
	struct status s = {
		.messages = { { "ready", 0 },
			      { "delayed", 0 },
			      { "leased", 0 },
			      { "held", 0 },
			      { "dead", 0 },
			      { "damaged", 0 } },
	};
	struct slu_err err;

	if (!session_begin(&t, &help, &argc, &argv, rows, COUNT(rows)))
		return t.exit;
	if (ask(&t, &s, &err)) {
		session_fail(&t, &err);
		return session_end(&t);
	}
	if (t.json)
		print_json(&t, &s);
	else
		print_text(&t, &s);
	t.exit = strcmp(s.ready, "yes") == 0 ? CLI_OK : CLI_FAILED;
	return session_end(&t);
}
