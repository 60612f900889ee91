/*
 * history.h - the events of one round: the calls of the clients and their outcomes.
 *
 *      client ──┐
 *      client ──┼── history_add ──> events in the order of their end ──> check.h
 *      faults ──┘
 *
 * A call is recorded when it has ended, with its begin, its end and its outcome:
 *
 *      OK        the server confirmed it
 *      FAILED    the server answered that nothing changed, or was not reached
 *      UNKNOWN   no answer: it may have happened
 *
 * The memory of a history is allocated once; when it is full the round ends. Any thread may add; all
 * else is for one thread while no other adds.
 */
#ifndef TORTURE_HISTORY_H
#define TORTURE_HISTORY_H

#include <sluice/err.h>

#include <pthread.h>
#include <stdatomic.h>

enum event_kind {
	EVENT_PUSH,  /* one message of an enqueue */
	EVENT_CLAIM, /* one claimed message; a claim without a message is not recorded */
	EVENT_ACK,
	EVENT_NACK,
	EVENT_EXTEND,
	EVENT_ROW,      /* a message in a look */
	EVENT_DEAD,     /* a message in the list of dead letters, in a look */
	EVENT_LOOK,     /* the end of a look; `call` is its number, see struct look */
	EVENT_REDRIVE,  /* all dead letters were redriven: they may be delivered again */
	EVENT_FAULT,    /* a fault; `name` is its row in torture_faults */
	EVENT_EXIT,     /* the server ended by itself, or not cleanly: `id`
			 * is the signal, or 0 and `name` the exit code */
	EVENT_GAUGE,    /* at rest: `name` open files, `id` bytes of memory */
	EVENT_BATCH,    /* the close of a batch; `name` is in its callback */
	EVENT_CALLBACK, /* a callback that is there at the end of a round; `name`: of its batch */
	EVENT_SCHEDULE, /* a schedule is set, `until`: its interval; or paused or resumed, `waits`. `name` is in its messages */
	EVENT_TICK,     /* a message of a schedule that is there at the end of a round; `name`: of the schedule; `due`: its tick */
	EVENT_FIRINGS,  /* a schedule at the end of a round: `id` ticks fired, `token` were missed; FAILED: it is gone; `damaged`:
			 * it did not go on */
	/* Locks: `key` is the lock; `until` and the times are by the client's clock. */
	EVENT_ACQUIRE, /* `until`: the lease lasts at least so long, unless released */
	EVENT_READ,    /* `name`: the value in its state; 0 = none */
	EVENT_UPDATE,  /* `name`: the staged value */
	EVENT_RELEASE, /* `name`: the value that it commits, if before `until`; 0 = none */
	EVENT_KINDS
};

enum outcome {
	OUTCOME_OK,
	OUTCOME_FAILED,
	OUTCOME_UNKNOWN
};

/* States of a message, in the order of struct look. */
enum event_state {
	STATE_READY,
	STATE_DELAYED,
	STATE_LEASED,
	STATE_HELD,
	STATE_DEAD,
	STATE_DAMAGED,
	STATE_TOTAL, /* counters of all states */
	STATES
};

extern const char *const event_states[STATES];
extern const char *const event_kinds[EVENT_KINDS];
extern const char *const outcomes[];

struct event {
	slu_time start, end; /* begin and end by the client's clock: they order calls */
	uint64_t id;         /* id of the message; 0 = not known */
	uint64_t name;       /* unique name of the message, in its payload */
	uint64_t token;
	/* Server time. */
	slu_time granted; /* claim: when the lease began */
	slu_time until;   /* claim, extend: when the lease ends; nack: when it is due; 0 = not known */
	slu_time due;     /* claim: since when the message was due */

	uint64_t parent; /* push: name of the message whose ack enqueued it, under `token`; 0 = none */

	uint32_t key;   /* 0: none */
	uint32_t call;  /* push: the number of its call; row, dead, look: the number of the look */
	uint32_t index; /* push: its index in the call */
	uint16_t attempts, failures, max_attempts;
	uint16_t client;
	uint8_t kind;    /* enum event_kind */
	uint8_t outcome; /* enum outcome */
	uint8_t state;   /* row, nack: enum event_state */
	bool damaged;    /* claim: the bytes do not match the name */

	/* push: what decides its turn. */
	uint8_t share;    /* 0: none */
	uint8_t host;     /* value of the attribute that the queue limits; 0: none */
	uint8_t priority; /* 0 to 9 */
	bool waits;       /* for its time or for its key */
	bool joins;       /* it is a member of a batch, or enqueued by an ack: it may go by the outbox */
};

/* The settings of the queue whose effects are checked (check_turn.c). */
struct history_limits {
	uint32_t concurrency, attribute_concurrency; /* 0: no limit */
	uint32_t rate, burst;                        /* 0: no limit */
	uint32_t weights[4];                         /* by share; 0: there are no shares */
};

/* The whole queue at rest. */
struct look {
	uint64_t counts[STATES]; /* the counters of the server */
};

enum {
	HISTORY_LOOKS = 64,
	HISTORY_LOCKS = 6 /* highest number of a lock */
};

struct history {
	/* Shared, under mtx. */
	pthread_mutex_t mtx;
	struct event *events;
	size_t n, size;
	struct look looks[HISTORY_LOOKS];
	unsigned n_looks;

	bool must_be_empty; /* everything was taken at the end: a message of the last look is stuck */
	bool several;       /* number of shards: tokens of each shard rise on their own */
	bool taken_over;    /* shards change their node, also long after a fault, and turns begin anew: I11 is not checked */
	bool overflown;     /* events were lost: the round cannot be checked */

	struct history_limits limits;

	atomic_bool full; /* clients begin no further call */

	/* From earlier rounds: every token is above the first; every value of a lock's state is at least the
	 * second. */
	uint64_t token_floor;
	uint64_t lock_tokens[HISTORY_LOCKS + 1], lock_values[HISTORY_LOCKS + 1];
};

/* Allocates room for n events, and a reserve for the end of a round. */
int history_init(struct history *h, size_t n, struct slu_err *err);
void history_release(struct history *h);

/* Did the release e certainly commit its value? The answer to a late release is the same. */
bool history_commits(const struct event *e);

/* Begins the next round: keeps the highest tokens and the committed values. */
void history_clear(struct history *h);

void history_add(struct history *h, const struct event *e);
size_t history_count(struct history *h); /* number of events; for any thread */

/* Adds a complete look; its rows were added with the number of history_look_next. */
unsigned history_look_next(const struct history *h);
void history_look(struct history *h, const struct look *look, slu_time start, slu_time end);

/* Removes the events after the first n: the look is repeated. */
void history_cut(struct history *h, size_t n);

#endif
