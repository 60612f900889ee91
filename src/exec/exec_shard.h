/*
 * exec_shard.h - one shard of the executor: a worker thread and its bounded queue.
 *
 *      submit (any thread)                               worker (alone)
 *
 *      spare ──handle──> ring, then fill the slot ────> run it ─┬─ ended ──> spare
 *        ^              └─ under mtx        │                   │
 *        │                                  │ its key waits     └─ failed ─> parking
 *        │                                  └──────────────────────────────> parking
 *        └───────────────────────────────────────────── ended ◄── due ──────────┘
 *
 * `ring` carries handles of accepted tasks from the submitters to the worker, `spare` carries
 * free handles back. Each end of both has one writer at a time: the worker takes and returns
 * without a lock, submitters hold mtx. There are up to queue_size + 1 slots, one of them for
 * the running task; a slot gets its memory when that many tasks wait for the first time.
 *
 *  EXECSHARD-1  tail, the head of spare, closed and the parking change under mtx only; head and
 *              the tail of spare belong to the worker. In the parking, submitters change only
 *              the number of tasks that a leader holds. So the worker may read the rest of the
 *              parking without mtx; other threads need it.
 *  EXECSHARD-2  A task is accepted under mtx while closed is false. The worker ends only when it
 *              has seen closed, an empty ring and an empty parking under mtx. So every accepted
 *              task runs.
 *  EXECSHARD-3  The worker sleeps under mtx, after a last check, with `sleeping` set. A thread
 *              that changes what it waits for does so under mtx, and signals if it is set.
 *  EXECSHARD-4  A submitter that sees head = h sees all tasks that ended before task h was
 *              taken. So if waiting + n is less than the slots made, at least n handles are
 *              free: never used, or visible in spare.
 *  EXECSHARD-5  A submitter takes its places under mtx and fills the slots after it, so that
 *              other submitters do not wait for its cache misses. A slot has the seq of its
 *              place only when it is filled; the worker waits for that.
 */
#ifndef EXEC_EXEC_SHARD_H
#define EXEC_EXEC_SHARD_H

#include "base/clock.h"
#include "base/metrics.h"
#include "exec/parking.h"

#include <stdatomic.h>

/* Shared by all shards of an executor; constant while they run. */
struct exec_shard_shared {
	struct slu_executor_config config; /* with defaults filled in */
	struct slu_backoff backoff;
	struct clock *clock;
	struct metrics metrics;
	const void *executor;     /* the owner of the shards */
	void (*ended)(void *arg); /* the last call of each worker */
	void *ended_arg;
};

/* The rows of the metrics; each shard has a series. */
enum exec_shard_metric {
	EXEC_SHARD_SUBMISSIONS,
	EXEC_SHARD_FULL,
	EXEC_SHARD_RUN_TIME,
	EXEC_SHARD_DEPTH,
	EXEC_SHARD_METRICS
};

extern const struct metric exec_shard_metrics[EXEC_SHARD_METRICS];

struct exec_shard {
	/* Fixed once open. */
	struct exec_shard_shared *shared;
	uint32_t index;
	uint32_t capacity;
	uint32_t mask;   /* of ring and spare */
	uint32_t *ring;  /* handles of accepted tasks */
	uint32_t *spare; /* free handles */
	struct slab slots;
	pthread_t thread;
	bool started; /* thread is valid */

	/* Shared, under mtx. Submitters change these with every task: */
	_Alignas(64) pthread_mutex_t mtx;
	uint64_t head_seen;    /* the last value of head that a submitter read */
	uint64_t spare_head;   /* handles taken from spare so far */
	uint32_t made;         /* slots with memory; their handles are 0 .. made - 1 */
	uint32_t used;         /* of these, used at least once: the lowest handles */
	_Atomic uint64_t tail; /* tasks accepted so far */
	uint64_t full;         /* submits refused */

	/* The same, on cache lines of their own, because they change rarely: */
	_Alignas(64) struct parking parking;
	_Atomic uint32_t parked;  /* parking.tasks, read without mtx */
	_Atomic uint32_t wanting; /* submitters that wait for room since the last signal */
	_Atomic bool closed;      /* no more tasks */
	struct list fired;        /* hooks of parked slots whose tokens have fired */
	_Atomic bool look;        /* fired is not empty; read without mtx */
	bool sleeping;            /* the worker, on `work` */
	pthread_cond_t work;
	pthread_cond_t room; /* submitters wait for a place */

	/* Written by the worker alone. */
	_Alignas(64) _Atomic uint64_t head; /* tasks taken from the ring so far */
	uint64_t spare_tail;                /* handles given back so far */
	_Atomic uint64_t running;           /* seq of the task that runs, or 0 */
	_Atomic uint32_t running_attempts;
	_Atomic uint64_t finished;
	_Atomic uint64_t failed;
	_Atomic uint64_t runs;
	_Atomic uint64_t panics;
	uint64_t tail_seen; /* the last value of tail that the worker read */
	uint32_t current;   /* slot of the present task */
	slu_time now;       /* clock_mono, read once a run */
	slu_time run_begin;
	bool draining;      /* the worker has seen closed */
	bool was_parked;    /* the last task came from the parking */
	uint64_t random;    /* state of the random numbers for jitter */
	struct slu_run run; /* the argument of tasks and reports */
};

/* exec_shard_open makes memory and locks, exec_shard_start the thread. They return SLU_ENOMEM or SLU_EDOWN. */
int exec_shard_open(struct exec_shard *l, struct exec_shard_shared *shared, uint32_t index,
		    struct slu_err *err);
int exec_shard_start(struct exec_shard *l, struct slu_err *err);

/* Refuses further tasks; the worker finishes and ends. Any thread, any number of times. */
void exec_shard_close(struct exec_shard *l);

/* Call it after the thread was joined, or if it was never started. */
void exec_shard_release(struct exec_shard *l);

/* A checked key. */
struct exec_key {
	const char *s; /* with a NUL */
	size_t len;    /* 1 .. SLU_KEY_MAX */
	uint32_t hash; /* FNV-1a */
};

/* The public id of a task: its shard and its number there. */
static inline uint64_t
exec_shard_id(const struct exec_shard *l, uint64_t seq)
{
	return (uint64_t)l->index << 48 | seq;
}

/* Accepts all n tasks of a key, or none. *first: the seq of the first. */
int exec_shard_submit(struct exec_shard *l, const struct exec_key *key,
		      const struct slu_task *tasks, uint32_t n,
		      const struct slu_submit *opts, uint64_t *first, struct slu_err *err);

/* Returns SLU_ENOTFOUND if exec_shard_submit has not given out seq. */
int exec_shard_status(struct exec_shard *l, uint64_t seq, struct slu_task_status *status);

/* Adds the numbers of this shard to stats. */
void exec_shard_stats(struct exec_shard *l, struct slu_executor_stats *stats);

/* Updates the gauges and counters of this shard. */
void exec_shard_collect(struct exec_shard *l);

/* If the calling thread is a worker, its executor; otherwise NULL. */
const void *exec_shard_executor_here(void);

/* The worker's thread function (exec_shard_run.c). */
void *exec_shard_work(void *shard);

#endif
