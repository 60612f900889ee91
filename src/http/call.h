/*
 * call.h - an HTTP request and its answer: an exchange (net/exchange.h) and its HTTP part.
 *
 *  CALL-6  The head (method, path, query, header fields) is valid until the handler
 *          returns, the body until the call is answered.
 *  CALL-8  A route that has `take` receives the body in pieces of CALL_PIECE bytes or a
 *          little more; the last one may be shorter. c->body is the piece. The handler
 *          owns the call from take(c) on, as in EXCHANGE-1, until it asks for the next
 *          piece (call_next) or answers: then the rest of the body is not read, and the
 *          connection closes behind the answer. After the last piece, which stays where it
 *          is, `handle` runs as always, also for a request without a body. The server
 *          itself answers a body that breaks off, is too long, too slow or malformed, and
 *          only `ended` runs; the same holds if the connection ends. While a handler owns
 *          the call, `gone` runs first.
 *
 *      take(c) ──> call_next ──> take(c) ──> call_next ──> handle(c) ──> answer
 *
 *  CALL-9  http_conf.admit runs before the body is read. A call that it refuses, and so
 *          answers, reaches no handler.
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
 *                 c->x.user = op;
 *                 c->x.gone = cancel_op;      posts a cancel to the op's shard
 *                 c->x.ended = give_back;     if not sent: returns what was granted
 *                 op->done = answer_op;       writes c->x.out, then call_answer
 *                 broker_run(arg, op);
 *         }
 */
#ifndef HTTP_CALL_H
#define HTTP_CALL_H

#include "http/response.h"
#include "net/exchange.h"

enum {
	CALL_PIECE = 256 * 1024 /* CALL-8 */
};

struct call {
	struct exchange x; /* first */

	/* What a handler reads. */
	const struct route *route; /* whose handler was called */
	struct slice method;       /* CALL-6; the handler of GET also serves HEAD */
	struct slice path;         /* CALL-6; still encoded, see http/query.h */
	struct slice query;        /* CALL-6; still encoded */
	struct slice body;         /* CALL-6 */

	/* Private to http/. */
	struct response response; /* writes to x.head */
	const char *type;
	size_t headed; /* bytes of fields that went into the head */
	unsigned status;
	bool upgraded;   /* call_frames */
	uint64_t number; /* of a frame */

	size_t body_at; /* bytes of `in` before the body */

	/* From here on memory is kept for later calls. */
	struct buf in;     /* the body as it arrives, or the read that brought all of it */
	struct buf piece;  /* the piece that take was given */
	struct buf fields; /* added ones: name, NUL, value, NUL, ... */
};

static inline struct call *
call_of(struct exchange *x)
{
	return CONTAINER(x, struct call, x);
}

/* The value of a field of the request; name is in small letters. .p is NULL if the request
 * does not have it. Until the handler returns. */
struct slice call_field(const struct call *c, const char *name);

/* The whole request, for several fields. Until the handler returns. */
const struct request *call_request(const struct call *c);

/* Adds a field to the answer; after call_begin, a trailer, which HTTP/1.0 does not get.
 * SLU_EINVAL as for response_header, or SLU_ENOMEM: the field is left out. */
int call_add(struct call *c, const char *name, struct slice value);

/* The same instead of the field of that name that was added before. */
int call_set(struct call *c, const char *name, struct slice value);

/* The value of a field that was added, or NULL. Until the next one is added. */
const char *call_added(const struct call *c, const char *name);

/* For a log line about a call: the ids that its client gave, if they were added to the
 * answer. */
#define F_CALL(c)                                           \
	F_STR("request_id", call_added(c, "X-Request-Id")), \
		F_STR("correlation_id", call_added(c, "X-Correlation-Id"))

/* Answers it, from any thread; the caller no longer owns c. type is a literal, or NULL for
 * none. Takes the memory of body, which is empty afterwards; &c->x.out is fine, and NULL is
 * an empty body. A body that has failed becomes 503, with a short text if there is memory
 * for it. */
void call_answer(struct call *c, unsigned status, const char *type, struct buf *body);

/* The same with a copy of a short body: usually without an allocation. */
void call_answer_text(struct call *c, unsigned status, const char *type,
		      struct slice body);

/* CALL-8: the piece is done, the next one may come; from any thread. */
void call_next(struct call *c);

/* EXCHANGE-7: answers with a body in pieces, of unknown length: chunked, and for HTTP/1.0
 * until the connection closes. c->x.more is set. c->x.out is the first piece, and may be
 * empty. exchange_piece gives the next ones. */
void call_begin(struct call *c, unsigned status, const char *type);

/* In the handler: answers 101, and the connection has frames from now on (http/frames.h). c->x.user is its own.
 * Returns SLU_ENOMEM; then the call is not answered. */
int call_frames(struct call *c);

#endif
