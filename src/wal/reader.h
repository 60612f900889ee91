/*
 * reader.h - the records of a segment, one after the other.
 *
 * Reads ahead into a buffer that grows to the largest record. Records point into that
 * buffer and are valid until the next call.
 */
#ifndef WAL_READER_H
#define WAL_READER_H

#include "wal/segment.h"

struct reader {
	struct segment *segment; /* pinned; NULL before reader_start */
	uint32_t at;             /* offset of the next record */
	uint32_t limit;          /* the offset where reading ends */
	char *p;                 /* the buffer */
	size_t size;             /* of the buffer */
	uint32_t from;           /* offset of p[0] in the segment */
	uint32_t n;              /* bytes in the buffer */
};

/* Works on a zeroed reader. */
void reader_release(struct reader *r);

/* Begins with the record at offset `at` and ends at limit. Keeps the buffer. */
void reader_start(struct reader *r, struct segment *s, uint32_t at, uint32_t limit);

/* Reads the record at r->at and stays there; rec->size is 0 if no whole record is there.
 * Returns SLU_EDOWN, SLU_ENOMEM, SLU_ECORRUPT if the file is cut. */
int reader_peek(struct reader *r, struct record *rec, struct slu_err *err);

/* Sets *p to the n bytes at r->at, NULL if fewer are left. */
int reader_bytes(struct reader *r, size_t n, const char **p, struct slu_err *err);

static inline void
reader_skip(struct reader *r, uint32_t n)
{
	r->at += n;
}

#endif
