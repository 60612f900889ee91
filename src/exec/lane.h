/*
 * lane.h - one shard of the executor: a worker thread and its bounded queue.
 *
 *      submit (any thread)                               worker (alone)
 *
 *      spare ──handle──> ring, then fill the slot ────> run it ─┬─ ended ──> spare
 *        ^              └─ under mtx        │                   │
 *        │                                  │ its key waits     └─ failed ─> parking
 *        │                                  └──────────────────────────────> parking
 *        └───────────────────────────────────────────── ended ◄── due ──────────┘
 *
 * `ring` carries handles of accepted tasks from the submitters to the worker, `spare`
 * carries free handles back. Each has one writer at a time per end, so that the worker
 * takes and returns without a lock; submitters take turns under mtx. There are up to
 * queue_size + 1 slots, one of them for the task that runs; they are made when so many
 * tasks wait for the first time.
 *
 *  L1  tail, the spare's head, closed and the parking change under mtx only; head and
 *      the spare's tail are the worker's. Of the parking, submitters change only what
 *      a leader holds. So the worker may read the rest of it without mtx, everybody
 *      else needs it.
 *  L2  A task is accepted under mtx while closed is false, and the worker leaves only
 *      when it has seen closed, and ring and parking empty, under mtx: what was
 *      accepted is run.
 *  L3  The worker sleeps under mtx, after a last look, with `sleeping` set; whoever
 *      changes what it waits for does so under mtx and signals when it is set.
 *  L4  A submitter that sees head = h sees all that ended before task h was taken; so
 *      when waiting + n is less than the slots that were made, at least n handles are
 *      free: never used, or spare and there to be seen.
 *  L5  A submitter takes its places under mtx and fills their slots after it: who
 *      waits for the lock does not wait for cache lines that the worker had. The slot
 *      of a place has the place's seq only when it is filled; the worker waits for it.
 */
#ifndef EXEC_LANE_H
#define EXEC_LANE_H

#include "base/clock.h"
#include "base/metrics.h"
#include "exec/parking.h"

#include <stdatomic.h>

/* What all lanes of an executor share; nobody changes it while they run. */
struct lane_shared {
	struct slu_executor_config config; /* defaults filled in */
	struct slu_backoff backoff;
	struct clock *clock;
	struct metrics metrics;
	const void *executor;     /* whose lanes these are */
	void (*ended)(void *arg); /* called by each worker as its last act */
	void *ended_arg;
};

/* The rows of the metrics, a series per lane. */
enum lane_metric {
	LANE_SUBMISSIONS,
	LANE_FULL,
	LANE_RUN_TIME,
	LANE_DEPTH,
	LANE_METRICS
};

extern const struct metric lane_metrics[LANE_METRICS];

struct lane {
	/* Fixed once open. */
	struct lane_shared *shared;
	uint32_t index;
	uint32_t capacity;
	uint32_t mask;   /* of ring and spare */
	uint32_t *ring;  /* handles of accepted tasks */
	uint32_t *spare; /* free handles */
	struct slab slots;
	pthread_t thread;
	bool started; /* thread is valid */

	/* Shared, under mtx: what submitters change with every task ... */
	_Alignas(64) pthread_mutex_t mtx;
	uint64_t head_seen;    /* head when a submitter last looked */
	uint64_t spare_head;   /* handles taken from spare so far */
	uint32_t made;         /* slots; their handles are 0 .. made - 1 */
	uint32_t used;         /* of them, used at least once: the lowest handles */
	_Atomic uint64_t tail; /* tasks accepted so far */
	uint64_t full;         /* submits refused */

	/* ... and what changes rarely, on lines that the worker may keep. */
	_Alignas(64) struct parking parking;
	_Atomic uint32_t parked;  /* parking.tasks, to be read without mtx */
	_Atomic uint32_t wanting; /* submitters waiting for room since the last call */
	_Atomic bool closed;      /* no more tasks */
	struct list fired;        /* parked slots whose tokens have, by their hooks */
	_Atomic bool look;        /* there are some; to be read without mtx */
	bool sleeping;            /* the worker, on `work` */
	pthread_cond_t work;
	pthread_cond_t room; /* submitters wait here for a place */

	/* Written by the worker alone. */
	_Alignas(64) _Atomic uint64_t head; /* tasks taken from the ring so far */
	uint64_t spare_tail;                /* handles given back so far */
	_Atomic uint64_t running;           /* seq of the task that runs, or 0 */
	_Atomic uint32_t running_attempts;
	_Atomic uint64_t finished;
	_Atomic uint64_t failed;
	_Atomic uint64_t runs;
	_Atomic uint64_t panics;
	uint64_t tail_seen; /* tail when the worker last looked */
	uint32_t current;   /* the task that is worked on */
	slu_time now;       /* mono, read once a run */
	slu_time run_begin;
	bool draining;      /* has seen closed */
	bool was_parked;    /* the last task came from the parking */
	uint64_t random;    /* state of the jitter's dice */
	struct slu_run run; /* what tasks and reports are shown */
};

/* Memory and locks, then the thread. 0, SLU_ENOMEM or SLU_EDOWN (no thread). */
int lane_open(struct lane *l, struct lane_shared *shared, uint32_t index,
	      struct slu_err *err);
int lane_start(struct lane *l, struct slu_err *err);

/* No more tasks; the worker drains and ends. Any thread, any number of times. */
void lane_close(struct lane *l);

/* After the thread has been joined, or was never started. */
void lane_release(struct lane *l);

/* A key that has been looked at once. */
struct lane_key {
	const char *s; /* terminated */
	size_t len;    /* 1 .. SLU_KEY_MAX */
	uint32_t hash; /* FNV-1a */
};

/* What a task is called outside: its shard and its number there. */
static inline uint64_t
lane_id(const struct lane *l, uint64_t seq)
{
	return (uint64_t)l->index << 48 | seq;
}

/* Accept n tasks of a key, or none. *first is the seq of the first. */
int lane_submit(struct lane *l, const struct lane_key *key,
		const struct slu_task *tasks, uint32_t n,
		const struct slu_submit *opts, uint64_t *first, struct slu_err *err);

/* seq was given out by lane_submit, or SLU_ENOTFOUND. */
int lane_status(struct lane *l, uint64_t seq, struct slu_task_status *status);

/* Add this lane's numbers to stats. */
void lane_stats(struct lane *l, struct slu_executor_stats *stats);

/* Bring the lane's gauges and counters up to date. */
void lane_collect(struct lane *l);

/* The executor whose worker the calling thread is, or NULL. */
const void *lane_executor_here(void);

/* In lane_run.c: the worker's thread function. */
void *lane_work(void *lane);

#endif
