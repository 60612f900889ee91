#include "exec/parking.h"

#include <assert.h>
#include <string.h>

static struct task_slot *
at(const struct parking *p, uint32_t slot)
{
	return slab_at(p->slots, slot);
}

/* All keys of a shard agree in hash % shards; the multiplication spreads them. */
static uint64_t
spread(uint32_t hash)
{
	return hash * 0x9e3779b97f4a7c15u >> 16;
}

static uint64_t
slot_hash(const void *slots, uint32_t slot)
{
	const struct task_slot *s = slab_at(slots, slot);

	return spread(s->hash);
}

static bool
slot_is(const void *slots, uint32_t slot, const void *key)
{
	const struct task_slot *s = slab_at(slots, slot);

	return strcmp(s->key, key) == 0;
}

int
parking_init(struct parking *p, const struct slab *slots, uint32_t max)
{
	*p = (struct parking){ .slots = slots, .taken = SLAB_NONE };
	heap_init(&p->by_due, slots, offsetof(struct task_slot, pos));
	map_init(&p->by_key, slots, slot_hash, slot_is);
	if (heap_reserve_just(&p->by_due, max) || map_reserve(&p->by_key, max)) {
		parking_release(p);
		return SLU_ENOMEM;
	}
	return 0;
}

void
parking_release(struct parking *p)
{
	heap_release(&p->by_due);
	map_release(&p->by_key);
}

size_t
parking_bytes(const struct parking *p)
{
	return p->by_due.max * sizeof *p->by_due.nodes +
	       (p->by_key.now.mask + 1) * sizeof *p->by_key.now.slots;
}

uint32_t
parking_find(const struct parking *p, const char *key, uint32_t hash)
{
	return map_find(&p->by_key, spread(hash), key);
}

void
parking_expect(struct parking *p, uint32_t leader, uint64_t seq, uint32_t n)
{
	struct task_slot *first = at(p, leader);

	if (!first->held_from)
		first->held_from = seq;
	first->held += n;
}

void
parking_hold(struct parking *p, uint32_t leader, uint32_t slot)
{
	struct task_slot *first = at(p, leader);

	at(p, slot)->next = SLAB_NONE;
	at(p, first->last)->next = slot;
	first->last = slot;
	if (!first->held_from || at(p, slot)->seq < first->held_from)
		first->held++; /* accepted before its key was parked */
	p->tasks++;
}

static void
lead(struct parking *p, uint32_t slot)
{
	int rc;

	at(p, slot)->leads = true;
	rc = map_insert(&p->by_key, spread(at(p, slot)->hash), slot);
	assert(rc == 0); /* reserved */
	(void)rc;
}

static void
wait_until(struct parking *p, uint32_t slot, slu_time due)
{
	struct task_slot *s = at(p, slot);

	s->due = due;
	heap_push(&p->by_due, (struct rank){ .b = rank_time(due), .c = s->seq }, slot);
}

void
parking_park(struct parking *p, uint32_t slot, slu_time due)
{
	struct task_slot *s = at(p, slot);

	if (!s->leads) {
		s->next = SLAB_NONE;
		s->last = slot;
		s->held = 0;
		s->held_from = 0;
		lead(p, slot);
	}
	wait_until(p, slot, due);
	p->taken = SLAB_NONE;
	p->tasks++;
}

slu_time
parking_next_due(const struct parking *p)
{
	const struct heap_node *first = heap_first(&p->by_due);

	return first ? at(p, first->handle)->due : SLU_NEVER;
}

uint32_t
parking_due(const struct parking *p, slu_time now)
{
	const struct heap_node *first = heap_first(&p->by_due);

	if (!first || at(p, first->handle)->due > now)
		return SLAB_NONE;
	return first->handle;
}

void
parking_take(struct parking *p, uint32_t slot)
{
	heap_remove(&p->by_due, at(p, slot)->pos);
	p->taken = slot;
	p->tasks--;
}

void
parking_end(struct parking *p, uint32_t slot, slu_time now)
{
	struct task_slot *s = at(p, slot);
	const uint32_t heir = s->next;

	map_remove(&p->by_key, spread(s->hash), slot);
	s->leads = false;
	p->taken = SLAB_NONE;
	if (heir == SLAB_NONE)
		return;
	at(p, heir)->last = s->last;
	at(p, heir)->held = s->held - 1;
	at(p, heir)->held_from = s->held_from;
	lead(p, heir);
	wait_until(p, heir, now);
}
