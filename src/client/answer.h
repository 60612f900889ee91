/*
 * answer.h - parses HTTP/1.1 answers strictly (RFC 9112).
 *
 *      bytes --> answer_next --> MORE: all bytes are consumed, more are needed
 *                      +--> WHOLE: status and body are complete
 *                      +--> REFUSED: not HTTP, or too large; close
 *
 * No I/O, no clock: the caller passes bytes in pieces of any size.
 *
 *         answer_begin(&a, false);
 *         while (answer_next(&a, &in) == ANSWER_MORE)
 *                 in = read_more();
 *         use(a.status, buf_slice(&a.body));
 *
 * Interim answers (1xx) are skipped.
 *
 *  ANSWER-1  Lines end in CRLF, names are tokens, values have no control characters.
 *  ANSWER-2  The length of a body is given once: by Content-Length, or by Transfer-Encoding with
 *      the value `chunked`. An answer that ends with the connection is refused: it cannot be
 *      told from half an answer.
 *  ANSWER-3  Head, trailers with chunk lines, and body each have a limit.
 *  ANSWER-4  The outcome depends on the bytes only, not on how they are split.
 *  ANSWER-5  Bytes after the answer are not read: they stay in `in`.
 *  ANSWER-6  With `in_pieces` a body has no limit: the reader takes the bytes of `body` after
 *      each answer_next, and clears it.
 */
#ifndef CLIENT_ANSWER_H
#define CLIENT_ANSWER_H

#include "base/bytes.h"

#include <sluice/err.h>

/* A row: name, text for people. */
/* clang-format off */
#define ANSWER_REFUSALS(X) \
	X(LINE_END,     "a line of the head does not end in CRLF") \
	X(STATUS_LINE,  "the first line is not a status line of HTTP/1.1") \
	X(INTERIM,      "too many interim answers") \
	X(HEAD_LONG,    "the head is too large") \
	X(FIELD,        "a field of the head is malformed") \
	X(LENGTH,       "Content-Length is not a number") \
	X(LENGTH_TWICE, "the body has two lengths") \
	X(LENGTH_NONE,  "the body has no length") \
	X(CODING,       "Transfer-Encoding is not `chunked`") \
	X(BODY_LONG,    "the body is too large") \
	X(CHUNK,        "a chunk of the body is malformed") \
	X(TRAILER,      "a trailer is malformed") \
	X(MEMORY,       "out of memory")
/* clang-format on */

enum answer_refused {
	ANSWER_FINE,
#define X(name, text) ANSWER_##name,
	ANSWER_REFUSALS(X)
#undef X
};

enum answer_event {
	ANSWER_MORE,
	ANSWER_WHOLE,
	ANSWER_REFUSED /* until the next answer_begin */
};

enum {
	ANSWER_LINE = 8 * 1024,  /* bytes of a line, at most */
	ANSWER_HEAD = 32 * 1024, /* bytes of all lines of an answer, at most */
	ANSWER_INTERIM_MAX = 8   /* interim answers before the final one */
};

#define ANSWER_NO_RETRY UINT32_MAX /* retry_after: the answer has no Retry-After */

struct answer {
	/* For the caller, after WHOLE. */
	unsigned status;
	struct buf body;
	struct buf fields;    /* the fields of the head, for answer_field */
	bool keep_alive;      /* the connection can be used again */
	bool in_pieces;       /* ANSWER-6: set after answer_begin */
	uint32_t retry_after; /* Retry-After in seconds, or ANSWER_NO_RETRY */

	/* Inner. */
	bool for_head; /* an answer to HEAD: no body, whatever the length is */
	bool has_length, chunked, said_close, said_keep_alive;
	uint8_t state;
	uint8_t minor;   /* minor version of HTTP */
	uint8_t refused; /* enum answer_refused */
	uint8_t interim;
	uint32_t budget; /* bytes of lines that are still allowed */
	uint64_t left;   /* bytes of the body or chunk that are still to come */
	struct buf line; /* the current line */
};

/* max_body: bytes of a body, at most. */
void answer_init(struct answer *a, size_t max_body);
void answer_release(struct answer *a);

/* Begins another answer. for_head: the answer to a HEAD request. */
void answer_begin(struct answer *a, bool for_head);

/* Removes the consumed bytes from the front of *in. */
enum answer_event answer_next(struct answer *a, struct slice *in);

/* Is the head complete? Then status and fields are set. */
bool answer_has_head(const struct answer *a);

/* The value of the last field of that name; empty if the answer has no such field. The name is in lower case. */
struct slice answer_field(const struct answer *a, struct slice name);

/* Has no byte of the answer come yet? */
bool answer_is_untouched(const struct answer *a);

/* The reason, after REFUSED. */
const char *answer_refusal(const struct answer *a);

#endif
