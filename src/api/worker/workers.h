/*
 * workers.h - the register of workers: consumers that say who they are, and what an operator asks of them.
 *
 *      Sluice-Worker: name=mailer-1; host=web-7; version=1.4; instance=5c1f; slots=8; used=3; lost=0; late=0
 *
 *      a worker's call ── workers_beat ──> its row, and what it is asked: running, quiet, stop
 *      an operator ────── workers_ask ───> its row
 *
 * A worker is named by its namespace and its name. Any thread; one mutex, held for a moment.
 *
 *  WORKERS-1  A worker is forgotten WORKERS_AGE after its last beat. At most WORKERS_MAX are known; then others are
 *             refused, and their calls run as if they had not said who they are.
 *  WORKERS-2  Another instance of the same name is a new process: what the one before was asked does not hold for it. If the one
 *             before had messages at its last beat and did not say that it ends (`ends=1`), it has crashed.
 *  WORKERS-3  A worker that says that it ends is forgotten at once.
 *  WORKERS-4  Nothing is stored: after a start, or on another node, the register has the workers that beat there.
 */
#ifndef API_WORKER_WORKERS_H
#define API_WORKER_WORKERS_H

#include "api/worker/crews.h"
#include "base/bytes.h"

#include <sluice/err.h>

#define WORKERS_AGE (60 * SLU_SEC)

enum {
	WORKERS_MAX = 10000,
	WORKERS_NAME = 128,  /* bytes of a name or host, at most */
	WORKERS_WORD = 64,   /* of a version or instance */
	WORKERS_QUEUES = 256 /* of the names of its queues together; the oldest are dropped. Their crews: crews.h */
};

enum worker_state {
	WORKER_RUNNING,
	WORKER_QUIET, /* takes no more messages, and goes on with what it has */
	WORKER_STOP,  /* the same, and then it ends */
	WORKER_STATES
};

struct workers;

struct worker_beat {
	struct slice namespace;
	struct slice queue; /* n 0: not known */
	struct slice name, host, version, instance;
	uint32_t slots, used;
	uint32_t lost; /* leases */
	uint32_t late; /* leases that it extended when less than a quarter of them was left */
	uint32_t ends; /* not 0: this is its last beat */
	slu_time wall; /* when, on the wall clock: to be shown */
};

/* A worker of a list. Its texts are valid during the call of the function that gets it. */
struct worker_shown {
	struct worker_beat beat;
	struct slice queues; /* names, each ended by a zero */
	slu_time since;      /* its first beat, on the wall clock; beat.wall: its last */
	uint32_t crashes;    /* processes of this name since then: WORKERS-2 */
	slu_time crashed;    /* when the register noticed the last one, on the wall clock */
	enum worker_state state;
};

/* Returns SLU_ENOMEM, or the codes of hash_key_init. */
int workers_new(struct workers **out, struct slu_err *err);
void workers_free(struct workers *w); /* NULL is fine */

/* Reads the field Sluice-Worker into out, whose texts point into the field. Unknown parts are passed over.
 * Returns SLU_EINVAL. */
int worker_field_read(struct slice field, struct worker_beat *out, struct slu_err *err);

/* *state: what the worker is asked. Returns SLU_EBUSY by WORKERS-1, or SLU_ENOMEM. */
int workers_beat(struct workers *w, const struct worker_beat *b, slu_time now, enum worker_state *state,
		 struct slu_err *err);

/* What the worker is asked; WORKER_RUNNING if it is not known. */
enum worker_state workers_state(struct workers *w, struct slice namespace, struct slice name);

/* The workers of a queue together; zeros: none is known. */
struct queue_crew workers_crew(struct workers *w, struct slice namespace, struct slice queue, slu_time now);

/* The version of the worker, in room; n 0: not known. */
struct slice workers_version(struct workers *w, struct slice namespace, struct slice name, char room[static WORKERS_WORD + 1]);

/* Returns SLU_ENOTFOUND. */
int workers_ask(struct workers *w, struct slice namespace, struct slice name, enum worker_state state, slu_time now);

/* Calls each for up to max workers behind *cursor (0: from the first), of one namespace and queue if these are
 * given. *cursor is 0 after the last. */
typedef void worker_each(void *arg, const struct worker_shown *s);
void workers_list(struct workers *w, struct slice namespace, struct slice queue, uint32_t max, slu_time now,
		  uint64_t *cursor, worker_each *each, void *arg);

/* "running", "quiet", "stop" */
const char *worker_state_name(enum worker_state state);

#endif
