/*
 * ledger_check.h - a ledger looked at as a whole: for tests, and for those who doubt.
 * Both take time in proportion to all messages.
 */
#ifndef CORE_LEDGER_CHECK_H
#define CORE_LEDGER_CHECK_H

#include "core/ledger.h"

/* A number that is the same for two ledgers that cannot be told apart: all messages
 * with every field, policies, spellings, idempotency keys, results, the counter. Handles, and
 * the order in which things were made, do not count. Tick both to the same moment
 * first. */
uint64_t ledger_digest(const struct ledger *l);

/* The same without the idempotency keys that are over at the moment now. */
uint64_t ledger_digest_at(const struct ledger *l, slu_time now);

/* NULL when every message is where its state says, every counter equals what is
 * there (L1), every line is in order and has its head (L3, I2); or what is wrong. */
const char *ledger_scan_check(const struct ledger *l);

#endif
