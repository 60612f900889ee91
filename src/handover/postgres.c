/*
 * postgres.c - rows of the table sluice.inbox, which sluice.push() adds in the transactions of an application.
 *
 *      sluice.inbox        the items
 *      sluice.inbox_batch  marked items: a row for each batch on its way, with shard, number and the ids of its items
 *      sluice.inbox_state  one row: uuid of the place, last number, the inbox at work and when it was last seen
 *      sluice.inbox_sleep  one row: whether push has to notify. A row of its own: push reads it
 *      sluice.refused      refused items and why
 *
 * Every statement is a transaction. mark checks the holder in inbox_state, and a new holder updates the same row:
 * an inbox that was replaced marks nothing. An inbox that has not been seen for three seconds is replaced. The items of a batch
 * stay as they are until they are removed: to mark a thousand of them is to write one row.
 */
#include "handover/handover.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/postgres/link.h"

#include <inttypes.h>
#include <stdio.h>

#define SEEN (1 * SLU_SEC) /* between two beats */
#define POLL (1 * SLU_SEC) /* between two looks while the inbox sleeps */
#define DEAF (3 * SLU_SEC) /* without a notice after so long, the log says that none comes */

#define SETTLE (100 * SLU_MS) /* between two looks for the end of the settled ids */
#define WHOLE  (1 * SLU_SEC)  /* between two looks at all ids */

/* The statements that are run often: link_query.often. */
enum often {
	OFTEN_LOOK = 1,
	OFTEN_MARK,
	OFTEN_SETTLE,
	OFTEN_END
};

_Static_assert((int)OFTEN_END <= (int)LINK_OFTEN, "LINK_OFTEN");

struct handover_place {
	struct links *links;
	char *url;
	struct slu_log *log;
	PGconn *listener; /* NULL: not connected */
	slu_time listen;  /* not before */
	slu_time asked;   /* when the listener was sent a notice of its own */
	bool hears;       /* the listener has got a notice: the inbox may sleep */
	bool logged;      /* a log line has said that no notices come */
	char holder[HANDOVER_UUID];
	slu_time seen;
	enum {
		SLEEP_UNKNOWN,
		SLEEP_NO,
		SLEEP_YES
	} asleep;  /* push notifies */
	bool full; /* the last look has found as many rows as it may */

	/* The index has entries of rows that are gone until a VACUUM, so a look begins behind the settled ids: no row of these is in the
	 * table or can still come. An id that was found is settled when all transactions that ran then have ended, and no row up to it
	 * is left. A transaction draws its id, and has its number an instant later: looks at all ids would find such a row, too. */
	uint64_t settled;
	uint64_t found;     /* highest id that a look has found */
	uint64_t next_id;   /* settled next ... */
	uint64_t next_xmax; /* ... when the transactions below this number have ended; 0 = none is chosen */
	slu_time chosen;
	slu_time whole; /* of the last look at all ids */
};

/* ---- Statements ---- */

static int
run(struct handover_place *p, struct link_query *q, PGresult **out, struct slu_err *err)
{
	struct slu_err why = { 0 };
	const enum store_result r = links_run(p->links, q, out, &why);

	if (r == STORE_OK)
		return 0;
	if (why.code == SLU_ENOTFOUND)
		return slu_fail(err, SLU_ENOTFOUND, "%s; run: sluice inbox init --print-sql | psql URL", why.text);
	return slu_fail(err, why.code, "database: %s", why.text);
}

/* A statement without rows. */
static int
run_only(struct handover_place *p, struct link_query *q, struct slu_err *err)
{
	PGresult *r;
	const int rc = run(p, q, &r, err);

	PQclear(r);
	return rc;
}

/* A copy with a NUL; NULL if the value is NULL or memory is out (*failed). */
static char *
copy(const PGresult *r, int row, int column, bool *failed)
{
	const size_t n = (size_t)PQgetlength(r, row, column);
	char *p;

	if (PQgetisnull(r, row, column))
		return NULL;
	p = mem_alloc(n + 1);
	*failed |= !p;
	if (p) {
		memcpy(p, PQgetvalue(r, row, column), n);
		p[n] = '\0';
	}
	return p;
}

/* Columns: id, namespace, queue, payload, options and, of marked items, shard and batch. */
static int
read_items(const PGresult *r, bool marked, struct handover_items *out, struct slu_err *err)
{
	bool failed = false;

	for (int i = 0; i < PQntuples(r) && !failed; i++) {
		struct handover_item *const item = handover_items_add(out);

		failed = !item;
		if (failed)
			break;
		item->id = link_number(r, i, 0);
		item->space = copy(r, i, 1, &failed);
		item->queue = copy(r, i, 2, &failed);
		item->payload = copy(r, i, 3, &failed);
		item->size = (size_t)PQgetlength(r, i, 3);
		item->options = copy(r, i, 4, &failed);
		item->shard = marked ? copy(r, i, 5, &failed) : NULL;
		item->batch = marked ? link_number(r, i, 6) : 0;
	}
	return failed ? slu_fail(err, SLU_ENOMEM, "no memory for messages") : 0;
}

/* ---- The inbox at work ---- */

static int
hold(struct handover_place *p, char source[static HANDOVER_UUID], struct slu_err *err)
{
	struct link_query q = {
		.sql = "UPDATE sluice.inbox_state SET holder = $1::uuid, seen = clock_timestamp()"
		       " WHERE (holder IS NULL OR holder = $1::uuid OR seen < clock_timestamp() - interval '3 seconds')"
		       " AND " LINK_ON_DISK " RETURNING source::text",
	};
	PGresult *r;
	int rc;

	link_add(&q, p->holder);
	rc = run(p, &q, &r, err);
	if (rc)
		return rc;
	if (PQntuples(r) == 0)
		rc = slu_fail(err, SLU_EBUSY, "another inbox is at work on this database");
	else
		(void)snprintf(source, HANDOVER_UUID, "%.*s", PQgetlength(r, 0, 0), PQgetvalue(r, 0, 0));
	PQclear(r);
	p->seen = clock_mono(&clock_system);
	return rc;
}

/* An inbox was killed after it had refused all items of a batch. */
static int
forget_empty_batches(struct handover_place *p, struct slu_err *err)
{
	struct link_query q = {
		.sql = "DELETE FROM sluice.inbox_batch AS b WHERE NOT EXISTS (SELECT 1 FROM sluice.inbox AS i WHERE i.id = ANY (b.ids))",
	};

	return run_only(p, &q, err);
}

static int
begin(struct handover_place *p, char source[static HANDOVER_UUID], struct handover_items *marked, struct slu_err *err)
{
	struct link_query q = {
		.sql = "SELECT i.id, i.namespace, i.queue, i.payload, i.options::text, b.shard, b.batch"
		       " FROM sluice.inbox_batch AS b, unnest(b.ids) AS marked, sluice.inbox AS i WHERE i.id = marked ORDER BY b.batch, i.id",
	};
	PGresult *r = NULL;
	int rc = hold(p, source, err);

	p->asleep = SLEEP_UNKNOWN;
	p->settled = p->found = p->next_xmax = 0;
	if (!rc)
		rc = forget_empty_batches(p, err);
	if (!rc)
		rc = run(p, &q, &r, err);
	if (!rc)
		rc = read_items(r, true, marked, err);
	PQclear(r);
	return rc;
}

/* Shows others that this inbox is at work. */
static int
beat(struct handover_place *p, struct slu_err *err)
{
	char source[HANDOVER_UUID];

	return clock_mono(&clock_system) - p->seen < SEEN ? 0 : hold(p, source, err);
}

/* ---- Sleep ---- */

static int
set_asleep(struct handover_place *p, bool asleep, struct slu_err *err)
{
	struct link_query q = { .sql = asleep ? "UPDATE sluice.inbox_sleep SET asleep = true WHERE NOT asleep"
					      : "UPDATE sluice.inbox_sleep SET asleep = false WHERE asleep" };
	const int rc = run_only(p, &q, err);

	if (!rc)
		p->asleep = asleep ? SLEEP_YES : SLEEP_NO;
	return rc;
}

static void
stop_listening(struct handover_place *p)
{
	PQfinish(p->listener); /* NULL is fine */
	p->listener = NULL;
	p->hears = false;
}

/* Sends a notice to the listener, over another connection. Behind a pool of transactions it does not arrive. */
static void
ask_listener(struct handover_place *p)
{
	struct link_query q = { .sql = "NOTIFY sluice_inbox" };
	struct slu_err err = { 0 };

	p->asked = clock_mono(&clock_system);
	if (run_only(p, &q, &err))
		stop_listening(p); /* the next call tries again */
}

/* Without a connection that listens, the inbox looks every second. */
static void
start_listening(struct handover_place *p)
{
	const slu_time now = clock_mono(&clock_system);
	struct slu_err err = { 0 };
	PGresult *r;

	if (p->listener || now < p->listen)
		return;
	p->listen = now + 10 * SLU_SEC;
	p->listener = link_connect(p->url, now + 5 * SLU_SEC, &err);
	if (!p->listener)
		return;
	r = PQexec(p->listener, "LISTEN sluice_inbox");
	if (PQresultStatus(r) != PGRES_COMMAND_OK)
		stop_listening(p);
	else
		ask_listener(p);
	PQclear(r);
}

/* Says once that the inbox polls. */
static void
note_deaf(struct handover_place *p)
{
	if (p->logged || !p->listener || p->hears || clock_mono(&clock_system) - p->asked < DEAF)
		return;
	p->logged = true;
	log_warn(p->log, "inbox gets no notices, it looks every second",
		 F_STR("why", "the database may be behind pgbouncer, which pools transactions"));
}

static void
take_notices(struct handover_place *p)
{
	PGnotify *n;

	if (!p->listener)
		return;
	if (!PQconsumeInput(p->listener)) {
		stop_listening(p);
		return;
	}
	while ((n = PQnotifies(p->listener)) != NULL) {
		p->hears = true;
		PQfreemem(n);
	}
	note_deaf(p);
}

/* The look after the switch to notices finds what came before it. */
static slu_time
fall_asleep(struct handover_place *p, int *fd)
{
	struct slu_err err = { 0 };

	start_listening(p);
	take_notices(p);
	*fd = p->listener ? PQsocket(p->listener) : -1;
	if (p->hears && p->asleep != SLEEP_YES)
		return set_asleep(p, true, &err) ? POLL : 0;
	return POLL;
}

/* ---- Items ---- */

/* The names have no characters that need quotes in an array. */
static bool
put_names(struct buf *out, const char *const *names, uint32_t n)
{
	buf_putc(out, '{');
	for (uint32_t i = 0; i < n; i++)
		buf_printf(out, "%s\"%s\"", i ? "," : "", names[i]);
	buf_putc(out, '}');
	return !out->failed;
}

/* Also if rows up to the chosen id are left, a later one may be chosen: they hold `settled` up again. */
static void
note_settled(struct handover_place *p, const PGresult *r)
{
	const uint64_t xmin = link_number(r, 0, 0);
	const uint64_t left = PQgetisnull(r, 0, 2) ? UINT64_MAX : link_number(r, 0, 2);

	if (p->next_xmax && xmin >= p->next_xmax)
		p->settled = p->next_id < left ? p->next_id : left - 1;
	if (!p->next_xmax || xmin >= p->next_xmax) {
		p->next_id = p->found;
		p->next_xmax = link_number(r, 0, 1);
	}
}

static int
settle(struct handover_place *p, struct slu_err *err)
{
	struct link_query q = {
		.sql = "SELECT txid_snapshot_xmin(s), txid_snapshot_xmax(s), (SELECT min(id) FROM sluice.inbox WHERE id > $1::bigint)"
		       " FROM txid_current_snapshot() AS s",
		.often = OFTEN_SETTLE,
	};
	const slu_time now = clock_mono(&clock_system);
	char settled[LINK_NUMBER];
	PGresult *r;
	int rc;

	if (now - p->chosen < SETTLE)
		return 0;
	p->chosen = now;
	link_add_number(&q, p->settled, settled);
	rc = run(p, &q, &r, err);
	if (!rc)
		note_settled(p, r);
	PQclear(r);
	return rc;
}

/* The ids up to this one are left out. */
static uint64_t
look_behind(struct handover_place *p)
{
	const slu_time now = clock_mono(&clock_system);

	if (now - p->whole < WHOLE)
		return p->settled;
	p->whole = now;
	return 0;
}

/* A range of ids makes the planner use the index, also if it knows nothing of the table. A look behind many rows is planned anew:
 * the prepared plan may be for a table that was small. */
static int
look(struct handover_place *p, const char *skip, struct handover_items *out, struct slu_err *err)
{
	struct link_query q = {
		.sql = "SELECT id, namespace, queue, payload, options::text FROM ("
		       " SELECT *, sum(octet_length(payload)) OVER (ORDER BY id) - octet_length(payload) AS before FROM ("
		       "  SELECT id, namespace, queue, payload, options FROM sluice.inbox"
		       "  WHERE id > $2::bigint AND id < $3::bigint"
		       "  AND id NOT IN (SELECT unnest(ids) FROM sluice.inbox_batch)"
		       "  AND ($1::text[] = '{}' OR (namespace || '/' || queue) <> ALL ($1::text[])) ORDER BY id LIMIT 1000"
		       " ) AS next) AS sized WHERE before < 4194304 ORDER BY id",
		.often = p->full ? 0 : OFTEN_LOOK,
	};
	char first[LINK_NUMBER], end[LINK_NUMBER];
	PGresult *r;
	int rc;

	link_add(&q, skip);
	link_add_number(&q, look_behind(p), first);
	link_add_number(&q, INT64_MAX, end);
	rc = run(p, &q, &r, err);
	if (!rc)
		rc = read_items(r, false, out, err);
	PQclear(r);
	p->full = out->n == HANDOVER_BATCH;
	if (out->n > 0 && out->p[out->n - 1].id > p->found)
		p->found = out->p[out->n - 1].id;
	return rc;
}

static int
find(struct handover_place *p, const char *const *skip, uint32_t n, struct handover_items *out, struct slu_err *err)
{
	struct buf names;
	int rc = beat(p, err);

	if (!rc)
		rc = settle(p, err);
	if (rc)
		return rc;
	buf_init(&names, 1 << 20);
	rc = put_names(&names, skip, n) ? look(p, buf_str(&names), out, err) : slu_fail(err, SLU_ENOMEM, "out of memory");
	buf_release(&names);
	if (!rc && out->n > 0 && p->asleep != SLEEP_NO)
		rc = set_asleep(p, false, err);
	return rc;
}

/* The ids of the items, as an array. */
static int
put_ids(struct buf *out, const struct handover_items *items, struct slu_err *err)
{
	buf_init(out, 1 << 20);
	buf_putc(out, '{');
	for (uint32_t i = 0; i < items->n; i++)
		buf_printf(out, "%s%" PRIu64, i ? "," : "", items->p[i].id);
	buf_putc(out, '}');
	return out->failed ? slu_fail(err, SLU_ENOMEM, "out of memory") : 0;
}

static int
mark_ids(struct handover_place *p, const char *shard, const char *ids, uint64_t *batch, struct slu_err *err)
{
	struct link_query q = {
		.sql = "WITH next AS (UPDATE sluice.inbox_state SET batch = batch + 1, seen = clock_timestamp()"
		       "  WHERE holder = $3::uuid AND " LINK_ON_DISK " RETURNING batch)"
		       " INSERT INTO sluice.inbox_batch (batch, shard, ids) SELECT batch, $1, $2::bigint[] FROM next RETURNING batch",
		.often = OFTEN_MARK,
	};
	PGresult *r;
	int rc;

	link_add(&q, shard);
	link_add(&q, ids);
	link_add(&q, p->holder);
	rc = run(p, &q, &r, err);
	if (rc)
		return rc;
	if (PQntuples(r) == 0)
		rc = slu_fail(err, SLU_ELEASE, "another inbox has taken the messages");
	else
		*batch = link_number(r, 0, 0);
	PQclear(r);
	return rc;
}

static int
mark(struct handover_place *p, const char *shard, struct handover_items *items, struct slu_err *err)
{
	struct buf ids;
	uint64_t batch = 0;
	int rc = put_ids(&ids, items, err);

	if (!rc)
		rc = mark_ids(p, shard, buf_str(&ids), &batch, err);
	for (uint32_t i = 0; i < items->n; i++)
		items->p[i].batch = batch;
	buf_release(&ids);
	return rc;
}

/* If the database forgets the removal in a crash, the batch is sent again, and the server knows it. */
static int
end(struct handover_place *p, const struct handover_batch *b, struct slu_err *err)
{
	struct link_query q = {
		.sql = "WITH gone AS (DELETE FROM sluice.inbox_batch WHERE batch = $1::bigint AND " LINK_LATER ")"
		       " DELETE FROM sluice.inbox WHERE id = ANY ($2::bigint[]) AND id >= $3::bigint AND id <= $4::bigint",
		.often = OFTEN_END,
	};
	char text[LINK_NUMBER], first[LINK_NUMBER], last[LINK_NUMBER];
	struct buf ids;
	int rc = put_ids(&ids, &b->items, err);

	link_add_number(&q, b->number, text);
	if (!rc) {
		link_add(&q, buf_str(&ids));
		link_add_number(&q, b->items.n ? b->items.p[0].id : 0, first);
		link_add_number(&q, b->items.n ? b->items.p[b->items.n - 1].id : 0, last);
		rc = run_only(p, &q, err);
	}
	buf_release(&ids);
	return rc;
}

static int
release(struct handover_place *p, const struct handover_batch *b, struct slu_err *err)
{
	struct link_query q = { .sql = "DELETE FROM sluice.inbox_batch WHERE batch = $1::bigint AND " LINK_ON_DISK };
	char text[LINK_NUMBER];

	link_add_number(&q, b->number, text);
	return run_only(p, &q, err);
}

static int
refuse(struct handover_place *p, const struct handover_item *item, const char *why, struct slu_err *err)
{
	struct link_query q = {
		.sql = "WITH gone AS (DELETE FROM sluice.inbox WHERE id = $1::bigint AND " LINK_ON_DISK " RETURNING *)"
		       " INSERT INTO sluice.refused (id, namespace, queue, payload, options, why)"
		       " SELECT id, namespace, queue, payload, options, $2 FROM gone",
	};
	char text[LINK_NUMBER];

	link_add_number(&q, item->id, text);
	link_add(&q, why);
	return run_only(p, &q, err);
}

static int
raise_number(struct handover_place *p, uint64_t above, struct slu_err *err)
{
	struct link_query q = { .sql = "UPDATE sluice.inbox_state SET batch = greatest(batch, $1::bigint) WHERE " LINK_ON_DISK };
	char text[LINK_NUMBER];

	link_add_number(&q, above, text);
	return run_only(p, &q, err);
}

/* ---- Opening ---- */

/* Lets another inbox begin at once. */
static void
let_go(struct handover_place *p)
{
	struct link_query q = { .sql = "UPDATE sluice.inbox_state SET holder = NULL WHERE holder = $1::uuid" };
	struct slu_err err = { 0 };

	link_add(&q, p->holder);
	(void)run_only(p, &q, &err); /* otherwise it waits until this one is not seen */
}

static void
close_place(struct handover_place *p)
{
	if (p->links && p->seen)
		let_go(p);
	stop_listening(p);
	links_free(p->links);
	mem_free(p->url);
	mem_free(p);
}

static int
open_place(struct handover_place **out, const struct handover_conf *conf, struct slu_err *err)
{
	struct handover_place *const p = mem_zalloc(sizeof *p);
	int rc = p ? handover_new_uuid(p->holder, err) : slu_fail(err, SLU_ENOMEM, "out of memory");

	if (!p || rc) {
		mem_free(p);
		return rc;
	}
	p->log = conf->log;
	p->url = mem_strdup(conf->url);
	p->links = links_new(conf->url, 0);
	if (p->url && p->links) {
		*out = p;
		return 0;
	}
	close_place(p);
	return slu_fail(err, SLU_ENOMEM, "out of memory");
}

const struct handover_ops handover_postgres = {
	.scheme = "postgres",
	.open = open_place,
	.close = close_place,
	.begin = begin,
	.find = find,
	.mark = mark,
	.end = end,
	.release = release,
	.refuse = refuse,
	.raise = raise_number,
	.sleep = fall_asleep,
};
