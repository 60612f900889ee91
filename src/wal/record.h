/*
 * record.h - one record of the log as bytes.
 *
 * Little-endian, aligned to 8:
 *     0  4  sum: crc32c of bytes 4 .. end of body, seeded with the segment's random
 *           number plus the record's offset in its file
 *     4  4  length of body
 *     8  8  seq, one more than the record before
 *    16  8  durable, highest seq known to be synced when this was written
 *    24  1  type: 1 .. 254 are the caller's, 255 begins a new life of the log
 *    25  1  flags
 *    26  2  zero
 *    28  4  life: a random number, another one each time the log is opened
 *   [32  8  the group's time, when flags say so]
 *    ..  n  body, then zeros up to a multiple of 8
 *
 * The offset is part of the sum so that a block which the disk put in the wrong
 * place, or did not write at all, is no record there. Zeros are never a record.
 *
 * Pure: bytes in, bytes out.
 */
#ifndef WAL_RECORD_H
#define WAL_RECORD_H

#include "base/bytes.h"

enum {
	RECORD_HEAD = 32,
	RECORD_TIME = 8,
	RECORD_ALIGN = 8
};

enum {
	RECORD_OPENS = 255 /* type */
};

enum record_flag {
	RECORD_GOES_ON = 1,  /* the next record is of the same group */
	RECORD_HAS_TIME = 2, /* first of its group, or of its segment */
	RECORD_FLAGS = 3
};

struct record {
	uint64_t seq;
	uint64_t durable;
	uint32_t life;
	slu_time time; /* when flags say so, else 0 */
	uint8_t type;
	uint8_t flags;
	struct slice body;
	uint32_t size; /* on disk, head and padding included */
};

/* What a body of n bytes takes on disk. */
static inline uint64_t
record_size(uint64_t n, bool has_time)
{
	const uint64_t size = RECORD_HEAD + (has_time ? RECORD_TIME : 0) + n;

	return (size + RECORD_ALIGN - 1) & ~(uint64_t)(RECORD_ALIGN - 1);
}

/* Write head and time of r, whose size is set, at p; the sum comes last. */
void record_put_head(char *p, const struct record *r);

/* The record at p is complete: is_last clears RECORD_GOES_ON, then the sum is made.
 * salt is the segment's random number plus the record's offset. */
void record_seal(char *p, uint32_t salt, bool is_last);

/* How large the record at p says it is, 0 when that is no head of a record that fits
 * into max bytes. Looks at RECORD_HEAD bytes and trusts none of them. */
uint32_t record_claims(const char *p, uint64_t max);

/* Its seq, as the head says. */
uint64_t record_seq(const char *p);

/* Read the record at p, of which n bytes are there; false when that is none. body
 * points into p. */
bool record_get(const char *p, size_t n, uint32_t salt, struct record *r);

#endif
