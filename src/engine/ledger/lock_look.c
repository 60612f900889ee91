/*
 * lock_look.c - the verbs of locks that change nothing.
 */
#include "engine/ledger/ledgerengine_private.h"

#include <inttypes.h>

/* token 0: the caller sees what is committed. *staged: the caller holds the key and sees more. */
static int
look(struct ledgerengine *k, struct op *op, struct lock_ref *ref, const struct lock **lock,
     bool *staged, struct slu_err *err)
{
	int rc;

	op->lock.why = LOCK_OK;
	rc = ledgerengine_lock_ref(k, op, ref, err);
	if (!rc && op->lock.token)
		rc = locks_check(k->locks, ref, true, op->route.arrived, &op->lock.why);
	if (rc)
		return rc;
	*lock = ledgerengine_lock_find(k, ref);
	*staged = op->lock.token && *lock && ledgerengine_lock_sees_staged(*lock, ref);
	return 0;
}

static int
pin(struct ledgerengine *k, const struct lock_doc *doc, bool staged, struct op_ref *record,
    struct op_ref *payload, struct slu_err *err)
{
	const uint64_t where = staged && doc->staged ? doc->staged_where : doc->where;

	if (!where)
		return slu_fail(err, SLU_ECORRUPT, "document %" PRIu64 " is missing from the log",
				staged && doc->staged ? doc->staged : doc->etag);
	return k->ops->pin(k, where, record, payload, err);
}

void
ledgerengine_state_get(struct ledgerengine *k, struct op *op)
{
	struct op_lock *q = &op->lock;
	const struct lock *lock = NULL;
	struct slu_err err = { 0 };
	struct lock_ref ref;
	bool staged;
	int rc;

	q->record = q->payload = (struct op_ref){ 0 };
	rc = look(k, op, &ref, &lock, &staged, &err);
	if (!rc) {
		ledgerengine_lock_tell(q, lock, staged);
		q->until = ref.id ? ref.until : lock ? lock->until
						     : 0;
	}
	if (!rc && q->etag)
		rc = pin(k, lock_doc(lock, q->name), staged, &q->record, &q->payload, &err);
	if (rc)
		ledgerengine_lock_refuse(k, op, &ref, rc, &err);
}

static void
tell_lease(struct op_lock *q, const struct lock *lock, slu_time now)
{
	const bool held = lock && lock->token && !lock->over && lock->until > now;

	q->token = held ? lock->token : 0;
	q->until = held ? lock->until : 0;
	memset(q->txn, 0, LOCK_TXN);
	if (held)
		memcpy(q->txn, lock->txn, LOCK_TXN);
	if (!q->held_by)
		return;
	q->held_by[0] = 0;
	if (held && lock->holder.n) {
		memcpy(q->held_by, lock->holder.p, lock->holder.n);
		q->held_by[lock->holder.n] = 0;
	}
}

void
ledgerengine_describe(struct ledgerengine *k, struct op *op)
{
	struct op_lock *q = &op->lock;
	struct slu_err err = { 0 };
	const struct lock *lock;
	struct lock_ref ref;
	int rc;

	q->why = LOCK_OK;
	rc = ledgerengine_lock_ref(k, op, &ref, &err);
	if (rc) {
		op_fail(op, rc, &err);
		return;
	}
	lock = ledgerengine_lock_find(k, &ref);
	ledgerengine_lock_tell(q, lock, false);
	q->hidden = lock && lock->hidden;
	tell_lease(q, ref.id ? NULL : lock, k->now);
	if (ref.id && ref.until > k->now) {
		q->token = ref.held;
		q->until = ref.until;
		lock_txn(ref.held, q->txn);
	}
}

/* The row of a document, or a row that only marks how far the page has come. */
static void
begin_key(struct op_key *row, struct slice name, const struct lock *lock)
{
	*row = (struct op_key){ .version = lock->version, .updated = lock->updated };
	memcpy(row->name, name.p, name.n);
}

static void
add_document(struct ledgerengine *k, struct op *op, const struct lock *lock, struct slice name,
	     const struct lock_doc *doc, bool staged)
{
	struct op_key *row = &op->keys[op->n_keys];
	struct slu_err err = { 0 };
	int rc;

	begin_key(row, name, lock);
	row->etag = staged ? lock_seen(doc) : doc->etag;
	row->version = lock_version(lock, staged);
	rc = pin(k, doc, staged, &row->record, &row->payload, &err);
	if (rc)
		op_fail(op, rc, &err);
	else
		op->n_keys++;
}

static bool
holds_lease(const struct lock *lock, slu_time now)
{
	return lock->token && !lock->over && lock->until > now;
}

static void
add_leased(struct op *op, const struct lock *lock)
{
	struct op_key *const row = &op->keys[op->n_keys++];

	begin_key(row, lock->key, lock);
	row->etag = lock->token;
}

void
ledgerengine_keys(struct ledgerengine *k, struct op *op)
{
	const struct lock *lock = locks_after(k->locks, op->space, op->lock.key);
	uint32_t left = ENGINE_SCAN_MAX;

	op->n_keys = 0;
	op->lock.more = false;
	for (; lock && !op->rc; lock = locks_after(k->locks, op->space, lock->key)) {
		const struct lock_doc *doc = lock_doc(lock, (struct slice){ 0 });

		if (op->n_keys == op->max_keys || left-- == 0) {
			op->lock.more = true;
			break;
		}
		if (op->lock.all && holds_lease(lock, k->now))
			add_leased(op, lock);
		else if (!op->lock.all && doc && doc->etag && !lock->hidden)
			add_document(k, op, lock, lock->key, doc, false);
		else if (left == 0)
			begin_key(&op->keys[op->n_keys++], lock->key, lock);
	}
	if (op->rc)
		op_drop_rows(op);
}

void
ledgerengine_attachments(struct ledgerengine *k, struct op *op)
{
	const struct lock *lock = NULL;
	struct slu_err err = { 0 };
	struct lock_ref ref;
	bool staged;
	int rc;

	op->n_keys = 0;
	op->lock.more = false;
	rc = look(k, op, &ref, &lock, &staged, &err);
	if (rc) {
		ledgerengine_lock_refuse(k, op, &ref, rc, &err);
		return;
	}
	ledgerengine_lock_tell(&op->lock, lock, staged);
	for (uint32_t i = 0; lock && i < lock->n && !op->rc; i++) {
		const struct lock_doc *doc = &lock->docs[i];

		if (doc->name.n == 0 || !(staged ? lock_seen(doc) : doc->etag))
			continue;
		if (op->n_keys == op->max_keys)
			op->lock.more = true;
		else
			add_document(k, op, lock, doc->name, doc, staged);
	}
	if (op->rc)
		op_drop_rows(op);
}

void
ledgerengine_tell_state(const struct ledgerengine *k, struct op_row *row)
{
	const struct lock *lock = locks_of_message(k->locks, row->id);
	const struct lock_doc *doc = lock ? lock_doc(lock, (struct slice){ 0 }) : NULL;

	row->state_version = lock ? lock->version : 0;
	row->state_etag = doc ? doc->etag : 0;
}
