/*
 * exec_shard.c - a shard for its callers: open, close, submit, status. exec_shard_run.c is its worker.
 */
#include "exec/exec_shard.h"

#include "base/mem.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Slots are allocated 8 at a time, so that a small queue stays small; a large queue has larger
 * chunks. */
enum {
	SMALL_QUEUE = 1024,
	SMALL_CHUNK_BITS = 3,
	LARGE_CHUNK_BITS = 6
};

/* How often a submitter that waits for room checks again, even if the worker is stuck. So the worker
 * may signal late (call_for_more in exec_shard_run.c), and a fired token or a stop needs no hook. */
static const slu_time room_look = SLU_MS;

const struct metric exec_shard_metrics[EXEC_SHARD_METRICS] = {
	[EXEC_SHARD_SUBMISSIONS] = { "submissions_total", METRIC_COUNTER, "tasks accepted" },
	[EXEC_SHARD_FULL] = { "queue_full_total", METRIC_COUNTER, "submits refused because the shard stayed full" },
	[EXEC_SHARD_RUN_TIME] = { "run_duration_seconds", METRIC_HISTOGRAM, "how long runs of tasks took, retries included" },
	[EXEC_SHARD_DEPTH] = { "queue_depth", METRIC_GAUGE, "tasks waiting, retries included" },
};

static struct task_slot *
at(const struct exec_shard *l, uint32_t handle)
{
	return slab_at(&l->slots, handle);
}

/* --- open and close ------------------------------------------------------ */

static uint32_t
power_of_two_above(uint32_t n)
{
	uint32_t size = 1;

	while (size < n)
		size *= 2;
	return size;
}

static int
open_slots(struct exec_shard *l)
{
	const uint32_t n = l->capacity + 1;
	const uint32_t size = power_of_two_above(n);

	l->mask = size - 1;
	slab_init_chunked(&l->slots, sizeof(struct task_slot),
			  n < SMALL_QUEUE ? SMALL_CHUNK_BITS : LARGE_CHUNK_BITS);
	l->ring = mem_array(size, sizeof *l->ring);
	l->spare = mem_array(size, sizeof *l->spare);
	if (!l->ring || !l->spare || slab_reserve_array(&l->slots, n) || slab_reserve(&l->slots, 1))
		return SLU_ENOMEM;
	list_init(&l->fired);
	return parking_init(&l->parking, &l->slots, n);
}

/* Shards and processes need different seeds, or their retries coincide again and again. */
static uint64_t
first_dice(struct clock *clock, uint32_t index)
{
	const uint64_t seed = (uint64_t)clock_wall(clock) + index;

	return seed * 0x9e3779b97f4a7c15u | 1; /* xorshift never leaves 0 */
}

int
exec_shard_open(struct exec_shard *l, struct exec_shard_shared *shared, uint32_t index,
		struct slu_err *err)
{
	memset(l, 0, sizeof *l);
	l->shared = shared;
	l->index = index;
	l->capacity = shared->config.queue_size;
	l->random = first_dice(shared->clock, index);
	pthread_mutex_init(&l->mtx, NULL);
	pthread_cond_init(&l->work, NULL);
	pthread_cond_init(&l->room, NULL);
	if (open_slots(l)) {
		exec_shard_release(l);
		return slu_fail(err, SLU_ENOMEM, "no memory for shard %u of %u tasks",
				index, l->capacity);
	}
	return 0;
}

int
exec_shard_start(struct exec_shard *l, struct slu_err *err)
{
	const int rc = pthread_create(&l->thread, NULL, exec_shard_work, l);
	char name[16]; /* shown by top -H, ps -L and debuggers */

	if (rc)
		return slu_fail(err, SLU_EDOWN, "start a thread for shard %u: %s",
				l->index, strerror(rc));
	l->started = true;
	(void)snprintf(name, sizeof name, "shard %u", l->index);
	pthread_setname_np(l->thread, name);
	return 0;
}

void
exec_shard_close(struct exec_shard *l)
{
	pthread_mutex_lock(&l->mtx);
	atomic_store(&l->closed, true);
	pthread_cond_signal(&l->work);
	pthread_cond_broadcast(&l->room);
	pthread_mutex_unlock(&l->mtx);
}

void
exec_shard_release(struct exec_shard *l)
{
	for (uint32_t i = 0; i < l->slots.used; i++)
		mem_free(at(l, i)->long_key);
	parking_release(&l->parking);
	slab_release(&l->slots);
	mem_free(l->ring);
	mem_free(l->spare);
	pthread_cond_destroy(&l->work);
	pthread_cond_destroy(&l->room);
	pthread_mutex_destroy(&l->mtx);
}

/* --- room, under mtx ------------------------------------------------------ */

static uint32_t
waiting(const struct exec_shard *l, uint64_t head)
{
	return (uint32_t)(atomic_load_explicit(&l->tail, memory_order_relaxed) - head) +
	       atomic_load_explicit(&l->parked, memory_order_relaxed);
}

static uint32_t
leader_of(const struct exec_shard *l, const struct exec_key *key)
{
	return parking_find(&l->parking, key->s, key->hash);
}

/* EXECUTOR-4: a parked key may hold at most as many places as remain free. */
static bool
key_may_hold(const struct exec_shard *l, const struct exec_key *key, uint32_t n,
	     uint32_t left)
{
	const uint32_t leader = leader_of(l, key);

	return leader == SLAB_NONE || at(l, leader)->held + 1 + n <= left;
}

/* The common case, without reading the worker's head. */
static bool
has_room_surely(const struct exec_shard *l, uint32_t n)
{
	return waiting(l, l->head_seen) + n <= l->capacity &&
	       parking_is_empty(&l->parking);
}

static bool
has_room(struct exec_shard *l, const struct exec_key *key, uint32_t n)
{
	uint32_t taken;

	l->head_seen = atomic_load_explicit(&l->head, memory_order_acquire);
	taken = waiting(l, l->head_seen) + n;
	return taken <= l->capacity && key_may_hold(l, key, n, l->capacity - taken);
}

static int
refuse_full(struct exec_shard *l, const struct exec_key *key, struct slu_err *err)
{
	const uint32_t length = waiting(l, l->head_seen);

	l->full++;
	slu_fail(err, SLU_EQFULL, "shard %u is full (%u of %u) for key %s", l->index,
		 length, l->capacity, key->s);
	if (err) {
		err->shard = l->index;
		err->length = length;
		err->capacity = l->capacity;
	}
	return SLU_EQFULL;
}

static int
why_not(struct exec_shard *l, const struct exec_key *key, const struct slu_submit *opts,
	slu_time until, slu_time now, struct slu_err *err)
{
	if (atomic_load_explicit(&l->closed, memory_order_relaxed))
		return slu_fail(err, SLU_ECLOSED, "executor is stopped");
	if (slu_cancel_fired(opts->cancel))
		return slu_fail(err, SLU_ECANCELED, "canceled before key %s was queued: %s",
				key->s, cancel_reason(opts->cancel));
	return now >= until ? refuse_full(l, key, err) : 0;
}

/* A timeout as a moment of the shard's clock; a past one for SLU_NOWAIT. */
static slu_time
room_deadline(const struct exec_shard *l, slu_time timeout, slu_time now)
{
	if (timeout < 0)
		return now;
	return time_add(now, timeout ? timeout : l->shared->config.enqueue_timeout);
}

static int
wait_for_room(struct exec_shard *l, const struct exec_key *key, uint32_t n,
	      const struct slu_submit *opts, struct slu_err *err)
{
	slu_time now = clock_mono(l->shared->clock);
	const slu_time until = room_deadline(l, opts->timeout, now);

	while (!has_room(l, key, n)) {
		const slu_time left = until - now;
		const int rc = why_not(l, key, opts, until, now, err);

		if (rc)
			return rc;
		atomic_fetch_add_explicit(&l->wanting, 1, memory_order_relaxed);
		clock_wait(&clock_system, &l->room, &l->mtx,
			   clock_mono(&clock_system) + (left < room_look ? left : room_look));
		now = clock_mono(l->shared->clock);
	}
	/* After a stop or a cancel the room does not count. */
	return why_not(l, key, opts, SLU_NEVER, 0, err);
}

/* --- submit ---------------------------------------------------------------- */

/* Under mtx: makes n handles free (EXECSHARD-4). */
static int
make_slots(struct exec_shard *l, uint32_t n, struct slu_err *err)
{
	if (l->made > waiting(l, l->head_seen) + n)
		return 0;
	l->head_seen = atomic_load_explicit(&l->head, memory_order_acquire);
	while (l->made <= waiting(l, l->head_seen) + n) {
		const uint32_t handle = slab_new(&l->slots);

		if (handle == SLAB_NONE)
			return slu_fail(err, SLU_ENOMEM, "no memory for more tasks in shard %u", l->index);
		assert(handle == l->made); /* slots are never freed */
		l->made++;
	}
	return 0;
}

/* Under mtx: the i-th free handle, never used ones first. take_places takes it. */
static uint32_t
free_at(const struct exec_shard *l, uint32_t i)
{
	const uint32_t unused = l->made - l->used;

	return i < unused ? l->used + i : l->spare[(l->spare_head + i - unused) & l->mask];
}

/* The only allocation of a submit: for the first long key of a slot. */
static int
make_key_room(struct exec_shard *l, const struct exec_key *key, uint32_t n,
	      struct slu_err *err)
{
	for (uint32_t i = 0; i < n; i++) {
		struct task_slot *s = at(l, free_at(l, i));

		if (!s->long_key)
			s->long_key = mem_alloc(SLU_KEY_MAX + 1);
		if (!s->long_key)
			return slu_fail(err, SLU_ENOMEM, "no memory for key %s", key->s);
	}
	return 0;
}

static void
fill(struct task_slot *s, const struct exec_key *key, const struct slu_task *task,
     slu_time give_up, struct slu_cancel *cancel)
{
	char *text = key->len < sizeof s->short_key ? s->short_key : s->long_key;

	memcpy(text, key->s, key->len + 1);
	s->key = text;
	s->hash = key->hash;
	s->run = task->run;
	s->arg = task->arg;
	s->done = task->done;
	s->give_up = give_up;
	s->cancel = cancel ? cancel_ref(cancel) : NULL;
	s->attempts = 0;
}

/* EXECUTOR-4: tasks of a parked key that are still in the ring count, too. */
static void
expect(struct exec_shard *l, const struct exec_key *key, uint64_t seq, uint32_t n)
{
	const uint32_t leader = leader_of(l, key);

	if (leader != SLAB_NONE)
		parking_expect(&l->parking, leader, seq, n);
}

/* Under mtx, with room: takes the next n places of the ring and a free slot for each. Returns the seq
 * of the first. */
static uint64_t
take_places(struct exec_shard *l, const struct exec_key *key, uint32_t n)
{
	const uint64_t tail = atomic_load_explicit(&l->tail, memory_order_relaxed);
	const uint32_t unused = l->made - l->used;
	const uint32_t first_uses = n < unused ? n : unused;

	for (uint32_t i = 0; i < n; i++)
		l->ring[(tail + i) & l->mask] = free_at(l, i);
	l->used += first_uses;
	l->spare_head += n - first_uses;
	if (!parking_is_empty(&l->parking))
		expect(l, key, tail + 1, n);
	atomic_store_explicit(&l->tail, tail + n, memory_order_release);
	return tail + 1;
}

/* Without mtx: the slots of taken places belong to their submitter until it has
 * written their seq (EXECSHARD-5). */
static void
fill_places(struct exec_shard *l, uint64_t first, const struct exec_key *key,
	    const struct slu_task *tasks, uint32_t n, const struct slu_submit *opts)
{
	slu_time give_up = SLU_NEVER;

	if (opts->expire > 0)
		give_up = time_add(clock_mono(l->shared->clock), opts->expire);
	for (uint32_t i = 0; i < n; i++) {
		struct task_slot *s = at(l, l->ring[(first - 1 + i) & l->mask]);

		fill(s, key, &tasks[i], give_up, opts->cancel);
		atomic_store_explicit(&s->seq, first + i, memory_order_release);
	}
}

int
exec_shard_submit(struct exec_shard *l, const struct exec_key *key,
		  const struct slu_task *tasks, uint32_t n,
		  const struct slu_submit *opts, uint64_t *first, struct slu_err *err)
{
	static const struct slu_submit plain = { SLU_OPTIONS_INIT(struct slu_submit) };
	bool wake = false;
	int rc = 0;

	if (!opts)
		opts = &plain;
	pthread_mutex_lock(&l->mtx);
	if (atomic_load_explicit(&l->closed, memory_order_relaxed) ||
	    opts->cancel || !has_room_surely(l, n))
		rc = wait_for_room(l, key, n, opts, err);
	if (!rc)
		rc = make_slots(l, n, err);
	if (!rc && key->len >= SLOT_KEY_INLINE)
		rc = make_key_room(l, key, n, err);
	if (!rc) {
		*first = take_places(l, key, n);
		wake = l->sleeping;
		l->sleeping = false; /* one signal is enough */
	}
	pthread_mutex_unlock(&l->mtx);
	if (!rc)
		fill_places(l, *first, key, tasks, n, opts);
	if (wake)
		pthread_cond_signal(&l->work);
	return rc;
}

/* --- status and stats ------------------------------------------------------- */

/* Its position in the line of a leader, which has 0; or SLAB_NONE. */
static uint32_t
place_in_line(const struct exec_shard *l, uint32_t handle, uint64_t seq)
{
	uint32_t place = 0;

	while (handle != SLAB_NONE && at(l, handle)->seq != seq) {
		handle = at(l, handle)->next;
		place++;
	}
	return handle == SLAB_NONE ? SLAB_NONE : place;
}

/* The number of parked leaders that are due before the one at this position of the heap. */
static uint32_t
count_earlier(const struct heap *h, uint32_t pos)
{
	const struct heap_node *own = heap_at(h, pos);
	uint32_t earlier = 0;

	for (uint32_t i = 0; i < h->n; i++)
		earlier += h->nodes[i].b < own->b ||
			   (h->nodes[i].b == own->b && h->nodes[i].c < own->c);
	return earlier;
}

/* A task that became the leader because the tasks before it ended has not failed: it runs next, like
 * the first in the ring. */
static void
look_at_leader(struct exec_shard *l, const struct task_slot *s, struct slu_task_status *status)
{
	const slu_time left = s->due - clock_mono(l->shared->clock);

	if (!s->attempts) {
		status->state = SLU_TASK_QUEUED;
		status->position = count_earlier(&l->parking.by_due, s->pos);
		return;
	}
	status->state = SLU_TASK_RETRYING;
	status->attempts = s->attempts;
	status->retry_in = left > 0 ? left : 0;
}

/* Under mtx: fills in the status of a parked task. */
static void
look_in_parking(struct exec_shard *l, uint64_t seq, struct slu_task_status *status)
{
	const struct parking *p = &l->parking;
	uint32_t leader = p->taken;
	uint32_t place = place_in_line(l, leader, seq);

	for (uint32_t i = 0; place == SLAB_NONE && i < p->by_due.n; i++) {
		leader = p->by_due.nodes[i].handle;
		place = place_in_line(l, leader, seq);
	}
	if (place == SLAB_NONE)
		return;
	if (place > 0) {
		status->state = SLU_TASK_HELD;
		status->position = place;
	} else {
		look_at_leader(l, at(l, leader), status);
	}
}

int
exec_shard_status(struct exec_shard *l, uint64_t seq, struct slu_task_status *status)
{
	uint64_t head;
	int rc = 0;

	*status = (struct slu_task_status){ .state = SLU_TASK_FINISHED };
	pthread_mutex_lock(&l->mtx);
	head = atomic_load_explicit(&l->head, memory_order_acquire);
	if (seq == 0 || seq > atomic_load_explicit(&l->tail, memory_order_relaxed)) {
		rc = SLU_ENOTFOUND;
	} else if (seq > head) {
		status->state = SLU_TASK_QUEUED;
		status->position = (uint32_t)(seq - head - 1);
	} else if (atomic_load_explicit(&l->running, memory_order_acquire) == seq) {
		status->state = SLU_TASK_RUNNING;
		status->attempts = atomic_load(&l->running_attempts);
	} else {
		look_in_parking(l, seq, status);
	}
	pthread_mutex_unlock(&l->mtx);
	return rc;
}

static size_t
buffer_bytes(const struct exec_shard *l)
{
	const size_t slots = (size_t)l->slots.n_chunks << l->slots.chunk_bits;

	return slots * sizeof(struct task_slot) + 2 * (l->mask + 1) * sizeof *l->ring +
	       parking_bytes(&l->parking);
}

void
exec_shard_stats(struct exec_shard *l, struct slu_executor_stats *stats)
{
	uint64_t head;

	pthread_mutex_lock(&l->mtx);
	head = atomic_load(&l->head);
	stats->queued += (uint32_t)(atomic_load(&l->tail) - head);
	stats->waiting += l->parking.tasks;
	stats->running += atomic_load(&l->running) != 0;
	stats->submitted += atomic_load(&l->tail);
	stats->finished += atomic_load(&l->finished);
	stats->failed += atomic_load(&l->failed);
	stats->runs += atomic_load(&l->runs);
	stats->panics += atomic_load(&l->panics);
	stats->full += l->full;
	stats->buffer_bytes += buffer_bytes(l);
	stats->stopping |= atomic_load(&l->closed);
	pthread_mutex_unlock(&l->mtx);
}

void
exec_shard_collect(struct exec_shard *l)
{
	struct slu_executor_stats stats = { 0 };
	struct metrics *m = &l->shared->metrics;

	exec_shard_stats(l, &stats);
	metrics_set(m, EXEC_SHARD_SUBMISSIONS, l->index, (int64_t)stats.submitted);
	metrics_set(m, EXEC_SHARD_FULL, l->index, (int64_t)stats.full);
	metrics_set(m, EXEC_SHARD_DEPTH, l->index, (int64_t)stats.queued + stats.waiting);
}
