/*
 * faults.h - what a run needs of the faults, beside their table (torture.h).
 */
#ifndef TORTURE_FAULTS_H
#define TORTURE_FAULTS_H

#include "torture/torture.h"

/* Has the server ended by itself? Then that is written down, and it is started again. */
int fault_look_after(struct torture *t, struct slu_err *err);

/* All of the queue comes where it lives: with the clients at rest it must. */
int fault_end_moves(struct torture *t, struct slu_err *err);

#endif
