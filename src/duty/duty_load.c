/*
 * duty_load.c - reads the documents of this node.
 */
#include "duty/duty.h"

#include "base/log.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

enum {
	PAGE = 100 /* rows and queues of an answer */
};

void
duty_unload(struct duty *d)
{
	for (uint32_t i = 0; i < d->n; i++)
		mem_free(duty_row(d, i)->memory);
	d->n = 0;
}

/* ---- A document ---- */

static int
read_row(struct duty *d, const struct op *op, const struct op_row *row, struct duty_row *out, struct slu_err *err)
{
	const size_t n = row->record.size;
	struct message m;
	int rc;

	memset(out, 0, d->kind->row_size);
	out->memory = mem_alloc(2 * n + 1);
	if (!out->memory)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	rc = engine_read(op->engine, &row->record, 0, n, out->memory, true, err);
	if (!rc)
		rc = message_decode((struct slice){ out->memory, n }, &m, err);
	if (rc)
		return rc;
	(void)snprintf(out->space, sizeof out->space, "%.*s", (int)m.space.n, m.space.p);
	out->id = row->id & ~(uint64_t)1;
	out->number = row->number;
	out->accepted = m.accepted;
	out->seen = true;
	return d->kind->decode(d, m.payload, out->memory + n, out, err);
}

int
duty_look(struct duty *d, const struct duty_row *row, struct duty_row *out, struct slu_err *err)
{
	struct op_row found;
	struct op op;
	int rc;

	out->memory = NULL;
	duty_op(d, &op, OP_GET, slice_of(row->space));
	op.id = row->id;
	op.rows = &found;
	op.max_rows = 1;
	rc = duty_run(d, &op, 1, err);
	if (rc)
		return rc;
	rc = read_row(d, &op, &found, out, err);
	op_unpin(&op);
	return rc;
}

/* ---- All documents ---- */

static struct duty_row *
find(const struct duty *d, const struct duty_row *now)
{
	for (uint32_t i = 0; i < d->n; i++) {
		struct duty_row *const row = duty_row(d, i);

		if (row->id == now->id && strcmp(row->space, now->space) == 0)
			return row;
	}
	return NULL;
}

static int
take(struct duty *d, struct duty_row *now, struct slu_err *err)
{
	struct duty_row *const old = d->kind->renew ? find(d, now) : NULL;

	if (old) {
		old->seen = true;
		if (!d->kind->renew(old, now)) {
			old->number = now->number;
			mem_free(now->memory);
			return 0;
		}
		mem_free(old->memory);
		memcpy(old, now, d->kind->row_size);
		return 0;
	}
	if (!mem_room(&d->rows, &d->room, d->n + 1, d->kind->row_size))
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	memcpy(duty_row(d, d->n++), now, d->kind->row_size);
	return 0;
}

static int
add(struct duty *d, const struct op *op, const struct op_row *row, struct slu_err *err)
{
	struct duty_row *const now = d->fresh;
	struct slu_err why = { 0 };
	int rc = read_row(d, op, row, now, &why);

	if (!rc)
		rc = take(d, now, err);
	else if (rc == SLU_ENOMEM)
		(void)slu_fail(err, SLU_ENOMEM, "out of memory");
	else if (!d->lacked) /* DUTY-3 */
		log_error(d->log, "document is not read", F_STR("queue", d->kind->queue), F_STR("namespace", now->space),
			  F_U64("id", row->id), F_STR("why", why.text));
	d->lacks |= rc != 0;
	if (rc)
		mem_free(now->memory);
	return rc == SLU_ENOMEM ? rc : 0;
}

/* The documents of a namespace. A shard that this node has lost meanwhile, or does not have yet, has none: DUTY-3. */
static int
load_space(struct duty *d, struct slice space, struct slu_err *err)
{
	struct op_row rows[PAGE];
	uint64_t cursor = 0;
	int rc = 0;

	do {
		struct op op;

		duty_op(d, &op, OP_LIST, space);
		op.cursor = cursor;
		op.rows = rows;
		op.max_rows = PAGE;
		rc = duty_run(d, &op, 1, err);
		d->lacks |= rc == SLU_EMOVED;
		if (rc)
			return rc == SLU_EMOVED ? 0 : rc;
		for (uint32_t i = 0; i < op.n_rows && !rc; i++)
			rc = add(d, &op, &rows[i], err);
		op_unpin(&op);
		cursor = op.cursor;
	} while (cursor && !rc);
	return rc;
}

static int
load_spaces(struct duty *d, struct slu_err *err)
{
	struct op_queue *const queues = mem_array(PAGE, sizeof *queues);
	uint64_t cursor = 0;
	int rc = queues ? 0 : slu_fail(err, SLU_ENOMEM, "out of memory");

	while (!rc) {
		struct op op;

		duty_op(d, &op, OP_QUEUES, (struct slice){ 0 });
		op.cursor = cursor;
		op.queues = queues;
		op.max_queues = PAGE;
		rc = duty_run(d, &op, 1, err);
		for (uint32_t i = 0; !rc && i < op.n_queues; i++)
			rc = load_space(d, slice_of(queues[i].space), err);
		cursor = op.cursor;
		if (!cursor)
			break;
	}
	mem_free(queues);
	return rc;
}

/* Rows whose documents are gone go, too. */
static void
sweep(struct duty *d)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < d->n; i++) {
		struct duty_row *const row = duty_row(d, i);

		if (!row->seen)
			mem_free(row->memory);
		else if (kept++ < i)
			memcpy(duty_row(d, kept - 1), row, d->kind->row_size);
	}
	d->n = kept;
}

int
duty_load(struct duty *d, struct slu_err *err)
{
	int rc;

	d->lacks = false;
	if (!d->kind->renew)
		duty_unload(d);
	for (uint32_t i = 0; i < d->n; i++)
		duty_row(d, i)->seen = false;
	rc = load_spaces(d, err);
	if (rc)
		return rc;
	if (d->kind->loaded)
		d->kind->loaded(d);
	sweep(d);
	return 0;
}
