/*
 * salvage.h - what can still be read of a log that open refuses.
 *
 * Every segment is searched for records, at every multiple of 8 where the one before
 * did not lead to the next; whole groups are handed out in order, what lies between is
 * counted. Nothing is changed.
 *
 *  V1  A group is handed out whole or not at all, once, and none before an earlier one.
 *  V2  A record counts when its sum is right, its sequence is beyond the last one's,
 *      and its life was not followed by another. So a tail that was cut does not come
 *      back, unless the record that began the next life is damaged itself.
 *  V3  A segment without a sound head is left out: its sums cannot be checked.
 */
#ifndef WAL_SALVAGE_H
#define WAL_SALVAGE_H

#include "wal/wal.h"

struct salvage {
	uint64_t records; /* handed out */
	uint64_t groups;
	uint64_t missing; /* sequences between the first and the last that were not found */
	uint64_t broken;  /* records found that are part of a group which is not whole */
	uint32_t segments;
	uint32_t headless; /* V3 */
};

/* Called for each record; `last` of its group. Other than 0 ends the search and is what
 * it returns. */
typedef int salvage_fn(const struct wal_record *rec, bool last, void *arg,
		       struct slu_err *err);

/* SLU_EDOWN: somebody has the folder, or it cannot be read. SLU_ENOMEM. */
int salvage_read(struct disk *disk, const char *folder, salvage_fn *fn, void *arg,
		 struct salvage *out, struct slu_err *err);

#endif
