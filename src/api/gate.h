/*
 * gate.h - what messages must pass before they reach a shard: limits of the caller.
 *
 *      every ENQUEUE op of a call ──> batch ──> payload ──> rate of its namespaces
 *                                       413       413           429, Retry-After
 *
 * Nothing else is held up here: who takes messages, settles them or looks at them is
 * never refused for what producers do. A call is taken whole or costs nothing.
 *
 * Rates are token buckets (core/bucket.h), one a namespace, in a table that all
 * network threads share without a lock:
 *
 *  G1  A slot has the hash of a name and the moment at which its bucket is full, both
 *      changed by compare-and-swap alone. One that is full says nothing that a fresh
 *      one does not, so it may be given to another name; whoever charges it in that
 *      instant charges that name for one call.
 *  G2  A name looks at GATE_PROBES slots. When others are using all of them it shares
 *      one bucket with all who find themselves there: memory is bounded, and so is
 *      what a flood of names can do.
 *
 * A rate of 0 is none, and costs a load.
 */
#ifndef API_GATE_H
#define API_GATE_H

#include "base/bytes.h"
#include "base/hash.h"

#include <sluice/err.h>

#include <stdatomic.h>

struct op;

enum {
	GATE_SLOTS = 8192, /* a power of two */
	GATE_PROBES = 8
};

struct gate_slot {
	_Atomic uint64_t name; /* hash, or 0: never used */
	_Atomic slu_time full;
};

struct gate {
	struct hash_key secret;

	/* Settings; 0 is no limit. Any thread, any time. */
	_Atomic uint32_t rate; /* messages a second into a namespace */
	_Atomic uint32_t burst;
	_Atomic uint32_t batch;   /* messages of a call */
	_Atomic uint64_t payload; /* bytes of one message */

	struct gate_slot slots[GATE_SLOTS];
	struct gate_slot other; /* G2 */
};

int gate_init(struct gate *g, struct slu_err *err); /* SLU_EDOWN: no random numbers */

/* May n messages go into the namespace? 0, and they are counted; or SLU_EBUSY. */
int gate_take(struct gate *g, struct slice space, uint32_t n, slu_time now,
	      struct slu_err *err);

/* The same for all puts of all ops, and batch and payload. On a code *failed is the op
 * and op->failed the put; *failed is NULL when it was none alone. */
int gate_pass(struct gate *g, struct op *ops, unsigned n, slu_time now, struct op **failed,
	      struct slu_err *err);

#endif
