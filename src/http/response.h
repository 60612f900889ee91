/*
 * response.h - writes HTTP/1.1 answers to a buffer.
 *
 *         response_begin(&w, &out, &r);          HEAD? keep-alive? version?
 *         response_status(&w, 200, http_date(&date, now));
 *         response_header(&w, "content-type", SLICE("application/json"));
 *         response_length(&w, n);                or response_chunked(&w)
 *         response_body(&w, p, n);               as often as needed
 *         response_end(&w);
 *
 * The writer owns the framing: it writes Content-Length, Transfer-Encoding, Connection and Date
 * itself, and response_header refuses these names. A caller writes the same answer for GET and
 * HEAD, for HTTP/1.1 and 1.0, with status 200 and 204: the writer leaves out bytes that may not
 * be sent.
 *
 * No input can split an answer: a field whose name is not a token, or whose value has control
 * characters, is refused.
 *
 * The order of calls is asserted. The buffer has all memory: check out->failed at the end.
 */
#ifndef HTTP_RESPONSE_H
#define HTTP_RESPONSE_H

#include "base/bytes.h"
#include "http/request.h"

#include <sluice/err.h>

enum {
	HTTP_DATE_TEXT = 30 /* "Sun, 06 Nov 1994 08:49:37 GMT" and the NUL */
};

/* The Date of the current second; zeroed at first. One per thread. */
struct http_date {
	int64_t second; /* of text, since 1970 */
	char text[HTTP_DATE_TEXT];
};

/* now: on the wall clock. Valid until the next call; formats only if the second changed. */
const char *http_date(struct http_date *d, slu_time now);

struct response {
	struct buf *out; /* borrowed */
	uint64_t left;   /* if counted: bytes of the promised length still to come */
	uint8_t stage;
	bool counted, chunked;
	bool old;        /* HTTP/1.0: no chunks */
	bool for_head;   /* the answer to HEAD: no body */
	bool bodyless;   /* no byte may follow the head */
	bool keep_alive; /* a caller may clear it before the head ends */
};

/* Copies what it needs of r; r may continue with the next request. r NULL or refused: the
 * connection closes after the answer. */
void response_begin(struct response *w, struct buf *out, const struct request *r);

/* Writes the status line and Date; status is 200 or more. date NULL: no Date. */
void response_status(struct response *w, unsigned status, const char *date);

/* Returns SLU_EINVAL, and writes nothing, if name is not a token or is one of the writer's, or
 * value has a control character. */
int response_header(struct response *w, const char *name, struct slice value);

/* Writes Content-Type. type is a literal: it is not checked. */
void response_type(struct response *w, const char *type);

/* Both end the head and write Connection: then keep_alive is final. For HTTP/1.0 the end of the
 * connection ends a body of unknown length. */
void response_length(struct response *w, uint64_t n);
void response_chunked(struct response *w);

/* Writes a piece of the body, as a chunk if chunked; nothing if n is 0. */
void response_body(struct response *w, const void *p, size_t n);

/* The same for bytes outside of the buffer: the caller sends the buffer, then its n bytes, and
 * then continues. Returns false if the n bytes must not be sent. */
bool response_body_begin(struct response *w, uint64_t n);
void response_body_end(struct response *w);

/* Writes a trailer, as response_header. Left out unless chunked. No body follows. */
int response_trailer(struct response *w, const char *name, struct slice value);

/* Writes the last chunk, if chunked. The body must have the promised length (asserted): a
 * caller that cannot send it all does not call this and closes the connection. */
void response_end(struct response *w);

/* The reason phrase of a status, or "Unknown". */
const char *http_reason(unsigned status);

#endif
