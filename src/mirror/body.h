/*
 * body.h - the body of a group of a line: pieces of a log, and where they belong.
 *
 * A piece is a run of bytes that the log wrote to one of its segments. A group holds the
 * pieces of one commit in the order in which the log wrote them. Offset 0: the piece is the
 * head of a new segment, and holds the segment's size (wal/segment.h).
 *
 * Little-endian:
 *      0   4  format, 1
 *      4   4  number of pieces, n
 *      8 12n  for each piece: 4 segment, 4 offset, 4 length
 *      .. ..  the bytes of the pieces
 *
 * Pure: no I/O.
 */
#ifndef MIRROR_BODY_H
#define MIRROR_BODY_H

#include "base/bytes.h"

#include <sluice/err.h>

enum {
	BODY_HEAD = 8,
	BODY_PLACE = 12,
	BODY_FORMAT = 1
};

struct body_piece {
	uint32_t segment; /* 1 or more */
	uint32_t offset;
	struct slice bytes;
};

/* Collects pieces. */
struct body {
	uint32_t n;
	struct buf places; /* inner */
	struct buf bytes;  /* inner */
};

void body_init(struct body *b);
void body_release(struct body *b);
void body_clear(struct body *b);

/* Copies the piece. b->bytes.failed or b->places.failed if there is no memory. */
void body_add(struct body *b, const struct body_piece *piece);

/* Appends the body to out. Returns SLU_ENOMEM, also if an earlier body_add failed. */
int body_encode(const struct body *b, struct buf *out);

struct body_reader {
	uint32_t n;           /* pieces that were not read yet */
	struct slice places;  /* inner */
	struct slice content; /* inner */
};

/* Returns SLU_ECORRUPT, or SLU_EINVAL if the format is newer. */
int body_open(struct body_reader *r, struct slice body, struct slu_err *err);

/* Reads the next piece, which points into the body: false behind the last one. */
bool body_next(struct body_reader *r, struct body_piece *piece);

#endif
