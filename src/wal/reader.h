/*
 * reader.h - the records of a segment, one after the other.
 *
 * Reads ahead into a buffer that grows up to the largest record met. What it hands
 * out points into that buffer and is good until the next call.
 */
#ifndef WAL_READER_H
#define WAL_READER_H

#include "wal/segment.h"

struct reader {
	struct segment *segment; /* pinned; NULL before reader_start */
	uint32_t at;             /* offset of the next record */
	uint32_t limit;          /* looks at nothing from here on */
	char *p;
	size_t size;   /* of the buffer */
	uint32_t from; /* offset of p[0] */
	uint32_t n;    /* bytes in the buffer */
};

/* Zeroed is fine, too. */
void reader_init(struct reader *r);
void reader_release(struct reader *r);

/* Begin with the record at offset `at`, end at limit. The buffer is kept. */
void reader_start(struct reader *r, struct segment *s, uint32_t at, uint32_t limit);

/* Is there a whole record at r->at? It stays the next one; rec->size is 0 when there
 * is none. SLU_EDOWN, SLU_ENOMEM, SLU_ECORRUPT (the file is cut). */
int reader_peek(struct reader *r, struct record *rec, struct slu_err *err);

/* n more bytes at r->at, or what is left of them: *p is NULL when there are less. */
int reader_bytes(struct reader *r, size_t n, const char **p, struct slu_err *err);

static inline void
reader_skip(struct reader *r, uint32_t n)
{
	r->at += n;
}

#endif
