/*
 * durable.h - the file `durable`: how far the log was synced.
 *
 *     0  8  seq of the last record that was synced with its whole group
 *     8  8  that group's time
 *    16  4  version, 1
 *    20  4  crc32c of bytes 0 .. 19
 *    24     zeros up to 512
 *
 * Written after every sync of the log and never synced itself: a killed process
 * leaves it up to date, a power cut perhaps older, never ahead. It lies in one sector,
 * so a cut leaves it old or new. All zeros, or no file, says nothing.
 */
#ifndef WAL_DURABLE_H
#define WAL_DURABLE_H

#include "base/disk.h"

struct durable {
	struct disk *disk;
	int file; /* -1: not open */
	uint64_t seq;
	slu_time time;
	bool found; /* there was one */
};

/* Read the file, and make it when it is missing unless read_only. SLU_ECORRUPT,
 * SLU_EINVAL (newer version), SLU_EFULL, SLU_EDOWN. */
int durable_open(struct durable *d, struct disk *disk, int folder, bool read_only,
		 struct slu_err *err);
void durable_close(struct durable *d);

int durable_put(struct durable *d, uint64_t seq, slu_time time, struct slu_err *err);

#endif
