#include "api/lockd/txn.h"

bool
lockd_txn_is_brought(const struct lockd_xid *txn)
{
	return !lockd_xid_is_zero(txn) && !lockd_txn_is_ours(txn);
}

bool
lockd_txn_check(struct apicall *a, const struct lockd_xid *txn)
{
	if (lockd_xid_is_zero(txn) || !lockd_txn_is_ours(txn))
		return true;
	return lockd_reject(a, LOCKD_TXN_CONFLICT, NULL);
}

/* No client can name it: a leading dot is reserved. */
#define TXN_NAMESPACE ".txn"

static void
begin(struct apicall *a, struct lockd_txn_lock *t, const struct lockd_xid *txn, enum op_verb verb)
{
	apicall_op(a, &t->op, verb, SLICE(TXN_NAMESPACE), SLICE(LOCK_QUEUE));
	t->op.lock.key = slice_of(lockd_xid_text(txn, t->key));
	t->op.lock.if_version = -1;
	t->txn = *txn;
	a->ops = &t->op;
	a->n_ops = 1;
	a->part = t;
}

static void
done(struct apicall *a)
{
	struct lockd_txn_lock *const t = a->part;

	a->ops = t->ops;
	a->n_ops = t->n_ops;
	t->then(a);
}

void
lockd_txn_take(struct apicall *a, struct lockd_txn_lock *t, const struct lockd_xid *txn, slu_time ttl,
	       void (*then)(struct apicall *a))
{
	t->ops = a->ops;
	t->n_ops = a->n_ops;
	t->then = then;
	begin(a, t, txn, OP_ACQUIRE);
	t->op.lock.holder = SLICE("sluiced");
	t->op.lock.ttl = ttl;
	memcpy(t->op.lock.txn, txn->b, LOCKD_XID);
	apicall_run_own(a, done);
}

void
lockd_txn_refuse(struct apicall *a, const struct lockd_txn_lock *t)
{
	if (t->op.lock.why == LOCK_HELD)
		lockd_refuse_code(call_of(a->x), LOCKD_TXN_CONFLICT, NULL);
	else
		lockd_lock_refuse(a, &t->op);
}

/* The lock was found: extends it, or releases it. */
static void
found(struct apicall *a)
{
	struct lockd_txn_lock *const t = a->part;
	const uint64_t token = t->op.lock.token;

	if (t->op.rc || token == 0) {
		done(a);
		return;
	}
	begin(a, t, &t->txn, t->verb);
	t->op.lock.token = t->op.lock.fence = token;
	t->op.lock.ttl = t->ttl;
	t->op.lock.rollback = t->op.lock.undo = true; /* of a release: the key is not remembered */
	memcpy(t->op.lock.txn, t->txn.b, LOCKD_XID);
	apicall_run_own(a, done);
}

static void
find(struct apicall *a, struct lockd_txn_lock *t, const struct lockd_xid *txn,
     void (*then)(struct apicall *a))
{
	t->ops = a->ops;
	t->n_ops = a->n_ops;
	t->then = then;
	begin(a, t, txn, OP_DESCRIBE);
	t->op.lock.held_by = t->holder;
	apicall_run_own(a, found);
}

void
lockd_txn_keep(struct apicall *a, struct lockd_txn_lock *t, const struct lockd_xid *txn, slu_time ttl,
	       void (*then)(struct apicall *a))
{
	t->verb = OP_KEEPALIVE;
	t->ttl = ttl;
	find(a, t, txn, then);
}

void
lockd_txn_drop(struct apicall *a, struct lockd_txn_lock *t, const struct lockd_xid *txn,
	       void (*then)(struct apicall *a))
{
	t->verb = OP_RELEASE;
	find(a, t, txn, then);
}
