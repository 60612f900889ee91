/*
 * give.c - GIVE and REFUSE: a batch of another shard is accepted once, or never (MOVE-8, MOVE-9).
 */
#include "engine/ledger/move/move_private.h"

#include "base/limit.h"
#include "engine/move_keys.h"

#include <assert.h>
#include <inttypes.h>

/* If a batch cannot be accepted whole, nothing of it stays: a message of it might be settled before
 * the batch is given again. Keys and results that are known twice do no harm. */
static void
take_back(struct ledgerengine *k, struct op *op, uint32_t n)
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

/* A message that was due there is due here, even if the clock of the giver is ahead: messages that
 * come to its key from now on are behind it. */
static slu_time
due_here(const struct ledgerengine *k, const struct op_put *put)
{
	const bool was_due = put->stood.state == MSG_READY || put->stood.state == MSG_HELD;

	return was_due && put->m.due > k->now ? k->now : put->m.due;
}

/* A message that is here already stays as it is; if it is set aside, it may leave soon. */
static int
check_kept(const struct ledgerengine *k, const struct op_put *put, struct slu_err *err)
{
	struct ledger_view v;

	ledger_get(k->ledger, ledger_find_any(k->ledger, put->m.id), &v);
	return v.taken ? limit_fail(err, SLU_EBUSY, LIMIT_MOVE, SLU_SEC,
				    "a message of this batch is being moved away")
		       : 0;
}

static int
give_message(struct ledgerengine *k, uint32_t queue, struct op_put *put, struct slu_err *err)
{
	const struct op_stood *s = &put->stood;
	const struct message *m = &put->m;
	const struct ledger_gift gift = {
		.offer = {
			.id = m->id,
			.key = m->key,
			.share = m->share,
			.value = m->value,
			.idem = m->idem,
			.digest = ledgerengine_digest(k, queue, m),
			.prio = m->prio,
			.max_attempts = m->max_attempts,
			.keep_result = m->keep,
			.terms = m->terms,
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

	rc = op_check_given(put, err);
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
	assert(rc == 0); /* LEDGER-9 */
	if (k->observe)
		k->observe(k->observe_arg, &c);
	put->taken = true;
	return 0;
}

static int
give_keys(struct ledgerengine *k, uint32_t queue, const struct op_put *put, struct slu_err *err)
{
	struct slice rest = put->m.payload;
	struct move_key key;
	uint32_t n;
	int rc;

	rc = move_keys_count(rest, &n, err);
	while (!rc && move_key_next(&rest, &key)) {
		const struct ledger_idem_key known = { key.text, key.id, key.digest, key.until };
		struct change c;

		rc = ledger_remember_key(k->ledger, queue, &known, k->now, &c);
		if (!rc && c.kind != CHANGE_NONE)
			rc = ledgerengine_carry_out(k, &c, key.text, err);
	}
	return rc;
}

static int
give_result(struct ledgerengine *k, uint32_t queue, const struct op_put *put, struct slu_err *err)
{
	struct change c;
	int rc;

	rc = ledger_keep_result(k->ledger, queue, put->m.id, put->m.due, k->now, &c);
	if (rc || c.kind == CHANGE_NONE)
		return rc;
	return ledgerengine_carry_out(k, &c, put->m.payload, err);
}

static bool
is_lock_aside(const struct ledgerengine *k, const struct lock_gift *gift)
{
	const struct lock *lock = locks_find(k->locks, gift->space, gift->key);

	return lock && locks_is_aside(k->locks, lock);
}

/* Keeps the document, then the key that names it. If its message was here already, the document is
 * left out. */
static int
give_state(struct ledgerengine *k, const struct op_put *put, const struct op_put *message,
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
		return slu_fail(err, SLU_EINVAL, "invalid document in a batch; expected its message before it");
	if (gift.id && !message->taken)
		return 0;
	if (!gift.id && is_lock_aside(k, &gift))
		return limit_fail(err, SLU_EBUSY, LIMIT_MOVE, SLU_SEC,
				  "a key of this batch is being moved away");
	rc = locks_give(k->locks, &gift, &c);
	if (rc || !c.next)
		return rc;
	rc = k->ops->keep_document(k, m, &where, err);
	if (rc) {
		locks_undo(&c);
		return rc;
	}
	lock_doc(c.next, gift.name)->where = where;
	rc = ledgerengine_carry_out_lock(k, &c, err);
	if (rc)
		k->ops->drop(k, where);
	return rc;
}

static int
give_one(struct ledgerengine *k, uint32_t queue, struct op_put *put, const struct op_put *message,
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
		return slu_fail(err, SLU_EINVAL, "invalid kind of row in a batch: %d", (int)put->stood.kind);
	}
}

static int
give_all(struct ledgerengine *k, struct op *op, uint32_t queue, struct slu_err *err)
{
	const struct op_put *message = NULL;

	op_name_puts(op);
	for (uint32_t i = 0; i < op->n_puts; i++) {
		struct op_put *put = &op->puts[i];
		int rc;

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

/* The queue of a batch, and whether the batch is known. */
static int
meet_batch(struct ledgerengine *k, const struct op *op, const struct change_move *say, uint32_t *queue,
	   enum ledger_batch_is *is, struct slu_err *err)
{
	int rc = 0;

	if (*queue == SLAB_NONE)
		rc = ledger_queue_open_as(k->ledger, op->space, op->queue, &op->as, queue);
	if (rc)
		return slu_fail(err, (enum slu_code)rc, "queue %.*s: %s", (int)op->queue.n,
				op->queue.p, slu_err_row(rc)->text);
	*is = ledger_batch_is(k->ledger, *queue, say);
	return 0;
}

int
ledgerengine_refuse(struct ledgerengine *k, struct op *op, uint32_t queue, struct slu_err *err)
{
	const struct change_move say = { .batch = op->move.batch, .shard = op->move.peer };
	enum ledger_batch_is is = LEDGER_BATCH_NEW;
	struct change c;
	int rc = meet_batch(k, op, &say, &queue, &is, err);

	if (!rc)
		rc = ledger_refuse(k->ledger, queue, &say, k->now, &c);
	if (!rc && c.kind != CHANGE_NONE)
		rc = ledgerengine_carry_out(k, &c, slice_of(say.shard), err);
	op->move.given = !rc && is == LEDGER_BATCH_GIVEN;
	return rc;
}

int
ledgerengine_give(struct ledgerengine *k, struct op *op, uint32_t queue, struct slu_err *err)
{
	const struct change_move say = { .batch = op->move.batch, .shard = op->move.peer };
	enum ledger_batch_is is = LEDGER_BATCH_NEW;
	struct change c;
	int rc = meet_batch(k, op, &say, &queue, &is, err);

	if (rc || is == LEDGER_BATCH_GIVEN)
		return rc;
	if (is == LEDGER_BATCH_REFUSED)
		return slu_fail(err, SLU_EMOVED, "batch %" PRIu64 " of shard %s was refused",
				say.batch, say.shard);
	if (op->home.epoch && ledgerengine_is_elsewhere(k, op, queue, op->home.elsewhere)) /* MOVE-12 */
		return slu_fail(err, SLU_EMOVED, "queue %.*s lives on another shard, or has lived there since",
				(int)op->queue.n, op->queue.p);
	rc = give_all(k, op, queue, err);
	if (rc)
		return rc;
	rc = ledger_given(k->ledger, queue, &say, op->move.counter, k->now, &c);
	if (!rc)
		rc = ledgerengine_carry_out(k, &c, slice_of(say.shard), err);
	if (rc)
		take_back(k, op, op->n_puts);
	return rc;
}
