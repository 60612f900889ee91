/*
 * copy.h - copies what a shard has of a queue to another shard, batch by batch.
 *
 *      LOOK ──> marks, if they do not name `to` yet ──> TAKE ──> GIVE ──> DROP ──> TAKE ...
 *               (the policy before them)                from     to       from
 *
 * Producers and consumers go on meanwhile: broker/move/follow.h. The node that copies may die or
 * pause at any point: nothing is lost or doubled, and the next node continues where it was
 * (engine/move.h). Several copies at once do no harm, except that a policy which is set meanwhile
 * may be replaced by an older one.
 *
 *  COPY-1  A batch that is set aside is finished first, whichever node began it. It goes to the shard
 *          for which it was taken, and to no other.
 *  COPY-2  If the queue does not live on `to`, it is sent there with the next epoch. The map and the
 *          marks say where it lives, which may be a third shard. So a copy works against the map, too:
 *          that is a move by hand, and the report says so. The shard that the queue lives on is marked
 *          first, so of two nodes that send the queue elsewhere one fails.
 *  COPY-3  A batch that was refused goes back to its shard, once the other shard has promised never to
 *          accept it.
 *  COPY-4  A batch whose queue lives elsewhere by now goes back in the same way.
 *  COPY-5  The policy goes first: before the first mark it is copied from the shard that the queue lived
 *          on, also over a policy that `to` has from an earlier stay; and again after the last mark, if
 *          it has changed there meanwhile. From then on a change of the policy goes to both shards
 *          (broker/move/follow.h).
 *  COPY-6  Holds go with the queue: they are copied after the marks, and again behind the last batch. The copy never ends a
 *          hold of `to`: of two ends the later one counts.
 *
 * Blocks: for threads that may wait, never for the thread of a shard.
 */
#ifndef BROKER_MOVE_COPY_H
#define BROKER_MOVE_COPY_H

#include "broker/broker.h"

enum {
	MOVECOPY_BATCH = 1000,
	MOVECOPY_BATCH_MAX = 10000
};

struct move_request {
	const char *from; /* shard */
	const char *to;   /* another shard */
	struct slice space, queue;
	uint32_t batch;  /* messages of a batch; 0: MOVECOPY_BATCH */
	bool force;      /* ends leases at once */
	bool dry;        /* only looks */
	slu_time budget; /* no batch begins after this time; 0: one batch */
};

struct move_report {
	/* What was done. */
	uint64_t taken;    /* rows, with keys, results and states */
	uint64_t messages; /* messages of these; of LOCK_QUEUE, here and below: lock keys */
	uint64_t moved;    /* messages that are new on `to` */
	uint64_t batches;  /* batches */
	bool resumed;      /* a batch of an earlier move was finished first */
	bool by_hand;      /* the map does not place the queue on `to` */
	uint64_t epoch;    /* of the mark on `from` */

	/* What is left on `from`. */
	uint64_t left;       /* messages */
	uint64_t dead;       /* of these: dead letters */
	uint64_t leased;     /* of these: cannot move yet */
	uint64_t damaged;    /* of these: never move */
	uint64_t remembered; /* idempotency keys */
	uint64_t results;    /* results */
	uint64_t there;      /* messages on `to` */
	bool done;           /* only damaged messages are left on `from` */
};

/* Moves one queue, within the budget. Returns SLU_ENOTFOUND if a shard does not exist, otherwise the
 * code of the shard that refused a step; *out says how far the move came. */
int movecopy_move(struct broker *b, const struct move_request *ask, struct move_report *out,
		  struct slu_err *err);

/* Finishes the batch that is set aside on a lane, if there is one: COPY-1. Repair calls it for batches
 * without a node that copies them (broker/move/repair.h). */
int movecopy_finish(struct broker *b, struct slice space, struct slice queue, uint32_t lane,
		    struct slu_err *err);

/* Calls `each` for every namespace that has a queue of that name on the shard, in no order, until a
 * call returns a code. The names are borrowed for the call. */
int movecopy_spaces(struct broker *b, const char *shard, struct slice queue,
		    int (*each)(void *arg, struct slice space), void *arg, struct slu_err *err);

#endif
