/*
 * letters.h - checks the dead_letter_queue of a policy before the policy is set.
 *
 *      queue ── policy ──> target ── policy ──> ... ──> a queue without a dead_letter_queue
 *
 * The policies may be on several shards, so each is an op. A queue that a change of another caller makes part of a
 * circle meanwhile is not noticed: its dead letters go round, and none is lost.
 */
#ifndef API_QUEUE_LETTERS_H
#define API_QUEUE_LETTERS_H

#include "api/apicall.h"

enum {
	LETTERS_HOPS = 16 /* queues that one dead letter may pass */
};

/* Follows the dead letters of a queue from `target` on, then calls `then` with 0 or a code that err explains:
 * SLU_EINVAL if they come back to the queue, or have to pass too many queues. Uses a->op. The names must live as long
 * as the call. target empty: calls `then` at once. */
void letters_check(struct apicall *a, const char *space, const char *queue, const char *target,
		   void (*then)(struct apicall *a, int rc, const struct slu_err *err));

#endif
