/*
 * authorize_call.h - the part of HTTP in api/authorize.h: header fields in, header fields out.
 *
 * authorize_call also refuses a malformed query, and unknown parameters if the route has none
 * (400). A route with QUERY_READ checks its query itself.
 *
 * A 401 has WWW-Authenticate, a 403 names the missing scope (RFC 6750, section 3).
 */
#ifndef API_AUTHORIZE_CALL_H
#define API_AUTHORIZE_CALL_H

#include "http/route.h"

/* For http_conf.authorize; arg is a struct api. */
bool authorize_call(struct call *c, void *arg);

/* The Host of a call if it is a name of this server; otherwise empty. In the handler. */
struct slice authorize_own_host(const struct call *c);

/* Returns true if every row has `needs`. */
bool authorize_routes(const struct route *rows, unsigned n);

#endif
