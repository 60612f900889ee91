/*
 * lock.c - the verbs of locks that change something: decide, keep, apply.
 */
#include "engine/ledger/ledgerengine_private.h"

#include "base/limit.h"

#include <assert.h>

/* ---- The key of an op, and its right ---- */

/* The message, if the namespace and queue of the op have it: its lease is the lease of the key. */
static void
find_message(const struct ledgerengine *k, const struct op *op, uint64_t id, struct lock_ref *ref)
{
	const uint32_t space = ledger_space_find(k->ledger, op->space);
	struct ledger_view v;
	uint32_t msg;

	ref->id = LEDGERENGINE_NO_MESSAGE;
	msg = space == SLAB_NONE ? SLAB_NONE : ledger_find(k->ledger, space, id);
	if (msg == SLAB_NONE)
		return;
	ledger_get(k->ledger, msg, &v);
	if (v.queue != ledgerengine_queue(k, op))
		return;
	ref->id = id;
	ref->held = v.token;
	ref->until = v.until;
}

int
ledgerengine_lock_ref(const struct ledgerengine *k, struct op *op, struct lock_ref *ref, struct slu_err *err)
{
	const struct op_lock *q = &op->lock;
	struct slice queue;
	uint64_t id;
	int rc;

	*ref = (struct lock_ref){
		.space = op->space,
		.key = q->key,
		.token = q->token,
		.fence = q->fence,
		.if_version = q->if_version,
		.if_etag = q->if_etag,
	};
	memcpy(ref->txn, q->txn, LOCK_TXN);
	rc = op_check_lock(op, err);
	if (!rc && !slice_eq(op->queue, SLICE(LOCK_QUEUE)) && lock_key_of_message(q->key, &queue, &id))
		find_message(k, op, id, ref);
	return rc;
}

const struct lock *
ledgerengine_lock_find(const struct ledgerengine *k, const struct lock_ref *ref)
{
	return ref->id ? locks_of_message(k->locks, ref->id)
		       : locks_find(k->locks, ref->space, ref->key);
}

/* ---- Answers ---- */

void
ledgerengine_lock_tell(struct op_lock *q, const struct lock *lock, bool staged)
{
	const struct lock_doc *doc = lock ? lock_doc(lock, q->name) : NULL;

	q->version = lock ? lock_version(lock, staged) : 0;
	q->updated = lock ? lock->updated : 0;
	q->etag = !doc ? 0 : staged ? lock_seen(doc)
				    : doc->etag;
}

void
ledgerengine_lock_refuse(struct ledgerengine *k, struct op *op, const struct lock_ref *ref, int rc, struct slu_err *err)
{
	struct op_lock *q = &op->lock;
	const struct lock *lock = ledgerengine_lock_find(k, ref);

	ledgerengine_lock_tell(q, lock, false);
	q->until = q->why == LOCK_HELD && lock ? lock->until : 0;
	if (q->why != LOCK_OK)
		rc = slu_fail(err, (enum slu_code)rc, "key %.*s: %s", (int)q->key.n, q->key.p,
			      op_lock_reason(q->why));
	op_fail(op, rc, err);
}

bool
ledgerengine_lock_sees_staged(const struct lock *lock, const struct lock_ref *ref)
{
	return !ref->id || lock->token == ref->held;
}

/* ---- Changes ---- */

/* ENGINE-5, at once: a key that is free may be forgotten before the run ends. */
void
ledgerengine_report_freed(struct ledgerengine *k)
{
	struct slice space, key;

	while (locks_freed(k->locks, &space, &key))
		if (k->freed)
			k->freed(k->ready_arg, space, key);
}

int
ledgerengine_carry_out_lock(struct ledgerengine *k, struct lock_change *c, struct slu_err *err)
{
	const int rc = k->ops->keep_lock(k, c, err);

	if (rc) {
		locks_undo(c);
		return rc;
	}
	locks_apply(k->locks, c);
	ledger_set_counter(k->ledger, c->number);
	ledgerengine_report_freed(k);
	return 0;
}

/* LOCK-11, MOVE-7 */
static bool
is_moving(const struct ledgerengine *k, const struct lock_ref *ref)
{
	const struct lock *lock = locks_find(k->locks, ref->space, ref->key);

	return lock && locks_is_aside(k->locks, lock);
}

static int
decide_acquire(struct ledgerengine *k, struct op *op, const struct lock_ref *ref,
	       struct lock_change *c, struct slu_err *err)
{
	struct op_lock *q = &op->lock;
	struct lock_want want = {
		.space = op->space,
		.key = q->key,
		.holder = q->holder,
		.token = ledger_counter(k->ledger) + 1,
		.ttl = op_lock_ttl(q),
		.if_absent = q->if_absent,
	};

	memcpy(want.txn, q->txn, LOCK_TXN);
	if (ref->id) {
		q->why = LOCK_OF_MESSAGE;
		return SLU_EINVAL;
	}
	if (is_moving(k, ref))
		return limit_fail(err, SLU_EBUSY, LIMIT_MOVE, 0, "key %.*s is being moved",
				  (int)q->key.n, q->key.p);
	if (op->route.waited) {
		q->why = LOCK_HELD;
		return SLU_ELEASE;
	}
	if (!locks_find(k->locks, op->space, q->key)) {
		const int rc = ledgerengine_limit_key(k, err);

		if (rc)
			return rc;
	}
	return locks_acquire(k->locks, &want, k->now, c, &q->why);
}

void
ledgerengine_acquire(struct ledgerengine *k, struct op *op)
{
	struct op_lock *q = &op->lock;
	struct slu_err err = { 0 };
	struct lock_change c;
	struct lock_ref ref;
	int rc;

	q->why = LOCK_OK;
	rc = ledgerengine_lock_ref(k, op, &ref, &err);
	if (!rc)
		rc = decide_acquire(k, op, &ref, &c, &err);
	if (!rc)
		rc = ledgerengine_carry_out_lock(k, &c, &err);
	if (rc) {
		ledgerengine_lock_refuse(k, op, &ref, rc, &err);
		return;
	}

	const struct lock *lock = ledgerengine_lock_find(k, &ref);

	ledgerengine_lock_tell(q, lock, false);
	q->token = lock->token;
	q->until = lock->until;
	memcpy(q->txn, lock->txn, LOCK_TXN);
}

static int
decide_keepalive(struct ledgerengine *k, struct op *op, const struct lock_ref *ref,
		 struct lock_change *c)
{
	return locks_keepalive(k->locks, ref, op_lock_ttl(&op->lock), op->route.arrived, c, &op->lock.why);
}

static int
decide_release(struct ledgerengine *k, struct op *op, const struct lock_ref *ref,
	       struct lock_change *c)
{
	const struct lock_end end = { .commit = !op->lock.rollback, .undo = op->lock.undo };

	if (end.undo && ledgerengine_is_copied(k, op->lock.token))
		return 0;
	return locks_release(k->locks, ref, end, op->route.arrived, c, &op->lock.why);
}

static int
decide_remove(struct ledgerengine *k, struct op *op, const struct lock_ref *ref, struct lock_change *c)
{
	struct op_lock *q = &op->lock;
	uint32_t n;
	int rc;

	rc = locks_remove(k->locks, ref, q->name, q->all, op->route.arrived, c, &n, &q->why);
	op->count = n;
	return rc;
}

static int
decide_hide(struct ledgerengine *k, struct op *op, const struct lock_ref *ref, struct lock_change *c)
{
	return locks_hide(k->locks, ref, op->lock.hidden, op->route.arrived, c, &op->lock.why);
}

static int (*const decide_held[OP_VERBS])(struct ledgerengine *k, struct op *op,
					  const struct lock_ref *ref, struct lock_change *c) = {
	[OP_KEEPALIVE] = decide_keepalive,
	[OP_RELEASE] = decide_release,
	[OP_STATE_REMOVE] = decide_remove,
	[OP_STATE_META] = decide_hide,
};

void
ledgerengine_change_held(struct ledgerengine *k, struct op *op)
{
	struct slu_err err = { 0 };
	struct lock_change c = { 0 };
	struct lock_ref ref;
	int rc;

	op->count = 0;
	op->lock.why = LOCK_OK;
	rc = ledgerengine_lock_ref(k, op, &ref, &err);
	if (!rc)
		rc = decide_held[op->verb](k, op, &ref, &c);
	if (!rc && c.next)
		rc = ledgerengine_carry_out_lock(k, &c, &err);
	if (rc) {
		ledgerengine_lock_refuse(k, op, &ref, rc, &err);
		return;
	}

	const struct lock *lock = ledgerengine_lock_find(k, &ref);

	ledgerengine_lock_tell(&op->lock, lock, lock && ledgerengine_lock_sees_staged(lock, &ref));
	op->lock.until = ref.id ? ref.until : lock ? lock->until
						   : 0;
}

/* ---- Put ---- */

/* The record of a document is the record of a message: fills in what the maker does not set. */
static void
fill_document(const struct ledgerengine *k, const struct op *op, const struct lock_ref *ref,
	      uint64_t etag, struct message *m)
{
	m->id = ref->id ? ref->id : etag;
	m->number = etag;
	m->accepted = m->due = k->now;
	m->expires = m->keep = 0;
	m->prio = 0;
	m->max_attempts = 0;
	m->space = op->space;
	m->queue = op->queue;
	m->key = (struct slice){ ref->key.p, ref->id ? 0 : ref->key.n };
	m->idem = op->lock.name;
}

/* Keeps the document, then the key that names it. */
static int
put_document(struct ledgerengine *k, struct op *op, const struct message *m, struct lock_change *c,
	     struct slu_err *err)
{
	uint64_t where;
	int rc;

	rc = k->ops->keep_document(k, m, &where, err);
	if (rc) {
		locks_undo(c);
		return rc;
	}
	lock_doc(c->next, op->lock.name)->staged_where = where;
	rc = ledgerengine_carry_out_lock(k, c, err);
	if (rc)
		k->ops->drop(k, where);
	return rc;
}

static bool
is_new_document(const struct ledgerengine *k, const struct lock_ref *ref, struct slice name)
{
	const struct lock *lock = ledgerengine_lock_find(k, ref);

	return !lock || !lock_doc(lock, name);
}

static int
put(struct ledgerengine *k, struct op *op, const struct lock_ref *ref, struct slu_err *err)
{
	const uint64_t etag = ledger_counter(k->ledger) + 1;
	struct op_lock *q = &op->lock;
	struct message *m = &op->puts[0].m;
	struct lock_change c;
	int rc;

	assert(op->n_puts == 1);
	fill_document(k, op, ref, etag, m);
	rc = message_check(m, err);
	if (rc)
		return rc;
	if (is_new_document(k, ref, q->name))
		rc = ledgerengine_limit_document(k, m, err);
	if (rc)
		return rc;
	rc = locks_put(k->locks, ref, q->name, etag, q->if_absent, op->route.arrived, &c, &q->why);
	if (rc == SLU_ETOOBIG)
		return slu_fail(err, SLU_ETOOBIG, "key %.*s has %d attachments, the most that a key can have",
				(int)q->key.n, q->key.p, LOCK_DOCS_MAX - 1);
	return rc ? rc : put_document(k, op, m, &c, err);
}

void
ledgerengine_state_put(struct ledgerengine *k, struct op *op)
{
	struct slu_err err = { 0 };
	struct lock_ref ref;
	int rc;

	op->lock.why = LOCK_OK;
	rc = ledgerengine_lock_ref(k, op, &ref, &err);
	if (!rc)
		rc = put(k, op, &ref, &err);
	if (rc)
		ledgerengine_lock_refuse(k, op, &ref, rc, &err);
	else
		ledgerengine_lock_tell(&op->lock, ledgerengine_lock_find(k, &ref), true);
}

/* ---- A run ---- */

int
ledgerengine_tick_locks(struct ledgerengine *k, slu_time until, struct slu_err *err)
{
	struct lock_change c;
	int rc = 0;

	while (!rc && locks_tick(k->locks, until, &k->budget, &c))
		rc = ledgerengine_carry_out_lock(k, &c, err);
	if (!rc && k->budget > 0 && locks_next_due(k->locks) <= until)
		return slu_fail(err, SLU_ENOMEM, "no memory for the end of a lease");
	return rc;
}
