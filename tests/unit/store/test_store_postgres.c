/*
 * POSTGRES-1 and LINE-5: the put of a group checks the chain; what is on disk when a call returns. Part of the program
 * that runs the cases of every store on a real PostgreSQL server.
 */
#include "store_rig.h"

#include "line/object.h"
#include "store/postgres/link.h"

#include <poll.h>
#include <stdio.h>

enum {
	GROUPS = 4
};

static struct line_group groups[GROUPS + 1]; /* by number */
static struct buf objects[GROUPS + 1];

static void
name_of(char out[LINE_NAME_MAX], uint64_t number)
{
	line_name(out, "3", LINE_GROUP, number);
}

/* The groups 1 to GROUPS of shard 3. */
static void
make_chain(void)
{
	for (uint64_t n = 1; n <= GROUPS; n++) {
		groups[n] = (struct line_group){
			.number = n,
			.epoch = 1,
			.opening = n == 1,
			.mark.put = 100 + n,
			.before = groups[n - 1].mark,
			.begin = 1,
			.body = n == 1 ? (struct slice){ 0 } : SLICE("body"),
		};
		buf_init(&objects[n], 1 << 16);
		line_group_encode(&groups[n], &objects[n]);
	}
}

static enum store_result
put_object(struct store_rig *r, uint64_t number, const struct buf *object)
{
	char name[LINE_NAME_MAX];

	name_of(name, number);
	return store_put(r->s, name, (struct slice){ object->p, object->n }, STORE_IF_ABSENT, &r->err);
}

static enum store_result
put_number(struct store_rig *r, uint64_t number)
{
	return put_object(r, number, &objects[number]);
}

/* Group n as another node would have put it: behind a group with another mark. */
static void
make_other(uint64_t n, struct buf *out)
{
	struct line_group g = groups[n];

	g.before.put++;
	buf_init(out, 1 << 16);
	line_group_encode(&g, out);
}

static void
put_span(struct store_rig *r, uint64_t first, uint32_t n)
{
	uint64_t lengths[GROUPS];
	struct buf bytes, span;
	char name[LINE_NAME_MAX];

	buf_init(&bytes, 1 << 16);
	buf_init(&span, 1 << 16);
	for (uint32_t i = 0; i < n; i++) {
		lengths[i] = objects[first + i].n;
		buf_put(&bytes, objects[first + i].p, objects[first + i].n);
	}
	line_span_encode(&span, first, lengths, n, buf_slice(&bytes));
	line_name(name, "3", LINE_SPAN, first);
	CHECK_EQ(STORE_OK, store_put(r->s, name, buf_slice(&span), STORE_IF_ABSENT, &r->err));
	buf_release(&bytes);
	buf_release(&span);
}

STORE_CASE(LINE_5_a_group_behind_a_hole_is_refused_by_name)
{
	make_chain();
	CHECK_EQ(STORE_OK, put_number(r, 1));
	CHECK_EQ(STORE_OK, put_number(r, 2));
	CHECK_EQ(STORE_FAILED, put_number(r, 4));
	CHECK_CONTAINS("3/group/00000000000000000003, which this group continues, is missing", r->err.text);
	CHECK_STR("3/group/00000000000000000001 3/group/00000000000000000002", store_rig_list(r, "3/", "", 10));
	CHECK_EQ(STORE_OK, put_number(r, 3));
	CHECK_EQ(STORE_OK, put_number(r, 4));
	CHECK_EQ(STORE_EXISTS, put_number(r, 4));
}

STORE_CASE(LINE_5_a_group_of_another_chain_is_refused_by_name)
{
	struct buf other;

	make_chain();
	make_other(3, &other);
	CHECK_EQ(STORE_OK, put_number(r, 1));
	CHECK_EQ(STORE_OK, put_number(r, 2));
	CHECK_EQ(STORE_FAILED, put_object(r, 3, &other));
	CHECK_CONTAINS("3/group/00000000000000000002 is another group than the one that this group continues", r->err.text);
	CHECK_EQ(STORE_OK, put_number(r, 3));
	CHECK_EQ(STORE_EXISTS, put_object(r, 3, &other));
	buf_release(&other);
}

STORE_CASE(LINE_5_a_group_may_continue_the_last_group_of_a_span)
{
	struct buf other;
	char name[LINE_NAME_MAX];

	make_chain();
	make_other(4, &other);
	for (uint64_t n = 1; n <= 3; n++)
		CHECK_EQ(STORE_OK, put_number(r, n));
	put_span(r, 1, 1);
	put_span(r, 2, 2);
	for (uint64_t n = 1; n <= 3; n++) {
		name_of(name, n);
		CHECK_EQ(STORE_OK, store_remove(r->s, name, &r->err));
	}
	CHECK_EQ(STORE_FAILED, put_object(r, 4, &other));
	CHECK_EQ(STORE_FAILED, put_number(r, 3)); /* it is in the span, and group 2 is not the last one there */
	CHECK_EQ(STORE_OK, put_number(r, 4));
	buf_release(&other);
}

/* ---- Commits ---- */

/* Connections beside those of the store. */
static struct links *
open_links(const struct store_rig *r)
{
	char url[STORE_URL_MAX];

	snprintf(url, sizeof url, "%.*s", (int)strcspn(r->url, "?"), r->url);
	return links_new(url, 0);
}

static const char *
schema_of(const struct store_rig *r)
{
	return strstr(r->url, "schema=") + strlen("schema=");
}

STORE_CASE(a_put_whose_commit_fails_is_no_success)
{
	struct links *const l = open_links(r);
	const char *const schema = schema_of(r);
	char sql[1024];

	snprintf(sql, sizeof sql,
		 "CREATE FUNCTION %1$s.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not at commit'; END $$;"
		 "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON %1$s.object DEFERRABLE INITIALLY DEFERRED"
		 " FOR EACH ROW EXECUTE FUNCTION %1$s.refuse()",
		 schema);
	CHECK_EQ(STORE_OK, links_script(l, sql, &r->err));
	CHECK_EQ(STORE_FAILED, store_put(r->s, "a", SLICE("x"), STORE_IF_ABSENT, &r->err));
	CHECK_CONTAINS("not at commit", r->err.text);
	CHECK_STR("", store_rig_list(r, "", "", 10));
	snprintf(sql, sizeof sql, "DROP TRIGGER late ON %s.object", schema);
	CHECK_EQ(STORE_OK, links_script(l, sql, &r->err));
	CHECK_EQ(STORE_OK, store_put(r->s, "a", SLICE("x"), STORE_IF_ABSENT, &r->err));
	links_free(l);
}

static uint64_t
ask(struct links *l, const char *sql)
{
	const struct link_query q = { .sql = sql };
	struct slu_err err;
	PGresult *result;
	uint64_t n;

	CHECK_EQ(STORE_OK, links_run(l, &q, &result, &err), err.text);
	n = link_number(result, 0, 0);
	PQclear(result);
	return n;
}

static uint64_t
ask_often(struct links *l, const char *sql)
{
	const struct link_query q = { .sql = sql, .often = 1 };
	struct slu_err err;
	PGresult *result;
	uint64_t n;

	CHECK_EQ(STORE_OK, links_run(l, &q, &result, &err), err.text);
	n = link_number(result, 0, 0);
	PQclear(result);
	return n;
}

STORE_CASE(POSTGRES_2_a_frequent_statement_is_prepared_and_prepared_anew)
{
	static const char sql[] = "SELECT (extract(epoch FROM max(prepare_time)) * 1000000)::bigint FROM pg_prepared_statements";
	struct links *const l = open_links(r);
	const uint64_t first = ask_often(l, sql);

	for (unsigned i = 1; i < LINK_ANEW; i++)
		CHECK_EQ(first, ask_often(l, sql));
	for (unsigned i = 0; i < LINK_ANEW; i++)
		CHECK(ask_often(l, sql) > first);
	CHECK_EQ(1, ask(l, "SELECT count(*) FROM pg_prepared_statements"));
	links_free(l);
}

/* As behind pgbouncer, where another session may run the transaction. */
STORE_CASE(POSTGRES_2_a_session_without_the_statement_gets_it_whole_from_then_on)
{
	static const char sql[] = "SELECT count(*) FROM pg_prepared_statements";
	static const char drop[] = "DEALLOCATE ALL";
	struct links *const l = open_links(r);
	const struct link_query q = { .sql = drop };
	PGresult *result;

	CHECK_EQ(1, ask_often(l, sql));
	CHECK_EQ(STORE_OK, links_run(l, &q, &result, &r->err), r->err.text);
	PQclear(result);
	CHECK_EQ(0, ask_often(l, sql));
	CHECK_EQ(0, ask_often(l, sql));
	links_free(l);
}

/* A statement of the same name is there: a session that another program has used. */
STORE_CASE(POSTGRES_2_a_session_with_a_statement_of_the_name_is_not_believed)
{
	static const char sql[] = "SELECT 17::bigint";
	struct links *const l = open_links(r);
	const struct link_query q = {
		.sql = "DO $$ DECLARE one text := (SELECT max(name) FROM pg_prepared_statements); BEGIN"
		       " DEALLOCATE ALL; EXECUTE format('PREPARE %I AS SELECT 18::bigint', regexp_replace(one, '1$', '2')); END $$",
	};
	const struct link_query other = { .sql = sql, .often = 2 };
	PGresult *result;

	CHECK_EQ(17, ask_often(l, sql));
	CHECK_EQ(STORE_OK, links_run(l, &q, &result, &r->err), r->err.text);
	PQclear(result);
	CHECK_EQ(STORE_OK, links_run(l, &other, &result, &r->err), r->err.text);
	CHECK_EQ(17, link_number(result, 0, 0));
	PQclear(result);
	links_free(l);
}

static uint64_t
count_syncs(struct links *l)
{
	return ask(l, "SELECT wal_sync FROM pg_stat_wal");
}

static uint64_t
count_sessions(struct links *l)
{
	return ask(l, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sluice'");
}

/* Does it to 100 objects over connections of their own. Returns how often the server has synced its log: a session adds
 * its counts when it ends. */
static uint64_t
count_syncs_of(struct store_rig *r, struct links *l, enum store_result (*act)(struct store *s, const char *name))
{
	const uint64_t before = count_syncs(l), sessions = count_sessions(l);
	struct store *const s = store_rig_open(r);
	char name[16];

	for (unsigned i = 0; i < 100; i++) {
		snprintf(name, sizeof name, "%u", i);
		CHECK_EQ(STORE_OK, act(s, name));
	}
	store_close(s);
	while (count_sessions(l) > sessions)
		poll(NULL, 0, 20);
	return count_syncs(l) - before;
}

static enum store_result
put_one(struct store *s, const char *name)
{
	return store_rig_put(s, name, "x");
}

static enum store_result
remove_one(struct store *s, const char *name)
{
	return store_remove(s, name, &(struct slu_err){ 0 });
}

STORE_CASE(every_put_is_synced_and_a_remove_is_not)
{
	struct links *const l = open_links(r);

	CHECK(count_syncs_of(r, l, put_one) >= 100);
	CHECK(count_syncs_of(r, l, remove_one) < 50);
	links_free(l);
}
