/*
 * folder.h - the files in a log's folder, by name.
 *
 *      00000001.log        a segment
 *      spare-00000001      a spare
 *      spare-00000001.tmp  a spare that was never finished
 *      durable, lock       see durable.h and wal.h, WAL-7
 *
 * Files with other names are left alone.
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

/* Returns SLU_EDOWN, SLU_ENOMEM. */
int folder_read(struct folder *f, struct disk *disk, int folder, struct slu_err *err);
void folder_release(struct folder *f);

#endif
