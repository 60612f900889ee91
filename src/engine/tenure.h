/*
 * tenure.h - what an engine and its lane ask about the ownership of a shard in a store.
 *
 *      node                        lane                     engine
 *       │ order: take ─────────────> │ reopen ──────────────> │ may_take, then puts an opening
 *       │ <─────────── taken, closed │                        │
 *       │ order: give ─────────────> │ release ─────────────> │ closes the line
 *       │ <────────────────── closed │                        │ is_fresh: answers without a put
 *
 * A lane with a tenure begins without its shard: its engine has failed, and ops fail with
 * SLU_EMOVED. Only an order opens the engine (broker/lane.h LANE-16). The node is
 * server/ownership.h; members/members.h has the rules.
 */
#ifndef ENGINE_TENURE_H
#define ENGINE_TENURE_H

#include <sluice/api.h>

#include <stdbool.h>
#include <stdint.h>

struct line_group;
struct store;
struct store_pool;

struct engine_tenure {
	const uint8_t *life;     /* LINE_LIFE bytes: the life of this node */
	struct store *store;     /* of all shards of the node; NULL = each opens it */
	struct store_pool *pool; /* the threads that wait for the store; NULL = each has its own */
	const uint8_t *uuid;     /* CACHE_UUID bytes of its settings; NULL = each finds them */
	void *arg;               /* of all functions */

	/* The engine waits for an order. folder: where it keeps a copy of the shard; borrowed for the call.
	 * pinned: it is the front folder of the shard (LINE-17 of line/line.h). The thread that opens the engine.
	 * May be NULL. */
	void (*waits)(void *arg, uint32_t lane, const char *folder, bool pinned);

	/* The lane is about to take the shard: the node leaves its folder alone from now on, until `closed`.
	 * The lane's thread. May be NULL. */
	void (*takes)(void *arg, uint32_t lane);

	/* Whether the shard may be taken from the node that put this group. Any thread. */
	bool (*may_take)(void *arg, uint32_t lane, const struct line_group *newest);

	/* Whether the owner may answer without a put (LINE-13). proved: line_facts.proved. Any
	 * thread. */
	bool (*is_fresh)(void *arg, slu_time proved);

	/* Asks whether records and ops of this format (engine/formats.h) may be used. If the settings of the store
	 * have a lower format and all living nodes can read this one, raises the format of the settings, which
	 * may take a second. Returns SLU_EDOWN, and names the node to update. NULL = every format. Any thread. */
	int (*need_format)(void *arg, uint32_t format, struct slu_err *err);

	/* The engine is open, before `taken`. pinned: its folder is the front folder of the shard, which stays
	 * at this node. The lane's thread. May be NULL. */
	void (*pins)(void *arg, uint32_t lane, bool pinned);

	/* The engine is open. Returns whether the lane may serve. If not, the node has said that it gave
	 * the shard in this epoch, since an earlier opening had no known outcome: the lane closes the
	 * engine, and the next attempt has a higher epoch. The lane's thread. */
	bool (*taken)(void *arg, uint32_t lane, uint64_t epoch);

	/* The line is closed and gets no more groups of this node. epoch: of the newest group that
	 * the engine put or tried to put. The lane's thread. */
	void (*closed)(void *arg, uint32_t lane, uint64_t epoch);
};

#endif
