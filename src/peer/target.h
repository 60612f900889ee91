/*
 * target.h - the node that owns a shard, as this node knows it.
 *
 *      members: the beats in the store ── target_set ────┐
 *                                                        v
 *      NOT_OWNER of another node ── hint, target_learn ──> target ──> the link that an op takes
 *
 * The epoch of a shard rises each time that a node takes it. As bytes, the hint of a NOT_OWNER (peer/wire.h):
 *      number  epoch
 *      text    life of the owner; absent with all that follows: the owner is not known
 *      number  its port
 *      text    its host
 *
 *  TARGET-1  A hint is used only if its epoch is higher than the known epoch: a lower epoch names a former owner.
 *  TARGET-2  An owner from the beats is used unless its epoch is lower than the known one. So the known epoch never
 *            falls.
 */
#ifndef PEER_TARGET_H
#define PEER_TARGET_H

#include "base/bytes.h"
#include "peer/hello.h"

#include <sluice/err.h>

enum {
	TARGET_HOST = 256,              /* bytes with the NUL */
	TARGET_BYTES = TARGET_HOST + 48 /* of a hint, at most */
};

struct peer_target {
	uint64_t epoch; /* in which the owner took the shard; 0: not known */
	uint8_t life[HELLO_LIFE];
	unsigned port; /* 0: no node, this node, or a node without links */
	char host[TARGET_HOST];
	slu_time not_before; /* PEERNET-4 */
};

/* TARGET-1. Returns whether the hint is used. */
bool target_learn(struct peer_target *t, const struct peer_target *hint);

/* TARGET-2 */
void target_set(struct peer_target *t, const struct peer_target *seen);

/* Appends the hint. An unknown epoch appends nothing. */
void target_put(const struct peer_target *t, struct buf *out);

/* Reads a hint. Returns false if it is malformed. */
bool target_get(struct slice bytes, struct peer_target *out);

#endif
