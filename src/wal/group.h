/*
 * group.h - the records of one commit, gathered as they will stand on disk.
 *
 *     memory:   | r r r r 0 0 0 | r r r 0 |         a piece for every segment it
 *                 piece 0          piece 1          touches, one write each
 *     disk:     2.log, at 60032   3.log, at 64
 *
 * A record is copied in once and written from here. Its sum is made when the next record
 * follows or the group ends: only then the flag RECORD_GOES_ON is known.
 *
 * A piece is filled with zeros up to the end of its last page. So the kernel never reads
 * a page from disk to change a part of it, and a recycled segment has zeros behind its
 * last record. A later piece in the same page overwrites these zeros.
 *
 * Only group_reserve allocates, and only if a group is larger than any group before.
 */
#ifndef WAL_GROUP_H
#define WAL_GROUP_H

#include "wal/segment.h"

struct group_piece {
	struct segment *segment; /* borrowed */
	uint32_t at;             /* offset of the first record in the segment */
	uint32_t end;            /* offset behind the last record in the segment */
	size_t from;             /* where the piece begins in the buffer; its padding ends
				    where the next piece begins */
};

struct group {
	char *p; /* the buffer */
	size_t n;
	size_t size;
	struct group_piece *pieces;
	uint32_t n_pieces;
	uint32_t max_pieces;
	uint64_t records;
	char *last; /* the record without a sum; NULL = no record */
	uint32_t last_salt;
};

int group_init(struct group *g);
void group_release(struct group *g);

/* Empties the group. Frees the memory of a very large group. */
void group_clear(struct group *g);

/* Whether the buffer has room for more records and pieces. */
static inline bool
group_fits(const struct group *g, uint64_t bytes, uint32_t pieces)
{
	return g->n + bytes + (pieces + 1ull) * SEGMENT_PAGE <= g->size;
}

/* Reserves memory for more records and pieces. Returns SLU_ENOMEM. */
int group_reserve(struct group *g, uint64_t bytes, uint32_t pieces);

/* Begins a piece in this segment at this offset. */
void group_add_piece(struct group *g, struct segment *s, uint32_t at);

static inline struct group_piece *
group_piece(struct group *g)
{
	return &g->pieces[g->n_pieces - 1];
}

/* Appends a record, which fits, to the last piece; r has everything except body.p. */
void group_put(struct group *g, const struct record *r, const struct slice *parts,
	       unsigned n);

/* The record of the group at this offset of the segment; NULL if the group has nothing there. */
const char *group_find(const struct group *g, const struct segment *s, uint32_t offset);

/* Ends the group with its last record. */
void group_finish(struct group *g);

/* The bytes of piece i, with padding. */
size_t group_piece_size(const struct group *g, uint32_t i);

#endif
