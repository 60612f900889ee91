/*
 * holder.h - the holder of a lease, as lists show it.
 *
 * A request may name its holder: `owner`. Otherwise it is the name of the caller: the subject of its token,
 * or the name in its certificate. An anonymous caller has none. If the register of workers (api/worker/workers.h) knows
 * the version of a worker of that name, the lease has it, too.
 */
#ifndef API_HOLDER_H
#define API_HOLDER_H

#include "api/apicall.h"

/* Returns SLU_EINVAL unless the name is 1 to HOLDER_MAX bytes of UTF-8 without control
 * characters. */
int holder_check(struct slice name, struct slu_err *err);

/* The value of op->claim.holder, in the memory of the apicall. given: the owner in the request,
 * n 0: none. It may be unchecked: it is cut, and unprintable bytes become '?'. */
struct slice holder_of(struct apicall *a, struct slice given);

/* The name with the version of the worker of that name, if that is known and both fit in HOLDER_MAX: holder_version. */
struct slice holder_with_version(struct apicall *a, struct slice namespace, struct slice name);

#endif
