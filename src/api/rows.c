#include "api/rows.h"

#include "api/limits.h"
#include "api/mask/mask.h"
#include "api/quarantine.h"
#include "base/mem.h"
#include "engine/attempts.h"
#include "engine/engine.h"

int
rows_room(struct rows *r, size_t n)
{
	char *p;

	if (n <= r->room_size)
		return 0;
	p = mem_realloc(r->room, n);
	if (!p)
		return SLU_ENOMEM;
	r->room = p;
	r->room_size = n;
	return 0;
}

/* Memory for neighbours that are read with one call. NULL: rows are read one by one. */
static struct engine_near *
near_room(struct rows *r)
{
	if (!r->near)
		r->near = mem_alloc(sizeof *r->near);
	return r->near;
}

/* The record of row r->at if it was read together with others; otherwise p is NULL. */
static struct slice
read_near(struct rows *r, bool may_block)
{
	const uint32_t left = r->op->n_rows - r->at;

	if (r->at >= r->near_end && left > 1 && near_room(r)) {
		r->near_at = r->at;
		r->near_end = r->at + engine_read_near(r->op->engine, &r->op->rows[r->at], left,
						       r->near, may_block);
	}
	if (r->at >= r->near_end)
		return (struct slice){ 0 };
	return r->near->texts[r->at - r->near_at];
}

/* The error of a row, or the state of a claim, which not every caller wants. */
size_t
rows_size_behind(const struct rows *r)
{
	const struct op_row *const row = &r->op->rows[r->at];

	if (r->op->verb == OP_CLAIM)
		return r->resumes && row->checkpoint.pin ? row->checkpoint.size : 0;
	return row->error.pin ? row->error.size : 0;
}

static int
read_state(struct rows *r, struct slice record, struct slu_err *err)
{
	struct message m;
	int rc;

	r->checkpoint = (struct slice){ 0 };
	rc = record.n ? message_decode(record, &m, err) : 0;
	if (!rc && record.n && m.payload.n <= OP_CHECKPOINT_MAX)
		r->checkpoint = m.payload; /* empty if it has a file of its own */
	return rc;
}

int
rows_read_behind(struct rows *r, char *p, bool may_block, struct slice *error, struct slu_err *err)
{
	const struct op_row *const row = &r->op->rows[r->at];
	const bool claims = r->op->verb == OP_CLAIM;
	const size_t n = rows_size_behind(r);
	const int rc = n ? engine_read(r->op->engine, claims ? &row->checkpoint : &row->error, 0, n, p, may_block, err) : 0;

	*error = (struct slice){ 0 };
	if (rc)
		return rc;
	if (claims)
		return read_state(r, (struct slice){ p, n }, err);
	r->tried = (struct slice){ p, n };
	*error = attempts_error(r->tried);
	return 0;
}

/* Reads the record, unless record.p is set, and what belongs behind it. */
static int
read_rest(struct rows *r, struct slice record, bool may_block, struct message *m,
	  struct slice *error, struct slu_err *err)
{
	const struct op_row *const row = &r->op->rows[r->at];
	struct engine *const e = r->op->engine;
	const size_t n = record.p ? 0 : row->record.size;
	int rc;

	rc = rows_room(r, n + rows_size_behind(r));
	if (!rc && !record.p)
		rc = engine_read(e, &row->record, 0, n, r->room, may_block, err);
	if (!rc)
		rc = rows_read_behind(r, r->room + n, may_block, error, err);
	if (rc)
		return rc;
	r->record = record.p ? record : (struct slice){ r->room, n };
	return message_decode(r->record, m, err);
}

int
rows_read(struct rows *r, bool may_block, struct message *m, struct slice *error,
	  struct slu_err *err)
{
	return read_rest(r, read_near(r, may_block), may_block, m, error, err);
}

/* Writes the row as damaged, with the values that need no record. */
static void
show_damaged(struct rows *r)
{
	struct op_row row = r->op->rows[r->at];
	const struct message m = { .space = r->op->space, .queue = r->op->queue };

	row.state = MSG_DAMAGED;
	r->write(&r->w, &row, &m, (struct slice){ 0 });
}

void
rows_damaged(struct rows *r, const struct slu_err *why)
{
	quarantine(r->apicall, r->op, &r->op->rows[r->at], why);
	if (r->shows_damaged)
		show_damaged(r);
}

void
rows_hide(struct rows *r, struct slice namespace, bool asked)
{
	r->mask = mask_for(r->apicall, namespace, asked);
	r->sees = mask_may_see(r->apicall, namespace);
}

void
rows_write_masked(struct rows *r)
{
	if (r->hidden)
		json_out_bool(&r->w, "masked", true);
}

/* Writes a message, without what it hides. */
static int
write_message(struct rows *r, const struct op_row *row, struct message *m, struct slice error)
{
	int rc = 0;

	r->hidden = false;
	if (r->mask) {
		r->plain = *m;
		buf_clear(&r->masked);
		rc = mask_message(r->mask, m, &r->masked, &r->hidden);
	}
	if (!rc)
		r->write(&r->w, row, m, error);
	return rc;
}

/* Returns SLU_EBUSY if a read would block. */
static int
write_rows(struct apicall *a, bool may_block)
{
	struct rows *const r = a->rows;

	if (r->patient && !may_block)
		return SLU_EBUSY;
	for (; r->at < r->op->n_rows && !r->enough; r->at++) {
		const struct op_row *const row = &r->op->rows[r->at];
		struct slu_err err;
		struct slice error;
		struct message m;
		int rc;

		no_err(&err);
		rc = read_rest(r, read_near(r, may_block), may_block, &m, &error, &err);
		if (!rc)
			rc = write_message(r, row, &m, error);
		else if (rc == SLU_ECORRUPT)
			rows_damaged(r, &err);
		if (rc && rc != SLU_ECORRUPT)
			return rc;
		r->bytes += row->record.size;
		r->enough = r->enough || (r->max_bytes && r->bytes >= r->max_bytes);
	}
	return 0;
}

static void
finish(struct apicall *a, int rc)
{
	struct rows *const r = a->rows;

	op_unpin(r->op);
	mem_free(r->room);
	mem_free(r->near);
	buf_release(&r->masked);
	mask_unref(r->mask);
	r->mask = NULL;
	r->done(a, rc);
}

void
rows_start(struct rows *r)
{
	r->at = 0;
	r->room = NULL;
	r->room_size = 0;
	r->near = NULL;
	r->near_end = 0;
	r->bytes = 0;
	buf_init(&r->masked, MASKED_MAX);
	r->apicall->rows = r;
	apicall_try(r->apicall, write_rows, finish);
}
