/*
 * find.c - a task by its id alone: a lane has it, or its result, and they are asked in turn.
 */
#include "api/codeq/task.h"

#include "core/queue/holders.h"
#include "engine/attempts.h"
#include "engine/engine.h"

enum {
	LARGE_MAX = 16 << 20 /* bytes of a payload of another API */
};

static void look(struct apicall *a);
static void look_for_result(struct apicall *a);

static void
end(struct apicall *a, int rc)
{
	struct codeq_task *const t = a->part;

	t->rc = rc;
	t->then(a);
}

/* --- a message ---------------------------------------------------------------- */

static int
read_ref(struct apicall *a, const struct op_ref *ref, bool may_block, struct slice *out)
{
	char *const bytes = ref->pin ? arena_alloc(&a->memory, ref->size + 1) : NULL;

	*out = (struct slice){ bytes, bytes ? ref->size : 0 };
	if (!bytes)
		return ref->pin ? SLU_ENOMEM : 0;
	return engine_read(a->op.engine, ref, 0, ref->size, bytes, may_block, NULL);
}

static int
read_task(struct apicall *a, bool may_block)
{
	struct codeq_task *const t = a->part;
	struct slice record;
	int rc = read_ref(a, &t->row.record, may_block, &record);

	if (!rc)
		rc = message_decode(record, &t->m, NULL);
	if (!rc)
		rc = read_ref(a, &t->row.error, may_block, &t->error);
	t->error = attempts_error(t->error);
	if (!rc && t->row.payload.size <= LARGE_MAX)
		rc = read_ref(a, &t->row.payload, may_block, &t->payload);
	if (!rc && !t->row.payload.pin)
		t->payload = t->m.payload;
	return rc;
}

static void
read_done(struct apicall *a, int rc)
{
	struct codeq_task *const t = a->part;

	if (t->row.holder)
		t->owner = codeq_copy(a, holder_name(shared_text_slice(t->row.holder)));
	op_unpin(&a->op);
	t->alive = rc == 0;
	end(a, rc);
}

static void
looked(struct apicall *a)
{
	struct codeq_task *const t = a->part;

	if (a->op.rc == 0) {
		apicall_try(a, read_task, read_done);
	} else if (a->op.rc != SLU_ENOTFOUND) {
		end(a, a->op.rc);
	} else if (++t->lane < broker_lanes(a->api->broker)) {
		look(a);
	} else {
		t->lane = 0;
		look_for_result(a);
	}
}

static void
begin_op(struct apicall *a, enum op_verb verb, struct slice queue)
{
	struct codeq_task *const t = a->part;

	a->ops = &a->op;
	a->n_ops = 1;
	apicall_op(a, &a->op, verb, codeq_space(a), queue);
	a->op.id = t->id;
	if (queue.n == 0)
		a->op.cursor = (uint64_t)t->lane << BROKER_CURSOR_BITS;
}

static void
look(struct apicall *a)
{
	struct codeq_task *const t = a->part;

	begin_op(a, OP_GET, (struct slice){ 0 });
	a->op.rows = &t->row;
	a->op.max_rows = 1;
	apicall_run(a, looked);
}

/* --- a result ----------------------------------------------------------------- */

static int
read_document(struct apicall *a, bool may_block)
{
	struct codeq_task *const t = a->part;

	return read_ref(a, &a->op.result, may_block, &t->done);
}

static void
document_done(struct apicall *a, int rc)
{
	struct codeq_task *const t = a->part;

	op_unpin(&a->op);
	if (!rc && (t->done.n == 0 || t->done.p[0] != '{' || !memmem(t->done.p, t->done.n, "\"task\"", 6)))
		t->done = (struct slice){ 0 }; /* of another API, or without a result */
	end(a, rc);
}

static void
result_looked(struct apicall *a)
{
	struct codeq_task *const t = a->part;

	if (a->op.rc == 0)
		apicall_try(a, read_document, document_done);
	else if (a->op.rc != SLU_ENOTFOUND && a->op.rc != SLU_ETIMEOUT)
		end(a, a->op.rc);
	else if (++t->lane < broker_lanes(a->api->broker))
		look_for_result(a);
	else
		end(a, 0);
}

static void
look_for_result(struct apicall *a)
{
	begin_op(a, OP_RESULT, (struct slice){ 0 });
	apicall_run(a, result_looked);
}

static void
awaited(struct apicall *a)
{
	if (a->op.rc == 0)
		apicall_try(a, read_document, document_done);
	else
		end(a, a->op.rc);
}

/* --- start -------------------------------------------------------------------- */

void
codeq_find(struct codeq_task *t, struct apicall *a, struct slice id, void (*then)(struct apicall *a))
{
	*t = (struct codeq_task){ .id = codeq_id(id), .then = then };
	a->part = t;
	if (t->id)
		look(a);
	else
		then(a);
}

void
codeq_await(struct codeq_task *t, struct apicall *a, slu_time wait, void (*then)(struct apicall *a))
{
	t->then = then;
	a->part = t;
	begin_op(a, OP_RESULT, t->m.queue);
	a->op.wait = wait;
	if (wait > 0)
		a->x->gone = apicall_gone;
	apicall_run(a, awaited);
}
