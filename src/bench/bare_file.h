/*
 * bare_file.h - a file of zeros that is overwritten again and again, like the files of a log that
 * recycles them.
 */
#ifndef BENCH_BARE_FILE_H
#define BENCH_BARE_FILE_H

#include "bench/hist.h"

#include <sluice/err.h>

struct bare_file {
	int fd; /* -1 = no file */
	uint64_t at;
};

enum {
	BARE_FILE_PIECE = 1 << 20 /* bytes of a write, at most */
};

/* Creates the file in that folder; it is removed when it is closed. Creating and removing a file keeps a
 * disk busy, so use one file. Returns SLU_EDOWN on an error. */
int bare_file_open(struct bare_file *f, const char *dir, struct slu_err *err);
void bare_file_close(struct bare_file *f);

/* Makes one pwrite and one fdatasync. *synced, unless NULL: how long the fdatasync took. Returns 0 or
 * errno. */
int bare_file_put(struct bare_file *f, const char *bytes, size_t n, slu_time *synced);

/* Measures fdatasync again and again for that time. */
int bare_file_measure(struct bare_file *f, slu_time duration, struct hist *out,
		      struct slu_err *err);

#endif
