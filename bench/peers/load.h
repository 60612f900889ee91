/*
 * load.h - many connections to one peer, each with one operation on its way, from one
 * thread; the same loop for every protocol.
 *
 *      load_open ──> load_phase (enqueue) ──> load_phase (lease) ──> ... ──> load_close
 *
 * A connection stays open from phase to phase: some peers bind a lease to it.
 */
#ifndef PEERS_LOAD_H
#define PEERS_LOAD_H

#include "bench/hist.h"
#include "peers/peer.h"

struct load {
	/* Set before load_open. */
	const struct protocol *protocol;
	const struct work *work;
	unsigned port;
	unsigned connections;

	/* Set before load_phase: when it ends at the latest. */
	slu_time until;
	uint64_t wanted; /* `fill`: messages to put */

	/* The outcome of a phase. */
	uint64_t messages;
	slu_time elapsed;
	struct hist took; /* an operation; in `cycle` put, take and ack together */

	/* Inner. */
	struct conn *conns;
	int epoll;
	unsigned active;
	uint64_t begun; /* `fill`: messages whose put was begun */
	slu_time last;  /* when something was last done */
	const struct phase *phase;
	const struct step *step;
};

struct phase {
	const char *name;

	/* Write the next operation, or false: this connection is done. */
	bool (*next)(struct load *l, struct conn *c);
	void (*done)(struct load *l, struct conn *c);
	bool waits; /* takes wait until there is something */
};

/* NULL: there is none of that name. */
const struct phase *phase_find(const char *name);

/* Connects and says hello. SLU_EDOWN, SLU_ENOMEM, SLU_EFAILED. */
int load_open(struct load *l, struct slu_err *err);

/* Until every connection is done. */
int load_phase(struct load *l, const struct phase *phase, struct slu_err *err);

/* The steps of a protocol; NULL is none. */
int load_steps(struct load *l, const struct step *steps, struct slu_err *err);

void load_close(struct load *l); /* zeroed is fine */

#endif
