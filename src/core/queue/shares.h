/*
 * shares.h - whose turn it is: the ready messages of a queue that has shares.
 *
 *      queue ── level, priority -1     V = 7
 *            └─ level, priority 0      V = 3
 *                 ├─ flow of share "a"     S = 3      messages by (due, number)
 *                 ├─ flow of share "b"     S = 3.5    messages by (due, number)
 *                 └─ plain messages        S = 4      in the heap of the queue
 *
 * A share is a name that messages carry, for example a tenant. A flow has the messages of one share
 * and one priority. Messages without a share are plain: together they are one more share, of weight
 * 1, and they stay in the heap `ready` of their queue (core/queue/queue.h).
 *
 *  SHARES-1  Next is, at the best priority that has candidates, the flow with the lowest (S, number
 *            of its first message), and of that flow the message with the lowest (due, number).
 *  SHARES-2  A flow that gets its first candidate takes S = max(V, its last finish tag). A delivery
 *            sets V = S, and then S and the finish tag to S + 1 / weight.
 *  SHARES-3  A level without candidates, and without plain messages that wait behind a value, forgets V and all tags.
 *  SHARES-4  A candidate is a message that shares_enter added and shares_leave did not remove, and
 *            whose share is not blocked. A share that has no candidates lends its part to the others
 *            and saves nothing up.
 *
 * So the next message of share f waits for at most 1 + w_m / w_f deliveries of every other share m
 * with candidates, and while f and m both have candidates, their deliveries divided by their weights
 * differ by at most 1 / w_f + 1 / w_m. Both hold for one priority.
 *
 * A call costs O(log n), whatever the number of shares and blocked shares. Tags are multiples of
 * 1 / SHARES_UNIT in 64 bits: enough for 10^13 deliveries of a level that is never empty.
 *
 * Items live in a slab of the owner and begin with a struct queue_item, whose `pos` belongs to the flow
 * while the item is a member. Pure: no I/O, no clock. Owned by the shard's thread.
 */
#ifndef CORE_QUEUE_SHARES_H
#define CORE_QUEUE_SHARES_H

#include "base/bytes.h"
#include "base/hash.h"
#include "core/queue/queue.h"

enum {
	SHARES_UNIT = 1 << 20,    /* the cost of a delivery at weight 1 */
	SHARES_WEIGHT_MAX = 1000, /* of a share; the least is 1 */
	SHARES_PLAIN = UINT32_MAX /* stands for the flow of plain messages */
};

struct shares;

/* Returns SLU_ENOMEM if memory is out. items: the slab of the messages. */
int shares_new(struct shares **out, const struct slab *items, const struct hash_key *secret);
void shares_free(struct shares *s);

/* Finds or makes the flow of a share and a priority, and reserves room for one more message in it.
 * weight: of a new share. Returns SLU_ENOMEM. If the next call is not shares_hold, a new flow is gone
 * again. */
int shares_reserve(struct shares *s, struct slice share, uint32_t weight, int32_t prio, uint32_t *flow);

/* The flow of a share and a priority, or SLAB_NONE. */
uint32_t shares_flow(const struct shares *s, struct slice share, int32_t prio);

/* Returns whether the flow exists and is of this share and priority. flow: any number. */
bool shares_is_flow(const struct shares *s, uint32_t flow, struct slice share, int32_t prio);

/* Reserves room for one more message. Returns SLU_ENOMEM. */
int shares_room(struct shares *s, uint32_t flow);

/* Numbers of the owner, SLAB_NONE at first: one of the flow, one of its share. */
uint32_t *shares_spot(const struct shares *s, uint32_t flow);
uint32_t *shares_gate(const struct shares *s, uint32_t flow);

/* Looking ahead: loads the flow into the cache, or (deep) what belongs to a flow that is there. */
void shares_load(const struct shares *s, uint32_t flow, bool deep);

/* The same for deliveries: loads flows of later turns, and fills msgs with the first messages of the flows that come behind the next
 * one, as far as that is known. Returns false if they are few. */
enum {
	SHARES_AHEAD = 4
};

bool shares_ahead(const struct shares *s, uint32_t msgs[static SHARES_AHEAD]);

/* Add a message to a flow, or remove it. Between the two calls the flow has room for the message, which is
 * a candidate only between shares_enter and shares_leave. */
void shares_hold(struct shares *s, uint32_t flow);
void shares_drop(struct shares *s, uint32_t flow);

/* Make a message of the flow a candidate, or end that. */
void shares_enter(struct shares *s, uint32_t flow, uint32_t item);
void shares_leave(struct shares *s, uint32_t flow, uint32_t item);

/* The same for a plain message, which is in, or was in, the heap of its queue. */
void shares_enter_plain(struct shares *s, int32_t prio);
void shares_leave_plain(struct shares *s, int32_t prio);

/* A plain message waits behind its value (core/queue/values.h), and is in no heap of the queue; or does so no longer. Until
 * then its level keeps its tags. */
void shares_wait_plain(struct shares *s, int32_t prio);
void shares_unwait_plain(struct shares *s, int32_t prio);

/* The next message, or SLAB_NONE. plain: the queue, whose ready items are the plain messages. */
uint32_t shares_best(const struct shares *s, const struct queue *plain);

/* Charges the delivery of a candidate to its flow, or to plain messages. The flow gets its new place at the next shares_leave, or at
 * the latest at shares_place, which must follow: so a delivery moves it once. shares_enter may come between. */
void shares_charge(struct shares *s, uint32_t flow, int32_t prio);
void shares_place(struct shares *s);

/* Fills msgs with up to max candidates in the order in which they would be delivered, and *n with their
 * number. Returns SLU_ENOMEM. */
int shares_peek(const struct shares *s, const struct queue *plain, uint32_t *msgs, uint32_t max, uint32_t *n);

/* The earliest due of a candidate, of the first `look` flows in the order of delivery; SLU_NEVER: none. Plain
 * messages do not count. */
slu_time shares_oldest(const struct shares *s, uint32_t look);

/* The same of one share, also of a blocked one. */
slu_time shares_oldest_of(const struct shares *s, uint32_t share, uint32_t look);

/* ---- Shares ---- */

/* The share of a name, or SLAB_NONE. */
uint32_t shares_find(const struct shares *s, struct slice name);
uint32_t shares_of(const struct shares *s, uint32_t flow);

/* The next share in no order. SLAB_NONE: as argument the start, as result the end. */
uint32_t shares_next(const struct shares *s, uint32_t share);

struct share_view {
	struct slice name; /* valid while the share exists */
	uint32_t weight;
	uint32_t messages; /* in any state */
	uint32_t ready;    /* that were entered, also if the share is blocked */
	uint32_t leased;   /* see shares_lease */
	uint64_t delivered;
	bool blocked;
};

void shares_get(const struct shares *s, uint32_t share, struct share_view *out);
uint32_t shares_count(const struct shares *s);

/* Sets the weight from the next delivery on. */
void shares_weigh(struct shares *s, uint32_t share, uint32_t weight);

/* Block a share, or unblock it. While it is blocked, its messages are not candidates. */
void shares_block(struct shares *s, uint32_t share, bool blocked);

/* The same for plain messages. A level with plain messages keeps its tags while they are blocked. */
void shares_block_plain(struct shares *s, bool blocked);

/* A gate of the share (core/queue/gates.h) is closed, or open: it blocks the share, beside the limit. */
void shares_close(struct shares *s, uint32_t share, bool closed);

/* The hash of the name of a flow's share, and the share of a hash, or SLAB_NONE. */
/* Returns whether the share of the flow has only one message. */
bool shares_is_new(const struct shares *s, uint32_t flow);

uint64_t shares_hash(const struct shares *s, uint32_t flow);
uint32_t shares_find_hash(const struct shares *s, uint64_t hash);

/* begins: a message of the flow is leased now; otherwise its lease has ended. A share is blocked while it has as
 * many leased messages as the limit allows. */
void shares_lease(struct shares *s, uint32_t flow, bool begins);

/* The most leased messages of a share; 0: no limit. */
void shares_limit(struct shares *s, uint32_t max);

/* The leased messages of all shares. */
uint32_t shares_leased(const struct shares *s);

/* ---- All flows ---- */

/* The next flow in no order, and the heap of its ready messages. SLAB_NONE: as argument the start, as
 * result the end. */
uint32_t shares_flow_next(const struct shares *s, uint32_t flow);
const struct heap *shares_flow_heap(const struct shares *s, uint32_t flow);

/* Returns whether no flow and no level with candidates is left: the owner may free the shares. */
bool shares_are_idle(const struct shares *s);

/* ---- Purging ---- */

/* Reserves the memory that shares_purge needs. */
int shares_purge_reserve(struct shares *s);

/* Moves all candidates to the trash, where the owner frees them one by one. The trash must be empty. */
void shares_purge(struct shares *s);

/* Returns whether the message of the flow is in the trash. */
bool shares_is_trash(const struct shares *s, uint32_t flow, uint32_t item);

/* Removes a message from the trash and returns it, or SLAB_NONE if the trash is empty. */
uint32_t shares_trash_pop(struct shares *s);

/* ---- Memory and checks ---- */

/* The bytes that the shares have allocated. */
size_t shares_bytes(const struct shares *s);

/* Returns whether they may have changed since the last call. */
bool shares_have_changed(struct shares *s);

/* Returns what is wrong with the structure, or NULL. Looks at everything: for tests. */
const char *shares_check(const struct shares *s);

#endif
