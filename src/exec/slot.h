/*
 * slot.h - a task in the executor, from submit to its final report.
 *
 * Queued, waiting for a retry or running, a task stays in its slot; what travels
 * between the ring, the parking and the worker is the slot's 32-bit handle. The first
 * 64 bytes are what a task that simply runs needs.
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
	slu_task_fn *run;
	void *arg;
	slu_task_done_fn *done;
	struct slu_cancel *cancel; /* counted, or NULL */
	slu_time give_up;	   /* mono: no run begins from here on; or SLU_NEVER */
	uint64_t seq;		   /* acceptance in its shard, from 1 */
	uint32_t hash;		   /* FNV-1a of the key */
	uint32_t attempts;	   /* runs begun */
	int last_rc;		   /* of the last run */
	uint32_t next;		   /* parked: the next task of the key, or SLAB_NONE */

	char key[SLOT_KEY_INLINE]; /* empty: the key is in long_key */
	char *long_key;		   /* SLU_KEY_MAX + 1 bytes, kept for later tasks */
	slu_time due;		   /* parked, first of its key: its next run */

	bool leads;    /* first of a parked key, also while it runs */
	uint32_t pos;  /* place among the parked keys' due times */
	uint32_t last; /* leads: the last task of the key */
	uint32_t held; /* leads: tasks behind this one */
	struct cancel_hook hook; /* leads, and has a token: hooked while it waits */
	void *lane;		 /* for the hook */
};

static inline const char *
slot_key(const struct slot *s)
{
	return s->key[0] ? s->key : s->long_key;
}

#endif
