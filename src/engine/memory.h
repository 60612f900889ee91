/*
 * memory.h - the smallest complete engine: a ledger, and records on the heap.
 *
 * What it holds ends with it. Read it first.
 */
#ifndef ENGINE_MEMORY_H
#define ENGINE_MEMORY_H

#include "engine/engine.h"

extern const struct engine_ops engine_memory;

/* For tests and for those who doubt. */
struct ledger *memory_ledger(struct engine *e);
struct locks *memory_locks(struct engine *e);

#endif
