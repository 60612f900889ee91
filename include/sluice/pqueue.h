/*
 * pqueue.h - a priority and delay queue in memory.
 *
 *      enqueue, delay 0 ────────────────────────> ready       dequeue takes the
 *                                                   ^         lowest (priority,
 *      enqueue, delay > 0 ──> scheduled ────────────┘         due, arrival)
 *                             by due time    when its time
 *                                            has come
 *
 * Jobs have a priority label (high 0, normal 5, low 10 unless configured; the lower
 * value goes first) and may be delayed. A job that is urgent but not yet due never
 * holds up one that is. Dequeue sleeps until there is something to hand out: it
 * wakes on an enqueue, or exactly when the next job falls due.
 *
 * With max_wait set, priorities age: a job never yields to one that became due more
 * than max_wait later, so a flood of urgent jobs cannot starve the rest.
 *
 * All functions are safe from any thread. Nothing calls back while a lock is held,
 * so a handler or callback may call any of them.
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
	const char *default_label;     /* "normal", or the first when there is none */
	uint32_t max_in_memory;        /* jobs held in all; 0: 1,000,000 */
	uint32_t max_scheduled;        /* of those, not yet due; 0: max_in_memory */
	uint32_t warn_depth;           /* log a warning when this many are ready; 0: never */
	uint32_t warn_scheduled;       /* the same for those not yet due */
	slu_time max_wait;             /* ageing; 0: strict priorities */
	const char *metrics_namespace; /* "sluice": sluice_pqueue_queue_depth ... */
	struct slu_log *log;
};

/* What goes in. Strings are copied; data is yours. */
struct slu_job {
	size_t struct_size;         /* SLU_OPTIONS_INIT */
	const char *object_id;      /* what it is about; NULL: none */
	const char *correlation_id; /* to follow it through the logs; NULL: none */
	const char *priority;       /* a label; NULL: the default one */
	slu_time delay;             /* ready this long from now; 0: now */
	void *data;
};

/* What comes out. */
struct slu_job_item {
	char object_id[SLU_OBJECT_ID_MAX + 1];
	char correlation_id[SLU_CORRELATION_MAX + 1];
	const char *priority; /* its label; valid as long as the queue */
	int32_t priority_value;
	slu_time enqueued_at; /* wall clock, ns since 1970; when it was put in */
	slu_time ready_at;    /* wall clock; when it became, or becomes, due */
	slu_time waited;      /* from due to now: how late it is */
	uint64_t seq;         /* arrival, from 1 */
	unsigned attempts;    /* deliveries so far, this one included */
	void *data;
	uint64_t reserved[4]; /* 0 */
};

enum slu_stop_mode {
	SLU_STOP_READY, /* hand out what is ready, leave what is not yet due */
	SLU_STOP_ALL,   /* wait for what is scheduled, too */
	SLU_STOP_NOW    /* hand out nothing more */
};

SLU_API int slu_pqueue_new(struct slu_pqueue **out,
			   const struct slu_pqueue_config *config,
			   struct slu_err *err);

/* Nobody may use the queue any more. The data of jobs still in it is passed to
 * drop (may be NULL), so that it can be freed. Thread of drop: the caller's. */
SLU_API void slu_pqueue_free(struct slu_pqueue *q, void (*drop)(void *data));

/*
 * seq may be NULL.
 *   SLU_EINVAL   unknown label (the text lists the known ones), negative delay, an
 *                id that is too long
 *   SLU_EQFULL   max_in_memory or max_scheduled reached: err has length, capacity
 *   SLU_ECLOSED  the queue was stopped
 */
SLU_API int slu_pqueue_enqueue(struct slu_pqueue *q, const struct slu_job *job,
			       uint64_t *seq, struct slu_err *err);

/* The next job. Waits up to timeout (0: not at all; SLU_NEVER). SLU_ETIMEOUT when
 * there was none in time, SLU_ECLOSED when the queue is stopped and has none left
 * to hand out. */
SLU_API int slu_pqueue_dequeue(struct slu_pqueue *q, slu_time timeout,
			       struct slu_job_item *item);

struct slu_pqueue_stats {
	uint32_t depth; /* ready + scheduled */
	uint32_t ready;
	uint32_t scheduled;
	uint32_t running; /* handed to a worker (worker.h), not settled yet */
	bool shutdown;
	uint64_t reserved[4]; /* 0 */
};

SLU_API void slu_pqueue_snapshot(struct slu_pqueue *q, struct slu_pqueue_stats *stats);

/* Look without taking: up to n items in the order they would come out (the ready
 * ones, then the scheduled ones by due time). Returns how many. Costs a sort of the
 * whole queue; for people and tests. */
SLU_API uint32_t slu_pqueue_peek(struct slu_pqueue *q, struct slu_job_item *items,
				 uint32_t n);

/* Throw away all that is ready or scheduled, passing the data to drop (may be
 * NULL; called on this thread, without a lock held); jobs that run are not touched.
 * Returns how many. */
SLU_API uint32_t slu_pqueue_purge(struct slu_pqueue *q, void (*drop)(void *data));

/*
 * Refuse new jobs and wait until consumers have taken what mode says: with READY what
 * was due at the call, with ALL everything. After timeout (0: SLU_NEVER; SLU_NOWAIT) the queue
 * stops as with SLU_STOP_NOW and SLU_ETIMEOUT is returned, as it is to a caller whose
 * jobs somebody else's stricter stop left behind; what is left stays for
 * slu_pqueue_peek and _purge. Jobs that run are not waited for. Any number of callers;
 * a later call can only hurry: ALL, then READY, then NOW.
 */
SLU_API int slu_pqueue_stop(struct slu_pqueue *q, enum slu_stop_mode mode,
			    slu_time timeout);

/* *text is the queue's metrics as Prometheus text: queue_depth, queue_ready,
 * queue_scheduled, enqueued_total, refused_total, dequeue_latency_seconds.
 * Free it with slu_free. */
SLU_API int slu_pqueue_metrics(struct slu_pqueue *q, char **text);

SLU_END_DECLS

#endif
