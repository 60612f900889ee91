/*
 * salvage.h - reads the sound records of a log that open refuses.
 *
 * salvage_read searches every segment for records: at the end of the record before, or, if
 * no record is there, at every multiple of 8. It returns whole groups in order and counts
 * what is missing. It changes nothing.
 *
 *  WALSALVAGE-1  A group is returned whole or not at all, once, and never before an earlier
 *      group.
 *  WALSALVAGE-2  A record counts if its sum is right, its seq is higher than the last one,
 *      and no other life has followed its life. So a cut tail does not come back, unless the
 *      record that began the next life is damaged itself.
 *  WALSALVAGE-3  A segment without a sound head is left out: its sums cannot be checked.
 */
#ifndef WAL_SALVAGE_H
#define WAL_SALVAGE_H

#include "wal/wal.h"

struct salvage {
	uint64_t records;  /* returned */
	uint64_t groups;   /* returned */
	uint64_t missing;  /* seqs between the first and the last that were not found */
	uint64_t broken;   /* records found in groups that are not whole */
	uint32_t segments; /* searched */
	uint32_t headless; /* WALSALVAGE-3 */
};

/* Called for each record; `last` = the last of its group. If it does not return 0,
 * salvage_read ends and returns that code. */
typedef int salvage_fn(const struct wal_record *rec, bool last, void *arg,
		       struct slu_err *err);

/* Returns SLU_EBUSY if another process has the folder, SLU_EDOWN if it cannot be read,
 * SLU_ENOMEM. */
int salvage_read(struct disk *disk, const char *folder, salvage_fn *fn, void *arg,
		 struct salvage *out, struct slu_err *err);

#endif
