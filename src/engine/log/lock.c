/*
 * lock.c - lock keys and their documents in the log: writes, replays and cleans them.
 *
 *      put:       | document | lock |      the lock record has the whole key, which names
 *                                          the document by its etag
 *      release:   | lock |                 commits the same document without writing it again
 *
 *  LOGLOCK-1  A lock record has the whole key. Only the last lock record of a key counts.
 *      Earlier ones are dead, and so is a document that the last one does not name.
 *  LOGLOCK-2  A document is written before the first lock record that names it. Cleaning
 *      relocates each on its own, so a log may have them in any order.
 *  LOGLOCK-3  What happens to the state of a message follows from the records of the message
 *      (LOCK-7).
 *  LOGLOCK-4  A change that was reserved is kept behind other records of its group, and cannot fail then.
 */
#include "engine/log/logengine_private.h"

#include <assert.h>

enum {
	RESERVED_PLACES = 4 /* of the records that come before a reserved one, and its own */
};

static struct locks *
locks_of(const struct logengine *l)
{
	return l->ledgerengine.locks;
}

/* ---- Keeping ---- */

/* Encodes the record of a key into out and the engine's scratch. */
static int
encode_lock(struct logengine *l, const struct lock *lock, struct logengine_bytes *out,
	    struct slu_err *err)
{
	struct logengine_entry entry = { .type = LOGENGINE_LOCK };

	buf_clear(&l->scratch);
	logengine_fill_lock(&entry, lock, &l->scratch);
	if (l->scratch.failed) {
		(void)slu_fail(err, SLU_ENOMEM, "no memory for the record of a key");
		return SLU_ENOMEM;
	}
	logengine_encode(&entry, out);
	return 0;
}

static int
append_lock(struct logengine *l, const struct lock *lock, enum wal_use use, uint64_t number,
	    uint64_t *where, struct slu_err *err)
{
	struct logengine_bytes bytes;
	struct wal_where at;
	int rc;

	rc = encode_lock(l, lock, &bytes, err);
	if (!rc)
		rc = logengine_reserve(l, use, bytes.size, err);
	if (rc)
		return rc;
	logengine_raise_ceiling(l, number);
	at = logengine_append(l, LOGENGINE_LOCK, bytes.parts, bytes.n);
	*where = logengine_name(l, at, bytes.size, bytes.size, SLAB_NONE);
	return 0;
}

int
logengine_reserve_lock(struct ledgerengine *k, struct lock_change *c, struct slu_err *err)
{
	struct logengine *const l = logengine_of(k);
	struct logengine_bytes bytes;
	uint64_t size;
	int rc;

	if (slab_reserve(&l->places.rows, RESERVED_PLACES) || map_reserve(&l->places.map, RESERVED_PLACES))
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	rc = encode_lock(l, c->next, &bytes, err);
	if (rc)
		return rc;
	size = wal_size(bytes.size);
	l->owed += size;
	l->owed_largest = size > l->owed_largest ? size : l->owed_largest;
	rc = logengine_reserve(l, c->adds ? WAL_NEW : WAL_SETTLE, bytes.size, err);
	c->reserved = !rc;
	return rc;
}

/* LOGLOCK-4: its room is part of `owed`. */
static void
append_reserved(struct logengine *l, struct lock_change *c)
{
	struct logengine_bytes bytes;
	const int rc = encode_lock(l, c->next, &bytes, NULL);
	struct wal_where at;

	assert(!rc); /* the buffer is as large as it was */
	at = logengine_append(l, LOGENGINE_LOCK, bytes.parts, bytes.n);
	c->where = logengine_name(l, at, bytes.size, bytes.size, SLAB_NONE);
	l->must_sync = true;
}

int
logengine_keep_lock(struct ledgerengine *k, struct lock_change *c, struct slu_err *err)
{
	struct logengine *l = logengine_of(k);
	int rc;

	if (c->reserved) {
		append_reserved(l, c);
		return 0;
	}
	rc = append_lock(l, c->next, c->adds ? WAL_NEW : WAL_SETTLE, c->number, &c->where, err);
	if (!rc && !c->late)
		l->must_sync = true;
	return rc;
}

void
logengine_sync_all(struct ledgerengine *k)
{
	logengine_of(k)->must_sync = true;
}

int
logengine_keep_document(struct ledgerengine *k, const struct message *m, uint64_t *where,
			struct slu_err *err)
{
	struct logengine *l = logengine_of(k);
	int rc;

	rc = logengine_encode_head(l, m, err);
	if (!rc)
		rc = logengine_reserve(l, WAL_NEW, logengine_message_size(l, m), err);
	if (!rc)
		rc = logengine_put_message(l, LOGENGINE_DOCUMENT, m, m->number, where, err);
	return rc;
}

void
logengine_drop_document(struct ledgerengine *k, uint64_t where)
{
	logengine_drop(logengine_of(k), where);
}

/* ---- Reading back ---- */

int
logengine_replay_lock(struct logengine *l, const struct wal_record *rec,
		      const struct logengine_entry *entry, struct slu_err *err)
{
	uint64_t where = 0;

	if (!l->dry) {
		if (places_reserve(&l->places))
			return logengine_no_memory(err);
		where = logengine_name(l, rec->where, rec->body.n, rec->body.n, SLAB_NONE);
	}
	ledger_set_counter(l->ledger, logengine_lock_top(&entry->lock.lock));
	if (!locks_replay(locks_of(l), &entry->lock.lock, where))
		return 0;
	if (where)
		logengine_drop(l, where);
	return logengine_no_memory(err);
}

static struct lock_ref
ref_of(const struct message *m)
{
	return (struct lock_ref){
		.space = m->space,
		.key = m->key,
		.id = m->key.n ? 0 : m->id,
	};
}

int
logengine_replay_document(struct logengine *l, const struct message *m, uint64_t where,
			  struct slu_err *err)
{
	const struct lock_ref ref = ref_of(m);

	if (m->key.n > LOCK_KEY_MAX || m->idem.n > LOCK_NAME_MAX || !m->id)
		return slu_fail(err, SLU_ECORRUPT, "invalid document");
	ledger_set_counter(l->ledger, m->number);
	return locks_replay_doc(locks_of(l), &ref, m->number, where) ? logengine_no_memory(err) : 0;
}

static bool
lives(void *arg, uint64_t id)
{
	const struct logengine *l = arg;

	return ledger_find_any(l->ledger, id) != SLAB_NONE;
}

void
logengine_locks_replayed(struct logengine *l)
{
	l->missing = locks_replayed(locks_of(l), lives, l);
	if (l->missing)
		log_error(l->log, "documents are missing", F_U64("documents", l->missing));
}

bool
logengine_names_document(const struct logengine *l, uint64_t etag)
{
	const struct lock *lock;
	uint32_t cursor = 0;

	while ((lock = locks_scan(locks_of(l), &cursor)) != NULL)
		for (uint32_t i = 0; i < lock->n; i++)
			if (lock->docs[i].etag == etag || lock->docs[i].staged == etag)
				return true;
	return false;
}

/* ---- Cleaning ---- */

static const struct lock *
find(const struct logengine *l, const struct lock_ref *ref)
{
	return ref->id ? locks_of_message(locks_of(l), ref->id)
		       : locks_find(locks_of(l), ref->space, ref->key);
}

int
logengine_clean_lock(struct logengine *l, const struct wal_record *rec, struct logengine_entry *entry,
		     struct slu_err *err)
{
	const struct lock *was = &entry->lock.lock;
	const struct lock_ref ref = { .space = was->space, .key = was->key, .id = was->id };
	const struct lock *lock = find(l, &ref);
	uint64_t where;
	int rc;

	if (!lock || !places_is(&l->places, locks_where(locks_of(l), lock), rec->where))
		return 0;
	if (locks_is_aside(locks_of(l), lock)) /* CLEAN-8 */
		l->queues[ledger_queue_find(l->ledger, lock->space, SLICE(LOCK_QUEUE))].retake = true;
	rc = append_lock(l, lock, WAL_FREE, 0, &where, err);
	if (!rc)
		locks_relocate(locks_of(l), lock, where);
	return rc;
}

/* The place of the key's document with that etag, or 0. */
static uint64_t
place_of(const struct lock *lock, uint64_t etag)
{
	for (uint32_t i = 0; lock && i < lock->n; i++) {
		if (lock->docs[i].etag == etag)
			return lock->docs[i].where;
		if (lock->docs[i].staged == etag)
			return lock->docs[i].staged_where;
	}
	return 0;
}

int
logengine_clean_document(struct logengine *l, const struct wal_record *rec,
			 struct logengine_entry *entry, struct slu_err *err)
{
	const struct message *m = &entry->message;
	const struct lock_ref ref = ref_of(m);
	const struct lock *lock = find(l, &ref);
	const uint64_t where = place_of(lock, m->number);
	struct wal_where at;
	uint32_t file;
	int rc;

	if (!where || !places_is(&l->places, where, rec->where))
		return 0;
	rc = logengine_reserve(l, WAL_FREE, rec->body.n, err);
	if (rc)
		return rc;
	file = logengine_name_file_again(l, where);
	at = logengine_append(l, LOGENGINE_DOCUMENT, &rec->body, 1);
	locks_relocate_doc(locks_of(l), lock, m->number,
			   logengine_name(l, at, rec->body.n, rec->body.n, file));
	return 0;
}
