/*
 * web.h - does a request come from a web page that has no business here?
 *
 * A server that asks for no token is still reachable by every page that a browser on
 * this machine shows: pages may send requests to 127.0.0.1, and by a name of their own
 * that resolves to it they may even read the answers (DNS rebinding). What gives them
 * away is said by the browser, and no page can change it:
 *
 *  P1  Sec-Fetch-Site is there and is neither same-origin nor none.
 *  P2  Origin is there and is not this server: what follows its :// differs from Host.
 *  P3  Host names a machine that is neither loopback nor one of the hosts that were
 *      configured. On an address that others can reach, numbers are fine too: no name
 *      was resolved. Not asked of unix sockets, which no page reaches.
 *
 * Programs send none of the first two, and the address they were told as the third.
 */
#ifndef AUTH_WEB_H
#define AUTH_WEB_H

#include "base/bytes.h"

#include <sluice/err.h>

/* Fields as they were sent; .p NULL: not sent. */
struct web_request {
	struct slice host, origin, fetch_site;
	bool local;   /* came by an address that only this machine reaches */
	bool is_unix; /* came by a unix socket */
};

/* hosts: names without port, "*" for any. SLU_EFORBIDDEN, and what gave it away. */
int web_check(const struct web_request *q, char *const *hosts, unsigned n_hosts,
	      struct slu_err *err);

#endif
