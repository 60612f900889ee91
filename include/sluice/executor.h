/*
 * executor.h - run tasks in order per key, in parallel across keys.
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
 * What holds, always:
 *  E1  Tasks of one key run in the order in which submit accepted them, one at a
 *      time, whoever submitted them, through retries, cancels and stop.
 *  E2  An accepted task gets exactly one final report (its `done`), and nothing
 *      of it runs after that. Accepted == finished once stop has returned.
 *  E3  A task that fails waits for its retry without holding up its shard: only
 *      its own key waits with it.
 *  E4  At most queue_size tasks wait in a shard, retries included; one more when a
 *      task fails while that many wait. For a key that waits for a retry, submit
 *      gives no more places than it leaves free, so a failing key cannot take a
 *      shard for itself.
 *  E5  A place in the queue gets its memory when it is used for the first time, and more
 *      when it first meets a key over 47 bytes. Once that has happened a submit allocates
 *      nothing. Idle workers sleep.
 *
 * All functions are safe from any thread unless they say otherwise. A task may
 * submit; it may not await or stop its own executor (SLU_EINVAL), as it would wait
 * for itself. When a task submits to a full shard that only it could empty, the
 * submit fails with SLU_EQFULL after the timeout.
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

/* What a task may know while it runs, and its reports afterwards. */
struct slu_run {
	const char *key; /* terminated */
	uint32_t shard;
	uint64_t id;               /* what submit returned */
	unsigned attempt;          /* 1 for the first run; 0 in a report: it never ran */
	struct slu_cancel *cancel; /* what submit was given, or NULL */
	struct slu_err err;        /* for a sentence: return slu_fail(&run->err, ...) */
};

/*
 * One attempt. 0: done. SLU_EPERMANENT: failed for good. Anything else: failed,
 * try again later if attempts are left; see panic.h for what a crash does.
 * Thread: the worker of the key's shard. Tasks of one shard never run at once, tasks of
 * different shards do.
 */
typedef int slu_task_fn(struct slu_run *run, void *arg);

/* The final report: rc is 0, what the last attempt returned, or why there was no
 * further one (SLU_ECANCELED, SLU_ETIMEOUT). Called once per accepted task, before the
 * next task of the key: the place to free arg. Thread: the worker of the key's shard, as
 * its task; calls of different shards overlap. */
typedef void slu_task_done_fn(const struct slu_run *run, void *arg, int rc);

/* For final failures of any task, after its `done`. Thread: the worker of the task's shard.
 * Two may run at once, one in each shard: guard what they share. */
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
	slu_time base_backoff;         /* 100 ms; SQ_BASE_BACKOFF: wait after the first failure */
	slu_time max_interval;         /* 20 s; SQ_MAX_INTERVAL: no wait is longer */
	enum slu_backoff_kind backoff; /* exponential, no jitter */
	enum slu_jitter jitter;
	slu_backoff_fn *backoff_fn; /* for SLU_BACKOFF_FUNCTION */
	void *backoff_arg;
	slu_error_fn *on_error; /* may be NULL; several workers may call it at once */
	void *on_error_arg;
	const char *metrics_namespace; /* "sluice": sluice_shardqueue_queue_depth ... */
	struct slu_log *log;           /* NULL: warnings to stderr */
};

/* Fill config (which says its size) from the SQ_* variables that are set; what is not set
 * becomes 0, the default. SLU_EINVAL names the variable, its value and what would be right. */
SLU_API int slu_executor_config_env(struct slu_executor_config *config,
				    struct slu_err *err);

/* Zero values take the defaults above; config NULL is all zeros. The config is
 * copied. The workers run when this returns. */
SLU_API int slu_executor_start(struct slu_executor **out,
			       const struct slu_executor_config *config,
			       struct slu_err *err);

/* The settings in force, defaults filled in. config says its size, as everywhere. */
SLU_API int slu_executor_config_get(const struct slu_executor *ex,
				    struct slu_executor_config *config, struct slu_err *err);

/* The shard a key belongs to: 32-bit FNV-1a modulo shards, on every machine. Of NULL it is
 * SLU_ALL_SHARDS. */
SLU_API uint32_t slu_executor_shard_of(const struct slu_executor *ex, const char *key);

struct slu_submit {
	size_t struct_size;        /* SLU_OPTIONS_INIT */
	slu_time timeout;          /* wait for room; 0: enqueue_timeout; SLU_NOWAIT; SLU_NEVER */
	slu_time expire;           /* final report SLU_ETIMEOUT when the task has not ended (or
				    * cannot be retried) this long after submit; 0: never */
	struct slu_cancel *cancel; /* may be NULL */
};

/*
 * Queue a task. opts, id and err may be NULL. *id rises with every task accepted in
 * a shard, so for one key it tells the order.
 *
 *   SLU_EQFULL     still no room after the timeout: err has shard, length, capacity
 *   SLU_ECLOSED    stop has begun
 *   SLU_ECANCELED  the token fired before there was room
 *   SLU_EINVAL     no key, key too long, no function
 */
SLU_API int slu_executor_submit(struct slu_executor *ex, const char *key,
				const struct slu_task *task,
				const struct slu_submit *opts, uint64_t *id,
				struct slu_err *err);

/* Queue n tasks of one key, one right after the other, all or none. Task i has the
 * id *first_id + i. SLU_EINVAL when n is 0 or more than queue_size. */
SLU_API int slu_executor_submit_batch(struct slu_executor *ex, const char *key,
				      const struct slu_task *tasks, uint32_t n,
				      const struct slu_submit *opts, uint64_t *first_id,
				      struct slu_err *err);

/* Return when everything that was accepted for the key before this call has had its
 * final report. timeout 0 is SLU_NEVER here; SLU_ETIMEOUT when it ran out. Takes a
 * place in the queue like a task, and fails like a submit when it gets none. */
SLU_API int slu_executor_await(struct slu_executor *ex, const char *key,
			       slu_time timeout, struct slu_err *err);

enum slu_task_state {
	SLU_TASK_QUEUED, /* waits for its turn */
	SLU_TASK_HELD,   /* waits behind a task of its key that waits for a retry */
	SLU_TASK_RUNNING,
	SLU_TASK_RETRYING, /* failed, waits for its retry */
	SLU_TASK_FINISHED  /* had its final report; what it was, `done` was told */
};

struct slu_task_status {
	enum slu_task_state state;
	unsigned attempts;    /* runs begun so far; 0 once finished */
	uint32_t position;    /* QUEUED: tasks before it in its shard; HELD: in its key */
	slu_time retry_in;    /* RETRYING: until the next run */
	uint64_t reserved[2]; /* 0 */
};

/* SLU_ENOTFOUND when no task has had this id yet. */
SLU_API int slu_executor_status(struct slu_executor *ex, uint64_t id,
				struct slu_task_status *status);

struct slu_executor_stats {
	uint32_t shards;
	uint32_t queued;    /* wait for their turn */
	uint32_t waiting;   /* wait for a retry, or behind such a task */
	uint32_t running;   /* tasks running now */
	uint64_t submitted; /* accepted so far */
	uint64_t finished;  /* final reports so far, failed ones included */
	uint64_t failed;
	uint64_t runs; /* attempts, retries included */
	uint64_t full; /* submits refused with SLU_EQFULL */
	uint64_t panics;
	size_t buffer_bytes; /* memory of the queues */
	bool stopping;
	uint64_t reserved[4]; /* 0 */
};

/* Of one shard, or of SLU_ALL_SHARDS together. SLU_EINVAL for a wrong number. */
SLU_API int slu_executor_snapshot(struct slu_executor *ex, uint32_t shard,
				  struct slu_executor_stats *stats);

/* *text is the four metrics in Prometheus text form; free it with slu_free. */
SLU_API int slu_executor_metrics(struct slu_executor *ex, char **text);

/*
 * Refuse new tasks, let the running ones end, run all that are queued (one attempt
 * each; what waits for a retry is reported with its last error), end the workers.
 * Every caller returns when that is done, or after timeout (0: SLU_NEVER; SLU_NOWAIT) with
 * SLU_ETIMEOUT; the drain then goes on and stop can be called again. Calling it
 * again after the end is fine and does nothing.
 */
SLU_API int slu_executor_stop(struct slu_executor *ex, slu_time timeout);

/* Stop, then free. No other call may be under way or follow. NULL is fine. */
SLU_API int slu_executor_close(struct slu_executor *ex);

SLU_END_DECLS

#endif
