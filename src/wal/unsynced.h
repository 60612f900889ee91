/*
 * unsynced.h - a disk whose syncs do nothing: for a folder that is a cache (wal.h, WAL-10).
 *
 * All other calls go to the disk below, which the caller keeps.
 */
#ifndef WAL_UNSYNCED_H
#define WAL_UNSYNCED_H

#include "base/disk.h"

struct unsynced {
	struct disk disk;
	struct disk *below;
};

/* Returns &u->disk. */
struct disk *unsynced_init(struct unsynced *u, struct disk *under);

#endif
