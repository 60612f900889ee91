#include "core/queue/owners.h"

#include <sluice/err.h>

#include <assert.h>

struct owner {
	struct shared_text *name;
	uint64_t hash;
	uint32_t uses; /* 0: free. The last member, because the slab overwrites the first bytes */
};

static struct owner *
owner_at(const struct owners *o, uint32_t owner)
{
	return slab_at(&o->all, owner - 1);
}

static uint64_t
owner_hash(const void *all, uint32_t h)
{
	const struct owner *owner = slab_at(all, h);

	return owner->hash;
}

static bool
owner_is(const void *all, uint32_t h, const void *key)
{
	const struct owner *owner = slab_at(all, h);

	return slice_eq(shared_text_slice(owner->name), *(const struct slice *)key);
}

void
owners_init(struct owners *o, const struct hash_key *secret)
{
	*o = (struct owners){ .secret = *secret, .max = OWNERS_MAX, .recent = OWNER_NONE };
	slab_init_chunked(&o->all, sizeof(struct owner), 6);
	map_init(&o->names, &o->all, owner_hash, owner_is);
}

void
owners_release(struct owners *o)
{
	for (uint32_t h = 0; h < o->all.fresh; h++) {
		const struct owner *owner = slab_at(&o->all, h);

		if (owner->uses > 0)
			shared_text_unref(owner->name);
	}
	map_release(&o->names);
	slab_release(&o->all);
}

static uint32_t
find(const struct owners *o, struct slice name)
{
	uint32_t h;

	if (o->recent != OWNER_NONE && slice_eq(owners_text(o, o->recent), name))
		return o->recent;
	h = map_find(&o->names, hash_keyed(&o->secret, name.p, name.n), &name);
	return h == MAP_NONE ? OWNER_NONE : h + 1;
}

static int
add(struct owners *o, struct slice name, uint32_t *out)
{
	struct shared_text *const text = map_reserve(&o->names, 1) ? NULL : shared_text_new(name);
	const uint32_t h = text ? slab_new(&o->all) : SLAB_NONE;
	struct owner *owner;

	if (h == SLAB_NONE) {
		shared_text_unref(text);
		return SLU_ENOMEM;
	}
	owner = slab_at(&o->all, h);
	*owner = (struct owner){ text, hash_keyed(&o->secret, name.p, name.n), 0 };
	(void)map_insert(&o->names, owner->hash, h); /* reserved */
	*out = h + 1;
	return 0;
}

int
owners_open(struct owners *o, struct slice name, uint32_t *out)
{
	int rc = 0;

	*out = OWNER_NONE;
	if (name.n == 0)
		return 0;
	if (name.n > OWNER_MAX)
		name.n = OWNER_MAX;
	*out = find(o, name);
	if (*out == OWNER_NONE && o->all.used >= o->max) {
		name = SLICE(OWNERS_OTHER);
		*out = find(o, name);
	}
	if (*out == OWNER_NONE)
		rc = add(o, name, out);
	if (rc)
		return rc;
	owners_use(o, *out);
	o->recent = *out;
	return 0;
}

void
owners_use(struct owners *o, uint32_t owner)
{
	if (owner != OWNER_NONE)
		owner_at(o, owner)->uses++;
}

void
owners_drop(struct owners *o, uint32_t owner)
{
	struct owner *w;

	if (owner == OWNER_NONE)
		return;
	w = owner_at(o, owner);
	assert(w->uses > 0);
	if (--w->uses > 0)
		return;
	if (o->recent == owner)
		o->recent = OWNER_NONE;
	map_remove(&o->names, w->hash, owner - 1);
	shared_text_unref(w->name);
	slab_free(&o->all, owner - 1);
}

struct slice
owners_text(const struct owners *o, uint32_t owner)
{
	if (owner == OWNER_NONE)
		return (struct slice){ 0 };
	return shared_text_slice(owner_at(o, owner)->name);
}

struct shared_text *
owners_share(const struct owners *o, uint32_t owner)
{
	return owner == OWNER_NONE ? NULL : shared_text_ref(owner_at(o, owner)->name);
}
