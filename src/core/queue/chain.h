/*
 * chain.h - messages in the order (due, number): the sequence of a key behind its head, and the
 * dead letters of a queue (their due is the moment of death).
 *
 * A doubly linked list, through fields that a message does not need while it is in one. Most
 * messages join at the end. A replay of a cleaned log inserts runs of older messages, so the
 * search for a place begins at the last insert.
 */
#ifndef CORE_QUEUE_CHAIN_H
#define CORE_QUEUE_CHAIN_H

#include "core/queue/message.h"

struct chain {
	uint32_t first, last; /* or SLAB_NONE */
	uint32_t hint;        /* the message inserted last, or SLAB_NONE if it has left */
};

void chain_init(struct chain *c);
void chain_insert(struct chain *c, const struct slab *msgs, uint32_t handle);
void chain_remove(struct chain *c, const struct slab *msgs, uint32_t handle);

static inline uint32_t
chain_next(const struct slab *msgs, uint32_t handle)
{
	return msg_at(msgs, handle)->q.pos;
}

#endif
