/*
 * folder.h - what lies in a log's folder, by name.
 *
 *      00000001.log        a segment
 *      spare-00000001      a spare
 *      spare-00000001.tmp  one that was being made: of no use any more
 *      durable, lock       see durable.h and wal.h, W7
 *
 * Other names are not ours and left alone.
 */
#ifndef WAL_FOLDER_H
#define WAL_FOLDER_H

#include "base/disk.h"

enum folder_kind {
	FOLDER_SEGMENT,
	FOLDER_SPARE,
	FOLDER_TMP,
	FOLDER_KINDS
};

struct folder_entry {
	enum folder_kind kind;
	uint32_t number;
};

struct folder {
	struct folder_entry *at; /* by kind, then number */
	uint32_t n;
	uint32_t max;
};

/* SLU_EDOWN, SLU_ENOMEM. */
int folder_read(struct folder *f, struct disk *disk, int folder, struct slu_err *err);
void folder_release(struct folder *f);

#endif
