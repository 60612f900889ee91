/*
 * postgresql.c - a table and SELECT ... FOR UPDATE SKIP LOCKED, over the frontend/backend
 * protocol 3.0 with prepared statements and binary values. Batched: one INSERT of an array,
 * one UPDATE for many, one DELETE by an array.
 *
 * An index of the rows without a lease gives the order; a lease is a time in the row. Without durability
 * the table is UNLOGGED.
 */
#include "peers/peer.h"

#include <arpa/inet.h>
#include <stdio.h>

enum {
	OID_BYTEA = 17,
	OID_INT8 = 20
};

/* --- writing -------------------------------------------------------------------- */

static void
put_int(struct buf *out, unsigned bytes, uint32_t n)
{
	const uint32_t big = htonl(bytes == 2 ? n << 16 : n);

	buf_put(out, &big, bytes);
}

static size_t
begin(struct buf *out, char kind)
{
	if (kind)
		buf_putc(out, kind);
	put_int(out, 4, 0); /* the length, known at the end */
	return out->n - 4;
}

static void
end(struct buf *out, size_t mark)
{
	const uint32_t big = htonl((uint32_t)(out->n - mark));

	if (!out->failed)
		memcpy(out->p + mark, &big, sizeof big);
}

static void
text(struct buf *out, const char *s)
{
	buf_put(out, s, strlen(s) + 1);
}

static void
sync_and_await(struct peer_conn *c)
{
	end(&c->out, begin(&c->out, 'S'));
	c->awaited = 1;
}

static void
prepare(struct peer_conn *c, const char *name, const char *format)
{
	const size_t mark = begin(&c->out, 'P');
	const char *q = c->work->queue;

	text(&c->out, name);
	buf_printf(&c->out, format, q, q, q);
	buf_putc(&c->out, '\0');
	put_int(&c->out, 2, 0); /* types of parameters: the server finds them */
	end(&c->out, mark);
}

/* All values are binary. The caller writes the value between begin_bind and end_bind. */
static size_t
begin_bind(struct buf *out, const char *name, unsigned values)
{
	const size_t mark = begin(out, 'B');

	text(out, ""); /* the unnamed portal */
	text(out, name);
	put_int(out, 2, 1);
	put_int(out, 2, 1);
	put_int(out, 2, values);
	return mark;
}

static void
end_bind(struct peer_conn *c, size_t mark)
{
	put_int(&c->out, 2, 1);
	put_int(&c->out, 2, 1);
	end(&c->out, mark);
	mark = begin(&c->out, 'E');
	text(&c->out, "");
	put_int(&c->out, 4, 0); /* all rows */
	end(&c->out, mark);
	sync_and_await(c);
}

static size_t
begin_array(struct buf *out, uint32_t oid, unsigned n)
{
	const size_t mark = begin(out, 0);

	put_int(out, 4, 1); /* dimensions */
	put_int(out, 4, 0);
	put_int(out, 4, oid);
	put_int(out, 4, n);
	put_int(out, 4, 1); /* the first index */
	return mark;
}

/* Ends a value. Its length does not count itself. */
static void
end_array(struct buf *out, size_t mark)
{
	const uint32_t big = htonl((uint32_t)(out->n - mark - 4));

	if (!out->failed)
		memcpy(out->p + mark, &big, sizeof big);
}

static void
value(struct buf *out, struct slice s)
{
	put_int(out, 4, (uint32_t)s.n);
	buf_put(out, s.p, s.n);
}

/* --- requests ------------------------------------------------------------------- */

static void
start_up(struct peer_conn *c)
{
	const size_t mark = begin(&c->out, 0);

	put_int(&c->out, 4, 3 << 16);
	text(&c->out, "user");
	text(&c->out, "postgres");
	text(&c->out, "database");
	text(&c->out, "postgres");
	buf_putc(&c->out, '\0');
	end(&c->out, mark);
	c->awaited = 1;
}

static void
query(struct peer_conn *c, const char *format)
{
	const char *q = c->work->queue;
	const size_t mark = begin(&c->out, 'Q');

	buf_printf(&c->out, format, q, q, q);
	buf_putc(&c->out, '\0');
	end(&c->out, mark);
	c->awaited = 1;
}

static void
make_table(struct peer_conn *c)
{
	static const char logged[] =
		"CREATE TABLE %s (id bigserial PRIMARY KEY, until timestamptz, payload bytea NOT NULL);"
		"ALTER TABLE %s ALTER payload SET STORAGE plain;"
		"CREATE INDEX ON %s (id) WHERE until IS NULL";
	static const char unlogged[] =
		"CREATE UNLOGGED TABLE %s (id bigserial PRIMARY KEY, until timestamptz, payload bytea NOT NULL);"
		"ALTER TABLE %s ALTER payload SET STORAGE plain;"
		"CREATE INDEX ON %s (id) WHERE until IS NULL";

	query(c, c->work->durable ? logged : unlogged);
}

static void
remove_table(struct peer_conn *c)
{
	query(c, "DROP TABLE %s");
}

static void
prepare_all(struct peer_conn *c)
{
	const bool one = c->work->batch == 1;
	char take[400];

	(void)snprintf(take, sizeof take,
		       "WITH c AS (SELECT id FROM %%s WHERE until IS NULL ORDER BY id LIMIT %u "
		       "FOR UPDATE SKIP LOCKED) UPDATE %%s q SET until = now() + interval '%u s' "
		       "FROM c WHERE q.id = c.id RETURNING q.id, q.payload",
		       c->work->batch, PEER_LEASE_SECONDS);
	prepare(c, "p", one ? "INSERT INTO %s (payload) VALUES ($1)" : "INSERT INTO %s (payload) SELECT unnest($1::bytea[])");
	prepare(c, "t", take);
	prepare(c, "a", one ? "DELETE FROM %s WHERE id = $1" : "DELETE FROM %s WHERE id = ANY($1::int8[])");
	sync_and_await(c);
}

static void
postgresql_put(struct peer_conn *c)
{
	const struct peer_work *w = c->work;
	const size_t mark = begin_bind(&c->out, "p", 1);

	if (w->batch == 1) {
		value(&c->out, w->payload);
	} else {
		const size_t array = begin_array(&c->out, OID_BYTEA, w->batch);

		for (unsigned i = 0; i < w->batch; i++)
			value(&c->out, w->payload);
		end_array(&c->out, array);
	}
	end_bind(c, mark);
}

static void
postgresql_take(struct peer_conn *c, bool wait)
{
	(void)wait; /* a put message is available at once */
	end_bind(c, begin_bind(&c->out, "t", 0));
}

/* A handle is an id, 8 bytes as on the wire. */
static void
postgresql_ack(struct peer_conn *c, unsigned n)
{
	const size_t mark = begin_bind(&c->out, "a", 1);

	if (c->work->batch == 1) {
		value(&c->out, held_pop(c));
	} else {
		const size_t array = begin_array(&c->out, OID_INT8, n);

		for (unsigned i = 0; i < n; i++)
			value(&c->out, held_pop(c));
		end_array(&c->out, array);
	}
	end_bind(c, mark);
}

/* --- answers -------------------------------------------------------------------- */

static uint32_t
int_at(const char *p)
{
	uint32_t big;

	memcpy(&big, p, sizeof big);
	return ntohl(big);
}

/* Reads a row: 2 bytes for the number of columns, then length and bytes of id and payload. */
static int
read_row(struct peer_conn *c, struct slice row, struct slu_err *err)
{
	if (row.n < 2 + 4 + 8 + 4)
		return peer_refused("a row that is too short", row, err);
	held_add(c, (struct slice){ row.p + 6, 8 });
	return peer_check(c, int_at(row.p + 14), err);
}

static int
postgresql_answer(struct peer_conn *c, struct slice *in, struct slu_err *err)
{
	struct slice body;
	size_t n;
	char kind;

	if (in->n < 5)
		return 0;
	n = int_at(in->p + 1);
	if (in->n < 1 + n)
		return 0;
	kind = in->p[0];
	body = (struct slice){ in->p + 5, n - 4 };
	slice_skip(in, 1 + n);
	switch (kind) {
	case 'D':
		return read_row(c, body, err);
	case 'E':
		return peer_refused("postgresql", body, err);
	case 'Z':
		c->awaited--;
		return 0;
	default: /* notices, parameters, what was done */
		return 0;
	}
}

static const struct step hello[] = {
	{ .say = start_up },
	{ .say = make_table, .first_only = true },
	{ .say = prepare_all },
	{ 0 },
};

static const struct step bye[] = {
	{ .say = remove_table, .first_only = true },
	{ 0 },
};

const struct peer_protocol protocol_postgresql = {
	.name = "postgresql",
	.hello = hello,
	.bye = bye,
	.put = postgresql_put,
	.take = postgresql_take,
	.ack = postgresql_ack,
	.answer = postgresql_answer,
};
