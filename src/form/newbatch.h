/*
 * newbatch.h - the message that a new batch is (engine/msgbatch.h).
 */
#ifndef FORM_NEWBATCH_H
#define FORM_NEWBATCH_H

#include "engine/msgbatch.h"
#include "engine/op.h"
#include "form/arena.h"

/* Gives the batch its callback, as a record in the arena. Returns SLU_EINVAL, SLU_ETOOBIG or SLU_ENOMEM. */
int newbatch_callback(struct msgbatch *b, const struct op_put *callback, struct arena *a, struct slu_err *err);

/* Fills the put of the batch; its bytes are in the arena. Returns SLU_ENOMEM. */
int newbatch_put(const struct msgbatch *b, struct slice space, struct arena *a, struct op_put *out, struct slu_err *err);

#endif
