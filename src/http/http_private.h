/*
 * http_private.h - what the files of the HTTP protocol share.
 */
#ifndef HTTP_HTTP_PRIVATE_H
#define HTTP_HTTP_PRIVATE_H

#include "base/metrics.h"
#include "http/http.h"
#include "net/front.h"
#include "net/protocol.h"

enum {
	HTTP_THREADS = 64,     /* at most */
	HTTP_STATUS_FIRST = 2, /* 2xx: an answer is not 1xx */
	HTTP_CLASSES = 4       /* 2xx to 5xx */
};

struct http_conn {
	struct conn c; /* first */
	struct request request;
	const struct route *route; /* of the last head; NULL: it has none */
	struct frames *frames;     /* http/frames.h; NULL: the connection has requests */
};

/* Of all threads. */
struct http_shared {
	struct http_conf conf; /* defaults filled in */
	void *arg;             /* server_conf.arg */
	struct slu_log *log;
	struct route_table routes;
	struct metrics answers; /* a series per route and class of status: the sum of all threads */
	struct buf busy;        /* the answer of SERVER-5, written before it is needed */
	struct http_thread *threads[HTTP_THREADS];
	unsigned n_threads;
};

struct http_thread {
	struct http_date date;
	slu_time date_read;
	struct metrics answers; /* as the shared ones, of this thread */
};

static inline struct http_conn *
http_conn(struct conn *c)
{
	return CONTAINER(c, struct http_conn, c);
}

static inline const struct request *
http_request(const struct conn *c)
{
	return &CONTAINER(c, const struct http_conn, c)->request;
}

static inline const struct http_shared *
http_shared(const struct front_protocol *p)
{
	return p->shared;
}

/* Counts an answer, and returns the Date of now. */
const char *http_count(struct call *c);

/* --- call.c -------------------------------------------------------------------- */

void call_init(struct exchange *x);
size_t call_reset(struct exchange *x, size_t keep);
void call_release(struct exchange *x);
void call_ended(struct exchange *x, bool sent);
void call_format(struct conn *c, struct exchange *x, bool ends);
void call_format_piece(struct exchange *x);

/* --- http_parse.c -------------------------------------------------------------- */

void http_parse(struct conn *c);
bool http_may_parse(const struct conn *c);
void http_refuse(struct conn *c, enum conn_refusal why);
void http_resume(struct conn *c);

/* Its request is whole: run the handler. */
void http_run(struct call *call);

/* --- http_body.c --------------------------------------------------------------- */

/* Set the limits of the buffered part of a body. */
void http_begin_body(struct call *call);

/* For c->reading, which is not NULL: give its handler the next piece, if there is one and
 * the handler is free, or the end. False: nothing more is parsed now. */
bool http_hand_on(struct conn *c);
bool http_is_paused(const struct conn *c);

#endif
