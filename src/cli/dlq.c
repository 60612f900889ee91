/*
 * dlq.c - `sluice dlq`: dead letters: see them, give them another chance, or delete them.
 */
#include "cli/rows.h"

#include "base/id.h"
#include "base/json.h"
#include "base/json_out.h"
#include "base/json_table.h"

#include <inttypes.h>

struct dlq {
	struct session s;
	uint64_t limit;
	bool all;
	const char *verb;
	const char *queue;
	uint64_t done;
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

/* --- list ----------------------------------------------------------------------- */

static int
list_pages(struct dlq *d, struct rows *r, struct slu_err *err)
{
	struct remote *rem = &d->s.remote;
	struct slice page;
	int rc;

	do {
		const uint64_t left = d->limit - r->n;

		remote_path(rem, "/dlq");
		remote_param(rem, "namespace", d->s.space);
		remote_param(rem, "topic", d->queue);
		remote_param_u64(rem, "limit", left < 1000 ? left : 1000);
		remote_param(rem, "cursor", r->cursor[0] ? r->cursor : NULL);
		rc = remote_get(rem, &page, err);
		if (!rc)
			rc = rows_add(r, page, "messages", err);
	} while (!rc && r->cursor[0] && r->n < d->limit);
	return rc;
}

static void
dlq_list(struct dlq *d)
{
	struct slu_err err;
	struct rows r;
	int rc;

	rows_init(&r, &d->s, dead_columns, COUNT(dead_columns));
	rc = list_pages(d, &r, &err);
	if (!rc)
		rc = rows_end(&r, &err);
	if (rc) {
		session_fail(&d->s, &err);
	} else if (r.n == 0) {
		session_note(&d->s, "no dead letters in %s", d->queue);
		d->s.exit = CLI_NOTHING;
	} else if (r.cursor[0]) {
		session_note(&d->s, "there are more; --limit shows them");
	}
	rows_release(&r);
}

/* --- redrive and delete --------------------------------------------------------- */

struct outcome {
	uint64_t redriven, deleted;
	bool more;
	struct slice results;
};

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
		session_note(&d->s, "%" PRIu64 " is no dead letter of %s", one.id, d->queue);
		d->s.exit = CLI_NOTHING;
	}
}

/* One call; *more: there are others that --all means. */
static int
change(struct dlq *d, struct slice body, bool *more, struct slu_err *err)
{
	static const struct json_field fields[] = {
		JSON_FIELD(u64, struct outcome, redriven),
		JSON_FIELD(u64, struct outcome, deleted),
		JSON_FIELD(bool, struct outcome, more),
		JSON_FIELD(raw, struct outcome, results),
	};
	struct outcome out = { 0 };
	struct slice answer;
	struct json r;
	char path[32];
	int rc;

	(void)snprintf(path, sizeof path, "/dlq/%s", d->verb); /* fits */
	remote_path(&d->s.remote, path);
	rc = remote_post(&d->s.remote, body, &answer, err);
	if (rc)
		return rc;
	json_init(&r, answer, JSON_DEPTH);
	json_fields(&r, fields, COUNT(fields), JSON_LENIENT, &out);
	if (json_end(&r, err))
		return SLU_EUNKNOWN;
	say_missing(d, out.results);
	d->done += out.redriven + out.deleted;
	*more = out.more;
	return 0;
}

static int
change_all(struct dlq *d, struct slu_err *err)
{
	struct json_out w;
	bool more = true;
	struct buf body;
	int rc = 0;

	buf_init(&body, 1024);
	json_out_init(&w, &body);
	json_out_object(&w, NULL);
	json_out_str(&w, "namespace", slice_of(d->s.space));
	json_out_str(&w, "topic", slice_of(d->queue));
	json_out_u64(&w, "limit", 1000);
	json_out_close(&w);
	while (more && !rc) {
		const uint64_t before = d->done;

		rc = change(d, buf_slice(&body), &more, err);
		more = more && d->done > before;
	}
	buf_release(&body);
	return rc;
}

static int
change_some(struct dlq *d, int n, char **words, struct slu_err *err)
{
	struct json_out w;
	struct buf body;
	bool more;
	int rc = 0;

	buf_init(&body, 64 * 1024);
	json_out_init(&w, &body);
	json_out_object(&w, NULL);
	json_out_str(&w, "namespace", slice_of(d->s.space));
	json_out_str(&w, "topic", slice_of(d->queue));
	json_out_array(&w, "ids");
	for (int i = 0; i < n && !rc; i++) {
		uint64_t id = 0;

		rc = id_parse(slice_of(words[i]), &id, err);
		json_out_u64(&w, NULL, id);
	}
	json_out_close(&w);
	json_out_close(&w);
	if (!rc)
		rc = change(d, buf_slice(&body), &more, err);
	buf_release(&body);
	return rc;
}

static void
dlq_change(struct dlq *d, int n, char **words)
{
	const char *past = d->verb[0] == 'r' ? "redriven" : "deleted";
	struct slu_err err;

	if (d->all == (n > 0)) {
		session_usage(&d->s, "%s which? Name ids, or say --all", d->verb);
		return;
	}
	if (d->all ? change_all(d, &err) : change_some(d, n, words, &err)) {
		session_fail(&d->s, &err);
		return;
	}
	if (d->s.json)
		printf("{\"%s\":%" PRIu64 "}\n", past, d->done);
	else
		printf("%" PRIu64 " %s\n", d->done, past);
}

/* --- the command ---------------------------------------------------------------- */

int
cli_dlq(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "dlq list|redrive|delete QUEUE [ID...|--all] [options]",
		.text = "Dead letters are messages that failed too often, were refused for good, or\n"
			"expired. They stay until redriven (tried again from the start) or deleted.\n",
		.examples = "  sluice dlq list mail\n"
			    "  sluice dlq redrive mail 318497266802130944\n"
			    "  sluice dlq redrive mail --all\n"
			    "  sluice dlq delete mail --all\n",
		.min_words = 2,
		.max_words = 2 + 1000,
	};
	struct dlq d = { .s = SESSION("dlq"), .limit = 100 };
	const struct arg rows[] = {
		{ "--limit", ARG_COUNT, &d.limit, "list: how many (100)" },
		{ "--all", ARG_FLAG, &d.all, "redrive, delete: all of them" },
		SESSION_ROWS(&d.s),
	};

	if (!session_begin(&d.s, &help, &argc, &argv, rows, COUNT(rows)))
		return d.s.exit;
	d.verb = argv[0];
	d.queue = argv[1];
	if (strcmp(d.verb, "list") == 0)
		dlq_list(&d);
	else if (strcmp(d.verb, "redrive") == 0 || strcmp(d.verb, "delete") == 0)
		dlq_change(&d, argc - 2, argv + 2);
	else
		session_usage(&d.s, "%s: expected list, redrive or delete", d.verb);
	return session_end(&d.s);
}
