/*
 * relay.h - ops of a queue that moves: asked on one shard after the other.
 *
 *      broker_post ──> relay_post ──> former shard ──> its answer: relay_answered
 *                                                        │ found it: op->done
 *                                                        v nothing, or not all of it
 *      op->done <── relay_answered: its answer <── where the queue lives
 *
 * A queue that never moved has no business here. One that has a former shard by the map, or
 * whose shard says that it lives elsewhere (engine/move.h), gets a row in a table
 * (broker/moving.h) with its path: where it lives, and where some of it may still be. An
 * op of such a queue follows the path as one op, whatever becomes of it on the way:
 *
 *   enqueue              what a former shard does not take goes to the next. Once its mark is
 *                        known to stand, messages without keys go straight to the last. If one
 *                        has both keys, first all are asked for its idempotency key: the line of
 *                        the other one may be on a shard that does not know it
 *   claim, peek, watch   the first that has something; the wait is at the last, in slices of
 *                        RELAY_SLICE, and ends early when a former one has something
 *   ack, nack, ...       items that are not found go on to the next
 *   get, result, locks   the first that knows it
 *   stats                the sum
 *   list                 page by page, former shards first
 *   purge, pause, policy_set  all of them
 *
 *  Y1  O1 to O7 hold for the op as a whole: done is called once, by the thread of the shard that
 *      answered last, a cancel finds it wherever it is, the wait is one. But
 *      an op whose first part was done and whose second was refused has SLU_EUNKNOWN.
 *  Y2  What a claim was granted is of one shard: op->shard and op->engine say of which.
 *  Y3  A shard that does not answer, also when it is asked for its mark, stops what must not
 *      happen twice (messages), what is about the policy, and all that is about locks. Whatever
 *      else looks or settles goes on, and has that failure as its answer if nobody else knows.
 *  Y4  SLU_EBUSY "move" (V7) is tried again for RELAY_BUSY, without a busy loop.
 *
 * Any thread; shards call answered and ready by their own.
 */
#ifndef BROKER_RELAY_H
#define BROKER_RELAY_H

#include "base/clock.h"
#include "core/supplier.h"
#include "engine/op.h"

struct relays;
struct shard;
struct slu_log;

#define RELAY_SLICE SLU_SEC
#define RELAY_BUSY  (5 * SLU_SEC)
#define RELAY_STUCK (3 * SLU_SEC) /* a batch that is set aside so long is nobody's */

/* Where a queue is: lanes[0] where it lives, then those that may have some of it. A lane is
 * a struct shard, by its number. */
struct relay_path {
	uint64_t epoch;
	unsigned n;
	uint32_t lanes[SUPPLIED_MAX];
};

/* What the relay has to know of the broker. */
struct relay_env {
	void *arg;
	struct clock *clock;
	struct slu_log *log;

	/* The lane of a queue on the shard of that name; UINT32_MAX: there is none here. */
	uint32_t (*lane)(void *arg, const char *name, struct slice space, struct slice queue);
	uint32_t (*nth)(void *arg, uint32_t i, struct slice space, struct slice queue); /* shard */
	const char *(*name)(void *arg, uint32_t lane);                                  /* of its shard; lives as long as arg */
	struct shard *(*shard)(void *arg, uint32_t lane);
	bool (*is_draining)(void *arg);
	int (*post)(void *arg, struct op *op); /* broker_post */

	/* A batch of that queue is set aside on the lane, and nobody goes on with it. NULL:
	 * nobody asks. Must not block. */
	void (*stuck)(void *arg, struct slice space, struct slice queue, uint32_t lane);
};

int relays_new(struct relays **out, const struct relay_env *env, struct slu_err *err);
void relays_free(struct relays *rs); /* all ops were answered; NULL is fine */

/* Has any queue a row? Else only those of which the map knows former shards are relayed. */
bool relays_any(const struct relays *rs);

/* Takes an op, with the path of its queue by the map, as broker_post does. What is about
 * several queues goes on as an op each. SLU_ENOMEM, SLU_ECLOSED. */
int relay_post(struct relays *rs, struct op *op, const struct relay_path *by_map);

/* OP_FORGET: SLU_ECONFLICT for a queue that is on several shards, or may be: the one that has
 * some of it would make it anew. */
int relay_check_forget(struct relays *rs, struct op *op, const struct relay_path *by_map);

/* The path of a queue that moves; false: none is known. */
bool relay_path_of(struct relays *rs, struct slice space, struct slice queue,
		   struct relay_path *out);

/* Where large payloads of a queue are written: lanes[0] of its path. */
uint32_t relay_home(struct relays *rs, struct slice space, struct slice queue,
		    const struct relay_path *by_map);

/* The cursor of a page of a queue's list, without what says of which shard it is. */
uint64_t relay_list_cursor(uint64_t cursor);

/* For shards: their answer to an op that was relayed, or that belongs elsewhere. */
void relay_answered(struct relays *rs, struct shard *s, struct op *op);

/* For shards: messages of a queue can be claimed there. */
void relay_ready(struct relays *rs, uint32_t lane, struct slice space, struct slice queue,
		 uint32_t n);

#endif
