/*
 * broker.h - the whole queue: shards, and which of them an op belongs to.
 *
 *      broker_post ──> map: by namespace and queue ──> shard ──> inbox of a lane ──> its engine
 *                                                                    │
 *      op->done, on the lane's thread  <─────────────────────────────┘
 *
 * A shard has a name and one or more lanes (struct shard: a thread with an inbox and an
 * engine); a queue always takes the lane that its hash names. Lanes are numbered through over
 * all shards, and wherever a number of a shard is meant below, it is that of a lane.
 *
 * An op that is about one queue goes to the lane of that queue; TOPICS, and LIST
 * without a queue, go to all of them, one after the other, by their cursor. BACKUP, and
 * GET and the DELETE of one message without a queue, name their lane; SHARD by its
 * cursor, which is the lane's number << BROKER_CURSOR_BITS.
 *
 *         op_init(&op, OP_CLAIM, space, queue, claimed, conn);
 *         op.rows = rows;
 *         op.max_rows = 10;
 *         op.wait = 20 * SLU_SEC;
 *         rc = broker_post(b, &op);         0: claimed(&op) will be called
 *
 *         engine_read(op.engine, &op.rows[0].record, ...);
 *         op_unpin(&op);                    when the answer has been written; or, if
 *         broker_return(b, &op);            the client is gone: all of it goes back
 *
 *  B1  An op that was taken is answered, whatever happens: failure, drain and stop
 *      included. One that was refused is still the caller's.
 *  B2  Stop: accepted == finished + still stored. Whoever calls it waits for the same
 *      end.
 *  B3  An op is routed by one map, whole: op->routes, or the one that counts when it is
 *      posted. Maps that were replaced, and lanes that no map names any more, stay until
 *      close.
 *  B4  A queue whose shard cannot be said is refused, and nothing is written: "shard
 *      resolution: ..." or "unknown shard: x" (core/shardmap.h), in op->err.
 *  B5  Ops of a queue that moves follow it over its shards: broker/relay.h.
 *
 * Any thread may call anything, but for close, which comes last and alone.
 */
#ifndef BROKER_BROKER_H
#define BROKER_BROKER_H

#include "base/clock.h"
#include "base/id.h"
#include "core/shardmap.h"
#include "engine/engine.h"
#include "engine/quota.h"

enum {
	BROKER_SHARDS_MAX = 1024, /* lanes, all that were ever opened */
	BROKER_FOLDER = SHARDMAP_NAME + 12,
	BROKER_CURSOR_BITS = 48 /* of a cursor that goes over shards; above: which */
};

struct broker;
struct routes; /* a map, and where its shards are: immutable, until close */

/* How far an open has come. Written by whoever opens, read by anybody. */
struct broker_progress {
	_Atomic uint32_t shard; /* that is being opened */
	_Atomic uint64_t done;  /* bytes of its log that have been read back */
	_Atomic uint64_t all;

	/* Asked again and again: true ends the open with SLU_ECANCELED. NULL: nobody is. */
	bool (*stop)(void);
};

struct broker_shard_conf {
	const char *name; /* NULL: default */
	const struct engine_ops *engine;
	struct engine_conf storage; /* wall, ready and ready_arg are set here. Several lanes have
				     * folders of their own in the folder, named by their
				     * number in the shard */
	uint32_t lanes;             /* 0: one */
	bool embedded;              /* in a program, which has no setting for the number of lanes */
};

/* For tests without threads: what else would block, or has a thread of its own. */
struct broker_hand {
	void *arg;

	/* Whoever moves a queue waits for an op: returns when *done is set. */
	void (*await)(void *arg, const bool *done);

	/* The mender has something to do: mover_finish. Must not wait for it. */
	void (*stuck)(void *arg, struct slice space, struct slice queue, uint32_t lane);
};

struct broker_conf {
	const struct broker_shard_conf *shards;
	unsigned n_shards;
	struct shardmap *map;             /* takes it, also when it fails. All that it names is in
					   * shards. NULL: every queue lives on the first */
	struct clock *clock;              /* NULL: clock_system */
	unsigned node;                    /* of the ids */
	struct broker_progress *progress; /* NULL: nobody asks */
	bool by_hand;                     /* for tests: no threads, but broker_round */
	const struct broker_hand *hand;   /* by_hand: who moves queues; NULL: nobody does */
};

/* What the shards have done since they were opened. */
struct broker_totals {
	uint64_t ops;
	uint64_t batches;
	uint64_t accepted; /* messages; known idempotency keys aside */
	uint64_t delivered;
	uint64_t returned;
	uint64_t acked;
	uint64_t nacked;
	uint64_t deleted;
	uint64_t waiting; /* ops that wait now */
};

/* Opens every shard: a log is read back before it returns. */
int broker_open(struct broker **out, const struct broker_conf *conf, struct slu_err *err);

/*
 * Another map, and what it needs: in two steps, the second of which cannot fail. Takes the
 * map, also when it fails. Those of n shards that are not open yet are opened, the
 * others stay as they are; if one cannot be, those that could be stay open. One caller at a
 * time.
 *   SLU_EINVAL   the map names a shard that is not there; or there would be too many lanes
 *   SLU_ECLOSED  stopped
 */
int broker_routes_new(struct broker *b, struct shardmap *map,
		      const struct broker_shard_conf *shards, unsigned n, struct routes **out,
		      struct slu_err *err);
void broker_routes_use(struct broker *b, struct routes *r); /* B3: from now on */
void broker_routes_free(struct routes *r);                  /* that nobody uses. NULL is fine */

/* Stops, if that has not been done. All ops are unpinned. NULL is fine. SLU_EDOWN: what a
 * shard holds may not all be on disk; it has logged why. */
int broker_close(struct broker *b);

/*
 * Takes op until its done is called. Gives ids to messages that have none.
 *   SLU_EINVAL   its items belong to different lanes, or it lacks a queue
 *   SLU_EDOWN    or another code of the supplier, and why in op->err: B4
 *   SLU_ECLOSED  stopped; or drained, and it is an enqueue, a claim or an acquire
 */
int broker_post(struct broker *b, struct op *op);

/* The same for whoever knows the lane: it is asked there and nowhere else, wherever the queue
 * lives. op->epoch and op->lives are the caller's. */
int broker_post_at(struct broker *b, uint32_t lane, struct op *op);

/* End its wait: its done is called soon, if that has not been done. The op must not
 * have been freed: call it from the thread to which done hands the op over. */
void broker_cancel(struct broker *b, struct op *op);

/* Give back what a claim was granted, from row `from` on; the rows before stay. The
 * op becomes an OP_RETURN (op->spare is as the caller has set it) and done is called once
 * more; if that is refused, it was stopped, and the leases end by themselves. Unpins those rows. What an acquire was
 * granted goes back by an OP_RELEASE, as if it had not been. */
int broker_return(struct broker *b, struct op *op, uint32_t from);

/* No new work and no more hand-outs: waiting claims end with nothing, acquires with
 * SLU_ECLOSED; the holders of leases may still settle. */
void broker_drain(struct broker *b);

/* Only the waits: what waits ends as if its time was over, and nothing waits from now on. What
 * need not wait is done as ever. */
void broker_end_waits(struct broker *b);

/* Answer all that was taken, refuse what comes, end the threads. */
void broker_stop(struct broker *b);

/* By hand: every shard that would be awake now does what its thread would, once. Returns
 * until when all of them sleep, by clock_boot. */
slu_time broker_round(struct broker *b);

uint64_t broker_new_id(struct broker *b);

/* How many lanes there are: it only ever rises. */
uint32_t broker_shards(const struct broker *b);

/* The name of the shard that a lane is of, and which of its lanes it is. */
const char *broker_shard_name(const struct broker *b, uint32_t lane);
uint32_t broker_shard_lane(const struct broker *b, uint32_t lane);

/* Where its files are, from the data folder on: "", "1" (a lane of several), "heavy", "heavy/1".
 * False: its engine keeps no files. */
bool broker_shard_folder(const struct broker *b, uint32_t lane, char out[static BROKER_FOLDER]);

/* The word that users write for the engine of a lane. */
const char *broker_shard_engine(const struct broker *b, uint32_t lane);

/* Others may use it at the same time. */
bool broker_shard_shared(const struct broker *b, uint32_t lane);

/* As metrics have it: shard="0", and with a map shard="heavy",lane="0". Lives as long as the
 * broker. */
const char *broker_shard_labels(const struct broker *b, uint32_t lane);

/* ---- Where a queue lives ---- */

/* What counts now. Whoever asks for several queues, or before it posts, asks by this and
 * sets op->routes to it: B3. */
const struct routes *broker_routes(const struct broker *b);
const struct shardmap *broker_map(const struct routes *r); /* NULL: there is none */

/* A lane that has, or may have, messages of a queue. */
struct broker_place {
	uint32_t lane;
	const char *shard; /* its name */
	const char *rule;  /* that chose it: "tenant"; of a former one "previous" */
};

/* Where its new messages go. r may be NULL: as of now. B4. */
int broker_place(const struct broker *b, const struct routes *r, struct slice space,
		 struct slice queue, struct broker_place *out, struct slu_err *err);

/* That, and then the former ones that may still hold some; and ("moved") those to which it
 * was moved by hand, as far as this node knows. */
int broker_places(const struct broker *b, const struct routes *r, struct slice space,
		  struct slice queue, struct broker_place out[SUPPLIED_MAX], unsigned *n,
		  struct slu_err *err);

/* The lane of a queue: first of its shard + supplier_hash() % lanes. Of a queue without a
 * place 0: the op is refused when it is posted. */
uint32_t broker_shard_of(const struct broker *b, const struct routes *r, struct slice space,
			 struct slice queue);

/* Where a large payload for that queue is written first: engine/payload.h. */
struct engine *broker_engine_of(const struct broker *b, const struct routes *r,
				struct slice space, struct slice queue);

/* Must an enqueue for that shard be for one queue alone? engine_ops.apart */
bool broker_apart(const struct broker *b, uint32_t shard);

/* The lane of a queue on the shard of that name, whatever the map says; UINT32_MAX: there is
 * no such shard. */
uint32_t broker_lane_on(const struct broker *b, const char *shard, struct slice space,
			struct slice queue);

/* Of one shard. */
void broker_totals(const struct broker *b, uint32_t shard, struct broker_totals *out);

/* Limits that the shards keep; to be set at any time (engine/quota.h). */
struct quota *broker_quota(struct broker *b);

/* Append what the shards measure as Prometheus text. */
void broker_metrics(const struct broker *b, struct buf *out);

/* What an operator should know though the shard serves: how many, at most max. */
unsigned broker_warnings(const struct broker *b, uint32_t shard, struct engine_warning *out,
			 unsigned max);

/* 0, or why the shard takes nothing any more. */
int broker_health(const struct broker *b, uint32_t shard, struct slu_err *err);

/* The same, but for a store that may come back by itself: what was answered is in it. */
int broker_failure(const struct broker *b, uint32_t shard, struct slu_err *err);

#endif
