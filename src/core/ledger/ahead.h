/*
 * ahead.h - looking ahead: loads into the cache what the next messages of a call need. Part of the ledger, which it does not change.
 *
 *      put:    key's slot -> key -> its last message -> its spot -> flow, strand -> share, value, ends of heaps
 *      claim:  flow -> share, first message -> spot -> key, strand, gate -> value
 *
 * With 100,000 keys and 10,000 shares each arrow is a cache line that is not there. One message takes longer than a line from memory,
 * so each message takes the step behind an arrow for one of those that follow: a pipeline.
 *
 *         struct ledger_ahead a;
 *
 *         ledger_ahead_begin(&a, queue);
 *         for each message i:
 *                 ledger_ahead_put(l, &a, key of message i + LEDGER_AHEAD);     before, for the first of them, too
 *                 offer.key_hash = ledger_ahead_use(l, &a, i);
 *                 ledger_accept(l, queue, &offer, ...);
 *
 * No message is removed between the two calls for one message. What is seen may have changed when the message is handled, which
 * decides everything anew. Owned by the shard's thread.
 */
#ifndef CORE_LEDGER_AHEAD_H
#define CORE_LEDGER_AHEAD_H

#include "core/ledger/ledger.h"

enum {
	LEDGER_AHEAD = 6,
	LEDGER_AHEAD_ROOM = 8 /* a power of 2 */
};

struct ledger_ahead {
	uint32_t queue;
	uint32_t n; /* messages so far */
	struct ledger_ahead_of {
		uint64_t hash; /* of the key; 0: none */
		uint32_t h;    /* a message, then its spot; or SLAB_NONE */
		uint32_t key;  /* SLAB_NONE: not known */
	} of[LEDGER_AHEAD_ROOM];
};

void ledger_ahead_begin(struct ledger_ahead *a, uint32_t queue);

/* The key of the next message; n 0: none. */
void ledger_ahead_put(const struct ledger *l, struct ledger_ahead *a, struct slice key);

/* Just before message i is accepted: the hash of its key, or 0. */
uint64_t ledger_ahead_use(struct ledger *l, const struct ledger_ahead *a, uint32_t i);

/* Before each claim. */
void ledger_ahead_claim(const struct ledger *l, uint32_t queue);

#endif
