/*
 * status.c - `sluice status`: version, readiness and counts of a server.
 *
 * The exit code comes from /readyz, which needs no token: a health check works without one. The rest comes
 * from the metrics, if the caller may read them, a line each:
 *
 *      sluice_info{version="0.1.0",engine="log",durability="sync"} 1
 *      sluice_messages{state="ready"} 12
 *
 * Metrics are of one server. If several servers share a store, the counts of queues and messages come from the list
 * of queues, which is of all of them. A value that is not known is not shown as 0: it has no line, and is null in JSON.
 */
#include "cli/lib/escape.h"
#include "cli/lib/json_line.h"
#include "cli/lib/metric.h"
#include "cli/lib/nodehealth.h"
#include "cli/lib/session.h"
#include "cli/lib/shardowners.h"

#include "base/clock.h"
#include "base/json/json.h"
#include "base/json/json_table.h"
#include "base/mem.h"
#include "base/parse.h"
#include "engine/engine.h"

#include <inttypes.h>

#define UNKNOWN (-1)

struct status {
	bool ready;
	char why_not[256];
	struct buf readyz; /* the answer of /readyz; the slices below point into it */
	struct slice state, reasons, warnings;
	struct nodehealth nodes; /* living 0 = the server does not share a store */
	struct shardowners owners;

	char why_no_details[256]; /* "" = the metrics were read */
	char version[64], engine[64], durability[64];
	int64_t shards, lanes, queues;
	char map_hash[32], map_version[32]; /* "" = no map */
	double start;                       /* start of the server in unix seconds; 0 = not known */
	struct missing missing;             /* shards that the list of queues lacks */
	struct status_count {
		const char *state;
		int64_t n;
	} messages[6];
};

/* --- /readyz ---------------------------------------------------------------------- */

/* An element of `reasons` or `warnings`. */
struct notice {
	struct slice reason, warning, name, message;
};

static const struct json_field notice_fields[] = {
	JSON_FIELDS(text, struct notice, reason, warning, name, message),
};

/* Calls `each` for the elements of a list. Returns how many there are. */
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

/* Counts shards that do not answer. A shard with a full disk does answer. */
static void
count_silent(const struct notice *n, const void *arg)
{
	unsigned *const silent = *(unsigned *const *)arg;

	*silent += n->name.n > 0 && !slice_eq(n->reason, SLICE("disk_full"));
}

/* Are the counts incomplete because a shard does not answer? */
static bool
is_partial(const struct status *s)
{
	unsigned silent = 0, *const at = &silent;

	each_notice(s->reasons, count_silent, &at);
	return silent > 0 || *s->missing.text;
}

/* Reads the answer of /readyz. If it is not our JSON, only the HTTP status counts. */
static void
read_readyz(struct status *s, struct slice body)
{
	static const struct json_field fields[] = {
		JSON_ROW("status", json_read_text, struct status, state),
		JSON_FIELDS(raw, struct status, reasons, warnings),
	};
	struct json r;

	buf_put(&s->readyz, body.p, body.n);
	if (s->readyz.failed)
		return;
	(void)nodehealth_read(&s->nodes, buf_slice(&s->readyz));
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

static void
take_messages(struct status *s, struct slice line)
{
	char state[32];

	if (!metric_label(line, "state", state, sizeof state))
		return;
	for (size_t i = 0; i < COUNT(s->messages); i++)
		if (strcmp(state, s->messages[i].state) == 0)
			s->messages[i].n = (int64_t)metric_value(line);
}

static void
take_line(struct status *s, struct slice line)
{
	if (metric_is(line, "sluice_info")) {
		(void)metric_label(line, "version", s->version, sizeof s->version);
		(void)metric_label(line, "engine", s->engine, sizeof s->engine);
		(void)metric_label(line, "durability", s->durability, sizeof s->durability);
	}
	if (metric_is(line, "sluice_shard_ops_total"))
		s->lanes++;
	if (metric_is(line, "sluice_shard_available"))
		s->shards++;
	if (metric_is(line, "sluice_shard_map_info")) {
		(void)metric_label(line, "hash", s->map_hash, sizeof s->map_hash);
		(void)metric_label(line, "version", s->map_version, sizeof s->map_version);
	}
	if (metric_is(line, "sluice_queues"))
		s->queues = (int64_t)metric_value(line);
	if (metric_is(line, "process_start_time_seconds"))
		s->start = metric_value(line);
	if (metric_is(line, "sluice_messages"))
		take_messages(s, line);
	shardowners_take(&s->owners, line);
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
		struct slice line;

		(void)slice_cut(&body, '\n', &line);
		take_line(s, line);
	}
}

/* --- all servers of a store --------------------------------------------------------- */

static int
add_queue(void *arg, struct json *in, struct slu_err *err)
{
	struct status *const s = arg;
	struct json_str name;

	(void)err;
	s->queues++;
	json_object(in);
	while (json_member(in, &name))
		for (size_t i = 0; i < COUNT(s->messages); i++)
			if (json_str_is(&name, slice_of(s->messages[i].state)))
				s->messages[i].n += json_i64(in, 0, INT64_MAX);
	return 0;
}

static void
set_counts(struct status *s, int64_t n)
{
	s->queues = n;
	for (size_t i = 0; i < COUNT(s->messages); i++)
		s->messages[i].n = n;
}

/* Counts the queues of all servers in place of the queues of this server. */
static void
ask_queues(struct session *t, struct status *s)
{
	static const struct query_list list = { "/v1/admin/queues", NULL, "queues", 0, NULL };
	struct slu_err why;

	if (s->nodes.living < 2 || *s->why_no_details)
		return;
	set_counts(s, 0);
	if (query_each(&t->query, &list, add_queue, s, &why)) {
		(void)snprintf(s->why_no_details, sizeof s->why_no_details, "%s", why.text);
		set_counts(s, UNKNOWN);
	}
	s->missing = t->query.missing;
	missing_warn(&s->missing, t);
}

/* The lanes of a shard in a shared store, and of a named shard, are one shard. Other lanes have a log each, and are the
 * shards of --shards. Returns UNKNOWN if the metrics do not have them. */
static int64_t
shards_of(const struct status *s)
{
	const struct engine_ops *const engine = engine_find(engine_rows, s->engine);
	const bool lanes_are_shards = !*s->map_hash && !(engine && engine->shared);
	const int64_t n = lanes_are_shards ? s->lanes : s->shards;

	return n ? n : UNKNOWN;
}

/* --- print ---------------------------------------------------------------------- */

/* Uptime in whole seconds, or UNKNOWN. */
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
json_store(struct json_out *w, const struct status *s)
{
	const struct nodehealth *const h = &s->nodes;

	json_out_object(w, "store");
	json_out_u64(w, "nodes_living", h->living);
	json_out_bool(w, "draining", h->draining);
	json_count(w, "beat_age_ms", h->beat_age_ms);
	json_out_i64(w, "unconfirmed_ms", h->unconfirmed_ms);
	json_out_u64(w, "shards_here", h->here);
	json_out_u64(w, "shards_elsewhere", h->elsewhere);
	shardowners_put(&s->owners, w);
	json_out_close(w);
}

static void
print_json(const struct session *t, const struct status *s)
{
	struct json_line l;
	struct json_out *const w = json_line_begin(&l);

	json_out_str(w, "server", slice_of(t->shown));
	if (t->context)
		json_out_str(w, "context", slice_of(t->context->name));
	else
		json_out_null(w, "context");
	json_out_bool(w, "ready", s->ready);
	json_out_str(w, "status", s->state.n ? s->state : s->ready ? SLICE("ready")
								   : SLICE("not_ready"));
	json_out_raw(w, "reasons", s->reasons.n ? s->reasons : SLICE("[]"));
	json_out_raw(w, "warnings", s->warnings.n ? s->warnings : SLICE("[]"));
	json_word(w, "version", s->version);
	json_word(w, "engine", s->engine);
	json_word(w, "durability", s->durability);
	json_count(w, "uptime_seconds", uptime(s));
	json_count(w, "shards", shards_of(s));
	if (*s->map_hash) {
		json_out_object(w, "shard_map");
		json_out_raw(w, "version", slice_of(s->map_version));
		json_out_str(w, "hash", slice_of(s->map_hash));
		json_out_close(w);
	}
	if (s->nodes.living)
		json_store(w, s);
	json_count(w, "queues", s->queues);
	json_messages(w, s);
	json_out_bool(w, "partial", is_partial(s));
	json_word(w, "details_error", s->why_no_details);
	json_line_end(&l, stdout);
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
	escape_print(stdout, s->ready ? reasons ? SLICE("yes, but not all shards") : SLICE("yes") : SLICE("no: "));
	escape_print(stdout, slice_of(s->why_not));
	putchar('\n');
	if (reasons > 1 || s->ready) /* a single reason is printed already */
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
print_owners(const struct shardowners *o)
{
	struct buf text;

	buf_init(&text, SIZE_MAX);
	shardowners_text(o, &text);
	fputs(buf_str(&text), stdout);
	buf_release(&text);
}

static void
print_text(const struct session *t, const struct status *s)
{
	char text[DURATION_TEXT], store[NODEHEALTH_TEXT];

	print_ready(t, s);
	print_line("version", s->version);
	print_line("engine", s->engine);
	print_line("durability", s->durability);
	if (uptime(s) != UNKNOWN)
		print_line("uptime", format_duration(uptime(s) * SLU_SEC, text, sizeof text));
	print_count("shards", shards_of(s));
	if (*s->map_hash)
		printf("shard map   version %s, hash %s\n", s->map_version, s->map_hash);
	if (s->nodes.living) {
		print_line("store", nodehealth_text(&s->nodes, store));
		print_owners(&s->owners);
	}
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

static int
run(struct session *t, struct slu_err *err)
{
	struct status s = {
		.queues = UNKNOWN,
		.messages = { { "ready", UNKNOWN },
			      { "delayed", UNKNOWN },
			      { "leased", UNKNOWN },
			      { "held", UNKNOWN },
			      { "dead", UNKNOWN },
			      { "damaged", UNKNOWN } },
	};
	int rc;

	buf_init(&s.readyz, SIZE_MAX);
	rc = ask_ready(t, &s, err);
	if (!rc) {
		ask_details(t, &s);
		ask_queues(t, &s);
		if (t->json)
			print_json(t, &s);
		else
			print_text(t, &s);
		t->exit = s.ready ? CLI_OK : CLI_FAILED;
	}
	buf_release(&s.readyz);
	shardowners_release(&s.owners);
	return rc;
}

const struct command cli_status = {
	.name = "status",
	.group = "Server",
	.summary = "show version, readiness and counts of a server",
	.usage = "[options]",
	.text = "Prints version, engine, readiness and counts of a server. Exits 1 if the server is not\n"
		"ready. Readiness needs no token; the rest needs a token that may read metrics\n"
		"(*:read).\n"
		"\nA server that shares a store with others also prints its shards, the nodes that live, the\n"
		"age of its beat, how long the oldest group has been on its way to the store, and for each\n"
		"owner its shards with their epochs: 3@7 is shard 3 in epoch 7. Queues and messages are\n"
		"counted over all servers of the store.\n",
	.examples = "  sluice status\n  sluice status --server unix:/run/sluice.sock --json\n",
	.options = CLI_QUEUE,
	.run = run,
};
