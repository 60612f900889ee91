/*
 * shares_make.c - makes and frees shares, flows and levels.
 */
#include "core/queue/shares_private.h"

#include "base/mem.h"

#include <sluice/err.h>

#include <assert.h>
#include <string.h>

enum {
	SLACK = 8 /* HEAP-1 of base/heap.h: flows that take turns stay in order if the array has room to go on */
};

/* ---- Maps ---- */

static uint64_t
name_hash(const void *s, uint32_t h)
{
	return share_at(s, h)->hash;
}

/* name NULL: any name with this hash. */
struct share_key {
	uint64_t hash;
	const struct slice *name;
};

static bool
name_is(const void *s, uint32_t h, const void *key)
{
	const struct share *sh = share_at(s, h);
	const struct share_key *k = key;

	return sh->hash == k->hash && (!k->name || slice_eq(ownname_get(&sh->name), *k->name));
}

struct flow_key {
	uint32_t share;
	int32_t prio;
};

static uint64_t
hash_flow(uint32_t share, int32_t prio)
{
	return hash_number((uint64_t)share << 32 | (uint32_t)prio);
}

static uint64_t
flow_hash(const void *s, uint32_t h)
{
	const struct flow *f = flow_at(s, h);

	return hash_flow(f->share, level_at(s, f->level)->prio);
}

static bool
flow_is(const void *s, uint32_t h, const void *key)
{
	const struct flow *f = flow_at(s, h);
	const struct flow_key *k = key;

	return f->share == k->share && level_at(s, f->level)->prio == k->prio;
}

static uint64_t
level_hash(const void *s, uint32_t h)
{
	return hash_number((uint32_t)level_at(s, h)->prio);
}

static bool
level_is(const void *s, uint32_t h, const void *key)
{
	return level_at(s, h)->prio == *(const int32_t *)key;
}

uint32_t
shares_level(const struct shares *s, int32_t prio)
{
	return map_find(&s->level_of, hash_number((uint32_t)prio), &prio);
}

uint32_t
shares_find(const struct shares *s, struct slice name)
{
	const struct share_key key = { hash_keyed(&s->secret, name.p, name.n), &name };

	return map_find(&s->names, key.hash, &key);
}

uint32_t
shares_find_hash(const struct shares *s, uint64_t hash)
{
	const struct share_key key = { hash, NULL };

	return map_find(&s->names, hash, &key);
}

uint32_t
shares_find_flow(const struct shares *s, uint32_t share, int32_t prio)
{
	const struct flow_key key = { share, prio };
	const uint32_t first = share == SLAB_NONE ? SLAB_NONE : share_at(s, share)->flows;

	if (first != SLAB_NONE && level_at(s, flow_at(s, first)->level)->prio == prio)
		return first; /* most shares have messages of one priority */
	return share == SLAB_NONE ? SLAB_NONE : map_find(&s->flow_of, hash_flow(share, prio), &key);
}

uint32_t
shares_flow(const struct shares *s, struct slice share, int32_t prio)
{
	return shares_find_flow(s, shares_find(s, share), prio);
}

bool
shares_is_flow(const struct shares *s, uint32_t flow, struct slice share, int32_t prio)
{
	const struct flow *f = flow < s->flows.fresh && slab_has(&s->flows, flow) ? flow_at(s, flow) : NULL;
	const struct share *sh = f && f->alive ? share_at(s, f->share) : NULL;

	return sh && level_at(s, f->level)->prio == prio && slice_eq(ownname_get(&sh->name), share);
}

/* ---- Making and freeing ---- */

int
shares_new(struct shares **out, const struct slab *items, const struct hash_key *secret)
{
	struct shares *s = mem_zalloc(sizeof *s);

	if (!s)
		return SLU_ENOMEM;
	s->items = items;
	s->secret = *secret;
	s->loose = s->charged = SLAB_NONE;
	s->changed = true;
	slab_init_chunked(&s->shares, sizeof(struct share), SLAB_FEW_BITS); /* most queues have few */
	slab_init_chunked(&s->flows, sizeof(struct flow), SLAB_FEW_BITS);
	slab_init_chunked(&s->levels, sizeof(struct level), SLAB_FEW_BITS);
	map_init(&s->names, s, name_hash, name_is);
	map_init(&s->flow_of, s, flow_hash, flow_is);
	map_init(&s->level_of, s, level_hash, level_is);
	heap_init(&s->order, &s->levels, offsetof(struct level, pos));
	*out = s;
	return 0;
}

void
shares_free(struct shares *s)
{
	if (!s)
		return;
	for (uint32_t h = shares_flow_next(s, SLAB_NONE); h != SLAB_NONE; h = shares_flow_next(s, h)) {
		heap_release(&flow_at(s, h)->ready);
		heap_release(&flow_at(s, h)->trash);
	}
	for (uint32_t h = shares_next(s, SLAB_NONE); h != SLAB_NONE; h = shares_next(s, h))
		ownname_release(&share_at(s, h)->name);
	for (uint32_t h = 0; h < s->levels.fresh; h++) {
		if (!slab_has(&s->levels, h) || !level_at(s, h)->alive)
			continue;
		heap_release(&level_at(s, h)->active);
		heap_release(&level_at(s, h)->ghosts);
	}
	heap_release(&s->order);
	map_release(&s->names);
	map_release(&s->flow_of);
	map_release(&s->level_of);
	slab_release(&s->shares);
	slab_release(&s->flows);
	slab_release(&s->levels);
	mem_free(s);
}

int
shares_grow(struct shares *s, struct heap *h, uint32_t n)
{
	const size_t before = heap_bytes(h);
	const int rc = heap_reserve(h, n);

	s->heap_bytes += heap_bytes(h) - before;
	s->changed = true;
	return rc;
}

void
shares_shrink(struct shares *s, struct heap *h)
{
	s->heap_bytes -= heap_bytes(h);
	s->changed = true;
	heap_release(h);
}

static int
make_share(struct shares *s, struct slice name, uint32_t weight, uint32_t *out)
{
	const int rc = map_reserve(&s->names, 1);
	const uint32_t h = rc ? SLAB_NONE : slab_new(&s->shares);
	struct share *sh = h == SLAB_NONE ? NULL : share_at(s, h);
	struct ownname own;

	if (!sh || !ownname_set(&own, name)) {
		if (sh)
			slab_free(&s->shares, h);
		return SLU_ENOMEM;
	}
	*sh = (struct share){
		.hash = hash_keyed(&s->secret, name.p, name.n),
		.name = own,
		.weight = weight,
		.flows = SLAB_NONE,
		.gate = SLAB_NONE,
		.alive = true,
	};
	s->heap_bytes += ownname_bytes(&own);
	s->changed = true;
	(void)map_insert(&s->names, sh->hash, h); /* reserved */
	*out = h;
	return 0;
}

static void
drop_share(struct shares *s, uint32_t h)
{
	struct share *sh = share_at(s, h);

	if (sh->flows != SLAB_NONE)
		return;
	map_remove(&s->names, sh->hash, h);
	s->heap_bytes -= ownname_bytes(&sh->name);
	s->changed = true;
	ownname_release(&sh->name);
	sh->alive = false;
	slab_free(&s->shares, h);
}

static int
make_level(struct shares *s, int32_t prio, uint32_t *out)
{
	int rc = map_reserve(&s->level_of, 1);
	struct level *l;

	if (!rc)
		rc = heap_reserve(&s->order, s->levels.used + 1);
	*out = rc ? SLAB_NONE : slab_new(&s->levels);
	s->changed = true;
	if (*out == SLAB_NONE)
		return SLU_ENOMEM;
	l = level_at(s, *out);
	*l = (struct level){ .prio = prio, .epoch = 1, .pos = HEAP_OUT, .alive = true };
	heap_init(&l->active, &s->flows, offsetof(struct flow, pos));
	heap_init(&l->ghosts, &s->flows, offsetof(struct flow, pos));
	(void)map_insert(&s->level_of, hash_number((uint32_t)prio), *out); /* reserved */
	return 0;
}

void
shares_drop_level(struct shares *s, uint32_t level)
{
	struct level *l = level_at(s, level);

	if (l->flows || l->plain || l->behind)
		return;
	map_remove(&s->level_of, hash_number((uint32_t)l->prio), level);
	shares_shrink(s, &l->active);
	shares_shrink(s, &l->ghosts);
	l->alive = false;
	slab_free(&s->levels, level);
}

int
shares_open_level(struct shares *s, int32_t prio, uint32_t *out)
{
	*out = shares_level(s, prio);
	return *out == SLAB_NONE ? make_level(s, prio, out) : 0;
}

static void
link_flow(struct shares *s, uint32_t h)
{
	struct flow *f = flow_at(s, h);
	struct share *sh = share_at(s, f->share);

	f->prev = SLAB_NONE;
	f->next = sh->flows;
	if (f->next != SLAB_NONE)
		flow_at(s, f->next)->prev = h;
	sh->flows = h;
	level_at(s, f->level)->flows++;
}

static void
unlink_flow(struct shares *s, uint32_t h)
{
	const struct flow *f = flow_at(s, h);

	if (f->prev == SLAB_NONE)
		share_at(s, f->share)->flows = f->next;
	else
		flow_at(s, f->prev)->next = f->next;
	if (f->next != SLAB_NONE)
		flow_at(s, f->next)->prev = f->prev;
	level_at(s, f->level)->flows--;
}

static int
make_flow(struct shares *s, uint32_t share, uint32_t level, uint32_t *out)
{
	struct level *l = level_at(s, level);
	struct flow *f;
	int rc = map_reserve(&s->flow_of, 1);

	if (!rc)
		rc = shares_grow(s, &l->active, l->flows + 1 + l->flows / SLACK);
	if (!rc)
		rc = shares_grow(s, &l->ghosts, l->flows + 1);
	*out = rc ? SLAB_NONE : slab_new(&s->flows);
	if (*out == SLAB_NONE)
		return SLU_ENOMEM;
	f = flow_at(s, *out);
	*f = (struct flow){ .share = share, .level = level, .pos = HEAP_OUT, .spot = SLAB_NONE, .alive = true };
	heap_init(&f->ready, s->items, offsetof(struct queue_item, pos));
	heap_init(&f->trash, s->items, offsetof(struct queue_item, pos));
	link_flow(s, *out);
	(void)map_insert(&s->flow_of, hash_flow(share, l->prio), *out); /* reserved */
	return 0;
}

void
shares_drop_flow(struct shares *s, uint32_t flow)
{
	struct flow *f = flow_at(s, flow);
	const uint32_t share = f->share, level = f->level;

	assert(f->messages == 0 && f->ready.n == 0 && f->trash.n == 0 && f->pos == HEAP_OUT);
	map_remove(&s->flow_of, hash_flow(share, level_at(s, level)->prio), flow);
	shares_shrink(s, &f->ready);
	shares_shrink(s, &f->trash);
	unlink_flow(s, flow);
	f->alive = false;
	slab_free(&s->flows, flow);
	if (s->loose == flow)
		s->loose = SLAB_NONE;
	drop_share(s, share);
	shares_drop_level(s, level);
}

int
shares_make_flow(struct shares *s, struct slice name, uint32_t weight, int32_t prio, uint32_t *flow)
{
	uint32_t share = shares_find(s, name), level = SLAB_NONE;
	int rc = share == SLAB_NONE ? make_share(s, name, weight, &share) : 0;

	if (rc)
		return rc;
	rc = shares_open_level(s, prio, &level);
	if (!rc)
		rc = make_flow(s, share, level, flow);
	if (rc)
		drop_share(s, share);
	if (rc && level != SLAB_NONE)
		shares_drop_level(s, level);
	return rc;
}

/* ---- All flows ---- */

uint32_t
shares_flow_next(const struct shares *s, uint32_t flow)
{
	for (uint32_t h = flow + 1; h < s->flows.fresh; h++) /* SLAB_NONE + 1 is 0 */
		if (slab_has(&s->flows, h) && flow_at(s, h)->alive)
			return h;
	return SLAB_NONE;
}

const struct heap *
shares_flow_heap(const struct shares *s, uint32_t flow)
{
	return &flow_at(s, flow)->ready;
}

bool
shares_are_idle(const struct shares *s)
{
	return s->flows.used == 0 && s->levels.used == 0;
}
