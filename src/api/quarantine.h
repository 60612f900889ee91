/*
 * quarantine.h - sets a claimed message aside if it cannot be read.
 *
 * The message becomes `damaged`: shown and counted, never delivered again, removed only by a
 * delete. Later messages of its key go on. The claim leaves it out and does not wait for the
 * change: if the change fails, the lease ends and the next claim finds the damage again.
 */
#ifndef API_QUARANTINE_H
#define API_QUARANTINE_H

#include "api/apicall.h"

/* row: a row of the op `claim`; why: for the log. For another verb it only logs. Any
 * thread. */
void quarantine(const struct apicall *a, const struct op *claim, const struct op_row *row,
		const struct slu_err *why);

#endif
