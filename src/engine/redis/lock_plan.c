/*
 * lock_plan.c - which call a verb of lock keys takes, and what their waiters are told.
 *
 * A key is judged here as far as that needs no server; where there is no queue there is no
 * key either, and it is answered as such.
 */
#include "engine/redis/redis_in.h"

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

static int
check_key(const struct op *op, struct slu_err *err)
{
	const struct op_lock *q = &op->lock;
	struct slice queue;
	uint64_t id;

	if (q->name.n > LOCK_NAME_MAX)
		return slu_fail(err, SLU_EINVAL, "an attachment's name has at most %d bytes",
				LOCK_NAME_MAX);
	if (q->owner.n > LOCK_OWNER_MAX)
		return slu_fail(err, SLU_EINVAL, "an owner has at most %d bytes", LOCK_OWNER_MAX);
	if (!redis_lock_of_message(op))
		return q->key.n > 0 && q->key.n <= LOCK_KEY_MAX
			       ? 0
			       : slu_fail(err, SLU_EINVAL, "a lock key has 1 to %d bytes", LOCK_KEY_MAX);
	if (!lock_key_of_message(q->key, &queue, &id) || !slice_eq(queue, op->queue))
		return slu_fail(err, SLU_EINVAL, "key %.*s is not the state of a message of queue %.*s",
				(int)q->key.n, q->key.p, (int)op->queue.n, op->queue.p);
	return 0;
}

/* The rest of a document that is put is not its maker's to say. */
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
	m->key = redis_lock_of_message(op) ? (struct slice){ 0 } : op->lock.key;
	m->idem = op->lock.name;
	if (redis_lock_of_message(op))
		(void)lock_key_of_message(op->lock.key, &queue, &m->id);
	return message_check(m, err);
}

/* Of a key that nobody knows. */
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
	if (q->holder)
		q->holder[0] = '\0';
}

static int
check(struct op *op, struct slu_err *err)
{
	int rc = op->verb == OP_KEYS ? 0 : check_key(op, err);

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

/* ---- What can be had ---- */

void
redis_tell_freed(struct redis *r, const struct rqueue *q, const redisReply *keys)
{
	for (size_t i = 0; r->outer.freed && i < keys->elements; i++)
		r->outer.freed(r->outer.ready_arg, slice_of(q->space),
			       (struct slice){ keys->element[i]->str, (size_t)keys->element[i]->len });
}

bool
redis_hear_freed(struct redis *r, const char *notice)
{
	const char *slash = strchr(notice, '/'), *gap = strchr(notice, ' ');

	if (!slash || !gap)
		return false;
	if (r->outer.freed)
		r->outer.freed(r->outer.ready_arg, (struct slice){ notice, (size_t)(slash - notice) },
			       slice_of(gap + 1));
	return true;
}
