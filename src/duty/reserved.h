/*
 * reserved.h - the message of a document in a queue of core/reserved.h.
 */
#ifndef DUTY_RESERVED_H
#define DUTY_RESERVED_H

#include "form/arena.h"
#include "engine/op.h"

/* Fills the put of a document; its bytes are in the arena. Releases text. Returns SLU_ENOMEM, also if text has failed. */
int reserved_put(struct slice space, struct slice queue, struct buf *text, struct arena *memory, struct op_put *out);

#endif
