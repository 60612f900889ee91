/*
 * shard_in.h - what the parts of the shard share: shard*.c alone.
 */
#ifndef BROKER_SHARD_IN_H
#define BROKER_SHARD_IN_H

#include "broker/shard.h"

/* Add to a total: it has one writer. */
static inline void
shard_count(struct shard *s, enum shard_total row, uint64_t n)
{
	const uint64_t old = atomic_load_explicit(&s->totals[row], memory_order_relaxed);

	atomic_store_explicit(&s->totals[row], old + n, memory_order_relaxed);
}

/* S6: the op has its answer. */
void shard_answer(struct shard *s, struct op *op);

/* S8: the flow has room; 0: none has. Its claim that waits for that runs once more. */
void shard_make_room(struct shard *s, uint64_t flow);

/* An op that is not answered and in no line runs at the moment `until`, from turns. */
void shard_put_off(struct shard *s, struct op *op, slu_time until);

/* shard_run.c: form a batch, run it, answer it. */
void shard_run(struct shard *s);

#endif
