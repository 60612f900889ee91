/*
 * batches.h - members of batches (engine/msgbatch.h). Part of the ledger; the engine counts them (engine/ledger/msgbatch.c).
 *
 *  LEDGERBATCH-1  A queue has a list of its messages with a batch that a purge takes: ready, delayed or held ones that are not
 *                 set aside. So a purge need not look for them.
 */
#ifndef CORE_LEDGER_BATCHES_H
#define CORE_LEDGER_BATCHES_H

#include "core/ledger/ledger.h"

/* The batch of the message, or 0. */
uint64_t ledger_member_of(const struct ledger *l, uint32_t msg);

/* Messages with a batch that a purge of the queue removes: how many, and up to max of them in no order. Looks at them alone. */
uint32_t ledger_members(const struct ledger *l, uint32_t queue);
uint32_t ledger_first_members(const struct ledger *l, uint32_t queue, uint32_t *msgs, uint32_t max);

/* Another change was applied since this one was decided: reserves what it needs again, and gives it another number.
 * Returns SLU_ENOMEM. */
int ledger_decide_again(struct ledger *l, struct change *c);

#endif
