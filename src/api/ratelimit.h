/*
 * ratelimit.h - the limits on enqueued messages before they reach a shard.
 *
 *      every ENQUEUE op of a call ──> batch ──> payload ──> rate of its namespaces
 *                                       413       413           429, Retry-After
 *
 * Claims, settles and reads have no limit here: producers cannot block consumers. A request
 * is accepted whole or costs nothing.
 *
 * A rate is a token bucket (core/bucket.h) per namespace, in a table that all network threads
 * share without a lock:
 *
 *  RATELIMIT-1  A slot has the hash of a name and the moment at which its bucket is full. Both
 *               change by compare-and-swap only. A full bucket is equal to a new one, so its
 *               slot may go to another name. A thread that charges the slot in that moment
 *               charges the new name for one request.
 *  RATELIMIT-2  A name looks at RATELIMIT_PROBES slots. If other names use all of them, it
 *               shares the bucket `other`: memory is bounded, and so is the effect of a flood
 *               of names.
 *
 * A rate of 0 is no limit and costs one load.
 */
#ifndef API_RATELIMIT_H
#define API_RATELIMIT_H

#include "base/bytes.h"
#include "base/hash.h"

#include <sluice/err.h>

#include <stdatomic.h>

struct op;

enum {
	RATELIMIT_SLOTS = 8192, /* a power of two */
	RATELIMIT_PROBES = 8
};

struct ratelimit_slot {
	_Atomic uint64_t name; /* hash, or 0: never used */
	_Atomic slu_time full;
};

struct ratelimit {
	struct hash_key secret;

	/* Settings; 0: no limit. Any thread may change them. */
	_Atomic uint32_t rate; /* messages per second into a namespace */
	_Atomic uint32_t burst;
	_Atomic uint32_t batch;   /* messages of a request */
	_Atomic uint64_t payload; /* bytes of one message */

	struct ratelimit_slot slots[RATELIMIT_SLOTS];
	struct ratelimit_slot other; /* RATELIMIT-2 */
};

int ratelimit_init(struct ratelimit *g, struct slu_err *err); /* SLU_EDOWN: no random numbers */

/* Counts n messages of a namespace. Returns SLU_EBUSY if the rate does not allow them. */
int ratelimit_take(struct ratelimit *g, struct slice space, uint32_t n, slu_time now,
		   struct slu_err *err);

/* Checks batch, payload and rate for all puts of all ops. On an error *failed is the op, and
 * op->failed the put; *failed is NULL if the request as a whole failed. */
int ratelimit_pass(struct ratelimit *g, struct op *ops, unsigned n, slu_time now, struct op **failed,
		   struct slu_err *err);

#endif
