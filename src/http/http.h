/*
 * http.h - HTTP/1.1 as a protocol of a server (net/server.h): routes and their handlers.
 *
 *         static const struct route routes[] = {
 *                 { "GET", "/healthz", healthz, .max_body = 0 },
 *         };
 *         const struct http_conf http = { .routes = routes, .n_routes = 1 };
 *         const struct server_protocol protocols[] = { { &http_protocol, &http } };
 *
 * Rules of HTTP are in http/request.h; a request that breaks them is answered with its
 * status and the connection closes (SERVER-3). 408 answers a request that is too slow
 * (SERVER-4), 503 one that SERVER-5, SERVER-8 or SERVER-10 refuses. A route that `settles`,
 * or is `vital` and not `alone` (its answers are small), is exempt from SERVER-8.
 */
#ifndef HTTP_HTTP_H
#define HTTP_HTTP_H

#include "http/call.h"
#include "http/route.h"
#include "net/server.h"

/* A refusal that the server sends by itself. */
struct http_refusal {
	unsigned status;
	const char *reason;        /* a word for machines */
	const struct route *route; /* NULL: none was found */
	struct slice method;       /* empty if the head was not readable */
	struct slice path;         /* the same */
};

/* Zero is the default everywhere. What is pointed to must outlive the server. */
struct http_conf {
	const struct route *routes;
	unsigned n_routes;

	/* CALL-9. Runs when the head of a request is there, before its body is read; it may
	 * read everything of the call except the body. Returns false if it has answered. On
	 * the loop. It may set call->x.who. NULL: all requests are admitted. */
	bool (*authorize)(struct call *c, void *arg);

	/* Writes the body of a refusal that the server sends by itself and returns its
	 * content type, a literal. NULL: "404 Not Found: no such path\n" as text/plain. On
	 * the loop. */
	const char *(*describe)(struct buf *out, const struct http_refusal *r, void *arg);

	/* Runs before describe if no route has the path, like a handler without a route:
	 * writes the body of a 404 to c->x.out and returns its content type, or returns NULL
	 * and writes nothing. NULL: not asked. */
	const char *(*page)(struct call *c, void *arg);

	const struct request_limits *limits; /* request_limits_default */
};

extern const struct protocol http_protocol;

/* Requests answered so far with a status of this class: 2 for 2xx, up to 5. Any thread. */
int64_t http_answered(const struct server *s, unsigned status_class);

#endif
