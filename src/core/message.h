/*
 * message.h - one message in memory: a cache line, and nothing textual.
 *
 * With its node in a heap (24 bytes) and its slot in the map of ids (at most 10.7)
 * it takes less than 100 bytes; its payload, key and attributes are in its record.
 *
 * A message is in one state (enum msg_state) and, by it, in one place:
 *
 *      READY    heap `ready` of its queue        pos: there
 *      DELAYED  heap `timed` of its queue        pos: there
 *      LEASED   heap of deadlines                pos: there    link: its lease, which is in
 *                                                              a list of its queue
 *      HELD     line of its key                  pos: next     link: previous
 *      DEAD     dead letters of its queue        pos: next     link: previous
 *      DAMAGED  damaged ones of its queue        pos: next     link: previous
 *
 * The queue keeps room for it in both heaps all the time. Inner part of the ledger.
 */
#ifndef CORE_MESSAGE_H
#define CORE_MESSAGE_H

#include "core/ledger.h"
#include "core/queue.h"

/* Flags: home is the key, which knows the queue; it is set aside (ledger_moving.c), and in
 * no place but its batch, of which pos is the index. */
enum {
	MSG_KEYED = 4,
	MSG_TAKEN = 8
};

struct msg {
	/* own8: state; own16: attempts; own32: place in the heap of ttls, HEAP_OUT
	 * without ttl and while leased */
	struct queue_item q;
	uint64_t id;
	uint64_t where : 48;
	uint64_t failures : 16;
	uint32_t home;
	uint32_t link;
	uint32_t more;         /* a struct more, or SLAB_NONE */
	uint16_t max_attempts; /* 0: the queue's */
	uint8_t flags;
	uint8_t reason; /* enum dead_reason */
};

_Static_assert(sizeof(struct msg) == 64, "a message is a cache line");

/* What few messages have. */
struct more {
	uint64_t error; /* place of the last error text, or 0 */
	uint32_t idem;  /* its idempotency key, or SLAB_NONE */
	uint32_t keep;  /* for how many seconds its result is kept; 0: not */
};

/* What a message has while it is leased. The deadline is in the heap. */
struct lease {
	uint64_t token;
	slu_time claimed;
	slu_time expires; /* its ttl, which does not count meanwhile; or SLU_NEVER */
	uint32_t prev;    /* leased messages of the queue, or SLAB_NONE */
	uint32_t next;
	uint32_t owner; /* core/owners.h */
	uint32_t flow;  /* of the stream that has it, or 0. Not known after a restart */
};

static inline struct msg *
msg_at(const struct slab *msgs, uint32_t handle)
{
	return slab_at(msgs, handle);
}

static inline enum msg_state
msg_state(const struct msg *m)
{
	return m->q.own8;
}

/* May a message go from one state to another? */
bool msg_may_move(enum msg_state from, enum msg_state to);

/* By (due, number): the order of lines, and of dead letters. */
static inline bool
msg_before(const struct msg *a, const struct msg *b)
{
	return a->q.due < b->q.due || (a->q.due == b->q.due && a->q.seq < b->q.seq);
}

#endif
