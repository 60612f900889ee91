/*
 * conn_parse.c - from bytes to calls.
 */
#include "http/conn.h"

#include "base/log.h"
#include "base/mem.h"
#include "http/front.h"

#include <assert.h>
#include <stdio.h>

enum {
	BODY_AHEAD = 64 * 1024, /* set aside at once for a body whose length is known */
	LOGGED = 128            /* bytes of a path that no route has */
};

bool
conn_may_parse(const struct conn *c)
{
	return c->generation != 0 && !c->last && !c->lingering && c->n_held == 0 &&
	       !conn_is_paused(c) && !conn_is_held(c) &&
	       c->n_calls < c->front->shared->conf.max_pipeline &&
	       c->output <= CONN_OUTPUT_LOW;
}

/* --- refusals ---------------------------------------------------------------- */

static void
describe(struct conn *c, struct call *call, const char *reason, struct slice method,
	 struct slice path)
{
	const struct server_conf *conf = &c->front->shared->conf;

	call->type = conf->describe ? conf->describe_type : "text/plain";
	if (conf->describe)
		conf->describe(&call->out, call->status, reason, method, path, conf->arg);
	else
		buf_printf(&call->out, "%u %s: %s\n", call->status,
			   http_reason(call->status), reason);
}

static struct call *
add_call(struct conn *c)
{
	struct call *call = call_new(c->front);

	if (!call)
		return NULL;
	call->slot = c->slot;
	call->generation = c->generation;
	call->listener = c->listener;
	list_append(&c->calls, &call->node);
	c->n_calls++;
	return call;
}

/* The one that is being read, or a new one behind all others. */
static struct call *
refused_call(struct conn *c)
{
	struct call *call = c->reading;

	if (!call)
		call = add_call(c);
	c->reading = NULL;
	return call;
}

void
conn_refuse(struct conn *c, unsigned status, const char *reason)
{
	const struct slice method = c->reading ? c->request.method : (struct slice){ 0 };
	const struct slice path = c->reading ? c->request.path : (struct slice){ 0 };
	struct call *call = refused_call(c);

	c->unread = true;
	c->last = true;
	if (!call) {
		conn_close(c);
		return;
	}
	log_debug(c->front->shared->conf.log, "request refused",
		  F_U64("status", status), F_STR("reason", reason), F_CALL(call));
	response_begin(&call->response, &call->head, NULL);
	call->answered = true;
	call->status = status;
	buf_clear(&call->out);
	describe(c, call, reason, method, path);
	if (status == 503)
		(void)call_add(call, "Retry-After", SLICE("1")); /* better without */
	conn_answer(c, call);
}

/* What no route has is told as it was sent, up to LOGGED bytes; the log escapes it. */
static void
log_refused_route(const struct conn *c, const struct call *call, const char *reason)
{
	const struct request *r = &c->request;
	char method[LOGGED + 1], path[LOGGED + 1];

	(void)snprintf(method, sizeof method, "%.*s", (int)r->method.n, r->method.p);
	(void)snprintf(path, sizeof path, "%.*s", (int)r->path.n, r->path.p);
	log_debug(c->front->shared->conf.log, "request refused", F_U64("status", call->status),
		  F_STR("reason", reason), F_STR("method", method), F_STR("path", path),
		  F_CALL(call));
}

/* No row for it. With a body it is also the end of the connection: nobody wants to
 * read that. */
static void
refuse_route(struct conn *c, struct call *call, unsigned status)
{
	const struct server_conf *const conf = &c->front->shared->conf;
	const struct request *r = &c->request;
	const char *const reason = status == 405 ? "method_not_allowed" : "no_such_path";
	const bool has_body = r->chunked || r->length > 0;
	struct buf allow;

	buf_init(&allow, 256);
	if (status == 405)
		route_allow(&c->front->shared->routes, r->path, &allow);
	if (allow.n > 0)
		(void)call_add(call, "Allow", buf_slice(&allow)); /* or without */
	buf_release(&allow);
	call->answered = true;
	call->status = status;
	call->type = status == 404 && conf->page ? conf->page(call, conf->arg) : NULL;
	if (!call->type)
		describe(c, call, reason, r->method, r->path);
	log_refused_route(c, call, reason);
	if (has_body) {
		call->response.keep_alive = false;
		c->unread = true;
		c->last = true;
	}
	c->reading = NULL;
	conn_answer(c, call);
}

/* --- the events of a request -------------------------------------------------- */

/* A body that arrives in pieces would else be moved again and again as it grows. */
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

/* C9. As for a route that is not there: a body that nobody wants to read is also the end
 * of the connection. */
static bool
admit(struct conn *c, struct call *call)
{
	const struct server_conf *const conf = &c->front->shared->conf;
	const struct request *const r = &c->request;
	const bool has_body = r->chunked || r->length > 0;
	const bool keep_alive = call->response.keep_alive;

	if (!conf->admit)
		return true;
	c->reading = NULL;
	call->response.keep_alive = keep_alive && !has_body;
	if (conf->admit(call, conf->arg)) {
		c->reading = call;
		call->response.keep_alive = keep_alive;
		return true;
	}
	c->unread |= has_body;
	return false;
}

static void
on_head(struct conn *c)
{
	struct request *r = &c->request;
	struct call *call = add_call(c);
	unsigned status;

	if (!call) {
		conn_refuse(c, 503, "out_of_memory");
		return;
	}
	c->reading = call;
	response_begin(&call->response, &call->head, r);
	if (c->reserved)
		call->response.keep_alive = false;
	call->route = route_find(&c->front->shared->routes, r->method, r->path, &status);
	if (!call->route) {
		refuse_route(c, call, status);
		return;
	}
	if (c->reserved && !call->route->vital) {
		front_count(c->front, SERVER_TURNED_AWAY, 1);
		conn_refuse(c, 503, "connections");
		return;
	}
	call->method = r->method;
	call->path = r->path;
	call->query = r->query;
	if (!admit(c, call))
		return;
	request_limit_body(r, call->route->max_body);
	if (r->refused)
		return;
	conn_begin_body(call);
	if (conn_hold(c, call))
		return;
	reserve_body(call, r->length);
	if (r->expect_continue && c->rest.n == 0)
		call->interim = slice_of(conn_go_on);
}

bool
conn_has_memory(const struct front *f, const struct call *call)
{
	const struct route *const r = call->route;

	return f->bodies <= atomic_load_explicit(&f->shared->max_bodies, memory_order_relaxed) ||
	       f->bodies == call->charged || r->settles || (r->vital && !r->alone);
}

static void
refuse_memory(struct conn *c)
{
	front_count(c->front, SERVER_NO_MEMORY, 1);
	conn_refuse(c, 503, "request_memory");
}

void
conn_charge(struct front *f, struct call *call, size_t n)
{
	f->bodies += n;
	call->charged += n;
	front_count(f, SERVER_BODIES, n);
}

static void
on_body(struct conn *c, struct slice body)
{
	struct call *call = c->reading;

	c->moved += body.n;
	if (!call)
		return; /* of a request that was refused */
	buf_put(&call->in, body.p, body.n);
	conn_charge(c->front, call, body.n);
	if (call->in.failed && call->taking) {
		conn_close(c); /* it cannot be answered now */
	} else if (call->in.failed) {
		conn_refuse(c, 503, "out_of_memory");
	} else if (!call->taking && !conn_has_memory(c->front, call)) {
		refuse_memory(c);
	}
}

static void
on_end(struct conn *c)
{
	const struct request *r = &c->request;
	struct call *call = c->reading;

	c->begun = false;
	c->wait = WAIT_CALL; /* whatever comes next has its full time */
	if (!r->keep_alive || c->reserved)
		c->last = true;
	if (!call) {
		c->reading = NULL;
		return;
	}
	if (call->interim.n == strlen(conn_go_on))
		call->interim.n = 0; /* it did not wait to be told */
	call->arrived = true;
	if (call->route->take)
		return; /* C8: conn_hand_on goes on */
	if (!call->charged && !conn_has_memory(c->front, call)) {
		refuse_memory(c);
		return;
	}
	c->reading = NULL;
	call->body = buf_slice(&call->in);
	conn_run(c, call);
}

void
conn_run(struct conn *c, struct call *call)
{
	call->state = CALL_RUNNING;
	if (call->route->alone)
		call_hold(call);
	call->route->handle(call, c->front->shared->conf.arg);
}

static void
on_refused(struct conn *c)
{
	const struct request_refusal *why = request_refusal(&c->request);

	front_count(c->front, SERVER_PARSE_ERRORS, 1);
	front_count(c->front, SERVER_TOO_LARGE, why->status == 413);
	conn_refuse(c, (unsigned)why->status, why->reason);
}

static enum request_event
parse_one(struct conn *c)
{
	struct slice body = { NULL, 0 };
	const enum request_event e = request_next(&c->request, &c->rest, &body);

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
		if (conn_is_paused(c))
			return REQUEST_MORE; /* when its handler is done with a piece */
		on_refused(c);
		break;
	case REQUEST_MORE:
		break;
	}
	return e;
}

/* A client that begins a handshake here would wait for ours. */
static void
refuse_tls(struct conn *c)
{
	front_count(c->front, SERVER_PARSE_ERRORS, 1);
	conn_refuse(c, 400, "this port does not speak TLS: use http://");
}

/* A call whose body is being read goes on whatever else waits. */
void
conn_parse(struct conn *c)
{
	while (c->generation != 0) {
		/* Also of the last request: what has arrived of it is handed on. */
		if (conn_is_held(c) || !conn_hand_on(c) || c->last || (!c->reading && !conn_may_parse(c)))
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
