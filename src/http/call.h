/*
 * call.h - one request and its answer.
 *
 *      handler(c) ──> answers now ───────────────┐
 *          │                                     v
 *          └─> keeps c, any thread ──> call_answer ──> written in its turn ──> ended
 *                       │
 *                       └─ the client is gone: gone(c), then call_answer all the same
 *
 *  C1  A call is the handler's from the moment it is given one until it calls
 *      call_answer. It may hand it to any thread; one at a time has it.
 *  C2  Every call is answered exactly once, also after `gone`: then the answer goes
 *      nowhere and costs nothing, but brings the call back. Soon, for its server
 *      cannot be closed before.
 *  C3  `gone` is told on the loop, at most once, and exactly once when the connection
 *      goes before the answer has arrived on the loop. An answer that another thread
 *      has just given may still be on its way: whatever `user` points to must stay
 *      until `ended`.
 *  C4  `ended` is told on the loop, exactly once, last; sent: the kernel has every
 *      byte of the answer and had not heard of the client's end.
 *  C5  A call that has `gone` set is not answered to a client that has closed its
 *      sending side: it is taken for one that hung up, and the whole connection
 *      closes. Without `gone` such a client still gets its answers.
 *  C7  An answer may come in pieces: call_begin, then for each piece `more` on the loop,
 *      when the kernel has all that was given before. The call is the handler's again
 *      from then on, as C1 says, until it gives the piece (call_piece) or gives up
 *      (call_break), now or later, from any thread. So a slow reader costs one piece of
 *      memory, and a client that is gone ends it: `gone` may be told at any time after
 *      call_begin, and `more` no more then.
 *
 *      handler ──> call_begin ──> more(c) ──> call_piece ──> more(c) ──> call_piece, last
 *                                                                              └─> ended
 *
 *  C8  A route that has `take` gets the body in pieces, of CALL_PIECE bytes or a little
 *      more; the last may be shorter. Each is c->body: from take(c) on the call is the
 *      handler's, as C1 says, until it asks for the next (call_next), or answers: then
 *      what is left of the body is not read, and the connection closes behind the
 *      answer. After the last piece, which stays where it is until then, `handle` is
 *      called as ever, and also for a request without a body. A body that breaks off, is
 *      too long, too slow or not well formed is answered by the server, and only `ended`
 *      is told. So is the end of a connection, and while a handler has the call, `gone`.
 *
 *      take(c) ──> call_next ──> take(c) ──> call_next ──> handle(c) ──> as above
 *
 *  C6  The head (method, path, query, header fields) is good until the handler
 *      returns, the body until the call is answered.
 *  C9  Before the body is read server_conf.admit is asked. A call that it refuses, and
 *      so answers, comes to no handler. `who` is its; it has it back when the call ends.
 *
 *         static void
 *         handle_claim(struct call *c, void *arg)
 *         {
 *                 struct op *op = op_of(c->query, c->body);
 *
 *                 if (!op) {
 *                         call_answer_text(c, 400, "text/plain", SLICE("what?\n"));
 *                         return;
 *                 }
 *                 c->user = op;
 *                 c->gone = cancel_op;        posts a cancel to the op's shard
 *                 c->ended = give_back;       when not sent: returns what was granted
 *                 op->done = answer_op;       writes c->out, then call_answer
 *                 broker_run(arg, op);
 *         }
 */
#ifndef HTTP_CALL_H
#define HTTP_CALL_H

#include "base/list.h"
#include "http/request.h"
#include "http/response.h"
#include "net/loop.h"

enum {
	CALL_PIECE = 256 * 1024, /* C8 */
	CALL_ADDRESS = 64        /* bytes of an address as text, with its end */
};

struct tls_peer;
struct front; /* the part of a server that one loop owns */

struct call {
	/* What a handler reads. */
	const struct route *route; /* whose handler was called */
	struct slice method;       /* C6; HEAD comes to the handler of GET */
	struct slice path;         /* C6; still encoded, see http/query.h */
	struct slice query;        /* C6; still encoded */
	struct slice body;         /* C6 */
	bool arrived;              /* C8: and this is the last piece of it */
	unsigned listener;         /* which of server_listen's addresses, from 0 */
	void *who;                 /* C9 */

	/* What it may set before it returns, or leave NULL. */
	void *user;
	void (*gone)(struct call *c);
	void (*ended)(struct call *c, bool sent);
	void (*more)(struct call *c); /* C7; with gone, may be set until call_begin */

	/* For `ended` of an answer in pieces: the client ended well, in the moment before
	 * `more` was told, when the kernel had all that was given. */
	bool drained;

	/* Inner: conn.c's and call.c's. */
	struct loop_work work;
	struct front *front;
	uint32_t slot; /* of the connection; with generation, its name */
	uint32_t generation;
	struct list node; /* in the connection's calls, in order of arrival */
	struct call *next_spare;
	struct response response; /* writes to head */
	struct slice interim;     /* "100 Continue", what is unsent of it */
	const char *type;
	size_t charged; /* bytes of its body in the front's `bodies` */
	size_t held;    /* the same of its answer */
	size_t written; /* bytes of head and out that the kernel has */
	size_t headed;  /* bytes of fields that went into the head */
	slu_time began; /* on the clock of the loop */
	unsigned status;
	uint8_t state; /* enum call_state */
	bool answered; /* the handler's: C2 */
	bool has_body; /* out is sent behind head */
	bool holds;
	bool awaits_start; /* S10 */
	bool streams;      /* C7 */
	bool whole;        /* and there are no more pieces */
	bool asks;         /* the kernel has all pieces; `more` is about to be told */
	bool broke;
	bool taking; /* C8: the handler has a piece */

	/* The body of the answer may be written here. From here on memory is used
	 * again by later calls. */
	struct buf out;

	struct buf in;     /* inner: the body as it arrives */
	struct buf piece;  /* inner: what take was given */
	struct buf head;   /* inner: the answer up to its body, or with a short one */
	struct buf fields; /* inner: added ones: name, NUL, value, NUL, ... */
};

/* The value of a field of the request, given in small letters; .p is NULL when there
 * is none. Until the handler returns. */
struct slice call_field(const struct call *c, const char *name);

/* Who the client is by its certificate (net/tls_peer.h), or NULL. Until the handler
 * returns. */
const struct tls_peer *call_peer(const struct call *c);

/* Does the certificate that the server showed on this connection have this name? False
 * without TLS. Until the handler returns. */
bool call_is_named(const struct call *c, struct slice host);

/* Did it come by TLS? Until the handler returns. */
bool call_is_tls(const struct call *c);

/* Where the client is: "10.0.0.7", "2001:db8::7", "unix", or "" if it is gone. On the loop. */
void call_address(const struct call *c, char out[static CALL_ADDRESS]);

/* Did a process of the server's own user, or of root, open the unix socket it came by? By the
 * credentials that the system keeps of it. False for TCP. On the loop. */
bool call_is_owner(const struct call *c);

/* The loop that the call came by: post to it what must be done there. */
struct loop *call_loop(const struct call *c);

/* Which of the server's threads that is, from 0. */
unsigned call_thread(const struct call *c);

/* server_conf.arg, as the handler has it. */
void *call_arg(const struct call *c);

/* In the handler: this may wait for long. Nothing behind it on its connection is
 * looked at until it is answered. */
void call_hold(struct call *c);

/* A field for the answer; after call_begin one for the end of it, a trailer, which HTTP/1.0
 * does not get. SLU_EINVAL as for response_header, or SLU_ENOMEM: the
 * field is left out. */
int call_add(struct call *c, const char *name, struct slice value);

/* The same instead of one of that name that was added before. */
int call_set(struct call *c, const char *name, struct slice value);

/* The value of a field that was added, or NULL. Until the next one is added. */
const char *call_added(const struct call *c, const char *name);

/* For a log line about a call: the ids its client gave it, if they were added to the
 * answer. */
#define F_CALL(c)                                           \
	F_STR("request_id", call_added(c, "X-Request-Id")), \
		F_STR("correlation_id", call_added(c, "X-Correlation-Id"))

/* Answer it, from any thread; c is no longer the caller's. type is a literal, or NULL
 * for none. Takes the memory of body, which is empty afterwards; &c->out is fine, and
 * NULL is an empty body. A body that has failed is answered 503, with a few words if there
 * is memory for these. */
void call_answer(struct call *c, unsigned status, const char *type, struct buf *body);

/* The same with a copy of a short body: no memory is asked for in the usual case. */
void call_answer_text(struct call *c, unsigned status, const char *type,
		      struct slice body);

/* C8: the piece is done with, the next may come; from any thread. */
void call_next(struct call *c);

/* C7: the same for a body that comes in pieces, whose length nobody knows yet: chunked,
 * or for HTTP/1.0 ended by the end of the connection. c->more is set. What is in c->out
 * is the first piece, and may be nothing. */
void call_begin(struct call *c, unsigned status, const char *type);

/* What is in c->out is the next piece; last: and there are no more. Only the last may be
 * empty. A piece that has failed breaks the answer. */
void call_piece(struct call *c, bool last);

/* It cannot be finished: the connection closes, so the client knows that it is not
 * whole. */
void call_break(struct call *c);

#endif
