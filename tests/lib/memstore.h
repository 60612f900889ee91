/*
 * memstore.h - a store in memory that can be told to fail.
 *
 *         memory://NAME
 *
 * All stores of one name in a process share their objects; the objects are gone when the last
 * store of the name is closed. The faults belong to the name, too.
 *
 *         memstore_fault(s, STORE_PUT, MEMSTORE_LOSE_ANSWER, 1);
 *         the next put happens and returns STORE_FAILED
 */
#ifndef TESTS_MEMSTORE_H
#define TESTS_MEMSTORE_H

#include "store/pool.h"

extern const struct store_ops store_memory;

enum memstore_fault {
	MEMSTORE_NONE,
	MEMSTORE_LOSE_REQUEST, /* nothing happens; STORE_FAILED */
	MEMSTORE_LOSE_ANSWER,  /* it happens; STORE_FAILED */
	MEMSTORE_REFUSE        /* nothing happens; STORE_REFUSED */
};

/* The next n calls of this verb have the fault. */
void memstore_fault(struct store *s, enum store_verb verb, enum memstore_fault fault, unsigned n);

/* Calls that name this object, or this prefix, block until memstore_release; "" blocks none. */
void memstore_hold(struct store *s, const char *name);
void memstore_release(struct store *s);

/* Calls that are blocked now. */
unsigned memstore_held(struct store *s);

/* How many objects have the prefix, at most STORE_PAGE_MAX. */
unsigned memstore_count(struct store *s, const char *prefix);

/* The store goes back: it loses the last n objects of the prefix. */
void memstore_lose(struct store *s, const char *prefix, unsigned n);

/* The wall clock that `clock` returns; it stands still. */
void memstore_set_clock(struct store *s, slu_time wall);

#endif
