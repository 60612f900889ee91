/*
 * clerk_move.c - queues that move to or from another shard: engine/move.h.
 */
#include "engine/clerk_in.h"

void
clerk_move(struct clerk *k, struct op *op)
{
	struct slu_err err;

	(void)k;
	op_fail(op, slu_fail(&err, SLU_EINVAL, "this engine moves no queues yet"), &err);
}
