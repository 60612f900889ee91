/*
 * scheduler.h - fires the schedules of the shards that this node owns: a duty (duty/duty.h).
 *
 *      lane: OP_SCHEDULE done, lane opened ──> duty_notify ──┐
 *                                                           v
 *      thread:  list the queues .schedules of this node <─ changed?
 *                       │
 *                       v  the next tick is due
 *               OP_SCHEDULE: the schedule with its new `last`, and its message; one group of the log
 *
 *  SCHEDULER-1  A tick fires once, whatever the number of nodes, restarts and takeovers: the op that stores the tick as
 *               past, and accepts its message, succeeds only if the schedule has not changed meanwhile.
 *  SCHEDULER-2  If the queue of the message lives on another shard, the message is enqueued there first, with an
 *               idempotency key of name and tick, and the tick is stored as past then. If the node ends in between, the
 *               next owner repeats both, and the queue knows the key.
 *  SCHEDULER-3  What cannot fire now (a full disk, a queue at its limit, a shard that does not answer) is tried again
 *               each second. By then later ticks may be due, and the policy for missed ticks decides.
 *  SCHEDULER-4  Ticks follow the wall clock of the owner. The thread looks at it at least each second while a schedule
 *               waits.
 */
#ifndef DUTY_SCHEDULER_H
#define DUTY_SCHEDULER_H

#include "duty/duty.h"

struct zones;

/* Before the broker is opened. */
int scheduler_new(struct duty **out, struct zones *zones, struct slu_log *log, struct slu_err *err);

#endif
