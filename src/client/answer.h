/*
 * answer.h - HTTP/1.1 answers out of a stream of bytes, strictly (RFC 9112).
 *
 *      bytes --> answer_next --> MORE: all bytes are used up, give more
 *                      +--> WHOLE: status and body are there
 *                      +--> REFUSED: not HTTP, or too large; close
 *
 * No I/O, no clock: feed what a read brought, in pieces of any size.
 *
 *         answer_begin(&a, false);
 *         while (answer_next(&a, &in) == ANSWER_MORE)
 *                 in = read_more();
 *         use(a.status, buf_slice(&a.body));
 *
 * Interim answers (100 and the like) are passed over.
 *
 *  N1  Lines end in CRLF, names are tokens, values have no control characters.
 *  N2  The length of a body is said once: Content-Length, or Transfer-Encoding that is
 *      `chunked` alone. An answer that would end with the connection is refused: nobody
 *      could tell it from half an answer.
 *  N3  Head, trailers with chunk lines, and body each have their limit.
 *  N4  The outcome depends on the bytes alone, never on how they were cut.
 *  N5  Nothing behind the answer is looked at: it stays in `in`.
 *  N6  With `in_pieces` a body has no limit: whoever reads takes what `body` has after
 *      each answer_next, and empties it.
 */
#ifndef CLIENT_ANSWER_H
#define CLIENT_ANSWER_H

#include "base/bytes.h"

#include <sluice/err.h>

/* A row: name, what a person reads. */
/* clang-format off */
#define ANSWER_REFUSALS(X) \
	X(LINE_END,     "a line of its head does not end in CRLF") \
	X(STATUS_LINE,  "its first line is no status line of HTTP/1.1") \
	X(INTERIM,      "too many interim answers") \
	X(HEAD_LONG,    "its head is too large") \
	X(FIELD,        "a field of its head is malformed") \
	X(LENGTH,       "its Content-Length is no number") \
	X(LENGTH_TWICE, "the length of its body is said twice") \
	X(LENGTH_NONE,  "the length of its body is not said") \
	X(CODING,       "its Transfer-Encoding is not `chunked`") \
	X(BODY_LONG,    "its body is too large") \
	X(CHUNK,        "a chunk of its body is malformed") \
	X(TRAILER,      "a trailer is malformed") \
	X(MEMORY,       "there is no memory for it")
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
	ANSWER_REFUSED /* until answer_begin */
};

enum {
	ANSWER_LINE = 8 * 1024,  /* the longest line */
	ANSWER_HEAD = 32 * 1024, /* all lines of one answer together */
	ANSWER_INTERIM_MAX = 8   /* interim answers before the real one */
};

#define ANSWER_NO_RETRY UINT32_MAX /* retry_after: it was not said */

struct answer {
	/* What a caller reads, after WHOLE. */
	unsigned status;
	struct buf body;
	struct buf fields;    /* of the head, for answer_field */
	bool keep_alive;      /* the connection may be used again */
	bool in_pieces;       /* N6: set after answer_begin */
	uint32_t retry_after; /* seconds, or ANSWER_NO_RETRY */

	/* Inner. */
	bool for_head; /* answers HEAD: there is no body, whatever the length */
	bool has_length, chunked, said_close, said_keep_alive;
	uint8_t state;
	uint8_t minor;   /* of the version */
	uint8_t refused; /* enum answer_refused */
	uint8_t interim;
	uint32_t budget; /* bytes of lines still allowed */
	uint64_t left;   /* bytes of the body, or of the chunk, still to come */
	struct buf line; /* the line that is being read */
};

/* A body has at most max_body bytes. */
void answer_init(struct answer *a, size_t max_body);
void answer_release(struct answer *a);

/* Forget what was read: another answer begins. for_head: it is one to HEAD. */
void answer_begin(struct answer *a, bool for_head);

/* Takes bytes off the front of *in. */
enum answer_event answer_next(struct answer *a, struct slice *in);

/* Its head is whole: status and fields are there. */
bool answer_has_head(const struct answer *a);

/* The value of a field, the last of that name; or no bytes. The name is in small letters. */
struct slice answer_field(const struct answer *a, struct slice name);

/* Not a byte of it has come yet. */
bool answer_is_untouched(const struct answer *a);

/* Why, after REFUSED. */
const char *answer_refusal(const struct answer *a);

#endif
