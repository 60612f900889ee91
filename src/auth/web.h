/*
 * web.h - refuses requests that a web page of another site makes a browser send.
 *
 * Every page that a browser shows can send requests to this server, and the browser adds
 * what it has by itself: a connection from this machine, or a client certificate. A page
 * whose name resolves to the server's address can also read the answers (DNS rebinding).
 * So this check applies to every caller but those with a token, which no browser adds by
 * itself. It looks at fields that the browser sets and no page can change:
 *
 *  P1  Sec-Fetch-Site, if sent, is same-origin or none.
 *  P2  Origin, if sent, is this server: what follows its :// equals Host.
 *  P3  Host is loopback, a configured host, or a name in the certificate that the server
 *      showed on this connection. On an address that other machines can reach, an address
 *      in numbers is fine too: no name was resolved. Unix sockets are exempt: no page
 *      reaches them.
 *  P4  A GET that changes something and has neither Sec-Fetch-Site nor Origin (a browser
 *      sends both fields only sometimes) is not a browser's: Referer, if sent, is this
 *      server, and otherwise User-Agent does not begin with "Mozilla/", as that of every
 *      browser does.
 *
 * Programs send none of these fields but Host, which has the address they were given.
 */
#ifndef AUTH_WEB_H
#define AUTH_WEB_H

#include "base/bytes.h"

#include <sluice/err.h>

/* Fields as they were sent; .p NULL: not sent. */
struct web_request {
	struct slice host, origin, fetch_site;
	struct slice referer, agent; /* needed only if get_changes */
	bool local;                  /* came by an address that only this machine reaches */
	bool is_unix;                /* came by a unix socket */
	bool get_changes;            /* P4 applies */
	bool no_tokens;              /* the server has no keys: a token is no way out */
	/* P3: does the server's certificate have this name, without port? NULL: no TLS. */
	bool (*is_named)(const void *arg, struct slice host);
	const void *named_arg;
};

/* hosts: names without port, "*" for any. SLU_EFORBIDDEN names the field. */
int web_check(const struct web_request *q, char *const *hosts, unsigned n_hosts,
	      struct slu_err *err);

/* Is Host a name of this server by P3, and nothing but a name or an address with or without a
 * port? False without a Host, and for unix sockets. */
bool web_is_own_host(const struct web_request *q, char *const *hosts, unsigned n_hosts);

#endif
