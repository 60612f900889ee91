/*
 * segment.h - one file of the log.
 *
 *     +------+--------+--------+--- - - ---+
 *     | head | record | record |   rest    |     rest: zeros, or bytes that an
 *     +------+--------+--------+--- - - ---+     earlier use of the file left
 *     0      64                end       size
 *
 * The head, little-endian:
 *     0  8  "sluicewl"
 *     8  4  version of the format, 1
 *    12  4  crc32c of the 64 bytes, with zeros here
 *    16  4  random number: part of the seed of every record's sum
 *    20  4  number of the segment, as in the name of the file
 *    24  8  seq of its first record
 *    32  8  wall time when the segment began, ns since 1970
 *    40  8  size of the file
 *    48 16  zero
 *
 *  SEGMENT-1  A file gets the name 00000001.log only after its head was synced: a file with
 *      that name and without a whole head is damaged. Older bytes in the file have sums with
 *      another random number, so they never pass for a record.
 *  SEGMENT-2  Magic, version and sum keep their places in all later versions, so a program
 *      can tell a newer version from damage.
 *  SEGMENT-3  A pinned segment is never used again: a file becomes a new segment only when
 *      its owner has the only reference.
 *
 * The owner is the log or its spares. Readers pin the segment. The last
 * reference frees it.
 */
#ifndef WAL_SEGMENT_H
#define WAL_SEGMENT_H

#include "base/disk.h"
#include "base/list.h"
#include "wal/record.h"

#include <stdatomic.h>

enum {
	SEGMENT_HEAD = 64,
	SEGMENT_VERSION = 1,
	SEGMENT_PAGE = 4096, /* sizes are multiples of the kernel's page: group.h */
	SEGMENT_NAME = 32
};

struct segment {
	struct disk *disk;
	int file;
	uint32_t size;
	_Atomic uint32_t refs;

	/* Change only while the segment is not pinned. */
	uint32_t number;         /* 0 = a spare without a place in the log */
	uint32_t seed;           /* the random number */
	uint64_t first_seq;      /* of the first record */
	slu_time time;           /* wall time when the segment began */
	char name[SEGMENT_NAME]; /* in the log; a spare keeps its last name for messages */

	/* Used by the owner only. */
	struct list node; /* in the list of spares */
	uint32_t spare;   /* number in the file's name while it is a spare */
	uint32_t end;     /* offset behind the last record */
	uint32_t clear;   /* since open the log wrote zeros from `end` up to here */
	int64_t live;     /* bytes that the caller still needs */
	bool uncounted;   /* `live` does not count all that the caller may need: wal_set_uncounted */
	bool was_written; /* every block was written: syncs are faster than after allocate */
};

/* 00000001.log and spare-00000001. */
void segment_name(uint32_t number, char name[static SEGMENT_NAME]);
void segment_spare_name(uint32_t spare, char name[static SEGMENT_NAME]);

/* Takes an open file. Returns NULL if there is no memory: the caller keeps the file. */
struct segment *segment_new(struct disk *disk, int file, uint32_t size);

static inline struct segment *
segment_ref(struct segment *s)
{
	atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
	return s;
}

void segment_unref(struct segment *s); /* NULL is fine */

static inline bool
segment_is_pinned(const struct segment *s)
{
	return atomic_load_explicit(&s->refs, memory_order_acquire) > 1;
}

/* Opens 0000000N.log and reads its head. Returns SLU_ECORRUPT (SEGMENT-1), SLU_EINVAL if the
 * version is newer, SLU_EDOWN, SLU_ENOMEM. */
int segment_open(struct segment **out, struct disk *disk, int folder, uint32_t number,
		 struct slu_err *err);

/* Gives a spare its place in the log: number and random number, in memory only. */
void segment_plan(struct segment *s, uint32_t number, uint32_t seed);

/* Writes the head of the segment to `head`. */
void segment_head(const struct segment *s, char head[static SEGMENT_HEAD]);

/* Makes a planned spare a file of the log: writes and syncs the head, renames the file,
 * syncs the folder. After an error any of these steps may be on disk. */
int segment_begin(struct segment *s, int folder, uint64_t first_seq, slu_time time,
		  struct slu_err *err);

/* The seed of the sum of a record at offset. */
static inline uint32_t
segment_salt(const struct segment *s, uint32_t offset)
{
	return s->seed + offset;
}

/* Reads exactly n bytes at offset. With `now` it returns SLU_EBUSY if the bytes are not in
 * memory. */
int segment_read(const struct segment *s, void *p, size_t n, uint32_t offset, bool now,
		 struct slu_err *err);

#endif
