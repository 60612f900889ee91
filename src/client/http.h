/*
 * http.h - a small HTTP/1.1 client: one connection, one call at a time, blocking.
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
 *      more on a fresh one if the caller said that it may be repeated. Otherwise it is
 *      SLU_EUNKNOWN: it may have happened.
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
};

struct http_call {
	const char *method;
	const char *path;  /* with its query, encoded */
	struct slice body; /* JSON; n 0: none */
	bool repeatable;   /* K2 */
	bool waits;        /* K4 */
	struct patience until;
};

void http_init(struct http *h, const struct address *address);
void http_release(struct http *h);

/* Close the connection; the next call makes another. */
void http_hang_up(struct http *h);

/* SLU_EDOWN: no server. SLU_EFORBIDDEN: TLS without trust. SLU_ETIMEOUT, SLU_ECANCELED: K3, K4. SLU_EUNKNOWN: the
 * connection broke, or what came is no HTTP; the call may have happened. */
int http_call(struct http *h, const struct http_call *call, struct slu_err *err);

/* Append s to a query: everything but letters, digits and -._~ becomes %XX. */
void http_encode(struct buf *out, struct slice s);

#endif
