/*
 * embed_batch.c - batches of a user's program (engine/msgbatch.h).
 */
#include "embed/embed.h"

#include "base/need.h"
#include "base/sized.h"
#include "engine/engine.h"
#include "form/newbatch.h"

#include <sluice/batch.h>

#include <inttypes.h>
#include <stdio.h>

static int
not_found(uint64_t id, struct slu_err *err)
{
	return slu_fail(err, SLU_ENOTFOUND, "there is no batch %" PRIu64, id);
}

/* ---- Create ---- */

static int
take_callback(struct slu_broker *b, const struct embed_call *c, const struct slu_put *given, struct msgbatch *batch,
	      struct arena *a, struct slu_err *err)
{
	struct slu_put room;
	const struct slu_put *const put = SIZED(slu_put, given, &room, err);
	struct op_put callback;
	int rc;

	if (!put)
		return SLU_EINVAL;
	if (!put->queue)
		return slu_fail(err, SLU_EINVAL, "invalid callback; expected a message with a queue");
	rc = embed_fill(b, c, put, a, &callback, err);
	return rc ? rc : newbatch_callback(batch, &callback, a, err);
}

static int
create(struct slu_broker *b, struct embed_call *c, const struct slu_batch_options *o, struct arena *a, struct slu_err *err)
{
	struct msgbatch batch = { .created = clock_wall(&clock_system) };
	struct op_put put;
	int rc = 0;

	batch.deadline = o->timeout ? batch.created + o->timeout : 0;
	if (o->callback)
		rc = take_callback(b, c, o->callback, &batch, a, err);
	if (!rc)
		rc = newbatch_put(&batch, c->op.space, a, &put, err);
	if (rc)
		return rc;
	c->op.queue = SLICE(MSGBATCH_QUEUE);
	c->op.puts = &put;
	c->op.n_puts = 1;
	rc = embed_run(b, c, err);
	c->op.id = put.m.id;
	return rc;
}

int
slu_batch_create(struct slu_broker *b, const struct slu_batch_options *options, uint64_t *id, struct slu_err *err)
{
	NEED2(b, id, err);

	struct slu_batch_options room;
	const struct slu_batch_options *o = SIZED(slu_batch_options, options, &room, err);
	struct arena memory = { 0 };
	struct embed_call c;
	int rc;

	if (!o)
		return SLU_EINVAL;
	if (o->timeout < 0 || o->timeout > 10 * 366 * 24 * SLU_HOUR)
		return slu_fail(err, SLU_EINVAL, "invalid timeout; expected 0 to 10 years");
	rc = embed_begin(b, &c, OP_ENQUEUE, NULL, err);
	if (rc)
		return rc;
	rc = create(b, &c, o, &memory, err);
	if (!rc)
		*id = c.op.id;
	arena_release(&memory);
	embed_end(b, &c);
	return rc;
}

/* ---- Close, look ---- */

int
slu_batch_close(struct slu_broker *b, uint64_t id, struct slu_err *err)
{
	NEED(b, err);

	struct op_item item = { .id = id, .nack = true };
	struct embed_call c;
	int rc = embed_begin(b, &c, OP_FINISH, NULL, err);

	if (rc)
		return rc;
	c.op.queue = SLICE(MSGBATCH_QUEUE);
	c.op.items = &item;
	c.op.n_items = 1;
	rc = embed_run(b, &c, err);
	rc = rc ? rc : item.rc;
	embed_end(b, &c);
	return rc == SLU_ENOTFOUND ? not_found(id, err) : rc;
}

static void
show(const struct msgbatch *in, struct slu_batch *out)
{
	*out = (struct slu_batch){
		.members = in->members,
		.done = in->done,
		.failed = in->failed,
		.created = in->created,
		.deadline = in->deadline,
		.ended = in->outcome != MSGBATCH_OPEN ? in->ended : 0,
		.callback = in->callback,
	};
	(void)snprintf(out->status, sizeof out->status, "%s", msgbatch_status(in)); /* fits */
}

static int
read_batch(const struct op *op, const struct op_row *row, struct slu_batch *out, struct slu_err *err)
{
	struct arena memory = { 0 };
	char *const room = arena_alloc(&memory, row->record.size + 1);
	struct msgbatch batch;
	struct message m = { 0 };
	int rc = room ? engine_read(op->engine, &row->record, 0, row->record.size, room, true, err)
		      : slu_fail(err, SLU_ENOMEM, "no memory for a batch");

	if (!rc)
		rc = message_decode((struct slice){ room, row->record.size }, &m, err);
	if (!rc && m.terms.batch != MSGBATCH_SELF)
		rc = SLU_ENOTFOUND; /* an event */
	if (!rc)
		rc = msgbatch_decode(m.payload, &batch, err);
	if (!rc)
		show(&batch, out);
	arena_release(&memory);
	return rc;
}

int
slu_batch_get(struct slu_broker *b, uint64_t id, struct slu_batch *out, struct slu_err *err)
{
	NEED2(b, out, err);

	struct embed_call c;
	struct op_row row;
	int rc = embed_begin(b, &c, OP_GET, NULL, err);

	if (rc)
		return rc;
	c.op.queue = SLICE(MSGBATCH_QUEUE);
	c.op.id = id;
	c.op.rows = &row;
	c.op.max_rows = 1;
	rc = embed_run(b, &c, err);
	if (!rc)
		rc = c.op.n_rows ? read_batch(&c.op, &row, out, err) : SLU_ENOTFOUND;
	op_unpin(&c.op);
	embed_end(b, &c);
	return rc == SLU_ENOTFOUND ? not_found(id, err) : rc;
}
