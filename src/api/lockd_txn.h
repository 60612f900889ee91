/*
 * lockd_txn.h - one lease a transaction.
 *
 * A transaction holds one lease: keys and messages are not committed together. So a client may
 * not bring the transaction of another lease. Two kinds of ids are told apart:
 *
 *      made here        by its spelling (lockd_txn_is_ours): it belongs to the lease it was
 *                       made for, so no other lease may have it.
 *      made by a client held by a lock at the reserved key `~txn/<id>` of the namespace, as
 *                       long as the lease that was given under it.
 *
 *      acquire, dequeue        lease granted ──> lockd_txn_take ──> answer, or txn_conflict
 *      keepalive, extend       lease extended ─> lockd_txn_keep ──> answer
 *      release, ack, nack      lease ended ────> lockd_txn_drop ──> answer
 *
 * A lease that ends by itself, or whose holder does not send the transaction, leaves the lock to
 * end by itself, at the same time.
 */
#ifndef API_LOCKD_TXN_H
#define API_LOCKD_TXN_H

#include "api/lockd_lock.h"

/* In the state of an ask that uses it. */
struct lockd_txn_lock {
	struct op op;
	struct lockd_xid txn;
	slu_time ttl;
	char key[sizeof "~txn/" + LOCKD_XID_TEXT];
	char holder[LOCK_OWNER_MAX + 1];
	enum op_verb verb; /* what is done to the lock when it is found */
	struct op *ops;    /* of the ask, to be put back */
	unsigned n_ops;
	void (*then)(struct ask *a);
};

/* Refuses a transaction that was made here, for another lease. False: it was refused. */
bool lockd_txn_check(struct ask *a, const struct lockd_xid *txn);

/* Does a lease under this transaction need the lock? Zeros: none was brought. */
bool lockd_txn_is_brought(const struct lockd_xid *txn);

/* Takes the lock for the time of the lease, then calls `then`. t->op.rc other than 0: another
 * lease has the transaction, or the lock could not be taken; lockd_txn_refuse answers that. */
void lockd_txn_take(struct ask *a, struct lockd_txn_lock *t, struct slice space,
		    const struct lockd_xid *txn, slu_time ttl, void (*then)(struct ask *a));
void lockd_txn_refuse(struct ask *a, const struct lockd_txn_lock *t);

/* The lease was extended, or has ended. `then` is called whatever becomes of the lock. */
void lockd_txn_keep(struct ask *a, struct lockd_txn_lock *t, struct slice space,
		    const struct lockd_xid *txn, slu_time ttl, void (*then)(struct ask *a));
void lockd_txn_drop(struct ask *a, struct lockd_txn_lock *t, struct slice space,
		    const struct lockd_xid *txn, void (*then)(struct ask *a));

#endif
