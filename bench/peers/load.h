/*
 * load.h - load for a peer: many connections from one thread, each with one open operation; the same
 * loop (bench/sockets.h) for every protocol.
 *
 *      load_open ──> load_phase (enqueue) ──> load_phase (lease) ──> ... ──> load_close
 *
 * A connection stays open from phase to phase: some peers bind a lease to it.
 */
#ifndef PEERS_LOAD_H
#define PEERS_LOAD_H

#include "bench/hist.h"
#include "peers/peer.h"

struct peer_load {
	/* Set before load_open. */
	const struct peer_protocol *protocol;
	const struct peer_work *work;
	unsigned port;
	unsigned connections;

	/* Set before load_phase: when the phase ends at the latest. */
	slu_time until;
	uint64_t wanted; /* `fill`: how many messages to put */

	/* The outcome of a phase. */
	uint64_t messages;
	slu_time elapsed;
	struct hist took; /* duration of an operation; `cycle`: of put, take and ack together */

	/* Inner. */
	struct peer_conn *conns;
	struct address address;
	struct sockets sockets;
	unsigned active;
	uint64_t begun; /* `fill`: how many messages were begun */
	slu_time last;  /* when the last operation ended */
	const struct phase *phase;
	const struct step *step;
};

struct phase {
	const char *name;

	/* Writes the next operation. Returns false if the connection is done. */
	bool (*next)(struct peer_load *l, struct peer_conn *c);
	void (*done)(struct peer_load *l, struct peer_conn *c);
	bool waits; /* a take waits for a message */
};

/* Returns NULL if there is no phase of that name. */
const struct phase *phase_find(const char *name);

/* Connects and runs the hello steps. Returns SLU_EDOWN, SLU_ENOMEM or SLU_EFAILED. */
int load_open(struct peer_load *l, struct slu_err *err);

/* Runs a phase until every connection is done. */
int load_phase(struct peer_load *l, const struct phase *phase, struct slu_err *err);

/* Runs steps of a protocol; NULL = none. */
int load_steps(struct peer_load *l, const struct step *steps, struct slu_err *err);

void load_close(struct peer_load *l); /* a zeroed struct is fine */

#endif
