/*
 * http_parse.c - from bytes to calls.
 */
#include "http/frames.h"

#include "base/log.h"
#include "base/mem.h"

#include <stdio.h>

enum {
	BODY_AHEAD = 64 * 1024, /* set aside at once for a body whose length is known */
	BODY_STAYS = 16 * 1024, /* a body from this size on is not copied if one read brought all of it */
	LOGGED = 128            /* bytes of a path that no route has */
};

static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";

bool
http_may_parse(const struct conn *c)
{
	if (CONTAINER(c, const struct http_conn, c)->frames)
		return frames_may_parse(c);
	return conn_may_begin(c) && !(c->reading && http_is_paused(c));
}

/* --- refusals ---------------------------------------------------------------- */

static void
describe(struct conn *c, struct call *call, const char *reason, struct slice method,
	 struct slice path)
{
	const struct http_shared *const s = http_shared(c->protocol);
	const struct http_refusal why = { call->status, reason, call->route, method, path };

	call->type = "text/plain";
	if (s->conf.describe)
		call->type = s->conf.describe(&call->x.out, &why, s->arg);
	else
		buf_printf(&call->x.out, "%u %s: %s\n", call->status,
			   http_reason(call->status), reason);
}

/* The call that is being read, or a new one behind all others; NULL: no memory. */
static struct call *
refused_call(struct conn *c)
{
	struct exchange *const x = c->reading ? c->reading : conn_add(c);

	c->reading = NULL;
	return x ? call_of(x) : NULL;
}

/* Answers by itself and reads no further; reason is a word for machines. */
static void
refuse(struct conn *c, unsigned status, const char *reason)
{
	const struct request *const r = http_request(c);
	const struct slice method = c->reading ? r->method : (struct slice){ 0 };
	const struct slice path = c->reading ? r->path : (struct slice){ 0 };
	struct call *call = refused_call(c);

	c->unread = true;
	c->last = true;
	if (!call) {
		conn_close(c);
		return;
	}
	log_debug(http_shared(c->protocol)->log, "request refused",
		  F_U64("status", status), F_STR("reason", reason), F_CALL(call));
	response_begin(&call->response, &call->x.head, NULL);
	call->x.answered = true;
	call->status = status;
	buf_clear(&call->x.out);
	describe(c, call, reason, method, path);
	if (call->x.out.failed)
		buf_clear(&call->x.out); /* the status is enough */
	if (status == 503)
		(void)call_add(call, "Retry-After", SLICE("1")); /* better without */
	conn_answer(c, &call->x);
}

void
http_refuse(struct conn *c, enum conn_refusal why)
{
	static const struct {
		unsigned status;
		const char *reason;
	} rows[] = {
		[CONN_SLOW_HEAD] = { 408, "head_too_slow" },
		[CONN_SLOW_BODY] = { 408, "body_too_slow" },
		[CONN_STARTING] = { 503, "starting" },
		[CONN_MEMORY] = { 503, "request_memory" },
		[CONN_PLAIN] = { 400, "this port speaks TLS: use https://" },
	};

	if (http_conn(c)->frames)
		conn_close(c); /* an answer has no place between frames */
	else
		refuse(c, rows[why].status, rows[why].reason);
}

void
http_resume(struct conn *c)
{
	if (http_request(c)->expect_continue && c->in.n == 0)
		c->reading->ahead = slice_of(go_on);
}

/* Method and path as they were sent, up to LOGGED bytes; the log escapes them. */
static void
log_refused_route(const struct conn *c, const struct call *call, const char *reason)
{
	const struct request *r = http_request(c);
	char method[LOGGED + 1], path[LOGGED + 1];

	(void)snprintf(method, sizeof method, "%.*s", (int)r->method.n, r->method.p);
	(void)snprintf(path, sizeof path, "%.*s", (int)r->path.n, r->path.p);
	log_debug(http_shared(c->protocol)->log, "request refused", F_U64("status", call->status),
		  F_STR("reason", reason), F_STR("method", method), F_STR("path", path),
		  F_CALL(call));
}

/* No route has the path, or the method. A body is not read: then the connection ends. */
static void
refuse_route(struct conn *c, struct call *call, unsigned status)
{
	const struct http_shared *const s = http_shared(c->protocol);
	const struct request *r = http_request(c);
	const char *const reason = status == 405 ? "method_not_allowed" : "no_such_path";
	const bool has_body = r->chunked || r->length > 0;
	struct buf allow;

	buf_init(&allow, 256);
	if (status == 405)
		route_allow(&s->routes, r->path, &allow);
	if (allow.n > 0)
		(void)call_add(call, "Allow", buf_slice(&allow)); /* or without */
	buf_release(&allow);
	call->x.answered = true;
	call->status = status;
	call->type = status == 404 && s->conf.page ? s->conf.page(call, s->arg) : NULL;
	if (!call->type)
		describe(c, call, reason, r->method, r->path);
	log_refused_route(c, call, reason);
	if (has_body) {
		call->response.keep_alive = false;
		c->unread = true;
		c->last = true;
	}
	c->reading = NULL;
	if (call->x.out.failed)
		buf_clear(&call->x.out); /* the status is enough */
	conn_answer(c, &call->x);
}

/* --- the events of a request -------------------------------------------------- */

/* Otherwise a body that arrives in pieces is moved again and again as it grows. */
static void
reserve_body(struct call *call, uint64_t length)
{
	const size_t size = length < BODY_AHEAD ? (size_t)length + 1 : BODY_AHEAD;
	char *p;

	if (length == 0 || call->in.size >= size)
		return;
	p = mem_alloc(size);
	if (!p)
		return; /* it is asked for again when the bytes come */
	mem_free(call->in.p);
	call->in.p = p;
	call->in.size = size;
}

/* Whether a body of `length` bytes that begins at p can stay where the read has put it. */
static bool
may_stay(const struct conn *c, const struct call *call, const char *p, uint64_t length)
{
	return length >= BODY_STAYS && length <= FRONT_READ && call->in.n == 0 && !call->route->take &&
	       conn_may_swap(c, (struct slice){ p, (size_t)length });
}

/* The call keeps the buffer of this read, which has the whole body, and the front gets another buffer for the next read.
 * Returns false if no memory is left for that. */
static bool
keep_read(struct conn *c, struct call *call, struct slice body)
{
	struct buf *const in = &call->in;

	if (in->size != FRONT_READ + 1) {
		char *const p = mem_alloc(FRONT_READ + 1);

		if (!p)
			return false;
		mem_free(in->p);
		in->p = p;
		in->size = FRONT_READ + 1;
	}
	in->p = conn_swap_read(c, in->p);
	call->body_at = (size_t)(body.p - in->p);
	in->n = call->body_at + body.n;
	return true;
}

/* CALL-9. The body of a refused call is not read: then the connection ends. */
static bool
authorize(struct conn *c, struct call *call)
{
	const struct http_shared *const s = http_shared(c->protocol);
	const struct request *const r = http_request(c);
	const bool has_body = r->chunked || r->length > 0;
	const bool keep_alive = call->response.keep_alive;

	if (!s->conf.authorize)
		return true;
	c->reading = NULL;
	call->response.keep_alive = keep_alive && !has_body;
	if (s->conf.authorize(call, s->arg)) {
		c->reading = &call->x;
		call->response.keep_alive = keep_alive;
		return true;
	}
	c->unread |= has_body;
	return false;
}

/* The route of the head; false: it was refused. */
static bool
find_route(struct conn *c, struct call *call)
{
	const struct request *const r = http_request(c);
	struct http_conn *const h = http_conn(c);
	unsigned status = 0;

	if (!r->repeated || !h->route)
		h->route = route_find(&http_shared(c->protocol)->routes, r->method, r->path, &status);
	call->route = h->route;
	if (!call->route) {
		refuse_route(c, call, status);
		return false;
	}
	if (c->reserved && !call->route->vital) {
		front_count(c->front, SERVER_TURNED_AWAY, 1);
		refuse(c, 503, "connections");
		return false;
	}
	call->x.exempt = call->route->settles || (call->route->vital && !call->route->alone);
	return true;
}

static void
on_head(struct conn *c)
{
	struct request *const r = &http_conn(c)->request;
	struct exchange *const x = conn_add(c);
	struct call *call;

	if (!x) {
		refuse(c, 503, "out_of_memory");
		return;
	}
	call = call_of(x);
	c->reading = x;
	response_begin(&call->response, &x->head, r);
	if (c->reserved)
		call->response.keep_alive = false;
	if (!find_route(c, call))
		return;
	call->method = r->method;
	call->path = r->path;
	call->query = r->query;
	if (!authorize(c, call))
		return;
	request_limit_body(r, call->route->max_body);
	if (r->refused)
		return;
	http_begin_body(call);
	if (!call->route->early && conn_hold(c, x))
		return;
	if (c->rest.n < r->length || !may_stay(c, call, c->rest.p, r->length))
		reserve_body(call, r->length);
	if (r->expect_continue && c->rest.n == 0)
		x->ahead = slice_of(go_on);
}

static void
refuse_memory(struct conn *c)
{
	front_count(c->front, SERVER_NO_MEMORY, 1);
	http_refuse(c, CONN_MEMORY);
}

static void
on_body(struct conn *c, struct slice body)
{
	struct exchange *const x = c->reading;
	struct buf *const in = x ? &call_of(x)->in : NULL;

	c->moved += body.n;
	if (!x)
		return; /* of a request that was refused */
	if (body.n != http_request(c)->length || !may_stay(c, call_of(x), body.p, body.n) || !keep_read(c, call_of(x), body))
		buf_put(in, body.p, body.n);
	conn_charge(c->front, x, body.n);
	if (in->failed && x->taking)
		conn_close(c); /* it cannot be answered now */
	else if (in->failed)
		refuse(c, 503, "out_of_memory");
	else if (!x->taking && !conn_has_memory(c->front, x))
		refuse_memory(c);
}

static void
on_end(struct conn *c)
{
	struct exchange *const x = c->reading;
	struct call *const call = x ? call_of(x) : NULL;

	c->begun = false;
	c->wait = WAIT_HANDLER; /* the next request has its full time */
	if (!http_request(c)->keep_alive || c->reserved)
		c->last = true;
	if (!call)
		return;
	if (x->ahead.n == strlen(go_on))
		x->ahead.n = 0; /* the client did not wait for it */
	x->arrived = true;
	if (call->route->take)
		return; /* CALL-8: http_hand_on continues */
	if (!x->charged && !conn_has_memory(c->front, x)) {
		refuse_memory(c);
		return;
	}
	c->reading = NULL;
	call->body = (struct slice){ call->in.p ? call->in.p + call->body_at : NULL, call->in.n - call->body_at };
	http_run(call);
}

void
http_run(struct call *call)
{
	call->x.state = EXCHANGE_RUNNING;
	if (call->route->alone)
		exchange_hold(&call->x);
	call->route->handle(call, exchange_arg(&call->x));
}

static void
on_refused(struct conn *c)
{
	const struct request_refusal *why = request_refusal(http_request(c));

	front_count(c->front, SERVER_PARSE_ERRORS, 1);
	front_count(c->front, SERVER_TOO_LARGE, why->status == 413);
	refuse(c, (unsigned)why->status, why->reason);
}

static enum request_event
parse_one(struct conn *c)
{
	struct slice body = { NULL, 0 };
	const enum request_event e = request_next(&http_conn(c)->request, &c->rest, &body);

	switch (e) {
	case REQUEST_HEAD:
		on_head(c);
		break;
	case REQUEST_BODY:
		on_body(c, body);
		break;
	case REQUEST_END:
		on_end(c);
		break;
	case REQUEST_REFUSED:
		if (c->reading && http_is_paused(c))
			return REQUEST_MORE; /* when its handler is done with a piece */
		on_refused(c);
		break;
	case REQUEST_MORE:
		break;
	}
	return e;
}

/* A client that begins a TLS handshake here would wait for an answer in TLS. */
static void
refuse_tls(struct conn *c)
{
	front_count(c->front, SERVER_PARSE_ERRORS, 1);
	refuse(c, 400, "this port does not speak TLS: use http://");
}

/* A call whose body is being read continues, also if new requests must wait. */
void
http_parse(struct conn *c)
{
	while (c->generation != 0) {
		if (http_conn(c)->frames) {
			frames_parse(c);
			return;
		}
		/* Also of the last request: the bytes that have arrived are handed on. */
		if (conn_is_held(c) || (c->reading && !http_hand_on(c)) || c->last || (!c->reading && !http_may_parse(c)))
			return;
		if (!c->reading && c->rest.n == 0 && !c->begun)
			return;
		if (!c->begun && c->rest.n > 0 && c->rest.p[0] == TLS_FIRST_BYTE) {
			refuse_tls(c);
			return;
		}
		c->begun |= c->rest.n > 0;
		if (parse_one(c) == REQUEST_MORE)
			return;
	}
}
