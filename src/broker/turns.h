/*
 * turns.h - ops that have not run yet, one namespace after the other.
 *
 *      a:  op op op op op ...       turns_take: a b c a c a a a ...
 *      b:  op
 *      c:  op op
 *
 * Whoever floods a shard waits for himself: each namespace has a line of its own,
 * in order of arrival, and the lines take turns, an op at a time. Owned by the
 * shard's thread.
 */
#ifndef BROKER_TURNS_H
#define BROKER_TURNS_H

#include "base/hash.h"
#include "base/map.h"
#include "engine/op.h"

struct turns {
	struct hash_key secret;
	struct slab tenants; /* struct tenant: namespaces that have ops here */
	struct map names;
	struct list ring; /* of tenants, whose turn is next first */
	struct list ages; /* of ops, the oldest first */
};

void turns_init(struct turns *t, const struct hash_key *secret);
void turns_release(struct turns *t); /* it is empty */

/* By op->space. SLU_ENOMEM: it was not added. */
int turns_add(struct turns *t, struct op *op);

/* Whose turn it is, or NULL; and the same taken out, after which it is the turn of
 * the next namespace. */
struct op *turns_first(const struct turns *t);
struct op *turns_take(struct turns *t);

/* Take out one that is in, out of turn. */
void turns_remove(struct turns *t, struct op *op);

/* When the oldest of all arrived, or SLU_NEVER. */
slu_time turns_oldest(const struct turns *t);

#endif
