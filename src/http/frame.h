/*
 * frame.h - a request or an answer on a connection of frames (http/frames.h): a line of text, then bytes.
 *
 *      7 /enqueue 62 LF {"namespace":"default","queue":"mail",...}      number, path, bytes of the body
 *      7 200 11 LF {"ids":[1]} LF                                       number, status, bytes of the body
 *      8 200 262144 + LF ...                                            another piece of this answer follows
 */
#ifndef HTTP_FRAME_H
#define HTTP_FRAME_H

#include "base/bytes.h"

enum {
	FRAME_LINE = 512,      /* bytes of a line, with its LF */
	FRAME_BODY = 16 << 20, /* bytes of a body */
	FRAME_DIGITS = 16      /* of a number: below 2^53, exact in every language */
};

struct frame_line {
	uint64_t number;   /* the client's; its answer repeats it */
	struct slice path; /* in the line; begins with a slash, has no query */
	uint32_t size;     /* of the body */
};

/* Reads a line without its LF. Returns SLU_EINVAL. */
int frame_read(struct slice line, struct frame_line *out);

/* Writes the line of an answer. more: another piece follows. */
void frame_write(struct buf *out, uint64_t number, unsigned status, size_t size, bool more);

#endif
