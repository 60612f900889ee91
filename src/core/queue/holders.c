#include "core/queue/holders.h"

#include <sluice/err.h>

#include <assert.h>

struct holder {
	struct shared_text *name;
	uint64_t hash;
	uint32_t uses; /* 0: free. The last member, because the slab overwrites the first bytes */
};

static struct holder *
holder_at(const struct holders *o, uint32_t holder)
{
	return slab_at(&o->all, holder - 1);
}

static uint64_t
holder_hash(const void *all, uint32_t h)
{
	const struct holder *holder = slab_at(all, h);

	return holder->hash;
}

static bool
holder_is(const void *all, uint32_t h, const void *key)
{
	const struct holder *holder = slab_at(all, h);

	return slice_eq(shared_text_slice(holder->name), *(const struct slice *)key);
}

void
holders_init(struct holders *o, const struct hash_key *secret)
{
	*o = (struct holders){ .secret = *secret, .max = HOLDERS_MAX, .recent = HOLDER_NONE };
	slab_init_chunked(&o->all, sizeof(struct holder), 6);
	map_init(&o->names, &o->all, holder_hash, holder_is);
}

void
holders_release(struct holders *o)
{
	for (uint32_t h = 0; h < o->all.fresh; h++) {
		const struct holder *holder = slab_at(&o->all, h);

		if (holder->uses > 0)
			shared_text_unref(holder->name);
	}
	map_release(&o->names);
	slab_release(&o->all);
}

static uint32_t
find(const struct holders *o, struct slice name)
{
	uint32_t h;

	if (o->recent != HOLDER_NONE && slice_eq(holders_text(o, o->recent), name))
		return o->recent;
	h = map_find(&o->names, hash_keyed(&o->secret, name.p, name.n), &name);
	return h == MAP_NONE ? HOLDER_NONE : h + 1;
}

static int
add(struct holders *o, struct slice name, uint32_t *out)
{
	struct shared_text *const text = map_reserve(&o->names, 1) ? NULL : shared_text_new(name);
	const uint32_t h = text ? slab_new(&o->all) : SLAB_NONE;
	struct holder *holder;

	if (h == SLAB_NONE) {
		shared_text_unref(text);
		return SLU_ENOMEM;
	}
	holder = slab_at(&o->all, h);
	*holder = (struct holder){ text, hash_keyed(&o->secret, name.p, name.n), 0 };
	(void)map_insert(&o->names, holder->hash, h); /* reserved */
	*out = h + 1;
	return 0;
}

int
holders_open(struct holders *o, struct slice name, uint32_t *out)
{
	int rc = 0;

	*out = HOLDER_NONE;
	if (name.n == 0)
		return 0;
	if (name.n > HOLDER_MAX)
		name.n = HOLDER_MAX;
	*out = find(o, name);
	if (*out == HOLDER_NONE && o->all.used >= o->max) {
		name = SLICE(HOLDERS_OTHER);
		*out = find(o, name);
	}
	if (*out == HOLDER_NONE)
		rc = add(o, name, out);
	if (rc)
		return rc;
	holders_use(o, *out);
	o->recent = *out;
	return 0;
}

void
holders_use(struct holders *o, uint32_t holder)
{
	if (holder != HOLDER_NONE)
		holder_at(o, holder)->uses++;
}

void
holders_drop(struct holders *o, uint32_t holder)
{
	struct holder *w;

	if (holder == HOLDER_NONE)
		return;
	w = holder_at(o, holder);
	assert(w->uses > 0);
	if (--w->uses > 0)
		return;
	if (o->recent == holder)
		o->recent = HOLDER_NONE;
	map_remove(&o->names, w->hash, holder - 1);
	shared_text_unref(w->name);
	slab_free(&o->all, holder - 1);
}

struct slice
holders_text(const struct holders *o, uint32_t holder)
{
	if (holder == HOLDER_NONE)
		return (struct slice){ 0 };
	return shared_text_slice(holder_at(o, holder)->name);
}

struct shared_text *
holders_share(const struct holders *o, uint32_t holder)
{
	return holder == HOLDER_NONE ? NULL : shared_text_ref(holder_at(o, holder)->name);
}

struct slice
holder_name(struct slice text)
{
	struct slice name;

	(void)slice_cut(&text, HOLDER_MARK, &name);
	return name;
}

struct slice
holder_version(struct slice text)
{
	struct slice name;

	return slice_cut(&text, HOLDER_MARK, &name) ? text : (struct slice){ 0 };
}
