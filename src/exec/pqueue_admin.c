/*
 * pqueue_admin.c - stats, peek, purge and stop of a queue.
 */
#include "exec/pqueue_lock.h"

#include "base/forked.h"
#include "base/mem.h"
#include "base/need.h"

enum {
	PURGE_BATCH = 64
};

static const enum phase phase_of[] = {
	[SLU_STOP_ALL] = DRAIN_ALL,
	[SLU_STOP_READY] = DRAIN_READY,
	[SLU_STOP_NOW] = CLOSED,
};

void
slu_pqueue_snapshot(struct slu_pqueue *q, struct slu_pqueue_stats *stats)
{
	struct notes notes;

	if (!q || !stats || q->born != forked_now())
		return;
	pqueue_lock(q, &notes);
	(void)pqueue_promote(q, &notes); /* the time is not needed */
	*stats = (struct slu_pqueue_stats){
		.depth = q->queue.ready.n + q->queue.timed.n,
		.ready = q->queue.ready.n,
		.scheduled = q->queue.timed.n,
		.running = q->queue.held - q->queue.ready.n - q->queue.timed.n,
		.shutdown = q->phase != OPEN,
	};
	pqueue_unlock(q, &notes);
}

/* A stack of items that peek or purge has taken out of both heaps. */
struct taken {
	struct slu_pqueue *q;
	uint32_t first;
	uint32_t n;
};

static void
taken_add(void *arg, uint32_t handle)
{
	struct taken *c = arg;

	pqueue_item(c->q, handle)->q.pos = c->first;
	c->first = handle;
	c->n++;
}

static uint32_t
taken_pop(struct taken *c)
{
	const uint32_t handle = c->first;

	c->first = pqueue_item(c->q, handle)->q.pos;
	c->n--;
	return handle;
}

/* Takes up to n items out to copy them, then puts them back: needs no memory and, for few items of
 * many, far less time than a sort. */
static uint32_t
peek_heap(struct slu_pqueue *q, bool ready, slu_time now, struct slu_job_item *items,
	  uint32_t n)
{
	struct taken taken = { .q = q, .first = SLAB_NONE };
	uint32_t shown;

	while (taken.n < n) {
		const uint32_t h = ready ? queue_best(&q->queue)
					 : queue_first_timed(&q->queue);

		if (h == SLAB_NONE)
			break;
		pqueue_show(q, pqueue_item(q, h), now, q->wall_offset, &items[taken.n]);
		queue_take(&q->queue, h);
		taken_add(&taken, h);
	}
	shown = taken.n;
	while (taken.n > 0) {
		const uint32_t h = taken_pop(&taken);

		/* Into the same heap, also if it is due by now. */
		queue_wait(&q->queue, h, pqueue_item(q, h)->q.due,
			   ready ? SLU_NEVER : -1);
	}
	return shown;
}

uint32_t
slu_pqueue_peek(struct slu_pqueue *q, struct slu_job_item *items, uint32_t n)
{
	struct notes notes;
	uint32_t shown;
	slu_time now;

	if (!q || !items || q->born != forked_now())
		return 0;
	pqueue_lock(q, &notes);
	now = pqueue_promote(q, &notes);
	shown = peek_heap(q, true, now, items, n);
	shown += peek_heap(q, false, now, items + shown, n - shown);
	pqueue_unlock(q, &notes);
	return shown;
}

/* Frees some items of the stack, and returns their data: the caller passes it to drop without the
 * lock. */
static uint32_t
free_some(struct slu_pqueue *q, struct taken *taken, void **data, char **strings)
{
	uint32_t n;

	for (n = 0; n < PURGE_BATCH && taken->n > 0; n++) {
		const uint32_t h = taken_pop(taken);

		data[n] = pqueue_item(q, h)->data;
		strings[n] = pqueue_item(q, h)->strings;
		slab_free(&q->items, h);
	}
	return n;
}

uint32_t
slu_pqueue_purge(struct slu_pqueue *q, void (*drop)(void *data))
{
	struct taken taken = { .q = q, .first = SLAB_NONE };
	void *data[PURGE_BATCH];
	char *strings[PURGE_BATCH];
	struct notes notes;
	uint32_t purged = 0, n;

	if (!q || q->born != forked_now())
		return 0;
	pqueue_lock(q, &notes);
	queue_clear(&q->queue, taken_add, &taken);
	while ((n = free_some(q, &taken, data, strings)) > 0) {
		pqueue_unlock(q, &notes);
		for (uint32_t i = 0; i < n; i++) {
			if (drop)
				drop(data[i]);
			mem_free(strings[i]);
		}
		purged += n;
		pqueue_lock(q, &notes);
	}
	pqueue_unlock(q, &notes);
	return purged;
}

/* Waits until the queue is drained, or until the time. */
static void
await_drained(struct slu_pqueue *q, slu_time deadline)
{
	while (!pqueue_is_drained(q, q->phase)) {
		if (clock_mono(q->clock) >= deadline) {
			q->phase = CLOSED;
			return;
		}
		q->stoppers++;
		clock_wait(q->clock, &q->drained, &q->mtx, deadline);
		q->stoppers--;
	}
}

int
slu_pqueue_stop(struct slu_pqueue *q, enum slu_stop_mode mode, slu_time timeout)
{
	NEED(q, NULL);
	NEED_OURS(q, NULL);

	struct notes notes;
	enum phase want;
	slu_time now;
	int rc;

	if ((unsigned)mode > SLU_STOP_NOW || timeout < SLU_NOWAIT)
		return SLU_EINVAL;
	want = phase_of[mode];
	pqueue_lock(q, &notes);
	now = pqueue_promote(q, &notes); /* what is due by now counts as ready */
	if (want > q->phase)
		q->phase = want;
	pthread_cond_broadcast(&q->work);
	pthread_cond_broadcast(&q->drained);
	pqueue_unlock(q, &notes); /* what was noted is written before the wait */

	pqueue_lock(q, &notes);
	await_drained(q, timeout == SLU_NOWAIT ? 0 : time_add(now, timeout ? timeout : SLU_NEVER));
	rc = pqueue_is_drained(q, want) ? 0 : SLU_ETIMEOUT;
	pqueue_unlock(q, &notes);
	return rc;
}

int
slu_pqueue_metrics(struct slu_pqueue *q, char **text)
{
	NEED2(q, text, NULL);
	NEED_OURS(q, NULL);

	struct notes notes;

	pqueue_lock(q, &notes);
	(void)pqueue_promote(q, &notes); /* the time is not needed */
	metrics_set(&q->metrics, M_DEPTH, 0,
		    (int64_t)q->queue.ready.n + q->queue.timed.n);
	metrics_set(&q->metrics, M_READY, 0, q->queue.ready.n);
	metrics_set(&q->metrics, M_SCHEDULED, 0, q->queue.timed.n);
	metrics_set(&q->metrics, M_ENQUEUED, 0, (int64_t)q->enqueued);
	metrics_set(&q->metrics, M_REFUSED, 0, (int64_t)q->refused);
	pqueue_unlock(q, &notes);
	return metrics_text(&q->metrics, text);
}
