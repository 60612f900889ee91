/*
 * fuzz_http.c - any bytes, given to the request parser.
 *
 *  FUZZHTTP-1  However the bytes are cut, the parser says the same (REQUEST-7 of http/request.h).
 *  FUZZHTTP-2  It never looks beyond a piece nor at it later (the trace frees each one).
 *  FUZZHTTP-3  What it accepted, written anew in one plain form, is accepted as the same.
 *  FUZZHTTP-4  Decoding a path or query needs no more room than it has bytes.
 *  FUZZHTTP-5  What llhttp refuses in strict mode is refused here too, and where both accept,
 *      they see the same bodies. Where llhttp is not installed, FUZZHTTP-5 rests.
 *
 * Differences from llhttp that are meant to be:
 *   - any token is a method; llhttp has a list of them, and reads CONNECT and PRI as
 *     the beginning of something else;
 *   - Upgrade is ignored, as RFC 9110 allows; llhttp stops reading HTTP there;
 *   - chunk extensions are ignored: any printable text, where llhttp wants names and
 *     values;
 *   - a tab behind a Content-Length or Transfer-Encoding is white space, as RFC 9112 says.
 * They end the comparison. llhttp accepts more, as it may: HTTP/0.9 and 2.0, two
 * hosts, and so on.
 */
#include "fuzz.h"

#include "http/query.h"
#include "http/request.h"
#include "http_trace.h"

#include <stdio.h>

#ifdef HAVE_LLHTTP
#include <llhttp.h>
#endif

static const struct request_limits limits = {
	.head = 1024, .target = 256, .headers = 16, .body = 64 * 1024
};

static void
expect(bool holds, const char *what, struct slice a, struct slice b)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n--- one ---\n%.*s\n--- other ---\n%.*s\n", what, (int)a.n,
		a.p ? a.p : "", (int)b.n, b.p ? b.p : "");
	abort();
}

static void
check_cuts(struct slice in, struct slice want)
{
	size_t first = 1;
	struct buf got;

	for (size_t i = 0; i < in.n; i++)
		first = first * 31 + (unsigned char)in.p[i];
	buf_init(&got, SIZE_MAX);
	trace_cut(&got, &limits, in, 0, 1);
	expect(slice_eq(want, buf_slice(&got)), "F1: byte by byte", want, buf_slice(&got));
	for (int i = 0; i < 4 && in.n > 1; i++) {
		buf_clear(&got);
		trace_cut(&got, &limits, in, 1 + (first >> 8 * i) % (in.n - 1), 1 + first % 97);
		expect(slice_eq(want, buf_slice(&got)), "F1: cut", want, buf_slice(&got));
	}
	buf_release(&got);
}

static void
check_decoding(struct slice encoded)
{
	char *room = malloc(encoded.n + 1);
	struct query_param p;
	struct query q;

	FUZZ_CHECK(room);
	query_init(&q, encoded, room, encoded.n);
	while (query_next(&q, &p))
		FUZZ_CHECK(p.name.n <= encoded.n);
	FUZZ_CHECK(q.rc == 0 || q.rc == SLU_EINVAL); /* FUZZHTTP-4 */
	free(room);
}

/* One request that was accepted, in the plainest form that says the same. */
static void
write_anew(struct buf *out, const struct request *r, struct slice body)
{
	trace_slice(out, "", r->method);
	trace_slice(out, " ", r->target);
	buf_printf(out, " HTTP/1.%u\r\n", r->minor);
	for (unsigned i = 0; i < r->n_headers; i++) {
		struct slice name, value;

		request_header_at(r, i, &name, &value);
		trace_slice(out, "", name);
		trace_slice(out, ":", value);
		buf_puts(out, "\r\n");
	}
	buf_puts(out, "\r\n");
	if (r->chunked && body.n > 0)
		buf_printf(out, "%zx\r\n", body.n);
	buf_put(out, body.p, body.n);
	if (r->chunked)
		buf_puts(out, body.n > 0 ? "\r\n0\r\n\r\n" : "0\r\n\r\n");
}

/* What was accepted of the input: requests written anew, their traces, their bodies. */
struct accepted {
	struct buf anew, trace, bodies;
	size_t n; /* whole requests */
};

static void
accept_all(struct accepted *a, struct slice in)
{
	struct slice piece;
	enum request_event e;
	struct request r;
	struct buf body;

	buf_init(&body, SIZE_MAX);
	if (request_init(&r, &limits))
		abort();
	while ((e = request_next(&r, &in, &piece)) != REQUEST_MORE && e != REQUEST_REFUSED) {
		if (e == REQUEST_HEAD) {
			buf_clear(&body);
			check_decoding(r.query);
		}
		if (e == REQUEST_BODY)
			buf_put(&body, piece.p, piece.n);
		if (e != REQUEST_END)
			continue;
		a->n++;
		write_anew(&a->anew, &r, buf_slice(&body));
		trace_head(&a->trace, &r);
		trace_slice(&a->trace, body.n > 0 ? "= " : "", buf_slice(&body));
		buf_puts(&a->trace, body.n > 0 ? "\nend\n" : "end\n");
		trace_slice(&a->bodies, "[", buf_slice(&body));
		buf_putc(&a->bodies, ']');
	}
	request_release(&r);
	buf_release(&body);
}

static void
check_anew(struct accepted *a)
{
	struct buf got;

	buf_init(&got, SIZE_MAX);
	trace_cut(&got, &limits, buf_slice(&a->anew), 0, a->anew.n);
	buf_puts(&a->trace, "more\n");
	expect(slice_eq(buf_slice(&a->trace), buf_slice(&got)), "F3: written anew",
	       buf_slice(&a->trace), buf_slice(&got));
	buf_release(&got);
}

#ifdef HAVE_LLHTTP

/* llhttp's view: the bodies of whole messages, up to as many as were accepted. */
struct other {
	llhttp_t parser;
	llhttp_settings_t settings;
	struct buf bodies;
	size_t n, wanted;
};

static int
other_begin(llhttp_t *p)
{
	struct other *o = p->data;

	if (o->n < o->wanted)
		buf_putc(&o->bodies, '[');
	return 0;
}

static int
other_body(llhttp_t *p, const char *at, size_t n)
{
	struct other *o = p->data;

	if (o->n < o->wanted)
		buf_put(&o->bodies, at, n);
	return 0;
}

static int
other_end(llhttp_t *p)
{
	struct other *o = p->data;

	if (o->n++ < o->wanted)
		buf_putc(&o->bodies, ']');
	return 0;
}

/* The differences that the top of the file lists. */
static bool
is_meant(llhttp_errno_t why, const char *reason, struct slice in)
{
	return why == HPE_INVALID_METHOD || why == HPE_PAUSED_UPGRADE ||
	       why == HPE_PAUSED_H2_UPGRADE || strstr(reason, "in chunk extensions") ||
	       ((why == HPE_INVALID_CONTENT_LENGTH || why == HPE_INVALID_TRANSFER_ENCODING) &&
		memchr(in.p, '\t', in.n));
}

static void
check_other(const struct accepted *a, struct slice in)
{
	struct other o = { .wanted = a->n };
	llhttp_errno_t why;
	const char *reason;

	buf_init(&o.bodies, SIZE_MAX);
	llhttp_settings_init(&o.settings);
	o.settings.on_message_begin = other_begin;
	o.settings.on_body = other_body;
	o.settings.on_message_complete = other_end;
	llhttp_init(&o.parser, HTTP_REQUEST, &o.settings);
	o.parser.data = &o;
	why = llhttp_execute(&o.parser, in.p, in.n);
	reason = why == HPE_OK ? "" : llhttp_get_error_reason(&o.parser);
	if (o.n < a->n && !is_meant(why, reason, in))
		expect(false, "F5: refused by llhttp", in, slice_of(reason));
	if (o.n >= a->n)
		expect(slice_eq(buf_slice(&a->bodies), buf_slice(&o.bodies)), "F5: bodies",
		       buf_slice(&a->bodies), buf_slice(&o.bodies));
	buf_release(&o.bodies);
}

#else

static void
check_other(const struct accepted *a, struct slice in)
{
	(void)a;
	(void)in;
}

#endif

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct slice in = { (const char *)data, size };
	struct accepted a = { 0 };
	struct buf whole;

	buf_init(&whole, SIZE_MAX);
	buf_init(&a.anew, SIZE_MAX);
	buf_init(&a.trace, SIZE_MAX);
	buf_init(&a.bodies, SIZE_MAX);
	trace_cut(&whole, &limits, in, 0, size);
	check_cuts(in, buf_slice(&whole));
	accept_all(&a, in);
	check_anew(&a);
	check_other(&a, in);
	buf_release(&a.anew);
	buf_release(&a.trace);
	buf_release(&a.bodies);
	buf_release(&whole);
	return 0;
}
