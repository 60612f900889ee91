/*
 * calls.h - a client that records every call in the history, with its outcome.
 *
 *         caller_init(&c, &err);
 *         caller_push(&c, items, n);
 *         caller_claim(&c, &how, held, &n);
 *         caller_settle(&c, EVENT_ACK, &held[0], &(struct settle){ 0 });
 *         caller_release(&c);
 *
 * One connection, one thread. A call is never repeated automatically, because the outcome would be
 * ambiguous. The only exception is 503 `moved`: nothing has happened, so the client follows to the owner
 * that the answer names. After a restart of the server, the next call connects again.
 *
 * A payload identifies itself: "NAME LENGTH xxxx", with LENGTH bytes derived from the name.
 */
#ifndef TORTURE_CALLS_H
#define TORTURE_CALLS_H

#include "client/http.h"
#include "torture/dice.h"
#include "torture/history.h"
#include "torture/target.h"

#define TORTURE_SPACE "torture"

enum {
	CALLS_PUSH_MAX = 20,
	CALLS_CLAIM_MAX = 100,
	CALLS_LEASE_ID = 32,
	CALLS_FIELDS = 160
};

struct caller {
	struct target *nodes; /* the nodes; the client changes between them */
	unsigned n_nodes;
	struct history *history;
	const char *queue;
	struct dice dice;
	uint16_t number;
	atomic_bool *cuts;      /* connections are being cut, at any moment of a call */
	atomic_uint *next_call; /* the next number of a call, shared by all callers */
	atomic_llong *handed;   /* when the newest claim that got messages began, shared by all callers */
	slu_time patience;      /* how long a call at the end of a round is repeated while it is refused by 503 */

	/* Inner. */
	struct http http;
	struct target *node; /* the node it is connected to */
	unsigned life;       /* the life of that node; 0 = not connected yet */
	struct buf path, body, payload;
	char fields[CALLS_FIELDS]; /* more fields of the head; "" = none */
	char *room;                /* room for decoded texts */
	size_t room_n;
};

struct push_item {
	uint64_t name;
	uint32_t key; /* 0 = none */
	uint32_t size;
	int priority;
	unsigned delay_ms; /* 0 = none */
	bool idempotent;   /* the name is the idempotency key */
	bool past;         /* deliver_after is in the past: deliver at once */
	uint8_t share;     /* 0 = none */
	uint8_t host;      /* 0 = none */
	uint64_t batch;    /* 0 = none */
};

struct claim_how {
	unsigned limit, lease_ms, wait_ms;
};

/* A message that this client has leased. */
struct held_message {
	uint64_t id, name, token;
	char lease_id[CALLS_LEASE_ID];
};

struct settle_how {
	unsigned time_ms; /* extend: the lease; nack: the delay, 0 = by the policy */
	bool defer, dead; /* nack */
};

int caller_init(struct caller *c, struct slu_err *err);
void caller_release(struct caller *c);

enum outcome caller_push(struct caller *c, const struct push_item *items, unsigned n);

/* held: room for how->limit messages. */
enum outcome caller_claim(struct caller *c, const struct claim_how *how, struct held_message *held,
			  unsigned *n);
enum outcome caller_settle(struct caller *c, enum event_kind kind, const struct held_message *held,
			   const struct settle_how *how);
/* Acks the message and enqueues another, in one step. */
enum outcome caller_finish(struct caller *c, const struct held_message *held, const struct push_item *item);
enum outcome caller_ack_all(struct caller *c, const struct held_message *held, unsigned n);

/* Sends a claim and disconnects before the answer: it is not known whether a message was claimed. */
void caller_vanish(struct caller *c, const struct claim_how *how);

/* --- locks ----------------------------------------------------------------------- */

/* A lock that this client holds. */
struct lock_held {
	uint32_t lock;
	uint64_t token;
	slu_time until; /* the least time it is held, by the client's clock */
	char lease_id[CALLS_LEASE_ID], txn_id[CALLS_LEASE_ID];
};

/* wait_s: 0 = do not wait. */
enum outcome caller_acquire(struct caller *c, uint32_t lock, unsigned ttl_s, unsigned wait_s,
			    struct lock_held *held);

/* Sets *value to the number in the state of a lock, or 0 without a state. held: the state as its
 * holder sees it; NULL = the committed state. */
enum outcome caller_read_state(struct caller *c, uint32_t lock, const struct lock_held *held,
			       uint64_t *value);
enum outcome caller_update(struct caller *c, const struct lock_held *held, uint64_t value);

/* value: the value that was updated and not rolled back; 0 = none. */
enum outcome caller_release_lock(struct caller *c, const struct lock_held *held, uint64_t value,
				 bool rollback);

/* --- batches --------------------------------------------------------------------- */

#define CALLS_CALLBACKS "-done" /* the end of the name of the queue that gets the callbacks */

/* A batch whose callback has that name. */
enum outcome caller_open_batch(struct caller *c, uint64_t name, uint64_t *id);
enum outcome caller_close_batch(struct caller *c, uint64_t name, uint64_t id);

/* --- schedules ------------------------------------------------------------------- */

#define CALLS_TICKS "-ticks" /* the end of the name of the queue that gets the messages of schedules */

/* Sets a schedule with that name, which fires each interval, and all ticks that it missed. */
enum outcome caller_set_schedule(struct caller *c, uint64_t name, unsigned interval_s, bool jitters);

/* verb: "pause" or "resume", which are recorded; "run" or "delete". */
enum outcome caller_act_on_schedule(struct caller *c, uint64_t name, const char *verb);

/* --- for the end of a round: only these functions record events ---------------------- */

/* Sets the policy of the queue, with these limits. */
int caller_setup(struct caller *c, const struct history_limits *limits, struct slu_err *err);

/* Reads the counters only. */
int caller_count(struct caller *c, struct look *out, struct slu_err *err);

/* Records all messages of the queue as events, then a look. Repeats until nothing changes meanwhile: leases
 * and delays end by themselves. */
int caller_look(struct caller *c, struct slu_err *err);

/* Records all callbacks. Waits until each batch that was closed has one, for a while. */
int caller_callbacks(struct caller *c, struct slu_err *err);

/* Records the schedules of the history and all their messages, and deletes the schedules. goes_on: each must fire before, or
 * it is recorded that it did not. */
int caller_schedules(struct caller *c, bool goes_on, struct slu_err *err);

/* Redrives up to a thousand dead letters; *n: how many. */
int caller_redrive(struct caller *c, uint64_t *n, struct slu_err *err);

#endif
