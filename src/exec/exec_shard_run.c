/*
 * exec_shard_run.c - the worker of a shard. A drain runs tasks in the same way, but without retries.
 */
#include "exec/exec_shard.h"

#include "base/contain.h"
#include "base/cpu.h"
#include "base/hash.h"
#include "base/log.h"
#include "core/backoff.h"
#include "exec/guard.h"

#include <sched.h>
#include <stdio.h>
#include <time.h>

enum {
	AHEAD = 4,   /* tasks whose slots are prefetched */
	BREATH = 48, /* cpu_pause calls of a worker that has caught up */
	YIELDS = 1000
};

static _Thread_local const void *executor_here;

const void *
exec_shard_executor_here(void)
{
	return executor_here;
}

static struct task_slot *
at(const struct exec_shard *l, uint32_t handle)
{
	return slab_at(&l->slots, handle);
}

/* Only the worker writes these, so it needs no read-modify-write. */
static void
count(_Atomic uint64_t *n)
{
	atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

/* --- the parking: the worker reads it freely and changes it under mtx --------- */

static void
park_begin(struct exec_shard *l)
{
	pthread_mutex_lock(&l->mtx);
}

static void
park_end(struct exec_shard *l)
{
	atomic_store_explicit(&l->parked, l->parking.tasks, memory_order_relaxed);
	pthread_mutex_unlock(&l->mtx);
}

static void
token_fired(struct cancel_hook *h)
{
	struct exec_shard *l = CONTAINER(h, struct task_slot, hook)->shard;

	pthread_mutex_lock(&l->mtx);
	list_append(&l->fired, &h->node); /* the token has removed it from its own list */
	atomic_store(&l->look, true);
	pthread_cond_signal(&l->work);
	pthread_mutex_unlock(&l->mtx);
}

/* Returns false if the task's token has fired: then the task ends instead of waiting. */
static bool
park(struct exec_shard *l, struct task_slot *s, slu_time due)
{
	s->shard = l;
	s->hook.fired = token_fired;
	if (s->cancel && !cancel_hook(s->cancel, &s->hook))
		return false;
	park_begin(l);
	parking_park(&l->parking, l->current, due);
	atomic_store_explicit(&l->running, 0, memory_order_release);
	park_end(l);
	return true;
}

static void
unpark(struct exec_shard *l, uint32_t handle)
{
	struct task_slot *s = at(l, handle);
	/* A held task that became the leader was never hooked; its node is in no list. */
	const bool hooked = s->cancel && s->hook.fired;

	if (hooked)
		cancel_unhook(s->cancel, &s->hook);
	park_begin(l);
	if (hooked)
		list_remove(&s->hook.node); /* when it has fired */
	parking_take(&l->parking, handle);
	atomic_store_explicit(&l->running_attempts, s->attempts, memory_order_relaxed);
	atomic_store_explicit(&l->running, s->seq, memory_order_release);
	park_end(l);
	s->hook.fired = NULL;
}

/* A leader whose token has fired. */
static uint32_t
next_fired(struct exec_shard *l)
{
	uint32_t handle = SLAB_NONE;

	if (!atomic_load_explicit(&l->look, memory_order_relaxed))
		return SLAB_NONE;
	pthread_mutex_lock(&l->mtx);
	if (list_is_empty(&l->fired))
		atomic_store(&l->look, false);
	else
		handle = parking_handle(&l->parking, CONTAINER(l->fired.next, struct task_slot, hook.node));
	pthread_mutex_unlock(&l->mtx);
	return handle;
}

/* A parked leader whose time has come: its retry, its cancel, or the stop. */
static uint32_t
next_parked(struct exec_shard *l)
{
	uint32_t handle = next_fired(l);

	if (handle == SLAB_NONE)
		handle = parking_due(&l->parking, l->draining ? SLU_NEVER : l->now);
	if (handle != SLAB_NONE)
		unpark(l, handle);
	return handle;
}

/* --- the ring ------------------------------------------------------------------ */

/* Signals submitters that wait for room when half of the queue is free, once for all of them; with a
 * slow worker they check by themselves every room_look. */
static void
call_for_more(struct exec_shard *l, uint64_t head)
{
	if (atomic_load_explicit(&l->wanting, memory_order_relaxed) == 0)
		return;
	if (atomic_load_explicit(&l->tail, memory_order_relaxed) - head > l->capacity / 2)
		return;
	pthread_mutex_lock(&l->mtx);
	atomic_store_explicit(&l->wanting, 0, memory_order_relaxed);
	pthread_cond_broadcast(&l->room);
	pthread_mutex_unlock(&l->mtx);
}

/* If its key is parked, the task at head joins the line. */
static bool
hold_behind(struct exec_shard *l, uint32_t handle, uint64_t head)
{
	const struct task_slot *s = at(l, handle);
	uint32_t leader;

	if (parking_is_empty(&l->parking))
		return false;
	leader = parking_find(&l->parking, s->key, s->hash);
	if (leader == SLAB_NONE)
		return false;
	park_begin(l);
	parking_hold(&l->parking, leader, handle);
	atomic_store_explicit(&l->head, head + 1, memory_order_release);
	park_end(l);
	return true;
}

static void
pause_for(int turns)
{
	while (turns-- > 0)
		cpu_pause();
}

/* A worker that has caught up pauses half a microsecond before it reads the tail again: otherwise it
 * and a submitter on another core run in step, and the cache line of lock and tail goes back and
 * forth for every task. */
static bool
ring_is_empty(struct exec_shard *l)
{
	const uint64_t head = atomic_load_explicit(&l->head, memory_order_relaxed);

	if (head == l->tail_seen) {
		pause_for(BREATH);
		l->tail_seen = atomic_load_explicit(&l->tail, memory_order_acquire);
	}
	return head == l->tail_seen;
}

/* EXECSHARD-5: waits until the submitter has filled the slot. That is short, unless the kernel has
 * suspended the submitter. */
static void
await_filled(const struct task_slot *s, uint64_t seq)
{
	for (int i = 0; atomic_load_explicit(&s->seq, memory_order_acquire) != seq; i++)
		if (i < YIELDS)
			sched_yield();
		else
			nanosleep(&(struct timespec){ .tv_nsec = 20 * SLU_US }, NULL);
}

/* The next task of the ring whose key is not parked; the others join their line. */
static uint32_t
next_queued(struct exec_shard *l)
{
	while (!ring_is_empty(l)) {
		const uint64_t head = atomic_load_explicit(&l->head, memory_order_relaxed);
		const uint32_t handle = l->ring[head & l->mask];
		const struct task_slot *s = at(l, handle);

		/* Another core has written the slot: prefetch it. */
		if (head + AHEAD < l->tail_seen)
			cpu_prefetch(at(l, l->ring[(head + AHEAD) & l->mask]));
		await_filled(s, head + 1);
		if (hold_behind(l, handle, head))
			continue;
		atomic_store_explicit(&l->running_attempts, 0, memory_order_relaxed);
		atomic_store_explicit(&l->running, s->seq, memory_order_relaxed);
		atomic_store_explicit(&l->head, head + 1, memory_order_release);
		call_for_more(l, head + 1);
		return handle;
	}
	return SLAB_NONE;
}

/* --- one task ------------------------------------------------------------------- */

static void
log_panic(struct exec_shard *l, const char *who, const char *cause)
{
	char event[64 + GUARD_TEXT_MAX];

	(void)snprintf(event, sizeof event, "shardqueue: %s panic: %s", who, cause);
	log_error(l->shared->config.log, event, F_U64("shard", l->index),
		  F_STR("key", l->run.key), F_U64("attempt", l->run.attempt));
}

/* The error code of rc, which may be any number. */
static enum slu_code
code_of(int rc)
{
	return rc > SLU_CODE_BASE && rc < SLU_CODE_END ? (enum slu_code)rc : SLU_EFAILED;
}

static void
log_worker_panic(struct exec_shard *l, const char *cause)
{
	char who[32];

	(void)snprintf(who, sizeof who, "worker %u", l->index);
	log_panic(l, who, cause);
}

/* Why the task must not run, or 0. */
static int
refuse_run(struct exec_shard *l, const struct task_slot *s)
{
	struct slu_err *err = &l->run.err;

	if (s->cancel && slu_cancel_fired(s->cancel))
		return slu_fail(err, SLU_ECANCELED, "canceled: %s", cancel_reason(s->cancel));
	if (l->now >= s->give_up)
		return slu_fail(err, SLU_ETIMEOUT, "not done in time after %u attempts",
				s->attempts);
	if (l->draining && s->attempts)
		slu_fail(err, code_of(s->last_rc), "stopped while waiting to retry: %s",
			 slu_err_row(s->last_rc)->text);
	return l->draining && s->attempts ? s->last_rc : 0;
}

static void
begin_run(struct exec_shard *l, struct task_slot *s)
{
	l->run.attempt = ++s->attempts;
	atomic_store_explicit(&l->running_attempts, s->attempts, memory_order_relaxed);
	l->run_begin = l->now;
}

static void
end_run(struct exec_shard *l, struct task_slot *s, int rc)
{
	l->now = clock_mono(l->shared->clock);
	metrics_observe_own(&l->shared->metrics, EXEC_SHARD_RUN_TIME, l->index,
			    l->now - l->run_begin);
	count(&l->runs);
	if (rc)
		s->last_rc = rc; /* in a cache line that a success does not touch */
}

/* The delay before the retry, or -1 if the user's function panicked. */
static slu_time
wait_after(struct exec_shard *l, const struct task_slot *s)
{
	volatile slu_time wait = -1;
	struct panic_guard g;

	if (GUARD_ENTER(&g))
		log_panic(l, "backoff function", g.text);
	else
		CONTAIN("it", wait = backoff_delay(&l->shared->backoff, s->attempts, hash_next_random(&l->random)));
	guard_leave(&g);
	return wait;
}

/* The task failed: parks it for a retry, or returns why there is no retry. */
static int
retry(struct exec_shard *l, struct task_slot *s, int rc)
{
	slu_time wait, due;

	if (rc == SLU_EPERMANENT || s->attempts >= l->shared->config.max_attempts ||
	    atomic_load_explicit(&l->closed, memory_order_relaxed))
		return rc;
	wait = wait_after(l, s);
	if (wait < 0)
		return rc;
	due = time_add(l->now, wait);
	if (due >= s->give_up && s->give_up < SLU_NEVER)
		return slu_fail(&l->run.err, SLU_ETIMEOUT,
				"no time for another attempt after %u: %s", s->attempts,
				slu_err_row(rc)->text);
	if (park(l, s, due))
		return 0;
	return slu_fail(&l->run.err, SLU_ECANCELED, "canceled: %s",
			cancel_reason(s->cancel));
}

static void
call_done(struct exec_shard *l, const struct task_slot *s, int rc)
{
	struct panic_guard g;

	if (GUARD_ENTER(&g))
		log_panic(l, "done callback", g.text);
	else
		CONTAIN("it", s->done(&l->run, s->arg, rc));
	guard_leave(&g);
}

static void
call_on_error(struct exec_shard *l, int rc)
{
	const struct slu_executor_config *config = &l->shared->config;
	struct panic_guard g;

	if (!config->on_error)
		return;
	if (GUARD_ENTER(&g))
		log_panic(l, "error handler", g.text);
	else
		CONTAIN("it", config->on_error(&l->run, rc, config->on_error_arg));
	guard_leave(&g);
}

static void
report(struct exec_shard *l, const struct task_slot *s, int rc)
{
	if (rc && !l->run.err.text[0])
		slu_fail(&l->run.err, code_of(rc), "%s", slu_err_row(rc)->text);
	if (s->done)
		call_done(l, s, rc);
	if (rc) {
		call_on_error(l, rc);
		count(&l->failed);
	}
	if (rc || s->done)
		l->now = clock_mono(l->shared->clock); /* so that the report does not count as run time */
}

/* The task has ended: lets the next task of its key run, and frees the slot. */
static void
retire(struct exec_shard *l, struct task_slot *s)
{
	if (s->cancel)
		slu_cancel_free(s->cancel);
	if (s->leads) {
		park_begin(l);
		parking_end(&l->parking, l->current, l->now);
		park_end(l);
	}
	count(&l->finished);
	atomic_store_explicit(&l->running, 0, memory_order_release);
	l->spare[l->spare_tail++ & l->mask] = l->current; /* visible with the next head: EXECSHARD-4 */
}

/* The task at `current` has run, or must not: parks it for its retry, or ends it. */
static void
settle(struct exec_shard *l, struct task_slot *s, int rc, bool ran)
{
	if (rc && ran) {
		rc = retry(l, s, rc);
		if (!rc)
			return; /* parked */
	}
	report(l, s, rc);
	retire(l, s);
}

static void
work_on_current(struct exec_shard *l)
{
	struct task_slot *s = at(l, l->current);
	int rc;

	l->run.key = s->key;
	l->run.id = exec_shard_id(l, s->seq);
	l->run.cancel = s->cancel;
	l->run.attempt = s->attempts;
	l->run.err.code = SLU_OK;
	l->run.err.text[0] = 0;
	rc = refuse_run(l, s);
	if (rc) {
		settle(l, s, rc, false);
		return;
	}
	begin_run(l, s);
	rc = s->run(&l->run, s->arg);
	end_run(l, s, rc);
	settle(l, s, rc, true);
}

static void
current_panicked(struct exec_shard *l, const char *cause)
{
	const int rc = slu_fail(&l->run.err, SLU_EPANIC, "panic: %s", cause);
	struct task_slot *s = at(l, l->current);

	count(&l->panics);
	log_worker_panic(l, cause);
	end_run(l, s, rc);
	settle(l, s, rc, true);
}

/* --- the thread ------------------------------------------------------------------- */

static void
begin_drain(struct exec_shard *l)
{
	struct slu_executor_stats stats = { 0 };
	char event[64];

	l->draining = true;
	exec_shard_stats(l, &stats);
	if (stats.queued + stats.waiting == 0)
		return;
	(void)snprintf(event, sizeof event,
		       "shardqueue: worker %u draining %u remaining jobs", l->index,
		       stats.queued + stats.waiting);
	log_info(l->shared->config.log, event, F_U64("shard", l->index),
		 F_U64("remaining", stats.queued + stats.waiting));
}

/* Sleeps until there is something to do. Returns false if the shard has ended (EXECSHARD-2). */
static bool
sleep_until_work(struct exec_shard *l)
{
	bool more = true;

	pthread_mutex_lock(&l->mtx);
	if (ring_is_empty(l) && !atomic_load(&l->look)) {
		if (atomic_load(&l->closed) && l->parking.tasks == 0) {
			more = false;
		} else if (!atomic_load(&l->closed)) {
			l->sleeping = true;
			clock_wait(l->shared->clock, &l->work, &l->mtx,
				   parking_next_due(&l->parking));
			l->sleeping = false;
		}
	}
	pthread_mutex_unlock(&l->mtx);
	l->now = clock_mono(l->shared->clock);
	return more;
}

/* Due retries and tasks from the ring alternate while there are both, so that neither starves the
 * other (EXECUTOR-3). */
static uint32_t
next_task(struct exec_shard *l)
{
	uint32_t handle = l->was_parked ? next_queued(l) : SLAB_NONE;

	l->was_parked = false;
	if (handle != SLAB_NONE)
		return handle;
	handle = next_parked(l);
	l->was_parked = handle != SLAB_NONE;
	return l->was_parked ? handle : next_queued(l);
}

/* Puts the next task into `current`. Returns false if the shard has ended. */
static bool
take_next(struct exec_shard *l)
{
	bool more = true;

	do {
		if (!l->draining && atomic_load_explicit(&l->closed, memory_order_relaxed))
			begin_drain(l);
		l->current = next_task(l);
		if (l->current == SLAB_NONE)
			more = sleep_until_work(l);
	} while (more && l->current == SLAB_NONE);
	return more;
}

/* One guard for all runs: entering it costs as much as an empty task. The shard has all that is
 * needed after a panic. */
void *
exec_shard_work(void *shard)
{
	struct exec_shard *l = shard;
	struct panic_guard g;

	executor_here = l->shared->executor;
	l->run.shard = l->index;
	l->now = clock_mono(l->shared->clock);
	if (GUARD_ENTER(&g))
		current_panicked(l, g.text);
	CONTAIN("the task", while (take_next(l)) work_on_current(l));
	guard_leave(&g);
	l->shared->ended(l->shared->ended_arg);
	return NULL;
}
