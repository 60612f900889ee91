/*
 * adjust.h - another priority or due time of a message that waits.
 */
#ifndef CORE_LEDGER_ADJUST_H
#define CORE_LEDGER_ADJUST_H

#include "core/ledger/ledger.h"

/* What ledger_adjust changes: the priority, or else the due time. */
struct ledger_adjust {
	bool has_prio;
	int32_t prio;
	slu_time due; /* not before now */

	bool guarded; /* only if the message has these */
	int32_t was_prio;
	slu_time was_due;
};

/*
 * Another priority or due time of a message that waits: PRIORITY, DUE. It keeps its number, its keys and its batch.
 *   SLU_ENOTFOUND  no message, or one that is dead or damaged
 *   SLU_ELEASE     the message is leased
 *   SLU_ECONFLICT  the guard; or a due time of a message that is in the sequence of its key (LEDGER-3)
 */
int ledger_adjust(struct ledger *l, const struct ledger_ref *ref, const struct ledger_adjust *adjust, slu_time now,
		  struct change *out);

#endif
