/*
 * scheduler_book.c - reads the schedules of this node.
 */
#include "api/schedule/scheduler_private.h"

#include "base/log.h"
#include "base/mem.h"
#include "core/schedule/schedule_doc.h"

#include <stdio.h>

enum {
	PAGE = 100 /* rows and queues of an answer */
};

/* ---- Ops ---- */

static void
on_done(struct op *op)
{
	struct scheduler *const s = op->owner;

	pthread_mutex_lock(&s->mtx);
	s->op_ended = true;
	pthread_cond_broadcast(&s->wake);
	pthread_mutex_unlock(&s->mtx);
}

void
scheduler_op(struct scheduler *s, struct op *op, enum op_verb verb, struct slice space, struct slice queue)
{
	op_init(op, verb, space, queue, on_done, s);
	op->route.local = true;
}

int
scheduler_run(struct scheduler *s, struct op *op)
{
	int rc;

	s->op_ended = false;
	rc = broker_post(s->broker, op);
	if (rc) {
		op_fail(op, rc, &op->err);
		return rc;
	}
	pthread_mutex_lock(&s->mtx);
	while (!s->op_ended)
		pthread_cond_wait(&s->wake, &s->mtx);
	pthread_mutex_unlock(&s->mtx);
	return op->rc;
}

/* ---- Rows ---- */

void
scheduler_unload(struct scheduler *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		mem_free(s->rows[i].doc);
	s->n = 0;
}

/* The bytes of the document, behind its record; and room for its texts. Freed by the row. */
static int
read_doc(const struct op *op, const struct op_row *row, char **out, struct message *m, struct slu_err *err)
{
	const size_t n = row->record.size;
	int rc;

	*out = mem_alloc(2 * n + 1);
	if (!*out)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	rc = engine_read(op->engine, &row->record, 0, n, *out, true, err);
	if (!rc)
		rc = message_decode((struct slice){ *out, n }, m, err);
	if (!rc)
		return 0;
	mem_free(*out);
	*out = NULL;
	return rc;
}

static int
read_row(struct scheduler *s, const struct op *op, const struct op_row *row, struct scheduled *out, struct slu_err *err)
{
	struct message m;
	int rc = read_doc(op, row, &out->doc, &m, err);

	if (rc)
		return rc;
	rc = schedule_decode(m.payload, out->doc + row->record.size, &out->s, err);
	if (!rc)
		rc = zones_plan(s->zones, &out->s, &out->plan, err);
	(void)snprintf(out->space, sizeof out->space, "%.*s", (int)m.space.n, m.space.p);
	out->number = row->number;
	if (!rc)
		out->due = schedule_next(&out->s, &out->plan);
	return rc;
}

/* A schedule that cannot be read does not stop the others. */
static int
add_row(struct scheduler *s, const struct op *op, const struct op_row *row, struct slu_err *err)
{
	struct scheduled *out;
	struct slu_err why = { 0 };
	int rc;

	if (!mem_room(&s->rows, &s->room, s->n + 1, sizeof *s->rows))
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	out = &s->rows[s->n];
	*out = (struct scheduled){ 0 };
	rc = read_row(s, op, row, out, &why);
	if (!rc) {
		s->n++;
		return 0;
	}
	mem_free(out->doc);
	if (rc == SLU_ENOMEM)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	log_error(s->log, "schedule does not fire", F_STR("namespace", out->space), F_STR("schedule", out->s.name),
		  F_STR("why", why.text));
	return 0;
}

/* The schedules of a namespace. A shard that this node has lost meanwhile has none. */
static int
load_space(struct scheduler *s, struct slice space, struct slu_err *err)
{
	struct op_row rows[PAGE];
	uint64_t cursor = 0;
	int rc = 0;

	do {
		struct op op;

		scheduler_op(s, &op, OP_LIST, space, SLICE(SCHEDULE_QUEUE));
		op.cursor = cursor;
		op.rows = rows;
		op.max_rows = PAGE;
		rc = scheduler_run(s, &op);
		if (rc == SLU_EMOVED)
			return 0;
		if (rc)
			return slu_fail(err, (enum slu_code)rc, "%s", op.err.text);
		for (uint32_t i = 0; i < op.n_rows && !rc; i++)
			rc = add_row(s, &op, &rows[i], err);
		op_unpin(&op);
		cursor = op.cursor;
	} while (cursor && !rc);
	return rc;
}

int
scheduler_load(struct scheduler *s, struct slu_err *err)
{
	struct op_queue *const queues = mem_array(PAGE, sizeof *queues);
	uint64_t cursor = 0;
	int rc = queues ? 0 : slu_fail(err, SLU_ENOMEM, "out of memory");

	scheduler_unload(s);
	while (!rc) {
		struct op op;

		scheduler_op(s, &op, OP_QUEUES, (struct slice){ 0 }, SLICE(SCHEDULE_QUEUE));
		op.cursor = cursor;
		op.queues = queues;
		op.max_queues = PAGE;
		rc = scheduler_run(s, &op);
		if (rc)
			slu_fail(err, (enum slu_code)rc, "%s", op.err.text);
		for (uint32_t i = 0; !rc && i < op.n_queues; i++)
			rc = load_space(s, slice_of(queues[i].space), err);
		cursor = op.cursor;
		if (!cursor)
			break;
	}
	mem_free(queues);
	atomic_store(&s->schedules, s->n);
	return rc;
}
