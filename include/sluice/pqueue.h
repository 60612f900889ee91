/*
 * pqueue.h - a priority and delay queue in memory.
 *
 *      enqueue, delay 0 ────────────────────────> ready       dequeue takes the
 *                                                   ^         lowest (priority,
 *      enqueue, delay > 0 ──> scheduled ────────────┘         due, arrival)
 *                             by due time    when its time
 *                                            has come
 *
 * A job has a priority label (by default high 0, normal 5, low 10; the lower value goes
 * first) and may be delayed. An urgent job that is not due never blocks one that is. Dequeue
 * sleeps until there is a job: it wakes on an enqueue, or when the next job falls due.
 *
 * With max_wait, priorities age: a job never waits for one that became due more than
 * max_wait later, so a flood of urgent jobs cannot starve the rest.
 *
 * Any thread may call these functions. No callback runs under a lock, so a handler or
 * callback may call any of them.
 */
#ifndef SLUICE_PQUEUE_H
#define SLUICE_PQUEUE_H

#include <sluice/err.h>
#include <sluice/log.h>

SLU_BEGIN_DECLS

#define SLU_LABEL_MAX       32  /* bytes of a priority label */
#define SLU_OBJECT_ID_MAX   64  /* bytes of an object id */
#define SLU_CORRELATION_MAX 128 /* bytes of a correlation id, printable ASCII */

struct slu_pqueue;

struct slu_priority {
	const char *label;
	int32_t value; /* lower goes first */
};

struct slu_pqueue_config {
	size_t struct_size;                    /* SLU_OPTIONS_INIT */
	const struct slu_priority *priorities; /* NULL: high 0, normal 5, low 10 */
	uint32_t n_priorities;
	const char *default_label;     /* NULL: "normal", or the first if there is no "normal" */
	uint32_t max_in_memory;        /* jobs in all; 0: 1,000,000 */
	uint32_t max_scheduled;        /* of these, jobs that are not due; 0: max_in_memory */
	uint32_t warn_depth;           /* log a warning at so many ready jobs; 0: never */
	uint32_t warn_scheduled;       /* the same for jobs that are not due */
	slu_time max_wait;             /* ageing; 0: strict priorities */
	const char *metrics_namespace; /* "sluice": sluice_pqueue_queue_depth ... */
	struct slu_log *log;
};

/* A job to enqueue. Strings are copied; data is not. */
struct slu_job {
	size_t struct_size;         /* SLU_OPTIONS_INIT */
	const char *object_id;      /* the subject of the job; NULL: none */
	const char *correlation_id; /* for logs; NULL: none */
	const char *priority;       /* a label; NULL: default_label */
	slu_time delay;             /* until it is ready; 0: none */
	void *data;
};

/* A dequeued job. */
struct slu_job_item {
	char object_id[SLU_OBJECT_ID_MAX + 1];
	char correlation_id[SLU_CORRELATION_MAX + 1];
	const char *priority; /* its label; valid as long as the queue */
	int32_t priority_value;
	slu_time enqueued_at; /* wall clock, ns since 1970 */
	slu_time ready_at;    /* wall clock; the due time */
	slu_time waited;      /* from the due time to now */
	uint64_t seq;         /* order of arrival, from 1 */
	unsigned attempts;    /* deliveries so far, with this one */
	void *data;
	uint64_t reserved[4]; /* 0 */
};

enum slu_stop_mode {
	SLU_STOP_READY, /* deliver ready jobs, leave scheduled ones */
	SLU_STOP_ALL,   /* deliver scheduled jobs, too */
	SLU_STOP_NOW    /* deliver no more jobs */
};

SLU_API int slu_pqueue_new(struct slu_pqueue **out,
			   const struct slu_pqueue_config *config,
			   struct slu_err *err);

/* No other call may be under way or follow. drop, if it is not NULL, gets the data of the jobs in
 * the queue, to free it. Thread of drop: the caller's. */
SLU_API void slu_pqueue_free(struct slu_pqueue *q, void (*drop)(void *data));

/*
 * seq may be NULL. Returns
 *   SLU_EINVAL   if the label is unknown (the text lists the known ones), the delay is negative, or
 *                an id is too long
 *   SLU_EQFULL   at max_in_memory or max_scheduled: err has length, capacity
 *   SLU_ECLOSED  if the queue is stopped
 */
SLU_API int slu_pqueue_enqueue(struct slu_pqueue *q, const struct slu_job *job,
			       uint64_t *seq, struct slu_err *err);

/* Takes the next job. Waits up to timeout (0: not at all; SLU_NEVER). Returns SLU_ETIMEOUT if there
 * was none in time, SLU_ECLOSED if the queue is stopped and has no more jobs to deliver. */
SLU_API int slu_pqueue_dequeue(struct slu_pqueue *q, slu_time timeout,
			       struct slu_job_item *item);

struct slu_pqueue_stats {
	uint32_t depth; /* ready + scheduled */
	uint32_t ready;
	uint32_t scheduled;
	uint32_t running; /* taken by a worker (worker.h) and not settled */
	bool shutdown;
	uint64_t reserved[4]; /* 0 */
};

SLU_API void slu_pqueue_snapshot(struct slu_pqueue *q, struct slu_pqueue_stats *stats);

/* Copies up to n jobs without taking them, in the order of delivery: ready ones, then scheduled ones
 * by due time. Returns their number. Sorts the whole queue: for people and tests. */
SLU_API uint32_t slu_pqueue_peek(struct slu_pqueue *q, struct slu_job_item *items,
				 uint32_t n);

/* Removes all ready and scheduled jobs. Running jobs stay. drop, if it is not NULL, gets their data,
 * on this thread, without a lock. Returns their number. */
SLU_API uint32_t slu_pqueue_purge(struct slu_pqueue *q, void (*drop)(void *data));

/*
 * Refuses new jobs, and waits until consumers have taken the jobs of mode: with SLU_STOP_READY those
 * that were due at the call, with SLU_STOP_ALL all. After timeout (0: SLU_NEVER; SLU_NOWAIT) the
 * queue stops as with SLU_STOP_NOW, and the call returns SLU_ETIMEOUT; so does the call of a thread
 * whose jobs a stricter stop of another thread left. The remaining jobs stay for slu_pqueue_peek
 * and slu_pqueue_purge. It does not wait for running jobs. Any number of callers; a later call can
 * only make the stop faster: ALL, then READY, then NOW.
 */
SLU_API int slu_pqueue_stop(struct slu_pqueue *q, enum slu_stop_mode mode,
			    slu_time timeout);

/* *text: the metrics as Prometheus text: queue_depth, queue_ready, queue_scheduled,
 * enqueued_total, refused_total, dequeue_latency_seconds. Free it with slu_free. */
SLU_API int slu_pqueue_metrics(struct slu_pqueue *q, char **text);

SLU_END_DECLS

#endif
