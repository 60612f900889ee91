/*
 * clerk_lock.c - the verbs of locks: decide, keep, apply.
 */
#include "engine/clerk_in.h"

#include "base/limit.h"

#include <assert.h>
#include <inttypes.h>

#define NOBODY UINT64_MAX /* the id of no message */

/* ---- Which key, by whose right ---- */

/* The message, if the caller's namespace and queue have it: its lease is the key's. */
static void
find_message(const struct clerk *k, const struct op *op, uint64_t id, struct lock_ref *ref)
{
	const uint32_t space = ledger_space_find(k->ledger, op->space);
	struct ledger_view v;
	uint32_t msg;

	ref->id = NOBODY;
	msg = space == SLAB_NONE ? SLAB_NONE : ledger_find(k->ledger, space, id);
	if (msg == SLAB_NONE)
		return;
	ledger_get(k->ledger, msg, &v);
	if (v.queue != clerk_queue(k, op))
		return;
	ref->id = id;
	ref->held = v.token;
	ref->until = v.until;
}

int
clerk_lock_ref(const struct clerk *k, struct op *op, struct lock_ref *ref, struct slu_err *err)
{
	const struct op_lock *q = &op->lock;
	struct slice queue;
	uint64_t id;

	*ref = (struct lock_ref){
		.space = op->space,
		.key = q->key,
		.token = q->token,
		.fence = q->fence,
		.if_version = q->if_version,
		.if_etag = q->if_etag,
	};
	memcpy(ref->txn, q->txn, LOCK_TXN);
	if (q->name.n > LOCK_NAME_MAX)
		return slu_fail(err, SLU_EINVAL, "an attachment's name has at most %d bytes",
				LOCK_NAME_MAX);
	if (!slice_eq(op->queue, SLICE(LOCK_QUEUE))) {
		if (!lock_key_of_message(q->key, &queue, &id) || !slice_eq(queue, op->queue))
			return slu_fail(err, SLU_EINVAL, "key %.*s is not the state of a message "
							 "of queue %.*s",
					(int)q->key.n, q->key.p, (int)op->queue.n, op->queue.p);
		find_message(k, op, id, ref);
		return 0;
	}
	if (q->key.n == 0 || q->key.n > LOCK_KEY_MAX)
		return slu_fail(err, SLU_EINVAL, "a lock key has 1 to %d bytes", LOCK_KEY_MAX);
	return 0;
}

const struct lock *
clerk_lock_find(const struct clerk *k, const struct lock_ref *ref)
{
	return ref->id ? locks_of_message(k->locks, ref->id)
		       : locks_find(k->locks, ref->space, ref->key);
}

/* Of a key without a state nobody needs to know here what it was; and who holds one that is set
 * aside got it elsewhere. Who would be granted one by an old map has to hear first that a former
 * shard may still have it set aside. */
static bool
is_key_elsewhere(const struct clerk *k, const struct op *op, const struct lock_ref *ref,
		 const char *lives)
{
	const struct lock *lock = locks_find(k->locks, ref->space, ref->key);
	const bool late = lives[0] == MOVE_UNKNOWN[0] && op->verb == OP_ACQUIRE && !op->lock.waited;

	if (lock && op->lock.token && locks_is_aside(k->locks, lock))
		return true;
	return !lock || (!lock_is_leased(lock) && (late || !lock_has_state(lock)));
}

/* A message that is set aside is held by nobody, or by somebody who got it elsewhere. */
static bool
is_message_elsewhere(const struct clerk *k, const struct op *op, uint64_t id)
{
	struct ledger_view v;

	if (id == NOBODY || !op->lock.token)
		return id == NOBODY;
	ledger_get(k->ledger, ledger_find_any(k->ledger, id), &v);
	return v.taken;
}

bool
clerk_lock_is_elsewhere(const struct clerk *k, struct op *op)
{
	char lives[MOVE_SHARD];
	struct lock_ref ref;

	if (!clerk_is_elsewhere(k, op, clerk_queue(k, op), lives) ||
	    clerk_lock_ref(k, op, &ref, NULL)) /* what is wrong with it is said later */
		return false;
	if (ref.id ? !is_message_elsewhere(k, op, ref.id) : !is_key_elsewhere(k, op, &ref, lives))
		return false;
	memcpy(op->elsewhere, lives, sizeof lives);
	return true;
}

/* ---- Answers ---- */

void
clerk_lock_tell(struct op_lock *q, const struct lock *lock, bool staged)
{
	const struct lock_doc *doc = lock ? lock_doc(lock, q->name) : NULL;

	q->version = lock ? lock_version(lock, staged) : 0;
	q->updated = lock ? lock->updated : 0;
	q->etag = !doc ? 0 : staged ? lock_seen(doc)
				    : doc->etag;
}

void
clerk_lock_refuse(struct clerk *k, struct op *op, const struct lock_ref *ref, int rc, struct slu_err *err)
{
	struct op_lock *q = &op->lock;
	const struct lock *lock = clerk_lock_find(k, ref);

	clerk_lock_tell(q, lock, false);
	q->until = q->why == LOCK_HELD && lock ? lock->until : 0;
	if (q->why != LOCK_OK)
		rc = slu_fail(err, (enum slu_code)rc, "key %.*s: %s", (int)q->key.n, q->key.p,
			      op_lock_reason(q->why));
	op_fail(op, rc, err);
}

bool
clerk_lock_is_his(const struct lock *lock, const struct lock_ref *ref)
{
	return !ref->id || lock->token == ref->held;
}

/* ---- Changes ---- */

/* E5, at once: what is free may be forgotten before the run ends. */
static void
report_freed(struct clerk *k)
{
	struct slice space, key;

	while (locks_freed(k->locks, &space, &key))
		if (k->freed)
			k->freed(k->ready_arg, space, key);
}

int
clerk_carry_out_lock(struct clerk *k, struct lock_change *c, struct slu_err *err)
{
	const int rc = k->ops->keep_lock(k, c, err);

	if (rc) {
		locks_undo(c);
		return rc;
	}
	locks_apply(k->locks, c);
	ledger_set_counter(k->ledger, c->number);
	report_freed(k);
	return 0;
}

static slu_time
ttl_of(const struct op_lock *q)
{
	const slu_time ttl = q->ttl > 0 ? q->ttl : LOCK_TTL;

	return ttl < POLICY_LEASE_MAX ? ttl : POLICY_LEASE_MAX;
}

/* K11, V7 */
static bool
is_moving(const struct clerk *k, const struct lock_ref *ref)
{
	const struct lock *lock = locks_find(k->locks, ref->space, ref->key);

	return lock && locks_is_aside(k->locks, lock);
}

static int
decide_acquire(struct clerk *k, struct op *op, const struct lock_ref *ref,
	       struct lock_change *c, struct slu_err *err)
{
	struct op_lock *q = &op->lock;
	struct lock_want want = {
		.space = op->space,
		.key = q->key,
		.owner = q->owner,
		.token = ledger_counter(k->ledger) + 1,
		.ttl = ttl_of(q),
		.if_absent = q->if_absent,
	};

	memcpy(want.txn, q->txn, LOCK_TXN);
	if (q->owner.n > LOCK_OWNER_MAX)
		return slu_fail(err, SLU_EINVAL, "an owner has at most %d bytes", LOCK_OWNER_MAX);
	if (ref->id) {
		q->why = LOCK_OF_MESSAGE;
		return SLU_EINVAL;
	}
	if (is_moving(k, ref))
		return limit_fail(err, SLU_EBUSY, LIMIT_MOVE, 0, "key %.*s: it is being moved",
				  (int)q->key.n, q->key.p);
	if (q->waited) {
		q->why = LOCK_HELD;
		return SLU_ELEASE;
	}
	if (!locks_find(k->locks, op->space, q->key)) {
		const int rc = clerk_limit_key(k, err);

		if (rc)
			return rc;
	}
	return locks_acquire(k->locks, &want, k->now, c, &q->why);
}

void
clerk_acquire(struct clerk *k, struct op *op)
{
	struct op_lock *q = &op->lock;
	struct slu_err err = { 0 };
	struct lock_change c;
	struct lock_ref ref;
	int rc;

	q->why = LOCK_OK;
	rc = clerk_lock_ref(k, op, &ref, &err);
	if (!rc)
		rc = decide_acquire(k, op, &ref, &c, &err);
	if (!rc)
		rc = clerk_carry_out_lock(k, &c, &err);
	if (rc) {
		clerk_lock_refuse(k, op, &ref, rc, &err);
		return;
	}

	const struct lock *lock = clerk_lock_find(k, &ref);

	clerk_lock_tell(q, lock, false);
	q->token = lock->token;
	q->until = lock->until;
	memcpy(q->txn, lock->txn, LOCK_TXN);
}

typedef int decide_fn(struct clerk *k, struct op *op, const struct lock_ref *ref,
		      struct lock_change *c);

/* What a holder asks for: answered as the holder sees it. */
static void
change_held(struct clerk *k, struct op *op, decide_fn *decide)
{
	struct slu_err err = { 0 };
	struct lock_change c = { 0 };
	struct lock_ref ref;
	int rc;

	op->lock.why = LOCK_OK;
	rc = clerk_lock_ref(k, op, &ref, &err);
	if (!rc)
		rc = decide(k, op, &ref, &c);
	if (!rc && c.next)
		rc = clerk_carry_out_lock(k, &c, &err);
	if (rc) {
		clerk_lock_refuse(k, op, &ref, rc, &err);
		return;
	}

	const struct lock *lock = clerk_lock_find(k, &ref);

	clerk_lock_tell(&op->lock, lock, lock && clerk_lock_is_his(lock, &ref));
	op->lock.until = ref.id ? ref.until : lock ? lock->until
						   : 0;
}

static int
decide_keepalive(struct clerk *k, struct op *op, const struct lock_ref *ref,
		 struct lock_change *c)
{
	return locks_keepalive(k->locks, ref, ttl_of(&op->lock), op->arrived, c, &op->lock.why);
}

void
clerk_keepalive(struct clerk *k, struct op *op)
{
	change_held(k, op, decide_keepalive);
}

static int
decide_release(struct clerk *k, struct op *op, const struct lock_ref *ref,
	       struct lock_change *c)
{
	const struct lock_end end = { .commit = !op->lock.rollback, .undo = op->lock.undo };

	return locks_release(k->locks, ref, end, op->arrived, c, &op->lock.why);
}

void
clerk_release_lock(struct clerk *k, struct op *op)
{
	change_held(k, op, decide_release);
}

static int
decide_remove(struct clerk *k, struct op *op, const struct lock_ref *ref, struct lock_change *c)
{
	struct op_lock *q = &op->lock;
	uint32_t n;
	int rc;

	rc = locks_remove(k->locks, ref, q->name, q->all, op->arrived, c, &n, &q->why);
	op->count = n;
	return rc;
}

void
clerk_state_remove(struct clerk *k, struct op *op)
{
	op->count = 0;
	change_held(k, op, decide_remove);
}

static int
decide_hide(struct clerk *k, struct op *op, const struct lock_ref *ref, struct lock_change *c)
{
	return locks_hide(k->locks, ref, op->lock.hidden, op->arrived, c, &op->lock.why);
}

void
clerk_state_meta(struct clerk *k, struct op *op)
{
	change_held(k, op, decide_hide);
}

/* ---- Put ---- */

/* The record of a document is that of a message: what is not its maker's to say. */
static void
fill_document(const struct clerk *k, const struct op *op, const struct lock_ref *ref,
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
	m->key = ref->id ? (struct slice){ 0 } : ref->key;
	m->idem = op->lock.name;
}

/* The document first, then the key that names it. */
static int
put_document(struct clerk *k, struct op *op, const struct message *m, struct lock_change *c,
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
	rc = clerk_carry_out_lock(k, c, err);
	if (rc)
		k->ops->drop(k, where);
	return rc;
}

static bool
is_new_document(const struct clerk *k, const struct lock_ref *ref, struct slice name)
{
	const struct lock *lock = clerk_lock_find(k, ref);

	return !lock || !lock_doc(lock, name);
}

static int
put(struct clerk *k, struct op *op, const struct lock_ref *ref, struct slu_err *err)
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
		rc = clerk_limit_document(k, m, err);
	if (rc)
		return rc;
	rc = locks_put(k->locks, ref, q->name, etag, q->if_absent, op->arrived, &c, &q->why);
	if (rc == SLU_ETOOBIG)
		return slu_fail(err, SLU_ETOOBIG, "key %.*s: more than %d attachments",
				(int)q->key.n, q->key.p, LOCK_DOCS_MAX - 1);
	return rc ? rc : put_document(k, op, m, &c, err);
}

void
clerk_state_put(struct clerk *k, struct op *op)
{
	struct slu_err err = { 0 };
	struct lock_ref ref;
	int rc;

	op->lock.why = LOCK_OK;
	rc = clerk_lock_ref(k, op, &ref, &err);
	if (!rc)
		rc = put(k, op, &ref, &err);
	if (rc)
		clerk_lock_refuse(k, op, &ref, rc, &err);
	else
		clerk_lock_tell(&op->lock, clerk_lock_find(k, &ref), true);
}

/* ---- A run ---- */

int
clerk_tick_locks(struct clerk *k, slu_time until, struct slu_err *err)
{
	struct lock_change c;
	int rc = 0;

	while (!rc && locks_tick(k->locks, until, &k->budget, &c))
		rc = clerk_carry_out_lock(k, &c, err);
	if (!rc && k->budget > 0 && locks_next_due(k->locks) <= until)
		return slu_fail(err, SLU_ENOMEM, "no memory for the end of a lease");
	return rc;
}
