/*
 * queue.h - finds the queue of a call and what its attributes mean for messages.
 *
 * A queue exists if its shard knows it: CreateQueue made it, or it has or had messages.
 */
#ifndef API_SQS_QUEUE_H
#define API_SQS_QUEUE_H

#include "api/sqs/store.h"

/* Sets s->facts and calls `then`; or refuses the call with SQS_NO_QUEUE. What was found less than KNOWN_AGE
 * ago (api/queue/known.h) is not asked for again. */
void sqs_queue_find(struct apicall *a, void (*then)(struct apicall *a));

/* The same without what was found before: OP_STATS of the queue is in *out. */
void sqs_queue_look(struct apicall *a, struct op_queue *out, void (*then)(struct apicall *a));

#endif
