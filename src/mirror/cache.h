/*
 * cache.h - the folder of a log that lives in a store.
 *
 *      line      ... 41 42 43 │ 44 45          the log
 *      folder    ... 41 42 43 │                a copy, up to the last known group
 *      `mirror`  store, shard, group 43 and its mark
 *
 * At open the mirror hands on the groups that the folder lacks, and the cache writes their
 * pieces to the segments:
 *
 *         cache_open     whose folder is it, and up to which group is it known to be right?
 *         cache_wipe     if the line does not hold that group: nothing in the folder is right
 *         cache_take     for each group of the line that follows
 *         cache_finish   cuts what the folder has and the line has not (LINE-8)
 *
 * The log of a front folder (frontfolder.h) is right whatever the line has: cache_match in place of
 * cache_take and cache_save in place of cache_finish change nothing in the segments.
 *
 * The folder is never synced, so after a power cut nothing in it is known to be right. The
 * file `mirror` holds the number of the machine's start (boot); with another number the
 * folder is filled from the line again. So is a folder whose files are missing.
 *
 * The file `mirror`, little-endian. The head:
 *      0   8  "sluicemi"
 *      8   4  sum: CRC-32C of bytes 12 to 151
 *      12  4  format, 1
 *      16 16  uuid of the store
 *      32 104 name of the shard, filled with zeros
 *     136 16  zero
 * What is known, at 512:
 *      0   4  sum: CRC-32C from byte 4 to the end of the rows
 *      4   4  number of segments, n
 *      8   8  the last group that was confirmed
 *      16  8  put of its mark
 *      24  4  sum of its mark
 *      28  4  segment in which the log ends, 0 = the log is empty
 *      32  4  offset where the log ends
 *      36  4  zero
 *      40 40  boot, filled with zeros; all zeros = nothing in the folder is right
 *      80 12n for each segment of the log, in order: 4 number, 8 the first group with a piece
 *
 * The owner passes the mutex around: one thread at a time uses a cache.
 */
#ifndef MIRROR_CACHE_H
#define MIRROR_CACHE_H

#include "base/disk.h"
#include "base/log.h"
#include "line/line.h"

enum {
	CACHE_UUID = 16,
	CACHE_BOOT = 40 /* with a NUL */
};

struct cache_conf {
	struct disk *disk;
	int folder;       /* open, and locked by the caller */
	const char *path; /* of the folder, for texts */
	struct slu_log *log;
	uint8_t uuid[CACHE_UUID];
	const char *shard; /* at most LINE_SHARD_MAX bytes; kept by the caller, as path */
	const char *boot;  /* shorter than CACHE_BOOT */
};

struct cache_segment {
	uint32_t number;
	uint64_t first; /* the first group with a piece in the segment */
};

struct cache {
	struct cache_conf conf;
	int file; /* `mirror` */

	/* The folder has the log up to this group. Number 0 = nothing is known. */
	struct line_known known;

	/* The last group that the line has confirmed to this folder, whatever is left of it in the
	 * folder. If the line lacks the group, the store went back (LINE-15). */
	struct line_known seen;
	uint32_t end_segment; /* 0 = the log is empty */
	uint32_t end_offset;

	struct cache_segment *segments;
	uint32_t n, max;

	int open_file;         /* the segment that was written last; -1 = none */
	uint32_t open_segment; /* its number */
	struct buf text;       /* for writing the file */
};

/* Reads the file `mirror`, or makes it in an empty folder. Returns SLU_EINVAL if the folder
 * belongs to another store or shard or is a log of its own; SLU_EDOWN, SLU_EFULL, SLU_ENOMEM. */
int cache_open(struct cache *c, const struct cache_conf *conf, struct slu_err *err);
void cache_close(struct cache *c); /* zeroed is fine */

/* Makes the folder of a plain log, which no process has open, the cache of a shard whose line holds
 * that log. Nothing in the folder is known to be right: the first open fills it from the line. */
int cache_claim(const struct cache_conf *conf, struct slu_err *err);

/* Whether the folder is a cache of a store. */
bool cache_is_one(struct disk *disk, int folder);

/* What the file `mirror` says, whatever is left of the log in the folder. */
struct cache_facts {
	uint8_t uuid[CACHE_UUID];
	char shard[LINE_SHARD_MAX + 1];
	struct line_known seen; /* number 0 = the line has confirmed nothing to this folder */
	uint32_t end_segment;   /* where the log of the confirmed groups ends; 0 = unknown */
	uint32_t end_offset;
};

/* Reads the file, and changes nothing. Returns SLU_ENOTFOUND if the folder is not a cache, SLU_ECORRUPT,
 * SLU_EDOWN, SLU_ENOMEM. */
int cache_peek(struct disk *disk, int folder, struct cache_facts *out, struct slu_err *err);

/* Removes all segments. */
int cache_wipe(struct cache *c, struct slu_err *err);

/* Writes the pieces of the next group of the line. `first`: the log begins with this group, so
 * it may have pieces of segments that are gone. Returns SLU_ECORRUPT if a piece has no place. */
int cache_take(struct cache *c, const struct line_group *g, bool first, struct slu_err *err);

/* The same for a front folder: compares the pieces with the folder. Pieces of segments that the folder
 * has left behind are skipped. Returns SLU_ECORRUPT if they differ. */
int cache_match(struct cache *c, const struct line_group *g, struct slu_err *err);

/* Nothing is known about a front folder: the line is compared from its beginning. */
void cache_forget(struct cache *c);

/* Syncs all segments. */
int cache_sync(struct cache *c, struct slu_err *err);

/* Cuts what is behind the last piece, and saves. `known`: the newest group of the line. */
int cache_finish(struct cache *c, const struct line_known *known, struct slu_err *err);

/* The log wrote a piece of the group. A head begins a segment. Returns SLU_ENOMEM. */
int cache_wrote(struct cache *c, uint64_t group, uint32_t segment, uint32_t offset, size_t n);

/* The segment and those before it are not part of the log any more. */
void cache_recycled(struct cache *c, uint32_t segment);

/* The first group that the log needs (LINE-7); 0 = the log has no segment. */
uint64_t cache_begin(const struct cache *c);

/* The group is in the line: writes to the file what is known now. */
int cache_save(struct cache *c, const struct line_known *known, struct slu_err *err);

/* Nothing in the folder is known to be right: the next open fills it from the line. */
int cache_distrust(struct cache *c, struct slu_err *err);

#endif
