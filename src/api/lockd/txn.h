/*
 * txn.h - one lease a transaction.
 *
 * A transaction has one lease: keys and messages are not committed together. So a client may
 * not send the transaction of another lease. There are two kinds of ids:
 *
 *      made by the server   lockd_txn_is_ours: it belongs to the lease it was made for, and
 *                           no other lease may have it
 *      made by a client     held by a lock with the id as its key, in a reserved namespace, as
 *                           long as its lease: the same id in two namespaces is one transaction
 *
 *      acquire, dequeue        lease granted ──> lockd_txn_take ──> answer, or txn_conflict
 *      keepalive, extend       lease extended ─> lockd_txn_keep ──> answer
 *      release, ack, nack      lease ended ────> lockd_txn_drop ──> answer
 *
 * If a lease expires, or its holder does not send the transaction, the lock expires at the
 * same time.
 */
#ifndef API_LOCKD_TXN_H
#define API_LOCKD_TXN_H

#include "api/lockd/lock.h"

/* In the state of the apicall. */
struct lockd_txn_lock {
	struct op op;
	struct lockd_xid txn;
	slu_time ttl;
	char key[LOCKD_XID_TEXT];
	char holder[LOCK_HOLDER_MAX + 1];
	enum op_verb verb; /* what to do with the lock when it is found */
	struct op *ops;    /* of the apicall, restored afterwards */
	unsigned n_ops;
	void (*then)(struct apicall *a);
};

/* Returns false, and refuses the call, if the server made the transaction for another
 * lease. */
bool lockd_txn_check(struct apicall *a, const struct lockd_xid *txn);

/* Returns true if a lease with this transaction needs the lock. Zeros: not sent. */
bool lockd_txn_is_brought(const struct lockd_xid *txn);

/* Takes the lock for the time of the lease, then calls `then`. If t->op.rc is not 0, another
 * lease has the transaction or the lock failed: lockd_txn_refuse answers. Uses
 * apicall.part. */
void lockd_txn_take(struct apicall *a, struct lockd_txn_lock *t, const struct lockd_xid *txn, slu_time ttl,
		    void (*then)(struct apicall *a));
void lockd_txn_refuse(struct apicall *a, const struct lockd_txn_lock *t);

/* The lease was extended, or has ended. `then` runs also if the lock failed. */
void lockd_txn_keep(struct apicall *a, struct lockd_txn_lock *t, const struct lockd_xid *txn, slu_time ttl,
		    void (*then)(struct apicall *a));
void lockd_txn_drop(struct apicall *a, struct lockd_txn_lock *t, const struct lockd_xid *txn,
		    void (*then)(struct apicall *a));

#endif
