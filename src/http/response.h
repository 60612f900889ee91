/*
 * response.h - HTTP/1.1 answers, written onto a buffer.
 *
 *         response_begin(&w, &out, &r);          HEAD? keep-alive? version?
 *         response_status(&w, 200, http_date(&date, now));
 *         response_header(&w, "content-type", SLICE("application/json"));
 *         response_length(&w, n);                or response_chunked(&w)
 *         response_body(&w, p, n);               as often as needed
 *         response_end(&w);
 *
 * The writer owns the framing: it writes Content-Length, Transfer-Encoding,
 * Connection and Date itself, and response_header refuses those names. So a caller
 * writes the same answer to GET and to HEAD, to HTTP/1.1 and to 1.0, with status 200
 * and with 204: bytes that may not be sent are left out here.
 *
 * Nothing from outside can split an answer: names are tokens, values have no
 * control characters, or the field is refused whole.
 *
 * Calls come in the order above (asserted). Memory is the buffer's alone: look at
 * out->failed at the end.
 */
#ifndef HTTP_RESPONSE_H
#define HTTP_RESPONSE_H

#include "base/bytes.h"
#include "http/request.h"

#include <sluice/err.h>

enum {
	HTTP_DATE_TEXT = 30 /* "Sun, 06 Nov 1994 08:49:37 GMT" and its end */
};

/* The Date of this second; zeroed is a fine start. One a thread. */
struct http_date {
	int64_t second; /* since 1970; text is that of this moment */
	char text[HTTP_DATE_TEXT];
};

/* now is on the wall clock. The text is good until the next call, and is made new
 * only when the second is another. */
const char *http_date(struct http_date *d, slu_time now);

struct response {
	struct buf *out; /* borrowed */
	uint64_t left;   /* when counted: what is still owed of the length promised */
	uint8_t stage;
	bool counted, chunked;
	bool old;        /* HTTP/1.0, which has no chunks */
	bool for_head;   /* answers HEAD: as GET, without the body */
	bool bodyless;   /* nothing may follow the head */
	bool keep_alive; /* a caller may clear it before the head ends */
};

/* Remembers of the request what decides the form of its answer; r may go on to the
 * next one meanwhile. NULL, or one that was refused: answer and close. */
void response_begin(struct response *w, struct buf *out, const struct request *r);

/* The status line and Date; 200 or more. date may be NULL: no clock, no Date. */
void response_status(struct response *w, unsigned status, const char *date);

/* SLU_EINVAL, and nothing is written: no token, a field of the writer's own, or a
 * control character in the value. */
int response_header(struct response *w, const char *name, struct slice value);

/* Either ends the head and writes Connection: then keep_alive is final. HTTP/1.0
 * learns the end of a body of unknown length from the end of the connection. */
void response_length(struct response *w, uint64_t n);
void response_chunked(struct response *w);

/* A piece of the body; one chunk when chunked. Nothing when n is 0. */
void response_body(struct response *w, const void *p, size_t n);

/* The same for bytes that do not go through the buffer: the caller sends what is in
 * it, then n bytes of its own, then goes on. False: those bytes are not to be sent. */
bool response_body_begin(struct response *w, uint64_t n);
void response_body_end(struct response *w);

/* A field behind the body, as response_header; only chunks have room for it, else it is
 * left out. No body after that. */
int response_trailer(struct response *w, const char *name, struct slice value);

/* The last chunk, if any. A length that was promised must have been kept (asserted):
 * who cannot keep it does not call this and closes the connection. */
void response_end(struct response *w);

/* A whole answer at once; type may be NULL for none. */
void response_whole(struct response *w, unsigned status, const char *date,
		    const char *type, struct slice body);

/* "Send the body": when request.expect_continue, before the real answer. */
void response_continue(struct buf *out);

/* The usual words of a status, "Unknown" for one that has none here. */
const char *http_reason(unsigned status);

#endif
