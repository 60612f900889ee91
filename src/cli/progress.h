/*
 * progress.h - how far long work has come: a line on stderr, if that is a terminal.
 *
 *         redriving  [#########...........]  45 %   4500 of 10000   1200/s   5s left
 *
 *         progress_begin(&p, "redriving", total, "");
 *         progress_at(&p, done);            as often as you like
 *         progress_end(&p);                 the line is gone
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <sluice/api.h>

#include <stdint.h>

struct progress {
	const char *what;
	uint64_t total;
	bool bytes; /* are shown in MiB */
	bool on;
	slu_time began, drawn;
};

void progress_begin(struct progress *p, const char *what, uint64_t total, bool bytes);
void progress_at(struct progress *p, uint64_t done);
void progress_end(struct progress *p);

struct session;

/* May this be done? Asks on a terminal; elsewhere only --yes is a yes, and without it
 * the command is refused: s->exit is set. */
bool confirm(struct session *s, bool yes, const char *fmt, ...) SLU_PRINTF(3, 4);

#endif
