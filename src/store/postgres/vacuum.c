#include "store/postgres/vacuum.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/postgres/link.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define CONNECT (5 * SLU_SEC)
#define AGAIN   (10 * SLU_MIN) /* between two log lines of VACUUM-2 */

enum {
	TABLE_MAX = 80,
	SQL_MAX = 640,
	LARGE = 8 * VACUUM_BYTES,
	FEW = 10000 /* dead rows that a busy table may have at any time */
};

struct vacuum {
	const char *url;
	char table[TABLE_MAX];
	struct slu_log *log;
	pthread_t thread;
	pthread_mutex_t mtx;
	pthread_cond_t changed;

	/* shared, under mtx */
	uint64_t bytes; /* since the last VACUUM */
	bool stopping;
	PGconn *conn; /* of the VACUUM that runs; NULL: none runs */

	/* of the thread */
	bool told_rights;
	bool large;          /* VACUUM-3 */
	slu_time tell_again; /* VACUUM-2 */
};

/* ---- What the database says ---- */

/* A VACUUM without the right is a warning, and does nothing. */
static void
on_notice(void *arg, const PGresult *r)
{
	struct vacuum *const v = arg;
	const char *const text = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);

	if (v->told_rights || !text || !strstr(text, "permission denied"))
		return;
	v->told_rights = true;
	log_warn(v->log, "only autovacuum cleans the table of the store", F_STR("table", v->table), F_STR("why", text));
}

static void
tell_old(struct vacuum *v, const PGresult *r)
{
	log_warn(v->log, "removed rows stay in the table of the store: an old transaction or a replication slot may see them",
		 F_STR("table", v->table), F_STR("rows", PQgetvalue(r, 0, 0)), F_STR("bytes", PQgetvalue(r, 0, 1)),
		 F_STR("oldest_transaction", PQgetvalue(r, 0, 2)), F_STR("slots", PQgetvalue(r, 0, 3)));
}

/* VACUUM-2. pg_stat_activity hides the transactions of other users from a role without pg_read_all_stats. */
static void
look(struct vacuum *v, PGconn *c)
{
	char sql[SQL_MAX];
	PGresult *r;

	snprintf(sql, sizeof sql,
		 "SELECT coalesce(sum(n_dead_tup), 0), pg_total_relation_size('%1$s'),"
		 " (SELECT coalesce(max(now() - xact_start)::text, 'unknown') FROM pg_stat_activity WHERE pid <> pg_backend_pid()),"
		 " (SELECT count(*) FROM pg_replication_slots WHERE xmin IS NOT NULL OR catalog_xmin IS NOT NULL)"
		 " FROM pg_stat_all_tables WHERE relid IN ('%1$s'::regclass,"
		 " (SELECT reltoastrelid FROM pg_class WHERE oid = '%1$s'::regclass))",
		 v->table);
	r = PQexec(c, sql);
	v->large = PQresultStatus(r) == PGRES_TUPLES_OK && strtoull(PQgetvalue(r, 0, 1), NULL, 10) > LARGE;
	if (PQresultStatus(r) == PGRES_TUPLES_OK && strtoull(PQgetvalue(r, 0, 0), NULL, 10) > FEW &&
	    clock_mono(&clock_system) >= v->tell_again) {
		v->tell_again = clock_mono(&clock_system) + AGAIN;
		tell_old(v, r);
	}
	PQclear(r);
}

static bool
vacuum_table(const struct vacuum *v, PGconn *c)
{
	char sql[SQL_MAX];
	PGresult *r;
	bool ok;

	snprintf(sql, sizeof sql, "VACUUM (SKIP_LOCKED, TRUNCATE %s) %s", v->large ? "TRUE" : "FALSE", v->table);
	r = PQexec(c, sql);
	ok = PQresultStatus(r) == PGRES_COMMAND_OK;
	PQclear(r);
	return ok;
}

/* ---- The thread ---- */

/* Returns NULL if the vacuum stops. */
static PGconn *
begin(struct vacuum *v)
{
	struct slu_err err = { 0 };
	PGconn *const c = link_connect(v->url, clock_mono(&clock_system) + CONNECT, &err);
	bool stopping;

	if (!c)
		return NULL;
	PQsetNoticeReceiver(c, on_notice, v);
	pthread_mutex_lock(&v->mtx);
	stopping = v->stopping;
	v->conn = stopping ? NULL : c;
	pthread_mutex_unlock(&v->mtx);
	if (!stopping)
		return c;
	PQfinish(c);
	return NULL;
}

static void
end(struct vacuum *v, PGconn *c)
{
	pthread_mutex_lock(&v->mtx);
	v->conn = NULL;
	pthread_mutex_unlock(&v->mtx);
	PQfinish(c);
}

/* A database that is away is vacuumed after the next bytes. */
static void
work(struct vacuum *v)
{
	PGconn *const c = begin(v);

	if (!c)
		return;
	if (vacuum_table(v, c))
		look(v, c);
	end(v, c);
}

static void *
run(void *arg)
{
	struct vacuum *const v = arg;

	pthread_mutex_lock(&v->mtx);
	while (!v->stopping) {
		if (v->bytes < VACUUM_BYTES) {
			pthread_cond_wait(&v->changed, &v->mtx);
			continue;
		}
		v->bytes = 0;
		pthread_mutex_unlock(&v->mtx);
		work(v);
		pthread_mutex_lock(&v->mtx);
	}
	pthread_mutex_unlock(&v->mtx);
	return NULL;
}

/* ---- Any thread ---- */

int
vacuum_open(struct vacuum **out, const char *url, const char *table, struct slu_log *log, struct slu_err *err)
{
	struct vacuum *const v = mem_zalloc(sizeof *v);

	if (!v)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	v->url = url;
	v->log = log;
	snprintf(v->table, sizeof v->table, "%s", table);
	pthread_mutex_init(&v->mtx, NULL);    /* cannot fail with these attributes */
	pthread_cond_init(&v->changed, NULL); /* nor this */
	if (!pthread_create(&v->thread, NULL, run, v)) {
		*out = v;
		return 0;
	}
	mem_free(v);
	return slu_fail(err, SLU_EDOWN, "cannot start a thread");
}

void
vacuum_wrote(struct vacuum *v, size_t bytes)
{
	pthread_mutex_lock(&v->mtx);
	v->bytes += bytes;
	if (v->bytes >= VACUUM_BYTES)
		pthread_cond_signal(&v->changed);
	pthread_mutex_unlock(&v->mtx);
}

/* The connection stays while the mutex is held. */
static void
cancel(struct vacuum *v)
{
	PGcancel *const c = v->conn ? PQgetCancel(v->conn) : NULL;
	char text[256];

	if (c)
		(void)PQcancel(c, text, sizeof text); /* otherwise the VACUUM runs to its end */
	PQfreeCancel(c);
}

void
vacuum_close(struct vacuum *v)
{
	if (!v)
		return;
	pthread_mutex_lock(&v->mtx);
	v->stopping = true;
	pthread_cond_signal(&v->changed);
	cancel(v);
	pthread_mutex_unlock(&v->mtx);
	pthread_join(v->thread, NULL);
	pthread_cond_destroy(&v->changed);
	pthread_mutex_destroy(&v->mtx);
	mem_free(v);
}
