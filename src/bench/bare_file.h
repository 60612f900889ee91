/*
 * bare_file.h - a file of zeros that is written again and again: what a log that
 * recycles its files asks of a disk.
 */
#ifndef BENCH_BARE_FILE_H
#define BENCH_BARE_FILE_H

#include "bench/hist.h"

#include <sluice/err.h>

struct bare_file {
	int fd; /* -1: none */
	uint64_t at;
};

enum {
	BARE_FILE_PIECE = 1 << 20 /* the most that is put at once */
};

/* In that folder; it is gone when it is closed. To make and drop one keeps a disk busy
 * for a while: make it once. SLU_EDOWN. */
int bare_file_open(struct bare_file *f, const char *dir, struct slu_err *err);
void bare_file_close(struct bare_file *f);

/* One pwrite, one fdatasync; *synced, unless NULL, is how long the latter took. 0 or
 * errno. */
int bare_file_put(struct bare_file *f, const char *bytes, size_t n, slu_time *synced);

/* How long an fdatasync takes, again and again for that time. */
int bare_file_measure(struct bare_file *f, slu_time duration, struct hist *out,
		      struct slu_err *err);

#endif
