/*
 * unlock.c - an OP_FINISH that releases a lock key: LOCK-13 of core/locks/locks.h.
 *
 *      check ──> puts ──> document, room for the key ──> ack or nack ──┬──> the record of the key: it is free
 *                                                                      └──> refused: the puts are undone
 *
 * Neither an ack nor the record of a key can be undone, so what comes last must not fail: its room is reserved before.
 */
#include "engine/ledger/ledgerengine_private.h"

#include "base/limit.h"

#include <assert.h>

static struct lock_ref
ref_of(const struct op *op)
{
	const struct op_unlock *const u = &op->unlock;
	struct lock_ref ref = { .space = op->space, .key = u->key, .token = u->token, .fence = u->fence, .if_version = -1 };

	memcpy(ref.txn, u->txn, LOCK_TXN);
	return ref;
}

static int
refuse(const struct op *op, int rc, enum lock_why why, struct slu_err *err)
{
	const struct slice key = op->unlock.key;

	return why == LOCK_OK ? rc : slu_fail(err, (enum slu_code)rc, "key %.*s: %s", (int)key.n, key.p, op_lock_reason(why));
}

static int
check_home(const struct ledgerengine *k, const struct op *op, struct slu_err *err)
{
	const struct slice key = op->unlock.key;
	struct engine_home home = { .here = true };
	const int rc = k->home ? k->home(k->home_arg, op->space, SLICE(LOCK_QUEUE), &home, err) : 0;

	if (rc || home.here)
		return rc;
	return slu_fail(err, SLU_ETOGETHER, "key %.*s is not on the shard of the message; nothing was done", (int)key.n, key.p);
}

int
ledgerengine_unlock_check(struct ledgerengine *k, const struct op *op, struct slu_err *err)
{
	const struct lock_ref ref = ref_of(op);
	const struct lock *const lock = locks_find(k->locks, op->space, op->unlock.key);
	enum lock_why why;
	int rc;

	if (!ref.key.n)
		return 0;
	rc = check_home(k, op, err);
	if (rc)
		return rc;
	if (lock && locks_is_aside(k->locks, lock)) /* LOCK-11 */
		return limit_fail(err, SLU_EBUSY, LIMIT_MOVE, 0, "key %.*s is being moved", (int)ref.key.n, ref.key.p);
	rc = locks_check(k->locks, &ref, false, op->route.arrived, &why);
	return refuse(op, rc, why, err);
}

/* The state is the record of a message. */
static struct message
document(const struct ledgerengine *k, const struct op *op, uint64_t etag)
{
	return (struct message){
		.id = etag,
		.number = etag,
		.accepted = k->now,
		.due = k->now,
		.space = op->space,
		.queue = SLICE(LOCK_QUEUE),
		.key = op->unlock.key,
		.type = SLICE("application/json"),
		.payload = op->unlock.state,
		.payload_size = op->unlock.state.n,
	};
}

static int
keep_state(struct ledgerengine *k, const struct op *op, struct lock_change *c, struct slu_err *err)
{
	const struct message m = document(k, op, c->number);
	int rc;

	rc = message_check(&m, err);
	if (!rc)
		rc = ledgerengine_limit_document(k, &m, err);
	return rc ? rc : k->ops->keep_document(k, &m, &lock_doc(c->next, (struct slice){ 0 })->where, err);
}

static void
drop_state(struct ledgerengine *k, const struct op *op, struct lock_change *c)
{
	if (op->unlock.state.n)
		k->ops->drop(k, lock_doc(c->next, (struct slice){ 0 })->where);
	locks_undo(c);
}

int
ledgerengine_unlock_reserve(struct ledgerengine *k, const struct op *op, struct lock_change *c, struct slu_err *err)
{
	const uint64_t etag = op->unlock.state.n ? ledger_counter(k->ledger) + 1 : 0;
	const struct lock_ref ref = ref_of(op);
	enum lock_why why;
	int rc;

	c->next = NULL;
	if (!ref.key.n)
		return 0;
	rc = locks_finish(k->locks, &ref, etag, op->route.arrived, c, &why);
	if (rc)
		return refuse(op, rc, why, err);
	rc = etag ? keep_state(k, op, c, err) : 0;
	if (rc) {
		locks_undo(c);
		return rc;
	}
	rc = k->ops->reserve_lock ? k->ops->reserve_lock(k, c, err) : 0;
	if (rc)
		drop_state(k, op, c);
	else
		ledger_set_counter(k->ledger, c->number);
	return rc;
}

void
ledgerengine_unlock_end(struct ledgerengine *k, const struct op *op, struct lock_change *c, bool done)
{
	int rc;

	if (!c->next)
		return;
	if (!done) {
		drop_state(k, op, c);
		return;
	}
	rc = k->ops->keep_lock(k, c, NULL);
	assert(rc == 0); /* reserved */
	(void)rc;
	locks_apply(k->locks, c);
	ledgerengine_report_freed(k);
}
