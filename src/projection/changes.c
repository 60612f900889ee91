#include "projection/changes.h"

#include "base/hash.h"

struct changed {
	uint64_t id;
	slu_time when;
	uint32_t older, newer; /* handles, or SLAB_NONE */
	bool is_new;
};

/* ---- Items ---- */

static struct changed *
item(const struct changes *c, uint32_t h)
{
	return slab_at(&c->slab, h);
}

/* Ids are given by the server: an outsider cannot choose them. */
static uint64_t
id_hash(uint64_t id)
{
	return hash_number(id);
}

static uint64_t
item_hash(const void *slab, uint32_t h)
{
	const struct changed *const x = slab_at(slab, h);

	return id_hash(x->id);
}

static bool
item_is(const void *slab, uint32_t h, const void *key)
{
	const struct changed *const x = slab_at(slab, h);

	return x->id == *(const uint64_t *)key;
}

static uint32_t
find(const struct changes *c, uint64_t id)
{
	return map_find(&c->map, id_hash(id), &id);
}

static void
append(struct changes *c, uint32_t h)
{
	item(c, h)->older = c->newest;
	item(c, h)->newer = SLAB_NONE;
	if (c->newest == SLAB_NONE)
		c->oldest = h;
	else
		item(c, c->newest)->newer = h;
	c->newest = h;
}

static void
cut(struct changes *c, uint32_t h)
{
	const struct changed *const x = item(c, h);

	if (x->older == SLAB_NONE)
		c->oldest = x->newer;
	else
		item(c, x->older)->newer = x->newer;
	if (x->newer == SLAB_NONE)
		c->newest = x->older;
	else
		item(c, x->newer)->older = x->older;
	map_remove(&c->map, id_hash(x->id), h);
	slab_free(&c->slab, h);
}

/* ---- The module ---- */

static void
make(struct changes *c)
{
	slab_init(&c->slab, sizeof(struct changed));
	map_init(&c->map, &c->slab, item_hash, item_is);
	c->oldest = c->newest = SLAB_NONE;
}

void
changes_init(struct changes *c, uint32_t max)
{
	*c = (struct changes){ .max = max, .lost = true };
	make(c);
}

void
changes_release(struct changes *c)
{
	map_release(&c->map);
	slab_release(&c->slab);
}

void
changes_lose(struct changes *c)
{
	changes_release(c);
	make(c);
	c->lost = true;
}

void
changes_begin(struct changes *c)
{
	changes_lose(c);
	c->lost = false;
}

static void
add(struct changes *c, uint64_t id, bool is_new, slu_time now)
{
	const uint32_t h = changes_count(c) < c->max ? slab_new(&c->slab) : SLAB_NONE;

	if (h == SLAB_NONE) {
		changes_lose(c);
		return;
	}
	*item(c, h) = (struct changed){ .id = id, .when = now, .is_new = is_new };
	append(c, h);
	if (map_insert(&c->map, id_hash(id), h))
		changes_lose(c);
}

void
changes_note(struct changes *c, uint64_t id, enum changes_kind kind, slu_time now)
{
	uint32_t h;

	if (c->lost)
		return;
	h = find(c, id);
	if (h == SLAB_NONE)
		add(c, id, kind == CHANGES_ACCEPTED, now);
	else if (kind == CHANGES_ENDED && item(c, h)->is_new)
		cut(c, h); /* CHANGES-1 */
}

uint32_t
changes_take(struct changes *c, slu_time until, uint64_t *ids, uint32_t max)
{
	uint32_t n = 0;

	while (n < max && c->oldest != SLAB_NONE && item(c, c->oldest)->when <= until) {
		ids[n++] = item(c, c->oldest)->id;
		cut(c, c->oldest);
	}
	return n;
}

bool
changes_is_new(const struct changes *c, uint64_t id)
{
	const uint32_t h = find(c, id);

	return h != SLAB_NONE && item(c, h)->is_new;
}

slu_time
changes_oldest(const struct changes *c)
{
	return c->oldest == SLAB_NONE ? SLU_NEVER : item(c, c->oldest)->when;
}
