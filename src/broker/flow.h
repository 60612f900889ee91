/*
 * flow.h - streams of claims, and how much of what they were handed is unsettled.
 *
 *      claim with a flow ── room? ──> as any other ──> granted: counted, by message
 *                             │                            │
 *                             └─ no: waits for it <── a lease of it has ended, however
 *
 * A flow is a number that whoever makes the claims chose. It is there while messages are
 * leased under it, and costs nothing after the last. That the stream itself has ended
 * need not be told.
 *
 * A store that several nodes share does not report every end: another node may settle the
 * message, and its notice may get lost. The leases of such a store (`by_time`) also end FLOW_LATE
 * after their deadline, so an end that was never reported stalls a stream for one lease at most.
 *
 * Owned by the shard's thread.
 */
#ifndef BROKER_FLOW_H
#define BROKER_FLOW_H

#include "base/hash.h"
#include "base/heap.h"
#include "base/map.h"
#include "base/slab.h"
#include "engine/op.h"

#define FLOW_LATE SLU_SEC

struct flows {
	struct hash_key secret;
	struct slab flows;  /* struct flow */
	struct slab leases; /* struct flow_lease: one a message */
	struct map numbers; /* of flows */
	struct map ids;     /* of leases, by message */
	struct heap ends;   /* of leases, by their end; empty unless by_time */
	bool by_time;       /* leases also end by themselves */
};

void flows_init(struct flows *f, const struct hash_key *secret);
void flows_release(struct flows *f);

/* How many more rows the claim may have; UINT32_MAX: it has no flow. */
uint32_t flow_room(const struct flows *f, const struct op *op);

/* Counts the rows that the claim was granted at the moment now. A row without memory for it
 * is not counted. No row may be counted already: see flow_settle. */
void flow_grant(struct flows *f, const struct op *op, slu_time now);

/* The lease of the message has ended. token: 0, or the lease is another one if it has another
 * token. Returns the number of the flow that has room now, or 0. */
uint64_t flow_settle(struct flows *f, uint64_t id, uint64_t token);

/* The lease of the message ends at `until`. */
void flow_extend(struct flows *f, uint64_t id, slu_time until);

/* Ends a lease whose time is over: the number of its flow, or 0 if there is none. */
uint64_t flow_expire(struct flows *f, slu_time now);

/* When flow_expire has something to do, or SLU_NEVER. */
slu_time flows_next(const struct flows *f);

#endif
