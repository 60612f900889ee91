/*
 * taker.h - the owner of a lease, as lists show it.
 *
 * A request may name an owner. Otherwise it is the name of the caller: the subject of its token,
 * or the name in its certificate. An anonymous caller has none.
 */
#ifndef API_TAKER_H
#define API_TAKER_H

#include "api/apicall.h"

/* Returns SLU_EINVAL unless owner is 1 to OWNER_MAX bytes of UTF-8 without control
 * characters. */
int taker_check(struct slice owner, struct slu_err *err);

/* The value of op->claim.taker, in the memory of the apicall. given: the owner in the request,
 * n 0: none. It may be unchecked: it is cut, and unprintable bytes become '?'. */
struct slice taker_of(struct apicall *a, struct slice given);

#endif
