/*
 * http.h - a small HTTP/1.1 client: one connection, one call at a time, blocking. Bodies
 * whole or in pieces, in both directions.
 *
 *         struct http h;
 *
 *         http_init(&h, &address);
 *         http_call(&h, &(struct http_call){ .method = "GET", .path = "/stats",
 *                   .until = { SLU_NEVER, -1 } }, &err);
 *         use(h.answer.status, buf_slice(&h.answer.body));
 *         http_release(&h);
 *
 * Connects when it has to and keeps the connection. A struct is one thread's.
 *
 *  K1  A kept connection that the server has closed meanwhile is seen before anything
 *      is sent on it, and replaced: nothing was sent, so nothing is repeated.
 *  K2  When a kept connection ends without a byte of an answer, the call is made once
 *      more on a fresh one if the caller said that it may be repeated. Otherwise, or when
 *      there is no fresh one, it is SLU_EUNKNOWN: it may have happened.
 *  K3  A call ends at its deadline and not before. Without one it waits for ever.
 *  K4  A call that waits and is not wanted any more (stop_fd) first says so by closing
 *      its half of the connection, and then takes what was already on its way: so an
 *      answer that left the server is never dropped unread. If none was: SLU_ECANCELED.
 *  K5  Any status is an answer and returns 0; what it means is the caller's.
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
	struct answer answer; /* of the last call, until the next */
	struct buf head;      /* of the request */
	bool whole;           /* the answer is, to its end */
	bool lent;            /* answer.body was given out by http_piece */
	bool spoiled;         /* the connection is not to be used again */
	bool repeated;        /* K2: the call was sent twice */
};

/* Up to size bytes of a body into p: how many, 0 at the end, less than 0: there will be
 * none. */
typedef int64_t http_source(void *arg, void *p, size_t size);

struct http_call {
	const char *method;
	const char *path;         /* with its query, encoded */
	struct slice body;        /* n 0: none */
	http_source *source;      /* the body comes from there, after `body`; NULL: that is all */
	void *source_arg;         /* used once: K2 does not hold */
	const char *content_type; /* NULL: JSON */
	const char *fields;       /* more of the head, each line with its CRLF; or NULL */
	bool repeatable;          /* K2 */
	bool waits;               /* K4 */
	bool in_pieces;           /* the answer is had by http_piece */
	struct patience until;
	slu_time connect_time; /* a connection that takes longer is SLU_EDOWN; 0: `until` */
};

void http_init(struct http *h, const struct address *address);
void http_release(struct http *h);

/* Close the connection; the next call makes another. */
void http_hang_up(struct http *h);

/* SLU_EDOWN: no server. SLU_EFORBIDDEN: TLS without trust. SLU_ETIMEOUT, SLU_ECANCELED: K3, K4. SLU_EUNKNOWN: the
 * connection broke, or what came is no HTTP; the call may have happened. */
int http_call(struct http *h, const struct http_call *call, struct slu_err *err);

/*
 * The same in two steps, with in_pieces. After http_begin status and fields are there.
 * http_piece gives what comes next of the body, good until the next call; n 0: that was
 * all. http_gather takes the rest into answer.body, bounded by HTTP_BODY_MAX. Who stops
 * before the end hangs up.
 */
int http_begin(struct http *h, const struct http_call *call, struct slu_err *err);
int http_piece(struct http *h, const struct patience *until, struct slice *piece,
	       struct slu_err *err);
int http_gather(struct http *h, const struct patience *until, struct slu_err *err);

/* rc of another try, after one that was sent and not answered: SLU_EDOWN is SLU_EUNKNOWN
 * then. */
int http_in_doubt(int rc, struct slu_err *err);

/* Append s to a query: everything but letters, digits and -._~ becomes %XX. */
void http_encode(struct buf *out, struct slice s);

#endif
