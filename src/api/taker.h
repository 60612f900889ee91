/*
 * taker.h - who takes messages: the owner that their leases are shown with.
 *
 * A caller may name one (`owner`). Without one it is the name of the caller: the subject of its
 * token, or the name in its certificate. Where nobody has to say who they are there is none.
 */
#ifndef API_TAKER_H
#define API_TAKER_H

#include "api/ask.h"

/* SLU_EINVAL unless it is 1 to OWNER_MAX bytes of UTF-8 without control characters. */
int taker_check(struct slice owner, struct slu_err *err);

/* The owner for op->taker, in the memory of the ask. given, n 0: none, need not have passed the
 * check: it is cut, and what is not printable becomes '?'. */
struct slice taker_of(struct ask *a, struct slice given);

#endif
