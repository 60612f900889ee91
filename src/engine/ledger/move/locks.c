/*
 * locks.c - lock keys move to another shard: MOVE-6 of engine/move.h, LOCK-11 of
 * core/locks/locks.h. A batch is the keys of the namespace that are set aside, in their order.
 */
#include "engine/ledger/move/move_private.h"

bool
ledgerengine_has_locks(const struct op *op)
{
	return slice_eq(op->queue, SLICE(LOCK_QUEUE));
}

/* The ledger needs no queue for lock keys until they move. */
int
ledgerengine_open_locks(struct ledgerengine *k, const struct op *op, struct slu_err *err)
{
	const struct lock *lock = locks_space_after(k->locks, (struct slice){ 0 });
	uint32_t queue;
	int rc = 0;

	for (; lock && !rc; lock = locks_space_after(k->locks, lock->space))
		rc = ledgerengine_open_queue(k, op, lock->space, SLICE(LOCK_QUEUE), &queue, err);
	return rc;
}

static void
put_name(struct buf *names, struct slice key)
{
	buf_putc(names, (char)key.n);
	buf_put(names, key.p, key.n);
}

/* ---- Taking ---- */

struct lock_pick {
	struct buf names;
	uint32_t n, rows;
	uint32_t ended; /* leases */
	uint64_t bytes;
};

static bool
is_full(const struct lock_pick *p, const struct op *op, const struct lock *next)
{
	return p->n > 0 && (p->rows + next->n > op->max_rows ||
			    (op->move.max_bytes && p->bytes >= op->move.max_bytes));
}

static void
pick_key(struct ledgerengine *k, struct lock_pick *p, const struct lock *lock)
{
	put_name(&p->names, lock->key);
	p->n++;
	p->rows += lock->n;
	for (uint32_t i = 0; i < lock->n; i++)
		if (lock->docs[i].where)
			p->bytes += ledgerengine_record_size(k, lock->docs[i].where);
}

/* SH-75: ends the lease as a release that commits nothing does. Sets *lock to the key after that. */
static int
end_lease(struct ledgerengine *k, const struct lock **lock, struct slu_err *err)
{
	struct lock_ref ref = { .space = (*lock)->space, .key = (*lock)->key, .token = (*lock)->token };
	const struct lock *next;
	struct lock_change c;
	enum lock_why why;
	int rc;

	memcpy(ref.txn, (*lock)->txn, LOCK_TXN);
	rc = locks_release(k->locks, &ref, (struct lock_end){ .commit = false }, k->now, &c, &why);
	next = c.next;
	if (rc)
		return slu_fail(err, (enum slu_code)rc, "%s", slu_err_row(rc)->text);
	if (next) /* otherwise the lease has just ended */
		rc = ledgerengine_carry_out_lock(k, &c, err);
	if (next && !rc)
		*lock = next;
	return rc;
}

static int
pick_keys(struct ledgerengine *k, const struct op *op, struct lock_pick *p, struct slu_err *err)
{
	const struct lock *lock = locks_after(k->locks, op->space, (struct slice){ 0 });
	int rc = 0;

	for (; lock && !is_full(p, op, lock); lock = locks_after(k->locks, op->space, lock->key)) {
		if (op->move.force && lock_is_leased(lock) && p->ended++ < op->max_rows)
			rc = end_lease(k, &lock, err);
		if (rc)
			return rc;
		if (lock_has_state(lock) && !lock_is_leased(lock))
			pick_key(k, p, lock);
	}
	return p->names.failed ? slu_fail(err, SLU_ENOMEM, "no memory for a batch") : 0;
}

int
ledgerengine_take_locks(struct ledgerengine *k, const struct op *op, uint32_t queue, struct slu_err *err)
{
	struct change_move say = { .what = BATCH_LOCKS, .space = op->space };
	struct lock_pick p = { 0 };
	struct change c;
	int rc;

	buf_init(&p.names, SIZE_MAX);
	rc = pick_keys(k, op, &p, err);
	say.names = buf_slice(&p.names);
	say.n = p.n;
	if (!rc && p.n)
		rc = ledger_take(k->ledger, queue, &say, k->now, &c);
	if (!rc && p.n)
		rc = ledgerengine_carry_out(k, &c, say.names, err);
	buf_release(&p.names);
	return rc;
}

/* ---- The batch ---- */

/* The next key that is set aside. */
static const struct lock *
next_aside(const struct ledgerengine *k, const struct op *op, struct slice key)
{
	const struct lock *lock = locks_after(k->locks, op->space, key);

	while (lock && !locks_is_aside(k->locks, lock))
		lock = locks_after(k->locks, op->space, lock->key);
	return lock;
}

static bool
fits(const struct op *op, const struct lock *lock)
{
	return op->n_rows + lock->n <= op->max_rows &&
	       (op->n_rows == 0 || !op->move.max_bytes || op->route.bytes < op->move.max_bytes);
}

int
ledgerengine_show_locks(struct ledgerengine *k, struct op *op, uint32_t n, struct slu_err *err)
{
	const struct lock *lock = next_aside(k, op, (struct slice){ 0 });
	uint64_t i = 0;
	int rc = 0;

	for (; lock && i < op->cursor; i++)
		lock = next_aside(k, op, lock->key);
	for (; !rc && lock && fits(op, lock); i++) {
		rc = ledgerengine_add_states(k, op, lock, err);
		lock = next_aside(k, op, lock->key);
	}
	if (!rc && lock && op->n_rows == 0)
		rc = slu_fail(err, SLU_EINVAL, "invalid number of rows: %u; expected %d for a key with documents", op->max_rows, LOCK_DOCS_MAX);
	op->cursor = lock && i < n ? i : 0;
	if (rc)
		op_drop_rows(op);
	return rc;
}

void
ledgerengine_name_locks(const struct ledgerengine *k, const struct op *op, struct buf *out)
{
	const struct lock *lock = next_aside(k, op, (struct slice){ 0 });

	for (; lock; lock = next_aside(k, op, lock->key))
		put_name(out, lock->key);
}
