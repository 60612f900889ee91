/*
 * locks.c - the keys of a shard: finds, replaces and forgets them.
 */
#include "core/locks/locks_private.h"

#include "base/mem.h"

#include <assert.h>

enum {
	TRIM_SLOTS = 16 << 10 /* of a map, in one call */
};

static int
cmp_slices(struct slice a, struct slice b)
{
	const size_t n = a.n < b.n ? a.n : b.n;
	const int cmp = n ? memcmp(a.p, b.p, n) : 0;

	return cmp ? cmp : (a.n > b.n) - (a.n < b.n);
}

static uint64_t
entry_hash(const void *slab, uint32_t h)
{
	return ((const struct entry *)slab_at(slab, h))->hash;
}

static bool
entry_is(const void *slab, uint32_t h, const void *key)
{
	const struct lock *lock = ((const struct entry *)slab_at(slab, h))->lock;
	const struct lock_id *want = key;

	if (want->id || lock->id)
		return lock->id == want->id;
	return slice_eq(lock->key, want->key) && slice_eq(lock->space, want->space);
}

static int
entry_cmp(const void *slab, uint32_t h, const void *key)
{
	const struct lock *lock = ((const struct entry *)slab_at(slab, h))->lock;
	const struct lock_id *want = key;
	const int cmp = cmp_slices(lock->space, want->space);

	return cmp ? cmp : cmp_slices(lock->key, want->key);
}

/* An empty name is not a key. */
static bool
is_key(const struct lock_id *it)
{
	return it->id || (it->space.n && it->space.n <= LOCK_KEY_MAX && it->key.n &&
			  it->key.n <= LOCK_KEY_MAX);
}

static uint64_t
hash_of(const struct locks *l, const struct lock_id *it)
{
	char text[2 * LOCK_KEY_MAX + 1];

	if (it->id)
		return hash_keyed(&l->conf.secret, &it->id, sizeof it->id);
	assert(is_key(it));
	memcpy(text, it->space.p, it->space.n);
	text[it->space.n] = '/';
	memcpy(text + it->space.n + 1, it->key.p, it->key.n);
	return hash_keyed(&l->conf.secret, text, it->space.n + 1 + it->key.n);
}

static uint64_t
loose_hash(const void *slab, uint32_t h)
{
	return ((const struct loose *)slab_at(slab, h))->tag * 0x9e3779b97f4a7c15u;
}

static bool
loose_is(const void *slab, uint32_t h, const void *key)
{
	return ((const struct loose *)slab_at(slab, h))->tag == *(const uint64_t *)key;
}

uint64_t
locks_tag(const struct locks *l, const struct lock_ref *ref, uint64_t etag)
{
	const struct lock_id it = { ref->space, ref->key, ref->id };

	return is_key(&it) ? hash_of(l, &it) ^ etag : etag;
}

int
locks_new(struct locks **out, const struct locks_conf *conf)
{
	struct locks *l = mem_zalloc(sizeof *l);

	if (!l)
		return SLU_ENOMEM;
	l->conf = *conf;
	slab_init_chunked(&l->entries, sizeof(struct entry), 8);
	map_init(&l->names, &l->entries, entry_hash, entry_is);
	tree_init(&l->order, &l->entries, offsetof(struct entry, node), entry_cmp, entry_hash);
	heap_init(&l->ends, &l->entries, offsetof(struct entry, pos));
	list_init(&l->freed);
	slab_init_chunked(&l->loose, sizeof(struct loose), 8);
	map_init(&l->loose_etags, &l->loose, loose_hash, loose_is);
	locks_spaces_init(l);
	*out = l;
	return 0;
}

void
locks_free(struct locks *l)
{
	uint32_t cursor = 0;
	const struct lock *lock;

	if (!l)
		return;
	while ((lock = locks_scan(l, &cursor)) != NULL)
		mem_free((void *)lock); /* owned by its entry */
	heap_release(&l->ends);
	map_release(&l->names);
	map_release(&l->loose_etags);
	slab_release(&l->loose);
	locks_spaces_release(l);
	slab_release(&l->entries);
	mem_free(l);
}

uint32_t
locks_handle(const struct locks *l, struct slice space, struct slice key, uint64_t id)
{
	const struct lock_id it = { space, key, id };

	if (map_count(&l->names) == 0 || !is_key(&it))
		return SLAB_NONE;
	return map_find(&l->names, hash_of(l, &it), &it);
}

/* ---- In and out ---- */

int
locks_reserve(struct locks *l)
{
	int rc = slab_reserve(&l->entries, 1);

	if (!rc)
		rc = map_reserve(&l->names, 1);
	if (!rc)
		rc = locks_spaces_reserve(l);
	return rc ? rc : heap_reserve(&l->ends, l->entries.used + 1);
}

/* Room was reserved. */
static uint32_t
add_entry(struct locks *l, struct lock *lock)
{
	const struct lock_id it = { lock->space, lock->key, lock->id };
	const uint32_t h = slab_new(&l->entries);
	struct entry *e;
	int rc;

	assert(h != SLAB_NONE);
	e = locks_entry(l, h);
	*e = (struct entry){ .hash = hash_of(l, &it), .lock = lock, .pos = HEAP_OUT };
	list_init(&e->freed);
	rc = map_insert(&l->names, e->hash, h);
	assert(rc == 0);
	(void)rc;
	if (lock->id) {
		l->of_messages++;
		return h;
	}
	tree_insert(&l->order, h, &it);
	e->space = locks_space_enter(l, lock->space);
	return h;
}

/* LOCK-10: drops the places of old that next does not have. */
static bool
names(const struct lock *lock, uint64_t where)
{
	for (uint32_t i = 0; i < lock->n; i++)
		if (lock->docs[i].where == where || lock->docs[i].staged_where == where)
			return true;
	return false;
}

static void
drop_old(const struct locks *l, const struct lock *old, const struct lock *next)
{
	for (uint32_t i = 0; i < old->n; i++) {
		const struct lock_doc *doc = &old->docs[i];

		if (!next || !names(next, doc->where))
			locks_drop(l, doc->where);
		if (!next || !names(next, doc->staged_where))
			locks_drop(l, doc->staged_where);
	}
}

/* The moment of its next event. */
static slu_time
due_of(const struct lock *lock)
{
	if (lock->id)
		return SLU_NEVER;
	if (lock_is_leased(lock))
		return lock->until;
	return lock_has_state(lock) ? SLU_NEVER : lock->known;
}

void
locks_set_due(struct locks *l, uint32_t h)
{
	struct entry *e = locks_entry(l, h);
	const slu_time due = due_of(e->lock);

	if (e->pos != HEAP_OUT)
		heap_remove(&l->ends, e->pos);
	if (due != SLU_NEVER)
		heap_push(&l->ends, (struct rank){ .b = rank_time(due), .c = e->hash }, h);
}

void
locks_put_in_place(struct locks *l, uint32_t h, struct lock *next, uint64_t where)
{
	struct entry *e;
	bool was_held = false;

	if (h == SLAB_NONE) {
		h = add_entry(l, next);
		e = locks_entry(l, h);
	} else {
		struct lock *old;

		e = locks_entry(l, h);
		old = e->lock;
		was_held = lock_is_leased(old);
		if (!old->id)
			locks_space_count(l, e->space, old, false);
		e->lock = next;
		drop_old(l, old, next);
		if (e->where != where)
			locks_drop(l, e->where);
		l->lock_bytes -= old->size;
		mem_free(old);
	}
	l->lock_bytes += next->size;
	e->where = where;
	if (!next->id)
		locks_space_count(l, e->space, next, true);
	locks_set_due(l, h);
	l->leases += lock_is_leased(next);
	l->leases -= was_held;
	if (was_held && !lock_is_leased(next) && list_is_empty(&e->freed))
		list_append(&l->freed, &e->freed);
}

void
locks_forget(struct locks *l, uint32_t h)
{
	struct entry *e = locks_entry(l, h);

	map_remove(&l->names, e->hash, h);
	if (e->lock->id) {
		l->of_messages--;
	} else {
		tree_remove(&l->order, h);
		locks_space_count(l, e->space, e->lock, false);
		locks_space_leave(l, e->space);
	}
	if (e->pos != HEAP_OUT)
		heap_remove(&l->ends, e->pos);
	list_remove(&e->freed);
	l->leases -= lock_is_leased(e->lock);
	drop_old(l, e->lock, NULL);
	locks_drop(l, e->where);
	l->lock_bytes -= e->lock->size;
	mem_free(e->lock);
	e->lock = NULL; /* for locks_scan */
	slab_free(&l->entries, h);
}

void
locks_apply(struct locks *l, struct lock_change *c)
{
	locks_put_in_place(l, c->handle, c->next, c->where);
	c->next = NULL;
}

void
locks_undo(struct lock_change *c)
{
	mem_free(c->next);
	c->next = NULL;
}

static void
drop_for(void *arg, uint64_t where)
{
	locks_drop(arg, where);
}

void
locks_message(struct locks *l, uint64_t id, enum lock_fate fate, slu_time at)
{
	struct lock *lock;
	uint32_t h;

	if (l->of_messages == 0 || id == 0)
		return;
	h = locks_handle(l, (struct slice){ 0 }, (struct slice){ 0 }, id);
	if (h == SLAB_NONE)
		return;
	lock = locks_entry(l, h)->lock;
	if (fate == LOCK_COMMIT)
		lock_commit(lock, at, drop_for, l);
	else
		lock_rollback(lock, drop_for, l);
	if (fate == LOCK_GONE || (lock->version == 0 && lock->n == 0))
		locks_forget(l, h);
}

/* ---- Looking ---- */

const struct lock *
locks_find(const struct locks *l, struct slice space, struct slice key)
{
	const uint32_t h = locks_handle(l, space, key, 0);

	return h == SLAB_NONE ? NULL : locks_entry(l, h)->lock;
}

const struct lock *
locks_of_message(const struct locks *l, uint64_t id)
{
	uint32_t h;

	if (l->of_messages == 0 || id == 0)
		return NULL;
	h = locks_handle(l, (struct slice){ 0 }, (struct slice){ 0 }, id);
	return h == SLAB_NONE ? NULL : locks_entry(l, h)->lock;
}

const struct lock *
locks_after(const struct locks *l, struct slice space, struct slice key)
{
	const struct lock_id it = { .space = space, .key = key };
	const uint32_t h = tree_after(&l->order, &it);
	const struct lock *lock = h == SLAB_NONE ? NULL : locks_entry(l, h)->lock;

	return lock && slice_eq(lock->space, space) ? lock : NULL;
}

/* An entry that is in use has a lock. */
const struct lock *
locks_scan(const struct locks *l, uint32_t *cursor)
{
	while (*cursor < l->entries.fresh) {
		const struct lock *lock = locks_scan_lock(l, (*cursor)++);

		if (lock)
			return lock;
	}
	*cursor = LOCKS_END;
	return NULL;
}

void
locks_size(const struct locks *l, struct locks_size *out)
{
	*out = (struct locks_size){
		.keys = l->entries.used - l->of_messages,
		.messages = l->of_messages,
		.leases = l->leases,
	};
}

void
locks_footprint(const struct locks *l, struct footprint *out)
{
	footprint_slab(out, &l->entries);
	footprint_map(out, &l->names);
	footprint_heap(out, &l->ends);
	footprint_slab(out, &l->loose);
	footprint_map(out, &l->loose_etags);
	footprint_slab(out, &l->spaces);
	footprint_map(out, &l->space_names);
	footprint_bytes(out, l->lock_bytes);
}

uint64_t
locks_mass(const struct locks *l)
{
	return slab_used_bytes(&l->entries) + l->lock_bytes;
}

size_t
locks_growth(const struct locks *l)
{
	return slab_growth(&l->entries) + map_growth(&l->names) +
	       heap_growth(&l->ends, l->entries.used + 1) + sizeof(struct lock);
}

bool
locks_trim(struct locks *l)
{
	bool more;

	(void)slab_trim(&l->entries);
	(void)slab_trim(&l->loose);
	heap_trim(&l->ends, l->entries.used);
	more = map_trim(&l->names, TRIM_SLOTS);
	return map_trim(&l->loose_etags, TRIM_SLOTS) || more;
}

bool
locks_freed(struct locks *l, struct slice *space, struct slice *key)
{
	struct entry *e;

	if (list_is_empty(&l->freed))
		return false;
	e = CONTAINER(l->freed.next, struct entry, freed);
	list_remove(&e->freed);
	*space = e->lock->space;
	*key = e->lock->key;
	return true;
}

/* ---- Moving ---- */

static struct entry *
entry_of(const struct locks *l, const struct lock *lock)
{
	const uint32_t h = locks_handle(l, lock->space, lock->key, lock->id);

	assert(h != SLAB_NONE);
	return locks_entry(l, h);
}

uint64_t
locks_where(const struct locks *l, const struct lock *lock)
{
	return entry_of(l, lock)->where;
}

void
locks_relocate(struct locks *l, const struct lock *lock, uint64_t where)
{
	struct entry *e = entry_of(l, lock);

	locks_drop(l, e->where);
	e->where = where;
}

void
locks_relocate_doc(struct locks *l, const struct lock *lock, uint64_t etag, uint64_t where)
{
	struct lock *own = entry_of(l, lock)->lock;

	for (uint32_t i = 0; i < own->n; i++) {
		struct lock_doc *doc = &own->docs[i];
		uint64_t *const place = doc->etag == etag ? &doc->where : &doc->staged_where;

		if (doc->etag != etag && doc->staged != etag)
			continue;
		locks_drop(l, *place);
		*place = where;
	}
}
