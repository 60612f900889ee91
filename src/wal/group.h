/*
 * group.h - the records of one commit, gathered as they will stand on disk.
 *
 *     memory:   | r r r r 0 0 0 | r r r 0 |         a piece for every segment it
 *                 piece 0          piece 1          touches, one write each
 *     disk:     2.log, at 60032   3.log, at 64
 *
 * A record is copied in once and written from here. Its sum is made when the next one
 * follows, for only then is it known whether the group goes on.
 *
 * A piece is filled with zeros up to the end of its last page: the kernel then never
 * has to read a page from disk in order to change a part of it, and behind the last
 * record of a recycled segment there are zeros for the eye. What goes behind it into the
 * same page later finds them there.
 *
 * Nothing is allocated but in group_reserve, and there only when a group is larger
 * than any before.
 */
#ifndef WAL_GROUP_H
#define WAL_GROUP_H

#include "wal/segment.h"

struct group_piece {
	struct segment *segment; /* borrowed */
	uint32_t at;             /* offset there of the first record */
	uint32_t end;            /* of the last one */
	size_t from;             /* in the buffer; with the padding it ends where the
				    next piece begins */
};

struct group {
	char *p;
	size_t n;
	size_t size;
	struct group_piece *pieces;
	uint32_t n_pieces;
	uint32_t max_pieces;
	uint64_t records;
	char *last; /* the record that has no sum yet; NULL: none */
	uint32_t last_salt;
};

int group_init(struct group *g);
void group_release(struct group *g);

/* Empty again. Gives back what one very large group needed. */
void group_clear(struct group *g);

/* Memory for so many bytes of records and so many pieces more. SLU_ENOMEM. */
int group_reserve(struct group *g, uint64_t bytes, uint32_t pieces);

/* Go on in this segment at this offset. */
void group_add_piece(struct group *g, struct segment *s, uint32_t at);

static inline struct group_piece *
group_piece(struct group *g)
{
	return &g->pieces[g->n_pieces - 1];
}

/* Append a record to the last piece; r has all but body.p. It fits. */
void group_put(struct group *g, const struct record *r, const struct slice *parts,
	       unsigned n);

/* No more records: the last one ends the group. */
void group_finish(struct group *g);

/* How many bytes piece i has, padding included. */
size_t group_piece_size(const struct group *g, uint32_t i);

#endif
