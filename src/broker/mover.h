/*
 * mover.h - what a shard has of a queue is carried to another one, batch by batch.
 *
 *      LOOK ──> marks, if they do not say so yet ──> TAKE ──> GIVE ──> DROP ──> TAKE ...
 *               (and the policy before)              from     to       from
 *
 * Producers and workers go on meanwhile: broker/relay.h. Whoever moves may die, or stand still,
 * at any point: nothing is lost, nothing doubled, and whoever comes next goes on where it was
 * (engine/move.h). Several at once do no harm, but a policy that is set
 * meanwhile may be overtaken by an older one.
 *
 *  Z1  A batch that is set aside is finished before anything else is done, whoever began it:
 *      it goes to the shard for which it was taken, and to no other.
 *  Z2  Marks: if the queue does not live on `to`, it is sent there, one step above the epoch since
 *      which it lives where it does: the map and the marks say where that is, which may be a third
 *      shard. So it works against the map, too: then it is a move by hand, and told as such.
 *      Where it lives has its mark first, so of two that send it elsewhere one is told.
 *  Z3  A batch that was refused goes back to where it was, once its shard has promised that it
 *      will never have it.
 *  Z4  So does one whose queue lives elsewhere by now.
 *  Z5  The policy goes ahead: before the first mark it is copied from where the queue lived, also
 *      over one that `to` has of an earlier stay; and once more after the last, if somebody has
 *      changed it there meanwhile. From then on whoever sets it sets both (broker/relay.h).
 *
 * Blocks: for threads that may wait, never a shard's.
 */
#ifndef BROKER_MOVER_H
#define BROKER_MOVER_H

#include "broker/broker.h"

enum {
	MOVER_BATCH = 1000,
	MOVER_BATCH_MAX = 10000
};

struct move_ask {
	const char *from, *to; /* shards, which exist and differ */
	struct slice space, queue;
	uint32_t batch;  /* messages; 0: MOVER_BATCH */
	bool force;      /* leases end at once */
	bool dry;        /* only look */
	slu_time budget; /* no batch begins after so long; 0: one batch */
};

struct move_told {
	/* What was done. */
	uint64_t taken;    /* rows, with keys, results and states */
	uint64_t messages; /* of these; of LOCK_QUEUE, here and below: lock keys */
	uint64_t moved;    /* messages that are new on `to` */
	uint64_t batches;
	bool resumed; /* a batch that was left was finished first */
	bool by_hand; /* the map does not say that the queue lives on `to` */
	uint64_t epoch;

	/* What `from` has, and of these how many cannot move yet. */
	uint64_t left;
	uint64_t dead;
	uint64_t leased;
	uint64_t damaged; /* they stay */
	uint64_t remembered;
	uint64_t results;
	uint64_t there; /* messages on `to` */
	bool done;      /* nothing is left on `from` but what is damaged */
};

/*
 * One queue, for as long as the budget lets it.
 *   SLU_ENOTFOUND  there is no such shard
 *   else           of the shard that refused; out says how far it came
 */
int mover_move(struct broker *b, const struct move_ask *ask, struct move_told *out,
	       struct slu_err *err);

/* Finish the batch that is set aside on a lane, if there is one: Z1. The mender does so for batches
 * that nobody goes on with, and for those that were there when a shard was opened. */
int mover_finish(struct broker *b, struct slice space, struct slice queue, uint32_t lane,
		 struct slu_err *err);

/*
 * Call each for every namespace that has a queue of that name on a shard, in no order, until
 * one returns a code. Names are borrowed for the call.
 */
int mover_spaces(struct broker *b, const char *shard, struct slice queue,
		 int (*each)(void *arg, struct slice space), void *arg, struct slu_err *err);

#endif
