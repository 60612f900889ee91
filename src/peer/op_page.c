#include "peer/op_page.h"

#include "broker/broker.h"

/* ---- Rows: LIST, PEEK ---- */

static uint64_t
row_bytes(const struct op *op, uint32_t i)
{
	return (uint64_t)op->rows[i].record.size + op->rows[i].error.size;
}

/* The page goes on behind this row. */
static uint64_t
cursor_behind(const struct op *op, const struct op_row *row)
{
	return row->after | (op->route.spans ? (uint64_t)op->route.lane << BROKER_CURSOR_BITS : 0);
}

static void
keep_rows(struct op *op, uint32_t n)
{
	if (op->verb == OP_LIST)
		op->cursor = cursor_behind(op, &op->rows[n - 1]);
	while (op->n_rows > n)
		op_unpin_row(op->engine, &op->rows[--op->n_rows]);
}

/* ---- Keys ---- */

static uint64_t
key_bytes(const struct op *op, uint32_t i)
{
	return op->keys[i].record.size;
}

static void
keep_keys(struct op *op, uint32_t n)
{
	op->lock.more = true;
	while (op->n_keys > n) {
		struct op_key *const key = &op->keys[--op->n_keys];

		engine_unpin(op->engine, &key->record);
		engine_unpin(op->engine, &key->payload);
	}
}

/* ---- Pages ---- */

/* How many of the n elements have at most max_bytes together; 1 or more. */
static uint32_t
fit(const struct op *op, uint32_t n, uint64_t (*bytes_of)(const struct op *op, uint32_t i), uint64_t max_bytes)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < n; i++) {
		bytes += bytes_of(op, i);
		if (i > 0 && bytes > max_bytes)
			return i;
	}
	return n;
}

void
op_page_end(struct op *op, uint64_t max_bytes)
{
	const bool rows = op->verb == OP_LIST || op->verb == OP_PEEK, keys = op->verb == OP_KEYS;
	const uint32_t n = rows ? op->n_rows : keys ? op->n_keys
						    : 0;
	const uint32_t kept = fit(op, n, rows ? row_bytes : key_bytes, max_bytes);

	if (kept < n && rows)
		keep_rows(op, kept);
	else if (kept < n)
		keep_keys(op, kept);
}
