/*
 * segment.h - one file of the log.
 *
 *     +------+--------+--------+--- - - ---+
 *     | head | record | record |   rest    |     rest: zeros, or what an earlier
 *     +------+--------+--------+--- - - ---+     life of the file has left there
 *     0      64                end       size
 *
 * The head, little-endian:
 *     0  8  "sluicewl"
 *     8  4  version of the format, 1
 *    12  4  crc32c of the 64 bytes, with zeros here
 *    16  4  random number: part of the seed of every record's sum
 *    20  4  number of the segment, as in the name of the file
 *    24  8  seq of its first record
 *    32  8  wall time when it was begun, ns since 1970
 *    40  8  size of the file
 *    48 16  zero
 *
 *  S1  A file has the name 00000001.log only after its head was synced: with that
 *      name and without a whole head it is damaged. What it held before has sums of
 *      another random number, so nothing of it passes for a record.
 *  S2  Magic, version and sum stay where they are in all versions to come, so that a
 *      newer one is told from damage.
 *  S3  A segment that anybody has pinned is read from, never written to by a new
 *      life: it becomes a new one only when its owner's is the only reference.
 *
 * The owner is the log or its stock of spares; others pin it to read. A segment is
 * freed with its last reference.
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
	SEGMENT_PAGE = 4096, /* sizes are multiples; the kernel's page, see group.h */
	SEGMENT_NAME = 32
};

struct segment {
	struct disk *disk;
	int file;
	uint32_t size;
	_Atomic uint32_t refs;

	/* Changed only while nobody has it pinned. */
	uint32_t number; /* 0: a spare that has no place in the log yet */
	uint32_t seed;
	uint64_t first_seq;
	slu_time time;
	char name[SEGMENT_NAME]; /* in the log; a recycled one keeps it for messages */

	/* The owner's. */
	struct list node; /* of the stock */
	uint32_t spare;   /* number in the file's name while it is a spare */
	uint32_t end;     /* of the last record */
	uint32_t clear;   /* and since the log was opened zeros were written up to here */
	int64_t live;     /* bytes that the caller still needs */
	bool was_written; /* every block was: syncs are faster than after allocate */
};

/* 00000001.log and spare-00000001. */
void segment_name(uint32_t number, char name[static SEGMENT_NAME]);
void segment_spare_name(uint32_t spare, char name[static SEGMENT_NAME]);

/* A segment of an open file, which it takes on success. NULL: no memory. */
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

/* Open 0000000N.log and read its head. SLU_ECORRUPT by S1, SLU_EINVAL when its
 * version is newer, SLU_EDOWN. */
int segment_open(struct segment **out, struct disk *disk, int folder, uint32_t number,
		 struct slu_err *err);

/* Give a spare its place in the log: number and random number, in memory only. */
void segment_plan(struct segment *s, uint32_t number, uint32_t seed);

/* Make a planned spare the log's file: head, sync, name, sync of the folder. After an
 * error nobody knows which of that is on disk. */
int segment_begin(struct segment *s, int folder, uint64_t first_seq, slu_time time,
		  struct slu_err *err);

/* What is added to the seed for a record at offset. */
static inline uint32_t
segment_salt(const struct segment *s, uint32_t offset)
{
	return s->seed + offset;
}

/* Read n bytes at offset, all of them, without waiting if now is set. SLU_EBUSY: they
 * are not in memory. */
int segment_read(const struct segment *s, void *p, size_t n, uint32_t offset, bool now,
		 struct slu_err *err);

#endif
