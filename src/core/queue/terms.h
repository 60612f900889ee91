/*
 * terms.h - the terms of a message of its own: a lease, a retry policy and a longest run, in place of its queue's;
 * until when it is unique; and its batch.
 *
 *  TERMS-1  A unique message is the only one of its queue with its idempotency key until it is delivered (STARTED),
 *           until it is gone or dead (DONE), or until a moment (TIME). After that the key is unknown, whatever the
 *           window of the queue is.
 */
#ifndef CORE_QUEUE_TERMS_H
#define CORE_QUEUE_TERMS_H

#include <sluice/api.h>
#include <sluice/retry.h>

#include <stdbool.h>
#include <stdint.h>

/* Until when a message is unique. Records store the numbers. */
enum unique {
	UNIQUE_NOT, /* its idempotency key is remembered for the window of its queue */
	UNIQUE_STARTED,
	UNIQUE_DONE,
	UNIQUE_TIME,
	UNIQUES
};

/* 0: as the queue has it. */
struct terms {
	slu_time lease;      /* of a claim that names none */
	slu_time run;        /* max_runtime */
	uint64_t retry;      /* 1 + enum slu_backoff_kind, and enum slu_jitter << 8; the next two belong to it */
	slu_time retry_base; /* the first delay; may be 0 */
	slu_time retry_max;  /* the longest delay; may be 0 */
	uint64_t unique;     /* enum unique: TERMS-1 */
	slu_time unique_for; /* UNIQUE_TIME: how long after it was accepted */
	slu_time unique_end; /* UNIQUE_TIME: that moment; not in records */
	uint64_t batch;      /* the batch that it is a member of: engine/msgbatch.h */
};

static inline bool
terms_any(const struct terms *t)
{
	return t->lease || t->run || t->retry || t->unique || t->batch;
}

/* Returns whether another message of the queue may have the key once this one is gone. */
static inline bool
terms_are_unique(const struct terms *t)
{
	return t->unique == UNIQUE_STARTED || t->unique == UNIQUE_DONE;
}

/* Returns whether the message has lost its key at the moment now, although it may be there. */
static inline bool
terms_unique_over(const struct terms *t, slu_time now)
{
	return t->unique == UNIQUE_TIME && t->unique_end <= now;
}

static inline void
terms_set_retry(struct terms *t, const struct slu_backoff *b)
{
	t->retry = 1 + (uint64_t)b->kind + ((uint64_t)b->jitter << 8);
	t->retry_base = b->base;
	t->retry_max = b->max;
}

/* Returns false if the numbers, which may come from another node or a log, are no terms. */
static inline bool
terms_valid(const struct terms *t)
{
	const uint64_t kind = t->retry & 0xff, jitter = t->retry >> 8;

	return t->lease >= 0 && t->run >= 0 && t->retry_base >= 0 && t->retry_max >= 0 && (kind || !t->retry) &&
	       kind <= 1 + SLU_BACKOFF_NONE && jitter <= SLU_JITTER_FULL && t->unique < UNIQUES &&
	       (t->unique == UNIQUE_TIME) == (t->unique_for > 0);
}

/* The retry policy of the message, or of its queue if the message has none. */
static inline struct slu_backoff
terms_retry(const struct terms *t, const struct slu_backoff *queue)
{
	if (!t->retry)
		return *queue;
	return (struct slu_backoff){
		.kind = (enum slu_backoff_kind)((t->retry & 0xff) - 1),
		.jitter = (enum slu_jitter)(t->retry >> 8),
		.base = t->retry_base,
		.max = t->retry_max,
	};
}

#endif
