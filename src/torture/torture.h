/*
 * torture.h - runs servers and clients, injects faults, and checks the recorded history.
 *
 *      round:   clients work ── faults ──┬── clients stop ── look ── take all ── look
 *                                        │        ── dead letters back ── take all ── look
 *      history <─────────────────────────┘                            │
 *      check  <─────────────────────────────────────────────────────┘
 *
 * A run is a sequence of rounds, until its time is over or a round breaks a promise. A round ends
 * with an empty queue, so the size of a history is bounded however long the run is. The requests and
 * the faults follow from the seed; the interleaving of threads and processes does not, because the
 * server is real. (tests/sim repeats bit for bit.)
 *
 * A run can start several nodes that share their stores. Clients change between nodes at any time,
 * also with leases that they have. If nodes take shards over from each other, they have links, as many
 * faults happen at once as there are nodes, and a client that gets `moved` asks the owner.
 *
 *         torture_open(&t, &conf, &err);
 *         rc = torture_run(&t, &err);
 *         torture_close(&t);
 */
#ifndef TORTURE_TORTURE_H
#define TORTURE_TORTURE_H

#include "torture/check.h"
#include "torture/dice.h"
#include "torture/target.h"

enum {
	TORTURE_FAULTS = 20, /* rows of the table, at most */
	TORTURE_QUEUE = 48,
	TORTURE_NODES = PROXY_GATES
};

struct hurt;
struct torture;

/* A fault. A fault that is not possible is reported as skipped. */
struct torture_fault {
	const char *name; /* NULL = the end of the table */
	const char *text;
	/* Why the fault is not possible with this server; NULL = it is possible. */
	const char *(*missing)(const struct torture *t);
	/* Injects the fault, waits and repairs. v: the node that the fault hits, if it hits one. */
	int (*hurt)(struct torture *t, struct target *v, struct dice *d, struct slu_err *err);
	bool hits_owner; /* the fault hits the owner of the queue */
};

extern const struct torture_fault torture_faults[];

struct torture_conf {
	struct target_conf target;
	unsigned nodes;                 /* number of started servers; at least 1 */
	const struct stores_kind *kind; /* what the nodes share; NULL = nothing */
	unsigned stores;                /* number of stores */
	const char *store_dir;          /* the folder for the folders of stores */
	bool cuts_stores;
	bool store_dies; /* another program stops the store now and then: a server that is stopped then ends with a code */
	slu_time duration;
	uint64_t seed;
	uint32_t faults; /* the faults, a bit for each row */
	unsigned producers, consumers, lockers;
	bool plain; /* the engine has no shares, limits and acks that enqueue */

	/* Called now and then with the progress. Returns true to stop. May be NULL. */
	bool (*told)(void *arg, struct torture *t);
	void *arg;
};

struct torture {
	const struct torture_conf *conf;
	struct stores stores;
	struct target nodes[TORTURE_NODES];
	unsigned n_nodes;
	struct hurt *hurt;
	struct history history;
	struct check check; /* history of the last round */
	char queue[TORTURE_QUEUE];
	slu_time begun, ends; /* dice of the run */
	bool restarts;        /* the faults restart the server */
	bool moves;           /* a move of the queue is not complete */

	/* Progress and outcome. */
	unsigned rounds;
	uint64_t counts[EVENT_KINDS][3]; /* by enum outcome */
	atomic_ullong hurts[TORTURE_FAULTS];
	atomic_bool interrupted;
	atomic_bool crashed; /* a server ended by itself: the round ends */
	bool failed;         /* a promise is broken: by `check` or by `trouble` */
	struct event gauge;  /* open files and memory at the first rest */

	/* Under mtx: several faults happen at once. */
	pthread_mutex_t mtx;
	char trouble[400]; /* why a server could not continue; "" = no trouble */
	unsigned troubled; /* the node with the trouble */
	struct {
		uint64_t n;
		slu_time sum, max;
	} gaps; /* from the kill of an owner to the first delivery of another node */

	/* Shared by the clients. */
	atomic_bool stopping;
	atomic_bool cuts;    /* connections are being cut */
	atomic_bool stalls;  /* workers are paused */
	atomic_llong handed; /* when the newest claim that got messages began */
	atomic_bool vacant;  /* an injector has killed the owner, and waits for the next one */
	atomic_uint next_call;
	atomic_ullong next_name;
	atomic_ulong taken; /* messages that consumers received */
	atomic_long ahead;  /* how many messages producers are ahead of consumers, roughly */
};

/* Why a requested fault is not possible; NULL = it is possible. */
const char *torture_missing(const struct torture *t, const struct torture_fault *f);

/* Do the nodes take shards over from each other? */
bool torture_takes_over(const struct torture *t);

/* The node that owns the queue; NULL = no node reports it now. */
struct target *torture_owner(struct torture *t);

/* Returns SLU_EDOWN if there is no server. */
int torture_open(struct torture *t, const struct torture_conf *conf, struct slu_err *err);
void torture_close(struct torture *t);

/* Reports the progress. Returns true if the run is to stop. */
bool torture_told(struct torture *t);

/* Returns 0 if the run completed; t->failed is the verdict. */
int torture_run(struct torture *t, struct slu_err *err);

#endif
