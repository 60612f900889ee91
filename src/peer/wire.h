/*
 * wire.h - numbers and texts in the messages between nodes.
 *
 *      number   base 128, the lowest 7 bits first; bit 7 of a byte: another byte follows
 *      signed   a number: 0, -1, 1, -2 ... become 0, 1, 2, 3 ...
 *      text     a number, its length; then its bytes
 *
 * A value has one form: a number has no superfluous bytes. A reader never reads behind its
 * bytes; after the first fault it fails, and all further values are zero.
 */
#ifndef PEER_WIRE_H
#define PEER_WIRE_H

#include "base/bytes.h"

struct wire_reader {
	struct slice rest; /* bytes that are not read yet */
	bool failed;       /* a value is not whole, or not in its one form */
};

void wire_put(struct buf *out, uint64_t value);
void wire_put_signed(struct buf *out, int64_t value);
void wire_put_text(struct buf *out, struct slice text);

/* Returns a number up to most. */
uint64_t wire_get(struct wire_reader *w, uint64_t most);
int64_t wire_get_signed(struct wire_reader *w);

/* Returns a text of at most `most` bytes, which points into the message. */
struct slice wire_get_text(struct wire_reader *w, size_t most);

#endif
