/*
 * task.c - `sluice task`: acts on many messages that the server does by itself: start, list, show, wait, cancel.
 */
#include "cli/lib/find.h"
#include "cli/lib/progress.h"

#include "base/clock.h"
#include "base/json/json_out.h"
#include "base/json/json_table.h"

#include <inttypes.h>
#include <time.h>

enum {
	ID = 24 /* bytes of the id of a task as text */
};

#define LOOK (SLU_SEC / 5) /* between two looks at the progress */

struct start {
	struct session s;
	struct find find;
	const char *to, *priority;
	slu_time delay, start_in;
	bool to_source, dry_run, wait;
	uint64_t rate, most_failures;
};

/* --- the answer ----------------------------------------------------------------- */

struct progress_of {
	char task[ID];
	char state[16];
	char action[16];
	uint64_t total, looked, matched, done, refused;
	bool dry_run;
	struct slice error;
};

static const struct json_field fields[] = {
	JSON_FIELD(chars, struct progress_of, task),
	JSON_FIELD(chars, struct progress_of, state),
	JSON_FIELD(chars, struct progress_of, action),
	JSON_FIELDS(u64, struct progress_of, total, looked, matched, done, refused),
	JSON_FIELD(bool, struct progress_of, dry_run),
	JSON_FIELD(raw, struct progress_of, error),
};

static bool
is_running(const struct progress_of *p)
{
	return strcmp(p->state, "running") == 0 || strcmp(p->state, "canceling") == 0;
}

/* --- wait ------------------------------------------------------------------------ */

static int
ask(struct session *s, const char *id, struct slice *answer, struct progress_of *out, struct slu_err *err)
{
	int rc;

	query_path(&s->query, "/v1/admin/task");
	http_param(&s->query.path, "namespace", s->space);
	http_param(&s->query.path, "task", id);
	*out = (struct progress_of){ 0 };
	rc = query_get(&s->query, answer, err);
	return rc ? rc : query_read(*answer, fields, COUNT(fields), out, err);
}

static void
say_end(struct session *s, const struct progress_of *p)
{
	if (p->dry_run)
		printf("task %s %s: %" PRIu64 " messages match, %" PRIu64 " of them would be refused\n", p->task, p->state, p->matched,
		       p->refused);
	else
		printf("task %s %s: %" PRIu64 " messages done, %" PRIu64 " refused\n", p->task, p->state, p->done, p->refused);
	if (p->error.n)
		session_note(s, "%.*s", (int)p->error.n, p->error.p);
}

/* Follows the task to its end, with a line of progress on a terminal. */
static int
follow(struct session *s, const char *id, struct slu_err *err)
{
	struct progress_of p;
	struct progress line;
	struct slice answer;
	int rc = ask(s, id, &answer, &p, err);

	progress_begin(&line, p.action, p.total, false);
	while (!rc && is_running(&p)) {
		progress_at(&line, p.looked < p.total ? p.looked : p.total);
		(void)nanosleep(&(struct timespec){ 0, LOOK }, NULL);
		rc = ask(s, id, &answer, &p, err);
	}
	progress_end(&line);
	if (rc)
		return rc;
	if (s->json)
		query_print(answer);
	else
		say_end(s, &p);
	if (strcmp(p.state, "done") != 0)
		s->exit = CLI_FAILED;
	return 0;
}

const struct command cli_task_wait = {
	.name = "task wait",
	.summary = "follow a task to its end",
	.usage = "TASK [options]",
	.text = "Follows a task to its end, with a line of progress on a terminal. Exits 1 if the task\n"
		"did not look at all messages: it was canceled, was stopped or has failed. The task goes on\n"
		"if you interrupt the command.\n",
	.examples = "  sluice task wait 318497266802130945\n",
	.options = CLI_QUEUE,
	.each = follow,
};

/* --- start ----------------------------------------------------------------------- */

static void
write_question(const struct start *c, struct json_out *w)
{
	const struct session *const s = &c->s;

	json_out_str(w, "namespace", slice_of(s->space));
	json_out_str(w, "action", slice_of(s->words[0]));
	json_out_str(w, "queue", slice_of(s->words[1]));
	find_write(&c->find, w);
	if (c->to)
		json_out_str(w, "to", slice_of(c->to));
	if (c->to_source)
		json_out_bool(w, "to_source", true);
	if (c->priority)
		json_out_str(w, "priority", slice_of(c->priority));
	find_write_time(w, "delay", c->delay);
	find_write_time(w, "start_in", c->start_in);
	if (c->rate)
		json_out_u64(w, "rate", c->rate);
	if (c->most_failures)
		json_out_u64(w, "stop_if_failing", c->most_failures);
	if (c->dry_run)
		json_out_bool(w, "dry_run", true);
}

static int
begin(struct session *s, struct progress_of *out, struct slice *answer, struct slu_err *err)
{
	const struct start *const c = (void *)s;
	struct json_out w;
	struct buf body;
	int rc;

	buf_init(&body, 64 * 1024);
	json_out_open(&w, &body);
	write_question(c, &w);
	json_out_finish(&w);
	query_path(&s->query, "/v1/admin/task");
	rc = query_post(&s->query, buf_slice(&body), answer, err);
	if (!rc)
		rc = query_read(*answer, fields, COUNT(fields), out, err);
	buf_release(&body);
	return rc;
}

static int
start(struct session *s, struct slu_err *err)
{
	const struct start *const c = (void *)s;
	struct progress_of p = { 0 };
	struct slice answer;
	int rc;

	if (strcmp(s->words[0], "delete") == 0 && !c->dry_run && !session_confirm(s, "Delete all messages of %s that match?", s->words[1]))
		return 0;
	rc = begin(s, &p, &answer, err);
	if (rc)
		return rc;
	if (c->wait)
		return follow(s, p.task, err);
	if (s->json)
		query_print(answer);
	else
		printf("%s\n", p.task);
	return 0;
}

const struct command cli_task_start = {
	.name = "task start",
	.summary = "redrive, move, delete, re-prioritise, run or delay many messages in the server",
	.usage = "redrive|move|delete|priority|run|delay QUEUE [options]",
	.text = "Starts a task and prints its id. The server does the work in small steps, also if you go\n"
		"away, and goes on after a restart. A task looks at the messages that are there when it\n"
		"begins: dead letters for redrive, delayed messages for run, messages that wait for the\n"
		"others, or those of --state.\n"
		"\n"
		"Leased messages are refused, and what would change the order of a key; the task counts\n"
		"them. Delete asks first.\n",
	.examples = "  sluice task start redrive mail --rate 50 --stop-if-failing 10 --wait\n"
		    "  sluice task start move mail --state dead --error timeout --to mail-slow\n"
		    "  sluice task start delete mail --older-than 7d --dry-run --wait\n"
		    "  sluice task start priority mail --attribute customer=acme --priority high\n"
		    "  sluice task start delay mail --key customer-7 --for 1h\n"
		    "  sluice task start run mail --rate 100\n",
	.words = { 2, 2 },
	.options = CLI_QUEUE | CLI_YES,
	CLI_ARGS({ "--state ready|delayed|held|dead", ARG_TEXT, AT(start, find.state), "only messages in this state" },
		 { "--id ID", ARG_TEXT, AT(start, find.id), "only this message" },
		 FIND_ROWS(start),
		 { "--to QUEUE", ARG_TEXT, AT(start, to), "redrive, move: to this queue" },
		 { "--to-source", ARG_FLAG, AT(start, to_source), "move: each back to the queue that it died in" },
		 { "--priority high|normal|low|N", ARG_TEXT, AT(start, priority), "priority: the new one" },
		 { "--for", ARG_TIME, AT(start, delay), "delay: how long, from now" },
		 { "--start-in", ARG_TIME, AT(start, start_in), "changes nothing before: a cancel until then undoes it" },
		 { "--rate", ARG_COUNT, AT(start, rate), "messages a second, at most" },
		 { "--stop-if-failing", ARG_COUNT, AT(start, most_failures), "stop when so many deliveries of the queue have failed meanwhile" },
		 { "--dry-run", ARG_FLAG, AT(start, dry_run), "only count" },
		 { "-w, --wait", ARG_FLAG, AT(start, wait), "follow the task to its end" }),
	.size = sizeof(struct start),
	.run = start,
};

/* --- list, show, cancel ----------------------------------------------------------- */

static const struct column columns[] = {
	{ "task", "TASK", COLUMN_TEXT },
	{ "action", "ACTION", COLUMN_TEXT },
	{ "queue", "QUEUE", COLUMN_TEXT },
	{ "state", "STATE", COLUMN_TEXT },
	{ "total", "TOTAL", COLUMN_NUMBER },
	{ "matched", "MATCHED", COLUMN_NUMBER },
	{ "done", "DONE", COLUMN_NUMBER },
	{ "refused", "REFUSED", COLUMN_NUMBER },
	{ "created_at", "STARTED", COLUMN_TIME },
	{ "by", "BY", COLUMN_MAYBE },
	{ "error", "ERROR", COLUMN_MAYBE },
};

static const struct rows_list tasks = { "/v1/admin/tasks", "tasks", ROWS_COLUMNS(columns) };

const struct command cli_task_list = {
	.name = "task list",
	.summary = "list the tasks of a namespace, newest first",
	.usage = "[options]",
	.text = "Lists the tasks of a namespace, newest first. Tasks that have ended stay for 7 days.\n",
	.examples = "  sluice task list\n  sluice task list --json | jq -r 'select(.state == \"running\").task'\n",
	.options = CLI_QUEUE,
	.run = rows_run,
	.rows = &tasks,
};

static int
show(struct session *s, const char *id, struct slu_err *err)
{
	struct progress_of p;
	struct slice answer;
	const int rc = ask(s, id, &answer, &p, err);

	return rc ? rc : session_print(s, answer, err);
}

const struct command cli_task_show = {
	.name = "task show",
	.summary = "show tasks and their progress",
	.usage = "TASK... [options]",
	.text = "Shows what a task does, how far it is, and why it waits or has ended.\n",
	.examples = "  sluice task show 318497266802130945\n",
	.options = CLI_QUEUE,
	.each = show,
};

static int
cancel(struct session *s, const char *id, struct slu_err *err)
{
	const char *const body[] = { "namespace", s->space, "task", id, NULL };

	return session_act(s, "/v1/admin/task/", body, err);
}

const struct command cli_task_cancel = {
	.name = "task cancel",
	.summary = "end tasks soon",
	.usage = "TASK... [options]",
	.text = "Ends a task after the step that runs. What it has done stays done.\n",
	.examples = "  sluice task cancel 318497266802130945\n",
	.options = CLI_QUEUE,
	.each = cancel,
};
