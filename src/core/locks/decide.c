/*
 * decide.c - checks the operations on keys, and makes the new content of a key.
 */
#include "core/locks/locks_private.h"

#include "base/time.h"

static int
refuse(enum slu_code code, enum lock_why why, enum lock_why *out)
{
	*out = why;
	return code;
}

/* Reserves the memory for a change. */
static int
promise(struct locks *l, uint32_t h, const struct lock *like, struct lock_change *out)
{
	const int rc = h == SLAB_NONE ? locks_reserve(l) : 0;

	*out = (struct lock_change){ .handle = h };
	if (rc)
		return rc;
	out->next = lock_new(like);
	return out->next ? 0 : SLU_ENOMEM;
}

/* ---- Acquire ---- */

static bool
is_zero(const uint8_t txn[LOCK_TXN])
{
	static const uint8_t zeros[LOCK_TXN];

	return memcmp(txn, zeros, LOCK_TXN) == 0;
}

/* Returns whether the key exists, for if_absent. */
static bool
exists(const struct lock *lock, slu_time now)
{
	return lock_has_state(lock) || lock_is_held(lock, now) || lock->known > now ||
	       (lock->token && !lock->over && time_add(lock->until, LOCK_KNOWN) > now);
}

int
locks_acquire(struct locks *l, const struct lock_want *want, slu_time now,
	      struct lock_change *out, enum lock_why *why)
{
	const uint32_t h = locks_handle(l, want->space, want->key, 0);
	const struct lock *old = h == SLAB_NONE ? NULL : locks_entry(l, h)->lock;
	const bool known = old && exists(old, now);
	struct lock_draft d;
	int rc;

	*why = LOCK_OK;
	out->next = NULL;
	if (old && lock_is_held(old, now))
		return refuse(SLU_ELEASE, LOCK_HELD, why);
	if (known && want->if_absent)
		return refuse(SLU_EEXISTS, LOCK_KNOWN_KEY, why);
	lock_draft(&d, old);
	lock_rollback(&d.lock, NULL, NULL);
	d.lock.space = want->space;
	d.lock.key = want->key;
	d.lock.holder = want->holder;
	d.lock.token = want->token;
	d.lock.until = time_add(now, want->ttl);
	d.lock.over = false;
	d.lock.fresh = !known;
	if (is_zero(want->txn))
		lock_txn(want->token, d.lock.txn);
	else
		memcpy(d.lock.txn, want->txn, LOCK_TXN);
	rc = promise(l, h, &d.lock, out);
	out->number = want->token;
	out->adds = !old;
	return rc;
}

/* ---- Holders ---- */

/* The lease of a key: its own, or the lease of its message. */
struct right {
	uint64_t token;
	slu_time until;
	bool over;
};

static struct right
right_of(const struct lock *lock, const struct lock_ref *ref)
{
	if (ref->id)
		return (struct right){ ref->held, ref->until, false };
	if (!lock)
		return (struct right){ 0 };
	return (struct right){ lock->token, lock->until, lock->over };
}

static int
check_txn(const struct lock *lock, const struct lock_ref *ref, enum lock_why *why)
{
	if (is_zero(ref->txn))
		return refuse(SLU_EINVAL, LOCK_TXN_MISSING, why);
	if (!ref->id && memcmp(ref->txn, lock->txn, LOCK_TXN) != 0)
		return refuse(SLU_ECONFLICT, LOCK_TXN_OTHER, why);
	return 0;
}

static int
check(const struct lock *lock, const struct lock_ref *ref, bool without_txn, slu_time now,
      enum lock_why *why)
{
	const struct right right = right_of(lock, ref);

	*why = LOCK_OK;
	if (!ref->token || ref->token != right.token)
		return refuse(SLU_ELEASE, LOCK_NONE, why);
	if (right.over || right.until <= now)
		return refuse(SLU_ELEASE, LOCK_EXPIRED, why);
	if (ref->fence && ref->fence != right.token)
		return refuse(SLU_ELEASE, LOCK_FENCE, why);
	if (without_txn && is_zero(ref->txn))
		return 0;
	return check_txn(lock, ref, why);
}

int
locks_check(const struct locks *l, const struct lock_ref *ref, bool without_txn, slu_time now,
	    enum lock_why *why)
{
	const uint32_t h = locks_handle(l, ref->space, ref->key, ref->id);

	return check(h == SLAB_NONE ? NULL : locks_entry(l, h)->lock, ref, without_txn, now, why);
}

/* Copies the key that ref holds into a draft. The state of a message may not exist yet. */
static int
begin(struct locks *l, const struct lock_ref *ref, bool without_txn, slu_time now,
      uint32_t *h, struct lock_draft *d, enum lock_why *why)
{
	const struct lock *old;
	int rc;

	*h = locks_handle(l, ref->space, ref->key, ref->id);
	old = *h == SLAB_NONE ? NULL : locks_entry(l, *h)->lock;
	rc = check(old, ref, without_txn, now, why);
	if (rc)
		return rc;
	lock_draft(d, old);
	if (!ref->id)
		return 0;
	if (d->lock.token != ref->held) /* LOCK-7 */
		lock_rollback(&d->lock, NULL, NULL);
	d->lock.id = ref->id;
	d->lock.token = ref->held;
	return 0;
}

static int
check_match(const struct lock *lock, const struct lock_ref *ref, struct slice name,
	    enum lock_why *why)
{
	const struct lock_doc *doc = lock_doc(lock, name);
	const uint64_t etag = doc ? lock_seen(doc) : 0;

	if (ref->if_version >= 0 && (uint64_t)ref->if_version != lock_version(lock, true))
		return refuse(SLU_ECONFLICT, LOCK_VERSION, why);
	if (ref->if_etag && ref->if_etag != etag)
		return refuse(SLU_ECONFLICT, LOCK_ETAG, why);
	return 0;
}

int
locks_keepalive(struct locks *l, const struct lock_ref *ref, slu_time ttl, slu_time now,
		struct lock_change *out, enum lock_why *why)
{
	struct lock_draft d;
	uint32_t h;
	int rc;

	out->next = NULL;
	if (ref->id)
		return refuse(SLU_EINVAL, LOCK_OF_MESSAGE, why);
	rc = begin(l, ref, true, now, &h, &d, why);
	if (rc)
		return rc;
	d.lock.until = time_add(now, ttl);
	return promise(l, h, &d.lock, out);
}

/* One place is reserved for the state. */
static bool
has_room(const struct lock *lock, struct slice name)
{
	uint32_t attached = 0;

	for (uint32_t i = 0; i < lock->n; i++)
		attached += lock->docs[i].name.n > 0;
	return name.n == 0 || attached < LOCK_DOCS_MAX - 1;
}

static int
stage(struct lock_draft *d, struct slice name, uint64_t etag)
{
	struct lock_doc *doc = lock_doc(&d->lock, name);

	if (!doc && !has_room(&d->lock, name))
		return SLU_ETOOBIG;
	if (!doc) {
		doc = &d->docs[d->lock.n++];
		*doc = (struct lock_doc){ .name = name };
	}
	doc->staged = etag;
	doc->staged_where = 0;
	doc->removed = false;
	return 0;
}

int
locks_put(struct locks *l, const struct lock_ref *ref, struct slice name, uint64_t etag,
	  bool if_absent, slu_time now, struct lock_change *out, enum lock_why *why)
{
	const struct lock_doc *doc;
	struct lock_draft d;
	uint32_t h;
	int rc;

	out->next = NULL;
	rc = begin(l, ref, false, now, &h, &d, why);
	if (!rc)
		rc = check_match(&d.lock, ref, name, why);
	if (rc)
		return rc;
	doc = lock_doc(&d.lock, name);
	if (if_absent && doc && lock_seen(doc))
		return refuse(SLU_EEXISTS, LOCK_KNOWN_KEY, why);
	rc = stage(&d, name, etag);
	if (rc)
		return rc;
	rc = promise(l, h, &d.lock, out);
	out->number = etag;
	out->adds = true;
	return rc;
}

void
locks_put_commits(struct lock_change *out, slu_time at)
{
	lock_commit(out->next, at, NULL, NULL);
}

int
locks_give(struct locks *l, const struct lock_gift *gift, struct lock_change *out)
{
	const uint32_t h = locks_handle(l, gift->space, gift->key, gift->id);
	struct lock_draft d;
	struct lock_doc *doc;
	int rc;

	out->next = NULL;
	lock_draft(&d, h == SLAB_NONE ? NULL : locks_entry(l, h)->lock);
	if (h == SLAB_NONE) {
		d.lock.space = gift->space;
		d.lock.key = gift->key;
		d.lock.id = gift->id;
	}
	if (gift->version > d.lock.version && !lock_is_leased(&d.lock))
		d.lock.n = 0; /* left over from a batch that was given up */
	if ((gift->version < d.lock.version && lock_has_state(&d.lock)) || lock_is_leased(&d.lock) ||
	    lock_doc(&d.lock, gift->name))
		return 0;
	if (!has_room(&d.lock, gift->name))
		return SLU_ETOOBIG;
	doc = &d.docs[d.lock.n++];
	*doc = (struct lock_doc){ .name = gift->name, .etag = gift->etag };
	d.lock.version = gift->version;
	d.lock.updated = gift->updated;
	d.lock.hidden = gift->hidden;
	rc = promise(l, h, &d.lock, out);
	out->number = gift->etag;
	out->adds = true;
	return rc;
}

/* Stages the removal of a document. Returns whether there was one. */
static bool
stage_removal(struct lock_doc *doc)
{
	if (!lock_seen(doc))
		return false;
	doc->staged = doc->staged_where = 0;
	doc->removed = doc->etag != 0;
	return true;
}

int
locks_remove(struct locks *l, const struct lock_ref *ref, struct slice name, bool all,
	     slu_time now, struct lock_change *out, uint32_t *n, enum lock_why *why)
{
	struct lock_draft d;
	uint32_t h;
	int rc;

	out->next = NULL;
	*n = 0;
	rc = begin(l, ref, false, now, &h, &d, why);
	if (!rc)
		rc = check_match(&d.lock, ref, name, why);
	for (uint32_t i = 0; !rc && i < d.lock.n; i++)
		if (all ? d.docs[i].name.n > 0 : slice_eq(d.docs[i].name, name))
			*n += stage_removal(&d.docs[i]);
	if (rc || *n == 0)
		return rc;
	return promise(l, h, &d.lock, out);
}

int
locks_hide(struct locks *l, const struct lock_ref *ref, bool hide, slu_time now,
	   struct lock_change *out, enum lock_why *why)
{
	struct lock_draft d;
	uint32_t h;
	int rc;

	out->next = NULL;
	rc = begin(l, ref, false, now, &h, &d, why);
	if (!rc)
		rc = check_match(&d.lock, ref, (struct slice){ 0 }, why);
	if (rc)
		return rc;
	d.lock.hides = true;
	d.lock.hide = hide;
	return promise(l, h, &d.lock, out);
}

/* LOCK-6: a key that is not held needs no release. */
static int
pass_over(int rc)
{
	return rc == SLU_ELEASE ? 0 : rc;
}

static void
end_of_lease(struct lock *lock, slu_time known)
{
	lock->token = 0;
	lock->until = 0;
	lock->holder = (struct slice){ 0 };
	memset(lock->txn, 0, LOCK_TXN);
	lock->known = known;
	lock->fresh = false;
}

int
locks_release(struct locks *l, const struct lock_ref *ref, struct lock_end end, slu_time now,
	      struct lock_change *out, enum lock_why *why)
{
	struct lock_draft d;
	uint32_t h;
	int rc;

	out->next = NULL;
	rc = begin(l, ref, end.undo, now, &h, &d, why);
	if (rc)
		return pass_over(rc);
	if (ref->id && (h == SLAB_NONE || !lock_is_staged(&d.lock)))
		return 0;
	if (end.commit)
		lock_commit(&d.lock, now, NULL, NULL);
	else
		lock_rollback(&d.lock, NULL, NULL);
	end_of_lease(&d.lock, end.undo && d.lock.fresh ? now : time_add(now, LOCK_KNOWN));
	return promise(l, h, &d.lock, out);
}

int
locks_finish(struct locks *l, const struct lock_ref *ref, uint64_t etag, slu_time now, struct lock_change *out,
	     enum lock_why *why)
{
	struct lock_draft d;
	uint32_t h;
	int rc;

	out->next = NULL;
	rc = begin(l, ref, false, now, &h, &d, why);
	if (!rc && etag)
		rc = stage(&d, (struct slice){ 0 }, etag);
	if (rc)
		return rc;
	lock_commit(&d.lock, now, NULL, NULL);
	end_of_lease(&d.lock, time_add(now, LOCK_KNOWN));
	rc = promise(l, h, &d.lock, out);
	out->number = etag;
	out->adds = etag != 0;
	return rc;
}

/* ---- Time ---- */

slu_time
locks_next_due(const struct locks *l)
{
	const struct heap_node *first = heap_first(&l->ends);

	return first ? (slu_time)rank_time((int64_t)first->b) : SLU_NEVER;
}

/* LOCK-2: a change notes the end of the lease, so that locks_opened does not extend it. */
static bool
end_lease(struct locks *l, uint32_t h, struct lock_change *out)
{
	struct lock_draft d;

	lock_draft(&d, locks_entry(l, h)->lock);
	lock_rollback(&d.lock, NULL, NULL);
	d.lock.over = true;
	d.lock.known = time_add(d.lock.until, LOCK_KNOWN);
	if (promise(l, h, &d.lock, out))
		return false;
	out->late = true;
	return true;
}

bool
locks_tick(struct locks *l, slu_time now, uint32_t *budget, struct lock_change *out)
{
	while (*budget > 0 && locks_next_due(l) <= now) {
		const uint32_t h = l->ends.nodes[0].handle;
		const struct lock *lock = locks_entry(l, h)->lock;

		--*budget;
		if (lock->token && !lock->over)
			return end_lease(l, h, out);
		locks_forget(l, h); /* LOCK-8 */
	}
	return false;
}
