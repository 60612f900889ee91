/*
 * faults.h - helpers of a run for its faults; torture.h has their table.
 */
#ifndef TORTURE_FAULTS_H
#define TORTURE_FAULTS_H

#include "torture/torture.h"

/* If the server ended by itself, records that and starts it again. */
int fault_look_after(struct torture *t, struct slu_err *err);

/* Waits until all nodes serve by their stores again. Returns SLU_EDOWN if one does not. */
int fault_find_stores(struct torture *t, struct slu_err *err);

/* Completes a move of the queue. The clients are at rest, so it must succeed. */
int fault_end_moves(struct torture *t, struct slu_err *err);

#endif
