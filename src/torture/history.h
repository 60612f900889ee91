/*
 * history.h - what clients did and what they were told: a list of events, of one round.
 *
 *      client ──┐
 *      client ──┼── history_add ──> events, as they ended ──> check.h
 *      faults ──┘
 *
 * A call is written down when it has ended: when it began, when it ended, and what its
 * client knows of it:
 *
 *      OK        the server said so
 *      FAILED    the server said that nothing has changed, or was never asked
 *      UNKNOWN   the answer did not arrive: it may have happened, or not
 *
 * The memory of a history is taken once; when it is full the round ends. Adding is for
 * any thread, all else for one while nobody adds.
 */
#ifndef TORTURE_HISTORY_H
#define TORTURE_HISTORY_H

#include <sluice/err.h>

#include <pthread.h>
#include <stdatomic.h>

enum event_kind {
	EVENT_PUSH,  /* one message of an enqueue */
	EVENT_CLAIM, /* one message that arrived; a claim that brought none is no event */
	EVENT_ACK,
	EVENT_NACK,
	EVENT_EXTEND,
	EVENT_ROW,     /* a message that a look found */
	EVENT_DEAD,    /* one that the list of dead letters had, in a look */
	EVENT_LOOK,    /* the end of a look: `call` is its number, see struct look */
	EVENT_REDRIVE, /* all dead letters were put back: from here on they may come again */
	EVENT_FAULT,   /* what was done to the server: `name` is its row in torture_faults */
	EVENT_EXIT,    /* the server ended though nobody had ended it, or not as it should: `id`
			* is the signal, or 0 and `name` the exit code */
	EVENT_GAUGE,   /* at rest: `name` open files, `id` bytes of memory */
	/* Of locks: `key` is the lock; until and the times are the client's clock. */
	EVENT_ACQUIRE, /* `until`: held as long at least, unless it is released */
	EVENT_READ,    /* `name`: the value that is in its state; 0: none */
	EVENT_UPDATE,  /* `name`: the value that was staged */
	EVENT_RELEASE, /* `name`: the value that it commits, if before `until`; 0: none */
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
	STATE_TOTAL, /* of counters: all of them */
	STATES
};

extern const char *const event_states[STATES];
extern const char *const event_kinds[EVENT_KINDS];
extern const char *const outcomes[];

struct event {
	slu_time start, end; /* the client's clock: what surely came before what */
	uint64_t id;         /* of the message; 0: not known */
	uint64_t name;       /* of the message, in its payload; no two have the same */
	uint64_t token;
	/* Server time. */
	slu_time granted; /* claim: when the lease began */
	slu_time until;   /* claim, extend: when it ends; nack: not before; 0: not said */
	slu_time due;     /* claim: from when it might be handed out */

	uint32_t key;   /* 0: none */
	uint32_t call;  /* push: which call it was in; row, dead, look: which look */
	uint32_t index; /* push: in its call */
	uint16_t attempts, failures, max_attempts;
	uint16_t client;
	uint8_t kind;    /* enum event_kind */
	uint8_t outcome; /* enum outcome */
	uint8_t state;   /* row, nack: enum event_state */
	bool damaged;    /* claim: these are not the bytes that go with its name */
};

/* The whole queue at a moment when nobody worked on it. */
struct look {
	uint64_t counts[STATES]; /* as the server counts */
};

enum {
	HISTORY_LOOKS = 64,
	HISTORY_LOCKS = 6 /* locks are 1 to so many */
};

struct history {
	/* Shared, under mtx. */
	pthread_mutex_t mtx;
	struct event *events;
	size_t n, size;
	struct look looks[HISTORY_LOOKS];
	unsigned n_looks;

	bool must_be_empty; /* all was taken at the end: what the last look finds is stuck */
	bool several;       /* shards: each has tokens of its own, which rise for a message and a key */
	bool overflown;     /* events are missing: nothing can be said of this round */

	atomic_bool full; /* no client should begin another call */

	/* What earlier rounds leave: every token is above it; every value of a lock's state is
	 * at least that. */
	uint64_t token_floor;
	uint64_t lock_tokens[HISTORY_LOCKS + 1], lock_values[HISTORY_LOCKS + 1];
};

/* Room for n events, and some more for what ends a round. */
int history_init(struct history *h, size_t n, struct slu_err *err);
void history_release(struct history *h);

/* Did the release e surely commit its value? One that comes too late says so to nobody. */
bool history_commits(const struct event *e);

/* The next round begins: nothing is known but the highest tokens, and what was committed. */
void history_clear(struct history *h);

void history_add(struct history *h, const struct event *e);
size_t history_count(struct history *h); /* events so far; for any thread */

/* A look that has ended: its rows were added with the number history_look_next told. */
unsigned history_look_next(const struct history *h);
void history_look(struct history *h, const struct look *look, slu_time start, slu_time end);

/* Forget what was added since there were n events: a look that has to be taken again. */
void history_cut(struct history *h, size_t n);

#endif
