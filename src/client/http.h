/*
 * http.h - a small HTTP/1.1 client: one connection, one call at a time, blocking. Bodies are whole
 * or in pieces, in both directions.
 *
 *         struct http h;
 *
 *         http_init(&h, &address);
 *         http_call(&h, &(struct http_call){ .method = "GET", .path = "/stats",
 *                   .until = { .deadline = SLU_NEVER, .stop_fd = -1 } }, &err);
 *         use(h.answer.status, buf_slice(&h.answer.body));
 *         http_release(&h);
 *
 * Connects when needed and keeps the connection. One thread uses a struct http.
 *
 *  CLIENTHTTP-1  Before a call is sent on a kept connection, the client checks whether the server
 *      closed it, and replaces it. Nothing was sent, so nothing is repeated.
 *  CLIENTHTTP-2  If a kept connection ends without a byte of an answer, a repeatable call is sent
 *      once more on a new connection. A call that is not repeatable, or that gets no new
 *      connection, returns SLU_EUNKNOWN: it may have happened.
 *  CLIENTHTTP-3  A call ends at its deadline and not before. Without a deadline it waits for ever.
 *  CLIENTHTTP-4  A waiting call that is cancelled (stop_fd) closes its half of the connection, then
 *      reads an answer that was already sent. So an answer that left the server is never
 *      dropped unread. Without such an answer it returns SLU_ECANCELED.
 *  CLIENTHTTP-5  A call with any status returns 0; the caller interprets the status.
 */
#ifndef CLIENT_HTTP_H
#define CLIENT_HTTP_H

#include "client/address.h"
#include "client/answer.h"
#include "client/wire.h"

enum {
	HTTP_BODY_MAX = 64 * 1024 * 1024
};

struct http {
	struct address address;
	struct wire wire;
	struct answer answer; /* the answer of the last call, until the next call */
	struct buf head;      /* the head of the request */
	bool whole;           /* the answer was read to its end */
	bool lent;            /* http_piece returned answer.body */
	bool spoiled;         /* the connection cannot be used again */
	bool repeated;        /* CLIENTHTTP-2: the call was sent twice */
};

/* Writes up to size bytes of a body to p. Returns how many, 0 at the end, or less than 0 on an
 * error. */
typedef int64_t http_source(void *arg, void *p, size_t size);

struct http_call {
	const char *method;
	const char *path;         /* path and query, encoded */
	struct slice body;        /* n 0 = no body */
	http_source *source;      /* the rest of the body after `body`; NULL = none */
	void *source_arg;         /* argument of source; a call with a source is not repeated (CLIENTHTTP-2) */
	const char *content_type; /* NULL = JSON */
	const char *fields;       /* more lines of the head, each with CRLF; NULL = none */
	bool repeatable;          /* CLIENTHTTP-2 */
	bool waits;               /* CLIENTHTTP-4 */
	bool in_pieces;           /* the caller reads the answer by http_piece */
	struct patience until;
	slu_time connect_time; /* a longer connect returns SLU_EDOWN; 0 = no limit but `until` */
};

void http_init(struct http *h, const struct address *address);
void http_release(struct http *h);

/* Closes the connection; the next call opens another. */
void http_hang_up(struct http *h);

/* Returns SLU_EDOWN if there is no server, SLU_EFORBIDDEN if TLS lacks trust, SLU_ETIMEOUT by CLIENTHTTP-3,
 * SLU_ECANCELED by CLIENTHTTP-4, and SLU_EUNKNOWN if the connection broke or the answer is not HTTP: the call
 * may have happened. */
int http_call(struct http *h, const struct http_call *call, struct slu_err *err);

/*
 * The same in two steps, with in_pieces. After http_begin status and fields are set. http_piece returns the
 * next bytes of the body, valid until the next call; n 0 = the end. http_gather reads the rest into
 * answer.body, at most HTTP_BODY_MAX bytes. A caller that stops before the end calls http_hang_up.
 */
int http_begin(struct http *h, const struct http_call *call, struct slu_err *err);
int http_piece(struct http *h, const struct patience *until, struct slice *piece,
	       struct slu_err *err);
int http_gather(struct http *h, const struct patience *until, struct slu_err *err);

/* Appends s to a query: every byte but letters, digits and -._~ becomes %XX. */
void http_encode(struct buf *out, struct slice s);

/* Append a parameter to the query of a path. A parameter with the value NULL is not sent. */
void http_param(struct buf *path, const char *name, const char *value);
void http_param_u64(struct buf *path, const char *name, uint64_t value);

#endif
