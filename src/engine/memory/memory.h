/*
 * memory.h - the smallest complete engine: a ledger, and records on the heap.
 *
 * Its messages end with the process. Read this engine first.
 */
#ifndef ENGINE_MEMORY_MEMORY_H
#define ENGINE_MEMORY_MEMORY_H

#include "engine/engine.h"

extern const struct engine_ops engine_memory;

/* For tests. */
struct ledger *memory_ledger(struct engine *e);
struct locks *memory_locks(struct engine *e);

#endif
