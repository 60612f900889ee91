/*
 * pqueue_lock.h - the state of a priority queue, its lock, and the rules that hold
 * whenever nobody has the lock. For pqueue*.c alone.
 *
 *  P1  When something is ready and consumers sleep, one of them has been woken and
 *      not yet run. Whoever gives the lock back sees to it (pqueue_unlock), a consumer
 *      that leaves by its timeout included; so no wake-up is lost, whoever got it.
 *  P2  When something is scheduled and consumers sleep, one of them is the sentry:
 *      it sleeps no longer than until the next due, the others only until their own
 *      timeout. A job that is due before all others dismisses the sentry, and by P1's
 *      means somebody becomes the new one. So a due job wakes one thread, not all.
 *  P3  Nothing is handed out while something due is still in `timed`.
 *  P4  Nothing is logged and no callback is called under the lock. What is to be
 *      logged gathers in struct notes; when that is full, the lock is given back
 *      for a moment.
 *
 * Times are kept on the monotonic clock and shown on the wall clock as it is set
 * when they are shown.
 */
#ifndef EXEC_PQUEUE_LOCK_H
#define EXEC_PQUEUE_LOCK_H

#include "base/metrics.h"
#include "core/labels.h"
#include "core/queue.h"
#include "exec/pqueue.h"

#include <string.h>

enum {
	PQUEUE_NOTES = 8
};

/* The queue only ever moves down. Nothing is promoted from DRAIN_READY on. */
enum phase {
	OPEN,
	DRAIN_ALL,
	DRAIN_READY,
	CLOSED
};

enum {
	M_DEPTH,
	M_READY,
	M_SCHEDULED,
	M_ENQUEUED,
	M_REFUSED,
	M_LATENCY
};

/* One cache line: with millions of them that is what a dequeue costs. */
struct item {
	struct queue_item q; /* first; pos links purged and peeked items */
	slu_time enqueued;
	void *data;
	char *strings; /* object id and correlation id, each with its NUL; or NULL */
	uint32_t attempts;
	uint32_t label;
};

_Static_assert(sizeof(struct item) == 64, "an item is a cache line");

/* A number that warns when it rises to warn_at. */
struct level {
	uint32_t warn_at; /* 0: never */
	bool above;
};

struct slu_pqueue {
	uint32_t born; /* forked.h */
	struct clock *clock;
	struct slu_log *log;
	struct labels labels;
	struct metrics metrics; /* the histogram is written under mtx */
	uint32_t max_held;
	uint32_t max_scheduled;

	pthread_mutex_t mtx;
	pthread_cond_t work;    /* consumers sleep here */
	pthread_cond_t drained; /* and those who stop the queue here */

	/* shared, under mtx */
	struct slab items;
	struct queue queue;
	uint64_t last_seq;
	enum phase phase;
	uint64_t sentry;     /* P2; the number of its sleep, or 0 */
	uint64_t last_sleep; /* every sleep has a number */
	uint32_t sleepers;
	uint32_t drainers; /* of them, those that leave when the queue is empty */
	uint32_t stoppers;
	slu_time wall_offset; /* wall - mono, read at wall_read */
	slu_time wall_read;
	struct level ready_level;
	struct level scheduled_level;
	uint64_t enqueued;
	uint64_t refused;
};

/* A debug line about an item that may be gone by the time it is written. */
struct note {
	const char *event;
	char ids[SLU_OBJECT_ID_MAX + 1 + SLU_CORRELATION_MAX + 1];
	const char *label;
	uint64_t seq;
	unsigned attempts;
};

/* What to log once the lock is given back. */
struct notes {
	bool debug;
	uint32_t ready;     /* the depth that crossed its level, or 0 */
	uint32_t scheduled; /* the same */
	unsigned n;
	struct note list[PQUEUE_NOTES];
};

static inline struct item *
pqueue_item(const struct slu_pqueue *q, uint32_t handle)
{
	return slab_at(&q->items, handle);
}

/* The string behind this one. */
static inline const char *
pqueue_second(const char *strings)
{
	return strings + strlen(strings) + 1;
}

void pqueue_lock(struct slu_pqueue *q, struct notes *notes);

/* Sees to P1 and P2, then writes the notes. */
void pqueue_unlock(struct slu_pqueue *q, struct notes *notes);

/* The next four want the lock to be held. Now: */
slu_time pqueue_now(struct slu_pqueue *q);

/* P3: make all ready that is due. Returns now. May give the lock back meanwhile, so
 * look at nothing before. */
slu_time pqueue_promote(struct slu_pqueue *q, struct notes *notes);

/* Is nothing left of what a queue in this phase hands out? */
bool pqueue_is_drained(const struct slu_pqueue *q, enum phase phase);

/* A debug line about an item, written by pqueue_unlock. */
void pqueue_note(struct slu_pqueue *q, struct notes *notes, const char *event,
		 uint32_t handle);

/* The same, written at once: not under the lock. */
void pqueue_log_job(struct slu_pqueue *q, const char *event, const char *object_id,
		    const char *correlation_id, const char *label, uint64_t seq,
		    unsigned attempts);

/* What the user sees of an item at the moment now; offset is wall - mono. */
void pqueue_show(const struct slu_pqueue *q, const struct item *it, slu_time now,
		 slu_time offset, struct slu_job_item *out);

#endif
