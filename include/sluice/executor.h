/*
 * executor.h - runs tasks in order within a key, in parallel across keys.
 *
 *   submit("a", t1) ─┐            ┌ shard 0 ─ worker ─> a: t1 t2 t4   one at a time,
 *   submit("a", t2) ─┤  FNV-1a    │                     d: t7         in order
 *   submit("b", t3) ─┼─ of key  ──┤
 *   submit("a", t4) ─┤  % shards  └ shard 1 ─ worker ─> b: t3 t5
 *   submit("b", t5) ─┘                                  c: t6
 *
 *         static int greet(struct slu_run *run, void *arg)
 *         {
 *                 printf("%s: %s\n", run->key, (const char *)arg);
 *                 return 0;
 *         }
 *
 *         struct slu_executor *ex;
 *         struct slu_task task = { SLU_OPTIONS_INIT(struct slu_task), .run = greet, .arg = (void *)"hello" };
 *
 *         slu_executor_start(&ex, NULL, NULL);
 *         slu_executor_submit(ex, "alice", &task, NULL, NULL, NULL);
 *         slu_executor_close(ex);
 *
 * Rules:
 *  EXECUTOR-1  Tasks of one key run in the order in which submit accepted them, one at a time,
 *              also through retries, cancels and stop.
 *  EXECUTOR-2  An accepted task gets exactly one final report (its `done`), and does not run
 *              after it. Accepted == finished when stop has returned.
 *  EXECUTOR-3  A failed task waits for its retry without blocking its shard: only its own key
 *              waits.
 *  EXECUTOR-4  At most queue_size tasks wait in a shard, retries included; one more if a task
 *              fails while so many wait. A key that waits for a retry gets at most as many
 *              places as remain free, so a failing key cannot fill a shard.
 *  EXECUTOR-5  A place in the queue allocates when it is used for the first time, and again for
 *              its first key over 47 bytes. After that a submit allocates nothing. Idle workers
 *              sleep.
 *
 * Any thread may call these functions unless they say otherwise. A task may submit; it may
 * not await or stop its own executor (SLU_EINVAL): it would wait for itself. If a task
 * submits to its own full shard, the submit fails with SLU_EQFULL after the timeout.
 */
#ifndef SLUICE_EXECUTOR_H
#define SLUICE_EXECUTOR_H

#include <sluice/cancel.h>
#include <sluice/err.h>
#include <sluice/log.h>
#include <sluice/panic.h>
#include <sluice/retry.h>

SLU_BEGIN_DECLS

#define SLU_KEY_MAX    256 /* bytes of a key; the shortest has one */
#define SLU_SHARDS_MAX 65535
#define SLU_ALL_SHARDS UINT32_MAX

struct slu_executor;

/* The run of a task, for the task and its reports. */
struct slu_run {
	const char *key; /* with a NUL */
	uint32_t shard;
	uint64_t id;               /* the id of submit */
	unsigned attempt;          /* 1 for the first run; 0 in a report of a task that never ran */
	struct slu_cancel *cancel; /* the token of submit, or NULL */
	struct slu_err err;        /* for a text: return slu_fail(&run->err, ...) */
};

/*
 * One attempt. Returns 0 if the task is done, SLU_EPERMANENT if it has failed and must not run
 * again, any other value if it has failed and may run again; panic.h has crashes. Thread: the
 * worker of the key's shard. Tasks of one shard never run at once, tasks of different shards do.
 */
typedef int slu_task_fn(struct slu_run *run, void *arg);

/* The final report: rc is 0, the result of the last attempt, or why there was none
 * (SLU_ECANCELED, SLU_ETIMEOUT). Called once for each accepted task, before the next task of the
 * key: free arg here. Thread: the worker of the key's shard; calls of different shards overlap. */
typedef void slu_task_done_fn(const struct slu_run *run, void *arg, int rc);

/* Gets the final failure of any task, after its `done`. Thread: the worker of the task's shard;
 * calls of different shards overlap: guard what they share. */
typedef void slu_error_fn(const struct slu_run *run, int rc, void *arg);

struct slu_task {
	size_t struct_size; /* SLU_OPTIONS_INIT */
	slu_task_fn *run;
	void *arg;
	slu_task_done_fn *done; /* may be NULL */
};

struct slu_executor_config {
	size_t struct_size;            /* SLU_OPTIONS_INIT */
	uint32_t shards;               /* 4; SQ_SHARDS: workers, each with its own queue */
	uint32_t queue_size;           /* 128; SQ_QUEUE_SIZE: tasks that may wait in a shard */
	slu_time enqueue_timeout;      /* 100 ms; SQ_ENQUEUE_TIMEOUT: submit waits for room */
	uint32_t max_attempts;         /* 8; SQ_MAX_ATTEMPTS: runs of a failing task */
	slu_time base_backoff;         /* 100 ms; SQ_BASE_BACKOFF: delay after the first failure */
	slu_time max_interval;         /* 20 s; SQ_MAX_INTERVAL: the longest delay */
	enum slu_backoff_kind backoff; /* exponential */
	enum slu_jitter jitter;        /* none */
	slu_backoff_fn *backoff_fn;    /* for SLU_BACKOFF_FUNCTION */
	void *backoff_arg;
	slu_error_fn *on_error; /* may be NULL; workers may call it at once */
	void *on_error_arg;
	const char *metrics_namespace; /* "sluice": sluice_shardqueue_queue_depth ... */
	struct slu_log *log;           /* NULL: warnings to stderr */
};

/* Fills config, whose struct_size is set, from the SQ_* environment variables; others become 0, the
 * default. Returns SLU_EINVAL with the variable, its value and the expected form. */
SLU_API int slu_executor_config_env(struct slu_executor_config *config,
				    struct slu_err *err);

/* Starts the workers. Zeros mean the defaults above; config NULL is all zeros. The config is
 * copied. */
SLU_API int slu_executor_start(struct slu_executor **out,
			       const struct slu_executor_config *config,
			       struct slu_err *err);

/* Fills config, whose struct_size is set, with the settings in force. */
SLU_API int slu_executor_config_get(const struct slu_executor *ex,
				    struct slu_executor_config *config, struct slu_err *err);

/* The shard of a key: 32-bit FNV-1a modulo shards, on every machine. SLU_ALL_SHARDS if a pointer is
 * NULL. */
SLU_API uint32_t slu_executor_shard_of(const struct slu_executor *ex, const char *key);

struct slu_submit {
	size_t struct_size;        /* SLU_OPTIONS_INIT */
	slu_time timeout;          /* wait for room; 0: enqueue_timeout; SLU_NOWAIT; SLU_NEVER */
	slu_time expire;           /* the final report is SLU_ETIMEOUT if the task has not ended (or
				    * cannot be retried) this long after submit; 0: never */
	struct slu_cancel *cancel; /* may be NULL */
};

/*
 * Queues a task. opts, id and err may be NULL. *id rises with every task that a shard accepts, so
 * ids of one key show the order. Returns
 *
 *   SLU_EQFULL     if there is no room after the timeout: err has shard, length, capacity
 *   SLU_ECLOSED    if stop has begun
 *   SLU_ECANCELED  if the token fired before there was room
 *   SLU_EINVAL     without a key or function, or if the key is too long
 */
SLU_API int slu_executor_submit(struct slu_executor *ex, const char *key,
				const struct slu_task *task,
				const struct slu_submit *opts, uint64_t *id,
				struct slu_err *err);

/* Queues n tasks of one key, one after the other, all or none. Task i has the id *first_id + i.
 * Returns SLU_EINVAL if n is 0 or more than queue_size. */
SLU_API int slu_executor_submit_batch(struct slu_executor *ex, const char *key,
				      const struct slu_task *tasks, uint32_t n,
				      const struct slu_submit *opts, uint64_t *first_id,
				      struct slu_err *err);

/* Waits until all tasks that were accepted for the key before this call have had their final
 * report. timeout 0 is SLU_NEVER. Returns SLU_ETIMEOUT after the timeout. Takes a place in the
 * queue like a task, and fails like a submit if the queue is full. */
SLU_API int slu_executor_await(struct slu_executor *ex, const char *key,
			       slu_time timeout, struct slu_err *err);

enum slu_task_state {
	SLU_TASK_QUEUED, /* waits for its turn */
	SLU_TASK_HELD,   /* waits behind a task of its key that waits for a retry */
	SLU_TASK_RUNNING,
	SLU_TASK_RETRYING, /* failed, waits for its retry */
	SLU_TASK_FINISHED  /* has had its final report */
};

struct slu_task_status {
	enum slu_task_state state;
	unsigned attempts;    /* runs begun so far; 0 once finished */
	uint32_t position;    /* QUEUED: tasks before it in its shard; HELD: in its key */
	slu_time retry_in;    /* RETRYING: until the next run */
	uint64_t reserved[2]; /* 0 */
};

/* Returns SLU_ENOTFOUND if no task has had this id. */
SLU_API int slu_executor_status(struct slu_executor *ex, uint64_t id,
				struct slu_task_status *status);

struct slu_executor_stats {
	uint32_t shards;
	uint32_t queued;    /* tasks that wait for their turn */
	uint32_t waiting;   /* tasks that wait for a retry, or behind one that does */
	uint32_t running;   /* tasks that run */
	uint64_t submitted; /* tasks accepted so far */
	uint64_t finished;  /* final reports so far, also of failed tasks */
	uint64_t failed;    /* of these, failures */
	uint64_t runs;      /* attempts, with retries */
	uint64_t full;      /* submits refused with SLU_EQFULL */
	uint64_t panics;
	size_t buffer_bytes; /* memory of the queues */
	bool stopping;
	uint64_t reserved[4]; /* 0 */
};

/* Of one shard, or of SLU_ALL_SHARDS together. Returns SLU_EINVAL if there is no such shard. */
SLU_API int slu_executor_snapshot(struct slu_executor *ex, uint32_t shard,
				  struct slu_executor_stats *stats);

/* *text: four metrics as Prometheus text. Free it with slu_free. */
SLU_API int slu_executor_metrics(struct slu_executor *ex, char **text);

/*
 * Refuses new tasks, lets running tasks end, runs queued tasks once (a task that waits for a retry
 * is reported with its last error), and ends the workers. Every caller returns when that is done,
 * or with SLU_ETIMEOUT after timeout (0: SLU_NEVER; SLU_NOWAIT): then the drain goes on, and stop
 * can be called again. After the end a call does nothing.
 */
SLU_API int slu_executor_stop(struct slu_executor *ex, slu_time timeout);

/* Stops and frees. No other call may be under way or follow. NULL is fine. */
SLU_API int slu_executor_close(struct slu_executor *ex);

SLU_END_DECLS

#endif
