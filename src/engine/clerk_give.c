/*
 * clerk_give.c - what comes from another shard is accepted, or never will be: V8 and V9 of
 * engine/move.h.
 */
#include "engine/clerk_in.h"

#include "base/limit.h"
#include "engine/move_keys.h"

#include <assert.h>
#include <inttypes.h>

/* Nothing of a batch stays when it cannot be accepted whole: what was given might be settled
 * before it is given again. Keys and results that are known twice do no harm. */
static void
take_back(struct clerk *k, struct op *op, uint32_t n)
{
	while (n-- > 0) {
		const struct op_put *put = &op->puts[n];
		struct change c = { .kind = CHANGE_RESTORE, .id = put->m.id };

		if (put->stood.kind != MOVE_MESSAGE || !put->taken)
			continue;
		ledger_undo(k->ledger, &c);
		if (k->ops->undo_message)
			k->ops->undo_message(k, &c);
	}
}

static int
check_stood(const struct op_put *put, struct slu_err *err)
{
	const struct op_stood *s = &put->stood;

	if (put->m.id == 0 || s->state == MSG_LEASED || s->state < MSG_READY || s->state > MSG_DEAD)
		return slu_fail(err, SLU_EINVAL, "a message without an id, or in a state that "
						 "does not move");
	return message_check(&put->m, err);
}

/* What was due there is due here: the clock of the giver may be ahead of ours, and what comes
 * to its key from now on is behind it. */
static slu_time
due_here(const struct clerk *k, const struct op_put *put)
{
	const bool was_due = put->stood.state == MSG_READY || put->stood.state == MSG_HELD;

	return was_due && put->m.due > k->now ? k->now : put->m.due;
}

/* What is there already is left as it is; but if it is set aside, it may go soon. */
static int
check_kept(const struct clerk *k, const struct op_put *put, struct slu_err *err)
{
	struct ledger_view v;

	ledger_get(k->ledger, ledger_find_any(k->ledger, put->m.id), &v);
	return v.taken ? limit_fail(err, SLU_EBUSY, LIMIT_MOVE, SLU_SEC,
				    "a message of this batch is on its way from here")
		       : 0;
}

static int
give_message(struct clerk *k, uint32_t queue, struct op_put *put, struct slu_err *err)
{
	const struct op_stood *s = &put->stood;
	const struct message *m = &put->m;
	const struct ledger_gift gift = {
		.offer = {
			.id = m->id,
			.key = m->key,
			.idem = m->idem,
			.digest = clerk_digest(k, queue, m),
			.prio = m->prio,
			.max_attempts = m->max_attempts,
			.keep_result = m->keep,
			.where = s->error_size, /* room for it */
		},
		.due = due_here(k, put),
		.expires = m->expires,
		.state = s->state,
		.flags = s->flags,
		.reason = s->reason,
		.attempts = s->attempts,
		.failures = s->failures,
	};
	struct change c;
	int rc;

	rc = check_stood(put, err);
	if (!rc)
		rc = ledger_give(k->ledger, queue, &gift, k->now, &c);
	if (rc == SLU_EEXISTS)
		return check_kept(k, put, err);
	if (rc)
		return rc;
	put->m.number = c.number;
	c.error = 0;
	rc = k->ops->keep_given(k, &put->m, &c, (struct slice){ s->error, s->error_size }, err);
	if (rc)
		return rc;
	rc = ledger_apply(k->ledger, &c);
	assert(rc == 0); /* L9 of the ledger */
	put->taken = true;
	return 0;
}

static int
give_keys(struct clerk *k, uint32_t queue, const struct op_put *put, struct slu_err *err)
{
	struct slice rest = put->m.payload;
	struct move_key key;
	uint32_t n;
	int rc;

	rc = move_keys_count(rest, &n, err);
	while (!rc && move_key_next(&rest, &key)) {
		struct change c;

		rc = ledger_remember_key(k->ledger, queue, key.text, key.id, key.until, k->now, &c);
		if (!rc && c.kind != CHANGE_NONE)
			rc = clerk_carry_out(k, &c, key.text, err);
	}
	return rc;
}

static int
give_result(struct clerk *k, uint32_t queue, const struct op_put *put, struct slu_err *err)
{
	struct change c;
	int rc;

	rc = ledger_keep_result(k->ledger, queue, put->m.id, put->m.due, k->now, &c);
	if (rc || c.kind == CHANGE_NONE)
		return rc;
	return clerk_carry_out(k, &c, put->m.payload, err);
}

static bool
is_lock_aside(const struct clerk *k, const struct lock_gift *gift)
{
	const struct lock *lock = locks_find(k->locks, gift->space, gift->key);

	return lock && locks_is_aside(k->locks, lock);
}

/* The document first, then the key that names it. Behind a message that was there before it
 * is left out. */
static int
give_state(struct clerk *k, const struct op_put *put, const struct op_put *message,
	   struct slu_err *err)
{
	const struct message *m = &put->m;
	const struct lock_gift gift = {
		.space = m->key.n ? m->space : (struct slice){ 0 },
		.key = m->key,
		.id = m->key.n ? 0 : m->id,
		.name = m->idem,
		.etag = m->number,
		.version = put->stood.version,
		.updated = m->due,
		.hidden = put->stood.flags & MOVE_HIDDEN,
	};
	struct lock_change c;
	uint64_t where;
	int rc;

	if (m->key.n > LOCK_KEY_MAX || m->idem.n > LOCK_NAME_MAX || !m->id || !m->number ||
	    (gift.id && (!message || message->m.id != m->id)))
		return slu_fail(err, SLU_EINVAL, "a document of nothing that is in the batch");
	if (gift.id && !message->taken)
		return 0;
	if (!gift.id && is_lock_aside(k, &gift))
		return limit_fail(err, SLU_EBUSY, LIMIT_MOVE, SLU_SEC,
				  "a key of this batch is on its way from here");
	rc = locks_give(k->locks, &gift, &c);
	if (rc || !c.next)
		return rc;
	rc = k->ops->keep_document(k, m, &where, err);
	if (rc) {
		locks_undo(&c);
		return rc;
	}
	lock_doc(c.next, gift.name)->where = where;
	rc = clerk_carry_out_lock(k, &c, err);
	if (rc)
		k->ops->drop(k, where);
	return rc;
}

static int
give_one(struct clerk *k, uint32_t queue, struct op_put *put, const struct op_put *message,
	 struct slu_err *err)
{
	switch (put->stood.kind) {
	case MOVE_MESSAGE:
		return give_message(k, queue, put, err);
	case MOVE_REMEMBERED:
		return give_keys(k, queue, put, err);
	case MOVE_RESULT:
		return give_result(k, queue, put, err);
	case MOVE_STATE:
		return give_state(k, put, message, err);
	default:
		return slu_fail(err, SLU_EINVAL, "a row of kind %d", (int)put->stood.kind);
	}
}

static int
give_all(struct clerk *k, struct op *op, uint32_t queue, struct slu_err *err)
{
	const struct op_put *message = NULL;

	for (uint32_t i = 0; i < op->n_puts; i++) {
		struct op_put *put = &op->puts[i];
		int rc;

		put->m.space = put->m.space.n ? put->m.space : op->space;
		put->m.queue = put->m.queue.n ? put->m.queue : op->queue;
		put->taken = false;
		rc = give_one(k, queue, put, message, err);
		message = put->stood.kind == MOVE_MESSAGE ? put : message;
		op->failed = i;
		if (rc) {
			take_back(k, op, i);
			op->move.given = 0;
			return rc;
		}
		op->move.given += put->taken;
	}
	return 0;
}

/* The queue that a batch is for, and whether it is known. */
static int
meet_batch(struct clerk *k, const struct op *op, const struct change_move *say, uint32_t *queue,
	   enum ledger_batch_is *is, struct slu_err *err)
{
	int rc = 0;

	if (!say->batch || !say->shard[0] || !memchr(say->shard, 0, MOVE_SHARD))
		return slu_fail(err, SLU_EINVAL, "a batch has a number, and comes from a shard");
	if (*queue == SLAB_NONE)
		rc = ledger_queue_open_as(k->ledger, op->space, op->queue, &op->as, queue);
	if (rc)
		return slu_fail(err, (enum slu_code)rc, "queue %.*s: %s", (int)op->queue.n,
				op->queue.p, slu_err_row(rc)->text);
	*is = ledger_batch_is(k->ledger, *queue, say);
	return 0;
}

int
clerk_refuse(struct clerk *k, struct op *op, uint32_t queue, struct slu_err *err)
{
	const struct change_move say = { .batch = op->move.batch, .shard = op->move.peer };
	enum ledger_batch_is is;
	struct change c;
	int rc = meet_batch(k, op, &say, &queue, &is, err);

	if (!rc)
		rc = ledger_refuse(k->ledger, queue, &say, k->now, &c);
	if (!rc && c.kind != CHANGE_NONE)
		rc = clerk_carry_out(k, &c, slice_of(say.shard), err);
	op->move.given = !rc && is == LEDGER_BATCH_GIVEN;
	return rc;
}

int
clerk_give(struct clerk *k, struct op *op, uint32_t queue, struct slu_err *err)
{
	const struct change_move say = { .batch = op->move.batch, .shard = op->move.peer };
	enum ledger_batch_is is;
	struct change c;
	int rc = meet_batch(k, op, &say, &queue, &is, err);

	if (rc || is == LEDGER_BATCH_GIVEN)
		return rc;
	if (is == LEDGER_BATCH_REFUSED)
		return slu_fail(err, SLU_EMOVED, "batch %" PRIu64 " of shard %s was refused",
				say.batch, say.shard);
	if (op->epoch && clerk_is_elsewhere(k, op, queue, op->elsewhere)) /* V12 */
		return slu_fail(err, SLU_EMOVED, "queue %.*s lives on another shard, or has since",
				(int)op->queue.n, op->queue.p);
	rc = give_all(k, op, queue, err);
	if (rc)
		return rc;
	rc = ledger_given(k->ledger, queue, &say, op->move.counter, k->now, &c);
	if (!rc)
		rc = clerk_carry_out(k, &c, slice_of(say.shard), err);
	if (rc)
		take_back(k, op, op->n_puts);
	return rc;
}
