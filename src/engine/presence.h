/*
 * presence.h - OP_PRESENCE: registers this node at a shared shard and lists the nodes that registered
 * before.
 *
 * An engine without the flag `shared` (engine/engine.h) fails the op with SLU_EINVAL.
 */
#ifndef ENGINE_PRESENCE_H
#define ENGINE_PRESENCE_H

#include <stdint.h>

enum {
	PRESENCE_NODES = 1024 /* numbers that a node can have */
};

/* A node that uses the shard. */
struct presence_node {
	uint32_t node;    /* its number */
	uint64_t self;    /* a random number of the process */
	uint64_t hash;    /* of its map */
	uint64_t version; /* of its map */
	uint64_t beat;    /* rises while the process lives */
};

struct op_presence {
	struct presence_node me; /* this node */

	/* Answer. */
	unsigned n;                                 /* how many nodes, also an earlier process of this node */
	struct presence_node nodes[PRESENCE_NODES]; /* the nodes, in no order */
};

#endif
