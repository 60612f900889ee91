/*
 * move_private.h - what the files of engine/ledger/move/ share; for them alone.
 */
#ifndef ENGINE_LEDGER_MOVE_MOVE_PRIVATE_H
#define ENGINE_LEDGER_MOVE_MOVE_PRIVATE_H

#include "engine/ledger/move/move.h"

/* ---- elsewhere.c ---- */

/* Returns true if the queue lives on another shard, whose name is in out; MOVE_UNKNOWN: MOVE-11. */
bool ledgerengine_is_elsewhere(const struct ledgerengine *k, const struct op *op, uint32_t queue,
			       char out[static MOVE_SHARD]);

/* Makes the queue if it does not exist, with the spelling of the op. */
int ledgerengine_open_queue(struct ledgerengine *k, const struct op *op, struct slice space, struct slice name,
			    uint32_t *out, struct slu_err *err);

/* ---- step.c ---- */

/* Adds the documents of a message or a key as rows; the caller has checked that they fit. */
int ledgerengine_add_states(struct ledgerengine *k, struct op *op, const struct lock *lock,
			    struct slu_err *err);

/* Bytes of the record at that place. */
uint64_t ledgerengine_record_size(struct ledgerengine *k, uint64_t where);

/* ---- give.c ---- */

int ledgerengine_give(struct ledgerengine *k, struct op *op, uint32_t queue, struct slu_err *err);
int ledgerengine_refuse(struct ledgerengine *k, struct op *op, uint32_t queue, struct slu_err *err);

/* ---- locks.c ---- */

/* Returns true if the op is about LOCK_QUEUE: its rows are lock keys. */
bool ledgerengine_has_locks(const struct op *op);

/* Makes LOCK_QUEUE known to the ledger for each namespace that has lock keys. */
int ledgerengine_open_locks(struct ledgerengine *k, const struct op *op, struct slu_err *err);

/* Sets the next lock keys aside. */
int ledgerengine_take_locks(struct ledgerengine *k, const struct op *op, uint32_t queue, struct slu_err *err);

/* Answers a page of the n lock keys that are set aside. */
int ledgerengine_show_locks(struct ledgerengine *k, struct op *op, uint32_t n, struct slu_err *err);

/* Writes the names of the lock keys that are set aside to out. */
void ledgerengine_name_locks(const struct ledgerengine *k, const struct op *op, struct buf *out);

#endif
