/*
 * replay.c - replays records of keys and documents; and checks of all keys.
 *
 * The record of a key has all of it, so the last record counts. The records of its documents have
 * their places; they come before the record of the key or, in a cleaned log, behind it.
 */
#include "core/locks/locks_private.h"

/* ---- Documents without a key ---- */

static uint64_t
loose_key(uint64_t tag)
{
	return tag * 0x9e3779b97f4a7c15u;
}

static int
add_loose(struct locks *l, uint64_t tag, uint64_t where)
{
	uint32_t h = map_find(&l->loose_etags, loose_key(tag), &tag);
	struct loose *it;

	if (h != MAP_NONE) {
		it = slab_at(&l->loose, h);
		locks_drop(l, it->where);
		it->where = where;
		return 0;
	}
	if (map_reserve(&l->loose_etags, 1))
		return SLU_ENOMEM;
	h = slab_new(&l->loose);
	if (h == SLAB_NONE)
		return SLU_ENOMEM;
	it = slab_at(&l->loose, h);
	*it = (struct loose){ tag, where };
	return map_insert(&l->loose_etags, loose_key(tag), h);
}

/* Removes a loose document. Returns its place, or 0. */
static uint64_t
take_loose(struct locks *l, uint64_t tag)
{
	const uint32_t h = map_find(&l->loose_etags, loose_key(tag), &tag);
	uint64_t where;

	if (h == MAP_NONE)
		return 0;
	where = ((struct loose *)slab_at(&l->loose, h))->where;
	map_remove(&l->loose_etags, loose_key(tag), h);
	slab_free(&l->loose, h);
	return where;
}

/* ---- Replay ---- */

static uint64_t
place_of(struct locks *l, const struct lock *like, const struct lock *old, uint64_t etag)
{
	const struct lock_ref ref = { .space = like->space, .key = like->key, .id = like->id };

	if (!etag)
		return 0;
	for (uint32_t i = 0; old && i < old->n; i++) {
		if (old->docs[i].etag == etag)
			return old->docs[i].where;
		if (old->docs[i].staged == etag)
			return old->docs[i].staged_where;
	}
	return take_loose(l, locks_tag(l, &ref, etag));
}

int
locks_replay(struct locks *l, const struct lock *like, uint64_t where)
{
	const uint32_t h = locks_handle(l, like->space, like->key, like->id);
	const struct lock *old = h == SLAB_NONE ? NULL : locks_entry(l, h)->lock;
	struct lock *next;

	if (h == SLAB_NONE && locks_reserve(l))
		return SLU_ENOMEM;
	next = lock_new(like);
	if (!next)
		return SLU_ENOMEM;
	for (uint32_t i = 0; i < next->n; i++) {
		next->docs[i].where = place_of(l, like, old, next->docs[i].etag);
		next->docs[i].staged_where = place_of(l, like, old, next->docs[i].staged);
	}
	locks_put_in_place(l, h, next, where);
	return 0;
}

static bool
has_etag(const struct lock *lock, uint64_t etag)
{
	for (uint32_t i = 0; i < lock->n; i++)
		if (lock->docs[i].etag == etag || lock->docs[i].staged == etag)
			return true;
	return false;
}

int
locks_replay_doc(struct locks *l, const struct lock_ref *ref, uint64_t etag, uint64_t where)
{
	const uint32_t h = locks_handle(l, ref->space, ref->key, ref->id);
	const struct lock *lock = h == SLAB_NONE ? NULL : locks_entry(l, h)->lock;

	if (!lock || !has_etag(lock, etag))
		return add_loose(l, locks_tag(l, ref, etag), where);
	locks_relocate_doc(l, lock, etag, where);
	return 0;
}

void
locks_opened(struct locks *l, slu_time until)
{
	for (uint32_t h = 0; h < l->entries.fresh; h++) {
		struct lock *const lock = locks_scan_lock(l, h);

		if (!lock || lock->id || !lock->token || lock->over || lock->until >= until)
			continue;
		lock->until = until;
		locks_set_due(l, h);
	}
}

static uint32_t
count_missing(const struct lock *lock)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < lock->n; i++) {
		n += lock->docs[i].etag && !lock->docs[i].where;
		n += lock->docs[i].staged && !lock->docs[i].staged_where;
	}
	return n;
}

static void
drop_loose(struct locks *l)
{
	for (uint32_t h = 0; l->loose.used && h < l->loose.fresh; h++) {
		const struct loose *it = slab_has(&l->loose, h) ? slab_at(&l->loose, h) : NULL;

		if (it && map_find(&l->loose_etags, loose_key(it->tag), &it->tag) == h)
			locks_drop(l, take_loose(l, it->tag));
	}
}

uint32_t
locks_replayed(struct locks *l, bool (*lives)(void *arg, uint64_t id), void *arg)
{
	uint32_t missing = 0;

	for (uint32_t h = 0; h < l->entries.fresh; h++) {
		const struct lock *lock = locks_scan_lock(l, h);

		if (lock && lock->id && !lives(arg, lock->id))
			locks_forget(l, h);
		else if (lock)
			missing += count_missing(lock);
	}
	drop_loose(l);
	while (!list_is_empty(&l->freed)) /* no acquire waits yet */
		list_remove(l->freed.next);
	return missing;
}

/* ---- Checks ---- */

static const char *
check_entry(const struct locks *l, uint32_t h)
{
	const struct entry *e = locks_entry(l, h);
	const struct lock *lock = e->lock;

	if (locks_handle(l, lock->space, lock->key, lock->id) != h)
		return "a key is not found by its name";
	if (!lock->id && e->pos == HEAP_OUT && !lock_has_state(lock))
		return "a key without state never ends";
	if (!lock->id && lock->token && !lock->over && e->pos == HEAP_OUT)
		return "a lease never ends";
	if (e->aside && (lock_is_leased(lock) || !lock_has_state(lock)))
		return "a key that moves is leased, or has no state";
	if (lock->over && lock_is_staged(lock))
		return "something is staged under a lease that is over";
	if (!lock->id && !lock->token && lock_is_staged(lock))
		return "something is staged under no lease";
	return NULL;
}

static const char *
check_order(const struct locks *l, uint32_t keys)
{
	uint32_t n = 0;

	for (uint32_t h = tree_after(&l->order, NULL); h != SLAB_NONE; n++) {
		const uint32_t next = tree_next(&l->order, h);
		const struct lock *lock = locks_entry(l, h)->lock;

		if (next != SLAB_NONE && locks_after(l, lock->space, lock->key) != locks_entry(l, next)->lock &&
		    slice_eq(locks_entry(l, next)->lock->space, lock->space))
			return "keys are out of order";
		h = next;
	}
	return n == keys ? NULL : "a key is not in the order";
}

static const char *
check_spaces(const struct locks *l)
{
	const struct lock *first = locks_space_after(l, (struct slice){ 0 });
	uint32_t n = 0;

	for (; first; first = locks_space_after(l, first->space), n++) {
		struct locks_kept found = { 0 }, known;

		for (const struct lock *k = first; k; k = locks_after(l, k->space, k->key)) {
			found.n += lock_is_kept(k);
			found.leased += lock_is_leased(k);
		}
		locks_of_space(l, first->space, &known);
		if (known.n != found.n || known.leased != found.leased)
			return "keys of a namespace are counted wrong";
	}
	return n == l->spaces.used ? NULL : "a namespace has no keys";
}

const char *
locks_scan_check(const struct locks *l)
{
	uint32_t messages = 0, leases = 0, n = 0;
	size_t bytes = 0;
	const char *wrong = NULL;

	for (uint32_t h = 0; h < l->entries.fresh && !wrong; h++) {
		const struct lock *lock = locks_scan_lock(l, h);

		if (!lock)
			continue;
		n++;
		bytes += lock->size;
		messages += lock->id != 0;
		leases += !lock->id && lock->token && !lock->over;
		wrong = check_entry(l, h);
	}
	if (wrong)
		return wrong;
	if (bytes != l->lock_bytes)
		return "the memory of keys is counted wrong";
	if (n != l->entries.used || messages != l->of_messages || leases != l->leases)
		return "keys are counted wrong";
	wrong = check_order(l, n - messages);
	return wrong ? wrong : check_spaces(l);
}
