/*
 * heads.h - what the folder needs to make the objects of its groups again.
 *
 *      object in the store     head of the group │ places of the pieces │ bytes of the pieces
 *      folder                  ────── heads ──────────────────────────── │ ──── segments ────
 *
 * When a span holds a group, the line forgets the object of the group. If the store goes back
 * (LINE-15), the owner has to put the object again, byte for byte. The segments hold the bytes of
 * its pieces, and these files hold the rest:
 *
 *      00000000000000000001.heads     the heads of the groups from 1 on
 *      00000000000000001001.heads
 *
 * For each group: 4 bytes length, little-endian, and the object up to the bytes of its pieces.
 * The files are never synced: they count as long as the segments beside them do (cache.h).
 *
 * One thread at a time uses a struct heads.
 */
#ifndef MIRROR_HEADS_H
#define MIRROR_HEADS_H

#include "base/disk.h"
#include "line/line.h"

struct heads {
	struct disk *disk; /* NULL = not open */
	int folder;        /* open; of the caller */

	uint64_t *files; /* the first group of each file, rising */
	uint32_t n, max;

	struct buf next;     /* heads that are in no file yet */
	uint64_t next_first; /* their first group */
	uint32_t next_n;
};

/* Finds the files in the folder. Returns SLU_ENOMEM, SLU_EDOWN. */
int heads_open(struct heads *h, struct disk *disk, int folder, struct slu_err *err);
void heads_close(struct heads *h); /* zeroed is fine */

/* Removes all files. */
int heads_wipe(struct heads *h, struct slu_err *err);

/* Adds the next group. Some groups make a file; heads_flush makes one of the rest. Returns
 * SLU_ENOMEM, SLU_EFULL, SLU_EDOWN. */
int heads_add(struct heads *h, uint64_t number, struct slice object, struct slu_err *err);
int heads_flush(struct heads *h, struct slu_err *err);

/* The log begins with this group: removes files that hold only older ones. */
int heads_begin(struct heads *h, uint64_t begin, struct slu_err *err);

/* Appends the object of the group to out, which is empty; leaves it empty if the folder lacks a
 * part of it. The reader checks the sum. */
void heads_get(const struct heads *h, uint64_t number, struct buf *out);

#endif
