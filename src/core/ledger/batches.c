#include "core/ledger/batches.h"

#include "core/ledger/ledger_private.h"

#include <assert.h>

uint64_t
ledger_member_of(const struct ledger *l, uint32_t msg)
{
	const struct msg *const m = ledger_msg(l, msg);

	return m->more == SLAB_NONE ? 0 : ledger_terms(l, m)->batch;
}

static struct own_terms *
entry_at(const struct ledger *l, uint32_t h)
{
	return slab_at(&l->terms, h);
}

/* The entry of a message that has a batch, or SLAB_NONE. */
static uint32_t
entry_of(const struct ledger *l, const struct msg *m)
{
	const uint32_t at = ledger_more(l, m)->keep;

	return at & MORE_TERMS && entry_at(l, at & ~MORE_TERMS)->terms.batch ? at & ~MORE_TERMS : SLAB_NONE;
}

void
ledger_member_enter(struct ledger *l, struct ledger_queue *q, const struct msg *m)
{
	const uint32_t h = entry_of(l, m);
	struct own_terms *e;

	if (h == SLAB_NONE)
		return;
	e = entry_at(l, h);
	assert(!e->listed);
	e->listed = true;
	e->prev = SLAB_NONE;
	e->next = q->members;
	if (e->next != SLAB_NONE)
		entry_at(l, e->next)->prev = h;
	q->members = h;
	q->n_members++;
}

void
ledger_member_leave(struct ledger *l, struct ledger_queue *q, const struct msg *m)
{
	const uint32_t h = entry_of(l, m);
	struct own_terms *const e = h == SLAB_NONE ? NULL : entry_at(l, h);

	if (!e || !e->listed)
		return;
	e->listed = false;
	if (e->next != SLAB_NONE)
		entry_at(l, e->next)->prev = e->prev;
	if (e->prev != SLAB_NONE)
		entry_at(l, e->prev)->next = e->next;
	else
		q->members = e->next;
	q->n_members--;
}

void
ledger_members_purge(struct ledger *l, struct ledger_queue *q)
{
	for (uint32_t h = q->members; h != SLAB_NONE; h = entry_at(l, h)->next)
		entry_at(l, h)->listed = false;
	q->members = SLAB_NONE;
	q->n_members = 0;
}

uint32_t
ledger_members(const struct ledger *l, uint32_t queue)
{
	return ledger_queue(l, queue)->n_members;
}

uint32_t
ledger_first_members(const struct ledger *l, uint32_t queue, uint32_t *msgs, uint32_t max)
{
	uint32_t n = 0;

	for (uint32_t h = ledger_queue(l, queue)->members; h != SLAB_NONE && n < max; h = entry_at(l, h)->next)
		msgs[n++] = entry_at(l, h)->msg;
	return n;
}

int
ledger_decide_again(struct ledger *l, struct change *c)
{
	if (c->number)
		c->number = l->counter + 1;
	return ledger_reserve(l, c);
}
