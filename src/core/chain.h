/*
 * chain.h - messages in the order (due, number): the line of a key behind its head,
 * and the dead letters of a queue (whose due is when they died).
 *
 * Doubly linked, through fields that messages have free while they are in one.
 * Nearly all join at the end. What is read back from a log that was cleaned comes
 * in runs that belong further forward: looking begins where the last one went in.
 */
#ifndef CORE_CHAIN_H
#define CORE_CHAIN_H

#include "core/message.h"

struct chain {
	uint32_t first, last; /* or SLAB_NONE */
	uint32_t hint;        /* the last one put in, if it is still there */
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
