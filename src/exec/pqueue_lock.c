#include "exec/pqueue_lock.h"

#include "base/log.h"

#include <assert.h>

static const char *
or_null(const char *s)
{
	return s && *s ? s : NULL;
}

void
pqueue_log_job(struct slu_pqueue *q, const char *event, const char *object_id,
	       const char *correlation_id, const char *label, uint64_t seq,
	       unsigned attempts)
{
	log_debug(q->log, event,
		  F_STR("object_id", or_null(object_id)),
		  F_STR("correlation_id", or_null(correlation_id)),
		  F_STR("priority", label),
		  F_U64("seq", seq),
		  F_U64("attempts", attempts));
}

void
pqueue_note(struct slu_pqueue *q, struct notes *notes, const char *event,
	    uint32_t handle)
{
	const struct pqueue_item *it = pqueue_item(q, handle);
	struct note *note = &notes->list[notes->n];

	assert(notes->n < PQUEUE_NOTES);
	notes->n++;
	note->event = event;
	note->label = q->labels.rows[it->label].name;
	note->seq = it->q.seq;
	note->attempts = it->attempts;
	memset(note->ids, 0, 2);
	if (it->strings) {
		const char *end = pqueue_second(pqueue_second(it->strings));

		memcpy(note->ids, it->strings, (size_t)(end - it->strings));
	}
}

static void
log_backlog(struct slu_pqueue *q, const char *which, uint32_t depth, uint32_t warn_at)
{
	if (depth > 0)
		log_warn(q->log, "backlog",
			 F_U64("depth", depth),
			 F_U64("warn_depth", warn_at),
			 F_STR("which", which));
}

static void
write_notes(struct slu_pqueue *q, struct notes *notes)
{
	for (unsigned i = 0; i < notes->n; i++) {
		const struct note *note = &notes->list[i];

		pqueue_log_job(q, note->event, note->ids, pqueue_second(note->ids),
			       note->label, note->seq, note->attempts);
	}
	log_backlog(q, "ready", notes->ready, q->ready_level.warn_at);
	log_backlog(q, "scheduled", notes->scheduled, q->scheduled_level.warn_at);
}

void
pqueue_lock(struct slu_pqueue *q, struct notes *notes)
{
	notes->debug = log_on(q->log, SLU_LOG_DEBUG);
	notes->ready = notes->scheduled = 0;
	notes->n = 0;
	pthread_mutex_lock(&q->mtx);
}

/* Returns n if it has just risen to the level, otherwise 0. */
static uint32_t
crossed(struct pqueue_level *level, uint32_t n)
{
	const bool was_above = level->above;

	level->above = level->warn_at > 0 && n >= level->warn_at;
	return level->above && !was_above ? n : 0;
}

static void
watch_levels(struct slu_pqueue *q, struct notes *notes)
{
	const uint32_t ready = crossed(&q->ready_level, q->queue.ready.n);
	const uint32_t scheduled = crossed(&q->scheduled_level, q->queue.timed.n);

	notes->ready = ready ? ready : notes->ready;
	notes->scheduled = scheduled ? scheduled : notes->scheduled;
}

bool
pqueue_is_drained(const struct slu_pqueue *q, enum phase phase)
{
	if (phase == CLOSED)
		return true;
	return q->queue.ready.n == 0 && (phase == DRAIN_READY || q->queue.timed.n == 0);
}

/* Wakes all threads that wait for an empty queue. */
static void
tell_drained(struct slu_pqueue *q)
{
	if (q->phase != OPEN && pqueue_is_drained(q, q->phase)) {
		pthread_cond_broadcast(&q->drained);
		pthread_cond_broadcast(&q->work);
	} else if (q->drainers > 0 && pqueue_is_drained(q, DRAIN_ALL)) {
		pthread_cond_broadcast(&q->work);
	}
}

/* PQUEUE-1 and PQUEUE-2. The signal comes after the lock is released; otherwise the woken thread
 * would block on it. */
void
pqueue_unlock(struct slu_pqueue *q, struct notes *notes)
{
	const bool unwatched = q->queue.timed.n > 0 && !q->sentry;
	const bool wake = q->sleepers > 0 && (q->queue.ready.n > 0 || unwatched);

	watch_levels(q, notes);
	if (q->sleepers + q->stoppers > 0)
		tell_drained(q);
	pthread_mutex_unlock(&q->mtx);
	if (wake)
		pthread_cond_signal(&q->work);
	if (notes->n + notes->ready + notes->scheduled > 0)
		write_notes(q, notes);
}

/* Now. The wall clock may step; reading it once a second is enough. */
slu_time
pqueue_now(struct slu_pqueue *q)
{
	const slu_time now = clock_mono(q->clock);

	if (now - q->wall_read >= SLU_SEC) {
		q->wall_offset = clock_wall(q->clock) - now;
		q->wall_read = now;
	}
	return now;
}

/* One item at a time, so that each gets its note; PQUEUE-4. */
static slu_time
promote_noted(struct slu_pqueue *q, struct notes *notes, slu_time now)
{
	while (q->phase < DRAIN_READY && queue_next_due(&q->queue) <= now &&
	       q->queue.timed.n > 0) {
		if (notes->n == PQUEUE_NOTES) {
			pqueue_unlock(q, notes);
			pqueue_lock(q, notes);
			now = pqueue_now(q);
			continue;
		}
		pqueue_note(q, notes, "job promoted", queue_first_timed(&q->queue));
		queue_tick(&q->queue, now, 1);
	}
	return now;
}

slu_time
pqueue_promote(struct slu_pqueue *q, struct notes *notes)
{
	slu_time now = pqueue_now(q);

	if (queue_next_due(&q->queue) > now || q->phase >= DRAIN_READY)
		return now;
	if (notes->debug)
		now = promote_noted(q, notes, now);
	else
		queue_tick(&q->queue, now, UINT32_MAX);
	watch_levels(q, notes); /* before a consumer takes one of them */
	return now;
}
