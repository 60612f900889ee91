/*
 * wal_private.h - the state of a log. Only for wal*.c and replay.c.
 *
 *  WALSTATE-1  segments[] are the files of the log in order; their numbers have no gap. The
 *      log writes to the last one. planned[] are the spares that follow it. A planned spare
 *      has its number and random number, so wal_append knows the place and sum of a record,
 *      but nothing on disk. Piece i > 0 of the group lies in planned[i - 1].
 *  WALSTATE-2  Only the last segment may hold bytes that are not synced: `dirty`.
 *  WALSTATE-3  durable.seq <= seq. seq counts the records of written groups. The records of
 *      the open group follow it.
 */
#ifndef WAL_WAL_PRIVATE_H
#define WAL_WAL_PRIVATE_H

#include "wal/durable.h"
#include "wal/group.h"
#include "wal/reader.h"
#include "wal/unsynced.h"
#include "wal/wal.h"

struct wal {
	struct wal_conf conf; /* with defaults; conf.folder is NULL after open */
	struct spares spares;
	struct durable durable;
	struct unsynced unsynced; /* WAL-10: the disk, without syncs */
	bool is_cache;            /* WAL-10: the folder is a cache; the mirror may close before the log */
	int folder;               /* open folder, -1 = not open */
	int lock;                 /* open file `lock`, -1 = not open */

	struct segment **segments;
	uint32_t n_segments;
	uint32_t max_segments; /* allocated */
	struct segment **planned;
	uint32_t n_planned;
	uint32_t max_planned; /* allocated */

	struct group group; /* the open group */
	uint32_t life;      /* of new records; after replay: of the last record */
	uint64_t seq;       /* WALSTATE-3 */
	slu_time time;      /* of the last group, or of the open group */
	slu_time sync_by;   /* when the next sync is due (mono); SLU_NEVER = nothing to sync */
	uint32_t unsure;    /* at open: from this offset the last segment may not be synced;
			     * 0 = all of it is */
	bool dirty;         /* WALSTATE-2 */
	bool reserve_there; /* SPARES-1 holds: no need to check the spares again */
	bool failed;        /* WAL-3 */
	char why[240];      /* why the log failed */

	uint32_t smallest; /* WAL-9: every record the log has had fits into a segment of this size */
	int64_t live;      /* live bytes of all segments */
	uint64_t used;     /* bytes of the files in segments[] */
	uint64_t writes;
	uint64_t syncs;
};

static inline struct segment *
wal_current(const struct wal *w)
{
	return w->segments[w->n_segments - 1];
}

/* The segment with that number in segments[]; NULL if the log has no such segment. */
struct segment *wal_segment(const struct wal *w, uint32_t number);

/* The same, in segments[] and planned[]: an appended record may be in a planned one. */
struct segment *wal_any_segment(const struct wal *w, uint32_t number);

/* Makes room for n more segments in segments[] and planned[]. Returns SLU_ENOMEM. */
int wal_make_room(struct wal *w, uint32_t n, struct slu_err *err);

/* Appends s to segments[]. wal_make_room made the room. */
void wal_push(struct wal *w, struct segment *s);

/* Reports the head of a new segment to the mirror, if the log has one. */
void wal_report_head(const struct wal *w, const struct segment *s);

/* Begins a new life, with another number than the last one, and syncs. */
int wal_begin_life(struct wal *w, struct slu_err *err);

/* WAL-3: the log has failed for the reason in err. Returns SLU_EDOWN. */
int wal_fail(struct wal *w, struct slu_err *err);

/* Returns SLU_EDOWN and the reason if the log has failed. */
int wal_check(const struct wal *w, struct slu_err *err);

/* Syncs the last segment, then updates `durable`. */
int wal_sync(struct wal *w, struct slu_err *err);

/* Plans n more spares (WALSTATE-1). wal_make_room made the room. */
int wal_plan(struct wal *w, uint32_t n, uint32_t size, enum wal_use use, struct slu_err *err);

/* WAL-9: the log has, or will have, a record of `size` bytes. */
void wal_note_record(struct wal *w, uint64_t size);

/* replay.c: reads segments[] and calls fn with their records, finds the end of the log and
 * cuts the tail. */
int wal_replay(struct wal *w, wal_replay_fn *fn, void *arg, struct slu_err *err);

#endif
