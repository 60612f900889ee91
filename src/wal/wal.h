/*
 * wal.h - a log: every change, in order, on disk before it is answered.
 *
 *   00000001.log            00000002.log            00000003.log
 *   +------+---+---+---+    +------+---+---+---+    +------+---+---+ . . . .
 *   | head | r | r | r |    | head | r | r | r |    | head | r | r |  rest
 *   +------+---+---+---+    +------+---+---+---+    +------+---+---+ . . . .
 *   sealed: live rest copied forward, then recycled open: append only
 *
 * The records appended between two commits are a group: the log writes it with one
 * write and one sync, and after a crash the group is there whole or not at all. A group
 * may be larger than a segment; a record may not. docs/log-format.md has the bytes.
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
 *  WAL-1  A commit with sync returns 0 only after the sync that covers the group succeeded.
 *  WAL-2  seq has no gaps; replay returns whole groups only. Bytes behind the last whole
 *      group are a torn tail: open cuts the tail and logs that, unless the file `durable`, a
 *      later record or a later segment proves that the tail was synced. Then the log is
 *      damaged: open returns SLU_ECORRUPT, names file and offset, and changes nothing. Every
 *      open begins a new life of the log with a record of its own and syncs that record. A
 *      cut tail belongs to an older life, so replay never accepts it again. A segment begins
 *      only after everything before it was synced.
 *  WAL-3  The log never repeats a failed write or sync (the kernel may have dropped the
 *      pages): the log has failed, and every later call returns SLU_EDOWN.
 *  WAL-4  The last spare segments are reserved for records that settle messages (spares.h,
 *      SPARES-1). The last quarter of the last spare is reserved for records that end
 *      messages, for cleaning and for opening.
 *  WAL-5  Replay changes nothing: any number of opens gives the same records.
 *  WAL-6  Cleaning takes the oldest segment first and recycles it when the copies are synced.
 *  WAL-7  One process has the folder: flock on the file `lock`.
 *  WAL-8  Files carry a version. Open refuses a newer version.
 *  WAL-9  The first segment has first_size. The next segments are twice as large. The size
 *      doubles again after each segment that was full within a minute, or while there are
 *      more than 64 segments, up to segment_size, if the disk has room for 16 segments of the
 *      new size. The size halves after a segment that took more than an hour to fill. It is
 *      never smaller than the largest record the log has had. A record or group that needs
 *      larger segments gets them.
 *  WAL-10  With a mirror the folder is a cache: the log is what the mirror keeps. The log
 *      syncs nothing and has no file `durable`. At open the mirror mends the folder before
 *      the log reads it. The mirror receives all bytes of the log, in the order in which
 *      they are written. The caller waits for the mirror where it would wait for a sync.
 *      A mirror that is `behind` is a copy: the folder is the log, as without a mirror. The log
 *      syncs, and the mirror reads the bytes from the folder when it wants them.
 *
 * One thread owns the log. Other threads may call wal_prepare, wal_wants_spare and
 * wal_owed, and may read pinned records.
 */
#ifndef WAL_WAL_H
#define WAL_WAL_H

#include "base/clock.h"
#include "wal/spares.h"

struct wal;

enum wal_mode {
	WAL_SYNC,     /* a commit with sync returns after the sync */
	WAL_INTERVAL, /* wal_tick syncs at most `interval` after a commit */
	WAL_NONE      /* the kernel decides when bytes reach the disk */
};

/* WAL-10: keeps a copy of the log elsewhere. */
struct wal_mirror {
	/* Called at open, with the lock held, before the log looks at its files. */
	int (*mend)(void *arg, struct disk *disk, int folder, struct slu_err *err);

	bool behind; /* the folder is the log, and the mirror a copy */

	/* These bytes were written to a segment. Offset 0: the head of a new segment. Not called if
	 * the mirror is behind. */
	void (*wrote)(void *arg, uint32_t segment, uint32_t offset, struct slice bytes);

	/* The segment, the oldest one, is not part of the log any more. */
	void (*recycled)(void *arg, uint32_t segment);
	void *arg;
};

struct wal_conf {
	struct disk *disk;     /* NULL = disk_posix */
	struct clock *clock;   /* NULL = clock_system */
	struct slu_log *log;   /* receives log lines */
	const char *folder;    /* open creates it if it is missing */
	uint32_t segment_size; /* largest segment: a multiple of 4096, 8 KiB .. 1 GiB; 0 = 64 MiB */
	uint32_t first_size;   /* first segment: the same rules; 0 = segment_size for all segments */
	uint64_t least_room;   /* bytes that must be free on the disk to create a log */
	enum wal_mode mode;
	slu_time interval;     /* longest time to a sync; 0 = 1 s. WAL_SYNC: for commits without sync */
	uint32_t reserve;      /* spare segments reserved for settling: WAL-4 */
	uint32_t ahead;        /* spare segments beyond the reserve; 0 = 1 */
	uint32_t max_segments; /* files in all, with spares; 0 = until the disk is full */
	bool read_only;        /* read, do not repair or append; takes the lock all the same */

	/* WAL-10. Borrowed until the log is closed. NULL = no mirror. */
	const struct wal_mirror *mirror;

	/* Called after each sync, on the thread that synced. May be NULL. */
	void (*synced)(void *arg, slu_time took);

	/* Called during replay: `done` of `all` bytes have been read. If it returns false,
	 * wal_open returns SLU_ECANCELED and has changed nothing. May be NULL. */
	bool (*reading)(void *arg, uint64_t done, uint64_t all);
	void *arg;
};

enum {
	WAL_SEGMENT_SIZE = 64 * 1024 * 1024,
	WAL_FIRST_SIZE = 1024 * 1024
};

/* The place of a record. Valid until its segment is recycled. */
struct wal_where {
	uint32_t segment;
	uint32_t offset;
	uint32_t length; /* bytes on disk; 0 = unknown */
};

struct wal_record {
	uint8_t type;
	uint64_t seq;
	slu_time time; /* time of its group; 0 if wal_read found none in the record */
	struct wal_where where;
	struct slice body;
};

/* Called at open for every record, in order. rec is borrowed. May call wal_live. If it
 * does not return 0, wal_open ends and returns that code. */
typedef int wal_replay_fn(struct wal *w, const struct wal_record *rec, void *arg,
			  struct slu_err *err);

/* Returns SLU_EINVAL if conf is invalid or the files have a newer version (WAL-8),
 * SLU_EBUSY if another process has the folder (WAL-7), SLU_EDOWN if I/O failed,
 * SLU_ECORRUPT if the log is damaged (WAL-2), SLU_EFULL if there is no room to begin a
 * new life, SLU_ENOMEM. */
int wal_open(struct wal **out, const struct wal_conf *conf, wal_replay_fn *replay,
	     void *arg, struct slu_err *err);

/* Syncs committed records and drops the open group. The caller has unpinned all records.
 * NULL is fine. Returns SLU_EDOWN if the log has failed, now or before; wal_close logs it. */
int wal_close(struct wal *w);

/* True if a record of a segment of the log is pinned. NULL: false. */
bool wal_is_pinned(const struct wal *w);

/* Sets the time of the next group. Time never goes back: a smaller `now` is ignored. */
void wal_begin(struct wal *w, slu_time now);

/* The largest size on disk of a record with a body of n bytes. */
static inline uint64_t
wal_size(uint64_t n)
{
	return record_size(n, true);
}

/*
 * Reserves room in the group, in memory and on disk, so that wal_append cannot fail.
 * `bytes`: the sum of the wal_size of the records; `largest`: the largest wal_size.
 * The room is valid until the next wal_reserve or wal_commit.
 *
 * Returns SLU_EFULL (WAL-4), SLU_ETOOBIG if no segment can hold the largest record,
 * SLU_ENOMEM, SLU_EDOWN. On failure the group is unchanged.
 */
int wal_reserve(struct wal *w, enum wal_use use, uint64_t bytes, uint64_t largest,
		struct slu_err *err);

/* Appends a record to the group, its body in n parts. The caller has reserved the room.
 * `type`: 1 .. 254. */
struct wal_where wal_append(struct wal *w, uint8_t type, const struct slice *parts,
			    unsigned n);

/* Drops the records appended since the last commit. */
void wal_drop(struct wal *w);

/* Writes the group. Syncs if `sync` is set and the mode is WAL_SYNC. With an empty group
 * it only syncs earlier writes. Returns SLU_EDOWN if the log has failed (WAL-3): then the
 * next open may or may not find the group. */
int wal_commit(struct wal *w, bool sync, struct slu_err *err);

/* Syncs if a committed record has waited for the interval. */
int wal_tick(struct wal *w, struct slu_err *err);

/* Syncs all committed records, in every mode. */
int wal_flush(struct wal *w, struct slu_err *err);

/* When wal_tick has to sync next (mono), or SLU_NEVER. */
slu_time wal_due(const struct wal *w);

/* Reads a committed record into p and checks its sum; rec->body points into p. `size`: at
 * least where.length bytes. Returns SLU_ECORRUPT, SLU_ENOTFOUND if the log has no such
 * segment, SLU_ETOOBIG if p is too small, SLU_EDOWN. */
int wal_read(struct wal *w, struct wal_where where, void *p, size_t size,
	     struct wal_record *rec, struct slu_err *err);

/* Returns whether the record is committed: it can be read. */
bool wal_is_written(const struct wal *w, struct wal_where where);

/* A pin keeps a record readable, even if its segment is recycled. A record can be pinned
 * when it is appended, and read when it is committed; before, only wal_appended reads it. */
struct wal_pin {
	struct segment *segment; /* NULL = no pin */
	struct wal_where where;
};

int wal_pin(struct wal *w, struct wal_where where, struct wal_pin *pin);
void wal_unpin(struct wal_pin *pin); /* twice is fine */

/* The thread of the log: sets *rec to the pinned record and returns true if the record is of the open group. rec->body is
 * valid until the next wal_reserve, wal_drop or wal_commit. */
bool wal_appended(const struct wal *w, const struct wal_pin *pin, struct wal_record *rec);

/* Any thread: wal_read for a pinned record. */
int wal_pinned_read(const struct wal_pin *pin, void *p, size_t size,
		    struct wal_record *rec, struct slu_err *err);

/* The same, but returns SLU_EBUSY if the read would wait for the disk. */
int wal_pinned_read_now(const struct wal_pin *pin, void *p, size_t size,
			struct wal_record *rec, struct slu_err *err);

/* Reads n bytes that begin with the pinned record, to fetch neighbours with one call. The
 * sums are not checked. With `now` it returns SLU_EBUSY if the read would wait for the
 * disk. Returns SLU_EDOWN, SLU_ECORRUPT. */
int wal_pinned_span(const struct wal_pin *pin, void *p, size_t n, bool now);

/* Checks the pinned record at p, inside bytes of wal_pinned_span. Returns SLU_ECORRUPT. */
int wal_pinned_check(const struct wal_pin *pin, const void *p, struct wal_record *rec);

/*
 * Cleaning. The caller reports the live bytes of each segment. While wal_excess is not 0
 * the caller copies the live records of the oldest segment forward:
 *
 *         rc = wal_cursor_open(&c, w, wal_oldest(w), &err);
 *         while (!(rc = wal_cursor_next(&c, &rec, &err)) && rec.type)
 *                 if (is_live(&rec))
 *                         reserve (WAL_FREE), append a copy
 *         wal_cursor_close(&c);
 *         wal_commit(w, true, &err);
 *         wal_recycle(w, &err);
 */
/* Adds `bytes`, which may be negative, to the live bytes of the segment. */
void wal_live(struct wal *w, struct wal_where where, int64_t bytes);

/* Live bytes of a segment; 0 if the log has no such segment. */
int64_t wal_live_in(const struct wal *w, uint32_t segment);

/* The segment has a record that the caller may need and does not report by wal_live: only reading
 * the segment shows whether it does. */
void wal_set_uncounted(struct wal *w, uint32_t segment);

/* Whether the segment must be read before it is recycled: it has live bytes or an uncounted record. */
bool wal_is_needed(const struct wal *w, uint32_t segment);

/* Bytes of sealed segments beyond twice the live bytes; 0 = nothing to clean. A caller
 * that cleans until it is 0 keeps the log below three times the live bytes plus 4
 * segments (with a reserve of 2): WAL-6. */
uint64_t wal_excess(const struct wal *w);

/* Whether the disk is full and part of the reserve (WAL-4) is missing. */
bool wal_is_short(struct wal *w);

/* The size of new segments: WAL-9. */
uint32_t wal_segment_size(const struct wal *w);

/* The size of a segment; 0 if the log has no such segment. */
uint32_t wal_size_of(const struct wal *w, uint32_t segment);

/* The oldest sealed segment; 0 if no segment is sealed. */
uint32_t wal_oldest(const struct wal *w);

struct wal_cursor {
	struct reader *reader; /* NULL = not open */
	slu_time time;
	bool done; /* the last record was read */
};

/* A cursor keeps its place over any number of commits. Returns SLU_ENOTFOUND, SLU_ENOMEM. */
int wal_cursor_open(struct wal_cursor *c, struct wal *w, uint32_t segment,
		    struct slu_err *err);
void wal_cursor_close(struct wal_cursor *c); /* zeroed, and twice, is fine */

/* Sets rec->type to 0 behind the last record. rec is valid until the next call. */
int wal_cursor_next(struct wal_cursor *c, struct wal_record *rec, struct slu_err *err);

/* Takes the oldest segment out of the log, after a sync. Nothing lives in the segment, and
 * the copies of its records are committed. */
int wal_recycle(struct wal *w, struct slu_err *err);

/*
 * A copy of the committed log. It pins the segments: a segment that is recycled meanwhile
 * keeps its content until the copy is closed. Behind `bytes` a copied file may have zeros
 * up to the size of the segment.
 */
struct wal_copy_file {
	struct segment *segment;
	uint32_t bytes; /* to copy, from the start of the file */
};

struct wal_copy {
	struct wal_copy_file *files; /* NULL = not open */
	uint32_t n;
	uint64_t bytes; /* of all files */
	uint64_t seq;   /* of the last record */
	slu_time time;  /* of the last group */
};

int wal_copy_open(struct wal_copy *c, const struct wal *w, struct slu_err *err);
void wal_copy_close(struct wal_copy *c); /* zeroed, and twice, is fine */

/* Any thread: reads n bytes of a file of the copy, or of another pinned segment. */
int wal_copy_read(const struct segment *s, uint64_t at, size_t n, char *out,
		  struct slu_err *err);

/* Any thread: whether wal_prepare has something to do. */
bool wal_wants_spare(struct wal *w);

/* Any thread that may wait for the disk: makes one spare ahead of need. */
int wal_prepare(struct wal *w, struct slu_err *err);

/* Sets how many spare segments are reserved for settling: WAL-4. */
void wal_set_reserve(struct wal *w, uint32_t segments);

/* Any thread: bytes that must stay free on the disk so that the reserve (WAL-4) can be made.
 * Code that writes other files to the same disk must leave them free. */
uint64_t wal_owed(struct wal *w);

/* How many bytes new work can still add, with the disk as it is now. */
uint64_t wal_room(struct wal *w);

/* Free bytes on the disk of the folder; negative = unknown. */
int64_t wal_disk_free(struct wal *w);

/* Bytes of the disk of the folder; negative = unknown. */
int64_t wal_disk_size(struct wal *w);

struct wal_stats {
	uint64_t seq;         /* of the last committed record */
	uint64_t durable;     /* seq of the last record known to be synced */
	slu_time time;        /* of the last group */
	uint32_t segments;    /* files of the log */
	uint32_t spares;      /* spare files */
	uint64_t spare_bytes; /* of the spare files */
	uint32_t last;        /* number of the last segment */
	uint32_t end;         /* offset of the next record in the last segment */
	uint64_t bytes;       /* of all files */
	uint64_t live;        /* live bytes, by wal_live */
	uint64_t writes;      /* since open */
	uint64_t syncs;       /* since open */
	bool failed;          /* WAL-3 */
};

void wal_stats(struct wal *w, struct wal_stats *stats);

#endif
