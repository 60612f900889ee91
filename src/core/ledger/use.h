/*
 * use.h - what the queues of a ledger, their shares and their keys use of their limits now, and their holds.
 *
 * Only ledger_hold decides a change. Owned by the shard's thread, like the ledger.
 */
#ifndef CORE_LEDGER_USE_H
#define CORE_LEDGER_USE_H

#include "core/ledger/ledger.h"

/* ---- Holds: core/queue/gates.h ---- */

#define LEDGER_HOLD_MAX (15 * SLU_MIN) /* a hold lasts at most so long from now on, without ledger_limits.hold */

struct ledger_scope {
	enum gate_kind kind;
	struct slice name; /* of the share, key or value; n 0: messages without a share */
};

/* HOLD: nothing of the scope is delivered until then; 0: ends the hold. CHANGE_NONE if the scope is held for as long, or
 * is not held and `until` is 0. A moment that is too far off becomes the latest one. */
int ledger_hold(struct ledger *l, uint32_t queue, const struct ledger_scope *scope, slu_time until, slu_time now,
		struct change *out);

/* The end of the hold of a scope, or 0. */
slu_time ledger_hold_end(const struct ledger *l, uint32_t queue, enum gate_kind scope, struct slice name);

/* ---- Breakers: core/queue/breakers.h ---- */

/* The scope of the breaker of a name; false: the queue has no such breaker. */
bool ledger_breaker_scope(const struct ledger *l, uint32_t queue, struct slice name, enum gate_kind *out);

/* A failure with the name of a breaker. BREAKER if its circuit opens now; otherwise CHANGE_NONE. */
int ledger_breaker_fail(struct ledger *l, uint32_t queue, const struct ledger_scope *scope, struct slice name, slu_time now,
			struct change *out);

/* BREAKER: an operator opens a circuit until then, or (0) closes it. SLU_ENOTFOUND: the queue has no breaker of that name
 * and scope. */
int ledger_breaker_order(struct ledger *l, uint32_t queue, const struct ledger_scope *scope, struct slice name, slu_time until,
			 slu_time now, struct change *out);

/* After an ack or nack was applied: the next BREAKER to write down and apply; false: no more. ledger_tick calls it, too. */
bool ledger_breaker_next(struct ledger *l, slu_time now, struct change *out);

/* The end of the open time of a circuit; 0: it is closed. */
slu_time ledger_breaker_until(const struct ledger *l, uint32_t queue, const struct ledger_scope *scope, struct slice name);

/* The breaker that keeps a message back; n 0: none. */
struct slice ledger_breaker_of(const struct ledger *l, uint32_t msg);

struct ledger_circuit {
	struct slice name; /* of the breaker; valid while the circuit exists */
	struct ledger_scope scope;
	uint8_t state;  /* enum circuit_state; not CLOSED */
	bool probed;    /* its probe is under way */
	slu_time until; /* the end of the open time */
};

/* The next circuit that is not closed, as ledger_use_hold. */
bool ledger_use_breaker(const struct ledger *l, uint32_t queue, uint64_t *cursor, struct ledger_circuit *out);

/* Circuits that are not closed. */
uint32_t ledger_breakers(const struct ledger *l, uint32_t queue);

/* ---- Looking ---- */

/* What a queue, a share, a key or a value uses of its limits now. Fields that the scope does not have are 0. */
struct ledger_use {
	enum gate_kind kind;
	struct slice name; /* of the share, key or value; n 0: the queue, or messages without a share. Valid while the scope exists */
	uint32_t messages; /* in any state */
	uint32_t ready;
	uint32_t leased;
	uint32_t concurrency; /* the limit of leased; 0: none */
	uint32_t rate, burst; /* deliveries a second, and at once; 0: no limit */
	uint32_t tokens;      /* deliveries that the rate allows now */
	uint32_t weight;      /* SHARE */
	uint64_t delivered;   /* SHARE: since it has messages */
	slu_time until;       /* the next delivery, if the rate allows none now */
	slu_time hold;        /* the end of its hold, or 0 */
	slu_time oldest;      /* QUEUE, SHARE: since when a message has been ready, as ledger_oldest; SLU_NEVER: none is. 0: not known */
};

void ledger_use_queue(const struct ledger *l, uint32_t queue, slu_time now, struct ledger_use *out);

/* Fills out with up to max shares, and returns their number: those nearest to a limit first, then those with the most
 * messages. by_messages: those with the most messages first. Messages without a share are one share. */
uint32_t ledger_use_shares(const struct ledger *l, uint32_t queue, bool by_messages, slu_time now, struct ledger_use *out,
			   uint32_t max);

/* The same for values of the attribute that the queue limits: those nearest to a limit first. */
uint32_t ledger_use_values(const struct ledger *l, uint32_t queue, slu_time now, struct ledger_use *out, uint32_t max);

/* The kinds with messages, those with the most first. The name begins with KIND_MARK (core/queue/kind.h), and `kind` is
 * GATE_SHARE. */
uint32_t ledger_use_kinds(const struct ledger *l, uint32_t queue, struct ledger_use *out, uint32_t max);

/* Messages of one priority, dead letters aside. */
struct ledger_priority {
	int32_t prio;
	uint32_t messages, ready, leased;
};

/* Counts those of a page of the shard's messages (ledger_browse), in no order. Priorities beyond max are left out. *looked: how many
 * messages of the queue the page had. Returns the number of rows. */
uint32_t ledger_use_priorities(const struct ledger *l, uint32_t queue, uint32_t *cursor, struct ledger_priority *out, uint32_t max,
			       uint32_t *looked);

/* The next hold of the queue in no order, from *cursor on (0 at first); false: no more. */
bool ledger_use_hold(const struct ledger *l, uint32_t queue, uint64_t *cursor, slu_time now, struct ledger_use *out);

/* The number of shares, messages without a share counted as one, and of holds. */
uint32_t ledger_shares(const struct ledger *l, uint32_t queue);
uint32_t ledger_holds(const struct ledger *l, uint32_t queue);

/* The number of kinds with messages. */
uint32_t ledger_kinds(const struct ledger *l, uint32_t queue);

/* The number of values with messages. */
uint32_t ledger_values(const struct ledger *l, uint32_t queue);

#endif
