/*
 * calls.h - a client whose every call ends up in the history, whatever becomes of it.
 *
 *         caller_init(&c, &err);
 *         caller_push(&c, items, n);
 *         caller_claim(&c, &how, held, &n);
 *         caller_settle(&c, EVENT_ACK, &held[0], &(struct settle){ 0 });
 *         caller_release(&c);
 *
 * One connection, one thread. No call is made twice by itself: what became of it would
 * not be known. When the server has a new life, the next call connects to it.
 *
 * A payload says who it is: "NAME LENGTH xxxx", LENGTH bytes that follow from the name.
 */
#ifndef TORTURE_CALLS_H
#define TORTURE_CALLS_H

#include "client/http.h"
#include "torture/dice.h"
#include "torture/history.h"
#include "torture/victim.h"

#define TORTURE_SPACE "torture"

enum {
	CALLS_PUSH_MAX = 20,
	CALLS_CLAIM_MAX = 100,
	CALLS_LEASE_ID = 32,
	CALLS_FIELDS = 160
};

struct caller {
	struct victim *nodes; /* it goes from one to another */
	unsigned n_nodes;
	struct history *history;
	const char *queue;
	struct dice dice;
	uint16_t number;
	atomic_bool *cuts;      /* connections are cut now, at any moment of a call */
	atomic_uint *next_call; /* numbers of calls, of all callers */

	/* Inner. */
	struct http http;
	struct victim *node; /* where it is */
	unsigned life;       /* of that one; 0: not seen yet */
	struct buf path, body, payload;
	char fields[CALLS_FIELDS]; /* more of the head; "": none */
	char *room;                /* for what is decoded */
	size_t room_n;
};

struct item {
	uint64_t name;
	uint32_t key; /* 0: none */
	uint32_t size;
	int priority;
	unsigned delay_ms; /* 0: none */
	bool idempotent;   /* its name is its idempotency key */
	bool past;         /* deliver_after long ago, which means at once */
};

struct claim_how {
	unsigned limit, lease_ms, wait_ms;
};

/* A message that this client holds. */
struct held {
	uint64_t id, name, token;
	char lease_id[CALLS_LEASE_ID];
};

struct settle_how {
	unsigned time_ms; /* extend: lease; nack: delay, 0: by the policy */
	bool defer, dead; /* nack */
};

int caller_init(struct caller *c, struct slu_err *err);
void caller_release(struct caller *c);

enum outcome caller_push(struct caller *c, const struct item *items, unsigned n);

/* held has room for how->limit. */
enum outcome caller_claim(struct caller *c, const struct claim_how *how, struct held *held,
			  unsigned *n);
enum outcome caller_settle(struct caller *c, enum event_kind kind, const struct held *held,
			   const struct settle_how *how);
enum outcome caller_ack_all(struct caller *c, const struct held *held, unsigned n);

/* Ask, and go before the answer: nothing is known to have arrived. */
void caller_vanish(struct caller *c, const struct claim_how *how);

/* --- locks ----------------------------------------------------------------------- */

/* A lock that this client holds. */
struct lock_held {
	uint32_t lock;
	uint64_t token;
	slu_time until; /* at least, by our clock */
	char lease_id[CALLS_LEASE_ID], txn_id[CALLS_LEASE_ID];
};

/* wait_s 0: do not. */
enum outcome caller_acquire(struct caller *c, uint32_t lock, unsigned ttl_s, unsigned wait_s,
			    struct lock_held *held);

/* The number in the state of a lock, 0 when there is none: what the holder sees, or with
 * held NULL everybody. */
enum outcome caller_read_state(struct caller *c, uint32_t lock, const struct lock_held *held,
			       uint64_t *value);
enum outcome caller_update(struct caller *c, const struct lock_held *held, uint64_t value);

/* value: what was updated and not rolled back; 0: nothing. */
enum outcome caller_release_lock(struct caller *c, const struct lock_held *held, uint64_t value,
				 bool rollback);

/* --- for the end of a round: no event but what is said ------------------------------ */

/* The policy of the queue that is tortured. */
int caller_setup(struct caller *c, struct slu_err *err);

/* Counters alone. */
int caller_count(struct caller *c, struct look *out, struct slu_err *err);

/* Rows of the whole queue, as events, and a look behind them. It is taken again until
 * nothing moves meanwhile: leases and delays end by themselves. */
int caller_look(struct caller *c, struct slu_err *err);

/* Put up to a thousand dead letters back; *n: how many there were. */
int caller_redrive(struct caller *c, uint64_t *n, struct slu_err *err);

#endif
