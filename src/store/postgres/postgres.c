#include "store/postgres/postgres.h"

#include "base/mem.h"
#include "store/postgres/before.h"
#include "store/postgres/link.h"
#include "store/postgres/vacuum.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	SCHEMA_MAX = 64, /* bytes of the name of a schema, with the NUL */
	SQL_MAX = 2048,
	USER_MAX = 64
};

/* The statements of the store; %1$s is its schema. */
enum sql {
	SQL_PUT,
	SQL_PUT_GROUP,
	SQL_REPLACE,
	SQL_REMOVE,
	SQL_REMOVE_ALL, /* the last one that is prepared */
	SQL_PUT_BEHIND,
	SQL_LOOK,
	SQL_GET,
	SQL_LIST,
	SQL_CLOCK,
	SQL_SAFE,
	SQL_MAKE,
	SQL_COUNT
};

_Static_assert((int)SQL_REMOVE_ALL < (int)LINK_OFTEN, "LINK_OFTEN");

/* An object of less than a page is one row, larger ones are rows of 2 kB beside it. Autovacuum cleans removed rows up soon
 * and without pauses, also if this role may not (vacuum.h). */
#define TABLES                                                                                                                \
	"CREATE SCHEMA IF NOT EXISTS %1$s;\n"                                                                                 \
	"CREATE TABLE IF NOT EXISTS %1$s.object (name text COLLATE \"C\" PRIMARY KEY, bytes bytea NOT NULL)\n"                \
	"  WITH (toast_tuple_target = 8160,\n"                                                                                \
	"        autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0,\n" \
	"        toast.autovacuum_vacuum_threshold = 1000, toast.autovacuum_vacuum_scale_factor = 0,\n"                       \
	"        toast.autovacuum_vacuum_cost_delay = 0);\n"                                                                  \
	"ALTER TABLE %1$s.object ALTER bytes SET STORAGE EXTERNAL;\n"                                                         \
	"CREATE TABLE IF NOT EXISTS %1$s.beat (name text COLLATE \"C\" PRIMARY KEY, bytes bytea NOT NULL)\n"                  \
	"  WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);\n"

#define RIGHTS                                      \
	"GRANT USAGE ON SCHEMA %1$s TO \"%2$s\";\n" \
	"GRANT SELECT, INSERT, UPDATE, DELETE ON %1$s.object, %1$s.beat TO \"%2$s\";\n"

/* The mark of the group whose object is in `bytes` behind `at` bytes, and 4 bytes of `bytes` as a number. */
#define MARK(bytes, at) "substring(" bytes " FROM " at " + 49 FOR 8) || substring(" bytes " FROM " at " + 9 FOR 4)"
#define LE32(four)      "(get_byte(" four ", 0) + (get_byte(" four ", 1) << 8) + (get_byte(" four ", 2) << 16) + (get_byte(" four ", 3) << 24))"

/* A name that is in one table is never put into the other: beats have names of their own. The
 * statement that takes a name out of `object` before a replace is for the contract of a store. */
static const char *const texts[SQL_COUNT] = {
	[SQL_PUT] = "INSERT INTO %1$s.object (name, bytes) SELECT $1, $2"
		    " WHERE NOT EXISTS (SELECT 1 FROM %1$s.beat WHERE name = $1) AND " LINK_ON_DISK
		    " ON CONFLICT DO NOTHING",
	/* POSTGRES-1 */
	[SQL_PUT_GROUP] = "INSERT INTO %1$s.object (name, bytes) SELECT $1, $2 FROM %1$s.object AS before"
			  " WHERE before.name = $3 AND " MARK("before.bytes", "0") " = $4 AND " LINK_ON_DISK
										   " ON CONFLICT DO NOTHING",
	/* The same, if the group before is the last one of the newest span, and no object of its own. */
	[SQL_PUT_BEHIND] = "INSERT INTO %1$s.object (name, bytes) SELECT $1, $2 FROM %1$s.object AS span,"
			   " LATERAL (SELECT substring(span.bytes FROM 13 FOR 4) AS four) AS a,"
			   " LATERAL (SELECT " LE32("a.four") " AS n) AS b,"
							      " LATERAL (SELECT substring(span.bytes FROM 24 + 8 * (b.n - 1) + 1 FOR 4) AS four) AS c,"
							      " LATERAL (SELECT octet_length(span.bytes) - " LE32("c.four") " AS at) AS last"
															    " WHERE span.name = (SELECT max(name) FROM %1$s.object WHERE name > $3 AND name <= $4)"
															    " AND right(span.name, 20)::bigint + b.n - 1 = $5::bigint"
															    " AND " MARK("span.bytes", "last.at") " = $6"
																				  " AND " LINK_ON_DISK
																				  " ON CONFLICT DO NOTHING",
	[SQL_LOOK] = "SELECT count(*) FILTER (WHERE name = $1), count(*) FILTER (WHERE name = $2)"
		     " FROM %1$s.object WHERE name IN ($1, $2)",
	[SQL_REPLACE] = "WITH gone AS (DELETE FROM %1$s.object WHERE name = $1)"
			" INSERT INTO %1$s.beat (name, bytes) SELECT $1, $2 WHERE " LINK_ON_DISK
			" ON CONFLICT (name) DO UPDATE SET bytes = excluded.bytes",
	[SQL_GET] = "SELECT octet_length(bytes)::bigint, substring(bytes FROM $2::int FOR $3::int) FROM %1$s.object WHERE name = $1"
		    " UNION ALL"
		    " SELECT octet_length(bytes)::bigint, substring(bytes FROM $2::int FOR $3::int) FROM %1$s.beat WHERE name = $1",
	[SQL_LIST] = "SELECT name FROM (SELECT name FROM %1$s.object UNION ALL SELECT name FROM %1$s.beat) AS names"
		     " WHERE name > $1 AND name >= $2 AND name < $3 ORDER BY name LIMIT $4::int",
	/* STORE-3: a power cut may undo it. A sync of its own would delay the puts. */
	[SQL_REMOVE] = "WITH gone AS (DELETE FROM %1$s.beat WHERE name = $1 AND " LINK_LATER ")"
		       " DELETE FROM %1$s.object WHERE name = $1 AND " LINK_LATER,
	[SQL_REMOVE_ALL] = "WITH gone AS (DELETE FROM %1$s.beat WHERE name = ANY ($1::text[]) AND " LINK_LATER ")"
			   " DELETE FROM %1$s.object WHERE name = ANY ($1::text[]) AND " LINK_LATER,
	[SQL_CLOCK] = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
	[SQL_SAFE] = "SELECT current_setting('fsync'), current_setting('full_page_writes')",
	[SQL_MAKE] = "DO $make$ BEGIN"
		     " PERFORM pg_advisory_xact_lock(hashtext('%1$s.object'));"
		     " IF to_regclass('%1$s.object') IS NULL OR to_regclass('%1$s.beat') IS NULL THEN " TABLES
		     " END IF; END $make$",
};

struct postgres_store {
	struct store base;
	struct links *links;
	struct vacuum *vacuum;        /* NULL: read only */
	char url[STORE_URL_MAX + 16]; /* of libpq */
	char sql[SQL_COUNT][SQL_MAX];
};

static struct postgres_store *
of(struct store *s)
{
	return (struct postgres_store *)(void *)s;
}

static struct link_query
query(const struct postgres_store *s, enum sql sql)
{
	return (struct link_query){ .sql = s->sql[sql], .often = sql <= SQL_REMOVE_ALL ? (unsigned)sql + 1 : 0 };
}

static void
add_bytes(struct link_query *q, struct slice value)
{
	q->params[q->n].bytes = true;
	q->params[q->n++].value = value;
}

/* ---- Objects ---- */

/* Begins a query that puts an object. */
static struct link_query
put_query(const struct postgres_store *s, enum sql sql, const char *name, struct slice object)
{
	struct link_query q = query(s, sql);

	link_add(&q, name);
	add_bytes(&q, object);
	return q;
}

/* Returns STORE_EXISTS if the query has put nothing. */
static enum store_result
run_put(struct postgres_store *s, const struct link_query *q, struct slu_err *err)
{
	PGresult *result;
	enum store_result r = links_run(s->links, q, &result, err);

	if (r == STORE_OK && strcmp(PQcmdTuples(result), "1") != 0)
		r = STORE_EXISTS;
	if (r == STORE_OK && s->vacuum)
		vacuum_wrote(s->vacuum, q->params[1].value.n);
	PQclear(result);
	return r;
}

/* *has_it: the name is taken. *has_before: the group before has an object of its own. */
static enum store_result
look(struct postgres_store *s, const char *name, const struct group_before *c, bool *has_it, bool *has_before,
     struct slu_err *err)
{
	struct link_query q = query(s, SQL_LOOK);
	PGresult *result;
	enum store_result r;

	link_add(&q, name);
	link_add(&q, c->name);
	r = links_run(s->links, &q, &result, err);
	*has_it = r == STORE_OK && link_number(result, 0, 0) > 0;
	*has_before = r == STORE_OK && link_number(result, 0, 1) > 0;
	PQclear(result);
	return r;
}

/* The group was not put: its name is taken, or the group before is in a span, missing or another one. */
static enum store_result
put_behind(struct postgres_store *s, const char *name, struct slice object, const struct group_before *c,
	   struct slu_err *err)
{
	struct link_query q = put_query(s, SQL_PUT_BEHIND, name, object);
	char number[LINK_NUMBER];
	bool has_it, has_before;
	enum store_result r = look(s, name, c, &has_it, &has_before, err);

	if (r != STORE_OK || has_it)
		return r == STORE_OK ? STORE_EXISTS : r;
	link_add(&q, c->spans);
	link_add(&q, c->last_span);
	link_add_number(&q, c->number, number);
	add_bytes(&q, (struct slice){ c->mark, sizeof c->mark });
	r = has_before ? STORE_EXISTS : run_put(s, &q, err);
	if (r != STORE_EXISTS)
		return r;
	slu_fail(err, SLU_EDOWN, has_before ? "%.100s is another group than the one that this group continues" : "%.100s, which this group continues, is missing",
		 c->name);
	return STORE_FAILED;
}

static enum store_result
put_group(struct postgres_store *s, const char *name, struct slice object, const struct group_before *c,
	  struct slu_err *err)
{
	struct link_query q = put_query(s, SQL_PUT_GROUP, name, object);
	enum store_result r;

	link_add(&q, c->name);
	add_bytes(&q, (struct slice){ c->mark, sizeof c->mark });
	r = run_put(s, &q, err);
	return r == STORE_EXISTS ? put_behind(s, name, object, c, err) : r;
}

static enum store_result
put(struct store *store, const char *name, struct slice object, enum store_mode mode,
    struct slu_err *err)
{
	struct postgres_store *const s = of(store);
	const struct link_query q = put_query(s, mode == STORE_IF_ABSENT ? SQL_PUT : SQL_REPLACE, name, object);
	struct group_before c;

	if (mode == STORE_IF_ABSENT && group_before_find(name, object, &c))
		return put_group(s, name, object, &c, err);
	return run_put(s, &q, err);
}

static enum store_result
get(struct store *store, const char *name, uint64_t at, size_t max, struct buf *out, uint64_t *size,
    struct slu_err *err)
{
	struct postgres_store *const s = of(store);
	struct link_query q = query(s, SQL_GET);
	char first[LINK_NUMBER], n[LINK_NUMBER];
	PGresult *result;
	enum store_result r;

	link_add(&q, name);
	link_add_number(&q, at < STORE_OBJECT_MAX ? at + 1 : STORE_OBJECT_MAX + 1, first);
	link_add_number(&q, max < STORE_OBJECT_MAX ? max : STORE_OBJECT_MAX, n);
	r = links_run(s->links, &q, &result, err);
	if (r == STORE_OK && PQntuples(result) == 0)
		r = STORE_ABSENT;
	if (r == STORE_OK) {
		*size = link_number(result, 0, 0);
		buf_put(out, PQgetvalue(result, 0, 1), (size_t)PQgetlength(result, 0, 1));
	}
	PQclear(result);
	return r;
}

static enum store_result
remove_object(struct store *store, const char *name, struct slu_err *err)
{
	struct postgres_store *const s = of(store);
	struct link_query q = query(s, SQL_REMOVE);
	PGresult *result;
	enum store_result r;

	link_add(&q, name);
	r = links_run(s->links, &q, &result, err);
	PQclear(result);
	return r;
}

/* The names have no characters that need quotes in an array. */
static enum store_result
remove_all(struct store *store, const char *name, struct slice more, struct slu_err *err)
{
	struct postgres_store *const s = of(store);
	struct link_query q = query(s, SQL_REMOVE_ALL);
	PGresult *result = NULL;
	enum store_result r = STORE_FAILED;
	struct buf names;

	buf_init(&names, STORE_REMOVES * STORE_NAME_MAX + 2);
	buf_printf(&names, "{%s", name);
	for (; more.n > 0; slice_skip(&more, strlen(more.p) + 1))
		buf_printf(&names, ",%s", more.p);
	buf_putc(&names, '}');
	link_add(&q, buf_str(&names));
	if (names.failed)
		slu_fail(err, SLU_ENOMEM, "out of memory");
	else
		r = links_run(s->links, &q, &result, err);
	PQclear(result); /* NULL is fine */
	buf_release(&names);
	return r;
}

static enum store_result
read_clock(struct store *store, slu_time *wall, struct slu_err *err)
{
	struct postgres_store *const s = of(store);
	const struct link_query q = query(s, SQL_CLOCK);
	PGresult *result;
	const enum store_result r = links_run(s->links, &q, &result, err);

	*wall = r == STORE_OK ? (slu_time)link_number(result, 0, 0) * SLU_US : 0;
	PQclear(result);
	return r;
}

/* ---- Lists ---- */

/* Names are ASCII below 127, so a byte from 127 on sorts behind all of them: 127 stands for it, and
 * the rest does not matter. */
static void
to_ascii(const char *text, char out[static STORE_NAME_MAX])
{
	size_t n = 0;

	for (; text[n] && (unsigned char)text[n] < 127; n++)
		out[n] = text[n];
	if (text[n])
		out[n++] = 127;
	out[n] = '\0';
}

static enum store_result
list(struct store *store, const char *prefix, const char *after, uint32_t max,
     struct store_names *out, struct slu_err *err)
{
	struct postgres_store *const s = of(store);
	struct link_query q = query(s, SQL_LIST);
	char from[STORE_NAME_MAX], end[STORE_NAME_MAX + 1], n[LINK_NUMBER];
	PGresult *result;
	enum store_result r;

	to_ascii(after, from);
	snprintf(end, sizeof end, "%s\x7f", prefix);
	link_add(&q, from);
	link_add(&q, prefix);
	link_add(&q, end);
	link_add_number(&q, (uint64_t)max + 1, n);
	r = links_run(s->links, &q, &result, err);
	for (int i = 0; r == STORE_OK && i < PQntuples(result); i++) {
		if ((uint32_t)i < max)
			store_names_add(out, PQgetvalue(result, i, 0));
		else
			out->more = true;
	}
	PQclear(result);
	return r;
}

/* ---- Open ---- */

/* Takes schema=NAME out of the URL: libpq does not know it. */
static int
split_url(const char *rest, char url[static STORE_URL_MAX + 16], char schema[static SCHEMA_MAX],
	  struct slu_err *err)
{
	struct slice left = slice_of(rest), item;
	char mark = '?';
	struct buf out;
	int rc = 0;

	(void)snprintf(schema, SCHEMA_MAX, "sluice");
	buf_init(&out, STORE_URL_MAX + 15);
	(void)slice_cut(&left, '?', &item);
	buf_puts(&out, "postgres://");
	buf_put(&out, item.p, item.n);
	while (left.n > 0) {
		(void)slice_cut(&left, '&', &item);
		if (item.n > 7 && memcmp(item.p, "schema=", 7) == 0) {
			snprintf(schema, SCHEMA_MAX, "%.*s", (int)(item.n - 7), item.p + 7);
			continue;
		}
		buf_putc(&out, mark);
		buf_put(&out, item.p, item.n);
		mark = '&';
	}
	snprintf(url, STORE_URL_MAX + 16, "%s", buf_str(&out));
	buf_release(&out);
	if (!schema[0] || schema[strspn(schema, "abcdefghijklmnopqrstuvwxyz_0123456789")] || (schema[0] >= '0' && schema[0] <= '9'))
		rc = slu_fail(err, SLU_EINVAL, "invalid schema: %.40s; expected a-z 0-9 _", schema);
	return rc;
}

/* The user of the URL; "sluice" if the URL has none. */
static int
find_user(const char *rest, char out[static USER_MAX], struct slu_err *err)
{
	const size_t n = strcspn(rest, "/?");
	const char *const at = memrchr(rest, '@', n);
	const int size = at ? (int)strcspn(rest, ":@") : 0;

	snprintf(out, USER_MAX, "%.*s", size ? size : 6, size ? rest : "sluice");
	if (size >= USER_MAX || out[strspn(out, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")])
		return slu_fail(err, SLU_EINVAL, "invalid user: %.40s; expected letters, digits, _ -", out);
	return 0;
}

static int
write_sql(const char *rest, struct buf *out, struct slu_err *err)
{
	char url[STORE_URL_MAX + 16], schema[SCHEMA_MAX], user[USER_MAX];
	int rc = split_url(rest, url, schema, err);

	if (!rc)
		rc = find_user(rest, user, err);
	if (!rc)
		buf_printf(out, TABLES RIGHTS, schema, user);
	return rc;
}

/* A server that does not sync loses what it has confirmed. */
static enum store_result
check_safety(struct postgres_store *s, struct slu_err *err)
{
	const struct link_query q = query(s, SQL_SAFE);
	PGresult *result;
	enum store_result r = links_run(s->links, &q, &result, err);

	if (r == STORE_OK && (strcmp(PQgetvalue(result, 0, 0), "on") != 0 || strcmp(PQgetvalue(result, 0, 1), "on") != 0)) {
		slu_fail(err, SLU_EINVAL, "the server runs with fsync or full_page_writes off and would lose data; store.unsafe accepts it");
		r = STORE_REFUSED;
	}
	PQclear(result);
	return r;
}

static enum store_result
make_tables(struct postgres_store *s, struct slu_err *err)
{
	const struct link_query q = query(s, SQL_MAKE);
	PGresult *result;
	const enum store_result r = links_run(s->links, &q, &result, err);

	PQclear(result);
	return r;
}

static void
close_store(struct store *store)
{
	struct postgres_store *const s = of(store);

	vacuum_close(s->vacuum);
	links_free(s->links);
	mem_free(s);
}

static int
check(const char *rest, const struct store_conf *conf, struct slu_err *err)
{
	char url[STORE_URL_MAX + 16], schema[SCHEMA_MAX];

	(void)conf; /* whether a connection is safe is seen when it is there */
	return split_url(rest, url, schema, err);
}

static enum store_result
start_vacuum(struct postgres_store *s, const char *schema, struct slu_log *log, struct slu_err *err)
{
	char table[SCHEMA_MAX + 8];

	snprintf(table, sizeof table, "%s.object", schema);
	return vacuum_open(&s->vacuum, s->url, table, log, err) ? STORE_FAILED : STORE_OK;
}

static enum store_result
prepare(struct postgres_store *s, const char *rest, const struct store_conf *conf,
	struct slu_err *err)
{
	char schema[SCHEMA_MAX];
	enum store_result r = STORE_OK;

	if (split_url(rest, s->url, schema, err))
		return STORE_REFUSED;
	for (unsigned i = 0; i < SQL_COUNT; i++)
		snprintf(s->sql[i], SQL_MAX, texts[i], schema);
	s->links = links_new(s->url, conf->timeout);
	if (!s->links) {
		slu_fail(err, SLU_ENOMEM, "out of memory");
		return STORE_FAILED;
	}
	if (!conf->unsafe)
		r = check_safety(s, err);
	if (r == STORE_OK && !conf->read_only)
		r = make_tables(s, err);
	if (r == STORE_OK && !conf->read_only)
		r = start_vacuum(s, schema, conf->log, err);
	return r;
}

static enum store_result
open_store(struct store **out, const char *rest, const struct store_conf *conf, struct slu_err *err)
{
	struct postgres_store *const s = mem_zalloc(sizeof *s);
	enum store_result r;

	if (!s) {
		slu_fail(err, SLU_ENOMEM, "out of memory");
		return STORE_FAILED;
	}
	r = prepare(s, rest, conf, err);
	if (r == STORE_OK)
		*out = &s->base;
	else
		close_store(&s->base);
	return r;
}

const struct store_ops store_postgres = {
	.name = "postgres",
	.doc = "a schema of a PostgreSQL database",
	.shards = 16,
	.lease = 5 * SLU_SEC,
	.sql = write_sql,
	.check = check,
	.open = open_store,
	.close = close_store,
	.put = put,
	.get = get,
	.list = list,
	.remove = remove_object,
	.remove_all = remove_all,
	.clock = read_clock,
};
