/*
 * executor.c - the public executor over N shards. exec_shard.c has the queue of one shard, exec_shard_run.c
 * its worker, parking.c the keys that wait for a retry.
 */
#include "exec/executor.h"

#include "base/forked.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/need.h"
#include "base/sized.h"
#include "exec/exec_shard.h"

#include <stdio.h>
#include <string.h>

struct slu_executor {
	uint32_t born; /* forked.h */
	struct exec_shard_shared shared;
	char metrics_namespace[48]; /* the config's, copied */
	struct exec_shard *shards;
	uint32_t n_shards; /* opened */

	pthread_mutex_t mtx;
	pthread_cond_t ended;
	uint32_t alive; /* shared, under mtx, as the rest: workers */
	bool stopping;
	bool joined;
	bool started; /* all of it */
};

static const uint64_t seq_mask = ((uint64_t)1 << 48) - 1; /* an id: shard, seq */

/* --- start ------------------------------------------------------------------ */

/* The last call of a worker; after it the thread only has to be joined. */
static void
worker_ended(void *arg)
{
	struct slu_executor *ex = arg;

	pthread_mutex_lock(&ex->mtx);
	if (--ex->alive == 0)
		pthread_cond_broadcast(&ex->ended);
	pthread_mutex_unlock(&ex->mtx);
}

static int
take_config(struct slu_executor *ex, const struct slu_executor_config *given,
	    struct slu_err *err)
{
	struct slu_executor_config *own = &ex->shared.config;
	const struct slu_executor_config *config = SIZED(slu_executor_config, given, own, err);
	char prefix[64];
	int rc;

	if (!config)
		return SLU_EINVAL;
	*own = *config;
	rc = executor_config_check(own, err);
	if (rc)
		return rc;
	ex->shared.backoff = (struct slu_backoff){
		.kind = own->backoff,
		.jitter = own->jitter,
		.base = own->base_backoff,
		.max = own->max_interval,
		.fn = own->backoff_fn,
		.arg = own->backoff_arg,
	};
	if (strlen(own->metrics_namespace) >= sizeof ex->metrics_namespace)
		return slu_fail(err, SLU_EINVAL, "metrics namespace %s is too long",
				own->metrics_namespace);
	memcpy(ex->metrics_namespace, own->metrics_namespace,
	       strlen(own->metrics_namespace) + 1);
	own->metrics_namespace = ex->metrics_namespace;
	(void)snprintf(prefix, sizeof prefix, "%s_shardqueue_", ex->metrics_namespace);
	rc = metrics_init(&ex->shared.metrics, prefix, exec_shard_metrics, EXEC_SHARD_METRICS, "shard",
			  own->shards);
	return rc ? slu_fail(err, rc, "metrics namespace %s: %s", ex->metrics_namespace,
			     slu_err_row(rc)->text)
		  : 0;
}

static int
open_shards(struct slu_executor *ex, struct slu_err *err)
{
	const uint32_t shards = ex->shared.config.shards;

	ex->shards = mem_aligned(_Alignof(struct exec_shard), shards * sizeof *ex->shards);
	if (!ex->shards)
		return slu_fail(err, SLU_ENOMEM, "no memory for %u shards", shards);
	for (; ex->n_shards < shards; ex->n_shards++) {
		const int rc = exec_shard_open(&ex->shards[ex->n_shards], &ex->shared,
					       ex->n_shards, err);

		if (rc)
			return rc;
	}
	return 0;
}

static int
start_shards(struct slu_executor *ex, struct slu_err *err)
{
	for (uint32_t i = 0; i < ex->n_shards; i++) {
		int rc;

		pthread_mutex_lock(&ex->mtx);
		rc = exec_shard_start(&ex->shards[i], err);
		if (!rc)
			ex->alive++;
		pthread_mutex_unlock(&ex->mtx);
		if (rc)
			return rc;
	}
	return 0;
}

int
executor_start_on(struct slu_executor **out, const struct slu_executor_config *config,
		  struct clock *clock, struct slu_err *err)
{
	struct slu_executor *ex = mem_zalloc(sizeof *ex);
	int rc;

	if (!ex)
		return slu_fail(err, SLU_ENOMEM, "no memory for an executor");
	pthread_mutex_init(&ex->mtx, NULL);
	pthread_cond_init(&ex->ended, NULL);
	ex->born = forked_now();
	ex->shared.clock = clock;
	ex->shared.executor = ex;
	ex->shared.ended = worker_ended;
	ex->shared.ended_arg = ex;
	rc = take_config(ex, config, err);
	if (!rc)
		rc = open_shards(ex, err);
	if (!rc)
		rc = start_shards(ex, err);
	if (rc) {
		slu_executor_close(ex);
		return rc;
	}
	ex->started = true;
	*out = ex;
	return 0;
}

int
slu_executor_start(struct slu_executor **out, const struct slu_executor_config *config,
		   struct slu_err *err)
{
	NEED(out, err);

	return executor_start_on(out, config, &clock_system, err);
}

int
slu_executor_config_get(const struct slu_executor *ex, struct slu_executor_config *config,
			struct slu_err *err)
{
	NEED2(ex, config, err);

	return executor_config_give(&ex->shared.config, config, err);
}

/* --- submit ------------------------------------------------------------------- */

/* hash modulo n_shards, without a division for a power of two. */
static struct exec_shard *
shard_of(const struct slu_executor *ex, uint32_t hash)
{
	const uint32_t n = ex->n_shards;

	return &ex->shards[(n & (n - 1)) == 0 ? hash & (n - 1) : hash % n];
}

uint32_t
slu_executor_shard_of(const struct slu_executor *ex, const char *key)
{
	if (!ex || !key)
		return SLU_ALL_SHARDS;
	return shard_of(ex, fnv1a32(key, strlen(key)))->index;
}

/* Computes length and hash in one pass over the key. */
static int
take_key(struct exec_key *out, const char *key, struct slu_err *err)
{
	uint32_t hash = FNV1A32_START;
	size_t len = 0;

	for (; key && key[len] && len <= SLU_KEY_MAX; len++)
		hash = fnv1a32_more(hash, &key[len], 1);
	if (len < 1 || len > SLU_KEY_MAX)
		return slu_fail(err, SLU_EINVAL, "invalid key; expected 1 to %d bytes", SLU_KEY_MAX);
	*out = (struct exec_key){ key, len, hash };
	return 0;
}

static int
check_tasks(const struct slu_executor *ex, const struct slu_task *tasks, uint32_t n,
	    struct slu_err *err)
{
	if (n < 1 || n > ex->shared.config.queue_size)
		return slu_fail(err, SLU_EINVAL, "invalid batch; expected 1 to %u tasks, not %u",
				ex->shared.config.queue_size, n);
	for (uint32_t i = 0; i < n; i++)
		if (!tasks[i].run)
			return slu_fail(err, SLU_EINVAL, "task %u has no function", i);
	return 0;
}

static int
submit(struct slu_executor *ex, const char *key, const struct slu_task *tasks, uint32_t n,
       const struct slu_submit *given, uint64_t *first_id, struct slu_err *err)
{
	struct slu_submit room;
	const struct slu_submit *opts = SIZED(slu_submit, given, &room, err);
	struct exec_key taken = { 0 };
	struct exec_shard *shard;
	uint64_t first;
	int rc;

	if (!opts || (opts->timeout != SLU_NOWAIT && need_time(opts->timeout, "timeout", err)) ||
	    need_time(opts->expire, "expire", err))
		return SLU_EINVAL;
	rc = take_key(&taken, key, err);
	if (!rc)
		rc = check_tasks(ex, tasks, n, err);
	if (rc)
		return rc;
	shard = shard_of(ex, taken.hash);
	rc = exec_shard_submit(shard, &taken, tasks, n, opts, &first, err);
	if (!rc && first_id)
		*first_id = exec_shard_id(shard, first);
	return rc;
}

int
slu_executor_submit_batch(struct slu_executor *ex, const char *key,
			  const struct slu_task *tasks, uint32_t n,
			  const struct slu_submit *opts, uint64_t *first_id,
			  struct slu_err *err)
{
	NEED2(ex, tasks, err);
	NEED_OURS(ex, err);

	struct sized_array a;
	int rc;

	rc = sized_array(&a, tasks, n, sizeof *tasks, "slu_task", err);
	if (!rc)
		rc = submit(ex, key, a.items, n, opts, first_id, err);
	sized_array_release(&a);
	return rc;
}

int
slu_executor_submit(struct slu_executor *ex, const char *key,
		    const struct slu_task *task, const struct slu_submit *opts,
		    uint64_t *id, struct slu_err *err)
{
	NEED2(ex, task, err);
	NEED_OURS(ex, err);

	struct slu_task room;
	const struct slu_task *known = SIZED(slu_task, task, &room, err);

	return known ? submit(ex, key, known, 1, opts, id, err) : SLU_EINVAL;
}

/* --- await ----------------------------------------------------------------------- */

/* Shared by the waiting caller and the task it queued; the last one frees it. */
struct barrier {
	pthread_mutex_t mtx;
	pthread_cond_t cond;
	int refs; /* shared, under mtx, as done */
	bool done;
};

static struct barrier *
barrier_new(void)
{
	struct barrier *b = mem_zalloc(sizeof *b);

	if (!b)
		return NULL;
	pthread_mutex_init(&b->mtx, NULL);
	pthread_cond_init(&b->cond, NULL);
	b->refs = 1;
	return b;
}

/* The caller holds mtx; releases it. */
static void
barrier_drop(struct barrier *b)
{
	const bool last = --b->refs == 0;

	pthread_mutex_unlock(&b->mtx);
	if (!last)
		return;
	pthread_cond_destroy(&b->cond);
	pthread_mutex_destroy(&b->mtx);
	mem_free(b);
}

static int
barrier_run(struct slu_run *run, void *arg)
{
	(void)run;
	(void)arg;
	return 0; /* the task only marks the place */
}

static void
barrier_done(const struct slu_run *run, void *arg, int rc)
{
	struct barrier *b = arg;

	(void)run;
	(void)rc;
	pthread_mutex_lock(&b->mtx);
	b->done = true;
	pthread_cond_signal(&b->cond);
	barrier_drop(b);
}

static int
barrier_wait(struct slu_executor *ex, struct barrier *b, slu_time until,
	     struct slu_err *err)
{
	struct clock *clock = ex->shared.clock;
	bool done;

	pthread_mutex_lock(&b->mtx);
	while (!b->done && clock_mono(clock) < until)
		clock_wait(clock, &b->cond, &b->mtx, until);
	done = b->done;
	barrier_drop(b);
	return done ? 0 : slu_fail(err, SLU_ETIMEOUT, "tasks of the key are still under way");
}

int
slu_executor_await(struct slu_executor *ex, const char *key, slu_time timeout,
		   struct slu_err *err)
{
	NEED(ex, err);
	NEED_OURS(ex, err);

	const slu_time wait = timeout > 0 ? timeout : SLU_NEVER;
	const slu_time until = time_add(clock_mono(ex->shared.clock), wait);
	struct barrier *b;
	int rc;

	if (need_time(timeout, "timeout", err))
		return SLU_EINVAL;
	if (exec_shard_executor_here() == ex)
		return slu_fail(err, SLU_EINVAL, "a task cannot await its own executor");
	b = barrier_new();
	if (!b)
		return slu_fail(err, SLU_ENOMEM, "no memory to await a key");
	b->refs = 2;
	rc = slu_executor_submit(ex, key,
				 &(struct slu_task){ SLU_OPTIONS_INIT(struct slu_task), barrier_run, b, barrier_done },
				 &(struct slu_submit){ SLU_OPTIONS_INIT(struct slu_submit), .timeout = wait }, NULL, err);
	if (rc) {
		b->refs = 1; /* no task has it */
		pthread_mutex_lock(&b->mtx);
		barrier_drop(b);
		return rc;
	}
	return barrier_wait(ex, b, until, err);
}

/* --- status and stats --------------------------------------------------------------- */

int
slu_executor_status(struct slu_executor *ex, uint64_t id, struct slu_task_status *status)
{
	NEED2(ex, status, NULL);
	NEED_OURS(ex, NULL);

	const uint64_t shard = id >> 48;

	if (shard >= ex->n_shards)
		return SLU_ENOTFOUND;
	return exec_shard_status(&ex->shards[shard], id & seq_mask, status);
}

int
slu_executor_snapshot(struct slu_executor *ex, uint32_t shard,
		      struct slu_executor_stats *stats)
{
	NEED2(ex, stats, NULL);
	NEED_OURS(ex, NULL);

	*stats = (struct slu_executor_stats){ .shards = ex->n_shards };
	if (shard != SLU_ALL_SHARDS && shard >= ex->n_shards)
		return SLU_EINVAL;
	for (uint32_t i = 0; i < ex->n_shards; i++)
		if (shard == SLU_ALL_SHARDS || shard == i)
			exec_shard_stats(&ex->shards[i], stats);
	return 0;
}

int
slu_executor_metrics(struct slu_executor *ex, char **text)
{
	NEED2(ex, text, NULL);
	NEED_OURS(ex, NULL);

	for (uint32_t i = 0; i < ex->n_shards; i++)
		exec_shard_collect(&ex->shards[i]);
	return metrics_text(&ex->shared.metrics, text);
}

/* --- stop ------------------------------------------------------------------------------ */

static void
log_stop(struct slu_executor *ex)
{
	char event[80];

	(void)snprintf(event, sizeof event,
		       "shardqueue: stopping executor, draining %u shards", ex->n_shards);
	log_warn(ex->shared.config.log, event, F_U64("shards", ex->n_shards));
}

/* Under mtx; the workers are past their last use of it. */
static void
join_workers(struct slu_executor *ex)
{
	for (uint32_t i = 0; i < ex->n_shards && !ex->joined; i++)
		if (ex->shards[i].started)
			pthread_join(ex->shards[i].thread, NULL);
	ex->joined = true;
}

int
slu_executor_stop(struct slu_executor *ex, slu_time timeout)
{
	NEED(ex, NULL);
	NEED_OURS(ex, NULL);

	struct clock *clock = ex->shared.clock;
	slu_time until;
	bool first, ended;

	if (exec_shard_executor_here() == ex || timeout < SLU_NOWAIT)
		return SLU_EINVAL;
	pthread_mutex_lock(&ex->mtx);
	first = !ex->stopping;
	ex->stopping = true;
	pthread_mutex_unlock(&ex->mtx);
	if (first && ex->started)
		log_stop(ex);
	/* Every caller closes all shards: no stop returns before all of them are closed. */
	for (uint32_t i = 0; i < ex->n_shards; i++)
		exec_shard_close(&ex->shards[i]);
	until = timeout == SLU_NOWAIT ? 0 : time_add(clock_mono(clock), timeout ? timeout : SLU_NEVER);
	pthread_mutex_lock(&ex->mtx);
	while (ex->alive && clock_mono(clock) < until)
		clock_wait(clock, &ex->ended, &ex->mtx, until);
	ended = ex->alive == 0;
	if (ended)
		join_workers(ex);
	pthread_mutex_unlock(&ex->mtx);
	return ended ? 0 : SLU_ETIMEOUT;
}

int
slu_executor_close(struct slu_executor *ex)
{
	int rc;

	if (!ex || ex->born != forked_now())
		return 0;
	rc = slu_executor_stop(ex, SLU_NEVER);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < ex->n_shards; i++)
		exec_shard_release(&ex->shards[i]);
	mem_free(ex->shards);
	metrics_release(&ex->shared.metrics);
	pthread_cond_destroy(&ex->ended);
	pthread_mutex_destroy(&ex->mtx);
	mem_free(ex);
	return 0;
}
