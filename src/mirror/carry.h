/*
 * carry.h - reads a log from its folder, from one place to a later one, as bodies of groups of a line.
 *
 *      00000003.log              00000004.log
 *      | head | r r r | r r |    | head | r | r r r r | r r r
 *                     ^ from                   ^ done      ^ to
 *
 * A body has whole groups of the log: a reader of the line never finds half of one. It may have many
 * groups of the log. Every record is checked before it is carried, so damage of the folder does not
 * reach the line.
 *
 * One thread at a time uses a carrier. The log may grow behind `to` meanwhile.
 */
#ifndef MIRROR_CARRY_H
#define MIRROR_CARRY_H

#include "base/disk.h"
#include "mirror/body.h"
#include "wal/reader.h"

/* A place in a log, between two records. */
struct carry_place {
	uint32_t segment; /* 0 = before the first segment of the folder */
	uint32_t offset;  /* 0 = before the head of the segment */
};

static inline bool
carry_is_before(struct carry_place a, struct carry_place b)
{
	return a.segment < b.segment || (a.segment == b.segment && a.offset < b.offset);
}

struct carrier {
	struct disk *disk;
	int folder;              /* open; of the caller */
	struct segment *segment; /* open; NULL = none */
	struct reader reader;
	uint64_t next_seq; /* of the first record of the next segment; 0 = unknown */
	uint64_t seq;      /* of the last record before the place; 0 = unknown */
};

void carrier_init(struct carrier *c, struct disk *disk, int folder);
void carrier_release(struct carrier *c); /* zeroed is fine */

/* What carrier_next has read. */
struct carried {
	struct carry_place place; /* behind the last group */
	uint64_t groups;          /* groups of the log */
	slu_time time;            /* of the last group; 0 = no group */
};

/* Reads the groups between two places, and stops behind the first group that makes them `max` bytes or
 * more. Adds the pieces to `body` unless it is NULL; then it only counts. The next call begins at
 * done->place. Returns SLU_ECORRUPT if a record is damaged or missing, SLU_EDOWN, SLU_ENOMEM. */
int carrier_next(struct carrier *c, struct carry_place from, struct carry_place to, uint64_t max,
		 struct body *body, struct carried *done, struct slu_err *err);

#endif
