/*
 * web.h - refuses requests that a web page of another site makes a browser send.
 *
 * Every page in a browser can send requests to this server, and the browser adds its own means:
 * a connection from this machine, or a client certificate. A page whose name resolves to the
 * server's address can also read the answers (DNS rebinding). So this check applies to every
 * caller without a token; no browser adds a token by itself. It checks fields that the browser
 * sets and no page can change:
 *
 *  WEB-1  Sec-Fetch-Site, if sent, is same-origin or none.
 *  WEB-2  Origin, if sent, is this server: the part behind :// equals Host.
 *  WEB-3  Host is loopback, a configured host, or a name in the certificate that the server
 *         showed on this connection. On an address that other machines can reach, an IP address
 *         is fine too: no name was resolved. Unix sockets are exempt: no page reaches them.
 *  WEB-4  A GET that changes something and has neither Sec-Fetch-Site nor Origin (browsers do
 *         not always send them) must not come from a browser: Referer, if sent, is this server;
 *         otherwise User-Agent does not begin with "Mozilla/", as in every browser.
 *  WEB-5  A change (not GET or HEAD) by a page, which has Origin or a Sec-Fetch-Site other than none, also
 *         has the field Sluice-Console. No form can send it, and no page of another site without asking first.
 *
 * Programs send only Host, with the address that they connect to.
 */
#ifndef AUTH_WEB_H
#define AUTH_WEB_H

#include "base/bytes.h"

#include <sluice/err.h>

/* Fields as sent; .p NULL: not sent. */
struct web_request {
	struct slice host, origin, fetch_site;
	struct slice referer, agent; /* needed only if get_changes */
	struct slice console;        /* Sluice-Console */
	bool changes;                /* WEB-5 applies */
	bool local;                  /* its listener has an address that only this machine reaches */
	bool is_unix;                /* its listener is a unix socket */
	bool get_changes;            /* WEB-4 applies */
	bool no_tokens;              /* the server has no keys: a token would not help */
	/* WEB-3: true if the certificate of the server has this name, without port. NULL: no TLS. */
	bool (*is_named)(const void *arg, struct slice host);
	const void *named_arg;
};

/* hosts: names without port, "*" for any. Returns SLU_EFORBIDDEN with the field. */
int web_check(const struct web_request *q, char *const *hosts, unsigned n_hosts,
	      struct slu_err *err);

/* Returns true if Host is a name of this server by WEB-3, and only a name or an address, with or
 * without a port. False without a Host, and for unix sockets. */
bool web_is_own_host(const struct web_request *q, char *const *hosts, unsigned n_hosts);

#endif
