/*
 * shares_private.h - the parts of the shares of a queue, for core/queue/ alone.
 *
 *  SHARES-5  A flow with candidates is in the heap `active` of its level. A flow without messages whose
 *            finish tag is later than V is in its heap `ghosts`, until V has passed the tag. Every other
 *            flow is in no heap.
 *  SHARES-6  A level is in the heap `levels` while it has an active flow. It exists while it has a flow, plain
 *            candidates, or plain messages that wait.
 *  SHARES-7  A tag is S while the flow is active and its last finish tag otherwise. V is never higher than
 *            S of an active flow, so both are one number.
 *  SHARES-8  What 1 / weight leaves over of a unit is kept for the next delivery: otherwise a share of weight 1,000 would
 *            run ahead by one delivery in 2,000. A flow that takes V as its tag has nothing left over.
 */
#ifndef CORE_QUEUE_SHARES_PRIVATE_H
#define CORE_QUEUE_SHARES_PRIVATE_H

#include "base/map.h"
#include "core/queue/ownname.h"
#include "core/queue/shares.h"

/* In each struct `alive` is behind the first 8 bytes, which a free item of a slab does not keep. */
struct share {
	uint64_t hash; /* of the name */
	uint64_t delivered;
	struct ownname name;
	uint32_t messages;
	uint32_t ready;
	uint32_t leased;
	uint32_t flows; /* the first flow, or SLAB_NONE */
	uint32_t gate;  /* of the owner */
	uint32_t weight : 16;
	bool alive : 1;
	bool blocked : 1;
	bool closed : 1; /* by its gate */
};

_Static_assert(sizeof(struct share) == 64, "a share is a cache line");
_Static_assert(SHARES_WEIGHT_MAX < 1 << 16, "a weight fits");

struct flow {
	uint64_t tag; /* SHARES-7; valid if epoch equals the epoch of the level */
	uint64_t epoch;
	struct heap ready;
	struct heap trash; /* of a purge */
	uint32_t share;
	uint32_t level;
	uint32_t messages;   /* in any state; `ready` has room for all */
	uint32_t prev, next; /* flows of the share, or SLAB_NONE */
	uint32_t pos;        /* in active or ghosts, or HEAP_OUT */
	uint32_t spot;       /* of the owner */
	uint16_t rest;       /* SHARES-8 */
	bool alive;
};

struct level {
	uint64_t v;
	uint64_t epoch;     /* rises when V and the tags are forgotten */
	uint64_t plain_tag; /* as the tag of a flow, and as its epoch */
	uint64_t plain_epoch;
	struct heap active;
	struct heap ghosts;
	int32_t prio;
	uint32_t plain;  /* plain candidates */
	uint32_t behind; /* plain messages that wait behind a value */
	uint32_t flows;
	uint32_t pos; /* in levels, or HEAP_OUT */
	bool alive;
};

struct shares {
	const struct slab *items;
	struct hash_key secret;
	struct slab shares;
	struct slab flows;
	struct slab levels;
	struct map names;    /* of shares */
	struct map flow_of;  /* by share and priority */
	struct map level_of; /* by priority */
	struct heap order;   /* levels with an active flow, by priority */
	uint32_t charged;    /* the flow that shares_charge has charged and shares_leave has not placed, or SLAB_NONE */
	uint32_t loose;      /* the flow that was reserved last, or SLAB_NONE */
	uint32_t trash;      /* the next flow to look at for trash */
	uint32_t leased;     /* messages with a share */
	uint32_t max_leased; /* of a share; 0: no limit */
	bool plain_blocked;  /* plain messages are not candidates */
	size_t heap_bytes;   /* of the heaps of flows and levels, and of names */
	bool changed;        /* shares_bytes may have changed since the last shares_have_changed */
	uint64_t steps;      /* changes of heaps and walks over all shares, for tests */
};

static inline struct share *
share_at(const struct shares *s, uint32_t h)
{
	return SLAB_AT_FEW(&s->shares, h, struct share);
}

static inline struct flow *
flow_at(const struct shares *s, uint32_t h)
{
	return SLAB_AT_FEW(&s->flows, h, struct flow);
}

static inline struct level *
level_at(const struct shares *s, uint32_t h)
{
	return SLAB_AT_FEW(&s->levels, h, struct level);
}

static inline const struct queue_item *
shares_item(const struct shares *s, uint32_t item)
{
	return slab_at(s->items, item);
}

/* SHARES-8: what a delivery adds to the tag. */
static inline uint64_t
share_cost(uint32_t weight, uint16_t *rest)
{
	const uint32_t units = SHARES_UNIT + *rest;

	*rest = (uint16_t)(units % weight);
	return units / weight;
}

/* ---- shares_make.c ---- */

/* Return SLAB_NONE if nothing is found. share may be SLAB_NONE. */
uint32_t shares_level(const struct shares *s, int32_t prio);
uint32_t shares_find_flow(const struct shares *s, uint32_t share, int32_t prio);

/* Find or make a level. Make a flow, and its share and level. Return SLU_ENOMEM and change nothing if
 * memory is out. */
int shares_open_level(struct shares *s, int32_t prio, uint32_t *out);
int shares_make_flow(struct shares *s, struct slice name, uint32_t weight, int32_t prio, uint32_t *flow);

/* Frees a flow without messages that is in no heap, and its share and level if nothing else uses them. */
void shares_drop_flow(struct shares *s, uint32_t flow);

/* Frees the level if it has neither flows nor plain messages. */
void shares_drop_level(struct shares *s, uint32_t level);

/* heap_reserve and heap_release of a heap of a flow or level, with its bytes counted. */
int shares_grow(struct shares *s, struct heap *h, uint32_t n);
void shares_shrink(struct shares *s, struct heap *h);

/* ---- shares.c ---- */

/* Removes an active flow from its level. */
void shares_deactivate(struct shares *s, uint32_t flow);

/* SHARES-3, of a level without candidates. Frees its ghosts, and the level if nothing uses it. */
void shares_forget_tags(struct shares *s, uint32_t level);

/* Returns whether the level keeps its tags. */
static inline bool
level_is_used(const struct level *l)
{
	return l->active.n || l->plain || l->behind;
}

/* S of the plain messages of a level that has plain candidates. */
static inline uint64_t
plain_tag(const struct level *l)
{
	const uint64_t tag = l->plain_epoch == l->epoch ? l->plain_tag : 0;

	return tag > l->v ? tag : l->v;
}

#endif
