/*
 * stored.h - reads a backup: its manifest and its files. Every file is compared with its size and
 * checksum.
 *
 *         stored_open(&b, "monday.tar", &err);
 *         for (uint32_t i = 0; i < b.manifest.n_files; i++)
 *                 stored_read(&b, &b.manifest.files[i], take, arg, &err);
 *         stored_close(&b);
 */
#ifndef CLI_BACKUP_STORED_H
#define CLI_BACKUP_STORED_H

#include "cli/backup/archive.h"
#include "cli/backup/manifest.h"

struct stored {
	struct archive archive;
	struct manifest manifest;
	char *room;
};

/* Returns SLU_EINVAL if the path is not a backup or the backup is incomplete; SLU_ENOMEM, SLU_EDOWN. */
int stored_open(struct stored *b, const char *path, struct slu_err *err);
void stored_close(struct stored *b); /* a zeroed struct is fine */

/* Receives the next bytes of a file. */
typedef int stored_take(void *arg, const char *p, size_t n, struct slu_err *err);

/* Reads one file from begin to end; take may be NULL. Returns SLU_ECORRUPT if the file is missing or differs
 * from the manifest. A wrong size is found before the first call of take. */
int stored_read(struct stored *b, const struct manifest_file *f, stored_take *take, void *arg,
		struct slu_err *err);

#endif
