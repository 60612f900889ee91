#include "exec/pqueue_lock.h"

#include "base/cpu.h"
#include "base/forked.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/need.h"
#include "base/sized.h"

#include <assert.h>

static int
check_id(const char *what, const char *id, size_t max, bool ascii, struct slu_err *err)
{
	const size_t n = id ? strnlen(id, max + 1) : 0;

	if (n > max)
		return slu_fail(err, SLU_EINVAL, "invalid %s; expected at most %zu bytes", what,
				max);
	for (size_t i = 0; i < n; i++) {
		const unsigned char c = (unsigned char)id[i];

		if (c < 0x20 || c == 0x7f || (ascii && c > 0x7f))
			return slu_fail(err, SLU_EINVAL,
					"invalid %s: byte %zu is not printable", what, i + 1);
	}
	return 0;
}

static int
check_job(const struct slu_pqueue *q, const struct slu_job *job, uint32_t *label,
	  struct slu_err *err)
{
	char known[120];
	int rc;

	*label = labels_find(&q->labels, job->priority);
	if (*label == LABELS_NONE) {
		labels_list(&q->labels, known, sizeof known);
		return slu_fail(err, SLU_EINVAL,
				"unknown priority \"%.40s\"; expected %s",
				job->priority, known);
	}
	if (job->delay < 0)
		return slu_fail(err, SLU_EINVAL, "invalid delay; expected 0 or more");
	rc = check_id("object id", job->object_id, SLU_OBJECT_ID_MAX, false, err);
	if (!rc)
		rc = check_id("correlation id", job->correlation_id,
			      SLU_CORRELATION_MAX, true, err);
	return rc;
}

/* Both ids in one block; NULL if there are none. */
static int
copy_ids(const struct slu_job *job, char **strings, struct slu_err *err)
{
	const char *object_id = job->object_id ? job->object_id : "";
	const char *correlation_id = job->correlation_id ? job->correlation_id : "";
	const size_t n = strlen(object_id) + 1, m = strlen(correlation_id) + 1;

	*strings = NULL;
	if (n + m == 2)
		return 0;
	*strings = mem_alloc(n + m);
	if (!*strings)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	memcpy(*strings, object_id, n);
	memcpy(*strings + n, correlation_id, m);
	return 0;
}

/* How full the queue is, for an error text that is written without the lock. */
struct fill {
	uint32_t length;
	uint32_t capacity;
};

/* Returns whether a job may be added. *fill: the numbers of the last check. */
static int
authorize(struct slu_pqueue *q, bool scheduled, struct fill *fill)
{
	if (q->phase != OPEN)
		return SLU_ECLOSED;
	*fill = (struct fill){ q->queue.held, q->max_held };
	if (fill->length >= fill->capacity)
		return SLU_EQFULL;
	*fill = (struct fill){ q->queue.timed.n, q->max_scheduled };
	if (scheduled && fill->length >= fill->capacity)
		return SLU_EQFULL;
	return 0;
}

/* PQUEUE-2: an item that is due before all others dismisses the sentry. */
static void
check_sentry(struct slu_pqueue *q, uint32_t handle)
{
	if (queue_first_timed(&q->queue) == handle)
		q->sentry = 0;
}

static int
put_item(struct slu_pqueue *q, struct pqueue_item *it, slu_time delay, slu_time now)
{
	const uint32_t handle = slab_new(&q->items);
	int rc;

	if (handle == SLAB_NONE)
		return SLU_ENOMEM;
	it->enqueued = now;
	it->q.due = time_add(now, delay);
	it->q.seq = q->last_seq + 1;
	*pqueue_item(q, handle) = *it;
	rc = queue_put(&q->queue, handle, now);
	if (rc) {
		slab_free(&q->items, handle);
		return rc;
	}
	q->last_seq++;
	q->enqueued++;
	check_sentry(q, handle);
	return 0;
}

static int
put_job(struct slu_pqueue *q, struct pqueue_item *it, slu_time delay, struct fill *fill)
{
	struct notes notes;
	slu_time now;
	int rc;

	pqueue_lock(q, &notes);
	if (delay > 0 && q->queue.timed.n >= q->max_scheduled)
		now = pqueue_promote(q, &notes); /* some may be due by now */
	else
		now = pqueue_now(q);
	rc = authorize(q, delay > 0, fill);
	if (rc)
		q->refused++;
	else
		rc = put_item(q, it, delay, now);
	pqueue_unlock(q, &notes);
	return rc;
}

static int
explain(int rc, const struct fill *fill, struct slu_err *err)
{
	if (rc == SLU_ECLOSED)
		return slu_fail(err, SLU_ECLOSED, "the queue is stopped");
	if (rc == SLU_ENOMEM)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	slu_fail(err, SLU_EQFULL, "the queue is full: %u of %u jobs", fill->length,
		 fill->capacity);
	if (err) {
		err->length = fill->length;
		err->capacity = fill->capacity;
	}
	return rc;
}

int
slu_pqueue_enqueue(struct slu_pqueue *q, const struct slu_job *given, uint64_t *seq,
		   struct slu_err *err)
{
	NEED(q, err);
	NEED_AS(given, "job", err);
	NEED_OURS(q, err);

	struct slu_job room;
	const struct slu_job *job = SIZED(slu_job, given, &room, err);
	struct pqueue_item it = { 0 };
	struct fill fill;
	int rc;

	if (!job)
		return SLU_EINVAL;
	it.data = job->data;
	rc = check_job(q, job, &it.label, err);
	if (!rc)
		rc = copy_ids(job, &it.strings, err);
	if (rc)
		return rc;
	it.q.prio = q->labels.rows[it.label].value;
	rc = put_job(q, &it, job->delay, &fill);
	if (rc) {
		mem_free(it.strings);
		return explain(rc, &fill, err);
	}
	if (seq)
		*seq = it.q.seq;
	if (log_on(q->log, SLU_LOG_DEBUG))
		pqueue_log_job(q, job->delay ? "job scheduled" : "job enqueued",
			       job->object_id, job->correlation_id,
			       q->labels.rows[it.label].name, it.q.seq, 0);
	return 0;
}

static slu_time
to_wall(slu_time mono, slu_time offset)
{
	if (offset < 0)
		return mono == SLU_NEVER ? SLU_NEVER : mono + offset;
	return time_add(mono, offset);
}

static enum pqueue_leave
leave_of(const struct pqueue_waiter *w)
{
	return w ? (enum pqueue_leave)w->leave : PQUEUE_STAY;
}

/* Why a consumer that finds no ready job must leave, or 0. */
static int
reason_to_go(const struct slu_pqueue *q, const struct pqueue_waiter *w)
{
	const enum pqueue_leave leave = leave_of(w);

	if (q->phase != OPEN && pqueue_is_drained(q, q->phase))
		return SLU_ECLOSED;
	if (leave == PQUEUE_LEAVE_WHEN_IDLE)
		return SLU_ECANCELED;
	if (leave == PQUEUE_LEAVE_WHEN_DRAINED && q->queue.timed.n == 0)
		return SLU_ECANCELED;
	return 0;
}

static void
sleep_until(struct slu_pqueue *q, const struct pqueue_waiter *w, slu_time until)
{
	const bool drains = leave_of(w) == PQUEUE_LEAVE_WHEN_DRAINED;
	const slu_time due = queue_next_due(&q->queue);
	const uint64_t me = ++q->last_sleep;

	if (!q->sentry && q->queue.timed.n > 0) {
		q->sentry = me;
		until = due < until ? due : until;
	}
	q->sleepers++;
	q->drainers += drains;
	clock_wait(q->clock, &q->work, &q->mtx, until);
	q->drainers -= drains;
	q->sleepers--;
	if (q->sentry == me)
		q->sentry = 0;
}

/* Waits for a ready job. *handle: the first one; *now: the present time. */
static int
await(struct slu_pqueue *q, const struct pqueue_waiter *w, slu_time timeout,
      struct notes *notes, slu_time *now, uint32_t *handle)
{
	slu_time deadline = -1;
	int rc;

	for (;;) {
		*now = pqueue_promote(q, notes);
		if (deadline < 0)
			deadline = time_add(*now, timeout > 0 ? timeout : 0);
		if (leave_of(w) == PQUEUE_LEAVE_NOW)
			return SLU_ECANCELED;
		if (q->phase == CLOSED)
			return SLU_ECLOSED;
		*handle = queue_best(&q->queue);
		if (*handle != SLAB_NONE)
			return 0;
		rc = reason_to_go(q, w);
		if (rc)
			return rc;
		if (*now >= deadline)
			return SLU_ETIMEOUT;
		sleep_until(q, w, deadline);
	}
}

void
pqueue_show(const struct slu_pqueue *q, const struct pqueue_item *it, slu_time now,
	    slu_time offset, struct slu_job_item *out)
{
	const char *object_id = it->strings ? it->strings : "";
	const char *correlation_id = it->strings ? pqueue_second(it->strings) : "";

	memcpy(out->object_id, object_id, strlen(object_id) + 1);
	memcpy(out->correlation_id, correlation_id, strlen(correlation_id) + 1);
	out->priority = q->labels.rows[it->label].name;
	out->priority_value = it->q.prio;
	out->enqueued_at = to_wall(it->enqueued, offset);
	out->ready_at = to_wall(it->q.due, offset);
	out->waited = now > it->q.due ? now - it->q.due : 0;
	out->seq = it->q.seq;
	out->attempts = it->attempts;
	out->data = it->data;
	memset(out->reserved, 0, sizeof out->reserved);
}

/* With millions of items the next one is not in the cache. */
static void
fetch_next(const struct slu_pqueue *q)
{
	const uint32_t next = queue_best(&q->queue);

	if (next != SLAB_NONE)
		cpu_prefetch(pqueue_item(q, next));
}

/* Takes the first job for a consumer and copies it. */
static struct pqueue_item
hand_out(struct slu_pqueue *q, uint32_t handle, slu_time now, bool keep)
{
	struct pqueue_item *it = pqueue_item(q, handle);
	struct pqueue_item copy;

	it->attempts++;
	copy = *it;
	queue_take(&q->queue, handle);
	fetch_next(q);
	if (!keep) {
		queue_drop(&q->queue, handle);
		slab_free(&q->items, handle);
	}
	metrics_observe_own(&q->metrics, M_LATENCY, 0, now - copy.q.due);
	return copy;
}

/* Shared by both ways to take a job. handle NULL: the job leaves the queue; otherwise it stays, as
 * running, and *handle is set. */
static int
take(struct slu_pqueue *q, const struct pqueue_waiter *w, slu_time timeout,
     struct slu_job_item *out, uint32_t *handle)
{
	struct pqueue_item it = { 0 };
	struct notes notes;
	slu_time now, offset;
	uint32_t best;
	int rc;

	pqueue_lock(q, &notes);
	rc = await(q, w, timeout, &notes, &now, &best);
	if (!rc)
		it = hand_out(q, best, now, handle != NULL);
	offset = q->wall_offset;
	pqueue_unlock(q, &notes);
	if (rc)
		return rc;

	pqueue_show(q, &it, now, offset, out);
	if (handle)
		*handle = best;
	else
		mem_free(it.strings);
	if (notes.debug)
		pqueue_log_job(q, "job dequeued", out->object_id, out->correlation_id,
			       out->priority, out->seq, out->attempts);
	return 0;
}

int
slu_pqueue_dequeue(struct slu_pqueue *q, slu_time timeout, struct slu_job_item *item)
{
	NEED2(q, item, NULL);
	NEED_OURS(q, NULL);

	return timeout < 0 ? SLU_EINVAL : take(q, NULL, timeout, item, NULL);
}

int
pqueue_take(struct slu_pqueue *q, struct pqueue_waiter *w, slu_time timeout,
	    struct slu_job_item *item, uint32_t *handle)
{
	return take(q, w, timeout, item, handle);
}

void
pqueue_leave(struct slu_pqueue *q, struct pqueue_waiter *w, enum pqueue_leave how)
{
	struct notes notes;

	pqueue_lock(q, &notes);
	w->leave = (int)how;
	pthread_cond_broadcast(&q->work); /* any sleeper may share w */
	pqueue_unlock(q, &notes);
}

void
pqueue_finish(struct slu_pqueue *q, uint32_t handle)
{
	struct notes notes;
	char *strings;

	pqueue_lock(q, &notes);
	assert(pqueue_item(q, handle)->q.place == QUEUE_OUT);
	strings = pqueue_item(q, handle)->strings;
	queue_drop(&q->queue, handle);
	slab_free(&q->items, handle);
	pqueue_unlock(q, &notes);
	mem_free(strings);
}

void
pqueue_put_back(struct slu_pqueue *q, uint32_t handle, slu_time delay, bool spent)
{
	struct notes notes;
	struct pqueue_item *it;
	slu_time now;

	pqueue_lock(q, &notes);
	now = pqueue_now(q);
	it = pqueue_item(q, handle);
	if (!spent)
		it->attempts--;
	queue_wait(&q->queue, handle, time_add(now, delay > 0 ? delay : 0), now);
	check_sentry(q, handle);
	if (notes.debug)
		pqueue_note(q, &notes, delay > 0 ? "job scheduled" : "job enqueued",
			    handle);
	pqueue_unlock(q, &notes);
}

struct clock *
pqueue_clock(const struct slu_pqueue *q)
{
	return q->clock;
}
