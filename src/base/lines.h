/*
 * lines.h - a file that lines are added to by many threads, and that a thread of its own writes.
 *
 *      lines_add ──> room ──> the thread ──> write ──> file
 *
 *  L1  lines_add copies the line and never waits for the disk. A line for which there is no
 *      room (LINES_ROOM bytes wait already) is dropped, and counted.
 *  L2  What cannot be written, as on a full disk, is dropped and counted, too; the log is
 *      told at the first and then at most once in LINES_TELL. The next lines are tried again,
 *      on a line of their own.
 *  L3  After lines_reopen the next line goes to a file of that name as it is then: for whoever
 *      has renamed it. When it cannot be opened the old one is kept, and the log is told.
 *  L4  lines_close writes what is there.
 *
 * Any thread may call anything but close, which comes last.
 */
#ifndef BASE_LINES_H
#define BASE_LINES_H

#include "base/bytes.h"

#include <sluice/err.h>
#include <sluice/log.h>

enum {
	LINES_ROOM = 4 << 20
};

#define LINES_TELL (60 * SLU_SEC)

struct lines;

/* Appends to the file, which is made if it is not there, for its owner alone. SLU_EDOWN,
 * SLU_ENOMEM. */
int lines_open(struct lines **out, const char *path, struct slu_log *log, struct slu_err *err);
void lines_close(struct lines *l); /* NULL is fine */

/* The line ends with \n. */
void lines_add(struct lines *l, struct slice line);
void lines_drop(struct lines *l); /* count one that could not even be made */
void lines_reopen(struct lines *l);

/* How many were written, and dropped: L1, L2. */
uint64_t lines_written(const struct lines *l);
uint64_t lines_dropped(const struct lines *l);

#endif
