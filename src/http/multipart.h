/*
 * multipart.h - the parts of a multipart body out of a stream of bytes, strictly
 * (RFC 2046, RFC 7578).
 *
 *      bytes --> multipart_next --> PART, DATA, DATA, ..., PART, DATA, ..., END
 *                      |
 *                      +--> MORE: all bytes are used up, give more
 *                      +--> REFUSED: m->why says what is wrong
 *
 * No I/O, no memory but its own: feed it pieces of any size.
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
 * A part ends where the next one, or END, comes. What is before the first part and behind
 * the last is passed over. DATA points into the caller's bytes, or, for bytes that only
 * looked like the beginning of a boundary, into m: use it before the next call.
 *
 *  P1  Lines of heads end in CRLF, a head has at most MULTIPART_HEAD bytes.
 *  P2  A boundary has 1 to MULTIPART_BOUNDARY bytes of printable ASCII, no space at its
 *      end. Behind it a line has blanks at most.
 *  P3  The outcome depends on the bytes alone, never on how they were cut.
 *  P4  A body that ends before END was not whole: whoever has its end must look.
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
	MULTIPART_END,    /* and so for ever */
	MULTIPART_REFUSED /* the same */
};

struct multipart {
	/* Of the part, from PART on until the next. */
	struct slice name; /* of its Content-Disposition; .p is NULL when there is none */
	struct slice type; /* its Content-Type; the same */
	uint64_t length;   /* its Content-Length, if it has_length */
	bool has_length;

	const char *why; /* REFUSED: in words, a literal */

	/* Inner. */
	uint8_t state;
	size_t matched; /* bytes of the delimiter that were seen, */
	size_t ghosts;  /* and of these, bytes that were not there */
	size_t n_delimiter;
	size_t n_head;
	size_t line;                                /* where in head the last line begins */
	char delimiter[4 + MULTIPART_BOUNDARY + 1]; /* CR LF - - boundary */
	char head[MULTIPART_HEAD];
};

/* The boundary in the value of a Content-Type; false: it is no multipart type, or has none
 * that is allowed. */
bool multipart_init(struct multipart *m, struct slice content_type);

/* Takes bytes off the front of *in. *data is set by DATA alone, and is not empty then. */
enum multipart_event multipart_next(struct multipart *m, struct slice *in, struct slice *data);

/* After PART: the caller takes the data of this part from its bytes itself, by its length,
 * and goes on here with what follows. */
void multipart_taken(struct multipart *m);

#endif
