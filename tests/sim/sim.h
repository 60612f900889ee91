/*
 * sim.h - the whole broker in one thread, in a world that follows from one number.
 *
 *      seed ──> dice ──┬─> clients: post, hang up, come too late, ask again
 *                      ├─> clock: moves between two steps, and jumps
 *                      ├─> disk: loses, tears, flips, fails, fills up (simdisk.h)
 *                      └─> operator: stops, kills, cuts the power, opens again
 *                                │
 *      broker ── shards ── dispatcher ── log engine        broker_conf.by_hand
 *                                │
 *      every answer ──> sim_model: is it the right one?    I1 .. I10 of faults.md
 *
 * Nothing else decides: getrandom is the world's own, there is no thread and no clock
 * but the fake one. So a seed that fails fails again, in the same step.
 *
 *         struct sim_conf conf = { .seed = 42 };
 *         sim_run(&conf, &result);       ends the process when a promise is broken
 *
 * In some schedules (`moves`) there are two or three shards with names, and queues move from
 * one to another, while all this goes on: sim_move.c.
 *
 * In some (`forgets`) queues are deleted, and unused queues are forgotten:
 * sim_forget.c.
 *
 * A schedule is `steps` steps, each one thing that happens: a client posts an op, a
 * round of the shards is run, time passes, a fault. It ends with a clean stop, an open,
 * and a look at everything.
 */
#ifndef SIM_H
#define SIM_H

#include <sluice/api.h>

enum sim_tear {
	SIM_TEAR_DICE, /* what a power cut leaves is left to the dice */
	SIM_TEAR_BYTE  /* all that was written, but of the last write the first bytes */
};

struct sim_conf {
	uint64_t seed;
	unsigned steps;    /* 0: by the dice, 30 to 150 */
	bool trace;        /* print every step */
	bool moves;        /* queues move between shards that have names */
	bool forgets;      /* queues are deleted, and forgotten */
	bool reopens;      /* failed shards also reopen by themselves */
	bool lates;        /* commits return ENGINE_LATER before they end; with moves alone */
	unsigned long cut; /* take the power at this change of the disk, and no other
			    * fault; 0: faults by the dice */
	enum sim_tear tear;
	unsigned long bytes; /* TEAR_BYTE */
};

struct sim_result {
	uint64_t hash;         /* of all that happened */
	unsigned steps;        /* that there were */
	unsigned long changes; /* of the disk, up to the stop */
	unsigned long last;    /* bytes of the last write before the cut */
	unsigned long ops, claims, settled, opens, reopens, cuts, kills, damages, fulls, fails;
	unsigned long recycled;
	unsigned long lates;                          /* batches that were open for a while */
	unsigned long unknown;                        /* answers that were SLU_EUNKNOWN */
	unsigned long locked, committed, rolled_back; /* lock keys; the last two: with something staged */
	unsigned long forgotten;                      /* queues that were deleted */
	unsigned long movers, moved, mended;          /* those who move, messages that did, batches that
						       * somebody had left */
};

void sim_run(const struct sim_conf *conf, struct sim_result *out);

#endif
