/*
 * reserved.h - the queues whose names clients cannot use. A namespace has at most one of each.
 */
#ifndef CORE_RESERVED_H
#define CORE_RESERVED_H

#include "core/locks/lock.h"
#include "core/schedule/schedule.h"

#define TASK_QUEUE  ".tasks"   /* api/task/task.h */
#define BATCH_QUEUE ".batches" /* MSGBATCH_QUEUE of engine/msgbatch.h */

/* Whether the messages of the queue are documents of the server, which OP_SCHEDULE replaces. */
static inline bool
reserved_has_documents(struct slice queue)
{
	return slice_eq(queue, SLICE(SCHEDULE_QUEUE)) || slice_eq(queue, SLICE(TASK_QUEUE));
}

/* Whether an operator may move the queue, and say where it lives. */
static inline bool
reserved_moves(struct slice queue)
{
	return slice_eq(queue, SLICE(LOCK_QUEUE)) || slice_eq(queue, SLICE(BATCH_QUEUE)) || reserved_has_documents(queue);
}

static inline bool
reserved_is(struct slice queue)
{
	return slice_eq(queue, SLICE(LOCK_QUEUE)) || reserved_has_documents(queue);
}

#endif
