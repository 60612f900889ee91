/*
 * work.h - `sluice work`: a command for every message, some of them at a time.
 *
 *      main thread: signals            slot: a thread, a connection, a child
 *      first: stop ─────────────────>  claim ─> run ─> settle ─> claim ...
 *      second: force                             └─ lease kept at half its time
 *
 *  R1  A slot has at most one message, and settles it before it claims another.
 *  R2  The exit of the child decides: 0 ack, 75 defer, 100 dead letter, anything else,
 *      signals included, is a failed attempt with the tail of stderr as its error.
 *  R3  A lease that is lost, or that could not be kept until its end, kills the child:
 *      somebody else may have the message.
 *  R4  Stop: no new messages, what runs may finish. Force: children are killed and
 *      their messages go back at once, without a failure.
 *  R5  A command that runs longer than `timeout` is ended, and has failed.
 *  R6  A server that does not answer is asked again, later and later; a refusal that
 *      would come again ends the work.
 */
#ifndef CLI_WORK_H
#define CLI_WORK_H

#include "cli/child.h"
#include "cli/session.h"

#include <pthread.h>
#include <stdatomic.h>

/* clang-format off */
#define WORK_OUTCOMES(X) \
	X(DONE,     "done") \
	X(FAILED,   "failed") \
	X(DEFERRED, "deferred") \
	X(DEAD,     "dead") \
	X(LOST,     "lost") \
	X(RETURNED, "returned")
/* clang-format on */

enum work_outcome {
#define X(name, text) WORK_##name,
	WORK_OUTCOMES(X)
#undef X
	WORK_N_OUTCOMES
};

struct work {
	/* Set before the slots begin. */
	const struct session *session;
	const char *queue;
	char **argv; /* the command */
	bool lines;
	const char *result; /* "stdout": what the command prints is the result; NULL, "none" */
	slu_time lease;
	const char *owner; /* NULL: host and process */
	slu_time idle;     /* 0: work on for ever */
	slu_time timeout;  /* R5; 0: no limit */
	bool pass_token;   /* the command gets the token of the session */
	int stop_fd;       /* readable: R4 */
	int force_fd;
	int done_fd; /* the last slot makes it readable */

	/* Shared. */
	_Atomic uint64_t left;   /* messages that may still be claimed */
	_Atomic unsigned busy;   /* slots that have a message */
	_Atomic unsigned slots;  /* that have not ended */
	_Atomic slu_time active; /* when a message came or was settled last */
	_Atomic bool away;       /* it was said that the server does not answer */
	_Atomic bool broken;     /* R6, or the command cannot be run */
	_Atomic uint64_t counts[WORK_N_OUTCOMES];
};

/* What to tell the server. */
struct verdict {
	enum work_outcome outcome;
	struct buf error;  /* why, when it is no success */
	slu_time delay;    /* -1: by the queue's policy */
	struct buf result; /* JSON */
};

struct slot {
	struct work *work;
	pthread_t thread;
	struct slu_client_messages got;
	const struct slu_client_message *message; /* of got, while it runs */
	struct child child;
	slu_time keep_at;   /* when the lease is to be extended */
	slu_time end_at;    /* R5; SLU_NEVER: no limit, or the child is being ended */
	bool timed_out;     /* the child is being ended because of R5 */
	slu_time lease_end; /* until when it is ours for certain */
	struct verdict verdict;
	struct buf line; /* lines: what the child is told */
	struct buf env;
};

/* The life of a slot: until stop, or nothing is left. */
void *slot_main(void *arg); /* a struct slot */

/* Have the child work on slot->message; fills slot->verdict. An error is R6's. */
int slot_run(struct slot *s, struct slu_err *err);

/* Wait for the child and keep the lease meanwhile: CHILD_ENDED or CHILD_LINE; or
 * CHILD_STOP, when the child is dead because it was forced, the lease is lost or the time is
 * over (R5). Then the verdict is set. */
enum child_event slot_wait(struct slot *s);

/* Add what the child wrote to stderr last to the verdict's error. */
void slot_put_tail(struct slot *s);

/* A long-lived child is told to end, and waited for. */
void slot_dismiss(struct slot *s);

#endif
