/*
 * wal_inner.h - the state of a log. For wal*.c and replay.c alone.
 *
 *  I1  segments[] are the log's files in order, numbers without a gap; the last one is
 *      written to. planned[] are the spares that follow it: they have their number and
 *      random number, so that a record knows its place and sum when it is appended,
 *      and nothing on disk. The group's piece i > 0 lies in planned[i - 1].
 *  I2  Only the last segment may hold what was not synced: `dirty`.
 *  I3  durable.seq <= seq. seq counts whole groups that were written; the records of
 *      the group that is being gathered come after it.
 */
#ifndef WAL_WAL_INNER_H
#define WAL_WAL_INNER_H

#include "wal/durable.h"
#include "wal/group.h"
#include "wal/reader.h"
#include "wal/wal.h"

struct wal {
	struct wal_conf conf; /* defaults filled in; folder is not kept */
	struct stock stock;
	struct durable durable;
	int folder;
	int lock;

	struct segment **segments;
	uint32_t n_segments;
	uint32_t max_segments; /* allocated */
	struct segment **planned;
	uint32_t n_planned;
	uint32_t max_planned; /* allocated */

	struct group group;
	uint32_t life; /* of every record that is written; replay leaves the last one */
	uint64_t seq;
	slu_time time;      /* of the last group, or the one that is gathered */
	slu_time sync_by;   /* mono; SLU_NEVER: nothing waits */
	uint32_t unsure;    /* at open: from here on nobody knows that the last segment was
			     * synced; 0: all of it was */
	bool dirty;         /* I2 */
	bool reserve_there; /* K1 holds: no need to ask the stock again */
	bool failed;        /* W3 */
	char why[240];      /* and what it was */

	uint32_t smallest; /* W9: every record that was seen fits into a segment of this size */
	int64_t live;
	uint64_t used; /* bytes of the files in segments[] */
	uint64_t writes;
	uint64_t syncs;
};

static inline struct segment *
wal_current(const struct wal *w)
{
	return w->segments[w->n_segments - 1];
}

/* NULL when the log has no such segment. */
struct segment *wal_segment(const struct wal *w, uint32_t number);

/* The same, one that has only been planned included: something was appended there. */
struct segment *wal_any_segment(const struct wal *w, uint32_t number);

/* The segment is the log's last now; room for it was made. */
int wal_make_room(struct wal *w, uint32_t n, struct slu_err *err);
void wal_push(struct wal *w, struct segment *s);

/* Begin a new life, another one than the last, and sync. */
int wal_begin_life(struct wal *w, struct slu_err *err);

/* W3: remember err, which is already filled, and return SLU_EDOWN. */
int wal_fail(struct wal *w, struct slu_err *err);

/* 0, or SLU_EDOWN with the reason. */
int wal_check(const struct wal *w, struct slu_err *err);

/* Sync the last segment, then say so in `durable`. */
int wal_sync(struct wal *w, struct slu_err *err);

/* Plan n more spares, for which there is room: I1. */
int wal_plan(struct wal *w, uint32_t n, uint32_t size, enum wal_use use, struct slu_err *err);

/* W9: the log has, or gets, a record of so many bytes. */
void wal_note_record(struct wal *w, uint64_t size);

/* In replay.c: read segments[] and hand out their records; find the end; cut the
 * tail. */
int wal_replay(struct wal *w, wal_replay_fn *fn, void *arg, struct slu_err *err);

#endif
