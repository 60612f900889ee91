/*
 * slot.h - a task in the executor, from submit to its final report.
 *
 * Queued, waiting for a retry or running, a task stays in its slot; what travels
 * between the ring, the parking and the worker is the slot's 32-bit handle. A task
 * that simply runs costs the worker one cache line, the first.
 */
#ifndef EXEC_SLOT_H
#define EXEC_SLOT_H

#include "base/slab.h"
#include "exec/cancel.h"

#include <sluice/executor.h>

enum {
	SLOT_KEY_INLINE = 48 /* bytes, terminator included */
};

struct slot {
	_Alignas(64) slu_task_fn *run;
	void *arg;
	slu_task_done_fn *done;
	struct slu_cancel *cancel; /* counted, or NULL */
	slu_time give_up;          /* mono: no run begins from here on; or SLU_NEVER */
	_Atomic uint64_t seq;      /* acceptance in its shard, from 1; written last */
	const char *key;           /* short_key or long_key */
	uint32_t attempts;         /* runs begun */
	bool leads;                /* first of a parked key, also while it runs */

	uint32_t hash; /* FNV-1a of the key */
	int last_rc;   /* of the last run */
	uint32_t next; /* parked: the next task of the key, or SLAB_NONE */
	uint32_t pos;  /* place among the parked keys' due times */
	char short_key[SLOT_KEY_INLINE];

	char *long_key;          /* SLU_KEY_MAX + 1 bytes once needed, kept for later tasks */
	slu_time due;            /* leads and waits: its next run */
	uint32_t last;           /* leads: the last task of the key */
	uint32_t held;           /* leads: tasks behind this one, or on their way there */
	uint64_t held_from;      /* leads: those on their way begin with this seq; or 0 */
	struct cancel_hook hook; /* leads, waits and has a token: hooked */
	void *lane;              /* for the hook */
};

#endif
