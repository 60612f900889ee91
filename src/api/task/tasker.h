/*
 * tasker.h - does the tasks of the shards that this node owns: a duty (duty/duty.h).
 *
 *      lane: a task was stored, lane opened ──> duty_notify ──┐
 *                                                            v
 *      thread:  list the queues .tasks of this node   <──   changed?
 *                       │
 *                       v  for each task in turn: one step
 *               OP_LIST, a page ──> match ──> OP_REDRIVE, OP_DELETE: one op; OP_FINISH: one for each message
 *                       │
 *                       v  each second, and at the end
 *               OP_SCHEDULE: the task with its progress
 *
 *  TASKER-1  A step looks at STEP_ROWS messages and changes STEP_ACTS, in ops that a lane runs between others. The tasks of a
 *            node share one thread, a step each in turn.
 *  TASKER-2  A message changes by one op: it is at its old place or at its new one, also after a crash (OP_FINISH, and the
 *            outbox between shards).
 *  TASKER-3  What cannot be done now (a full disk, a full queue, a shard that does not answer) is tried again each second.
 *  TASKER-4  The node that owns the shard of a queue .tasks does its tasks, and the next owner goes on with them.
 */
#ifndef API_TASK_TASKER_H
#define API_TASK_TASKER_H

#include "duty/duty.h"

/* Before the broker is opened. The caller frees *out also if this fails; NULL is fine. */
int tasker_new(struct duty **out, struct slu_log *log, struct slu_err *err);

#endif
