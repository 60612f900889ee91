/*
 * record.h - one record of the log as bytes.
 *
 * Little-endian, aligned to 8:
 *     0  4  sum: crc32c of bytes 4 .. end of body, seeded with the segment's random
 *           number plus the record's offset in its file
 *     4  4  length of body
 *     8  8  seq: one more than in the record before
 *    16  8  durable: highest seq known to be synced when the record was written
 *    24  1  type: 1 .. 254 belong to the caller, 255 begins a new life of the log
 *    25  1  flags
 *    26  2  zero
 *    28  4  life: a random number, a new one each time the log is opened
 *   [32  8  the group's time, if RECORD_HAS_TIME is set]
 *    ..  n  body, then zeros up to a multiple of 8
 *
 * The sum depends on the offset, so a block that the disk wrote to the wrong place, or
 * did not write, is not a valid record there. Zeros are never a record.
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
	slu_time time; /* 0 without RECORD_HAS_TIME */
	uint8_t type;
	uint8_t flags;
	struct slice body;
	uint32_t size; /* on disk, with head and padding */
};

/* The size on disk of a record with a body of n bytes. */
static inline uint64_t
record_size(uint64_t n, bool has_time)
{
	const uint64_t size = RECORD_HEAD + (has_time ? RECORD_TIME : 0) + n;

	return (size + RECORD_ALIGN - 1) & ~(uint64_t)(RECORD_ALIGN - 1);
}

/* Writes head and time of r at p, without the sum. r->size is set. */
void record_put_head(char *p, const struct record *r);

/* Completes the record at p: clears RECORD_GOES_ON if is_last, then writes the sum.
 * `salt`: the segment's random number plus the record's offset. */
void record_seal(char *p, uint32_t salt, bool is_last);

/* The size in the head at p; 0 if the head is invalid or the record does not fit into max
 * bytes. Reads RECORD_HEAD bytes and trusts none of them. */
uint32_t record_claims(const char *p, uint64_t max);

/* The seq in the head at p. */
uint64_t record_seq(const char *p);

/* Reads the record at p, which was written there a moment ago and may have no sum yet; body points into p. */
void record_look(const char *p, struct record *r);

/* Reads the record at p, where n bytes are; body points into p. Returns false if the
 * record is invalid. */
bool record_get(const char *p, size_t n, uint32_t salt, struct record *r);

#endif
