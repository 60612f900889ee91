/*
 * status.c - `sluice status`: which server this is, how it is, how much it holds.
 *
 * /readyz needs no token and decides the exit: a health check works without one. What else there
 * is comes from the metrics, if the caller may read them, a line each:
 *
 *      sluice_info{version="0.1.0",engine="log",durability="sync"} 1
 *      sluice_messages{state="ready"} 12
 *
 * What is not known is not shown as 0: it has no line, and is null in JSON.
 */
#include "cli/escape.h"
#include "cli/session.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/json_out.h"
#include "base/json_table.h"
#include "base/mem.h"
#include "base/parse.h"

#include <inttypes.h>
#include <stdlib.h>

#define UNKNOWN (-1)

struct status {
	bool ready;
	char why_not[256];
	struct buf readyz; /* the answer; the slices below lie in it */
	struct slice state, reasons, warnings;

	char why_no_details[256]; /* "": the metrics were read */
	char version[64], engine[64], durability[64];
	int64_t shards, lanes, queues;
	char map_hash[32], map_version[32]; /* "": it has none */
	double start;                       /* unix seconds; 0: not said */
	struct {
		const char *state;
		int64_t n;
	} messages[6];
};

/* --- /readyz ---------------------------------------------------------------------- */

/* A reason or a warning. */
struct notice {
	struct slice reason, warning, name, message;
};

static const struct json_field notice_fields[] = {
	JSON_FIELD(text, struct notice, reason),
	JSON_FIELD(text, struct notice, warning),
	JSON_FIELD(text, struct notice, name),
	JSON_FIELD(text, struct notice, message),
};

/* Call each for the elements of a list; returns how many there are. */
static unsigned
each_notice(struct slice list, void (*each)(const struct notice *n, const void *arg),
	    const void *arg)
{
	char *const room = mem_alloc(list.n + 1);
	struct json r;
	unsigned n = 0;

	if (!room || list.n == 0) {
		mem_free(room);
		return 0;
	}
	json_init(&r, list, JSON_DEPTH);
	json_room(&r, room, list.n);
	json_array(&r);
	while (json_element(&r)) {
		struct notice one = { 0 };

		json_fields(&r, notice_fields, COUNT(notice_fields), JSON_LENIENT, &one);
		if (each)
			each(&one, arg);
		n++;
	}
	mem_free(room);
	return n;
}

/* A shard that is full answers; every other reason means that a shard does not. */
static void
count_silent(const struct notice *n, const void *arg)
{
	unsigned *const silent = *(unsigned *const *)arg;

	*silent += n->name.n > 0 && !slice_eq(n->reason, SLICE("disk_full"));
}

/* Do the counts lack what is on some shard? */
static bool
is_partial(const struct status *s)
{
	unsigned silent = 0, *const at = &silent;

	each_notice(s->reasons, count_silent, &at);
	return silent > 0;
}

/* What is no JSON of ours says by its HTTP status alone how the server is. */
static void
read_readyz(struct status *s, struct slice body)
{
	static const struct json_field fields[] = {
		{ .name = { "status", 6 }, .read = json_read_text, .offset = offsetof(struct status, state), .size = sizeof s->state },
		JSON_FIELD(raw, struct status, reasons),
		JSON_FIELD(raw, struct status, warnings),
	};
	struct json r;

	buf_put(&s->readyz, body.p, body.n);
	if (s->readyz.failed)
		return;
	json_init(&r, buf_slice(&s->readyz), JSON_DEPTH);
	json_fields(&r, fields, COUNT(fields), JSON_LENIENT, s);
	if (json_end(&r, NULL))
		s->state = s->reasons = s->warnings = (struct slice){ 0 };
}

static int
ask_ready(struct session *t, struct status *s, struct slu_err *err)
{
	struct slu_err why;
	struct slice body;
	int rc;

	query_path(&t->query, "/readyz");
	rc = query_get(&t->query, &body, &why);
	if (rc && t->query.answer.status == 0)
		return slu_fail(err, rc, "%s", why.text);
	s->ready = rc == 0;
	if (rc)
		(void)snprintf(s->why_not, sizeof s->why_not, "%s", why.text);
	read_readyz(s, body);
	return 0;
}

/* --- /metrics --------------------------------------------------------------------- */

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
			s->messages[i].n = (int64_t)value_of(line);
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
		s->lanes++;
	if (is_metric(line, "sluice_shard_available"))
		s->shards++;
	if (is_metric(line, "sluice_shard_map_info")) {
		(void)label(line, "hash", s->map_hash, sizeof s->map_hash);
		(void)label(line, "version", s->map_version, sizeof s->map_version);
	}
	if (is_metric(line, "sluice_queues"))
		s->queues = (int64_t)value_of(line);
	if (is_metric(line, "process_start_time_seconds"))
		s->start = value_of(line);
	if (is_metric(line, "sluice_messages"))
		take_messages(s, line);
}

static void
ask_details(struct session *t, struct status *s)
{
	struct slu_err why;
	struct slice body;

	query_path(&t->query, "/metrics");
	if (query_get(&t->query, &body, &why)) {
		(void)snprintf(s->why_no_details, sizeof s->why_no_details, "%s", why.text);
		return;
	}
	while (body.n > 0) {
		const char *lf = memchr(body.p, '\n', body.n);
		const size_t n = lf ? (size_t)(lf - body.p) : body.n;

		take_line(s, (struct slice){ body.p, n });
		body.p += lf ? n + 1 : n;
		body.n -= lf ? n + 1 : n;
	}
}

/* The lanes to a Redis, and those of a shard with a name, are one shard. The others have a log
 * each, and are what --shards counts. UNKNOWN: nobody said. */
static int64_t
shards_of(const struct status *s)
{
	const bool lanes_are_shards = !*s->map_hash && strcmp(s->engine, "redis") != 0;
	const int64_t n = lanes_are_shards ? s->lanes : s->shards;

	return n ? n : UNKNOWN;
}

/* --- print ---------------------------------------------------------------------- */

/* Whole seconds, or UNKNOWN. */
static int64_t
uptime(const struct status *s)
{
	const slu_time now = clock_wall(&clock_system) / SLU_SEC;
	const slu_time t = now - (slu_time)s->start;

	if (s->start <= 0)
		return UNKNOWN;
	return t < 0 ? 0 : t;
}

static void
json_count(struct json_out *w, const char *name, int64_t value)
{
	if (value == UNKNOWN)
		json_out_raw(w, name, SLICE("null"));
	else
		json_out_i64(w, name, value);
}

static void
json_word(struct json_out *w, const char *name, const char *text)
{
	if (*text)
		json_out_str(w, name, slice_of(text));
	else
		json_out_raw(w, name, SLICE("null"));
}

static void
json_messages(struct json_out *w, const struct status *s)
{
	if (s->messages[0].n == UNKNOWN) {
		json_out_raw(w, "messages", SLICE("null"));
		return;
	}
	json_out_object(w, "messages");
	for (size_t i = 0; i < COUNT(s->messages); i++)
		json_count(w, s->messages[i].state, s->messages[i].n);
	json_out_close(w);
}

static void
print_json(const struct session *t, const struct status *s)
{
	struct json_out w;
	struct buf b;

	buf_init(&b, SIZE_MAX);
	json_out_init(&w, &b);
	json_out_object(&w, NULL);
	json_out_str(&w, "server", slice_of(t->shown));
	if (t->context)
		json_out_str(&w, "context", slice_of(t->context->name));
	else
		json_out_null(&w, "context");
	json_out_bool(&w, "ready", s->ready);
	json_out_str(&w, "status", s->state.n ? s->state : s->ready ? SLICE("ready")
								    : SLICE("not_ready"));
	json_out_raw(&w, "reasons", s->reasons.n ? s->reasons : SLICE("[]"));
	json_out_raw(&w, "warnings", s->warnings.n ? s->warnings : SLICE("[]"));
	json_word(&w, "version", s->version);
	json_word(&w, "engine", s->engine);
	json_word(&w, "durability", s->durability);
	json_count(&w, "uptime_seconds", uptime(s));
	json_count(&w, "shards", shards_of(s));
	if (*s->map_hash) {
		json_out_object(&w, "shard_map");
		json_out_raw(&w, "version", slice_of(s->map_version));
		json_out_str(&w, "hash", slice_of(s->map_hash));
		json_out_close(&w);
	}
	json_count(&w, "queues", s->queues);
	json_messages(&w, s);
	json_out_bool(&w, "partial", is_partial(s));
	json_word(&w, "details_error", s->why_no_details);
	json_out_close(&w);
	json_out_end(&w);
	puts(buf_str(&b));
	buf_release(&b);
}

static void
print_notice(const struct notice *n, const void *arg)
{
	printf("%-12s", (const char *)arg);
	escape_print(stdout, n->warning);
	fputs(n->warning.n ? ": " : "", stdout);
	escape_print(stdout, n->name);
	fputs(n->name.n ? ": " : "", stdout);
	escape_print(stdout, n->message.n ? n->message : n->reason);
	putchar('\n');
}

static void
print_ready(const struct session *t, const struct status *s)
{
	const unsigned reasons = each_notice(s->reasons, NULL, NULL);

	if (t->context)
		printf("context     %s\n", t->context->name);
	printf("server      %s\nready       ", t->shown);
	escape_print(stdout, s->ready ? reasons ? SLICE("yes, but not all of it") : SLICE("yes") : SLICE("no: "));
	escape_print(stdout, slice_of(s->why_not));
	putchar('\n');
	if (reasons > 1 || s->ready) /* one is what was said already */
		each_notice(s->reasons, print_notice, "reason");
	each_notice(s->warnings, print_notice, "warning");
}

static void
print_line(const char *name, const char *text)
{
	if (!*text)
		return;
	printf("%-12s", name);
	escape_print(stdout, slice_of(text));
	putchar('\n');
}

static void
print_count(const char *name, int64_t n)
{
	if (n != UNKNOWN)
		printf("%-12s%" PRId64 "\n", name, n);
}

static void
print_text(const struct session *t, const struct status *s)
{
	char text[DURATION_TEXT];

	print_ready(t, s);
	print_line("version", s->version);
	print_line("engine", s->engine);
	print_line("durability", s->durability);
	if (uptime(s) != UNKNOWN)
		print_line("uptime", format_duration(uptime(s) * SLU_SEC, text, sizeof text));
	print_count("shards", shards_of(s));
	if (*s->map_hash)
		printf("shard map   version %s, hash %s\n", s->map_version, s->map_hash);
	print_count("queues", s->queues);
	if (s->messages[0].n != UNKNOWN) {
		printf("messages    ");
		for (size_t i = 0; i < COUNT(s->messages); i++)
			printf("%s%" PRId64 " %s", i ? ", " : "", s->messages[i].n, s->messages[i].state);
		puts(is_partial(s) ? ", without shards that do not answer" : "");
	} else if (!*s->why_no_details) {
		print_line("messages", "unknown: no shard answers");
	}
	if (*s->why_no_details)
		print_line("more", s->why_no_details);
}

int
cli_status(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "status [options]",
		.text = "Which server this is, how it keeps messages, whether it takes work. Exits 1\n"
			"when it does not. Whether it does needs no token; the rest is shown if the token\n"
			"allows to read metrics (*:read).\n",
		.examples = "  sluice status\n  sluice status --server unix:/run/sluice.sock --json\n",
		.max_words = 0,
	};
	struct session t = SESSION("status");
	const struct arg rows[] = { SESSION_ROWS(&t) };
	struct status s = {
		.queues = UNKNOWN,
		.messages = { { "ready", UNKNOWN },
			      { "delayed", UNKNOWN },
			      { "leased", UNKNOWN },
			      { "held", UNKNOWN },
			      { "dead", UNKNOWN },
			      { "damaged", UNKNOWN } },
	};
	struct slu_err err;

	if (!session_begin(&t, &help, &argc, &argv, rows, COUNT(rows)))
		return t.exit;
	buf_init(&s.readyz, SIZE_MAX);
	if (ask_ready(&t, &s, &err)) {
		session_fail(&t, &err);
	} else {
		ask_details(&t, &s);
		if (t.json)
			print_json(&t, &s);
		else
			print_text(&t, &s);
		t.exit = s.ready ? CLI_OK : CLI_FAILED;
	}
	buf_release(&s.readyz);
	return session_end(&t);
}
