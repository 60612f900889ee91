/*
 * wal.h - a log: every change, in order, on disk before it is answered.
 *
 *   00000001.log            00000002.log            00000003.log
 *   +------+---+---+---+    +------+---+---+---+    +------+---+---+ . . . .
 *   | head | r | r | r |    | head | r | r | r |    | head | r | r |  rest
 *   +------+---+---+---+    +------+---+---+---+    +------+---+---+ . . . .
 *   sealed: live rest copied forward, then recycled open: append only
 *
 * What is appended between two commits is a group: it is written with one write,
 * synced with one sync, and after a crash there whole or not at all. A group may be
 * larger than a segment; a record may not. docs/log-format.md has the bytes.
 *
 *         wal_begin(w, now);
 *         for each op of the batch:
 *                 rc = wal_reserve(w, WAL_NEW, wal_size(n), wal_size(n), &err);
 *                 if (rc)
 *                         refuse this op, nothing has changed
 *                 where = wal_append(w, type, parts, 2);
 *         rc = wal_commit(w, true, &err);
 *         answer the batch
 *
 *  W1  A commit that asks for sync returns 0 only after the sync that covers it did.
 *  W2  seq has no gaps; replay gives whole groups only. What follows the last whole
 *      group is a torn tail, cut and logged, unless something says that it was
 *      synced - the file `durable`, a later record, a later segment: then it is
 *      damage, and open refuses with SLU_ECORRUPT, names file and offset and changes
 *      nothing. Every open begins a new life of the log with a record of its own, and
 *      syncs it: what was cut is of an older life, so it never follows again. A segment
 *      is begun only after all before it was synced.
 *  W3  A failed write or sync is never tried again (the kernel may have dropped the
 *      pages): the log has failed, and every later call answers SLU_EDOWN.
 *  W4  The last spare segments are kept for what settles messages: stock.h, K1. The last
 *      quarter of the last one is for what ends them, for cleaning and for opening.
 *  W5  Replay changes nothing: any number of opens gives the same records.
 *  W6  The strictly oldest segment is cleaned, and recycled when the copies are synced.
 *  W7  One process has the folder: flock on the file `lock`.
 *  W8  Files carry a version; a newer one is refused.
 *  W9  Segments begin with first_size. Those that follow are twice as large, and again
 *      after each that was full within a minute, or when there are more than 64, up to
 *      segment_size, if the disk has room for 16 of them. After one that took more than
 *      an hour they are half as large. They are never smaller than the largest record that
 *      the log was seen to have, and a record or group that needs larger ones gets them.
 *
 * The log belongs to one thread. Others may call wal_prepare, wal_wants_spare, wal_owed,
 * and read what was pinned for them.
 */
#ifndef WAL_WAL_H
#define WAL_WAL_H

#include "base/clock.h"
#include "wal/stock.h"

struct wal;

enum wal_mode {
	WAL_SYNC,     /* a commit that asks for it is synced before it returns */
	WAL_INTERVAL, /* whatever it asks: at most `interval` later, by wal_tick */
	WAL_NONE      /* when the kernel likes */
};

struct wal_conf {
	struct disk *disk;   /* NULL: disk_posix */
	struct clock *clock; /* NULL: clock_system */
	struct slu_log *log;
	const char *folder;    /* made when it is missing */
	uint32_t segment_size; /* the largest; a multiple of 4096, 8 KiB .. 1 GiB; 0: 64 MiB */
	uint32_t first_size;   /* the first; the same; 0: segment_size, and all are as large */
	uint64_t least_room;   /* a new log is refused if the disk has fewer bytes free */
	enum wal_mode mode;
	slu_time interval;     /* 0: a second. WAL_SYNC: for commits that did not ask */
	uint32_t reserve;      /* spare segments kept for settling: W4 */
	uint32_t ahead;        /* and beyond them, ready for the next change; 0: 1 */
	uint32_t max_segments; /* files in all, spares too; 0: until the disk is full */
	bool read_only;        /* look, repair nothing, append nothing; needs the lock */

	/* Each may be NULL. synced: a sync has returned, on the thread that wanted it.
	 * reading: at open, so many bytes of so many have been read back; false ends it
	 * with SLU_ECANCELED, and nothing has changed. */
	void (*synced)(void *arg, slu_time took);
	bool (*reading)(void *arg, uint64_t done, uint64_t all);
	void *arg;
};

enum {
	WAL_SEGMENT_SIZE = 64 * 1024 * 1024,
	WAL_FIRST_SIZE = 1024 * 1024
};

/* Where a record is. Good until its segment is recycled. */
struct wal_where {
	uint32_t segment;
	uint32_t offset;
	uint32_t length; /* on disk; 0 when it came from wal_unpack */
};

static inline uint64_t
wal_pack(struct wal_where at)
{
	return (uint64_t)at.segment << 32 | at.offset;
}

static inline struct wal_where
wal_unpack(uint64_t packed)
{
	return (struct wal_where){ (uint32_t)(packed >> 32), (uint32_t)packed, 0 };
}

struct wal_record {
	uint8_t type;
	uint64_t seq;
	slu_time time; /* of its group; 0 from wal_read of one that does not carry it */
	struct wal_where where;
	struct slice body;
};

/* Called at open for every record in order. rec is borrowed. May call wal_live. Other
 * than 0 ends the open and is what it returns. */
typedef int wal_replay_fn(struct wal *w, const struct wal_record *rec, void *arg,
			  struct slu_err *err);

/* SLU_EINVAL: conf, or a newer version (W8). SLU_EDOWN: the folder is somebody's
 * (W7), or I/O. SLU_ECORRUPT: W2. SLU_EFULL: no room to begin the new life. */
int wal_open(struct wal **out, const struct wal_conf *conf, wal_replay_fn *replay,
	     void *arg, struct slu_err *err);

/* Syncs what was committed, drops what was not. Nothing is pinned any more. NULL is fine.
 * SLU_EDOWN: that failed, now or before, and is logged. */
int wal_close(struct wal *w);

/* The time of the next group. It never goes back: a smaller one counts as the last. */
void wal_begin(struct wal *w, slu_time now);

/* The most that a record with a body of n bytes takes. */
static inline uint64_t
wal_size(uint64_t n)
{
	return record_size(n, true);
}

/*
 * Room in the group, in memory and on disk, for records of `bytes` in all (the sum of
 * their wal_size), the largest of which is `largest`. They cannot fail after this.
 * Holds until the next wal_reserve or wal_commit.
 *
 * SLU_EFULL (W4), SLU_ETOOBIG (no segment holds it), SLU_ENOMEM, SLU_EDOWN. Nothing
 * has changed then; the group is as it was.
 */
int wal_reserve(struct wal *w, enum wal_use use, uint64_t bytes, uint64_t largest,
		struct slu_err *err);

/* Add a record to the group, its body in n parts: room for it was reserved. type is
 * 1 .. 254. */
struct wal_where wal_append(struct wal *w, uint8_t type, const struct slice *parts,
			    unsigned n);

/* Forget what was appended since the last commit. */
void wal_drop(struct wal *w);

/* Write the group and, when sync is set and the mode says so, sync. An empty group
 * is fine: then only what was written before is synced. SLU_EDOWN: W3, the caller
 * does not know whether the group will be there after the next open. */
int wal_commit(struct wal *w, bool sync, struct slu_err *err);

/* Sync if something waits for longer than the interval. */
int wal_tick(struct wal *w, struct slu_err *err);

/* Sync what was committed, whatever the mode. */
int wal_flush(struct wal *w, struct slu_err *err);

/* When wal_tick has something to do (mono), or SLU_NEVER. */
slu_time wal_due(const struct wal *w);

/* Read a committed record into p, size bytes, at least where.length of them (the body
 * lies inside p). The sum is checked. SLU_ECORRUPT, SLU_ENOTFOUND (no such segment),
 * SLU_ETOOBIG (p is too small), SLU_EDOWN. */
int wal_read(struct wal *w, struct wal_where where, void *p, size_t size,
	     struct wal_record *rec, struct slu_err *err);

/* The same from any thread, any time after the pin and before the unpin, whatever
 * becomes of the segment meanwhile. What was appended can be pinned at once, and read
 * when it has been committed. */
struct wal_pin {
	struct segment *segment; /* NULL: none */
	struct wal_where where;
};

int wal_pin(struct wal *w, struct wal_where where, struct wal_pin *pin);
void wal_unpin(struct wal_pin *pin); /* twice is fine */
int wal_pinned_read(const struct wal_pin *pin, void *p, size_t size,
		    struct wal_record *rec, struct slu_err *err);

/* SLU_EBUSY when it would have to wait for the disk. */
int wal_pinned_read_now(const struct wal_pin *pin, void *p, size_t size,
			struct wal_record *rec, struct slu_err *err);

/* Neighbours with one call: n bytes from the pinned record on, as they are; now: SLU_EBUSY
 * as above. Then each of them is checked where it lies. SLU_EDOWN, SLU_ECORRUPT. */
int wal_pinned_span(const struct wal_pin *pin, void *p, size_t n, bool now);
int wal_pinned_check(const struct wal_pin *pin, const void *p, struct wal_record *rec);

/*
 * Cleaning. The caller says what it still needs of each segment, and when wal_excess
 * is not 0 copies what lives in the oldest one forward:
 *
 *         rc = wal_cursor_open(&c, w, wal_oldest(w), &err);
 *         while (!(rc = wal_cursor_next(&c, &rec, &err)) && rec.type)
 *                 if (is_live(&rec))
 *                         reserve (WAL_FREE), append a copy
 *         wal_cursor_close(&c);
 *         wal_commit(w, true, &err);
 *         wal_recycle(w, &err);
 */
void wal_live(struct wal *w, struct wal_where where, int64_t bytes);
int64_t wal_live_in(const struct wal *w, uint32_t segment); /* 0 when there is none */

/* Bytes of sealed segments beyond twice what lives, 0: nothing to do. Who cleans as
 * long as there are some keeps the disk under three times what lives and 4 segments
 * (with a reserve of 2): W6. */
uint64_t wal_excess(const struct wal *w);

/* The disk is full, and the reserve of W4 is being used up. */
bool wal_is_short(struct wal *w);

/* Of the segments that are begun now: W9. */
uint32_t wal_segment_size(const struct wal *w);
uint32_t wal_size_of(const struct wal *w, uint32_t segment); /* 0 when there is none */

/* The oldest segment that is sealed, 0 when there is none. */
uint32_t wal_oldest(const struct wal *w);

struct wal_cursor {
	struct reader *reader; /* NULL: not open */
	slu_time time;
	bool done; /* there was no next one */
};

/* Keeps its place over any number of commits. SLU_ENOTFOUND, SLU_ENOMEM. */
int wal_cursor_open(struct wal_cursor *c, struct wal *w, uint32_t segment,
		    struct slu_err *err);
void wal_cursor_close(struct wal_cursor *c); /* zeroed, and twice, is fine */

/* rec->type is 0 behind the last record. rec is good until the next call. */
int wal_cursor_next(struct wal_cursor *c, struct wal_record *rec, struct slu_err *err);

/* The oldest segment is needed no more: nothing lives in it, and what was copied from
 * it is committed. Syncs that, then takes it out of the log. */
int wal_recycle(struct wal *w, struct slu_err *err);

/*
 * A copy of the log as it stands, the group that is being gathered aside. The segments
 * are pinned: one that is recycled meanwhile keeps its content until the copy is closed.
 * What is not copied behind `bytes` means nothing: a file of zeros up to `size` does.
 */
struct wal_copy_file {
	struct segment *segment;
	uint32_t bytes;
};

struct wal_copy {
	struct wal_copy_file *files; /* NULL: not open */
	uint32_t n;
	uint64_t bytes; /* of all files */
	uint64_t seq;   /* of the last record */
	slu_time time;  /* when it was taken */
};

int wal_copy_open(struct wal_copy *c, const struct wal *w, struct slu_err *err);
void wal_copy_close(struct wal_copy *c); /* zeroed, and twice, is fine */

/* Any thread: n bytes of a file of the copy, or of one that was pinned besides. */
int wal_copy_read(const struct segment *s, uint64_t at, size_t n, char *out,
		  struct slu_err *err);

/* Any thread: spares are made ahead by one that may wait for the disk. */
bool wal_wants_spare(struct wal *w);
int wal_prepare(struct wal *w, struct slu_err *err);

void wal_set_reserve(struct wal *w, uint32_t segments);

/* Any thread: bytes that must stay free on the disk for W4, as the log is now. Whoever
 * writes other files to the same disk leaves them. */
uint64_t wal_owed(struct wal *w);

/* How many bytes new work may still add, as the disk is now. */
uint64_t wal_room(struct wal *w);

/* Bytes free on the disk that has the folder; negative: it does not say. */
int64_t wal_disk_free(struct wal *w);

struct wal_stats {
	uint64_t seq;     /* of the last record committed */
	uint64_t durable; /* of the last that is known to be synced */
	slu_time time;    /* of the last group */
	uint32_t segments;
	uint32_t spares;
	uint64_t spare_bytes;
	uint32_t end;   /* offset of the next record in the last segment */
	uint64_t bytes; /* of all files */
	uint64_t live;
	uint64_t writes; /* since open */
	uint64_t syncs;
	bool failed; /* W3 */
};

void wal_stats(struct wal *w, struct wal_stats *stats);

#endif
