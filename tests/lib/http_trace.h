/*
 * http_trace.h - what a parser made of some bytes, as text that can be compared.
 *
 *         POST /a ? q HTTP/1.1 keep-alive length 5
 *         host: h
 *         = hello
 *         end
 *         refused 400 bare_lf           or: more
 *
 * Pieces of a body are joined, so that the text depends on the bytes alone and not
 * on how they were cut. Each piece is given to the parser in memory of its own size
 * and freed at once: a look beyond it, or at it later, is seen by the sanitizer.
 */
#ifndef TESTS_HTTP_TRACE_H
#define TESTS_HTTP_TRACE_H

#include "http/request.h"

#include <assert.h>
#include <stdlib.h>

static inline void
trace_slice(struct buf *out, const char *before, struct slice s)
{
	buf_puts(out, before);
	buf_put(out, s.p, s.n);
}

static inline void
trace_head(struct buf *out, const struct request *r)
{
	trace_slice(out, "", r->method);
	trace_slice(out, " ", r->path);
	trace_slice(out, " ? ", r->query);
	buf_printf(out, " HTTP/1.%u %s", r->minor, r->keep_alive ? "keep-alive" : "close");
	if (r->chunked)
		buf_puts(out, " chunked");
	else
		buf_printf(out, " length %llu", (unsigned long long)r->length);
	buf_puts(out, r->expect_continue ? " expect\n" : "\n");
	for (unsigned i = 0; i < r->n_headers; i++) {
		struct slice name, value;

		request_header_at(r, i, &name, &value);
		trace_slice(out, "", name);
		trace_slice(out, ": ", value);
		buf_putc(out, '\n');
	}
}

/* Feeds one piece until the parser wants more; true when it refused. in_body tells
 * whether the line of body bytes is open. */
static inline bool
trace_piece(struct buf *out, struct request *r, const char *p, size_t n, bool *in_body)
{
	char *own = malloc(n ? n : 1);
	struct slice in = { own, n }, body = { NULL, 0 };
	enum request_event e;

	assert(own);
	memcpy(own, p, n);
	for (e = request_next(r, &in, &body); e != REQUEST_MORE && e != REQUEST_REFUSED;
	     e = request_next(r, &in, &body)) {
		if (e == REQUEST_HEAD)
			trace_head(out, r);
		if (e == REQUEST_BODY)
			trace_slice(out, *in_body ? "" : "= ", body);
		if (e == REQUEST_END)
			buf_puts(out, *in_body ? "\nend\n" : "end\n");
		*in_body = e == REQUEST_BODY || (*in_body && e != REQUEST_END);
	}
	assert(e == REQUEST_REFUSED || in.n == 0);
	free(own);
	return e == REQUEST_REFUSED;
}

/* Feeds all: first bytes, then pieces of step bytes each. */
static inline void
trace_cut(struct buf *out, const struct request_limits *limits, struct slice all,
	  size_t first, size_t step)
{
	struct request r;
	bool refused = false, in_body = false;
	size_t at = 0;

	if (request_init(&r, limits))
		abort();
	while (!refused && at < all.n) {
		size_t n = at == 0 && first > 0 ? first : step;

		n = n > all.n - at ? all.n - at : n;
		refused = trace_piece(out, &r, all.p + at, n, &in_body);
		at += n;
	}
	if (in_body)
		buf_putc(out, '\n');
	if (refused)
		buf_printf(out, "refused %d %s\n", request_refusal(&r)->status,
			   request_refusal(&r)->reason);
	else
		buf_puts(out, "more\n");
	request_release(&r);
}

#endif
