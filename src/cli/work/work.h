/*
 * work.h - `sluice work`: runs a command for every message, several at a time.
 *
 *      main thread: signals            slot: a thread, a connection, a child
 *      first: stop ─────────────────>  claim ─> run ─> settle ─> claim ...
 *      second: force                             └─ lease extended at half its time
 *
 *  WORK-1  A slot has at most one message, and settles it before it claims the next.
 *  WORK-2  The exit of the child decides: 0 ack, 75 defer, 100 dead letter, anything else,
 *      signals included, is a failed attempt with the tail of stderr as its error.
 *  WORK-3  If the lease is lost, or could not be extended until its end, the slot kills the child:
 *      another worker may have the message.
 *  WORK-4  Stop: no new messages, running commands may finish. Force: the children are killed and
 *      their messages go back at once, without counting as failed.
 *  WORK-5  A command that runs longer than `timeout` is ended and counts as failed.
 *  WORK-6  If the server does not answer, the slot asks again after growing pauses. A permanent
 *      refusal ends the work.
 *  WORK-7  The lines of JSON that a command writes to descriptor 3 are messages. They are enqueued with the ack, in one
 *      step; a message that is not acked brings none.
 *  WORK-8  The worker beats (client/beat.h). An operator can ask it to be quiet: slots claim nothing until it is resumed;
 *      or to stop: as the first signal.
 *  WORK-9  If an operator has canceled the message, the slot learns it when it extends the lease. It ends the child, kills it
 *      at the end of the lease at the latest, and settles the message, which is gone then.
 *  WORK-10 A line of descriptor 3, or an answer line, with a `checkpoint` is stored with the lease, as soon as it comes; the
 *      last of several. The next holder of the message gets it.
 */
#ifndef CLI_WORK_WORK_H
#define CLI_WORK_WORK_H

#include "cli/work/child.h"
#include "cli/lib/session.h"

#include <pthread.h>
#include <stdatomic.h>

/* clang-format off */
#define WORK_OUTCOMES(X) \
	X(DONE,     "done") \
	X(FAILED,   "failed") \
	X(DEFERRED, "deferred") \
	X(DEAD,     "dead") \
	X(LOST,     "lost") \
	X(RETURNED, "returned") \
	X(CANCELED, "canceled")
/* clang-format on */

enum work_outcome {
#define X(name, text) WORK_##name,
	WORK_OUTCOMES(X)
#undef X
	WORK_N_OUTCOMES
};

struct work {
	struct session s;

	/* Set before the slots start. */
	uint64_t concurrency, max; /* how many slots; how many messages at most */
	const char *queue;
	char **argv; /* the command to run */
	bool lines;
	const char *result; /* "stdout" = the output of the command is the result; NULL or "none" = no result */
	slu_time lease;
	const char *owner; /* NULL = host and process */
	const char *kinds; /* "resize,crop" = messages of these kinds alone; NULL = every message */
	slu_time idle;     /* exit after this time without a message; 0 = never */
	slu_time timeout;  /* limit of a command (WORK-5); 0 = no limit */
	bool pass_token;   /* the command receives the token of the session */
	slu_time beat;     /* how often; 0 = never (WORK-8) */
	int stop_fd;       /* readable: stop (WORK-4) */
	int pause_fd;      /* readable: stop, or quiet (WORK-8) */
	int force_fd;
	int done_fd; /* the last slot makes it readable when it ends */

	/* Shared. */
	_Atomic uint64_t left;   /* how many messages may still be claimed */
	_Atomic unsigned busy;   /* how many slots have a message */
	_Atomic unsigned late;   /* leases that were extended when less than a quarter was left */
	_Atomic unsigned slots;  /* how many slots have not ended */
	_Atomic slu_time active; /* when a message was last received or settled */
	_Atomic bool away;       /* the note that the server does not answer was printed */
	_Atomic bool quiet;      /* WORK-8 */
	_Atomic bool broken;     /* a permanent refusal (WORK-6), or the command cannot be run */
	_Atomic uint64_t counts[WORK_N_OUTCOMES];
};

/* How a message is settled. */
struct work_verdict {
	enum work_outcome outcome;
	struct buf error;  /* the reason of a failure */
	slu_time delay;    /* -1 = by the queue's policy */
	struct buf result; /* JSON */

	struct buf enqueue; /* WORK-7: a list of messages in JSON; empty = none */
};

struct work_slot {
	struct work *work;
	pthread_t thread;
	struct slu_client_messages got;
	const struct slu_client_message *message; /* the message in `got` that the child works on */
	struct child child;
	slu_time keep_at;   /* when to extend the lease */
	slu_time end_at;    /* when to end the child (WORK-5); SLU_NEVER = no limit, or the child is being ended */
	bool timed_out;     /* the child is being ended by WORK-5 */
	bool canceled;      /* the child is being ended by WORK-9 */
	slu_time lease_end; /* until when the lease certainly holds */
	struct work_verdict verdict;
	struct buf line; /* --lines: the line for the child */

	struct buf checkpoint; /* WORK-10: JSON that is not stored yet; empty = none */
	size_t seen;           /* bytes of child.written that were searched for checkpoints */
	struct buf env;
};

/* Stops (WORK-4). */
void work_stop(const struct work *w);

/* Append the messages of lines, or of a JSON list, as a JSON list; nothing if there are no messages. space: the
 * namespace of messages without one. Return SLU_EINVAL if a message is not a JSON object. */
int children_take_lines(struct slice lines, const char *space, struct buf *out, struct slu_err *err);
int children_take_list(struct slice list, const char *space, struct buf *out, struct slu_err *err);

/* Removes the lines with a checkpoint from `written`, and copies the last checkpoint to out. *seen: so many bytes have none.
 * whole: the last line is whole without a newline, too. */
void children_take_checkpoints(struct buf *written, size_t *seen, bool whole, struct buf *out);

/* The thread of a slot: runs until stop, or until no message is left. */
void *slot_main(void *arg); /* a struct work_slot */

/* Has the child work on slot->message and fills slot->verdict. An error ends the work (WORK-6). */
int slot_run(struct work_slot *s, struct slu_err *err);

/* Extends the lease, with slot->checkpoint if there is one. Returns false if the lease is lost (WORK-3). */
bool slot_keep_lease(struct work_slot *s);

/* Waits for the child and extends the lease meanwhile. Returns CHILD_ENDED or CHILD_LINE; or CHILD_STOP, with
 * the verdict set, if the child was killed by force, by a lost lease or by WORK-5. */
enum child_event slot_wait(struct work_slot *s);

/* Adds the last output of the child on stderr to the verdict's error. */
void slot_put_tail(struct work_slot *s);

/* Ends a long-lived child and waits for it. */
void slot_dismiss(struct work_slot *s);

#endif
