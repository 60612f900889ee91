#include "api/lockd_txn.h"

#include <stdio.h>

bool
lockd_txn_is_brought(const struct lockd_xid *txn)
{
	return !lockd_xid_is_zero(txn) && !lockd_txn_is_ours(txn);
}

bool
lockd_txn_check(struct ask *a, const struct lockd_xid *txn)
{
	if (lockd_xid_is_zero(txn) || !lockd_txn_is_ours(txn))
		return true;
	lockd_refuse_code(a->call, LOCKD_TXN_CONFLICT, NULL);
	return false;
}

static void
begin(struct ask *a, struct lockd_txn_lock *t, struct slice space, const struct lockd_xid *txn,
      enum op_verb verb)
{
	char text[LOCKD_XID_TEXT];

	(void)snprintf(t->key, sizeof t->key, "~txn/%s", lockd_xid_text(txn, text)); /* fits */
	ask_op(a, &t->op, verb, space, SLICE(LOCK_QUEUE));
	t->op.lock.key = slice_of(t->key);
	t->op.lock.if_version = -1;
	t->txn = *txn;
	a->ops = &t->op;
	a->n_ops = 1;
	a->part = t;
}

static void
done(struct ask *a)
{
	struct lockd_txn_lock *const t = a->part;

	a->ops = t->ops;
	a->n_ops = t->n_ops;
	t->then(a);
}

void
lockd_txn_take(struct ask *a, struct lockd_txn_lock *t, struct slice space,
	       const struct lockd_xid *txn, slu_time ttl, void (*then)(struct ask *a))
{
	t->ops = a->ops;
	t->n_ops = a->n_ops;
	t->then = then;
	begin(a, t, space, txn, OP_ACQUIRE);
	t->op.lock.owner = SLICE("sluiced");
	t->op.lock.ttl = ttl;
	memcpy(t->op.lock.txn, txn->b, LOCKD_XID);
	ask_run(a, done);
}

void
lockd_txn_refuse(struct ask *a, const struct lockd_txn_lock *t)
{
	if (t->op.lock.why == LOCK_HELD)
		lockd_refuse_code(a->call, LOCKD_TXN_CONFLICT, NULL);
	else
		lockd_lock_refuse(a, &t->op);
}

/* The lock is found: extend it, or let it go. */
static void
found(struct ask *a)
{
	struct lockd_txn_lock *const t = a->part;
	const uint64_t token = t->op.lock.token;
	const struct slice space = t->op.space;

	if (t->op.rc || token == 0) {
		done(a);
		return;
	}
	begin(a, t, space, &t->txn, t->verb);
	t->op.lock.token = t->op.lock.fence = token;
	t->op.lock.ttl = t->ttl;
	t->op.lock.rollback = t->op.lock.undo = true; /* of a release: the key is not remembered */
	memcpy(t->op.lock.txn, t->txn.b, LOCKD_XID);
	ask_run(a, done);
}

static void
find(struct ask *a, struct lockd_txn_lock *t, struct slice space, const struct lockd_xid *txn,
     void (*then)(struct ask *a))
{
	t->ops = a->ops;
	t->n_ops = a->n_ops;
	t->then = then;
	begin(a, t, space, txn, OP_DESCRIBE);
	t->op.lock.holder = t->holder;
	ask_run(a, found);
}

void
lockd_txn_keep(struct ask *a, struct lockd_txn_lock *t, struct slice space,
	       const struct lockd_xid *txn, slu_time ttl, void (*then)(struct ask *a))
{
	t->verb = OP_KEEPALIVE;
	t->ttl = ttl;
	find(a, t, space, txn, then);
}

void
lockd_txn_drop(struct ask *a, struct lockd_txn_lock *t, struct slice space,
	       const struct lockd_xid *txn, void (*then)(struct ask *a))
{
	t->verb = OP_RELEASE;
	find(a, t, space, txn, then);
}
