/*
 * named.h - messages of a ledger beside the best one of a queue: one by its handle, and the next delayed ones.
 */
#ifndef CORE_LEDGER_NAMED_H
#define CORE_LEDGER_NAMED_H

#include "core/ledger/ledger.h"

/* Claims one message, as ledger_claim_for. CHANGE_NONE if it is not ready, or its queue is paused or held. */
int ledger_claim_one(struct ledger *l, uint32_t msg, slu_time lease, slu_time now, struct change *out);

/* As ledger_peek, for delayed messages, the next due first. */
int ledger_peek_delayed(const struct ledger *l, uint32_t queue, uint32_t *msgs, uint32_t max, uint32_t *n);

#endif
