/*
 * stored.h - a backup that is read: its manifest, and its files, compared with their sizes and
 * sums on the way.
 *
 *         stored_open(&b, "monday.tar", &err);
 *         for (uint32_t i = 0; i < b.manifest.n_files; i++)
 *                 stored_read(&b, &b.manifest.files[i], take, arg, &err);
 *         stored_close(&b);
 */
#ifndef CLI_STORED_H
#define CLI_STORED_H

#include "cli/archive.h"
#include "cli/manifest.h"

struct stored {
	struct archive archive;
	struct manifest manifest;
	char *room;
};

/* SLU_EINVAL: it is no backup, or was cut short. SLU_ENOMEM, SLU_EDOWN. */
int stored_open(struct stored *b, const char *path, struct slu_err *err);
void stored_close(struct stored *b); /* zeroed is fine */

/* Takes the next bytes of a file. */
typedef int stored_take(void *arg, const char *p, size_t n, struct slu_err *err);

/* One file from begin to end; take may be NULL. SLU_ECORRUPT: it is missing, or not what the
 * manifest says; a wrong size is found before anything is taken. */
int stored_read(struct stored *b, const struct manifest_file *f, stored_take *take, void *arg,
		struct slu_err *err);

#endif
