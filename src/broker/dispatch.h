/*
 * dispatch.h - ops that wait: claims and peeks for a message, results for an ack, acquires
 * for a key.
 *
 *      claim found nothing ──> | its queue's line |       first come, first served
 *                                │        │      │
 *      messages are claimable ───┘        │      └── canceled: out of the line
 *      (dispatch_ready)   marked line     │
 *                             │           └───────── its moment: ends with nothing
 *                             v
 *      dispatch_join: the first of the line, as many as there are messages, run again
 *
 * A claim waits in the line of its queue, a result in the line of its message, an acquire
 * in the line of its key; peeks and watches, which take nothing from anybody, have lines
 * of their own, and a claim whose flow (broker/flow.h) has no room waits for that first.
 * Nobody polls: a line runs again when there may be something for it.
 *
 *  D1  The order of a line is the order of arrival. A claim or acquire that comes while
 *      others wait goes to the end of the line, even if it may not wait, and even if
 *      something is ready: that is for those before it.
 *  D2  An op that runs again keeps its place until it has been served.
 *  D3  No wake-up is lost: a line that is marked stays so until as many of it as
 *      there were messages have run since.
 *  D4  An op whose moment has come ends, but not before a marked line has run.
 *
 * Owned by the shard's thread. Times are shard time.
 */
#ifndef BROKER_DISPATCH_H
#define BROKER_DISPATCH_H

#include "base/hash.h"
#include "base/heap.h"
#include "base/map.h"
#include "engine/op.h"

struct dispatch {
	struct hash_key secret;
	struct slab waiters; /* struct waiter: one an op */
	struct slab lines;
	struct list claims;  /* of all waiters, first come; peeks and acquires too */
	struct list results; /* the same */
	struct map names;    /* of lines, by what their ops wait for */
	struct heap ends;    /* of waiters, by the moment their wait ends */
	struct list marked;  /* of lines that may be served */
	uint32_t watches;    /* of the waiters */
};

void dispatch_init(struct dispatch *d, const struct hash_key *secret);
void dispatch_release(struct dispatch *d); /* nobody waits any more */

static inline uint32_t
dispatch_count(const struct dispatch *d)
{
	return d->waiters.used;
}

/* Does anybody wait for what this op wants? Then it has to go behind them, D1. */
bool dispatch_has_line(const struct dispatch *d, const struct op *op);

/* Does anybody wait for messages of the queue, to take them or to look at them? */
bool dispatch_is_waited_for(const struct dispatch *d, struct slice space, struct slice queue);

/* How many wait for what this op wants. */
uint32_t dispatch_waiting(const struct dispatch *d, const struct op *op);

/* Let op wait at the end of its line until op->arrived + op->wait. SLU_ENOMEM. An op
 * that waits already stays where it is. run: a line that is made by this is marked. */
int dispatch_park(struct dispatch *d, struct op *op, bool run);

/* The op waits no more: it was served, or canceled. */
void dispatch_leave(struct dispatch *d, struct op *op);

/* Messages of a queue can be claimed now, n of them; queue.n 0: of any queue. */
void dispatch_ready(struct dispatch *d, struct slice space, struct slice queue, uint32_t n);

/* A key can be had: by one. */
void dispatch_freed(struct dispatch *d, struct slice space, struct slice key);

/* The head of a queue may be another now; queue.n 0: of any. */
void dispatch_moved(struct dispatch *d, struct slice space, struct slice queue);

/* The claim that waits for room in a flow, taken out of its line; or NULL. */
struct op *dispatch_room(struct dispatch *d, uint64_t flow);

/* A message is gone: whoever waits for its result may have it. all: any may be. */
void dispatch_gone(struct dispatch *d, uint64_t id);
void dispatch_gone_all(struct dispatch *d);

/* Up to max ops that may be served now, linked by next, in the order of their lines;
 * NULL when there are none. They still wait. */
struct op *dispatch_join(struct dispatch *d, uint32_t max, struct op **last);

/* An op whose wait is over at the moment now, taken out of its line; or NULL. D4. */
struct op *dispatch_expire(struct dispatch *d, slu_time now);

/* Any op, taken out of its line; NULL when nobody waits. claims: of those alone. */
struct op *dispatch_any(struct dispatch *d, bool claims);

/* When a wait ends, or SLU_NEVER; 0 when a line is marked. */
slu_time dispatch_next(const struct dispatch *d);

#endif
