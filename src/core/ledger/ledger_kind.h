/*
 * ledger_kind.h - the functions of kind.c, for core/ledger/ alone: LEDGERKIND-1, LEDGERKIND-2.
 */
#ifndef CORE_LEDGER_LEDGER_KIND_H
#define CORE_LEDGER_LEDGER_KIND_H

#include "core/ledger/ledger_private.h"

/* Reserves the memory that a message of the kind needs, and finds its flow; adds a new message. *flow: a guess, or SLAB_NONE. */
int ledger_kind_reserve(struct ledger *l, struct ledger_queue *q, struct slice kind, uint32_t *flow);
void ledger_kind_attach(struct ledger_queue *q, uint32_t flow);

/* A message of the kind of this flow is gone. */
void ledger_kind_detach(struct ledger *l, struct ledger_queue *q, uint32_t flow);

/* Returns whether the queue has messages of this kind, or may have one more kind. */
bool ledger_kind_fits(const struct ledger_queue *q, struct slice kind);

/* A message of the kind becomes ready, or is not ready any more. */
void ledger_kind_enter(struct ledger *l, struct ledger_queue *q, uint32_t strand, uint32_t h);
void ledger_kind_leave(struct ledger *l, struct ledger_queue *q, uint32_t strand, uint32_t h);

/* The message that a claim of these kinds gets, or SLAB_NONE. */
uint32_t ledger_kind_best(const struct ledger *l, const struct ledger_queue *q, struct slice kinds);

/* As ledger_peek_ready, for a claim of these kinds; n 0: of any kind, in a queue that has kinds and no shares. */
int ledger_kind_peek(const struct ledger *l, const struct ledger_queue *q, struct slice kinds, uint32_t *msgs, uint32_t max,
		     uint32_t *n);

/* Returns whether a purge has removed a ready message that waits behind another one of its kind. */
bool ledger_kind_is_trash(const struct ledger *l, const struct ledger_queue *q, uint32_t h);

#endif
