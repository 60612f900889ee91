/*
 * lock_plan.c - plans the call of a verb of lock keys, and reports keys that are free.
 *
 * Checks that need no server are done here. If the queue does not exist, no key exists, and
 * the op is answered without a call.
 */
#include "engine/redis/redis_private.h"

#include <assert.h>

static void
begin(struct op *op)
{
	struct op_lock *q = &op->lock;

	q->why = LOCK_OK;
	q->more = false;
	q->record = q->payload = (struct op_ref){ 0 };
	op->n_keys = 0;
	op->count = 0;
}

/* Fills in the fields of a document that the caller does not decide. */
static int
fill_document(struct op *op, struct slu_err *err)
{
	struct message *m = &op->puts[0].m;
	struct slice queue;

	assert(op->n_puts == 1);
	m->id = m->number = 0;
	m->accepted = m->due = m->expires = m->keep = 0;
	m->prio = 0;
	m->max_attempts = 0;
	m->space = op->space;
	m->queue = op->queue;
	m->key = op->lock.key;
	m->idem = op->lock.name;
	if (redis_lock_of_message(op)) {
		(void)lock_key_of_message(op->lock.key, &queue, &m->id);
		m->key = (struct slice){ 0 };
	}
	return message_check(m, err);
}

/* Answers for a key that does not exist. */
static void
answer_unknown(struct redis *r, struct op *op)
{
	static const bool looks[OP_VERBS] = {
		[OP_STATE_GET] = true,
		[OP_DESCRIBE] = true,
		[OP_ATTACHMENTS] = true,
		[OP_KEYS] = true,
	};
	struct op_lock *q = &op->lock;

	q->version = q->etag = 0;
	q->updated = q->until = 0;
	if (!looks[op->verb] || (q->token && op->verb != OP_DESCRIBE && op->verb != OP_KEYS)) {
		redis_lock_refuse(r, op, LOCK_NONE);
		return;
	}
	if (op->verb != OP_DESCRIBE)
		return;
	q->token = 0;
	q->hidden = false;
	memset(q->txn, 0, LOCK_TXN);
	if (q->held_by)
		q->held_by[0] = '\0';
}

static int
check(struct op *op, struct slu_err *err)
{
	int rc = op->verb == OP_KEYS ? 0 : op_check_lock(op, err);

	if (!rc && op->verb == OP_STATE_PUT)
		rc = fill_document(op, err);
	return rc;
}

int
redis_plan_lock(struct redis *r, struct op *op, struct slu_err *err)
{
	uint32_t h;
	int rc;

	begin(op);
	rc = check(op, &r->why);
	if (rc) {
		op_fail(op, rc, &r->why);
		return 0;
	}
	if (redis_lock_of_message(op) && (op->verb == OP_ACQUIRE || op->verb == OP_KEEPALIVE)) {
		redis_lock_refuse(r, op, LOCK_OF_MESSAGE);
		return 0;
	}
	rc = op->verb == OP_ACQUIRE ? redis_make_queue(r, op, &h, err)
				    : redis_find_queue(r, op, op->space, op->queue, &h, err);
	if (rc)
		return rc;
	if (h == SLAB_NONE)
		answer_unknown(r, op);
	else if (!rcall_add(r, &redis_lock_verbs[op->verb], op, h))
		return slu_fail(err, SLU_ENOMEM, "no memory for a call");
	return 0;
}

/* ---- Free keys ---- */

void
redis_report_freed(struct redis *r, const struct rqueue *q, const redisReply *keys)
{
	for (size_t i = 0; r->outer.freed && i < keys->elements; i++)
		r->outer.freed(r->outer.ready_arg, slice_of(q->space),
			       (struct slice){ keys->element[i]->str, (size_t)keys->element[i]->len });
}

bool
redis_notice_freed(struct redis *r, const char *notice)
{
	const char *slash = strchr(notice, '/'), *gap = strchr(notice, ' ');

	if (!slash || !gap)
		return false;
	if (r->outer.freed)
		r->outer.freed(r->outer.ready_arg, (struct slice){ notice, (size_t)(slash - notice) },
			       slice_of(gap + 1));
	return true;
}
