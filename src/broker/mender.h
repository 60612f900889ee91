/*
 * mender.h - batches that somebody set aside and never went on with are finished.
 *
 *      relay: it is still there after RELAY_STUCK ──┬──> mender_post ──> a thread: mover_finish
 *      open: it was there, in a store of our own ───┘
 *
 * So messages are never stuck, whoever dies in a move: any node that serves the queue does
 * it. The thread begins with the first job.
 */
#ifndef BROKER_MENDER_H
#define BROKER_MENDER_H

#include "broker/broker.h"

struct mender;

int mender_new(struct mender **out, struct broker *b, struct slu_log *log, struct slu_err *err);

/* Any thread; does not wait. Names are copied. What is in line already, or more than a few,
 * is left to the next look. */
void mender_post(struct mender *m, struct slice space, struct slice queue, uint32_t lane);

void mender_stop(struct mender *m); /* takes no more, and does not wait; NULL is fine */
void mender_free(struct mender *m); /* after the shards have ended; NULL is fine */

#endif
