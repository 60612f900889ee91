/*
 * projection.c - `sluice admin projection`: makes, checks and rebuilds the copy of a server's messages in a database.
 */
#include "projection/items.h"

#include "base/clock.h"
#include "base/json/json_table.h"
#include "base/mem.h"
#include "cli/lib/session.h"
#include "store/postgres/link.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
	PAGE = 10000,
	SHOWN = 20 /* differences that are printed */
};

static const struct timespec again = { .tv_sec = 1 }; /* between two comparisons */

/* A message, at the server or in the database. */
struct projected {
	uint64_t id;
	int32_t prio;
	char status; /* its first letter */
};

struct projecteds {
	struct projected *p;
	size_t n, max;
};

/* A queue of the server. */
struct projected_queue {
	char namespace[132];
	char queue[132];
};

struct projection_command {
	struct session s;
	struct links *links;
	bool print_sql;
	slu_time wait;
	struct projected_queue *queues;
	size_t n_queues;
	struct projecteds here;      /* at the server */
	struct projecteds there;     /* in the database */
	struct projecteds different; /* their ids; status: '-' missing, '+' extra, '!' another state */
};

/* --- lists ------------------------------------------------------------------------ */

static int
push(struct projecteds *list, struct projected x, struct slu_err *err)
{
	if (list->n == list->max) {
		const size_t max = list->max ? 2 * list->max : 1024;
		struct projected *const p = mem_realloc(list->p, max * sizeof *p);

		if (!p)
			return slu_fail(err, SLU_ENOMEM, "out of memory");
		*list = (struct projecteds){ p, list->n, max };
	}
	list->p[list->n++] = x;
	return 0;
}

static int
by_id(const void *a, const void *b)
{
	const struct projected *const x = a, *const y = b;

	return (x->id > y->id) - (x->id < y->id);
}

/* --- the server ------------------------------------------------------------------- */

struct listed {
	uint64_t id;
	int64_t priority;
	char status[16];
};

static const struct json_field listed_fields[] = {
	JSON_FIELD(u64, struct listed, id),
	JSON_FIELD(i64, struct listed, priority),
	JSON_FIELD(chars, struct listed, status),
};

/* The database has one word for what may change without a change of the message. */
static char
status_of(const char *status)
{
	return strcmp(status, "delayed") == 0 || strcmp(status, "held") == 0 ? 'r' : *status;
}

static int
add_listed(void *arg, struct json *in, struct slu_err *err)
{
	struct projection_command *const c = arg;
	struct listed m = { 0 };

	json_fields(in, listed_fields, COUNT(listed_fields), JSON_LENIENT, &m);
	return push(&c->here, (struct projected){ m.id, (int32_t)m.priority, status_of(m.status) }, err);
}

static int
add_queue(void *arg, struct json *in, struct slu_err *err)
{
	static const struct json_field fields[] = {
		JSON_FIELD(chars, struct projected_queue, namespace),
		JSON_FIELD(chars, struct projected_queue, queue),
	};
	struct projection_command *const c = arg;
	struct projected_queue *const more = mem_realloc(c->queues, (c->n_queues + 1) * sizeof *more);

	if (!more)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	c->queues = more;
	more[c->n_queues] = (struct projected_queue){ 0 };
	json_fields(in, fields, COUNT(fields), JSON_LENIENT, &more[c->n_queues++]);
	return 0;
}

/* Every shard has to answer. */
static int
read_list(struct projection_command *c, const struct query_list *list,
	  int (*fn)(void *arg, struct json *in, struct slu_err *err), struct slu_err *err)
{
	const int rc = query_each(&c->s.query, list, fn, c, err);

	if (!rc && c->s.query.missing.text[0])
		return slu_fail(err, SLU_EDOWN, "a shard of the server does not answer");
	return rc;
}

static int
read_server(struct projection_command *c, struct slu_err *err)
{
	const struct query_list queues = { "/v1/admin/queues", c->s.has_space ? c->s.space : NULL, "queues", 0, NULL };
	int rc;

	c->here.n = c->n_queues = 0;
	rc = read_list(c, &queues, add_queue, err);
	for (size_t i = 0; i < c->n_queues && !rc; i++) {
		const struct projected_queue *const q = &c->queues[i];
		const struct query_list messages = { "/v1/admin/messages?state=all", q->namespace, "messages", 0, q->queue };

		rc = read_list(c, &messages, add_listed, err);
	}
	if (!rc && c->here.n)
		qsort(c->here.p, c->here.n, sizeof *c->here.p, by_id);
	return rc;
}

/* --- the database ----------------------------------------------------------------- */

static int
run_sql(struct projection_command *c, const struct link_query *q, PGresult **out, struct slu_err *err)
{
	struct slu_err why = { 0 };

	if (links_run(c->links, q, out, &why) == STORE_OK)
		return 0;
	if (why.code == SLU_ENOTFOUND)
		return slu_fail(err, SLU_EINVAL, "%s; run: sluice admin projection init URL", why.text);
	return slu_fail(err, why.code, "database: %s", why.text);
}

#define ROWS(table)                                                                                                             \
	"(SELECT id, priority, status FROM sluice." table " WHERE id > $1::bigint AND ($2::text = '' OR namespace = lower($2))" \
	" ORDER BY id LIMIT 10000)"

/* Rows with an id above *last, in order. *n: how many. */
static int
read_page(struct projection_command *c, uint64_t *last, int *n, struct slu_err *err)
{
	struct link_query q = {
		.sql = "SELECT * FROM (" ROWS("items") " UNION ALL " ROWS("dead_letters") ") AS r ORDER BY id LIMIT 10000",
	};
	char text[LINK_NUMBER];
	PGresult *r;
	int rc;

	link_add_number(&q, *last, text);
	link_add(&q, c->s.has_space ? c->s.space : "");
	rc = run_sql(c, &q, &r, err);
	*n = rc ? 0 : PQntuples(r);
	for (int i = 0; i < *n && !rc; i++) {
		*last = link_number(r, i, 0);
		rc = push(&c->there, (struct projected){ *last, (int32_t)link_number(r, i, 1), *PQgetvalue(r, i, 2) }, err);
	}
	PQclear(r);
	return rc;
}

static int
read_database(struct projection_command *c, struct slu_err *err)
{
	uint64_t last = 0;
	int n, rc;

	c->there.n = 0;
	do {
		rc = read_page(c, &last, &n, err);
	} while (!rc && n == PAGE);
	return rc;
}

/* --- check ------------------------------------------------------------------------ */

/* Whether the same id was different before; in the first comparison every one counts. */
static bool
was_different(const struct projecteds *before, bool first, uint64_t id)
{
	const struct projected key = { .id = id };

	return first || (before->n && bsearch(&key, before->p, before->n, sizeof key, by_id));
}

/* Sets c->different to what differs now and did so in the comparison before. */
static int
compare(struct projection_command *c, bool first, struct slu_err *err)
{
	const struct projecteds *const a = &c->here, *const b = &c->there;
	struct projecteds now = { 0 };
	int rc = 0;

	for (size_t i = 0, j = 0; (i < a->n || j < b->n) && !rc;) {
		const bool in_a = i < a->n && (j == b->n || a->p[i].id <= b->p[j].id);
		const bool in_b = j < b->n && (i == a->n || b->p[j].id <= a->p[i].id);
		struct projected x = { .id = in_a ? a->p[i].id : b->p[j].id };

		if (!in_a || !in_b)
			x.status = in_a ? '-' : '+';
		else if (a->p[i].status != b->p[j].status || a->p[i].prio != b->p[j].prio)
			x.status = '!';
		if (x.status && was_different(&c->different, first, x.id))
			rc = push(&now, x, err);
		i += in_a;
		j += in_b;
	}
	mem_free(c->different.p);
	c->different = now;
	return rc;
}

static void
report(const struct projection_command *c)
{
	uint64_t missing = 0, extra = 0, other = 0;

	for (size_t i = 0; i < c->different.n; i++) {
		const char what = c->different.p[i].status;

		missing += what == '-';
		extra += what == '+';
		other += what == '!';
	}
	if (c->s.json) {
		printf("{\"messages\":%zu,\"rows\":%zu,\"missing\":%" PRIu64 ",\"extra\":%" PRIu64 ",\"different\":%" PRIu64 "}\n",
		       c->here.n, c->there.n, missing, extra, other);
		return;
	}
	for (size_t i = 0; i < c->different.n && i < SHOWN; i++)
		printf("%c %" PRIu64 "\n", c->different.p[i].status, c->different.p[i].id);
	printf("messages %zu, rows %zu, missing %" PRIu64 ", extra %" PRIu64 ", different %" PRIu64 "\n", c->here.n, c->there.n, missing,
	       extra, other);
}

/* Messages change while they are compared: only what stays different counts. */
static int
check(struct projection_command *c, struct slu_err *err)
{
	const slu_time until = time_add(clock_mono(&clock_system), c->wait);
	bool first = true;
	int rc;

	for (;;) {
		rc = read_server(c, err);
		if (!rc)
			rc = read_database(c, err);
		if (!rc)
			rc = compare(c, first, err);
		if (rc || c->different.n == 0 || (!first && clock_mono(&clock_system) >= until))
			break;
		first = false;
		nanosleep(&again, NULL);
	}
	if (!rc)
		report(c);
	if (!rc && c->different.n)
		c->s.exit = CLI_FAILED;
	return rc;
}

/* --- init, rebuild ---------------------------------------------------------------- */

static int
init(struct projection_command *c, struct slu_err *err)
{
	struct slu_err why = { 0 };

	if (links_script(c->links, items_schema, &why) != STORE_OK)
		return slu_fail(err, why.code, "database: %s", why.text);
	printf("the database has the tables of a projection: start the server with --projection-url\n");
	return 0;
}

static int
rebuild(struct projection_command *c, struct slu_err *err)
{
	const struct link_query q = {
		.sql = "UPDATE sluice.projection SET wanted = wanted + 1 WHERE " LINK_ON_DISK " RETURNING shard",
	};
	PGresult *r;
	const int rc = run_sql(c, &q, &r, err);

	if (rc)
		return rc;
	printf("rebuilds of shards: %d; sluice_projection_rebuilding is 0 when they are done\n", PQntuples(r));
	PQclear(r);
	return 0;
}

/* --- the command ------------------------------------------------------------------ */

static const struct {
	const char *name;
	int (*run)(struct projection_command *c, struct slu_err *err);
} verbs[] = {
	{ "init", init },
	{ "check", check },
	{ "rebuild", rebuild },
};

static int
run(struct session *s, struct slu_err *err)
{
	struct projection_command *const c = (void *)s;
	const char *const url = session_or_variable(s->n_words > 1 ? s->words[1] : NULL, "SLUICE_PROJECTION_URL");
	int rc = 0;
	size_t i = 0;

	while (i < COUNT(verbs) && strcmp(verbs[i].name, s->words[0]) != 0)
		i++;
	if (i == COUNT(verbs))
		return session_usage(s, "unknown word: %s; expected init, check or rebuild", s->words[0]);
	if (c->print_sql && i == 0) {
		fputs(items_schema, stdout);
		return 0;
	}
	if (!url)
		return session_usage(s, "URL is missing; expected postgres://HOST/DATABASE, or SLUICE_PROJECTION_URL in the environment");
	c->links = links_new(url, 0);
	if (c->links)
		rc = verbs[i].run(c, err);
	else
		rc = slu_fail(err, SLU_ENOMEM, "out of memory");
	links_free(c->links);
	mem_free(c->queues);
	mem_free(c->here.p);
	mem_free(c->there.p);
	mem_free(c->different.p);
	return rc;
}

const struct command cli_admin_projection = {
	.name = "admin projection",
	.summary = "make, check or rebuild the copy of a server's messages in PostgreSQL",
	.usage = "init|check|rebuild [URL] [options]",
	.text = "A server with the setting projection.url keeps a readable copy of its messages in the tables\n"
		"sluice.items and sluice.dead_letters of a PostgreSQL database.\n"
		"\ninit makes the tables, or prints their SQL with --print-sql. check compares all messages of\n"
		"--server with the rows, again and again for --wait, and shows what stays different: - a row is\n"
		"missing, + a row without a message, ! another status or priority. rebuild asks every server that\n"
		"writes to the database to write all of its messages anew, and to remove other rows.\n"
		"\nURL is the database: postgres://HOST/DATABASE. Without it the variable SLUICE_PROJECTION_URL counts.\n",
	.examples = "  sluice admin projection init --print-sql | psql postgres://db.example/queues\n"
		    "  sluice admin projection check postgres://db.example/queues\n"
		    "  sluice admin projection check postgres://db.example/queues --namespace shop --json\n"
		    "  sluice admin projection rebuild postgres://db.example/queues\n"
		    "\nexit codes:\n"
		    "  0  done; check: the copy is right\n"
		    "  1  check: the copy differs; or the database or the server failed\n"
		    "  2  wrong options or words, or the tables are missing\n",
	.words = { 1, 2 },
	.options = CLI_QUEUE,
	CLI_ARGS({ "--print-sql", ARG_FLAG, AT(projection_command, print_sql), "init: print the SQL, change nothing" },
		 { "--wait", ARG_TIME, AT(projection_command, wait), "check: how long a difference may last (10s)" }),
	CLI_STATE(struct projection_command, .wait = 10 * SLU_SEC),
	.run = run,
};
