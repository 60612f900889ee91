/*
 * move.h - ops of the ledger engine meet queues that live on another shard. engine/move.h has the rules.
 *
 *      ledgerengine_before ──> the verb ──> ledgerengine_after
 *
 * The ledger engine calls these two functions around every op, and OP_MOVE is a verb like others. The
 * verbs themselves know of moves only what the ledger answers (SLU_EMOVED).
 */
#ifndef ENGINE_LEDGER_MOVE_MOVE_H
#define ENGINE_LEDGER_MOVE_MOVE_H

#include "engine/ledger/ledgerengine_private.h"

/* Before an op: sets marks (MOVE-1), lifts the counter (MOVE-9), refuses a lock verb whose key another
 * shard has (MOVE-5), lets OP_QUEUES find namespaces with lock keys. Returns false if the op has its
 * answer. */
bool ledgerengine_before(struct ledgerengine *k, struct op *op);

/* After an op: ends the puts of an enqueue (MOVE-2), and names the shard to ask next if the op found
 * nothing (MOVE-4, MOVE-5). */
void ledgerengine_after(struct ledgerengine *k, struct op *op);

/* OP_MOVE. */
ledgerengine_fn ledgerengine_move;

#endif
