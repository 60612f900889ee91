/*
 * schedule.c - `sluice schedule`: set, list, show, delete, pause, resume and run schedules, and show their next ticks.
 */
#include "cli/lib/rows.h"

#include "base/json/json.h"
#include "base/json/json_out.h"
#include "base/parse.h"

#include <inttypes.h>

/* --- set ------------------------------------------------------------------------ */

struct schedule_set {
	struct session s;
	const char *zone, *missed, *overlap, *message;
	slu_time jitter;
	bool paused, resumed;
};

/* The members of --message without the braces; empty: none. */
static int
more_members(const char *text, struct slice *out, struct slu_err *err)
{
	int rc;

	*out = (struct slice){ 0 };
	if (!text)
		return 0;
	rc = json_check(slice_of(text), JSON_OBJECT, JSON_DEPTH, "--message", err);
	if (rc)
		return rc;
	*out = slice_trim(slice_of(text), " \t\r\n");
	slice_skip(out, 1);
	out->n--;
	*out = slice_trim(*out, " \t\r\n");
	return 0;
}

/* {"queue":"reports","text":"all","priority":0} */
static int
write_message(const struct schedule_set *c, struct json_out *w, struct slu_err *err)
{
	struct slice more;
	struct json_out m;
	struct buf text;
	const int rc = more_members(c->message, &more, err);

	if (rc)
		return rc;
	buf_init(&text, 256 * 1024);
	json_out_open(&m, &text);
	json_out_str(&m, "queue", slice_of(c->s.words[2]));
	if (c->s.n_words > 3)
		json_out_str(&m, "text", slice_of(c->s.words[3]));
	json_out_finish(&m);
	if (more.n) {
		text.n--;
		buf_printf(&text, ",%.*s}", (int)more.n, more.p);
	}
	json_out_raw(w, "message", buf_slice(&text));
	buf_release(&text);
	return 0;
}

static void
write_rules(const struct schedule_set *c, struct json_out *w)
{
	const struct {
		const char *name, *value;
	} rules[] = { { "zone", c->zone }, { "missed", c->missed }, { "overlap", c->overlap } };
	char text[DURATION_TEXT];

	for (size_t i = 0; i < COUNT(rules); i++)
		if (rules[i].value)
			json_out_str(w, rules[i].name, slice_of(rules[i].value));
	if (c->jitter)
		json_out_str(w, "jitter", slice_of(format_duration(c->jitter, text, sizeof text)));
	if (c->paused || c->resumed)
		json_out_bool(w, "paused", c->paused);
}

static int
set(struct session *s, struct slu_err *err)
{
	const struct schedule_set *const c = (void *)s;
	struct slice answer = { 0 };
	struct json_out w;
	struct buf body;
	int rc;

	if (c->paused && c->resumed)
		return session_usage(s, "--paused and --resumed exclude each other");
	buf_init(&body, 256 * 1024);
	json_out_open(&w, &body);
	json_out_str(&w, "namespace", slice_of(s->space));
	json_out_str(&w, "name", slice_of(s->words[0]));
	json_out_str(&w, "when", slice_of(s->words[1]));
	write_rules(c, &w);
	rc = write_message(c, &w, err);
	json_out_finish(&w);
	query_path(&s->query, "/v1/admin/schedule");
	if (!rc)
		rc = query_put(&s->query, buf_slice(&body), &answer, err);
	if (!rc)
		rc = session_print(s, answer, err);
	buf_release(&body);
	return rc;
}

const struct command cli_schedule_set = {
	.name = "schedule set",
	.summary = "make or change a schedule",
	.usage = "NAME WHEN QUEUE [PAYLOAD] [options]",
	.text = "Makes a schedule, or changes it. At each tick of WHEN a message begins in QUEUE. WHEN is\n"
		"a cron expression of 5 fields, a name such as @daily, or an interval such as\n"
		"`@every 90s`. A schedule that exists keeps its history, and its ticks if WHEN and the\n"
		"zone are the same.\n",
	.examples = "  sluice schedule set nightly '0 2 * * *' reports all --zone Europe/Berlin\n"
		    "  sluice schedule set poll '@every 30s' polls --overlap skip --jitter 5s\n"
		    "  sluice schedule set bill '@monthly' bills --missed all:3 --message '{\"priority\":0}'\n",
	.words = { 3, 4 },
	.options = CLI_QUEUE,
	CLI_ARGS({ "-z, --zone ZONE", ARG_TEXT, AT(schedule_set, zone), "time zone of WHEN, like Europe/Berlin (UTC)" },
		 { "--missed POLICY", ARG_TEXT, AT(schedule_set, missed), "ticks that could not fire in time: skip, one or all:N (one)" },
		 { "--overlap allow|skip", ARG_TEXT, AT(schedule_set, overlap), "a tick while the message before is not finished (allow)" },
		 { "-j, --jitter", ARG_TIME, AT(schedule_set, jitter), "fire up to this much later, spread by name and tick" },
		 { "-m, --message JSON", ARG_TEXT, AT(schedule_set, message), "more members of the message, as of /enqueue" },
		 { "--paused", ARG_FLAG, AT(schedule_set, paused), "pause it" },
		 { "--resumed", ARG_FLAG, AT(schedule_set, resumed), "resume it" }),
	.size = sizeof(struct schedule_set),
	.run = set,
};

/* --- list, show, next ------------------------------------------------------------ */

static const struct column columns[] = {
	{ "name", "SCHEDULE", COLUMN_TEXT },
	{ "when", "WHEN", COLUMN_TEXT },
	{ "zone", "ZONE", COLUMN_TEXT },
	{ "next_at", "NEXT", COLUMN_TIME },
	{ "firings", "FIRINGS", COLUMN_NUMBER },
	{ "missed_ticks", "MISSED", COLUMN_NUMBER },
	{ "overlaps", "OVERLAPS", COLUMN_NUMBER },
	{ "paused", "PAUSED", COLUMN_TEXT },
};

static const struct rows_list schedules = { "/v1/admin/schedules?limit=1000", "schedules", ROWS_COLUMNS(columns) };

const struct command cli_schedule_list = {
	.name = "schedule list",
	.summary = "list the schedules of a namespace",
	.usage = "[options]",
	.text = "Lists the schedules of a namespace: when they are due, in which zone, the next tick, how\n"
		"often they fired, and how many ticks were missed or passed over.\n",
	.examples = "  sluice schedule list\n  sluice schedule list --json | jq .next_at\n",
	.options = CLI_QUEUE,
	.run = rows_run,
	.rows = &schedules,
};

static int
get(struct session *s, struct slice *out, struct slu_err *err)
{
	query_path(&s->query, "/v1/admin/schedule");
	http_param(&s->query.path, "namespace", s->space);
	http_param(&s->query.path, "name", s->words[0]);
	return query_get(&s->query, out, err);
}

static int
show(struct session *s, struct slu_err *err)
{
	struct slice body;
	const int rc = get(s, &body, err);

	return rc ? rc : session_print(s, body, err);
}

const struct command cli_schedule_show = {
	.name = "schedule show",
	.summary = "show a schedule, its next 5 ticks and its last 20 firings",
	.usage = "NAME [options]",
	.text = "Shows a schedule: its rules, its message, the next 5 ticks and the last 20 firings.\n",
	.examples = "  sluice schedule show nightly\n  sluice schedule show nightly --json | jq '.last[0]'\n",
	.options = CLI_QUEUE,
	.run = show,
};

static int
next(struct session *s, struct slu_err *err)
{
	struct json_str name;
	struct slice body;
	struct json r;
	int rc = get(s, &body, err);

	if (rc)
		return rc;
	json_init(&r, body, JSON_DEPTH);
	json_object(&r);
	while (json_member(&r, &name)) {
		if (!json_str_is(&name, SLICE("next")))
			continue;
		json_array(&r);
		while (json_element(&r)) {
			const struct slice tick = json_text(&r);

			printf(s->json ? "\"%.*s\"\n" : "%.*s\n", (int)tick.n, tick.p);
		}
	}
	return json_end(&r, err) ? slu_fail(err, SLU_EUNKNOWN, "malformed answer") : 0;
}

const struct command cli_schedule_next = {
	.name = "schedule next",
	.summary = "print the next 5 ticks of a schedule",
	.usage = "NAME [options]",
	.text = "Prints the moments at which a schedule fires next, with their jitter; none if it is paused.\n",
	.examples = "  sluice schedule next nightly\n",
	.options = CLI_QUEUE,
	.run = next,
};

/* --- delete, pause, resume, run --------------------------------------------------- */

/* POST the name to /v1/admin/schedule/VERB; the verb is the command's. */
static int
change(struct session *s, const char *name, struct slu_err *err)
{
	const char *const body[] = { "namespace", s->space, "name", name, NULL };

	return session_act(s, "/v1/admin/schedule/", body, err);
}

static int
run_now(struct session *s, const char *name, struct slu_err *err)
{
	const char *const body[] = { "namespace", s->space, "name", name, NULL };
	struct slice answer;
	uint64_t id;
	int rc = session_post(s, "/v1/admin/schedule/", body, &answer, err);

	if (!rc)
		rc = query_read_u64(answer, "id", &id, err);
	if (!rc && s->json)
		query_print(answer);
	else if (!rc)
		printf("%" PRIu64 "\n", id);
	return rc;
}

const struct command cli_schedule_delete = {
	.name = "schedule delete",
	.summary = "delete schedules",
	.usage = "NAME... [options]",
	.text = "Deletes schedules. Messages that they have begun stay.\n",
	.examples = "  sluice schedule delete nightly\n",
	.options = CLI_QUEUE,
	.each = change,
};

const struct command cli_schedule_pause = {
	.name = "schedule pause",
	.summary = "fire nothing until the schedule is resumed",
	.usage = "NAME... [options]",
	.text = "A paused schedule fires nothing, also after a restart. The ticks that it passes over\n"
		"are not missed: they do not fire later.\n",
	.examples = "  sluice schedule pause nightly\n",
	.options = CLI_QUEUE,
	.each = change,
};

const struct command cli_schedule_resume = {
	.name = "schedule resume",
	.summary = "fire again",
	.usage = "NAME... [options]",
	.text = "Resumes a paused schedule: it fires from the next tick on.\n",
	.examples = "  sluice schedule resume nightly\n",
	.options = CLI_QUEUE,
	.each = change,
};

const struct command cli_schedule_run = {
	.name = "schedule run",
	.summary = "begin a message of a schedule now",
	.usage = "NAME... [options]",
	.text = "Begins a message of the schedule now, also of a paused one, and prints its id. The ticks\n"
		"do not change.\n",
	.examples = "  sluice schedule run nightly\n",
	.options = CLI_QUEUE,
	.each = run_now,
};
