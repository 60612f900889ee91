/*
 * fate.h - what becomes of an op whose link broke before its answer came: PEER-1.
 *
 *      not begun ───────────────> it has not happened: route it again
 *      begun, changes nothing ──> route it again
 *      begun, may have changed something ──> SLU_EUNKNOWN
 */
#ifndef PEER_FATE_H
#define PEER_FATE_H

#include "engine/op_verb.h"

enum {
	PEER_TRIES = 3 /* how often an op is routed again */
};

/* Returns whether the op can be sent once more. A return ends leases by their tokens: the second one
 * does nothing. */
static inline bool
peer_may_repeat(enum op_verb verb, bool began)
{
	return !began || (!op_is(verb, OP_CHANGES) && verb != OP_CLAIM && verb != OP_ACQUIRE);
}

#endif
