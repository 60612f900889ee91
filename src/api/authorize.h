/*
 * authorize.h - checks what a caller may do: when a request begins, and for each of its ops.
 *
 *      begin of a request ── authorize_caller ──> x->who; or SLU_EAUTH, SLU_EFORBIDDEN
 *                                                   │
 *      its ops ───────────── authorize_ops ─────────┴──> posted; or SLU_EFORBIDDEN
 *
 * All protocols use it; api/authorize_call.h has the part of HTTP. A refusal is the same whether
 * the queue or message exists or not.
 */
#ifndef API_AUTHORIZE_H
#define API_AUTHORIZE_H

#include "base/bytes.h"

#include <sluice/err.h>

struct api;
struct apicall;
struct exchange;
struct guard_request;
struct op;

/* Finds the identity of a caller and sets x->who. The caller sets q->needs and the fields of q that the
 * client has sent; authorize_caller sets the others. Called on the loop, before the handler returns.
 * Counts a refusal; the caller answers it. Returns the codes of guard_check. */
int authorize_caller(struct api *api, struct exchange *x, struct guard_request *q, struct slu_err *err);

/* For server_conf.dismiss. */
void authorize_dismiss(void *who);

/* Returns true if the caller has the rights of the apicall in the namespaces of all ops.
 * Otherwise refuses the apicall. */
bool authorize_ops(struct apicall *a, const struct op *ops, unsigned n);

/* The same for a handler without an op. */
bool authorize_space(struct apicall *a, struct slice namespace);

#endif
