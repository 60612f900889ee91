/*
 * message.h - one message in memory: a cache line, without texts.
 *
 * With its node in a heap (24 bytes) and its slot in the map of ids (at most 10.7) a message
 * takes less than 100 bytes, in order less than 80; its record has the payload, the key and the attributes.
 *
 * A message is in one state (enum msg_state) and, by it, in one place:
 *
 *      READY    heap `ready` of its queue, of    pos: there
 *               its share, or of the strand
 *               of its value; a parked       pos: next     link: previous
 *               head: the list of its queue
 *      DELAYED  heap `timed` of its queue        pos: there
 *      LEASED   heap of deadlines                pos: there    link: its lease, in a list of
 *                                                              its queue
 *      HELD     sequence of its key                  pos: next     link: previous
 *      DEAD     dead letters of its queue        pos: next     link: previous
 *      DAMAGED  quarantine of its queue          pos: next     link: previous
 *
 * The queue keeps room for it in both heaps all the time. Part of the ledger.
 */
#ifndef CORE_QUEUE_MESSAGE_H
#define CORE_QUEUE_MESSAGE_H

#include "core/ledger/ledger.h"
#include "core/queue/queue.h"

/* Flags that only the ledger uses. */
enum {
	MSG_KEYED = 4,    /* home is its ordering key, which has the queue */
	MSG_TAKEN = 8,    /* set aside for a move: only in its batch, pos is the index there */
	MSG_AT_SPOT = 32, /* it has a share or a limited value: home is its spot, which has the queue and the key */
	MSG_PARKED = 64,  /* READY, and kept back by the gate of its key: LEDGERGATE-3 */
	MSG_STAYS = 64    /* DEAD, and stays in its queue: ledger_stay */
};

struct msg {
	/* own8: state; own16: attempts; own32: position in the heap of ttls, HEAP_OUT without
	 * a ttl and while leased */
	struct queue_item q;
	uint64_t id;
	uint64_t where : 48;    /* place of its record */
	uint64_t failures : 16; /* failing nacks and leases that ran out */
	uint32_t home;          /* its queue, with MSG_KEYED its ordering key, or with MSG_AT_SPOT its spot */
	uint32_t link;          /* by state, see above */
	uint32_t more;          /* a struct more, or SLAB_NONE */
	uint16_t max_attempts;  /* 0: of the policy */
	uint8_t flags;          /* enum msg_flags, MSG_KEYED, MSG_TAKEN, MSG_AT_SPOT, MSG_PARKED */
	uint8_t reason;         /* enum dead_reason */
};

_Static_assert(sizeof(struct msg) == 64, "a message is a cache line");

/* Fields that few messages need. */
struct more {
	uint64_t error; /* place of the last error text, or 0 */
	uint32_t idem;  /* its idempotency key, or SLAB_NONE */
	uint32_t keep;  /* seconds that its result is kept, 0: not; with MORE_TERMS: its struct own_terms */
};

#define MORE_TERMS 0x80000000u

/* A message with terms of its own. */
struct own_terms {
	struct terms terms;
	uint32_t keep;       /* seconds that its result is kept */
	uint32_t msg;        /* the message */
	uint32_t prev, next; /* in the list of LEDGERBATCH-1, by handle, or SLAB_NONE */
	bool listed;         /* it is in the list */
};

/* Fields of a leased message. The deadline is in the heap. */
struct lease {
	uint64_t token;
	slu_time claimed;        /* start of the lease */
	slu_time expires;        /* end of the ttl, which has no effect during the lease; or SLU_NEVER */
	uint32_t prev;           /* leased message of the queue, or SLAB_NONE */
	uint32_t next;           /* the same */
	uint32_t holder;         /* core/queue/holders.h */
	uint32_t stream_no : 31; /* of the stream that has it, or 0; lost at a restart */
	uint32_t canceled : 1;   /* LEDGER-17 */
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

/* Row: from; bits: to. */
extern const unsigned char msg_changes[MSG_STATES];

/* Returns whether a message may change from one state to another. */
static inline bool
msg_may_change(enum msg_state from, enum msg_state to)
{
	return msg_changes[from] >> to & 1;
}

/* The order of sequences and of dead letters: (due, number). */
static inline bool
msg_before(const struct msg *a, const struct msg *b)
{
	return a->q.due < b->q.due || (a->q.due == b->q.due && a->q.seq < b->q.seq);
}

#endif
