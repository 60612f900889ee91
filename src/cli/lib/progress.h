/*
 * progress.h - a progress line on stderr, if stderr is a terminal.
 *
 *         redriving  [#########...........]  45 %   4500 of 10000   1200/s   5s left
 *
 *         progress_begin(&p, "redriving", total, false);
 *         progress_at(&p, done);            any number of times
 *         progress_end(&p);                 removes the line
 */
#ifndef CLI_LIB_PROGRESS_H
#define CLI_LIB_PROGRESS_H

#include <sluice/api.h>

#include <stdint.h>

struct progress {
	const char *what;
	uint64_t total;
	bool bytes; /* the numbers are bytes, shown in MiB */
	bool on;
	slu_time began, drawn;
};

void progress_begin(struct progress *p, const char *what, uint64_t total, bool bytes);
void progress_at(struct progress *p, uint64_t done);
void progress_end(struct progress *p);

#endif
