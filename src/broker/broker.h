/*
 * broker.h - all shards, and which of them runs an op.
 *
 *      broker_post ──> map: by namespace and queue ──> shard ──> mailbox of a lane ──> its engine
 *                                                                    │
 *      op->done, on the thread of the lane  <────────────────────────┘
 *
 * A shard of the map has a name and one or more lanes. A lane is a thread with a mailbox and an engine
 * (broker/lane.h); the hash of a queue chooses its lane. Lanes are numbered over all shards.
 *
 * An op about one queue goes to the lane of that queue. QUEUES, and LIST without a queue, go to all
 * lanes one after the other, by their cursor. BACKUP names its lane; so do GET and the DELETE of one
 * message without a queue, SHARD and INTAKE: their cursor is the number of the lane << BROKER_CURSOR_BITS.
 *
 *         op_init(&op, OP_CLAIM, space, queue, claimed, conn);
 *         op.rows = rows;
 *         op.max_rows = 10;
 *         op.wait = 20 * SLU_SEC;
 *         rc = broker_post(b, &op);         0: the broker calls claimed(&op)
 *
 *         engine_read(op.engine, &op.rows[0].record, ...);
 *         op_unpin(&op);                    after the answer was written; or, if the client
 *         broker_return(b, &op, 0);         is gone: all messages go back
 *
 *  BROKER-1  The broker answers every op that it has taken, also if a shard fails, while it drains and
 *            when it stops. An op that was refused still belongs to the caller.
 *  BROKER-2  After a stop, accepted = finished + still stored. All callers of broker_stop wait for the
 *            same end.
 *  BROKER-3  One map routes an op: op->route.routes, or the current one when the op is posted. Maps that
 *            were replaced, and lanes that no map names any more, stay until close.
 *  BROKER-4  If the map names no shard for a queue, the op is refused and nothing is written: "shard
 *            resolution: ..." or "unknown shard: x" (core/shardmap.h), in op->err.
 *  BROKER-5  Ops of a queue that moves follow the queue over its shards: broker/move/follow.h.
 *  BROKER-6  The node bits of an id are the number of this node. For a lane in a store they are a number
 *            of the store plus the number of the lane, because several nodes own the lane in turn.
 *  BROKER-7  A mark, a move batch and the number of a given batch name a lane in a store
 *            `<uuid of the store>/<number of the lane>`, and a lane outside of a store by its shard. The
 *            name of a shard belongs to the settings of one node: other nodes may use another name, and
 *            a new store may get the name of an old one.
 *
 * Any thread may call any function, except broker_close, which is the last call.
 */
#ifndef BROKER_BROKER_H
#define BROKER_BROKER_H

#include "base/clock.h"
#include "base/id.h"
#include "core/shardmap.h"
#include "engine/engine.h"
#include "engine/quota.h"

enum {
	BROKER_LANES_MAX = 1024,                /* lanes that a broker ever opens */
	BROKER_UUID = 16,                       /* bytes of the uuid of a store */
	BROKER_FOLDER = SHARDMAP_NAME + 12,     /* bytes of broker_lane_folder */
	BROKER_BATCH_NAME = SHARDMAP_NAME + 12, /* bytes of broker_batch_name */
	BROKER_CURSOR_BITS = 48                 /* of a cursor; the number of the lane is above them */
};

struct broker;
struct routes; /* a map and its shards: immutable, stays until close */

/* How far broker_open has come. The thread that opens writes it, any thread reads it. */
struct broker_progress {
	_Atomic uint32_t shard; /* the shard that is being opened */
	_Atomic uint64_t done;  /* bytes of its log that have been read */
	_Atomic uint64_t all;   /* bytes of its log */

	/* Optional. Called often; if it returns true, the open fails with SLU_ECANCELED. */
	bool (*stop)(void);
};

struct broker_shard_conf {
	const char *name; /* NULL: "default" */
	const struct engine_ops *engine;
	struct engine_conf storage; /* the broker sets wall and the callbacks. If the shard has
				     * several lanes, each has a folder in `folder`, named by its
				     * number in the shard */
	uint32_t lanes;             /* 0: one */
	bool by_namespace;          /* the queues of a namespace are on one lane */
	const uint8_t *store;       /* uuid of the store that has the logs, BROKER_UUID bytes; NULL: none */
	bool embedded;              /* in a user's program, without a setting for the number of lanes */
};

/* For tests without threads: replaces what would block or start a thread. */
struct broker_hand {
	void *arg;

	/* A move waits for an op: returns when *done is set. */
	void (*await)(void *arg, const bool *done);

	/* A batch has to be finished: movecopy_finish. Must not wait for that. */
	void (*stuck)(void *arg, struct slice space, struct slice queue, uint32_t lane);
};

/* For lanes with a tenure: how ops reach the node that owns the lane (LANE-18 of broker/lane.h). */
struct broker_remote {
	void *arg;

	/* Takes the op to the node that owns the lane. Returns false if no node is known, or the op cannot
	 * travel. The op comes back by broker_came_back, perhaps before this returns. Must not block. The
	 * lane's thread. */
	bool (*send)(void *arg, uint32_t lane, struct op *op);

	/* The lane has taken all ops that had come: those that it has sent leave together. The lane's thread. */
	void (*flush)(void *arg);

	/* The op, which was sent, need not wait any longer: it comes back soon. The lane's thread. */
	void (*cancel)(void *arg, struct op *op);

	/* No op may wait any longer; all ops that wait come back soon. Any thread. */
	void (*end_waits)(void *arg);

	/* All ops come back at once, and no more are sent. Any thread. */
	void (*stop)(void *arg);
};

/* Follows the documents of core/reserved.h: called after an OP_SCHEDULE on that queue succeeded on a lane of this node, and
 * after such a lane was opened (queue n 0). Must not block. The thread of the lane. */
struct broker_notice {
	void *arg;
	void (*scheduled)(void *arg, struct slice queue);
};

struct broker_conf {
	const struct broker_shard_conf *shards;
	unsigned n_shards;
	struct shardmap *map;               /* broker_open takes it, also if it fails. Names shards of
					     * `shards`. NULL: every queue lives on the first shard */
	struct clock *clock;                /* NULL: clock_system */
	unsigned node;                      /* number of this node in the ids */
	struct broker_progress *progress;   /* NULL: not reported */
	const struct broker_remote *remote; /* NULL: ops for lanes of other nodes are refused */
	const struct broker_notice *notice; /* NULL: no scheduler */
	bool by_hand;                       /* for tests: no threads; call broker_round */
	const struct broker_hand *hand;     /* by_hand: how queues move; NULL: no queue moves */
};

/* What a lane has done since it was opened. */
struct broker_totals {
	uint64_t ops;
	uint64_t batches;
	uint64_t accepted; /* messages, without repeats of a known idempotency key */
	uint64_t delivered;
	uint64_t returned;
	uint64_t acked;
	uint64_t nacked;
	uint64_t deleted;
	uint64_t waiting; /* ops that wait now */
};

/* Opens every shard and reads its log. */
int broker_open(struct broker **out, const struct broker_conf *conf, struct slu_err *err);

/*
 * Prepares another map. Takes the map, also if it fails. Opens each of the n shards that is not open
 * yet; the others stay as they are. If a shard cannot be opened, those that were opened before it
 * stay open. One caller at a time.
 *   SLU_EINVAL   the map names an unknown shard, or there are too many lanes
 *   SLU_ECLOSED  the broker is stopped
 */
int broker_routes_new(struct broker *b, struct shardmap *map,
		      const struct broker_shard_conf *shards, unsigned n, struct routes **out,
		      struct slu_err *err);

/* Routes by r from now on: BROKER-3. Cannot fail. */
void broker_routes_use(struct broker *b, struct routes *r);

/* Frees routes that were never used. NULL is fine. */
void broker_routes_free(struct routes *r);

/* Stops the broker if it runs. All ops are unpinned. NULL is fine. Returns SLU_EDOWN if a shard may
 * not have all of its data on disk; the shard has logged why. */
int broker_close(struct broker *b);

/*
 * Takes op until op->done is called. Gives ids to messages without one.
 *   SLU_EINVAL   the items belong to different lanes, or the op lacks a queue
 *   SLU_EDOWN    or another code of the supplier, explained in op->err: BROKER-4
 *   SLU_ECLOSED  the broker is stopped; or it drains, and the verb begins work (OP_BEGINS)
 */
int broker_post(struct broker *b, struct op *op);

/* The same, on this lane and no other, wherever the queue lives. The caller sets op->home.epoch and
 * op->home.lives. */
int broker_post_at(struct broker *b, uint32_t lane, struct op *op);

/* Ends the wait of an op: its `done` is called soon, if it was not called yet. The op must not be
 * freed meanwhile: call this on the thread to which `done` passes the op. */
void broker_cancel(struct broker *b, struct op *op);

/* Gives back what a claim was granted, from row `from` on, and unpins these rows; the rows before
 * stay. The op becomes an OP_RETURN (the caller sets op->claim.spare), and `done` is called once more.
 * An acquire becomes an OP_RELEASE that leaves no trace. SLU_ECLOSED: the broker is stopped, and the
 * leases run out. */
int broker_return(struct broker *b, struct op *op, uint32_t from);

/* Refuses new work: waiting claims end without rows, acquires with SLU_ECLOSED. Ops that settle go on. */
void broker_drain(struct broker *b);

/* Ends all waits as if their time was over; from now on no op waits. Ops that need not wait go on. */
void broker_end_waits(struct broker *b);

/* Answers all ops that were taken, refuses new ones, ends the threads. */
void broker_stop(struct broker *b);

/* By hand: one round of every lane that is awake. Returns until when all of them sleep, by
 * clock_boot. */
slu_time broker_round(struct broker *b);

/* An id for a message of that queue. BROKER-6. */
uint64_t broker_new_id(struct broker *b, struct slice space, struct slice queue);

/* How many lanes there are; the number only rises. */
uint32_t broker_lanes(const struct broker *b);

/* The name of the shard of a lane. */
const char *broker_shard_name(const struct broker *b, uint32_t lane);

/* The name of a lane in marks, move batches and given numbers: BROKER-7. */
const char *broker_mark_name(const struct broker *b, uint32_t lane);

/* The name of a lane in batches from outside (OP_INTAKE), one name a lane: as in marks, and outside of a store
 * "heavy/1" if the shard has several lanes. Returns out. */
const char *broker_batch_name(const struct broker *b, uint32_t lane, char out[static BROKER_BATCH_NAME]);

/* The first lane of a shard; UINT32_MAX if no shard has this name. */
uint32_t broker_first_lane(const struct broker *b, const char *shard);

/* The number of the lane in its shard. */
uint32_t broker_lane_number(const struct broker *b, uint32_t lane);

/* The folder of a lane in the data folder: "", "1" (one of several lanes), "heavy", "heavy/1". Returns
 * false if its engine has no files. */
bool broker_lane_folder(const struct broker *b, uint32_t lane, char out[static BROKER_FOLDER]);

/* The name of the engine of a lane, as in the settings. */
const char *broker_lane_engine(const struct broker *b, uint32_t lane);

/* Returns true if several nodes may use the store of this lane. */
bool broker_lane_shared(const struct broker *b, uint32_t lane);

/* The labels of a lane in metrics: shard="0", and with a map shard="heavy",lane="0". Lives as long as
 * the broker. */
const char *broker_lane_labels(const struct broker *b, uint32_t lane);

/* ---- Where a queue lives ---- */

/* The current routes. To ask for several queues, or before a post, ask by these and set
 * op->route.routes to them: BROKER-3. */
const struct routes *broker_routes(const struct broker *b);

/* The map of these routes; NULL: no map. */
const struct shardmap *broker_map(const struct routes *r);

/* A lane that has or may have messages of a queue. */
struct broker_place {
	uint32_t lane;
	const char *shard; /* the name of its shard */
	const char *rule;  /* of the map: "tenant", ...; "previous": a former shard; "moved": by hand */
};

/* The lane for new messages of the queue. r NULL: the current routes. BROKER-4. */
int broker_place(const struct broker *b, const struct routes *r, struct slice space,
		 struct slice queue, struct broker_place *out, struct slu_err *err);

/* The same, then the former lanes that may still have messages, and those to which the queue was moved
 * by hand, as far as this node knows. */
int broker_places(const struct broker *b, const struct routes *r, struct slice space,
		  struct slice queue, struct broker_place out[SUPPLIED_MAX], unsigned *n,
		  struct slu_err *err);

/* The lane of a queue: first lane of its shard + supplier_hash() % lanes, of the namespace alone if the shard is
 * `by_namespace`. 0 if the queue has no place:
 * its ops are refused when they are posted. */
uint32_t broker_lane_of(const struct broker *b, const struct routes *r, struct slice space,
			struct slice queue);

/* The lane that accepts messages of the queue, also after a move by hand. r NULL: the current routes. BROKER-4. */
int broker_home(const struct broker *b, const struct routes *r, struct slice space, struct slice queue,
		uint32_t *lane, struct slu_err *err);

/* The engine that stores a large payload for that queue: engine/payload.h. */
struct engine *broker_engine_of(const struct broker *b, const struct routes *r,
				struct slice space, struct slice queue);

/* The engine of a lane. */
struct engine *broker_engine(const struct broker *b, uint32_t lane);

/* True if an enqueue for that lane may name one queue only (engine_found.one_queue). */
bool broker_one_queue(const struct broker *b, uint32_t lane);

/* The lane of a queue on a shard, whatever the map says. shard: the name of the shard, or of a lane in
 * marks (broker_mark_name). UINT32_MAX: no such shard. */
uint32_t broker_lane_on(const struct broker *b, const char *shard, struct slice space,
			struct slice queue);

/* The totals of one lane. */
void broker_totals(const struct broker *b, uint32_t lane, struct broker_totals *out);

/* The limits of all shards; may be set at any time (engine/quota.h). */
struct quota *broker_quota(struct broker *b);

/* Appends the metrics of the shards as Prometheus text. */
void broker_metrics(const struct broker *b, struct buf *out);

/* Warnings of a lane that serves, at most max. Returns how many. */
unsigned broker_warnings(const struct broker *b, uint32_t lane, struct engine_warning *out,
			 unsigned max);

/* How far shard time (LANE-3) is ahead of the wall clock of this machine: negative if it is behind. 0: not open yet. */
slu_time broker_ahead(const struct broker *b, uint32_t lane);

/* Sets *out to what the store of a lane has not confirmed yet. Returns false if the lane has no store. */
bool broker_lag(const struct broker *b, uint32_t lane, struct engine_lag *out);

/* Front folders carry to their stores what they have, without waiting for front.flush.interval. Returns the
 * number of lanes with a front folder. Does not wait. */
uint32_t broker_flush(const struct broker *b);

/* ---- Ownership of a lane with a tenure (engine/tenure.h): LANE-16 of broker/lane.h ---- */

enum broker_order {
	BROKER_STAY, /* no order */
	BROKER_TAKE,
	BROKER_GIVE
};

/* Whether the lanes have a tenure. */
bool broker_has_tenure(const struct broker *b);

/* Whether ops can reach other nodes (broker_conf.remote). */
bool broker_has_remote(const struct broker *b);

/* Orders the lane to take or to give up its shard. The tenure reports `taken` or `closed`. */
void broker_order(struct broker *b, uint32_t lane, enum broker_order order);

/* The address of the other node that owns the lane, and the epoch in which it does; NULL and 0: no other
 * node. The address must live as long as the broker. */
void broker_set_owner(struct broker *b, uint32_t lane, const char *address, uint64_t epoch);

/* The lease of this node in the store of the lane has run out, or runs again (LANE-20 of lane.h). */
void broker_set_lapsed(struct broker *b, uint32_t lane, bool lapsed);

/* The address that broker_set_owner was given last; NULL: this node owns the lane, or no node does. */
const char *broker_owner(const struct broker *b, uint32_t lane);

/* An op that broker_remote.send took comes back: with its answer; or, again, because nothing has happened
 * and the lane has to find another way. Any thread. */
void broker_came_back(struct broker *b, struct op *op, bool again);

/* Returns 0, or the reason why the lane does not serve. SLU_EMOVED: another node has it, or no node. */
int broker_health(const struct broker *b, uint32_t lane, struct slu_err *err);

/* The same, without stores that may come back by themselves. */
int broker_failure(const struct broker *b, uint32_t lane, struct slu_err *err);

#endif
