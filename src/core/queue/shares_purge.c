/*
 * shares_purge.c - removes all candidates at once, counts memory, and checks the structure for tests.
 */
#include "core/queue/shares_private.h"

#include <assert.h>

/* ---- Purging ---- */

int
shares_purge_reserve(struct shares *s)
{
	int rc = 0;

	for (uint32_t h = shares_flow_next(s, SLAB_NONE); !rc && h != SLAB_NONE; h = shares_flow_next(s, h)) {
		struct flow *f = flow_at(s, h);

		rc = shares_grow(s, &f->trash, f->messages - f->ready.n);
	}
	return rc;
}

static void
purge_flow(struct shares *s, uint32_t h)
{
	struct flow *f = flow_at(s, h);
	struct share *sh = share_at(s, f->share);
	const struct heap full = f->ready;

	assert(f->trash.n == 0);
	if (full.n == 0)
		return;
	sh->ready -= full.n;
	if (!sh->blocked)
		shares_deactivate(s, h);
	f->ready = f->trash;
	f->trash = full;
}

void
shares_purge(struct shares *s)
{
	s->trash = 0;
	for (uint32_t h = shares_flow_next(s, SLAB_NONE); h != SLAB_NONE; h = shares_flow_next(s, h))
		purge_flow(s, h);
	for (uint32_t h = 0; h < s->levels.fresh; h++) {
		if (!slab_has(&s->levels, h) || !level_at(s, h)->alive)
			continue;
		level_at(s, h)->plain = level_at(s, h)->behind = 0;
		shares_forget_tags(s, h);
	}
}

bool
shares_is_trash(const struct shares *s, uint32_t flow, uint32_t item)
{
	return heap_has(&flow_at(s, flow)->trash, shares_item(s, item)->pos, item);
}

uint32_t
shares_trash_pop(struct shares *s)
{
	for (; s->trash < s->flows.fresh; s->trash++) {
		struct flow *f = flow_at(s, s->trash);

		if (!slab_has(&s->flows, s->trash) || !f->alive)
			continue;
		if (f->trash.n > 0)
			return heap_drop_last(&f->trash);
		shares_shrink(s, &f->trash);
	}
	return SLAB_NONE;
}

/* ---- Memory ---- */

size_t
shares_bytes(const struct shares *s)
{
	return sizeof *s + s->heap_bytes + slab_bytes(&s->shares) + slab_bytes(&s->flows) +
	       slab_bytes(&s->levels) + map_bytes(&s->names) + map_bytes(&s->flow_of) +
	       map_bytes(&s->level_of) + heap_bytes(&s->order);
}

bool
shares_have_changed(struct shares *s)
{
	const bool changed = s->changed;

	s->changed = false;
	return changed;
}

/* ---- Checks ---- */

static const char *
check_flow(const struct shares *s, uint32_t h)
{
	const struct flow *f = flow_at(s, h);
	const struct level *l = level_at(s, f->level);
	const bool active = f->ready.n > 0 && !share_at(s, f->share)->blocked;
	const struct heap *in = active ? &l->active : &l->ghosts;

	if (f->messages < f->ready.n + f->trash.n || f->ready.max < f->messages - f->trash.n)
		return "a flow has no room for its messages";
	if (f->pos == HEAP_OUT)
		return active || (f->messages == 0 && h != s->loose) ? "a flow is in no heap" : NULL;
	if (!heap_has(in, f->pos, h))
		return "a flow is not where it says";
	if (heap_at(in, f->pos)->b != f->tag || f->epoch != l->epoch || f->tag < l->v)
		return "a flow has a wrong tag";
	if (active && heap_at(in, f->pos)->c != f->ready.nodes[0].c)
		return "a flow has a wrong first message";
	return active || f->messages == 0 ? NULL : "a flow with messages is a ghost";
}

static const char *
check_level(const struct level *l)
{
	if ((l->pos == HEAP_OUT) != (l->active.n == 0))
		return "a level is in the order without an active flow, or is not";
	if (!level_is_used(l) && (l->v || l->ghosts.n))
		return "a level without candidates has tags";
	return l->flows || l->plain || l->behind ? NULL : "a level of nothing";
}

const char *
shares_check(const struct shares *s)
{
	const char *wrong = NULL;
	uint32_t messages = 0, of_shares = 0;

	for (uint32_t h = shares_flow_next(s, SLAB_NONE); !wrong && h != SLAB_NONE; h = shares_flow_next(s, h)) {
		wrong = check_flow(s, h);
		messages += flow_at(s, h)->messages;
	}
	for (uint32_t h = 0; !wrong && h < s->levels.fresh; h++)
		if (slab_has(&s->levels, h) && level_at(s, h)->alive)
			wrong = check_level(level_at(s, h));
	for (uint32_t h = shares_next(s, SLAB_NONE); h != SLAB_NONE; h = shares_next(s, h))
		of_shares += share_at(s, h)->messages;
	return wrong || messages == of_shares ? wrong : "a share counts what it does not have";
}
