/*
 * aside.h - a message that was claimed and cannot be read is set aside.
 *
 * It is then `damaged`: shown and counted, never handed out again, and gone only when
 * somebody deletes it. Its key goes on without it. Whoever claimed it hears nothing of
 * it, and nobody waits for this: if it cannot be done, the lease ends, and the next claim
 * finds the damage again.
 */
#ifndef API_ASIDE_H
#define API_ASIDE_H

#include "api/ask.h"

/* A row of a claim; what it is wrong with, for the log. Any thread. Of other ops: only
 * logged. */
void aside(const struct ask *a, const struct op *claim, const struct op_row *row,
	   const struct slu_err *why);

#endif
