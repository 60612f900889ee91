/*
 * pqueue_lock.h - the state of a priority queue and its lock, for pqueue*.c alone.
 *
 * Rules that hold whenever no thread has the lock:
 *
 *  PQUEUE-1  If a job is ready and consumers sleep, one of them has a wake-up on its way.
 *            pqueue_unlock provides it, for every thread that releases the lock, also for a
 *            consumer whose timeout has ended; so no wake-up is lost.
 *  PQUEUE-2  If a job is scheduled and consumers sleep, one of them is the sentry: it sleeps
 *            only until the next due, the others until their own timeout. A new earliest
 *            job dismisses the sentry, and pqueue_unlock wakes another. So a due job wakes
 *            one thread, not all.
 *  PQUEUE-3  No job is delivered while a due job is still in `timed`.
 *  PQUEUE-4  No log line and no callback under the lock. Log lines wait in struct notes; if
 *            that is full, the thread releases the lock for a moment.
 *
 * Times are stored on the monotonic clock, and converted to the present wall clock for the
 * user.
 */
#ifndef EXEC_PQUEUE_LOCK_H
#define EXEC_PQUEUE_LOCK_H

#include "base/metrics.h"
#include "core/queue/labels.h"
#include "core/queue/queue.h"
#include "exec/pqueue.h"

#include <string.h>

enum {
	PQUEUE_NOTES = 8
};

/* A queue goes through these in order. */
enum phase {
	OPEN,
	DRAIN_ALL,
	DRAIN_READY, /* from here on, scheduled jobs do not become ready */
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

/* A job, in one cache line: with millions of jobs that is the cost of a dequeue. */
struct pqueue_item {
	struct queue_item q; /* first member; pos links purged and peeked items */
	slu_time enqueued;
	void *data;
	char *strings; /* object id and correlation id, each with its NUL; or NULL */
	uint32_t attempts;
	uint32_t label; /* index in labels */
};

_Static_assert(sizeof(struct pqueue_item) == 64, "an item is a cache line");

/* A depth with a warning. */
struct pqueue_level {
	uint32_t warn_at; /* 0: never */
	bool above;       /* the depth is at or above it */
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
	pthread_cond_t work;    /* for consumers */
	pthread_cond_t drained; /* for threads that stop the queue */

	/* Shared, under mtx. */
	struct slab items;
	struct queue queue;
	uint64_t last_seq;
	enum phase phase;
	uint64_t sentry;      /* PQUEUE-2: the number of its sleep, or 0 */
	uint64_t last_sleep;  /* every sleep has a number */
	uint32_t sleepers;    /* consumers that sleep */
	uint32_t drainers;    /* of these, consumers that leave when the queue is empty */
	uint32_t stoppers;    /* threads on `drained` */
	slu_time wall_offset; /* wall - mono, at wall_read */
	slu_time wall_read;   /* mono */
	struct pqueue_level ready_level;
	struct pqueue_level scheduled_level;
	uint64_t enqueued;
	uint64_t refused;
};

/* A debug line about an item that may be gone when it is written. */
struct note {
	const char *event;
	char ids[SLU_OBJECT_ID_MAX + 1 + SLU_CORRELATION_MAX + 1];
	const char *label;
	uint64_t seq;
	unsigned attempts;
};

/* Log lines that wait for the release of the lock. */
struct notes {
	bool debug;         /* the log writes debug lines */
	uint32_t ready;     /* ready jobs, if they reached their level; or 0 */
	uint32_t scheduled; /* scheduled jobs, the same */
	unsigned n;         /* of list */
	struct note list[PQUEUE_NOTES];
};

static inline struct pqueue_item *
pqueue_item(const struct slu_pqueue *q, uint32_t handle)
{
	return slab_at(&q->items, handle);
}

/* The string after this one. */
static inline const char *
pqueue_second(const char *strings)
{
	return strings + strlen(strings) + 1;
}

void pqueue_lock(struct slu_pqueue *q, struct notes *notes);

/* Provides PQUEUE-1 and PQUEUE-2, releases the lock, then writes the notes. */
void pqueue_unlock(struct slu_pqueue *q, struct notes *notes);

/* ---- With the lock held ---- */

slu_time pqueue_now(struct slu_pqueue *q);

/* PQUEUE-3: makes all due jobs ready. Returns now. May release the lock meanwhile: do not rely on
 * what you read before. */
slu_time pqueue_promote(struct slu_pqueue *q, struct notes *notes);

/* Returns whether a queue in this phase has no more jobs to deliver. */
bool pqueue_is_drained(const struct slu_pqueue *q, enum phase phase);

/* Adds a debug line about an item to notes. */
void pqueue_note(struct slu_pqueue *q, struct notes *notes, const char *event,
		 uint32_t handle);

/* ---- Without the lock ---- */

/* Writes such a debug line. */
void pqueue_log_job(struct slu_pqueue *q, const char *event, const char *object_id,
		    const char *correlation_id, const char *label, uint64_t seq,
		    unsigned attempts);

/* Fills in the public form of an item at the moment now. offset: wall - mono. */
void pqueue_show(const struct slu_pqueue *q, const struct pqueue_item *it, slu_time now,
		 slu_time offset, struct slu_job_item *out);

#endif
