/*
 * values.h - the values of an attribute that a queue limits, and the ready messages that wait behind them.
 *
 *      heap of the queue, or flow of a share       the front: what a claim looks at
 *                 ^
 *                 | one message of every strand whose value is not blocked
 *                 |
 *      value "crm" ── strand of share "a"          messages by (priority, due, number)
 *                  └─ strand of share "b"
 *      value "fax" ── strand of plain messages     blocked: none of its messages is in front
 *
 * A strand has the ready messages of one value and one flow (core/queue/shares.h), or of one value and no share. Its
 * best message is in front, where the owner of the values puts it; the others wait in the heap of the strand.
 *
 *  VALUES-1  A strand whose value is not blocked, and that has ready messages, has its best message in front. A strand
 *            of a blocked value has none there.
 *  VALUES-2  A value is blocked while it has as many leased messages as the limit allows, or its gate
 *            (core/queue/gates.h) is closed.
 *  VALUES-3  A strand exists while it has a message in any state, and a value while it has a strand.
 *
 * So a blocked value costs the others nothing, and a step costs O(log n), whatever the number of values; blocking a value
 * costs O(log n) for each of its strands. Items live in a slab of the owner and begin with a struct queue_item, whose `pos` belongs
 * to the strand while the item waits. Pure: no I/O, no clock. Owned by the shard's thread.
 */
#ifndef CORE_QUEUE_VALUES_H
#define CORE_QUEUE_VALUES_H

#include "base/bytes.h"
#include "base/hash.h"
#include "core/queue/queue.h"

struct values;

/* Returns SLU_ENOMEM if memory is out. items: the slab of the messages. */
int values_new(struct values **out, const struct slab *items, const struct hash_key *secret);
void values_free(struct values *v); /* NULL is fine */

/* Finds or makes the strand of a value and a flow, and reserves room for one more message in it. Returns SLU_ENOMEM.
 * If the next call is not values_hold, a new strand is gone again. */
int values_reserve(struct values *v, struct slice name, uint32_t flow, uint32_t *strand);

/* The strand of a value and a flow, or SLAB_NONE. */
uint32_t values_strand(const struct values *v, struct slice name, uint32_t flow);

/* Returns whether the strand exists and is of this value and flow. strand: any number. */
bool values_is_strand(const struct values *v, uint32_t strand, struct slice name, uint32_t flow);

/* Reserves room for one more message. Returns SLU_ENOMEM. */
int values_room(struct values *v, uint32_t strand);

/* Numbers of the owner, SLAB_NONE at first: one of the strand, one of its value. */
uint32_t *values_spot(const struct values *v, uint32_t strand);
uint32_t *values_gate(const struct values *v, uint32_t strand);

/* Loads the strand into the cache; deep: it is there, and what belongs to it is loaded. */
void values_load(const struct values *v, uint32_t strand, bool deep);

/* Add a message to a strand, in any state, or remove it. */
void values_hold(struct values *v, uint32_t strand);
void values_drop(struct values *v, uint32_t strand);

/* ---- Ready messages ---- */

/* The message of the strand that is in front, or SLAB_NONE. */
uint32_t values_front(const struct values *v, uint32_t strand);

/* Returns whether one of two messages goes before the other. */
bool values_before(const struct queue_item *a, const struct queue_item *b);

/* Returns whether a ready message belongs in front, before the message that is there. */
bool values_leads(const struct values *v, uint32_t strand, uint32_t item);

/* Sets the message in front; SLAB_NONE: none. The owner moves it. */
void values_lead(struct values *v, uint32_t strand, uint32_t item);

/* Put a message that is in no heap into the heap of the strand, or remove it from there. */
void values_push(struct values *v, uint32_t strand, uint32_t item);
void values_pull(struct values *v, uint32_t strand, uint32_t item);

/* Removes and returns the next message for the front, or SLAB_NONE if none waits or the value is blocked. */
uint32_t values_pop(struct values *v, uint32_t strand);

/* The heap of the messages that wait. */
const struct heap *values_heap(const struct values *v, uint32_t strand);

/* ---- Values ---- */

uint32_t values_of(const struct values *v, uint32_t strand);
uint64_t values_hash(const struct values *v, uint32_t strand); /* of the name of its value */
uint32_t values_find(const struct values *v, uint64_t hash);   /* SLAB_NONE: no such value */

struct value_view {
	struct slice name; /* valid while the value exists */
	uint64_t hash;
	uint32_t messages; /* in any state */
	uint32_t leased;
	bool blocked;
};

void values_get(const struct values *v, uint32_t value, struct value_view *out);

/* Its messages in front, or waiting. Looks at each strand of the value. */
uint32_t values_ready(const struct values *v, uint32_t value);

uint32_t values_count(const struct values *v);

/* The next value in no order. SLAB_NONE: as argument the start, as result the end. */
uint32_t values_next(const struct values *v, uint32_t value);

/* VALUES-2. They return whether the value is blocked now and was not, or the reverse: then the owner looks at every
 * strand of the value (values_first, values_beside). */
bool values_lease(struct values *v, uint32_t value, bool begins);
bool values_close(struct values *v, uint32_t value, bool closed);
bool values_limit(struct values *v, uint32_t value, uint32_t max);

/* The limit of leased messages of a value that is made from now on; 0: none. */
void values_set_limit(struct values *v, uint32_t max);

/* The strands of a value; SLAB_NONE: no more. */
uint32_t values_first(const struct values *v, uint32_t value);
uint32_t values_beside(const struct values *v, uint32_t strand);

/* The next strand in no order. SLAB_NONE: as argument the start, as result the end. */
uint32_t values_strand_next(const struct values *v, uint32_t strand);

/* ---- Purging: as in core/queue/shares.h. The owner purges what is in front. ---- */

int values_purge_reserve(struct values *v);
void values_purge(struct values *v);
bool values_is_trash(const struct values *v, uint32_t strand, uint32_t item);
uint32_t values_trash_pop(struct values *v);

/* ---- Memory and checks ---- */

/* The bytes that the values have allocated. */
size_t values_bytes(const struct values *v);

/* Returns whether they may have changed since the last call. */
bool values_have_changed(struct values *v);

/* Returns what is wrong with the structure, or NULL. Looks at everything: for tests. */
const char *values_check(const struct values *v);

#endif
