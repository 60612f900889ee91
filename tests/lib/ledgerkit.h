/*
 * ledgerkit.h - what tests ask of a ledger and of its locks beyond what a server asks.
 */
#ifndef TESTS_LEDGERKIT_H
#define TESTS_LEDGERKIT_H

#include "core/ledger/ledger.h"
#include "core/locks/locks.h"

/* Two ledgers with the same content have the same digest: all messages with every field, policies,
 * spellings, idempotency keys, results, the counter. Handles and the order of making do not count.
 * Tick both to the same moment first. */
uint64_t ledger_digest(const struct ledger *l);

/* The same without idempotency keys that have expired by now. */
uint64_t ledger_digest_at(const struct ledger *l, slu_time now);

/* The same for locks; places do not count. */
uint64_t locks_digest(const struct locks *l);

/* The highest id of any message so far, or 0. */
uint64_t ledger_highest_id(const struct ledger *l);

/* Claims as a consumer that is not a stream. */
int ledger_claim(struct ledger *l, uint32_t queue, slu_time lease, slu_time now,
		 struct change *out);

#endif
