/*
 * route.h - which handler gets a request: a table of const rows.
 *
 *         static const struct route routes[] = {
 *                 { "POST", "/enqueue", handle_enqueue, .max_body = 16 << 20 },
 *                 { "GET", "/dequeue", handle_claim, .no_head = true },
 *                 { "POST", "/dequeue", handle_claim, .max_body = 64 << 10 },
 *                 { "GET", "/console/", handle_file, .below = true },
 *         };
 *
 * Paths are compared as sent, undecoded, byte by byte. A row with `below` also takes
 * every path that begins with its own; a longer row goes before a shorter one, so
 * that a whole path goes before all. HEAD takes the row of GET. A row without a method
 * takes all of them, HEAD too unless it has no_head.
 *
 * A path that no row has is 404; one that has rows, but not for this method, is 405
 * and names those methods in Allow. A body larger than max_body is 413 before it is
 * read.
 *
 * Bodies are gathered before the handler is called, or come piece by piece to `take`: C8
 * of http/call.h. Answers may be given piece by piece: C7.
 */
#ifndef HTTP_ROUTE_H
#define HTTP_ROUTE_H

#include "base/bytes.h"

struct call;
struct dialect;

/* What may stand behind the '?' of a request. Malformed escapes are refused on every route. */
enum route_query {
	QUERY_NONE, /* no parameter */
	QUERY_READ, /* the handler reads it and refuses what it does not know */
	QUERY_ANY   /* unknown parameters are passed over */
};

struct route {
	const char *method; /* NULL: any */
	const char *path;
	/* Runs on the loop and must not block; http/call.h has the rules. arg is
	 * server_conf.arg. */
	void (*handle)(struct call *c, void *arg);
	void (*take)(struct call *c, void *arg); /* a piece of its body: C8; or NULL */
	const struct dialect *dialect;           /* whatever its maker means by it */
	size_t max_body;                         /* 0: no body */
	enum route_query query;                  /* for server_conf.admit */
	unsigned needs;                          /* what its caller must be allowed: for server_conf.admit */
	bool below;                              /* and what begins with path */
	bool no_head;                            /* GET does not stand for HEAD */
	bool alone;                              /* waits, or has much to say: as call_hold, from the start */
	bool vital;                              /* served to connections of the reserve, too: S5 of server.h */
	bool early;                              /* answered also while the server starts: S10 */
	bool settles;                            /* never refused for memory: S8 */
};

struct route_table {
	const struct route *rows; /* borrowed */
	unsigned n;
	struct slice *paths; /* per row */
};

/* SLU_ENOMEM. */
int route_init(struct route_table *t, const struct route *rows, unsigned n);
void route_release(struct route_table *t);

/* The row, or NULL and *status 404 or 405. */
const struct route *route_find(const struct route_table *t, struct slice method,
			       struct slice path, unsigned *status);

/* The methods that path takes: "GET, HEAD, POST". */
void route_allow(const struct route_table *t, struct slice path, struct buf *out);

#endif
