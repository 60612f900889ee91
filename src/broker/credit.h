/*
 * credit.h - how many messages each stream holds and has not settled.
 *
 *      claim of a stream ── credit left? ──> runs as any claim ──> granted: counted by message
 *                                │                                    │
 *                                └─ no: waits <── a message of the stream was settled
 *
 * If a lease runs out, the stream ends instead (LANE-11 of lane.h).
 *
 * The maker of the claims chooses the number of a stream. A stream has an entry here while it holds
 * messages, and none after its last message. A stream that ends does not report it.
 *
 * A store that several nodes share does not report the end of every lease: another node may settle
 * the message, and its notice may get lost. With `by_time` a lease also ends CREDIT_LATE after its
 * deadline, so an end that was not reported stalls a stream for one lease at most.
 *
 * Owned by the lane's thread.
 */
#ifndef BROKER_CREDIT_H
#define BROKER_CREDIT_H

#include "base/hash.h"
#include "base/heap.h"
#include "base/map.h"
#include "base/slab.h"
#include "engine/op.h"

#define CREDIT_LATE SLU_SEC

struct credits {
	struct hash_key secret;
	struct slab streams; /* struct credit: one for each stream that holds messages */
	struct slab leases;  /* struct credit_lease: one for each message */
	struct map numbers;  /* of streams, by number */
	struct map ids;      /* of leases, by message */
	struct heap ends;    /* of leases, by their end; empty unless by_time */
	bool by_time;        /* a lease also ends by the clock */
};

void credits_init(struct credits *f, const struct hash_key *secret);
void credits_release(struct credits *f);
void flows_forget(struct credits *f); /* all flows and leases */

/* How many more rows the claim may have; UINT32_MAX: the claim has no stream. */
uint32_t credit_room(const struct credits *f, const struct op *op);

/* Counts the rows that the claim was granted at `now`. A row without memory is not counted. No row
 * may be counted already: see credit_settle. */
void credit_grant(struct credits *f, const struct op *op, slu_time now);

/* The lease of the message has ended; token 0: whatever its token is, otherwise only that lease.
 * Returns the number of the stream that has room now, or 0. */
uint64_t credit_settle(struct credits *f, uint64_t id, uint64_t token);

/* The lease of the message ends at `until`. */
void credit_extend(struct credits *f, uint64_t id, slu_time until);

/* Ends one lease whose time is over. Returns the number of its stream; 0: no such lease. */
uint64_t credit_expire(struct credits *f, slu_time now);

/* When credit_expire has something to do, or SLU_NEVER. */
slu_time credits_next(const struct credits *f);

#endif
