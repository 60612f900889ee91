/*
 * archive.h - files that are written to, or read from, a folder or a tar file.
 *
 *         archive_check_new("backup.tar", &err);         nothing is made yet
 *         archive_create(&a, "backup.tar", &err);        writes backup.tar.partial
 *         archive_begin(&a, "00000001.log", bytes, &err);
 *         archive_write(&a, p, n, &err);                 in pieces, `bytes` in all
 *         archive_end(&a, &err);
 *         ...
 *         archive_finish(&a, &err);                      synced, then it has its name
 *         archive_close(&a);                             if it was not finished, nothing is left
 *
 *         archive_open(&a, "backup.tar", &err);
 *         archive_find(&a, "00000001.log", &bytes, &err);
 *         archive_read(&a, p, n, &err);
 *         archive_close(&a);
 *
 * A name that ends in .tar is a tar file (POSIX ustar), "-" is a tar file on standard output,
 * every other name a folder. What exists already is not touched: SLU_EEXISTS.
 *
 *  ARCHIVE-1  A .partial that a killed process left is replaced. One that another process
 *             writes to is locked (flock), and refused: SLU_ECONFLICT.
 *  ARCHIVE-2  A folder is replaced only if it is empty or has the file ARCHIVE_MARK, which is
 *             the first thing in it and goes before it gets its name.
 */
#ifndef CLI_ARCHIVE_H
#define CLI_ARCHIVE_H

#include <sluice/err.h>

#include <stdio.h>

#define ARCHIVE_MARK "unfinished-backup"

enum {
	ARCHIVE_PATH = 4096
};

struct archive {
	char path[ARCHIVE_PATH]; /* what it is called when it is whole */
	char work[ARCHIVE_PATH]; /* what it is called until then; "": it is being read */
	bool tar;
	bool stream;             /* to standard output: it has no name */
	bool made;               /* work is there, and is ours */
	int lock;                /* of a folder: ARCHIVE-1; 0: none */
	FILE *file;              /* of the tar, or the one that is being written or read */
	char name[ARCHIVE_PATH]; /* that one, for messages */
	uint64_t left;           /* bytes of it */
	uint64_t size;
	uint64_t next; /* tar, reading: where the head behind it is */
};

/* Could it be made? SLU_EEXISTS, SLU_EINVAL. */
int archive_check_new(const char *path, struct slu_err *err);

int archive_create(struct archive *a, const char *path, struct slu_err *err);
int archive_begin(struct archive *a, const char *name, uint64_t bytes, struct slu_err *err);
int archive_write(struct archive *a, const void *p, size_t n, struct slu_err *err);
int archive_end(struct archive *a, struct slu_err *err);
int archive_finish(struct archive *a, struct slu_err *err);

/* SLU_ENOTFOUND: there is none of that name, or it has no such file. */
int archive_open(struct archive *a, const char *path, struct slu_err *err);
int archive_find(struct archive *a, const char *name, uint64_t *bytes, struct slu_err *err);
int archive_read(struct archive *a, void *p, size_t n, struct slu_err *err);

void archive_close(struct archive *a); /* zeroed is fine */

/* The folder of a path exists: make those below base that are missing. */
int archive_make_folders(const char *base, const char *name, struct slu_err *err);

/* A rename counts when the folder is synced. */
int archive_sync_folder_of(const char *path, struct slu_err *err);

#endif
