/*
 * slot.h - a task in the executor, from submit to its final report.
 *
 * A task stays in its slot while it is queued, waits for a retry, or runs; the ring, the
 * parking and the worker pass its 32-bit handle. A task that succeeds at once costs the
 * worker one cache line, the first.
 */
#ifndef EXEC_SLOT_H
#define EXEC_SLOT_H

#include "exec/cancel.h"

#include <sluice/executor.h>

enum {
	SLOT_KEY_INLINE = 48 /* bytes of a short key, with the NUL */
};

struct task_slot {
	_Alignas(64) slu_task_fn *run;
	void *arg;
	slu_task_done_fn *done;
	struct slu_cancel *cancel; /* a reference, or NULL */
	slu_time give_up;          /* clock_mono: no run begins from then on; or SLU_NEVER */
	_Atomic uint64_t seq;      /* number in its shard, from 1; written last */
	const char *key;           /* short_key or long_key */
	uint32_t attempts;         /* runs begun */
	bool leads;                /* the leader of a parked key, also while it runs */

	uint32_t hash; /* FNV-1a of the key */
	int last_rc;   /* of the last run */
	uint32_t next; /* parked: the next task of the key, or SLAB_NONE */
	uint32_t pos;  /* in parking.by_due */
	char short_key[SLOT_KEY_INLINE];

	char *long_key;          /* SLU_KEY_MAX + 1 bytes from the first long key on, or NULL */
	slu_time due;            /* a waiting leader: its next run */
	uint32_t last;           /* a leader: the last task of its line */
	uint32_t held;           /* a leader: tasks in its line, and on their way there */
	uint64_t held_from;      /* a leader: the first seq on its way; or 0 */
	struct cancel_hook hook; /* a waiting leader with a token */
	void *shard;             /* its struct exec_shard, for the hook */
};

#endif
