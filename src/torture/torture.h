/*
 * torture.h - servers, clients that write down all they do, faults, and a verdict.
 *
 *      round:   clients work ── faults ──┬── clients stop ── look ── take all ── look
 *                                        │        ── dead letters back ── take all ── look
 *      history <─────────────────────────┘                            │
 *      check  <─────────────────────────────────────────────────────┘
 *
 * A run is rounds until its time is over, or until a round breaks a promise. A round ends
 * with an empty queue, so what a history must hold is bounded however long a run is. What
 * clients do and which faults come follows from the seed; how threads and processes
 * interleave does not: a real server is tortured. (tests/sim repeats bit for bit.)
 *
 * Servers of our own may be several nodes that share their stores. Clients go from one to
 * another as they like, also with what they hold.
 *
 *         torture_open(&t, &conf, &err);
 *         rc = torture_run(&t, &err);
 *         torture_close(&t);
 */
#ifndef TORTURE_TORTURE_H
#define TORTURE_TORTURE_H

#include "torture/check.h"
#include "torture/dice.h"
#include "torture/victim.h"

enum {
	TORTURE_FAULTS = 16, /* rows, at most */
	TORTURE_QUEUE = 48,
	TORTURE_NODES = PROXY_GATES
};

struct torture;

/* A way to hurt a server. Faults that cannot be had are told, never left out. */
struct torture_fault {
	const char *name; /* NULL ends the table */
	const char *text;
	/* Why it cannot be had of this server, or NULL. */
	const char *(*missing)(const struct torture *t);
	/* Hurt, hold, heal. */
	int (*hurt)(struct torture *t, struct dice *d, struct slu_err *err);
};

extern const struct torture_fault torture_faults[];

struct torture_conf {
	struct victim_conf victim;
	unsigned nodes;  /* servers of our own; at least 1 */
	unsigned stores; /* of the engine redis; 0: another engine */
	bool cuts_stores;
	slu_time duration;
	uint64_t seed;
	uint32_t faults; /* bit a row */
	unsigned producers, consumers, lockers;

	/* Told now and then how it goes; true: stop now. Or NULL. */
	bool (*told)(void *arg, struct torture *t);
	void *arg;
};

struct torture {
	const struct torture_conf *conf;
	struct stores stores;
	struct victim nodes[TORTURE_NODES];
	unsigned n_nodes;
	struct history history;
	struct check check; /* of the last round */
	char queue[TORTURE_QUEUE];
	slu_time begun, ends; /* of the run */
	bool restarts;        /* the server will be ended and started again */
	bool moves;           /* the queue has another store, and not all of it is there */

	/* How it goes, and what came of it. */
	unsigned rounds;
	uint64_t counts[EVENT_KINDS][3]; /* by enum outcome */
	uint64_t hurts[TORTURE_FAULTS];
	bool interrupted;
	bool crashed;       /* the server ended by itself; the round ends */
	bool failed;        /* a promise is broken: check, or the next */
	char trouble[400];  /* a server could not go on; "" otherwise */
	unsigned troubled;  /* which of the nodes */
	struct event gauge; /* at the first rest */

	/* Shared by the clients. */
	atomic_bool stopping;
	atomic_bool cuts;   /* connections are lost now */
	atomic_bool stalls; /* workers stand still now */
	atomic_uint next_call;
	atomic_ullong next_name;
	atomic_ulong taken; /* messages that consumers got */
	atomic_long ahead;  /* how many messages producers are before consumers, roughly */
};

/* Why a fault that was asked for cannot be had, or NULL. */
const char *torture_missing(const struct torture *t, const struct torture_fault *f);

/* SLU_EDOWN: there is no server. */
int torture_open(struct torture *t, const struct torture_conf *conf, struct slu_err *err);
void torture_close(struct torture *t);

/* 0: it ran, t->failed is the verdict. */
int torture_run(struct torture *t, struct slu_err *err);

#endif
