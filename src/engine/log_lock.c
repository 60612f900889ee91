/*
 * log_lock.c - keys and their documents in the log: kept, read back, cleaned.
 *
 *      put:       | document | lock |      the key as it is then, whole, names it by etag
 *      release:   | lock |                 committed: the same document, not written again
 *
 *  Q1  A lock record is a key as it stands. The last one of a key counts, those before it
 *      are garbage, and so is a document that the last one does not name.
 *  Q2  A document comes before the lock that names it first. Cleaning moves either alone,
 *      so a log may have them in any order.
 *  Q3  What becomes of a message's state follows from the records of the message (K7).
 */
#include "engine/log_in.h"

#include <inttypes.h>

static struct log_engine *
of_clerk(struct clerk *k)
{
	return CONTAINER(k, struct log_engine, clerk);
}

static struct locks *
locks_of(const struct log_engine *l)
{
	return l->clerk.locks;
}

/* ---- Keeping ---- */

/* The record of a key; its bytes are in out, and in the engine's scratch. */
static int
encode_lock(struct log_engine *l, const struct lock *lock, struct log_bytes *out,
	    struct slu_err *err)
{
	struct log_entry entry = { .type = LOG_LOCK };

	buf_clear(&l->scratch);
	log_fill_lock(&entry, lock, &l->scratch);
	if (l->scratch.failed) {
		(void)slu_fail(err, SLU_ENOMEM, "no memory for the record of a key");
		return SLU_ENOMEM;
	}
	log_encode(&entry, out);
	return 0;
}

static int
append_lock(struct log_engine *l, const struct lock *lock, enum wal_use use, uint64_t number,
	    uint64_t *where, struct slu_err *err)
{
	struct log_bytes bytes;
	struct wal_where at;
	int rc;

	rc = encode_lock(l, lock, &bytes, err);
	if (!rc)
		rc = log_reserve(l, use, bytes.size, err);
	if (rc)
		return rc;
	if (number > l->ceiling)
		log_put_ceiling(l, number);
	at = log_append(l, LOG_LOCK, bytes.parts, bytes.n);
	*where = log_name(l, at, bytes.size, bytes.size, SLAB_NONE);
	return 0;
}

int
log_keep_lock(struct clerk *k, struct lock_change *c, struct slu_err *err)
{
	struct log_engine *l = of_clerk(k);
	int rc;

	rc = append_lock(l, c->next, c->adds ? WAL_NEW : WAL_SETTLE, c->number, &c->where, err);
	if (!rc && !c->late)
		l->must_sync = true;
	return rc;
}

void
log_sync_all(struct clerk *k)
{
	of_clerk(k)->must_sync = true;
}

int
log_keep_document(struct clerk *k, const struct message *m, uint64_t *where,
		  struct slu_err *err)
{
	struct log_engine *l = of_clerk(k);
	const size_t size = message_size(m);
	uint32_t file = SLAB_NONE;
	int rc;

	rc = log_encode_head(l, m, err);
	if (!rc)
		rc = log_reserve(l, WAL_NEW, size, err);
	if (!rc && m->file)
		rc = log_files_name(&l->files, m, &file, err);
	if (rc)
		return rc;
	if (m->number > l->ceiling)
		log_put_ceiling(l, m->number);

	const struct slice parts[] = { { l->scratch.p, message_head(m) }, m->payload };

	*where = log_name(l, log_append(l, LOG_DOCUMENT, parts, 2), size, size, file);
	return 0;
}

void
log_drop_document(struct clerk *k, uint64_t where)
{
	log_drop(of_clerk(k), where);
}

/* ---- Reading back ---- */

static int
no_memory(struct slu_err *err)
{
	return slu_fail(err, SLU_ENOMEM, "out of memory");
}

int
log_replay_lock(struct log_engine *l, const struct wal_record *rec,
		const struct log_entry *entry, struct slu_err *err)
{
	uint64_t where = 0;

	if (!l->dry) {
		if (places_reserve(&l->places))
			return no_memory(err);
		where = log_name(l, rec->where, rec->body.n, rec->body.n, SLAB_NONE);
	}
	ledger_set_counter(l->ledger, log_lock_top(&entry->lock.lock));
	if (!locks_replay(locks_of(l), &entry->lock.lock, where))
		return 0;
	if (where)
		log_drop(l, where);
	return no_memory(err);
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
log_replay_document(struct log_engine *l, const struct message *m, uint64_t where,
		    struct slu_err *err)
{
	const struct lock_ref ref = ref_of(m);

	if (m->key.n > LOCK_KEY_MAX || m->idem.n > LOCK_NAME_MAX || !m->id)
		return slu_fail(err, SLU_ECORRUPT, "a document that nobody writes");
	ledger_set_counter(l->ledger, m->number);
	return locks_replay_doc(locks_of(l), &ref, m->number, where) ? no_memory(err) : 0;
}

static bool
lives(void *arg, uint64_t id)
{
	const struct log_engine *l = arg;

	return ledger_find_any(l->ledger, id) != SLAB_NONE;
}

void
log_locks_replayed(struct log_engine *l)
{
	l->missing = locks_replayed(locks_of(l), lives, l);
	if (l->missing)
		log_error(l->log, "documents are missing", F_U64("documents", l->missing));
}

bool
log_names_document(const struct log_engine *l, uint64_t etag)
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
find(const struct log_engine *l, const struct lock_ref *ref)
{
	return ref->id ? locks_of_message(locks_of(l), ref->id)
		       : locks_find(locks_of(l), ref->space, ref->key);
}

int
log_clean_lock(struct log_engine *l, const struct wal_record *rec, struct log_entry *entry,
	       struct slu_err *err)
{
	const struct lock *was = &entry->lock.lock;
	const struct lock_ref ref = { .space = was->space, .key = was->key, .id = was->id };
	const struct lock *lock = find(l, &ref);
	uint64_t where;
	int rc;

	if (!lock || !places_is(&l->places, locks_where(locks_of(l), lock), rec->where))
		return 0;
	if (locks_is_aside(locks_of(l), lock)) /* C8 */
		l->queues[ledger_queue_find(l->ledger, lock->space, SLICE(LOCK_QUEUE))].retake = true;
	rc = append_lock(l, lock, WAL_FREE, 0, &where, err);
	if (!rc)
		locks_move(locks_of(l), lock, where);
	return rc;
}

/* Where the key has that document, or 0. */
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
log_clean_document(struct log_engine *l, const struct wal_record *rec,
		   struct log_entry *entry, struct slu_err *err)
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
	rc = log_reserve(l, WAL_FREE, rec->body.n, err);
	if (rc)
		return rc;
	file = log_name_file_again(l, where);
	at = log_append(l, LOG_DOCUMENT, &rec->body, 1);
	locks_move_doc(locks_of(l), lock, m->number,
		       log_name(l, at, rec->body.n, rec->body.n, file));
	return 0;
}
