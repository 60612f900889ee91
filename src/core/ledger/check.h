/*
 * check.h - checks of a whole ledger. Their time is proportional to all messages.
 */
#ifndef CORE_LEDGER_CHECK_H
#define CORE_LEDGER_CHECK_H

#include "core/ledger/ledger.h"

/* Returns NULL if every message is in the structure of its state, every counter is right (LEDGER-1),
 * and every sequence is in order and has its head (LEDGER-3, LEDGERHEAP-2); otherwise what is wrong. */
const char *ledger_scan_check(const struct ledger *l);

/* Returns whether a gate of its share, key or value keeps a message back, by the last look at the gates. A message without
 * a share has no gate of a share here. */
bool ledger_is_gated(const struct ledger *l, uint32_t msg);

/* Returns whether the gate of its key keeps the message back. */
bool ledger_is_parked(const struct ledger *l, uint32_t msg);

/* Returns whether the shares of the queue take turns now: LEDGERSHARE-1. */
bool ledger_has_turns(const struct ledger *l, uint32_t queue);

#endif
