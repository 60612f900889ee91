/*
 * repair.h - finishes batches that a node has set aside and does not continue with.
 *
 *      follow: a batch is still there after FOLLOW_STUCK ──┬──> moverepair_post ──> a thread:
 *      open: a batch was there, in a store of this node ───┘                        movecopy_finish
 *
 * So messages are never stuck, whichever node dies in a move: any node that serves the queue finishes
 * the batch. The thread starts with the first job.
 */
#ifndef BROKER_MOVE_REPAIR_H
#define BROKER_MOVE_REPAIR_H

#include "broker/broker.h"

struct moverepair;

int moverepair_new(struct moverepair **out, struct broker *b, struct slu_log *log, struct slu_err *err);

/* Any thread; does not wait. Copies the names. A job that is in the list already, or finds no room, is left
 * to the next look. */
void moverepair_post(struct moverepair *m, struct slice space, struct slice queue, uint32_t lane);

/* Takes no more jobs, and does not wait. NULL is fine. */
void moverepair_stop(struct moverepair *m);

/* After the shards have ended. NULL is fine. */
void moverepair_free(struct moverepair *m);

#endif
