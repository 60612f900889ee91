/*
 * batches.h - members of batches (engine/msgbatch.h). Part of the ledger; the engine counts them (engine/ledger/msgbatch.c).
 */
#ifndef CORE_LEDGER_BATCHES_H
#define CORE_LEDGER_BATCHES_H

#include "core/ledger/ledger.h"

/* The batch of the message, or 0. */
uint64_t ledger_member_of(const struct ledger *l, uint32_t msg);

/* Fills `of` with up to max batches of messages that a purge of the queue removes, one entry for each message, in no order.
 * Returns how many there are. Looks at all messages, unless none has a batch or terms. */
uint32_t ledger_purged_members(const struct ledger *l, uint32_t queue, uint64_t *of, uint32_t max);

/* Another change was applied since this one was decided: reserves what it needs again, and gives it another number.
 * Returns SLU_ENOMEM. */
int ledger_decide_again(struct ledger *l, struct change *c);

#endif
