/*
 * follow.h - ops of a queue that moves: they ask one shard after the other.
 *
 *      broker_post ──> follow_post ──> former shard ──> its answer: follow_answered
 *                                                        │ found: op->done
 *                                                        v nothing, or only a part
 *      op->done <── follow_answered: its answer <── the shard that the queue lives on
 *
 * A queue that never moved passes through follow_post to its shard. A queue that has a former shard
 * by the map, or whose shard answers that it lives elsewhere (engine/move.h), gets a row in a table
 * (broker/move/table.h) with its path: the shard that it lives on, and the shards that may still have
 * messages of it. An op of such a queue follows the path as one op; op_verbs (engine/op_verb.h) says
 * how:
 *
 *   PUTS           what a former shard does not take goes to the next. Once the marks are set,
 *                  messages without keys go straight to the last shard. If a message has both keys,
 *                  all shards are first asked for its idempotency key: the sequence of its ordering key
 *                  may be on a shard that does not know it
 *   CLAIM, WATCH   the first shard that has something; the wait is on the last shard, in slices of
 *                  FOLLOW_SLICE, and ends early if a former shard has something
 *   ITEMS          items that are not found go to the next shard
 *   FIRST, RESULT, LOCK   the first shard that knows the message or key
 *   SUM            all shards, added up
 *   PAGES, KEYS    page by page, former shards first; keys in their order
 *   ALL            all shards
 *   HOME           the shard that the queue lives on
 *
 *  FOLLOW-1  OP-1 to OP-7 hold for the op as a whole: `done` is called once, on the thread of the shard
 *            that answered last; a cancel finds the op wherever it is; there is one wait. But if a
 *            part was done and the rest was refused, the answer is SLU_EUNKNOWN.
 *  FOLLOW-2  One shard grants all messages of a claim: op->route.lane and op->engine name it.
 *  FOLLOW-3  A shard that does not answer, or does not tell its mark, stops verbs with OP_STRICT:
 *            enqueues, and all verbs of policies and locks. Other verbs go on; they fail with that
 *            error if no other shard has what they ask for.
 *  FOLLOW-4  SLU_EBUSY with the limit "move" (MOVE-7) is tried again for FOLLOW_BUSY, without a busy
 *            loop.
 *
 * Any thread; the two functions that a shard calls: the thread of the shard, or its stand-in.
 */
#ifndef BROKER_MOVE_FOLLOW_H
#define BROKER_MOVE_FOLLOW_H

#include "core/supplier.h"
#include "engine/op.h"

struct broker;
struct follows;
struct lane;

#define FOLLOW_SLICE SLU_SEC
#define FOLLOW_BUSY  (5 * SLU_SEC)
#define FOLLOW_STUCK (3 * SLU_SEC) /* after that a batch needs a repair */

/* Where a queue is: lanes[0] is the lane that it lives on, then the lanes that may have messages of it. */
struct follow_path {
	uint64_t epoch;               /* since which the queue lives on lanes[0] */
	unsigned n;                   /* how many lanes */
	uint32_t lanes[SUPPLIED_MAX]; /* numbers of struct lane */
};

/* Keeps b, which outlives it. */
int follows_new(struct follows **out, struct broker *b, struct slu_err *err);

/* All ops were answered. NULL is fine. */
void follows_free(struct follows *rs);

/* Returns true if a queue has a row. If not, only queues with a former shard by the map move. */
bool follows_any(const struct follows *rs);

/* Posts an op whose queue has that path by the map: to its shard, or along the path. An op about several
 * queues is split into one op for each. SLU_ENOMEM, SLU_ECLOSED; SLU_ECONFLICT for OP_FORGET if the
 * queue is or may be on several shards. */
int follow_post(struct follows *rs, struct op *op, const struct follow_path *by_map);

/* Copies the path of a queue that moves. Returns false if the queue has no row. */
bool follow_path_of(struct follows *rs, struct slice space, struct slice queue,
		    struct follow_path *out);

/* The lane for large payloads of a queue: lanes[0] of its path. */
uint32_t follow_home(struct follows *rs, struct slice space, struct slice queue,
		     const struct follow_path *by_map);

/*
 * ---- What a shard calls: these two functions and no other. s->follows NULL: no queue ever moves ----
 */

/* The shard has an answer. Returns true if the op follows its queue: this has ended the op, or has asked
 * the next shard. Returns false if the shard ends the op. */
bool follow_answered(struct lane *s, struct op *op);

/* The engine of the shard reports n messages that can be claimed; queue n 0: of any queue. */
void follow_ready(const struct lane *s, struct slice space, struct slice queue, uint32_t n);

#endif
