/*
 * durable.h - the file `durable`: how far the log was synced.
 *
 *     0  8  seq of the last synced record, at the end of its group
 *     8  8  time of that group
 *    16  4  version, 1
 *    20  4  crc32c of bytes 0 .. 19
 *    24     zeros up to 512
 *
 * The log writes the file after every sync and never syncs the file itself. So it is up
 * to date after a kill, may be older after a power cut, and is never ahead. It lies in one
 * sector, so a power cut leaves the old or the new content. A file of zeros, and a missing
 * file, mean that nothing is known.
 */
#ifndef WAL_DURABLE_H
#define WAL_DURABLE_H

#include "base/disk.h"

struct durable {
	struct disk *disk;
	int file; /* -1 = not open */
	uint64_t seq;
	slu_time time;
	bool found; /* open found the file */
};

/* Reads the file; creates it if it is missing, unless read_only. Returns SLU_ECORRUPT,
 * SLU_EINVAL if the version is newer, SLU_EFULL, SLU_EDOWN. */
int durable_open(struct durable *d, struct disk *disk, int folder, bool read_only,
		 struct slu_err *err);
void durable_close(struct durable *d);

int durable_put(struct durable *d, uint64_t seq, slu_time time, struct slu_err *err);

#endif
