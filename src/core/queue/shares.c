/*
 * shares.c - tags, candidates and the rule.
 */
#include "core/queue/shares_private.h"

#include "base/cpu.h"

#include <assert.h>

/* ---- Tags ---- */

static uint64_t
tag_of(const struct flow *f, const struct level *l)
{
	const uint64_t tag = f->epoch == l->epoch ? f->tag : 0;

	return tag > l->v ? tag : l->v;
}

/* SHARES-3: all ghosts are gone, too. */
void
shares_forget_tags(struct shares *s, uint32_t level)
{
	struct level *l = level_at(s, level);

	l->v = 0;
	l->epoch++;
	l->plain++; /* keeps the level while its flows go */
	while (l->ghosts.n > 0)
		shares_drop_flow(s, heap_pop(&l->ghosts));
	l->plain--;
	shares_drop_level(s, level);
}

static void
rest(struct shares *s, uint32_t level)
{
	if (!level_is_used(level_at(s, level)))
		shares_forget_tags(s, level);
}

/* Frees the ghosts whose tag V has passed. */
static void
lay_ghosts(struct shares *s, uint32_t level)
{
	struct level *l = level_at(s, level);

	while (l->ghosts.n > 0 && l->ghosts.nodes[0].b <= l->v)
		shares_drop_flow(s, heap_pop(&l->ghosts));
}

/* A flow that lost its last message. */
static void
bury(struct shares *s, uint32_t h)
{
	struct flow *f = flow_at(s, h);
	struct level *l = level_at(s, f->level);

	if (f->epoch == l->epoch && f->tag > l->v && level_is_used(l))
		heap_push(&l->ghosts, (struct rank){ .b = f->tag, .c = h }, h);
	else
		shares_drop_flow(s, h);
}

static void
activate(struct shares *s, uint32_t h)
{
	struct flow *f = flow_at(s, h);
	struct level *l = level_at(s, f->level);

	if (f->epoch != l->epoch || f->tag <= l->v)
		f->rest = 0;
	f->tag = tag_of(f, l);
	f->epoch = l->epoch;
	heap_push(&l->active, (struct rank){ .b = f->tag, .c = f->ready.nodes[0].c }, h);
	if (l->pos == HEAP_OUT)
		heap_push(&s->order, (struct rank){ .a = rank_i32(l->prio) }, f->level);
	s->steps++;
}

void
shares_deactivate(struct shares *s, uint32_t flow)
{
	const struct flow *f = flow_at(s, flow);
	struct level *l = level_at(s, f->level);

	heap_remove(&l->active, f->pos);
	if (l->active.n == 0)
		heap_remove(&s->order, l->pos);
	s->steps++;
}

/* The first message or the tag of an active flow has changed. */
static void
rank_again(struct shares *s, uint32_t h)
{
	const struct flow *f = flow_at(s, h);
	struct level *l = level_at(s, f->level);
	const struct heap_node *now = heap_at(&l->active, f->pos);

	if (s->charged == h || (now->b == f->tag && now->c == f->ready.nodes[0].c))
		return;
	heap_move(&l->active, f->pos, (struct rank){ .b = f->tag, .c = f->ready.nodes[0].c });
	s->steps++;
}

/* ---- Messages ---- */

static void
drop_loose(struct shares *s)
{
	const uint32_t h = s->loose;

	s->loose = SLAB_NONE;
	if (h != SLAB_NONE && flow_at(s, h)->messages == 0 && flow_at(s, h)->pos == HEAP_OUT)
		shares_drop_flow(s, h);
}

int
shares_reserve(struct shares *s, struct slice share, uint32_t weight, int32_t prio, uint32_t *flow)
{
	int rc;

	assert(weight >= 1 && weight <= SHARES_WEIGHT_MAX && share.n);
	*flow = shares_flow(s, share, prio);
	if (*flow == SLAB_NONE) {
		drop_loose(s);
		rc = shares_make_flow(s, share, weight, prio, flow);
		if (rc)
			return rc;
		s->loose = *flow;
	}
	return shares_room(s, *flow);
}

int
shares_room(struct shares *s, uint32_t flow)
{
	struct flow *f = flow_at(s, flow);

	return f->messages < f->ready.max ? 0 : shares_grow(s, &f->ready, f->messages + 1);
}

void
shares_load(const struct shares *s, uint32_t flow, bool deep)
{
	const struct flow *f = flow_at(s, flow);

	if (!deep) {
		cpu_prefetch(f);
		cpu_prefetch((const char *)f + 64);
		return;
	}
	cpu_prefetch(share_at(s, f->share));
	cpu_prefetch(f->ready.nodes);
	cpu_prefetch(f->ready.nodes + f->ready.n);
}

bool
shares_ahead(const struct shares *s, uint32_t msgs[static SHARES_AHEAD])
{
	const struct heap_node *first = heap_first(&s->order);
	const struct level *l = first ? level_at(s, first->handle) : NULL;

	if (!l || l->active.n < SHARES_AHEAD + 3)
		return false;
	for (unsigned i = 0; i < SHARES_AHEAD; i++)
		msgs[i] = flow_at(s, l->active.nodes[i + 1].handle)->ready.nodes->handle;
	shares_load(s, l->active.nodes[SHARES_AHEAD + 1].handle, true);
	shares_load(s, l->active.nodes[SHARES_AHEAD + 2].handle, false);
	return true;
}

uint32_t *
shares_spot(const struct shares *s, uint32_t flow)
{
	return &flow_at(s, flow)->spot;
}

uint32_t *
shares_gate(const struct shares *s, uint32_t flow)
{
	return &share_at(s, flow_at(s, flow)->share)->gate;
}

void
shares_hold(struct shares *s, uint32_t flow)
{
	struct flow *f = flow_at(s, flow);

	if (f->messages == 0 && f->pos != HEAP_OUT)
		heap_remove(&level_at(s, f->level)->ghosts, f->pos);
	if (s->loose == flow)
		s->loose = SLAB_NONE;
	f->messages++;
	share_at(s, f->share)->messages++;
	assert(f->messages <= f->ready.max);
}

void
shares_drop(struct shares *s, uint32_t flow)
{
	struct flow *f = flow_at(s, flow);

	assert(f->messages > f->ready.n + f->trash.n);
	f->messages--;
	share_at(s, f->share)->messages--;
	if (f->messages == 0)
		bury(s, flow);
}

void
shares_enter(struct shares *s, uint32_t flow, uint32_t item)
{
	const struct queue_item *it = shares_item(s, item);
	struct flow *f = flow_at(s, flow);
	struct share *sh = share_at(s, f->share);

	heap_push(&f->ready, (struct rank){ .b = rank_time(it->due), .c = it->seq }, item);
	s->steps++;
	sh->ready++;
	if (sh->blocked)
		return;
	if (f->ready.n == 1)
		activate(s, flow);
	else
		rank_again(s, flow);
}

void
shares_leave(struct shares *s, uint32_t flow, uint32_t item)
{
	struct flow *f = flow_at(s, flow);
	struct share *sh = share_at(s, f->share);

	heap_remove(&f->ready, shares_item(s, item)->pos);
	s->steps++;
	sh->ready--;
	if (s->charged == flow)
		s->charged = SLAB_NONE;
	if (sh->blocked)
		return;
	if (f->ready.n > 0) {
		rank_again(s, flow);
		return;
	}
	shares_deactivate(s, flow);
	rest(s, f->level);
}

/* Without memory for the level, the plain messages of this priority count as none: the level may forget
 * its tags early. */
void
shares_enter_plain(struct shares *s, int32_t prio)
{
	uint32_t level;
	struct level *l;

	if (shares_open_level(s, prio, &level))
		return;
	l = level_at(s, level);
	if (l->plain++ == 0) {
		l->plain_tag = plain_tag(l);
		l->plain_epoch = l->epoch;
	}
}

void
shares_leave_plain(struct shares *s, int32_t prio)
{
	const uint32_t level = shares_level(s, prio);

	if (level == SLAB_NONE || level_at(s, level)->plain == 0)
		return;
	if (--level_at(s, level)->plain == 0)
		rest(s, level);
}

void
shares_wait_plain(struct shares *s, int32_t prio)
{
	uint32_t level;

	if (!shares_open_level(s, prio, &level)) /* as shares_enter_plain */
		level_at(s, level)->behind++;
}

void
shares_unwait_plain(struct shares *s, int32_t prio)
{
	const uint32_t level = shares_level(s, prio);

	if (level == SLAB_NONE || level_at(s, level)->behind == 0)
		return;
	if (--level_at(s, level)->behind == 0)
		rest(s, level);
}

/* ---- The rule ---- */

static uint32_t
first_of(const struct shares *s, const struct level *l)
{
	return flow_at(s, l->active.nodes[0].handle)->ready.nodes[0].handle;
}

uint32_t
shares_best(const struct shares *s, const struct queue *plain)
{
	const uint32_t p = s->plain_blocked ? SLAB_NONE : queue_best(plain);
	const struct queue_item *const it = p == SLAB_NONE ? NULL : shares_item(s, p);
	const struct heap_node *first = heap_first(&s->order);
	const struct level *l = first ? level_at(s, first->handle) : NULL;
	const struct heap_node *a = l ? l->active.nodes : NULL;
	uint64_t tag;

	if (!it || !l)
		return l ? first_of(s, l) : p;
	if (it->prio != l->prio)
		return it->prio < l->prio ? p : first_of(s, l);
	tag = plain_tag(l);
	return tag < a->b || (tag == a->b && it->seq < a->c) ? p : first_of(s, l);
}

/* V is the lowest S. A consumer that may not have the next message gets one of another flow, and must
 * not put V beyond the flows that still wait. */
static void
set_v(const struct shares *s, struct level *l)
{
	const bool has_plain = l->plain && !s->plain_blocked;
	const uint64_t plain = has_plain ? plain_tag(l) : UINT64_MAX;
	const uint64_t named = l->active.n ? l->active.nodes[0].b : UINT64_MAX;

	if (has_plain || l->active.n)
		l->v = plain < named ? plain : named;
}

static void
charge_plain(struct shares *s, int32_t prio)
{
	const uint32_t level = shares_level(s, prio);
	struct level *l = level == SLAB_NONE ? NULL : level_at(s, level);
	uint64_t tag;

	if (!l)
		return;
	tag = plain_tag(l);
	set_v(s, l);
	l->plain_tag = tag + SHARES_UNIT;
	l->plain_epoch = l->epoch;
	lay_ghosts(s, level);
}

void
shares_charge(struct shares *s, uint32_t flow, int32_t prio)
{
	struct flow *f;
	struct share *sh;

	if (flow == SHARES_PLAIN) {
		charge_plain(s, prio);
		return;
	}
	f = flow_at(s, flow);
	sh = share_at(s, f->share);
	assert(f->ready.n > 0 && !sh->blocked);
	set_v(s, level_at(s, f->level));
	f->tag += share_cost(sh->weight, &f->rest);
	sh->delivered++;
	s->charged = flow;
	lay_ghosts(s, f->level);
}

void
shares_place(struct shares *s)
{
	const uint32_t flow = s->charged;

	s->charged = SLAB_NONE;
	if (flow != SLAB_NONE)
		rank_again(s, flow);
}

/* ---- Shares ---- */

uint32_t
shares_of(const struct shares *s, uint32_t flow)
{
	return flow_at(s, flow)->share;
}

bool
shares_is_new(const struct shares *s, uint32_t flow)
{
	return share_at(s, flow_at(s, flow)->share)->messages == 1;
}

uint64_t
shares_hash(const struct shares *s, uint32_t flow)
{
	return share_at(s, flow_at(s, flow)->share)->hash;
}

uint32_t
shares_next(const struct shares *s, uint32_t share)
{
	for (uint32_t h = share + 1; h < s->shares.fresh; h++) /* SLAB_NONE + 1 is 0 */
		if (slab_has(&s->shares, h) && share_at(s, h)->alive)
			return h;
	return SLAB_NONE;
}

void
shares_get(const struct shares *s, uint32_t share, struct share_view *out)
{
	const struct share *sh = share_at(s, share);

	*out = (struct share_view){
		.name = ownname_get(&sh->name),
		.weight = sh->weight,
		.messages = sh->messages,
		.ready = sh->ready,
		.leased = sh->leased,
		.delivered = sh->delivered,
		.blocked = sh->blocked,
	};
}

uint32_t
shares_count(const struct shares *s)
{
	return s->shares.used;
}

void
shares_weigh(struct shares *s, uint32_t share, uint32_t weight)
{
	assert(weight >= 1 && weight <= SHARES_WEIGHT_MAX);
	share_at(s, share)->weight = weight;
}

void
shares_block(struct shares *s, uint32_t share, bool blocked)
{
	struct share *sh = share_at(s, share);

	if (sh->blocked == blocked)
		return;
	sh->blocked = blocked;
	for (uint32_t h = sh->flows, next; h != SLAB_NONE; h = next) {
		const struct flow *f = flow_at(s, h);

		next = f->next;
		if (f->ready.n == 0)
			continue;
		if (!blocked) {
			activate(s, h);
			continue;
		}
		shares_deactivate(s, h);
		rest(s, f->level);
	}
}

void
shares_block_plain(struct shares *s, bool blocked)
{
	s->plain_blocked = blocked;
}

/* ---- Leases ---- */

static void
limit_share(struct shares *s, uint32_t share)
{
	const struct share *sh = share_at(s, share);

	shares_block(s, share, sh->closed || (s->max_leased && sh->leased >= s->max_leased));
}

void
shares_close(struct shares *s, uint32_t share, bool closed)
{
	share_at(s, share)->closed = closed;
	limit_share(s, share);
}

void
shares_lease(struct shares *s, uint32_t flow, bool begins)
{
	struct share *sh = share_at(s, flow_at(s, flow)->share);

	sh->leased += begins ? 1 : UINT32_MAX; /* one less */
	s->leased += begins ? 1 : UINT32_MAX;
	limit_share(s, flow_at(s, flow)->share);
}

void
shares_limit(struct shares *s, uint32_t max)
{
	s->max_leased = max;
	for (uint32_t h = shares_next(s, SLAB_NONE); h != SLAB_NONE; h = shares_next(s, h)) {
		limit_share(s, h);
		s->steps++;
	}
}

uint32_t
shares_leased(const struct shares *s)
{
	return s->leased;
}
