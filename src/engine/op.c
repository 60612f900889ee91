#include "engine/op.h"

#include "engine/engine.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	SHOWN_KEY = 100 /* bytes: a longer idempotency key is not part of an error's text */
};

static const char *const verb_names[OP_VERBS] = {
	[OP_ENQUEUE] = "enqueue",
	[OP_CLAIM] = "claim",
	[OP_RETURN] = "return",
	[OP_ACK] = "ack",
	[OP_NACK] = "nack",
	[OP_EXTEND] = "extend",
	[OP_REDRIVE] = "redrive",
	[OP_DELETE] = "delete",
	[OP_ASIDE] = "aside",
	[OP_GET] = "get",
	[OP_PEEK] = "peek",
	[OP_WATCH] = "watch",
	[OP_LIST] = "list",
	[OP_RESULT] = "result",
	[OP_STATS] = "stats",
	[OP_TOPICS] = "topics",
	[OP_PURGE] = "purge",
	[OP_PAUSE] = "pause",
	[OP_POLICY_GET] = "policy_get",
	[OP_POLICY_SET] = "policy_set",
	[OP_FORGET] = "forget",
	[OP_BACKUP] = "backup",
	[OP_SHARD] = "shard",
	[OP_MOVE] = "move",
	[OP_ACQUIRE] = "acquire",
	[OP_KEEPALIVE] = "keepalive",
	[OP_RELEASE] = "release",
	[OP_STATE_GET] = "state_get",
	[OP_STATE_PUT] = "state_put",
	[OP_STATE_REMOVE] = "state_remove",
	[OP_STATE_META] = "state_meta",
	[OP_DESCRIBE] = "describe",
	[OP_KEYS] = "keys",
	[OP_ATTACHMENTS] = "attachments",
};

const char *
op_verb_name(enum op_verb verb)
{
	return verb_names[verb];
}

/* What is claimed and not received goes back. */
static const bool leaves_nothing[OP_VERBS] = {
	[OP_CLAIM] = true,
	[OP_RETURN] = true,
	[OP_GET] = true,
	[OP_PEEK] = true,
	[OP_WATCH] = true,
	[OP_LIST] = true,
	[OP_RESULT] = true,
	[OP_STATS] = true,
	[OP_TOPICS] = true,
	[OP_POLICY_GET] = true,
	[OP_ACQUIRE] = true,
	[OP_STATE_GET] = true,
	[OP_DESCRIBE] = true,
	[OP_KEYS] = true,
	[OP_ATTACHMENTS] = true,
};

bool
op_changes(enum op_verb verb)
{
	return !leaves_nothing[verb];
}

void
op_init(struct op *op, enum op_verb verb, struct slice space, struct slice queue,
	void (*done)(struct op *op), void *owner)
{
	memset(op, 0, sizeof *op);
	op->verb = verb;
	op->space = space;
	op->queue = queue;
	op->done = done;
	op->owner = owner;
	op->waiter = SLAB_NONE;
	op->lock.if_version = -1;
}

void
op_begin_put(struct op_put *put)
{
	if (put->own_id)
		put->m.id = put->own_id;
	if (put->undated)
		put->m.due = 0;
	put->own_id = 0;
	put->undated = put->m.due == 0;
	put->existed = false;
	put->m.number = 0;
}

void
op_watch(struct op *op, uint64_t head)
{
	if (head == op->id)
		op_fail(op, SLU_ETIMEOUT, NULL);
	op->id = head;
}

bool
op_finds_nothing(const struct op *op)
{
	switch (op->verb) {
	case OP_CLAIM:
	case OP_PEEK:
		return !op->rc && op->n_rows == 0;
	case OP_GET:
	case OP_RESULT:
		return op->rc == SLU_ENOTFOUND;
	case OP_WATCH:
		return op->id == 0;
	case OP_KEYS:
		return !op->rc && op->n_keys == 0;
	case OP_STATS:
	case OP_LIST:
	case OP_PURGE:
	case OP_PAUSE:
	case OP_POLICY_GET:
	case OP_POLICY_SET:
		return true; /* there is more of it */
	default:
		return false;
	}
}

void
op_fail(struct op *op, int rc, const struct slu_err *err)
{
	op->rc = rc;
	if (err && err->code == (enum slu_code)rc)
		op->err = *err;
	else
		(void)slu_fail(&op->err, (enum slu_code)rc, "%s", slu_err_row(rc)->text);
}

static void
copy_name(char out[static NAME_TEXT], const char *name)
{
	(void)snprintf(out, NAME_TEXT, "%s", name); /* always fits */
}

void
op_name_queue(struct op_queue *q, const char *space, const char *name,
	      const char *space_shown, const char *shown)
{
	copy_name(q->space, space);
	copy_name(q->name, name);
	copy_name(q->space_shown, space_shown ? space_shown : space);
	copy_name(q->shown, shown ? shown : name);
}

int
op_fail_moved(const struct op *op, struct slu_err *err)
{
	return slu_fail(err, SLU_ECONFLICT,
			"queue %.*s has been moved between shards; its shard keeps the number of the "
			"move, and with it the queue",
			(int)op->queue.n, op->queue.p);
}

int
op_fail_not_empty(const struct op *op, uint64_t messages, struct slu_err *err)
{
	return slu_fail(err, SLU_ENOTEMPTY,
			"queue %.*s holds %" PRIu64 " messages; purge it and its dead letters, or "
			"delete it with force",
			(int)op->queue.n, op->queue.p, messages);
}

int
op_fail_key(const struct message *m, struct slu_err *err)
{
	if (m->idem.n > SHOWN_KEY)
		return slu_fail(err, SLU_EIDEM, "queue %.*s: %s", (int)m->queue.n, m->queue.p,
				slu_err_row(SLU_EIDEM)->text);
	return slu_fail(err, SLU_EIDEM, "queue %.*s: another payload was sent under the "
					"idempotency key %.*s",
			(int)m->queue.n, m->queue.p, (int)m->idem.n, m->idem.p);
}

static const char *const reasons[LOCK_WHYS] = {
	[LOCK_HELD] = "it is leased",
	[LOCK_KNOWN_KEY] = "it is there already",
	[LOCK_NONE] = "it is not held by this lease",
	[LOCK_EXPIRED] = "the lease has ended",
	[LOCK_FENCE] = "the fencing token is not that of the lease",
	[LOCK_TXN_MISSING] = "the transaction must be said",
	[LOCK_TXN_OTHER] = "the lease has another transaction",
	[LOCK_VERSION] = "it has another version",
	[LOCK_ETAG] = "its state has another etag",
	[LOCK_OF_MESSAGE] = "it is leased with its message: claim that, or extend it",
};

const char *
op_lock_reason(enum lock_why why)
{
	return reasons[why];
}

bool
op_unwant(struct op *op, enum op_unwanted why)
{
	int wanted = OP_WANTED;
	int none = OP_CANCEL_NONE;

	if (why == OP_CANCELED)
		atomic_store(&op->unwanted, why);
	else
		(void)atomic_compare_exchange_strong(&op->unwanted, &wanted, why);
	return atomic_compare_exchange_strong(&op->canceled, &none, OP_CANCEL_ASKED);
}

void
op_unpin(struct op *op)
{
	for (uint32_t i = 0; i < op->n_rows; i++) {
		engine_unpin(op->engine, &op->rows[i].record);
		engine_unpin(op->engine, &op->rows[i].payload);
		engine_unpin(op->engine, &op->rows[i].error);
		shared_text_unref(op->rows[i].owner);
		op->rows[i].owner = NULL;
	}
	for (uint32_t i = 0; i < op->n_keys; i++) {
		engine_unpin(op->engine, &op->keys[i].record);
		engine_unpin(op->engine, &op->keys[i].payload);
	}
	engine_unpin(op->engine, &op->lock.record);
	engine_unpin(op->engine, &op->lock.payload);
	engine_unpin(op->engine, &op->result);
}
