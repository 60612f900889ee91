/*
 * call.c - the HTTP part of an exchange: header fields, and the bytes of answers.
 */
#include "http/call.h"

#include "base/log.h"
#include "http/chars.h"
#include "http/frames.h"

#include <assert.h>

enum {
	COPIED_BODY = 512, /* a shorter body is copied behind the head: one piece */
	FIELDS_MAX = 16 * 1024
};

/* --- pool ---------------------------------------------------------------------- */

void
call_init(struct exchange *x)
{
	struct call *const c = call_of(x);

	buf_init(&c->in, SIZE_MAX);
	buf_init(&c->piece, SIZE_MAX);
	buf_init(&c->fields, FIELDS_MAX);
}

static size_t
trim(struct buf *b, size_t keep)
{
	if (b->size == 0 && !b->failed)
		return 0;
	if (b->size > keep)
		buf_release(b);
	buf_clear(b);
	return b->size;
}

size_t
call_reset(struct exchange *x, size_t keep)
{
	struct call *const c = call_of(x);

	memset(&c->route, 0, offsetof(struct call, in) - offsetof(struct call, route));
	return trim(&c->in, keep) + trim(&c->piece, keep) + trim(&c->fields, keep);
}

void
call_release(struct exchange *x)
{
	struct call *const c = call_of(x);

	buf_release(&c->in);
	buf_release(&c->piece);
	buf_release(&c->fields);
}

/* The route, not the path: a path may contain anything. */
void
call_ended(struct exchange *x, bool sent)
{
	const struct call *const c = call_of(x);

	log_debug(http_shared(x->protocol)->log, "request",
		  F_STR("method", c->route ? c->route->method : NULL),
		  F_STR("route", c->route ? c->route->path : NULL),
		  F_U64("status", c->status), F_U64("bytes_in", c->body.n),
		  F_TIME("seconds", loop_now(x->front->loop) - x->began),
		  F_BOOL("sent", sent), F_CALL(c));
}

/* --- fields -------------------------------------------------------------------- */

const struct request *
call_request(const struct call *c)
{
	const struct conn *const conn = exchange_conn(&c->x);

	assert(loop_is_here(c->x.front->loop) && conn); /* CALL-6 */
	return http_request(conn);
}

struct slice
call_field(const struct call *c, const char *name)
{
	return request_header(call_request(c), name);
}

int
call_add(struct call *c, const char *name, struct slice value)
{
	const size_t n = c->fields.n;

	if (!http_all(value, CHAR_VALUE))
		return SLU_EINVAL;
	buf_put(&c->fields, name, strlen(name) + 1);
	buf_put(&c->fields, value.p, value.n);
	buf_putc(&c->fields, '\0');
	if (!c->fields.failed)
		return 0;
	c->fields.n = n; /* whole or not at all */
	c->fields.failed = false;
	return SLU_ENOMEM;
}

int
call_set(struct call *c, const char *name, struct slice value)
{
	const char *const old = call_added(c, name);

	if (old) {
		const char *const begin = old - strlen(name) - 1;
		const char *const end = old + strlen(old) + 1;
		const char *const last = c->fields.p + c->fields.n;

		memmove(c->fields.p + (begin - c->fields.p), end, (size_t)(last - end));
		c->fields.n -= (size_t)(end - begin);
	}
	return call_add(c, name, value);
}

const char *
call_added(const struct call *c, const char *name)
{
	const char *p = c->fields.p;
	const char *const end = p ? p + c->fields.n : NULL;

	while (p < end) {
		const char *const value = p + strlen(p) + 1;

		if (strcmp(p, name) == 0)
			return value;
		p = value + strlen(value) + 1;
	}
	return NULL;
}

/* --- answers ------------------------------------------------------------------- */

static void
give(struct call *c, unsigned status, const char *type)
{
	c->status = status;
	c->type = type;
	if (c->x.out.failed) {
		c->status = 503;
		c->type = NULL;
		c->x.streams = false;
	}
	exchange_answer(&c->x);
}

void
call_begin(struct call *c, unsigned status, const char *type)
{
	assert(c->x.more && !c->x.streams);
	c->x.streams = true;
	give(c, status, type);
}

void
call_answer(struct call *c, unsigned status, const char *type, struct buf *body)
{
	struct buf *const out = &c->x.out;

	if (!body) {
		buf_clear(out);
	} else if (body != out) {
		buf_release(out);
		*out = *body;
		buf_init(body, body->max);
	}
	give(c, status, type);
}

void
call_answer_text(struct call *c, unsigned status, const char *type, struct slice body)
{
	buf_clear(&c->x.out);
	buf_put(&c->x.out, body.p, body.n);
	give(c, status, type);
}

/* --- bytes --------------------------------------------------------------------- */

/* Its body found no memory: a short text may. */
static void
explain_lack(struct call *c)
{
	const struct http_shared *const s = http_shared(c->x.protocol);
	const struct http_refusal why = {
		.status = c->status,
		.reason = "out_of_memory",
		.route = c->route,
	};

	buf_clear(&c->x.out);
	if (s->conf.describe)
		c->type = s->conf.describe(&c->x.out, &why, s->arg);
	if (c->x.out.failed)
		buf_clear(&c->x.out);
}

typedef int put_field(struct response *w, const char *name, struct slice value);

/* The fields that are not put yet. */
static void
put_fields(struct call *c, put_field *put)
{
	const char *p = c->fields.p + c->headed;
	const char *end = c->fields.p + c->fields.n;

	c->headed = c->fields.n;
	while (p < end) {
		const struct slice name = slice_of(p);
		const struct slice value = slice_of(name.p + name.n + 1);

		/* An invalid name, or one of the writer's own, is left out. */
		(void)put(&c->response, name.p, value);
		p = value.p + value.n + 1;
	}
}

/* The size of a chunk goes before it, its end and the end of the body behind it. */
void
call_format_piece(struct exchange *x)
{
	struct call *const c = call_of(x);
	struct response *const w = &c->response;

	if (c->upgraded) {
		frames_format(c);
		return;
	}
	if (x->out.n > 0) {
		x->has_body = response_body_begin(w, x->out.n);
		w->out = &x->out;
		response_body_end(w);
	}
	if (x->whole) {
		w->out = &x->out;
		if (c->fields.n > c->headed)
			put_fields(c, response_trailer);
		response_end(w);
	}
	x->has_body |= x->whole && !w->bodyless;
	w->out = &x->head;
}

static void
format_whole(struct call *c)
{
	struct exchange *const x = &c->x;
	struct response *const w = &c->response;

	response_length(w, x->out.n);
	if (x->out.n > 0) {
		x->has_body = response_body_begin(w, x->out.n);
		response_body_end(w);
	}
	response_end(w);
	if (x->has_body && x->out.n <= COPIED_BODY) {
		buf_put(&x->head, x->out.p, x->out.n);
		x->has_body = false;
	}
}

static void
format_upgrade(struct call *c)
{
	buf_puts(&c->x.head, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: sluice-stream\r\n\r\n");
	frames_format(c);
}

/* A body that only the end of the connection ends is known after response_chunked. */
void
call_format(struct conn *conn, struct exchange *x, bool ends)
{
	struct call *const c = call_of(x);
	struct response *const w = &c->response;

	if (x->streams && c->upgraded) {
		format_upgrade(c);
		return;
	}
	if (x->out.failed)
		explain_lack(c);
	w->keep_alive &= !ends;
	response_status(w, c->status, http_count(c));
	if (c->type)
		response_type(w, c->type);
	if (c->fields.n > 0)
		put_fields(c, response_header);
	if (x->streams) {
		response_chunked(w);
		x->whole = w->bodyless;
		call_format_piece(x);
	} else {
		format_whole(c);
	}
	conn->last |= !w->keep_alive;
}
