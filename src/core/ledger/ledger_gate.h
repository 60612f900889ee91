/*
 * ledger_gate.h - the functions of gate.c, a part of ledger_private.h. Without another word they are of a queue that has gates.
 */
#ifndef CORE_LEDGER_LEDGER_GATE_H
#define CORE_LEDGER_LEDGER_GATE_H

#include "core/ledger/ledger_private.h"

/* A ready message: parks the head of a key whose gate is closed, and returns true. */
bool ledger_gate_parks(struct ledger *l, struct ledger_queue *q, uint32_t h);

/* Ends that: the message is in no heap then. */
void ledger_gate_unpark(struct ledger *l, struct ledger_queue *q, uint32_t h);

/* Purging: all parked messages go to the trash; whether a parked message is there; removes one of them, or returns
 * SLAB_NONE, also of a queue without gates. */
void ledger_gate_purge(struct ledger_queue *q);
bool ledger_gate_is_trash(const struct ledger *l, const struct ledger_queue *q, const struct msg *m);
uint32_t ledger_gate_trash_pop(struct ledger *l, struct ledger_queue *q);

/* Opens up to max gates whose moment has come. Returns their number. */
uint32_t ledger_gates_turn(struct ledger *l, struct ledger_queue *q, slu_time now, uint32_t max);

/* Reserves memory for a delivery, and charges it to the gates of the message. */
int ledger_gates_reserve(struct ledger *l, struct ledger_queue *q);
void ledger_gates_charge(struct ledger *l, struct ledger_queue *q, const struct msg *m, slu_time now);

/* A flow has got a message: its share is closed if its gate is. */
void ledger_gate_share(struct ledger *l, struct ledger_queue *q, uint32_t flow);

/* Of any queue: whether the gate exists and is closed. */
bool ledger_gate_is_closed(const struct ledger_queue *q, enum gate_kind kind, uint64_t name);

/* Of any queue: makes gates if the policy needs them, and reserves memory. */
int ledger_gates_make(struct ledger *l, struct ledger_queue *q, const struct policy *p);

/* Sets the gates by the policy of the queue. */
void ledger_gates_set(struct ledger *l, struct ledger_queue *q, slu_time now);

/* The shard was opened: the buckets are empty. */
void ledger_gates_open(struct ledger *l, struct ledger_queue *q, slu_time now);

/* Of any queue: until when a gate that is closed for this cause keeps a message back, and the kind of the gate that opens last. 0: none is closed. */
enum gate_cause {
	GATE_BY_RATE,
	GATE_BY_HOLD,
	GATE_BY_BREAKER
};

slu_time ledger_gate_wait(const struct ledger *l, const struct ledger_queue *q, const struct msg *m, enum gate_cause cause,
			  enum gate_kind *kind);

/* Sets what a gate keeps back, by its bucket, hold and breakers. May free the gates of the queue. */
void ledger_gate_set(struct ledger *l, struct ledger_queue *q, uint32_t gate, slu_time now);

/* The name of the gate of a message: the hash of its share, key or value; 0: the queue, or it has none. */
uint64_t ledger_gate_name(const struct ledger *l, const struct ledger_queue *q, const struct msg *m, enum gate_kind kind);

/* HOLD */
int ledger_hold_reserve(struct ledger *l, const struct change *c);
void ledger_put_hold(struct ledger *l, const struct change *c);

#endif
