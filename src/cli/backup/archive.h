/*
 * archive.h - writes files to a folder or a tar file, and reads them.
 *
 *         archive_check_new("backup.tar", &err);         creates nothing
 *         archive_create(&a, "backup.tar", &err);        writes backup.tar.partial
 *         archive_begin(&a, "00000001.log", bytes, &err);
 *         archive_write(&a, p, n, &err);                 in pieces, `bytes` in all
 *         archive_end(&a, &err);
 *         ...
 *         archive_finish(&a, &err);                      syncs, then renames
 *         archive_close(&a);                             removes an archive that is not finished
 *
 *         archive_open(&a, "backup.tar", &err);
 *         archive_find(&a, "00000001.log", &bytes, &err);
 *         archive_read(&a, p, n, &err);
 *         archive_close(&a);
 *
 * A name that ends in .tar is a tar file (POSIX ustar), "-" is a tar file on standard output,
 * every other name is a folder. An existing file or folder is not touched: SLU_EEXISTS.
 *
 *  ARCHIVE-1  A .partial that a killed process left is replaced. One that another process
 *             writes to is locked (flock), and refused: SLU_ECONFLICT.
 *  ARCHIVE-2  A folder is replaced only if it is empty or has the file ARCHIVE_MARK, which is
 *             the first thing in it and goes before it gets its name.
 */
#ifndef CLI_BACKUP_ARCHIVE_H
#define CLI_BACKUP_ARCHIVE_H

#include <sluice/err.h>

#include <stdio.h>

#define ARCHIVE_MARK "unfinished-backup"

enum {
	ARCHIVE_PATH = 4096
};

struct archive {
	char path[ARCHIVE_PATH]; /* the name of the finished archive */
	char work[ARCHIVE_PATH]; /* the name until then; "" = the archive is read */
	bool tar;
	bool stream;             /* a tar file on standard output */
	bool made;               /* `work` exists and belongs to this archive */
	int lock;                /* the lock of a folder (ARCHIVE-1); 0 = none */
	FILE *file;              /* the tar file, or the open file of a folder */
	char name[ARCHIVE_PATH]; /* the name of the open file, for error texts */
	uint64_t left;           /* bytes of the open file that are still to come */
	uint64_t size;
	uint64_t next; /* reading a tar file: the offset of the next header */
};

/* Checks whether archive_create could succeed. Returns SLU_EEXISTS or SLU_EINVAL. */
int archive_check_new(const char *path, struct slu_err *err);

int archive_create(struct archive *a, const char *path, struct slu_err *err);
int archive_begin(struct archive *a, const char *name, uint64_t bytes, struct slu_err *err);
int archive_write(struct archive *a, const void *p, size_t n, struct slu_err *err);
int archive_end(struct archive *a, struct slu_err *err);
int archive_finish(struct archive *a, struct slu_err *err);

/* Return SLU_ENOTFOUND if the archive, or the file in it, does not exist. */
int archive_open(struct archive *a, const char *path, struct slu_err *err);
int archive_find(struct archive *a, const char *name, uint64_t *bytes, struct slu_err *err);
int archive_read(struct archive *a, void *p, size_t n, struct slu_err *err);

void archive_close(struct archive *a); /* a zeroed struct is fine */

/* Creates the missing folders of `name` below base. */
int archive_make_folders(const char *base, const char *name, struct slu_err *err);

/* Syncs the folder of a path, so that a rename in it survives a crash. */
int archive_sync_folder_of(const char *path, struct slu_err *err);

#endif
