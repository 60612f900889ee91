/*
 * lines.h - a text file to which many threads add lines, written by a thread of its own.
 *
 *      lines_add ──> memory ──> thread ──> write ──> file
 *
 *  LINES-1  lines_add copies the line and never waits for the disk. If LINES_ROOM bytes wait
 *      already, it drops the line and counts it.
 *  LINES-2  The thread drops lines that it cannot write, as on a full disk, and counts them. It logs
 *      the first failure, and then one at most every LINES_TELL. It goes on with the next lines,
 *      at the beginning of a line.
 *  LINES-3  After lines_reopen (an operator has renamed the file) the thread opens the path again. If
 *      that fails it keeps the old file and logs why.
 *  LINES-4  lines_close writes what waits.
 *
 * Any thread may call anything but close, which comes last.
 */
#ifndef BASE_LINES_H
#define BASE_LINES_H

#include "base/bytes.h"

#include <sluice/err.h>
#include <sluice/log.h>

enum {
	LINES_ROOM = 4 << 20 /* bytes that may wait */
};

#define LINES_TELL (60 * SLU_SEC)

struct lines;

/* Opens the file to append. Makes it, with mode 0600, if it is missing. Returns SLU_EDOWN or
 * SLU_ENOMEM. */
int lines_open(struct lines **out, const char *path, struct slu_log *log, struct slu_err *err);
void lines_close(struct lines *l); /* NULL is fine */

/* The line ends with \n. */
void lines_add(struct lines *l, struct slice line);
void lines_drop(struct lines *l); /* counts a line that the caller could not make */
void lines_reopen(struct lines *l);

/* Appends the last lines of the file to out, at most max bytes of them, complete ones only. *whole: there are no lines
 * before these. May block. Returns SLU_EDOWN if the file cannot be read, or SLU_ENOMEM. */
int lines_tail(const struct lines *l, size_t max, struct buf *out, bool *whole, struct slu_err *err);

uint64_t lines_written(const struct lines *l);
uint64_t lines_dropped(const struct lines *l); /* LINES-1, LINES-2 */

#endif
