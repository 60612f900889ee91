/*
 * dispatch.h - ops that wait: claims, peeks and watches for a message, acquires for a key, results
 * for an ack.
 *
 *      claim found nothing ──> | waitlist of its queue |      first come, first served
 *                                │        │      │
 *      messages are claimable ───┘        │      └── canceled: leaves the waitlist
 *      (dispatch_ready)       │           │
 *        marks the waitlist   │           └───────── its time is over: ends
 *                             v
 *      dispatch_join: the first ops of the waitlist, one for each message, run again
 *
 * A claim waits in the waitlist of its queue, a result in the waitlist of its message, an acquire in the
 * waitlist of its key. Peeks and watches take nothing and have waitlists of their own. A claim whose stream
 * has no credit (broker/credit.h) waits in the waitlist of that stream first. Nothing polls: a waitlist runs
 * when there may be something for it.
 *
 *  DISPATCH-1  A waitlist is in the order of arrival. A claim or acquire that comes while others wait goes
 *              to the end of the waitlist, even if it may not wait itself, and even if something is
 *              ready.
 *  DISPATCH-2  An op that runs again keeps its place until it is served.
 *  DISPATCH-3  No wake-up is lost: a marked waitlist stays marked until as many of its ops have run as
 *              there were messages.
 *  DISPATCH-4  An op whose time is over ends, but not before its waitlist, if marked, has run.
 *  DISPATCH-5  While claims of some kinds (core/queue/kind.h) wait for a queue, nobody knows which op a message is for: then
 *              all ops of the waitlist run, in their order. An op that comes runs once, without those before it.
 *
 * Owned by the lane's thread. Times are shard time.
 */
#ifndef BROKER_DISPATCH_H
#define BROKER_DISPATCH_H

#include "base/hash.h"
#include "base/heap.h"
#include "base/map.h"
#include "engine/op.h"

struct dispatch {
	struct hash_key secret;
	struct slab waiters;   /* struct waiter: one an op */
	struct slab waitlists; /* struct waitlist */
	struct list claims;    /* of waiters in order of arrival: all but results */
	struct list results;   /* of waiters in order of arrival: results */
	struct map names;      /* of waitlists, by what their ops wait for */
	struct heap ends;      /* of waiters, by the end of their wait */
	struct list marked;    /* of waitlists that may be served */
	struct map streams;    /* of waiters that are claims of a stream, by its number */
	struct list lapsed;    /* of waiters whose stream ends */
	uint32_t watches;      /* how many waiters are watches */
};

void dispatch_init(struct dispatch *d, const struct hash_key *secret);
void dispatch_release(struct dispatch *d); /* no op waits */

static inline uint32_t
dispatch_count(const struct dispatch *d)
{
	return d->waiters.used;
}

/* Returns true if ops wait for what this op wants: it goes behind them, DISPATCH-1. */
bool dispatch_has_waiters(const struct dispatch *d, const struct op *op);

/* Returns true if ops wait for messages of the queue. */
bool dispatch_is_waited_for(const struct dispatch *d, struct slice space, struct slice queue);

/* How many ops wait for what this op wants; for a verb that never waits: claims of its queue. */
uint32_t dispatch_waiting(const struct dispatch *d, const struct op *op);

/* How many claims wait for messages of the queue and may take one of this share or kind. */
uint32_t dispatch_takers(const struct dispatch *d, struct slice space, struct slice queue, struct slice line);

/* How many acquires wait for the key. */
uint32_t dispatch_waiting_for_key(const struct dispatch *d, struct slice space, struct slice key);

/* Puts op at the end of its waitlist until op->route.arrived + op->wait; an op that waits already stays
 * where it is. run: marks the waitlist if it is new. Returns SLU_ENOMEM. */
int dispatch_park(struct dispatch *d, struct op *op, bool run);

/* Takes the op out of its waitlist: it was served, or canceled. */
void dispatch_leave(struct dispatch *d, struct op *op);

/* n messages of a queue can be claimed now; queue.n 0: of any queue. */
void dispatch_ready(struct dispatch *d, struct slice space, struct slice queue, uint32_t n);

/* A key is free, for one acquire. */
void dispatch_freed(struct dispatch *d, struct slice space, struct slice key);

/* The first message of a queue may have changed; queue.n 0: of any queue. */
void dispatch_head_changed(struct dispatch *d, struct slice space, struct slice queue);

/* Takes the claim that waits for the credit of a stream out of its waitlist; or NULL. */
struct op *dispatch_room(struct dispatch *d, uint64_t stream);

/* The claim of the stream that waits, if any, ends: dispatch_lapsed returns it. The claim may be
 * part of the batch that runs; if that batch serves it, the stream goes on. */
void dispatch_lapse(struct dispatch *d, uint64_t stream);

/* Takes a claim whose stream ends out of its waitlist; NULL: no more. Not during a run. */
struct op *dispatch_lapsed(struct dispatch *d);

/* A message is gone: the ops that wait for its result run. */
void dispatch_gone(struct dispatch *d, uint64_t id);

/* The same for all messages. */
void dispatch_gone_all(struct dispatch *d);

/* Up to max ops that may be served now, linked by route.next, in the order of their waitlists; or NULL.
 * They still wait. */
struct op *dispatch_join(struct dispatch *d, uint32_t max, struct op **last);

/* Takes an op whose time is over at `now` out of its waitlist; or NULL. DISPATCH-4. */
struct op *dispatch_expire(struct dispatch *d, slu_time now);

/* The same for a waitlist that is marked and cannot run now. */
struct op *dispatch_overdue(struct dispatch *d, slu_time now);

/* Takes any op out of its waitlist; or NULL. claims: no result. */
struct op *dispatch_any(struct dispatch *d, bool claims);

/* When the next wait ends, or SLU_NEVER; 0: a waitlist is marked. */
slu_time dispatch_next(const struct dispatch *d);

/* The same, whether or not a waitlist is marked. */
slu_time dispatch_first_end(const struct dispatch *d);

#endif
