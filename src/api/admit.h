/*
 * admit.h - the guard at the door of the API, and behind it.
 *
 *      head of a request ── admit ──> in, with an identity; or 401, 403, 400
 *                                       │
 *      its ops ─────────── admit_ops ───┴──> posted; or 403
 *
 * The door refuses a malformed query, too, and unknown parameters where the route takes
 * none (400). A route with QUERY_READ does so itself.
 *
 * A 401 says WWW-Authenticate, a 403 which scope is missing (RFC 6750, section 3).
 * Whether what was asked for exists makes no difference to either.
 */
#ifndef API_ADMIT_H
#define API_ADMIT_H

#include "http/route.h"

struct call;
struct op;

/* For server_conf; arg is a struct api. */
bool admit(struct call *c, void *arg);
void admit_dismiss(void *who);

/* May the caller do what its route needs in the namespaces of all these ops? False: it
 * was answered. */
bool admit_ops(struct call *c, const struct op *ops, unsigned n);

/* The same for who has no op. */
bool admit_space(struct call *c, struct slice namespace);

/* The Host of a call, if it is a name of this server; empty otherwise. In the handler. */
struct slice admit_own_host(const struct call *c);

/* Does every row say what it needs? */
bool admit_routes(const struct route *rows, unsigned n);

#endif
