/*
 * moving.h - the queues that move, as far as this node knows.
 *
 *      NEW ── an op comes ──> ASKED ── marks stand ──> KNOWN ── nothing left ──> empty
 *       ^                       │ a shard does not answer
 *       └───────────────────────┘
 *
 * A row is made when the map names a former shard of a queue, or when a shard says that the queue
 * lives elsewhere. Before ops follow its path, the shards on it are asked for their marks (a
 * probe): the one with the highest epoch says where the queue lives, which may be another shard
 * than the map has. Older marks say where it lived: there may be some of it, so that shard is on
 * the path, too, and has to answer; unless this node has none of that name. Where a mark of this
 * epoch is missing the probe sets it, after the policy of the queue was copied from where it lived
 * to where it lives now. Ops that come meanwhile are held. Later, once a second at most and only
 * while ops come, former shards are looked at: once nothing is left there, ops go where the queue
 * lives alone.
 *
 * Shared: everything here is under relays.mtx, but a probe, which is its shard's.
 */
#ifndef BROKER_MOVING_H
#define BROKER_MOVING_H

#include "base/hash.h"
#include "base/map.h"
#include "base/slab.h"
#include "broker/relay.h"

#include <pthread.h>

enum {
	MOVING_MAX = 65536 /* rows; then those that nobody uses are forgotten */
};

enum moving_state {
	MOVING_NEW,
	MOVING_ASKED, /* a probe is on its way */
	MOVING_KNOWN
};

struct moving {
	uint64_t hash;
	uint32_t handle;
	struct list any; /* in relays.all */
	uint32_t uses;   /* ops and probes that know it */
	struct slice space, queue;
	struct relay_path path;
	uint64_t by_map; /* epoch of the map that was asked last */
	enum moving_state state;
	bool wide;           /* it lives where the map does not say: all shards are asked */
	bool empty;          /* nothing is left but at lanes[0] */
	struct list held;    /* struct relay: until it is known */
	struct list waiting; /* struct relay: those that wait for messages */

	/* Of the last look. */
	slu_time looked;
	bool looking;
	uint64_t batch; /* that is set aside, or 0 */
	slu_time since; /* when it was seen first */
};

struct relays {
	struct relay_env env;
	struct hash_key secret;
	_Atomic uint32_t n; /* rows */

	/* shared, under mtx */
	pthread_mutex_t mtx;
	struct slab rows; /* struct moving */
	struct map names;
	struct list all;
};

struct moving *moving_find(struct relays *rs, struct slice space, struct slice queue);

/* NULL: no memory. */
struct moving *moving_add(struct relays *rs, struct slice space, struct slice queue,
			  const struct relay_path *path);

/* The map has changed: what it says counts, and nobody is forgotten. */
void moving_follow(struct moving *m, const struct relay_path *by_map);

/* Which lane of the path, or UINT_MAX. */
unsigned path_find(const struct relay_path *path, uint32_t lane);

/* Ask the shards; all that is held begins when they have answered. Without mtx. SLU_ENOMEM,
 * SLU_ECLOSED: nobody was asked. The caller has set the state to ASKED. */
int probe_start(struct relays *rs, struct moving *m);

/* Look what is left, if it is time to. Without mtx. */
void probe_glance(struct relays *rs, struct moving *m);

#endif
