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
 * Owned by the shard's thread.
 */
#ifndef BROKER_FLOW_H
#define BROKER_FLOW_H

#include "base/hash.h"
#include "base/map.h"
#include "base/slab.h"
#include "engine/op.h"

struct flows {
	struct hash_key secret;
	struct slab flows;  /* struct flow */
	struct slab leases; /* struct flow_lease: one a message */
	struct map numbers; /* of flows */
	struct map ids;     /* of leases, by message */
};

void flows_init(struct flows *f, const struct hash_key *secret);
void flows_release(struct flows *f);

/* How many more rows the claim may have; UINT32_MAX: it has no flow. */
uint32_t flow_room(const struct flows *f, const struct op *op);

/* The rows of the claim were granted. What there is no memory for is not counted. */
void flow_grant(struct flows *f, const struct op *op);

/* The message is leased no more: the number of its flow, or 0: it had none. */
uint64_t flow_settle(struct flows *f, uint64_t id);

#endif
