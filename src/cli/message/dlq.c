/*
 * dlq.c - `sluice dlq`: lists, redrives and deletes dead letters.
 *
 * A command for all dead letters makes many calls of bounded work. It ends after as many dead
 * letters as there were at the start: newer dead letters come last.
 */
#include "cli/lib/find.h"
#include "cli/lib/progress.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/json/json.h"
#include "base/json/json_out.h"
#include "base/json/json_table.h"

#include <inttypes.h>
#include <time.h>

enum {
	CALL_MAX = 1000, /* dead letters a call handles, at most */
	RATE_CALLS = 10  /* calls per second if there is a rate */
};

struct dlq {
	struct session s;
	struct find find;
	bool all, dry_run;
	const char *to;
	uint64_t rate; /* per second; 0 = no limit */
	const char *verb;
	const char *queue;

	/* Progress. */
	uint64_t done, matched, looked;
	char cursor[32];
};

static const struct column dead_columns[] = {
	{ "id", "ID", COLUMN_NUMBER },
	{ "reason", "REASON", COLUMN_TEXT },
	{ "attempts", "ATTEMPTS", COLUMN_NUMBER },
	{ "dead_since", "DEAD", COLUMN_TIME },
	{ "key", "KEY", COLUMN_TEXT },
	{ "payload", "PAYLOAD", COLUMN_BASE64 },
	{ "error", "ERROR", COLUMN_TEXT },
};

/* --- list and show -------------------------------------------------------------- */

static int
list(struct session *s, struct slu_err *err)
{
	return search(s, "/v1/admin/dlq", dead_columns, COUNT(dead_columns), "dead letters", err);
}

const struct command cli_dlq_list = {
	.name = "dlq list",
	.summary = "dead letters, oldest first",
	.usage = "QUEUE [options]",
	.text = "Lists dead letters, oldest first: messages that failed too often, were rejected or\n"
		"expired. Exits 3 if there are none.\n",
	.examples = "  sluice dlq list mail\n"
		    "  sluice dlq list mail --error timeout --older-than 1h\n"
		    "  sluice dlq list mail --json | jq -r .error | sort | uniq -c\n",
	.options = CLI_QUEUE,
	CLI_ARGS({ "-l, --limit", ARG_COUNT, AT(finder, find.limit), "how many to show (100)" },
		 FIND_ROWS(finder)),
	CLI_STATE(struct finder, .find.limit = 100),
	.run = list,
};

const struct command cli_dlq_show = {
	.name = "dlq show",
	.summary = "print dead letters with their history",
	.usage = "ID... [options]",
	.text = "Prints dead letters with their last error and history.\n",
	.examples = "  sluice dlq show 318497266802130945\n",
	.options = CLI_QUEUE,
	.each = message_show,
};

/* --- one call ------------------------------------------------------------------- */

struct dlq_outcome {
	uint64_t redriven, deleted, matched, looked;
	bool more;
	char cursor[32];
	struct slice results;
};

static const struct json_field outcome_fields[] = {
	JSON_FIELDS(u64, struct dlq_outcome, redriven, deleted, matched, looked),
	JSON_FIELD(bool, struct dlq_outcome, more),
	JSON_FIELD(chars, struct dlq_outcome, cursor),
	JSON_FIELD(raw, struct dlq_outcome, results),
};

static int
call(struct dlq *d, struct slice body, struct dlq_outcome *out, struct slu_err *err)
{
	struct slice answer;
	char path[48];
	int rc;

	(void)snprintf(path, sizeof path, "/v1/admin/dlq/%s", d->verb); /* fits */
	query_path(&d->s.query, path);
	*out = (struct dlq_outcome){ 0 };
	rc = query_post(&d->s.query, body, &answer, err);
	if (!rc)
		rc = query_read(answer, outcome_fields, COUNT(outcome_fields), out, err);
	if (rc)
		return rc;
	d->done += out->redriven + out->deleted;
	d->matched += out->matched;
	d->looked += out->looked;
	memcpy(d->cursor, out->cursor, sizeof d->cursor);
	return 0;
}

static void
open_body(struct dlq *d, struct json_out *w, struct buf *body)
{
	buf_init(body, 64 * 1024);
	json_out_open(w, body);
	json_out_str(w, "namespace", slice_of(d->s.space));
	json_out_str(w, "queue", slice_of(d->queue));
}

/* --- named ones ----------------------------------------------------------------- */

struct dlq_result {
	uint64_t id;
	uint64_t status;
};

static void
say_missing(struct dlq *d, struct slice results)
{
	static const struct json_field fields[] = {
		JSON_FIELDS(u64, struct dlq_result, id, status),
	};
	struct json r;

	if (results.n == 0)
		return;
	json_init(&r, results, JSON_DEPTH);
	json_array(&r);
	while (json_element(&r)) {
		struct dlq_result one = { 0 };

		json_fields(&r, fields, COUNT(fields), JSON_LENIENT, &one);
		if (one.status < 300)
			continue;
		session_nothing(&d->s, "%" PRIu64 ": not a dead letter of queue %s", one.id, d->queue);
	}
}

static int
change_ids(struct dlq *d, int n, char **words, struct slu_err *err)
{
	struct dlq_outcome out = { 0 };
	struct json_out w;
	struct buf body;
	int rc = 0;

	open_body(d, &w, &body);
	json_out_array(&w, "ids");
	for (int i = 0; i < n && !rc; i++) {
		uint64_t id = 0;

		rc = id_parse(slice_of(words[i]), &id, err);
		json_out_u64(&w, NULL, id);
	}
	json_out_close(&w);
	json_out_close(&w);
	if (!rc)
		rc = call(d, buf_slice(&body), &out, err);
	if (!rc)
		say_missing(d, out.results);
	buf_release(&body);
	return rc;
}

/* --- all, or those that match --------------------------------------------------- */

/* Asks for the number of dead letters. The server answers 404 if the queue does not exist. */
static int
ask_total(struct dlq *d, uint64_t *out, struct slu_err *err)
{
	struct slice body;
	int rc;

	query_queue(&d->s.query, "/v1/admin/queue", d->s.space, d->queue);
	rc = query_get(&d->s.query, &body, err);
	return rc ? rc : query_read_u64(body, "dead", out, err);
}

static uint64_t
call_limit(const struct dlq *d)
{
	const uint64_t slice = d->rate / RATE_CALLS + 1;

	return d->rate && slice < CALL_MAX ? slice : CALL_MAX;
}

static int
change_page(struct dlq *d, uint64_t limit, const char *id, struct dlq_outcome *out,
	    struct slu_err *err)
{
	struct json_out w;
	struct buf body;
	int rc;

	open_body(d, &w, &body);
	json_out_u64(&w, "limit", limit);
	if (id)
		json_out_str(&w, "id", slice_of(id));
	if (d->dry_run)
		json_out_bool(&w, "dry_run", true);
	if (d->to)
		json_out_str(&w, "to", slice_of(d->to));
	if (d->cursor[0])
		json_out_str(&w, "cursor", slice_of(d->cursor));
	find_write(&d->find, &w);
	json_out_close(&w);
	rc = call(d, buf_slice(&body), out, err);
	buf_release(&body);
	return rc;
}

/* Sleeps until the work done so far fits the rate. */
static void
keep_rate(const struct dlq *d, slu_time began)
{
	const slu_time now = clock_mono(&clock_system);
	slu_time ahead;

	if (!d->rate)
		return;
	ahead = began + (slu_time)((double)d->done * 1e9 / (double)d->rate) - now;
	if (ahead > 0)
		(void)nanosleep(&(struct timespec){ ahead / SLU_SEC, ahead % SLU_SEC }, NULL);
}

/* Changes the dead letters that match, page by page. id: only this dead letter; NULL = all. */
static int
change_pages(struct dlq *d, uint64_t total, const char *id, struct slu_err *err)
{
	const slu_time began = clock_mono(&clock_system);
	const uint64_t end = d->looked + total;
	struct dlq_outcome out = { .more = true };
	struct progress p;
	int rc = 0;

	d->cursor[0] = '\0';
	progress_begin(&p, d->verb[0] == 'r' ? "redriving" : "deleting", total, false);
	while (!rc && out.more && d->looked < end) {
		const uint64_t left = end - d->looked;
		const uint64_t limit = call_limit(d) < left ? call_limit(d) : left;
		const uint64_t before = d->looked;

		rc = change_page(d, id ? 1 : limit, id, &out, err);
		if (d->looked == before || (id && out.matched))
			break;
		progress_at(&p, d->looked - (end - total));
		keep_rate(d, began);
	}
	progress_end(&p);
	return rc;
}

/* Copies named dead letters to another queue: each is searched on its own. */
static int
copy_ids(struct dlq *d, uint64_t total, int n, char **words, struct slu_err *err)
{
	int rc = 0;

	for (int i = 0; i < n && !rc; i++) {
		const uint64_t before = d->matched;

		rc = change_pages(d, total, words[i], err);
		if (rc || d->matched > before)
			continue;
		session_nothing(&d->s, "%s: not a dead letter of queue %s", words[i], d->queue);
	}
	return rc;
}

/* --- redrive and delete --------------------------------------------------------- */

static void
tell(const struct dlq *d)
{
	const char *past = d->verb[0] == 'r' ? "redriven" : "deleted";

	if (d->s.json && d->dry_run)
		printf("{\"%s\":0,\"matched\":%" PRIu64 "}\n", past, d->matched);
	else if (d->s.json)
		printf("{\"%s\":%" PRIu64 "}\n", past, d->done);
	else if (d->dry_run)
		printf("%" PRIu64 " would be %s\n", d->matched, past);
	else
		printf("%" PRIu64 " %s\n", d->done, past);
}

static bool
may_delete(struct dlq *d, uint64_t total, int n)
{
	if (d->verb[0] == 'r' || d->dry_run)
		return true;
	if (n > 0)
		return session_confirm(&d->s, "delete %d dead letter%s of queue %s", n, n == 1 ? "" : "s", d->queue);
	if (find_is_any(&d->find))
		return session_confirm(&d->s, "delete those of the %" PRIu64 " dead letters of queue %s that match",
				       total, d->queue);
	return session_confirm(&d->s, "delete all %" PRIu64 " dead letters of queue %s", total, d->queue);
}

static int
change(struct session *s, struct slu_err *err)
{
	struct dlq *const d = (void *)s;
	const bool some = d->all || find_is_any(&d->find);
	char **const words = d->s.words + 1;
	const int n = d->s.n_words - 1;
	uint64_t total = 0;
	int rc;

	d->queue = d->s.words[0];
	if (some == (n > 0))
		return session_usage(&d->s, "nothing to %s: expected ids, --all or a condition", d->verb);
	if (n > 0 && d->dry_run)
		return session_usage(&d->s, "--dry-run needs --all or a condition");
	rc = ask_total(d, &total, err);
	if (!rc && !may_delete(d, total, n))
		return 0;
	if (!rc && n > 0)
		rc = d->to ? copy_ids(d, total, n, words, err) : change_ids(d, n, words, err);
	else if (!rc)
		rc = change_pages(d, total, NULL, err);
	if (!rc || d->done > 0)
		tell(d);
	return rc;
}

/* --- the commands --------------------------------------------------------------- */

const struct command cli_dlq_redrive = {
	.name = "dlq redrive",
	.summary = "deliver dead letters again, in this queue or another",
	.usage = "QUEUE [ID...|--all|CONDITION...] [options]",
	.text = "Delivers dead letters again: they go to the end of the queue, with no failures\n"
		"counted; with --to they become new messages of another queue. Selects dead letters\n"
		"by id, by conditions that must all hold, or all of them.\n",
	.examples = "  sluice dlq redrive mail 318497266802130945\n"
		    "  sluice dlq redrive mail --error timeout --dry-run\n"
		    "  sluice dlq redrive mail --all --rate 100\n"
		    "  sluice dlq redrive mail --reason expired --to mail-slow\n",
	.words = { 1, 1 + 1000 },
	.options = CLI_QUEUE,
	CLI_ARGS({ "-a, --all", ARG_FLAG, AT(dlq, all), "all dead letters of the queue" },
		 FIND_ROWS(dlq),
		 { "--to QUEUE", ARG_TEXT, AT(dlq, to), "to this queue, as new messages" },
		 { "--rate", ARG_COUNT, AT(dlq, rate), "at most this many per second" },
		 { "--dry-run", ARG_FLAG, AT(dlq, dry_run), "only count the dead letters" }),
	CLI_STATE(struct dlq, .verb = "redrive"),
	.run = change,
};

const struct command cli_dlq_delete = {
	.name = "dlq delete",
	.summary = "delete dead letters",
	.usage = "QUEUE [ID...|--all|CONDITION...] [options]",
	.text = "Deletes dead letters: by id, by conditions that must all hold, or all of them. A\n"
		"deleted message cannot be restored.\n",
	.examples = "  sluice dlq delete mail 318497266802130945\n"
		    "  sluice dlq delete mail --older-than 30d --dry-run\n"
		    "  sluice dlq delete mail --older-than 30d --yes\n",
	.words = { 1, 1 + 1000 },
	.options = CLI_QUEUE | CLI_YES,
	CLI_ARGS({ "-a, --all", ARG_FLAG, AT(dlq, all), "all dead letters of the queue" },
		 FIND_ROWS(dlq),
		 { "--rate", ARG_COUNT, AT(dlq, rate), "at most this many per second" },
		 { "--dry-run", ARG_FLAG, AT(dlq, dry_run), "only count the dead letters" }),
	CLI_STATE(struct dlq, .verb = "delete"),
	.run = change,
};

const struct command cli_dlq_purge = {
	.name = "dlq purge",
	.summary = "delete all dead letters",
	.usage = "QUEUE [options]",
	.text = "Deletes all dead letters of a queue. A deleted message cannot be restored.\n",
	.examples = "  sluice dlq purge mail\n  sluice dlq purge mail --yes\n",
	.options = CLI_QUEUE | CLI_YES,
	CLI_STATE(struct dlq, .verb = "delete", .all = true),
	.run = change,
};
