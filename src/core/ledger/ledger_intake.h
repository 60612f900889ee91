/*
 * ledger_intake.h - batches from outside: LEDGER-14 of core/ledger/ledger.h, which includes this header.
 */
#ifndef CORE_LEDGER_LEDGER_INTAKE_H
#define CORE_LEDGER_LEDGER_INTAKE_H

#include "core/change.h"

struct ledger;

enum {
	LEDGER_SOURCES = 1000 /* sources that a ledger remembers */
};

#define LEDGER_SOURCE_IDLE (30 * 24 * SLU_HOUR) /* a new source may replace one that is silent for so long */
#define LEDGER_OUTBOX_IDLE (24 * SLU_HOUR)      /* the same, of the outbox of a shard */

/* The number of the last batch of the source, and its messages; 0: the source is unknown. */
uint64_t ledger_intake_last(const struct ledger *l, const uint8_t source[static INTAKE_SOURCE], uint32_t *count);

/* INTAKE: the shard accepts a batch. Its number must be higher than the last one. Returns SLU_EBUSY if the
 * source is unknown, the ledger remembers LEDGER_SOURCES, and none is silent for LEDGER_SOURCE_IDLE. */
int ledger_intake(struct ledger *l, const struct change_intake *say, slu_time now, struct change *out);

/* For a log: the place of the record of the last batch of a source, or 0, and its new place. */
uint64_t ledger_intake_where(const struct ledger *l, const uint8_t source[static INTAKE_SOURCE]);
void ledger_relocate_intake(struct ledger *l, const uint8_t source[static INTAKE_SOURCE], uint64_t where);

#endif
