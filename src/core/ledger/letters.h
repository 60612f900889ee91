/*
 * letters.h - dead letters that leave their queue: policy.dead_letter_queue. Part of the ledger; the engine sends them
 * (engine/ledger/letters.c).
 */
#ifndef CORE_LEDGER_LETTERS_H
#define CORE_LEDGER_LETTERS_H

#include "core/ledger/ledger.h"

/* Reserves memory for the place of what is kept of a failure. ledger_nack has done so; the tick, which ends leases, has
 * not. Returns SLU_ENOMEM. */
int ledger_reserve_error(struct ledger *l);

/* Deletes a message, or cancels one that is leased (LEDGER-17). CHANGE_NONE if it is canceled already. */
int ledger_cancel(struct ledger *l, const struct ledger_ref *ref, slu_time now, struct change *out);

/* The next queue with dead letters that leave it. SLAB_NONE: as argument the start, as result the end. */
uint32_t ledger_leaving(struct ledger *l, uint32_t queue);

/* The first dead letter of the queue that leaves it, oldest first; or SLAB_NONE. */
uint32_t ledger_leaving_first(const struct ledger *l, uint32_t queue);

/* The dead letter stays in its queue, until the ledger is opened again. */
void ledger_stay(struct ledger *l, uint32_t msg);

#endif
