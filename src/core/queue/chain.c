#include "core/queue/chain.h"

#include <assert.h>

void
chain_init(struct chain *c)
{
	*c = (struct chain){ SLAB_NONE, SLAB_NONE, SLAB_NONE };
}

static bool
is_before(const struct slab *msgs, uint32_t a, uint32_t b)
{
	return msg_before(msg_at(msgs, a), msg_at(msgs, b));
}

/* The message before the place of handle, or SLAB_NONE. */
static uint32_t
find_place(const struct chain *c, const struct slab *msgs, uint32_t handle)
{
	uint32_t at = c->last;

	if (at == SLAB_NONE || is_before(msgs, at, handle))
		return at;
	if (c->hint != SLAB_NONE)
		at = c->hint;
	while (at != SLAB_NONE && is_before(msgs, handle, at))
		at = msg_at(msgs, at)->link;

	uint32_t next = at == SLAB_NONE ? c->first : chain_next(msgs, at);

	while (next != SLAB_NONE && is_before(msgs, next, handle)) {
		at = next;
		next = chain_next(msgs, at);
	}
	return at;
}

void
chain_insert(struct chain *c, const struct slab *msgs, uint32_t handle)
{
	struct msg *m = msg_at(msgs, handle);

	assert(m->q.place == QUEUE_OUT);
	m->link = find_place(c, msgs, handle);
	m->q.pos = m->link == SLAB_NONE ? c->first : chain_next(msgs, m->link);
	if (m->link == SLAB_NONE)
		c->first = handle;
	else
		msg_at(msgs, m->link)->q.pos = handle;
	if (m->q.pos == SLAB_NONE)
		c->last = handle;
	else
		msg_at(msgs, m->q.pos)->link = handle;
	c->hint = handle;
}

void
chain_remove(struct chain *c, const struct slab *msgs, uint32_t handle)
{
	struct msg *m = msg_at(msgs, handle);
	const uint32_t prev = m->link, next = m->q.pos;

	if (prev == SLAB_NONE)
		c->first = next;
	else
		msg_at(msgs, prev)->q.pos = next;
	if (next == SLAB_NONE)
		c->last = prev;
	else
		msg_at(msgs, next)->link = prev;
	if (c->hint == handle)
		c->hint = prev == SLAB_NONE ? next : prev;
	m->link = m->q.pos = SLAB_NONE;
}
