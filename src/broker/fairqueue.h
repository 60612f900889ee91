/*
 * fairqueue.h - ops that have not run yet, one namespace after the other.
 *
 *      a:  op op op op op ...       fairqueue_take: a b c a c a a a ...
 *      b:  op
 *      c:  op op
 *
 * Each namespace has a backlog: its ops in order of arrival. The backlogs take turns, one op at a time. So a
 * namespace that floods a lane delays only itself. Owned by the lane's thread.
 */
#ifndef BROKER_FAIRQUEUE_H
#define BROKER_FAIRQUEUE_H

#include "base/hash.h"
#include "base/map.h"
#include "engine/op.h"

struct fairqueue {
	struct hash_key secret;
	struct slab backlogs; /* struct backlog: one for each namespace with ops */
	struct map names;     /* of backlogs, by namespace */
	struct list ring;     /* of backlogs, the next turn first */
	struct list ages;     /* of ops, the oldest first */
};

void fairqueue_init(struct fairqueue *t, const struct hash_key *secret);
void fairqueue_release(struct fairqueue *t); /* the fair queue is empty */

/* Adds op to the backlog of op->space. Returns SLU_ENOMEM. */
int fairqueue_add(struct fairqueue *t, struct op *op);

/* The op whose turn it is, or NULL. */
struct op *fairqueue_first(const struct fairqueue *t);

/* The same; removes the op, and the next namespace has its turn. */
struct op *fairqueue_take(struct fairqueue *t);

/* Removes an op out of turn. */
void fairqueue_remove(struct fairqueue *t, struct op *op);

/* When the oldest op arrived, or SLU_NEVER. */
slu_time fairqueue_oldest(const struct fairqueue *t);

#endif
