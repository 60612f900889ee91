/*
 * trend.c - the trend of queues that moved, and of the whole shard (core/queue/trend.h).
 *
 *      a change of a queue ──> ledger_trend_look: steps that are over end, before the change
 *                         └──> ledger_trend_note: what the change is, in the open step
 *
 *  LEDGERTREND-1  A queue gets a trend at its first change after the start. At most limits.trends queues have
 *                   one. If all are in use, a new one takes the place of a queue that has not moved for an hour;
 *                   otherwise the queue has none, and tries again in the next step.
 *  LEDGERTREND-2  The list of trends begins with the queue that moved last. A queue moves to the front once in
 *                   a step.
 *  LEDGERTREND-3  Without memory for it a queue has no trend. No change fails for that.
 *  LEDGERTREND-4  A replay leaves trends alone: they begin at the start.
 */
#include "core/ledger/ledger_private.h"

#define IDLE SLU_HOUR

/* ---- The list ---- */

static void
unlist(struct ledger *l, struct ledger_queue *q)
{
	const uint32_t prev = q->trend_prev, next = q->trend_next;

	if (prev == SLAB_NONE)
		l->trend_first = next;
	else
		ledger_queue(l, prev)->trend_next = next;
	if (next == SLAB_NONE)
		l->trend_last = prev;
	else
		ledger_queue(l, next)->trend_prev = prev;
}

static void
list_first(struct ledger *l, struct ledger_queue *q)
{
	q->trend_prev = SLAB_NONE;
	q->trend_next = l->trend_first;
	if (l->trend_first == SLAB_NONE)
		l->trend_last = q->handle;
	else
		ledger_queue(l, l->trend_first)->trend_prev = q->handle;
	l->trend_first = q->handle;
}

void
ledger_trend_drop(struct ledger *l, struct ledger_queue *q)
{
	if (!q->trend)
		return;
	unlist(l, q);
	trend_free(q->trend);
	q->trend = NULL;
	q->trend_look = 0;
	l->n_trends--;
}

/* Drops the trends of queues that have not moved for an hour, at most max of them. */
static void
drop_idle(struct ledger *l, slu_time now, unsigned max)
{
	while (max-- > 0 && l->trend_last != SLAB_NONE) {
		struct ledger_queue *q = ledger_queue(l, l->trend_last);

		if (now - q->trend_moved < IDLE)
			return;
		ledger_trend_drop(l, q);
	}
}

static void
make(struct ledger *l, struct ledger_queue *q, slu_time now)
{
	const slu_time step = trend_spans[TREND_10S].length;

	drop_idle(l, now, 1);
	if (l->n_trends < l->limits.trends)
		q->trend = trend_new(TREND_OF_QUEUE, now);
	q->trend_look = q->trend ? q->trend->next : (now / step + 1) * step;
	if (!q->trend)
		return;
	q->trend_moved = now;
	list_first(l, q);
	l->n_trends++;
}

/* ---- Steps ---- */

static void
levels(const uint32_t count[static MSG_STATES], uint64_t out[static TREND_LEVELS])
{
	out[TREND_READY] = count[MSG_READY];
	out[TREND_DELAYED] = count[MSG_DELAYED];
	out[TREND_LEASED] = count[MSG_LEASED];
	out[TREND_HELD] = count[MSG_HELD];
	out[TREND_DEAD] = count[MSG_DEAD];
}

static void
end_steps(struct ledger *l, struct ledger_queue *q, slu_time now)
{
	struct trend_now at = { .oldest = ledger_oldest(l, q->handle) };

	levels(q->count, at.level);
	trend_to(q->trend, now, &at);
	q->trend_look = q->trend->next;
}

/* The oldest ready message of the queues with a trend: a queue without one has not moved for an hour. */
static slu_time
oldest_of_all(const struct ledger *l)
{
	slu_time oldest = SLU_NEVER;

	for (uint32_t h = l->trend_first; h != SLAB_NONE; h = ledger_queue(l, h)->trend_next) {
		const slu_time one = ledger_oldest(l, h);

		oldest = one < oldest ? one : oldest;
	}
	return oldest;
}

static void
end_sum_steps(struct ledger *l, slu_time now)
{
	struct trend_now at = { .oldest = SLU_NEVER };

	if (!l->sum)
		l->sum = trend_new(TREND_OF_SHARD, now);
	if (!l->sum || now < l->sum->next)
		return;
	at.oldest = oldest_of_all(l);
	levels(l->count, at.level);
	trend_to(l->sum, now, &at);
	drop_idle(l, now, UINT8_MAX);
}

void
ledger_trend_step(struct ledger *l, struct ledger_queue *q, slu_time now)
{
	if (!l->limits.trends || l->replaying)
		return;
	end_sum_steps(l, now);
	if (q->trend && now - q->trend_moved >= IDLE)
		ledger_trend_drop(l, q);
	if (q->trend)
		end_steps(l, q, now);
	else
		make(l, q, now);
}

/* ---- Events ---- */

/* LEDGERTREND-2 */
static void
mark_moved(struct ledger *l, struct ledger_queue *q, slu_time now)
{
	if (!q->trend)
		return;
	q->trend_moved = now;
	if (q->trend->moved)
		return;
	q->trend->moved = true;
	unlist(l, q);
	list_first(l, q);
}

static void
count(struct ledger *l, struct ledger_queue *q, enum trend_event what)
{
	if (q->trend)
		trend_count(q->trend, what);
	if (l->sum)
		trend_count(l->sum, what);
}

static void
count_run(struct ledger *l, struct ledger_queue *q, slu_time time)
{
	if (q->trend)
		trend_run(q->trend, time);
	if (l->sum)
		trend_run(l->sum, time);
}

static void
count_wait(struct ledger *l, struct ledger_queue *q, slu_time time)
{
	if (q->trend)
		trend_wait(q->trend, time);
	if (l->sum)
		trend_wait(l->sum, time);
}

void
ledger_trend_in(struct ledger *l, struct ledger_queue *q, slu_time now)
{
	if (l->replaying)
		return;
	mark_moved(l, q, now);
	count(l, q, TREND_IN);
}

void
ledger_trend_note(struct ledger *l, struct ledger_queue *q, const struct msg *m, const struct change *c)
{
	const bool leased = msg_state(m) == MSG_LEASED;
	const bool failed = (c->kind == CHANGE_RETRY || c->kind == CHANGE_DIE) && c->failed;
	const bool done = c->kind == CHANGE_DONE && leased;

	if (l->replaying)
		return;
	mark_moved(l, q, c->at);
	if (c->kind == CHANGE_CLAIM)
		count_wait(l, q, c->at - m->q.due);
	if (done || failed)
		count(l, q, done ? TREND_DONE : TREND_FAILED);
	if ((done || failed) && leased)
		count_run(l, q, c->at - ledger_lease(l, m)->claimed);
}

/* ---- Reading ---- */

bool
ledger_trend(struct ledger *l, uint32_t queue, slu_time now, enum trend_scale scale, struct trend_row *rows,
	     uint32_t n, slu_time *end)
{
	struct ledger_queue *const q = queue == SLAB_NONE ? NULL : ledger_queue(l, queue);
	const struct trend *h;

	if (!l->limits.trends)
		return false;
	end_sum_steps(l, now);
	if (q && q->trend && now - q->trend_moved >= IDLE)
		ledger_trend_drop(l, q);
	if (q && q->trend)
		end_steps(l, q, now);
	h = q ? q->trend : l->sum;
	if (!h || scale >= h->scales)
		return false;
	trend_read(h, scale, rows, n, end);
	return true;
}
