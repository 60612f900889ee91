/*
 * multipart.h - a strict parser of multipart bodies (RFC 2046, RFC 7578).
 *
 *      bytes --> multipart_next --> PART, DATA, DATA, ..., PART, DATA, ..., END
 *                      |
 *                      +--> MORE: all bytes are used up, give more
 *                      +--> REFUSED: m->why says what is wrong
 *
 * No I/O and no allocation: give it pieces of any size.
 *
 *         if (!multipart_init(&m, content_type))
 *                 return refuse("no multipart body");
 *         for (;;) {
 *                 switch (multipart_next(&m, &in, &data)) {
 *                 case MULTIPART_MORE:    return read_on();
 *                 case MULTIPART_PART:    begin(m.name, m.type); break;
 *                 case MULTIPART_DATA:    take(data); break;
 *                 case MULTIPART_END:     return done();
 *                 case MULTIPART_REFUSED: return refuse(m.why);
 *                 }
 *         }
 *
 * A part ends at the next PART or END. Bytes before the first part and behind the last one are
 * ignored. DATA points into the caller's bytes, or, for bytes that looked like the beginning of
 * a boundary, into m: use it before the next call.
 *
 *  MULTIPART-1  Lines of heads end in CRLF, a head has at most MULTIPART_HEAD bytes.
 *  MULTIPART-2  A boundary has 1 to MULTIPART_BOUNDARY bytes of printable ASCII, no space at its
 *               end. Only blanks may follow it on its line.
 *  MULTIPART-3  The outcome depends on the bytes only, never on how they were cut.
 *  MULTIPART-4  A body that ends before END is not whole: the caller must check it.
 */
#ifndef HTTP_MULTIPART_H
#define HTTP_MULTIPART_H

#include "base/bytes.h"

enum {
	MULTIPART_BOUNDARY = 200,
	MULTIPART_HEAD = 4096
};

enum multipart_event {
	MULTIPART_MORE,
	MULTIPART_PART,
	MULTIPART_DATA,
	MULTIPART_END,    /* also of all later calls */
	MULTIPART_REFUSED /* the same */
};

struct multipart {
	/* The current part, from PART until the next PART. */
	struct slice name; /* in its Content-Disposition; .p NULL: none */
	struct slice type; /* its Content-Type; .p NULL: none */
	uint64_t length;   /* its Content-Length, if has_length */
	bool has_length;

	const char *why; /* after REFUSED: the reason, a literal */

	/* Private. */
	uint8_t state;
	size_t matched; /* bytes of the delimiter that matched */
	size_t ghosts;  /* how many of them the body did not have */
	size_t n_delimiter;
	size_t n_head;
	size_t line;                                /* where in head the last line begins */
	char delimiter[4 + MULTIPART_BOUNDARY + 1]; /* CR LF - - boundary */
	char head[MULTIPART_HEAD];
};

/* Takes the boundary from a Content-Type. Returns false if it is not a multipart type or has
 * no valid boundary. */
bool multipart_init(struct multipart *m, struct slice content_type);

/* Takes bytes off the front of *in. Only DATA sets *data, which is not empty then. */
enum multipart_event multipart_next(struct multipart *m, struct slice *in, struct slice *data);

/* After PART: the caller takes the data of this part from its own bytes, by the length, and
 * continues with the bytes behind it. */
void multipart_taken(struct multipart *m);

#endif
