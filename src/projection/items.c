#include "projection/items.h"

#include "base/mem.h"
#include "store/postgres/link.h"

#include <assert.h>

#define TIMEOUT (5 * SLU_SEC) /* of a call: a stop of the server waits for it */

/* ---- Statements ---- */

static const char claim_sql[] =
	"INSERT INTO sluice.projection AS p (shard, epoch, position) SELECT $1::text, greatest($2::bigint, 1), 0 WHERE " LINK_ON_DISK
	" ON CONFLICT (shard) DO UPDATE SET updated_at = now(),"
	"  epoch = CASE WHEN $2::bigint = 0 THEN p.epoch + 1 ELSE $2::bigint END,"
	"  position = CASE WHEN p.epoch = $2::bigint THEN p.position ELSE 0 END"
	" WHERE $2::bigint = 0 OR p.epoch <= $2::bigint"
	" RETURNING epoch, position, wanted";

static const char look_sql[] =
	"SELECT wanted FROM sluice.projection WHERE shard = $1::text AND epoch = $2::bigint";

#define PAGE_SQL(table) \
	"SELECT id FROM sluice." table " WHERE shard = $1::text AND id > $2::bigint ORDER BY id LIMIT $3::bigint"

/* The parameters: shard, epoch, position, then the columns in the order of enum items_column. The update of
 * `fence` waits for another writer's transaction and then checks the epoch again: without its row nothing
 * happens (ITEMS-1). A row that did not change is not written. */
#define CHANGED                                                                                   \
	" ON CONFLICT (id) DO UPDATE SET namespace = excluded.namespace, topic = excluded.topic," \
	"  status = excluded.status, priority = excluded.priority, payload = excluded.payload,"   \
	"  deliver_after = excluded.deliver_after, lease_expires_at = excluded.lease_expires_at," \
	"  created_at = excluded.created_at, shard = excluded.shard"
#define DIFFERS(extra_old, extra_new)                                                                            \
	" WHERE (t.shard, t.namespace, t.topic, t.status, t.priority, t.payload, t.deliver_after,"               \
	"  t.lease_expires_at, t.created_at" extra_old ") IS DISTINCT FROM (excluded.shard, excluded.namespace," \
	"  excluded.topic, excluded.status, excluded.priority, excluded.payload, excluded.deliver_after,"        \
	"  excluded.lease_expires_at, excluded.created_at" extra_new ")"
#define NINE "id, namespace, topic, status, priority, payload, deliver_after, lease_expires_at, created_at"

static const char write_sql[] =
	"WITH fence AS (UPDATE sluice.projection SET position = $3::bigint, updated_at = now()"
	"  WHERE shard = $1::text AND epoch = $2::bigint AND position < $3::bigint AND " LINK_ON_DISK " RETURNING wanted),"
	" new AS (SELECT u.* FROM fence, unnest($6::bigint[], $7::text[], $8::text[], $9::text[], $10::integer[],"
	"  $11::bytea[], $12::timestamptz[], $13::timestamptz[], $14::timestamptz[], $15::text[], $16::text[],"
	"  $17::timestamptz[]) AS u(" NINE ", reason, error, died_at)),"
	" not_live AS (DELETE FROM sluice.items t USING fence WHERE t.id = ANY($4::bigint[]) AND t.shard = $1::text),"
	" not_dead AS (DELETE FROM sluice.dead_letters t USING fence"
	"  WHERE t.id = ANY($5::bigint[]) AND t.shard = $1::text),"
	" live AS (INSERT INTO sluice.items AS t (" NINE ", shard) SELECT " NINE ", $1::text FROM new WHERE reason IS NULL" CHANGED DIFFERS("", "") "),"
																		    " dead AS (INSERT INTO sluice.dead_letters AS t (" NINE ", shard, reason, error, died_at)"
																		    "  SELECT " NINE ", $1::text, reason, error, died_at FROM new WHERE reason IS NOT NULL" CHANGED ", reason = excluded.reason, error = excluded.error, died_at = excluded.died_at" DIFFERS(", t.reason, t.error, t.died_at", ", excluded.reason, excluded.error, excluded.died_at") ")"
																																																				      " SELECT wanted FROM fence";

struct items {
	struct links *links;
};

struct items *
items_new(const char *url)
{
	struct items *const t = mem_zalloc(sizeof *t);

	if (!t)
		return NULL;
	t->links = links_new(url, TIMEOUT);
	if (t->links)
		return t;
	mem_free(t);
	return NULL;
}

void
items_free(struct items *t)
{
	if (!t)
		return;
	links_free(t->links);
	mem_free(t);
}

static int
run(struct items *t, const struct link_query *q, PGresult **out, struct slu_err *err)
{
	struct slu_err why = { 0 };

	if (links_run(t->links, q, out, &why) == STORE_OK)
		return 0;
	if (why.code == SLU_ENOTFOUND)
		return slu_fail(err, SLU_ENOTFOUND, "%s; run: sluice admin projection init --print-sql | psql URL", why.text);
	return slu_fail(err, why.code, "database: %s", why.text);
}

/* A statement that answers one row, or none if the shard has another writer. */
static int
run_as_writer(struct items *t, const struct link_query *q, const char *shard, PGresult **out, struct slu_err *err)
{
	const int rc = run(t, q, out, err);

	if (rc || PQntuples(*out) == 1)
		return rc;
	PQclear(*out);
	*out = NULL;
	return slu_fail(err, SLU_EMOVED, "another server writes the projection of shard %s", shard);
}

int
items_claim(struct items *t, const char *shard, uint64_t epoch, struct items_fence *out, struct slu_err *err)
{
	struct link_query q = { .sql = claim_sql };
	char text[LINK_NUMBER];
	PGresult *r;
	int rc;

	link_add(&q, shard);
	link_add_number(&q, epoch, text);
	rc = run_as_writer(t, &q, shard, &r, err);
	if (rc)
		return rc;
	*out = (struct items_fence){
		.shard = shard,
		.epoch = link_number(r, 0, 0),
		.position = link_number(r, 0, 1),
		.wanted = link_number(r, 0, 2),
	};
	PQclear(r);
	return 0;
}

int
items_look(struct items *t, struct items_fence *f, struct slu_err *err)
{
	struct link_query q = { .sql = look_sql };
	char text[LINK_NUMBER];
	PGresult *r;
	int rc;

	link_add(&q, f->shard);
	link_add_number(&q, f->epoch, text);
	rc = run_as_writer(t, &q, f->shard, &r, err);
	if (rc)
		return rc;
	f->wanted = link_number(r, 0, 0);
	PQclear(r);
	return 0;
}

int
items_page(struct items *t, const struct items_fence *f, bool dead, uint64_t after, uint64_t *ids, uint32_t max,
	   uint32_t *n, struct slu_err *err)
{
	struct link_query q = { .sql = dead ? PAGE_SQL("dead_letters") : PAGE_SQL("items") };
	char texts[2][LINK_NUMBER];
	PGresult *r;
	int rc;

	link_add(&q, f->shard);
	link_add_number(&q, after, texts[0]);
	link_add_number(&q, max, texts[1]);
	*n = 0;
	rc = run(t, &q, &r, err);
	if (rc)
		return rc;
	for (; *n < max && *n < (uint32_t)PQntuples(r); ++*n)
		ids[*n] = link_number(r, (int)*n, 0);
	PQclear(r);
	return 0;
}

/* ---- Batches ---- */

/* Identifiers of types in PostgreSQL. */
enum oid {
	OID_BYTEA = 17,
	OID_INT8 = 20,
	OID_INT4 = 23,
	OID_TEXT = 25,
	OID_TIMESTAMPTZ = 1184
};

static const uint16_t types[ITEMS_COLUMNS] = {
	[ITEMS_NOT_LIVE] = OID_INT8,
	[ITEMS_NOT_DEAD] = OID_INT8,
	[ITEMS_ID] = OID_INT8,
	[ITEMS_NAMESPACE] = OID_TEXT,
	[ITEMS_TOPIC] = OID_TEXT,
	[ITEMS_STATUS] = OID_TEXT,
	[ITEMS_PRIORITY] = OID_INT4,
	[ITEMS_PAYLOAD] = OID_BYTEA,
	[ITEMS_DELIVER_AFTER] = OID_TIMESTAMPTZ,
	[ITEMS_LEASE_EXPIRES_AT] = OID_TIMESTAMPTZ,
	[ITEMS_CREATED_AT] = OID_TIMESTAMPTZ,
	[ITEMS_REASON] = OID_TEXT,
	[ITEMS_ERROR] = OID_TEXT,
	[ITEMS_DIED_AT] = OID_TIMESTAMPTZ,
};

#define EPOCH_2000 (946684800ll * 1000000) /* microseconds from 1970 to the first moment of PostgreSQL's time */

enum {
	COLUMN_MAX = 64 << 20, /* bytes */
	HEADER = 20            /* bytes before the elements of an array: dimensions, flag, type, count, first index */
};

static void
put_be(char *out, uint64_t n, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		out[i] = (char)(n >> 8 * (bytes - 1 - i));
}

static void
put_header(char out[static HEADER], enum oid type, uint32_t n)
{
	put_be(out, 1, 4);
	put_be(out + 4, 1, 4); /* there may be NULLs */
	put_be(out + 8, type, 4);
	put_be(out + 12, n, 4);
	put_be(out + 16, 1, 4);
}

/* p NULL: the element is NULL. */
static void
put_bytes(struct items_batch *b, enum items_column column, const void *p, size_t n)
{
	struct buf *const out = &b->columns[column];
	char size[4];

	if (b->counts[column]++ == 0)
		buf_put(out, (char[HEADER]){ 0 }, HEADER);
	put_be(size, p ? n : UINT32_MAX, 4);
	buf_put(out, size, 4);
	if (p)
		buf_put(out, p, n);
}

static void
put_number(struct items_batch *b, enum items_column column, uint64_t n)
{
	const unsigned bytes = types[column] == OID_INT4 ? 4 : 8;
	char text[8];

	put_be(text, n, bytes);
	put_bytes(b, column, text, bytes);
}

/* t 0: NULL. */
static void
put_time(struct items_batch *b, enum items_column column, slu_time t)
{
	if (t)
		put_number(b, column, (uint64_t)(t / SLU_US - EPOCH_2000));
	else
		put_bytes(b, column, NULL, 0);
}

static void
put_text(struct items_batch *b, enum items_column column, struct slice s)
{
	put_bytes(b, column, s.n ? s.p : NULL, s.n);
}

void
items_batch_put(struct items_batch *b, const struct items_row *row)
{
	put_number(b, row->reason ? ITEMS_NOT_LIVE : ITEMS_NOT_DEAD, row->id);
	put_number(b, ITEMS_ID, row->id);
	put_text(b, ITEMS_NAMESPACE, row->space);
	put_text(b, ITEMS_TOPIC, row->queue);
	put_text(b, ITEMS_STATUS, slice_of(row->status));
	put_number(b, ITEMS_PRIORITY, (uint32_t)row->prio);
	put_bytes(b, ITEMS_PAYLOAD, row->has_payload ? row->payload.n ? row->payload.p : "" : NULL, row->payload.n);
	put_time(b, ITEMS_DELIVER_AFTER, row->due);
	put_time(b, ITEMS_LEASE_EXPIRES_AT, row->until);
	put_time(b, ITEMS_CREATED_AT, row->accepted);
	put_text(b, ITEMS_REASON, row->reason ? slice_of(row->reason) : (struct slice){ 0 });
	put_text(b, ITEMS_ERROR, row->error);
	put_time(b, ITEMS_DIED_AT, row->died);
	b->bytes += row->payload.n;
	b->n++;
}

void
items_batch_drop(struct items_batch *b, uint64_t id)
{
	put_number(b, ITEMS_NOT_LIVE, id);
	put_number(b, ITEMS_NOT_DEAD, id);
	b->n++;
}

void
items_batch_init(struct items_batch *b)
{
	*b = (struct items_batch){ 0 };
	for (unsigned i = 0; i < ITEMS_COLUMNS; i++)
		buf_init(&b->columns[i], COLUMN_MAX);
}

void
items_batch_clear(struct items_batch *b)
{
	for (unsigned i = 0; i < ITEMS_COLUMNS; i++) {
		buf_clear(&b->columns[i]);
		b->counts[i] = 0;
	}
	b->bytes = 0;
	b->n = 0;
}

void
items_batch_release(struct items_batch *b)
{
	for (unsigned i = 0; i < ITEMS_COLUMNS; i++)
		buf_release(&b->columns[i]);
}

/* An array without elements has no dimensions. */
static bool
add_arrays(struct link_query *q, struct items_batch *b)
{
	bool failed = false;

	for (unsigned i = 0; i < ITEMS_COLUMNS; i++) {
		struct buf *const column = &b->columns[i];

		if (b->counts[i] == 0)
			buf_put(column, (char[12]){ 0 }, 12);
		failed |= column->failed;
		if (failed)
			break;
		if (b->counts[i])
			put_header(column->p, types[i], b->counts[i]);
		else
			put_be(column->p + 8, types[i], 4);
		q->params[q->n].value = buf_slice(column);
		q->params[q->n++].bytes = true;
	}
	return !failed;
}

int
items_write(struct items *t, struct items_fence *f, struct items_batch *b, struct slu_err *err)
{
	struct link_query q = { .sql = write_sql };
	char texts[2][LINK_NUMBER];
	PGresult *r;
	int rc;

	f->position++; /* also if this transaction fails: it may come late */
	link_add(&q, f->shard);
	link_add_number(&q, f->epoch, texts[0]);
	link_add_number(&q, f->position, texts[1]);
	if (!add_arrays(&q, b))
		return slu_fail(err, SLU_ENOMEM, "no memory for a transaction of the projection");
	assert(q.n == LINK_PARAMS);
	rc = run_as_writer(t, &q, f->shard, &r, err);
	if (rc)
		return rc;
	f->wanted = link_number(r, 0, 0);
	PQclear(r);
	return 0;
}
