/*
 * space.c - namespaces with lock keys, and the keys of them that a move takes along.
 */
#include "core/locks/locks_private.h"

#include <assert.h>

static uint64_t
space_hash(const void *slab, uint32_t h)
{
	return ((const struct lock_space *)slab_at(slab, h))->hash;
}

static bool
space_is(const void *slab, uint32_t h, const void *key)
{
	const struct lock_space *s = slab_at(slab, h);

	return slice_eq((struct slice){ s->name, s->n }, *(const struct slice *)key);
}

void
locks_spaces_init(struct locks *l)
{
	slab_init_chunked(&l->spaces, sizeof(struct lock_space), 4);
	map_init(&l->space_names, &l->spaces, space_hash, space_is);
}

void
locks_spaces_release(struct locks *l)
{
	map_release(&l->space_names);
	slab_release(&l->spaces);
}

int
locks_spaces_reserve(struct locks *l)
{
	const int rc = slab_reserve(&l->spaces, 1);

	return rc ? rc : map_reserve(&l->space_names, 1);
}

static uint64_t
hash_of(const struct locks *l, struct slice space)
{
	return hash_keyed(&l->conf.secret, space.p, space.n);
}

/* Room was reserved. */
static uint32_t
add_space(struct locks *l, struct slice name)
{
	const uint32_t h = slab_new(&l->spaces);
	struct lock_space *s;
	int rc;

	assert(h != SLAB_NONE && name.n <= LOCK_KEY_MAX);
	s = slab_at(&l->spaces, h);
	s->hash = hash_of(l, name);
	s->n = (uint32_t)name.n;
	memcpy(s->name, name.p, name.n);
	rc = map_insert(&l->space_names, s->hash, h);
	assert(rc == 0);
	(void)rc;
	return h;
}

uint32_t
locks_space_enter(struct locks *l, struct slice name)
{
	uint32_t h = map_find(&l->space_names, hash_of(l, name), &name);

	if (h == MAP_NONE)
		h = add_space(l, name);
	((struct lock_space *)slab_at(&l->spaces, h))->keys++;
	return h;
}

void
locks_space_leave(struct locks *l, uint32_t h)
{
	struct lock_space *s = slab_at(&l->spaces, h);

	if (--s->keys > 0)
		return;
	map_remove(&l->space_names, s->hash, h);
	slab_free(&l->spaces, h);
}

void
locks_space_count(struct locks *l, uint32_t h, const struct lock *lock, bool in)
{
	struct lock_space *s = slab_at(&l->spaces, h);
	const uint32_t by = in ? 1 : UINT32_MAX; /* which wraps */

	if (lock_is_leased(lock))
		s->leased += by;
	if (lock_is_kept(lock))
		s->kept += by;
}

/* ---- Looking ---- */

void
locks_of_space(const struct locks *l, struct slice space, struct locks_kept *out)
{
	const uint32_t h = map_count(&l->space_names) ? map_find(&l->space_names, hash_of(l, space), &space)
						      : MAP_NONE;
	const struct lock_space *s = h == MAP_NONE ? NULL : slab_at(&l->spaces, h);

	*out = s ? (struct locks_kept){ s->kept, s->leased } : (struct locks_kept){ 0 };
}

/* A name contains no NUL byte, so keys after the name with a NUL belong to other namespaces. */
const struct lock *
locks_space_after(const struct locks *l, struct slice space)
{
	char text[LOCK_KEY_MAX + 1] = "";
	const struct lock_id it = { .space = { text, space.n + 1 } };
	uint32_t h;

	assert(space.n <= LOCK_KEY_MAX);
	if (space.n)
		memcpy(text, space.p, space.n);
	h = tree_after(&l->order, &it);
	return h == SLAB_NONE ? NULL : locks_entry(l, h)->lock;
}
