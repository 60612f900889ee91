#include "store/postgres/link.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

enum {
	IDLE_MAX = 32, /* connections that are kept */
	TEXT_SHOWN = 150,
	STATEMENT_NAME = 40
};

#define TIMEOUT (10 * SLU_SEC)

struct link_session {
	PGconn *conn;
	uint16_t uses[LINK_OFTEN + 1]; /* of each prepared statement; 0: it is not prepared */
};

struct links {
	char *url;
	slu_time timeout;
	uint64_t name;      /* random, of the prepared statements: no other program prepares one of this name */
	atomic_bool pooled; /* POSTGRES-2 */
	pthread_mutex_t mtx;
	struct link_session idle[IDLE_MAX];
	unsigned n_idle;
};

/* ---- Parameters and results ---- */

void
link_add(struct link_query *q, const char *value)
{
	q->params[q->n++].value = slice_of(value);
}

void
link_add_number(struct link_query *q, uint64_t n, char text[static LINK_NUMBER])
{
	snprintf(text, LINK_NUMBER, "%" PRIu64, n);
	link_add(q, text);
}

uint64_t
link_number(const PGresult *r, int row, int column)
{
	const unsigned char *const p = (const unsigned char *)PQgetvalue(r, row, column);
	uint64_t n = 0;

	for (int i = 0; i < PQgetlength(r, row, column); i++)
		n = n << 8 | p[i];
	return n;
}

/* ---- Errors ---- */

/* What the class of an SQLSTATE means, or all of one; the first row that fits counts. */
static const struct meaning {
	const char *state;
	enum store_result result;
	enum slu_code code;
	bool closes; /* another server may do better */
} meanings[] = {
	{ "25006", STORE_FAILED, SLU_EDOWN, true },        /* a standby */
	{ "28", STORE_REFUSED, SLU_EFORBIDDEN, false },    /* authentication */
	{ "42501", STORE_REFUSED, SLU_EFORBIDDEN, false }, /* a missing right */
	{ "3D000", STORE_REFUSED, SLU_ENOTFOUND, false },  /* no database */
	{ "3F000", STORE_REFUSED, SLU_ENOTFOUND, false },  /* no schema */
	{ "42P01", STORE_REFUSED, SLU_ENOTFOUND, false },  /* no table */
	{ "42", STORE_REFUSED, SLU_EINVAL, false },
	{ "53100", STORE_FAILED, SLU_EFULL, false },
	{ "57", STORE_FAILED, SLU_EDOWN, true }, /* it stops */
	{ "", STORE_FAILED, SLU_EDOWN, false },
};

/* The first line of a text of libpq, without "ERROR:  ". */
static struct slice
first_line(const char *text)
{
	struct slice line = { text, strcspn(text, "\n") };
	static const char *const words[] = { "ERROR:  ", "FATAL:  " };

	for (size_t i = 0; i < COUNT(words); i++)
		if (line.n > strlen(words[i]) && memcmp(line.p, words[i], strlen(words[i])) == 0)
			slice_skip(&line, strlen(words[i]));
	line.n = line.n < TEXT_SHOWN ? line.n : TEXT_SHOWN;
	return line;
}

static enum store_result
fail_text(const char *text, enum slu_code code, struct slu_err *err)
{
	const struct slice line = first_line(text);

	slu_fail(err, code, "%.*s", (int)line.n, line.p);
	return STORE_FAILED;
}

static enum store_result
fail_result(const PGresult *r, bool *closes, struct slu_err *err)
{
	const char *const state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
	const struct meaning *m = meanings;

	while (strncmp(m->state, state ? state : "", strlen(m->state)) != 0)
		m++;
	*closes = m->closes;
	fail_text(PQresultErrorMessage(r), m->code, err);
	return m->result;
}

/* ---- Waiting ---- */

/* Waits until the socket is ready for `events`. Returns false at `until`. */
static bool
await(PGconn *c, short events, slu_time until)
{
	struct pollfd p = { .fd = PQsocket(c), .events = events };
	const slu_time left = until - clock_mono(&clock_system);

	return left > 0 && poll(&p, 1, (int)(left / SLU_MS) + 1) > 0;
}

static bool
finish_connect(PGconn *c, slu_time until)
{
	PostgresPollingStatusType state = PGRES_POLLING_WRITING;

	while (state != PGRES_POLLING_OK && state != PGRES_POLLING_FAILED) {
		if (!await(c, state == PGRES_POLLING_READING ? POLLIN : POLLOUT, until))
			return false;
		state = PQconnectPoll(c);
	}
	return true;
}

/* Until all statements are sent: the server may want its answers read meanwhile. */
static bool
flush(PGconn *c, slu_time until)
{
	int left;

	while ((left = PQflush(c)) > 0)
		if (!await(c, POLLIN | POLLOUT, until) || !PQconsumeInput(c))
			return false;
	return left == 0;
}

/* The next result of a statement; NULL: it has no more, or the connection failed. */
static PGresult *
next_result(PGconn *c, slu_time until, bool *late)
{
	while (PQisBusy(c)) {
		if (!await(c, POLLIN, until)) {
			*late = true;
			return NULL;
		}
		if (!PQconsumeInput(c))
			return NULL;
	}
	return PQgetResult(c);
}

/* ---- Connections ---- */

struct links *
links_new(const char *url, slu_time timeout)
{
	struct links *const l = mem_zalloc(sizeof *l);

	if (!l)
		return NULL;
	pthread_mutex_init(&l->mtx, NULL);
	l->pooled = hash_random(&l->name, sizeof l->name, NULL) != 0;
	l->timeout = timeout ? timeout : TIMEOUT;
	l->url = mem_strdup(url);
	if (l->url)
		return l;
	links_free(l);
	return NULL;
}

void
links_free(struct links *l)
{
	if (!l)
		return;
	for (unsigned i = 0; i < l->n_idle; i++)
		PQfinish(l->idle[i].conn);
	pthread_mutex_destroy(&l->mtx);
	mem_free(l->url);
	mem_free(l);
}

/* Notices of the server, such as that it stops, also come as errors. */
static void
drop_notice(void *arg, const char *text)
{
	(void)arg;
	(void)text;
}

/* The parameters before the URL are defaults; those behind it win. */
PGconn *
link_connect(const char *url, slu_time until, struct slu_err *err)
{
	const char *const names[] = { "target_session_attrs", "application_name", "dbname", "client_encoding", NULL };
	const char *const values[] = { "read-write", "sluice", url, "UTF8", NULL };
	PGconn *const c = PQconnectStartParams(names, values, 1);
	bool done;

	if (!c) {
		slu_fail(err, SLU_ENOMEM, "out of memory");
		return NULL;
	}
	PQsetNoticeProcessor(c, drop_notice, NULL);
	done = PQstatus(c) == CONNECTION_BAD || finish_connect(c, until);
	if (done && PQstatus(c) == CONNECTION_OK)
		return c;
	if (done)
		fail_text(PQerrorMessage(c), SLU_EDOWN, err);
	else
		slu_fail(err, SLU_ETIMEOUT, "the server does not answer");
	PQfinish(c);
	return NULL;
}

static PGconn *
connect_to(const struct links *l, slu_time until, struct slu_err *err)
{
	PGconn *const c = link_connect(l->url, until, err);

	if (!c || (PQsetnonblocking(c, 1) == 0 && PQenterPipelineMode(c)))
		return c;
	fail_text(PQerrorMessage(c), SLU_EDOWN, err);
	PQfinish(c);
	return NULL;
}

static struct link_session
take(struct links *l, slu_time until, struct slu_err *err)
{
	struct link_session c = { 0 };

	pthread_mutex_lock(&l->mtx);
	if (l->n_idle > 0)
		c = l->idle[--l->n_idle];
	pthread_mutex_unlock(&l->mtx);
	if (!c.conn)
		c.conn = connect_to(l, until, err);
	return c;
}

/* If a connection failed, the idle ones to the same server did, too. */
static void
close_idle(struct links *l)
{
	struct link_session old[IDLE_MAX];
	unsigned n;

	pthread_mutex_lock(&l->mtx);
	n = l->n_idle;
	memcpy(old, l->idle, n * sizeof old[0]);
	l->n_idle = 0;
	pthread_mutex_unlock(&l->mtx);
	for (unsigned i = 0; i < n; i++)
		PQfinish(old[i].conn);
}

static void
give_back(struct links *l, struct link_session c, bool usable)
{
	pthread_mutex_lock(&l->mtx);
	if (usable && l->n_idle < IDLE_MAX) {
		l->idle[l->n_idle++] = c;
		c.conn = NULL;
	}
	pthread_mutex_unlock(&l->mtx);
	PQfinish(c.conn); /* NULL is fine */
	if (!usable)
		close_idle(l);
}

/* ---- Statements ---- */

struct link_values {
	const char *p[LINK_PARAMS];
	int sizes[LINK_PARAMS], formats[LINK_PARAMS];
};

static void
set_values(const struct link_query *q, struct link_values *v)
{
	for (unsigned i = 0; i < q->n; i++) {
		v->p[i] = q->params[i].value.n ? q->params[i].value.p : "";
		v->sizes[i] = (int)q->params[i].value.n;
		v->formats[i] = q->params[i].bytes;
	}
}

static bool
send_whole(struct link_session *c, const struct link_query *q)
{
	struct link_values v;

	set_values(q, &v);
	return PQsendQueryParams(c->conn, q->sql, (int)q->n, NULL, v.p, v.sizes, v.formats, 1);
}

/* POSTGRES-2. *before: how many statements prepare this one. */
static bool
send_prepared(const struct links *l, struct link_session *c, const struct link_query *q, unsigned *before)
{
	const unsigned uses = c->uses[q->often];
	char name[STATEMENT_NAME], drop[STATEMENT_NAME + 16];
	struct link_values v;

	snprintf(name, sizeof name, "sluice_%016" PRIx64 "_%u", l->name, q->often);
	snprintf(drop, sizeof drop, "DEALLOCATE %s", name);
	if (uses == LINK_ANEW && (++*before, !PQsendQueryParams(c->conn, drop, 0, NULL, NULL, NULL, NULL, 0)))
		return false;
	if ((uses == LINK_ANEW || uses == 0) && (++*before, !PQsendPrepare(c->conn, name, q->sql, (int)q->n, NULL)))
		return false;
	set_values(q, &v);
	return PQsendQueryPrepared(c->conn, name, (int)q->n, v.p, v.sizes, v.formats, 1);
}

struct outcome {
	bool prepared;    /* the query was sent by its name */
	unsigned before;  /* statements before the query whose results have not come */
	PGresult *result; /* of the query */
	PGresult *failed; /* the first one with an error */
	bool synced;      /* all results came, and the transaction is over */
	bool late;
};

/* An error may also come behind the result: the commit failed. */
static void
sort_result(struct outcome *o, PGresult *r)
{
	const ExecStatusType status = PQresultStatus(r);

	if (status == PGRES_PIPELINE_SYNC) {
		o->synced = true;
	} else if (status == PGRES_FATAL_ERROR && !o->failed) {
		o->failed = r;
		return;
	} else if (status == PGRES_COMMAND_OK && o->before > 0) {
		o->before--;
	} else if ((status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) && !o->result) {
		o->result = r;
		return;
	}
	PQclear(r);
}

/* A NULL ends the results of a statement; the sync ends all of them. */
static void
collect(PGconn *c, slu_time until, struct outcome *o)
{
	unsigned nulls = 0;

	while (!o->synced && !o->late && nulls < 2 && PQstatus(c) == CONNECTION_OK) {
		PGresult *const r = next_result(c, until, &o->late);

		nulls = r ? 0 : nulls + 1;
		if (r)
			sort_result(o, r);
	}
}

static enum store_result
judge(PGconn *c, struct outcome *o, bool *usable, struct slu_err *err)
{
	bool closes = false;
	enum store_result r = STORE_OK;

	if (o->failed)
		r = fail_result(o->failed, &closes, err);
	else if (o->late)
		r = fail_text("the server does not answer", SLU_ETIMEOUT, err);
	else if (!o->synced || !o->result)
		r = fail_text(PQerrorMessage(c), SLU_EDOWN, err);
	*usable = o->synced && !closes;
	return r;
}

static struct outcome
run_once(const struct links *l, struct link_session *c, const struct link_query *q, slu_time until)
{
	struct outcome o = { .prepared = q->often && !atomic_load(&l->pooled) };
	const bool sent = o.prepared ? send_prepared(l, c, q, &o.before) : send_whole(c, q);

	if (sent && PQpipelineSync(c->conn) && flush(c->conn, until))
		collect(c->conn, until, &o);
	if (o.prepared)
		c->uses[q->often] = o.before > 0 ? 0 : c->uses[q->often] % LINK_ANEW + 1;
	return o;
}

/* POSTGRES-2: the session has no prepared statement of this name, or has one already. */
static bool
met_other_session(const struct outcome *o)
{
	const char *const state = o->prepared && o->failed && o->synced ? PQresultErrorField(o->failed, PG_DIAG_SQLSTATE) : NULL;

	return state && (strcmp(state, "26000") == 0 || strcmp(state, "42P05") == 0);
}

static void
clear(struct outcome *o)
{
	PQclear(o->failed);
	PQclear(o->result);
	*o = (struct outcome){ 0 };
}

enum store_result
links_run(struct links *l, const struct link_query *q, PGresult **out, struct slu_err *err)
{
	const slu_time until = time_add(clock_mono(&clock_system), l->timeout);
	struct link_session c = take(l, until, err);
	struct outcome o;
	bool usable = false;
	enum store_result r;

	*out = NULL;
	if (!c.conn)
		return STORE_FAILED;
	o = run_once(l, &c, q, until);
	if (met_other_session(&o)) {
		atomic_store(&l->pooled, true);
		clear(&o);
		o = run_once(l, &c, q, until);
	}
	r = judge(c.conn, &o, &usable, err);
	if (r == STORE_OK) {
		*out = o.result;
		o.result = NULL;
	}
	clear(&o);
	give_back(l, c, usable);
	return r;
}

enum store_result
links_script(struct links *l, const char *sql, struct slu_err *err)
{
	PGconn *const c = link_connect(l->url, time_add(clock_mono(&clock_system), l->timeout), err);
	enum store_result r = STORE_OK;
	bool closes;
	PGresult *result;

	if (!c)
		return STORE_FAILED;
	result = PQexec(c, sql);
	if (PQresultStatus(result) == PGRES_FATAL_ERROR)
		r = fail_result(result, &closes, err);
	PQclear(result);
	PQfinish(c);
	return r;
}
