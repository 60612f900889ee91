/*
 * table.h - the queues that move, as far as this node knows.
 *
 *      NEW ── an op comes ──> ASKED ── marks are set ──> KNOWN ── nothing left ──> empty
 *       ^                       │ a shard does not answer
 *       └───────────────────────┘
 *
 * A queue gets a row when the map names a former shard for it, or when a shard answers that the queue
 * lives elsewhere. Before ops follow its path, discover.c asks the shards of the path for their marks.
 * The mark with the highest epoch names the shard that the queue lives on, perhaps another one than
 * the map. Older marks name former shards: they may have messages of the queue, so they are on the
 * path, too, and have to answer, unless this node has no such shard. Where a mark of this epoch is
 * missing, discover.c sets it, after it has copied the policy of the queue from the shard that it
 * lived on to the shard that it lives on. Ops that come meanwhile are held. Later, at most once a
 * second and only while ops come, discover.c looks at the former shards: once nothing is left there,
 * ops ask only the shard that the queue lives on.
 *
 * All of this is shared, under follows.mtx; a discovery belongs to the shard that it asks.
 */
#ifndef BROKER_MOVE_TABLE_H
#define BROKER_MOVE_TABLE_H

#include "base/hash.h"
#include "base/map.h"
#include "base/slab.h"
#include "broker/move/follow.h"

#include <pthread.h>

enum {
	MOVETABLE_MAX = 65536 /* rows; then those without a use are forgotten */
};

enum movetable_state {
	MOVETABLE_NEW,
	MOVETABLE_ASKED, /* discover.c asks for the marks */
	MOVETABLE_KNOWN
};

struct movetable_row {
	uint64_t hash;
	uint32_t handle;
	struct list any; /* in follows.all */
	uint32_t uses;   /* ops and discoveries that point to the row */
	struct slice space, queue;
	struct follow_path path;
	uint64_t by_map; /* epoch of the last map that was asked */
	enum movetable_state state;
	bool wide;           /* the queue does not live where the map says: all shards are asked */
	bool empty;          /* only lanes[0] has something */
	struct list held;    /* struct follow: until the row is KNOWN */
	struct list waiting; /* struct follow: those that wait for messages */

	/* The last look at the former shards. */
	slu_time looked; /* when */
	bool looking;    /* it is under way */
	uint64_t batch;  /* number of a batch that is set aside, or 0 */
	slu_time since;  /* when that batch was first seen */
};

struct follows {
	struct broker *b;
	struct hash_key secret;
	_Atomic uint32_t n; /* rows */

	/* shared, under mtx */
	pthread_mutex_t mtx;
	struct slab rows; /* struct movetable_row */
	struct map names; /* of rows, by namespace and queue */
	struct list all;  /* of rows */
};

/* The row of a queue, or NULL. */
struct movetable_row *movetable_find(struct follows *rs, struct slice space, struct slice queue);

/* Adds a row. NULL: no memory. */
struct movetable_row *movetable_add(struct follows *rs, struct slice space, struct slice queue,
				    const struct follow_path *path);

/* The map has changed: its path counts, and the lanes of the old path stay on it. */
void movetable_follow(struct movetable_row *m, const struct follow_path *by_map);

/* The index of a lane in the path, or UINT_MAX. */
unsigned follow_path_find(const struct follow_path *path, uint32_t lane);

/* discover.c: asks the shards for their marks; the ops that are held start when they have answered.
 * Without mtx; the caller has set the state to ASKED. SLU_ENOMEM, SLU_ECLOSED: no shard was asked. */
int discover_start(struct follows *rs, struct movetable_row *m);

/* discover.c: looks at the former shards, if it is time to. Without mtx. */
void discover_glance(struct follows *rs, struct movetable_row *m);

#endif
