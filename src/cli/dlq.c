/*
 * dlq.c - `sluice dlq`: dead letters: see them, give them another chance, or delete them.
 *
 * What goes through all of them is many calls, each of bounded work. It ends when it has
 * looked at as many as there were at the start: what dies meanwhile comes last.
 */
#include "cli/find.h"
#include "cli/progress.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/json_out.h"
#include "base/json_table.h"

#include <inttypes.h>
#include <time.h>

enum {
	CALL_MAX = 1000, /* dead letters of a call */
	RATE_CALLS = 10  /* calls a second, when there is a rate */
};

struct dlq {
	struct session s;
	struct find find;
	bool all, dry_run, yes;
	const char *to;
	uint64_t rate; /* a second; 0: as fast as it goes */
	const char *verb;
	const char *queue;

	/* So far. */
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

int
cli_dlq_list(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "dlq list QUEUE [options]",
		.text = "Dead letters are messages that failed too often, were refused for good, or\n"
			"expired. Oldest first; exits 3 when there are none.\n",
		.examples = "  sluice dlq list mail\n"
			    "  sluice dlq list mail --error timeout --older-than 1h\n"
			    "  sluice dlq list mail --json | jq -r .error | sort | uniq -c\n",
		.min_words = 1,
		.max_words = 1,
	};
	struct session s = SESSION("dlq list");
	struct find f = { .limit = 100 };
	const struct arg args[] = {
		{ "-l, --limit", ARG_COUNT, &f.limit, "how many to show (100)" },
		FIND_ROWS(&f),
		SESSION_ROWS(&s),
	};
	struct slu_err err;
	struct rows r;

	if (!session_begin(&s, &help, &argc, &argv, args, COUNT(args)))
		return s.exit;
	rows_init(&r, &s, dead_columns, COUNT(dead_columns));
	if (find_show(&f, &s, "/v1/admin/dlq", argv[0], &r, &err)) {
		session_fail(&s, &err);
	} else if (r.n == 0) {
		session_nothing(&s, "no %sdead letters in %s", find_is_any(&f) ? "such " : "", argv[0]);
	}
	rows_release(&r);
	return session_end(&s);
}

int
cli_dlq_show(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "dlq show ID... [options]",
		.text = "Dead letters, whole, with their last error and history.\n",
		.examples = "  sluice dlq show 318497266802130945\n",
		.min_words = 1,
		.max_words = SESSION_ANY,
	};
	struct session s = SESSION("dlq show");
	const struct arg args[] = { SESSION_ROWS(&s) };
	struct slu_err err;

	if (!session_begin(&s, &help, &argc, &argv, args, COUNT(args)))
		return s.exit;
	for (int i = 0; i < argc; i++)
		if (message_show(&s, argv[i], &err))
			session_fail(&s, &err);
	return session_end(&s);
}

/* --- one call ------------------------------------------------------------------- */

struct outcome {
	uint64_t redriven, deleted, matched, looked;
	bool more;
	struct slice cursor;
	struct slice results;
};

static const struct json_field outcome_fields[] = {
	JSON_FIELD(u64, struct outcome, redriven),
	JSON_FIELD(u64, struct outcome, deleted),
	JSON_FIELD(u64, struct outcome, matched),
	JSON_FIELD(u64, struct outcome, looked),
	JSON_FIELD(bool, struct outcome, more),
	JSON_FIELD(text, struct outcome, cursor),
	JSON_FIELD(raw, struct outcome, results),
};

static int
call(struct dlq *d, struct slice body, struct outcome *out, struct slu_err *err)
{
	struct slice answer;
	struct json r;
	char path[48];
	int rc;

	(void)snprintf(path, sizeof path, "/v1/admin/dlq/%s", d->verb); /* fits */
	query_path(&d->s.query, path);
	rc = query_post(&d->s.query, body, &answer, err);
	if (rc)
		return rc;
	*out = (struct outcome){ 0 };
	json_init(&r, answer, JSON_DEPTH);
	json_fields(&r, outcome_fields, COUNT(outcome_fields), JSON_LENIENT, out);
	if (json_end(&r, err))
		return SLU_EUNKNOWN;
	d->done += out->redriven + out->deleted;
	d->matched += out->matched;
	d->looked += out->looked;
	(void)snprintf(d->cursor, sizeof d->cursor, "%.*s", (int)out->cursor.n, out->cursor.p);
	return 0;
}

static void
open_body(struct dlq *d, struct json_out *w, struct buf *body)
{
	buf_init(body, 64 * 1024);
	json_out_init(w, body);
	json_out_object(w, NULL);
	json_out_str(w, "namespace", slice_of(d->s.space));
	json_out_str(w, "topic", slice_of(d->queue));
}

/* --- named ones ----------------------------------------------------------------- */

struct result {
	uint64_t id;
	uint64_t status;
};

static void
say_missing(struct dlq *d, struct slice results)
{
	static const struct json_field fields[] = {
		JSON_FIELD(u64, struct result, id),
		JSON_FIELD(u64, struct result, status),
	};
	struct json r;

	if (results.n == 0)
		return;
	json_init(&r, results, JSON_DEPTH);
	json_array(&r);
	while (json_element(&r)) {
		struct result one = { 0 };

		json_fields(&r, fields, COUNT(fields), JSON_LENIENT, &one);
		if (one.status < 300)
			continue;
		session_nothing(&d->s, "%" PRIu64 " is no dead letter of %s", one.id, d->queue);
	}
}

static int
change_ids(struct dlq *d, int n, char **words, struct slu_err *err)
{
	struct outcome out = { 0 };
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

/* How many there are: 404 when there is no such queue. */
static int
ask_total(struct dlq *d, uint64_t *out, struct slu_err *err)
{
	static const struct json_field fields[] = {
		{ .name = { "dead", 4 }, .read = json_read_u64, .size = sizeof(uint64_t) },
	};
	struct slice body;
	struct json r;
	int rc;

	query_path(&d->s.query, "/v1/admin/queue");
	query_param(&d->s.query, "namespace", d->s.space);
	query_param(&d->s.query, "topic", d->queue);
	rc = query_get(&d->s.query, &body, err);
	if (rc)
		return rc;
	json_init(&r, body, JSON_DEPTH);
	json_fields(&r, fields, COUNT(fields), JSON_LENIENT, out);
	return json_end(&r, err) ? SLU_EUNKNOWN : 0;
}

static uint64_t
call_limit(const struct dlq *d)
{
	const uint64_t slice = d->rate / RATE_CALLS + 1;

	return d->rate && slice < CALL_MAX ? slice : CALL_MAX;
}

static int
change_page(struct dlq *d, uint64_t limit, const char *id, struct outcome *out,
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

/* So that no more than the rate are done by now. */
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

/* Up to most of those that match. id: only this one. */
static int
change_pages(struct dlq *d, uint64_t total, const char *id, struct slu_err *err)
{
	const slu_time began = clock_mono(&clock_system);
	const uint64_t end = d->looked + total;
	struct outcome out = { .more = true };
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

/* Named ones for another queue are looked for one after the other. */
static int
copy_ids(struct dlq *d, uint64_t total, int n, char **words, struct slu_err *err)
{
	int rc = 0;

	for (int i = 0; i < n && !rc; i++) {
		const uint64_t before = d->matched;

		rc = change_pages(d, total, words[i], err);
		if (rc || d->matched > before)
			continue;
		session_nothing(&d->s, "%s is no dead letter of %s", words[i], d->queue);
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
		return confirm(&d->s, d->yes, "delete %d dead letter%s of queue %s", n, n == 1 ? "" : "s", d->queue);
	if (find_is_any(&d->find))
		return confirm(&d->s, d->yes,
			       "delete those of the %" PRIu64 " dead letters of queue %s that match",
			       total, d->queue);
	return confirm(&d->s, d->yes, "delete all %" PRIu64 " dead letters of queue %s", total,
		       d->queue);
}

static void
change(struct dlq *d, int n, char **words)
{
	const bool some = d->all || find_is_any(&d->find);
	uint64_t total = 0;
	struct slu_err err;
	int rc;

	if (some == (n > 0)) {
		session_usage(&d->s, "%s which? Name ids, say --all, or a condition", d->verb);
		return;
	}
	if (n > 0 && d->dry_run) {
		session_usage(&d->s, "--dry-run is for --all and conditions");
		return;
	}
	rc = ask_total(d, &total, &err);
	if (!rc && !may_delete(d, total, n))
		return;
	if (!rc && n > 0)
		rc = d->to ? copy_ids(d, total, n, words, &err) : change_ids(d, n, words, &err);
	else if (!rc)
		rc = change_pages(d, total, NULL, &err);
	if (rc)
		session_fail(&d->s, &err);
	if (!rc || d->done > 0)
		tell(d);
}

/* --- the commands --------------------------------------------------------------- */

int
cli_dlq_redrive(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "dlq redrive QUEUE [ID...|--all|CONDITION...] [options]",
		.text = "Give dead letters another chance: they start anew, without failures, at the end\n"
			"of the line; or, with --to, as new messages of another queue. Those that are\n"
			"named, all of them, or those for which all conditions hold.\n",
		.examples = "  sluice dlq redrive mail 318497266802130945\n"
			    "  sluice dlq redrive mail --error timeout --dry-run\n"
			    "  sluice dlq redrive mail --all --rate 100\n"
			    "  sluice dlq redrive mail --reason expired --to mail-slow\n",
		.min_words = 1,
		.max_words = 1 + 1000,
	};
	struct dlq d = { .s = SESSION("dlq redrive"), .verb = "redrive" };
	const struct arg args[] = {
		{ "-a, --all", ARG_FLAG, &d.all, "all of them" },
		FIND_ROWS(&d.find),
		{ "--to QUEUE", ARG_TEXT, &d.to, "to this queue instead, as new messages" },
		{ "--rate", ARG_COUNT, &d.rate, "at most so many a second" },
		{ "--dry-run", ARG_FLAG, &d.dry_run, "only count them" },
		SESSION_ROWS(&d.s),
	};

	if (!session_begin(&d.s, &help, &argc, &argv, args, COUNT(args)))
		return d.s.exit;
	d.queue = argv[0];
	change(&d, argc - 1, argv + 1);
	return session_end(&d.s);
}

int
cli_dlq_delete(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "dlq delete QUEUE [ID...|--all|CONDITION...] [options]",
		.text = "Delete dead letters: those that are named, all of them, or those for which all\n"
			"conditions hold. They cannot be had back.\n",
		.examples = "  sluice dlq delete mail 318497266802130945\n"
			    "  sluice dlq delete mail --older-than 30d --dry-run\n"
			    "  sluice dlq delete mail --older-than 30d --yes\n",
		.min_words = 1,
		.max_words = 1 + 1000,
	};
	struct dlq d = { .s = SESSION("dlq delete"), .verb = "delete" };
	const struct arg args[] = {
		{ "-a, --all", ARG_FLAG, &d.all, "all of them" },
		FIND_ROWS(&d.find),
		{ "--rate", ARG_COUNT, &d.rate, "at most so many a second" },
		{ "--dry-run", ARG_FLAG, &d.dry_run, "only count them" },
		{ "-y, --yes", ARG_FLAG, &d.yes, "do not ask" },
		SESSION_ROWS(&d.s),
	};

	if (!session_begin(&d.s, &help, &argc, &argv, args, COUNT(args)))
		return d.s.exit;
	d.queue = argv[0];
	change(&d, argc - 1, argv + 1);
	return session_end(&d.s);
}

int
cli_dlq_purge(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "dlq purge QUEUE [options]",
		.text = "Delete all dead letters of a queue. They cannot be had back.\n",
		.examples = "  sluice dlq purge mail\n  sluice dlq purge mail --yes\n",
		.min_words = 1,
		.max_words = 1,
	};
	struct dlq d = { .s = SESSION("dlq purge"), .verb = "delete", .all = true };
	const struct arg args[] = {
		{ "-y, --yes", ARG_FLAG, &d.yes, "do not ask" },
		SESSION_ROWS(&d.s),
	};

	if (!session_begin(&d.s, &help, &argc, &argv, args, COUNT(args)))
		return d.s.exit;
	d.queue = argv[0];
	change(&d, 0, argv + 1);
	return session_end(&d.s);
}
