/*
 * request.h - a strict parser of HTTP/1.1 requests (RFC 9112).
 *
 *      bytes --> request_next --> HEAD, BODY, BODY, ..., END, HEAD, END, ...
 *                      |
 *                      +--> MORE: all bytes are used up, give more
 *                      +--> REFUSED: answer request_refusal()'s status and close
 *
 * No I/O and no clock: give it the bytes of each read, in pieces of any size.
 *
 *         struct slice in = { data, n }, body;
 *
 *         for (;;) {
 *                 switch (request_next(&r, &in, &body)) {
 *                 case REQUEST_MORE:    return read_on(c);
 *                 case REQUEST_HEAD:    route(c, r.method, r.path); break;
 *                 case REQUEST_BODY:    take(c, body); break;
 *                 case REQUEST_END:     run(c); break;
 *                 case REQUEST_REFUSED: return refuse(c, request_refusal(&r));
 *                 }
 *         }
 *
 * Every request gives one HEAD, any number of BODY and one END. After END the rest of `in` is
 * the next request: a caller that must wait keeps it and calls later.
 *
 * The parser copies the head, so that its slices outlive the caller's bytes: they are valid from
 * HEAD until the call after END. A body piece points into the caller's bytes. Memory is limited
 * by the limits and is twice 256 bytes for common heads; the memory of a large head is freed when
 * the next request begins.
 *
 * Rules beyond the RFC; each refuses more:
 *  REQUEST-1  Lines end in CRLF. A bare LF is refused, and a CR anywhere else.
 *  REQUEST-2  A body has one length: one Content-Length of digits, or one Transfer-Encoding that
 *             is `chunked` (any case). Both, two of one, or a Transfer-Encoding in HTTP/1.0 are
 *             refused.
 *  REQUEST-3  No folded lines, no space before a colon, no control characters; bytes above 127
 *             only in values.
 *  REQUEST-4  One space between the parts of a request line. Targets: /path?query,
 *             http://host/path?query, and * for OPTIONS. No fragment, no host:port.
 *  REQUEST-5  HTTP/1.1 has exactly one Host, HTTP/1.0 at most one. There is at most one
 *             Authorization: a proxy and this server must not see two different callers.
 *  REQUEST-6  Chunk extensions begin right behind the size, are ignored, and share with the
 *             trailers a budget of limits.head bytes per request. A line of either has at most
 *             REQUEST_LINE bytes. Trailers are checked and dropped. A trailer that would change
 *             how the message is read (a field in the table of head.c) is refused.
 *  REQUEST-7  The outcome depends on the bytes only, never on how they were cut.
 *
 * A client sends the same head again and again:
 *  REQUEST-8  A head that begins like the whole head before it is that head. It is compared, not
 *             parsed: `repeated` is set, and everything that was read from the head stays.
 */
#ifndef HTTP_REQUEST_H
#define HTTP_REQUEST_H

#include "base/bytes.h"

#include <sluice/err.h>

/* A row: name, status of the answer, reason for machines. */
/* clang-format off */
#define REQUEST_REFUSALS(X) \
	X(BARE_LF,         400, "bare_lf") \
	X(BLANK_LINES,     400, "blank_lines") \
	X(REQUEST_LINE,    400, "request_line") \
	X(METHOD,          400, "method") \
	X(TARGET,          400, "target") \
	X(TARGET_LONG,     414, "target_too_long") \
	X(VERSION_SYNTAX,  400, "version") \
	X(VERSION,         505, "version_not_supported") \
	X(HEAD_LONG,       431, "head_too_large") \
	X(HEADERS,         431, "too_many_headers") \
	X(OBS_FOLD,        400, "obs_fold") \
	X(FIELD_NAME,      400, "field_name") \
	X(FIELD_VALUE,     400, "field_value") \
	X(HOST_MISSING,    400, "host_missing") \
	X(HOST_TWICE,      400, "host_twice") \
	X(HOST,            400, "host") \
	X(AUTH_TWICE,      400, "authorization_twice") \
	X(LENGTH,          400, "content_length") \
	X(LENGTH_TWICE,    400, "content_length_twice") \
	X(CODING_TWICE,    400, "transfer_encoding_twice") \
	X(CODING_UNKNOWN,  501, "transfer_encoding") \
	X(CODING_1_0,      400, "transfer_encoding_in_1_0") \
	X(LENGTH_CODING,   400, "content_length_and_transfer_encoding") \
	X(EXPECT,          417, "expect") \
	X(BODY_LONG,       413, "body_too_large") \
	X(CHUNK_SIZE,      400, "chunk_size") \
	X(CHUNK_EXTENSION, 400, "chunk_extension") \
	X(CHUNK_END,       400, "chunk_end") \
	X(TRAILER,         400, "trailer") \
	X(TRAILERS_LONG,   431, "trailers_too_large") \
	X(MEMORY,          503, "out_of_memory")
/* clang-format on */

enum request_refused {
	REFUSE_NOTHING,
#define X(name, ...) REFUSE_##name,
	REQUEST_REFUSALS(X)
#undef X
};

struct request_refusal {
	int status;
	const char *reason;
};

enum request_event {
	REQUEST_MORE,
	REQUEST_HEAD,
	REQUEST_BODY,
	REQUEST_END,
	REQUEST_REFUSED /* also of all later calls */
};

enum {
	REQUEST_LINE = 256,      /* bytes of a chunk's line or a trailer, with CRLF */
	REQUEST_BLANK_LINES = 4, /* skipped before a request line */
	REQUEST_HEAD_MAX = 0xffff - REQUEST_LINE
};

struct request_limits {
	uint32_t head;    /* bytes, blank line included; at most REQUEST_HEAD_MAX */
	uint32_t target;  /* bytes */
	uint32_t headers; /* lines */
	uint64_t body;    /* bytes; below 2^63 */
};

extern const struct request_limits request_limits_default;

/* A part of the head. Not a pointer: the head may move while it grows. */
struct span {
	uint16_t at, n;
};

struct request_field {
	struct span name, value;
};

struct request {
	/* What a caller reads, from HEAD on. */
	struct slice method; /* any token, as sent */
	struct slice target; /* as sent */
	struct slice path;   /* still encoded; begins with '/', or is "*" */
	struct slice query;  /* still encoded, without '?' */
	uint64_t length;     /* of the body; 0 if chunked */
	unsigned n_headers;
	uint64_t lengths; /* bit n: a name has n bytes, modulo 64 */
	unsigned minor;   /* of the version: 0 or 1 */
	bool chunked;
	bool has_length;
	bool keep_alive;      /* more requests follow; otherwise later bytes are ignored */
	bool expect_continue; /* the client waits for 100 before it sends the body */
	bool repeated;        /* REQUEST-8: the head is the one before, byte by byte */

	/* Private. */
	bool has_host, has_auth;
	bool said_close, said_keep_alive, said_continue;
	uint8_t state;
	uint8_t blank_lines;
	uint8_t refused; /* enum request_refused */
	struct span in_method, in_target, in_path, in_query;
	struct buf head; /* the lines so far; then the chunk line or trailer */
	struct buf sent; /* the last head as it was sent, blank lines included; empty: not kept */
	size_t line;     /* where the current line begins in head */
	uint64_t left;   /* bytes of the body, or of the chunk, still to come */
	uint64_t room;   /* bytes of the body still allowed */
	uint32_t budget; /* REQUEST-6: bytes still allowed */
	struct request_field *fields;
	const struct request_limits *limits;
};

/* Borrows limits while the request lives. Returns SLU_ENOMEM. */
int request_init(struct request *r, const struct request_limits *limits);
void request_release(struct request *r);

/* Takes bytes off the front of *in. Only REQUEST_BODY sets *body. */
enum request_event request_next(struct request *r, struct slice *in,
				struct slice *body);

/* After HEAD: limits this body to max bytes, instead of limits.body. If its length is known
 * and larger, REFUSED comes before any BODY. */
void request_limit_body(struct request *r, uint64_t max);

/* The value of the first field of that name; name is in small letters. .p NULL: none. */
struct slice request_find(const struct request *r, struct slice name);

/* The same. Inline, so that the compiler counts the letters of a literal: most requests lack most
 * fields, and are not searched. */
static inline struct slice
request_header(const struct request *r, const char *name)
{
	const struct slice want = { name, __builtin_strlen(name) };

	return r->lengths >> want.n % 64 & 1 ? request_find(r, want) : (struct slice){ NULL, 0 };
}

/* The i-th field, i < n_headers. The name is in small letters. */
void request_header_at(const struct request *r, unsigned i, struct slice *name,
		       struct slice *value);

/* The reason after REFUSED. The caller answers it and closes the connection. */
const struct request_refusal *request_refusal(const struct request *r);

#endif
