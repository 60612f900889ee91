/*
 * route.h - finds the handler of a request in a table of const rows.
 *
 *         static const struct route routes[] = {
 *                 { "POST", "/enqueue", handle_enqueue, .max_body = 16 << 20 },
 *                 { "GET", "/dequeue", handle_claim, .no_head = true },
 *                 { "POST", "/dequeue", handle_claim, .max_body = 64 << 10 },
 *                 { "GET", "/console/", handle_file, .below = true },
 *         };
 *
 * Paths are compared as sent, undecoded, byte by byte. A row with `below` also matches every
 * path that begins with its own. The longest matching path wins. HEAD matches a row of GET. A
 * row without a method matches all methods, and HEAD unless it has no_head.
 *
 * A row with `tail` matches paths of its own path, one segment and the tail: { .path = "/tasks/", .tail = "/result" }
 * matches "/tasks/1/result".
 *
 * A row with `segments` also matches the paths of that many segments, "/a/b", whose first segment begins the path
 * of no row. For a method without such a row these paths are 404.
 *
 * A path without a row is 404. A path with rows for other methods is 405, and Allow names these
 * methods. A body larger than max_body is 413 before it is read.
 *
 * The server collects a body before it calls the handler, or passes it to `take` piece by
 * piece: CALL-8. Answers may also come in pieces: EXCHANGE-7.
 */
#ifndef HTTP_ROUTE_H
#define HTTP_ROUTE_H

#include "base/bytes.h"

struct call;
struct dialect;
struct handler;

/* The query that a route accepts. Malformed escapes are refused on every route. */
enum route_query {
	QUERY_NONE, /* none */
	QUERY_READ, /* the handler reads it and refuses unknown parameters */
	QUERY_ANY   /* unknown parameters are ignored */
};

struct route {
	const char *method; /* NULL: any */
	const char *path;
	/* Runs on the loop and must not block; http/call.h has the rules. arg is
	 * server_conf.arg. */
	void (*handle)(struct call *c, void *arg);
	void (*take)(struct call *c, void *arg); /* takes a piece of the body: CALL-8; or NULL */
	const struct dialect *dialect;           /* for the API: api/dialect.h */
	const struct handler *handler;           /* for the API: api/apicall.h */
	uint32_t max_body;                       /* 0: no body */
	uint8_t query;                           /* enum route_query; for http_conf.admit */
	uint16_t needs;                          /* the rights that a caller needs: for http_conf.admit */
	uint8_t segments;                        /* also matches other paths of so many segments; 0: none */
	const char *tail;                        /* what follows path and one segment, "" or "/result"; NULL: none */
	bool below;                              /* also matches paths that begin with path */
	bool no_head;                            /* HEAD does not match it */
	bool alone;                              /* may wait, or has large answers: exchange_hold from the start */
	bool vital;                              /* connections of the reserve may use it: SERVER-5 */
	bool early;                              /* does not wait while the server starts: SERVER-10 */
	bool settles;                            /* never refused for memory: SERVER-8 */
	bool framed;                             /* a frame may ask for it: http/frames.h */
	bool worker;                             /* for the API: reads the field Sluice-Worker (api/handler.h) */
};

struct route_table {
	const struct route *rows; /* borrowed */
	unsigned n;
	uint8_t *lengths; /* of the paths, per row: a search looks at rows of the right length alone */
};

/* Returns SLU_ENOMEM. */
int route_init(struct route_table *t, const struct route *rows, unsigned n);
void route_release(struct route_table *t);

/* Returns the row, or NULL and *status 404 or 405. */
const struct route *route_find(const struct route_table *t, struct slice method,
			       struct slice path, unsigned *status);

/* Writes the methods of a path: "GET, HEAD, POST". */
void route_allow(const struct route_table *t, struct slice path, struct buf *out);

#endif
