/*
 * queue.c - deletes queues, and forgets unused ones.
 *
 *  LEDGERQUEUE-1  A queue is forgotten only if it has no message in any state, no purge that is
 *                 being freed, and no mark, batch or batch number of a move: records of these in
 *                 the log would make the queue again.
 *  LEDGERQUEUE-2  Its policy, spelling, remembered idempotency keys and results go with it.
 *  LEDGERQUEUE-3  A queue that is not deleted is forgotten only if it has none of these either, and
 *                 was not used for limits.idle.
 *  LEDGERQUEUE-4  Its totals are added to the totals of the shard.
 */
#include "core/ledger/ledger_private.h"

#include <assert.h>

/* How many searches for idle queues begin in limits.idle; one at most every LOOK_LEAST, and at least
 * every LOOK_MOST. */
enum {
	LOOKS = 8,
	LOOK_STEP = 256 /* queues for a step of the budget */
};

#define LOOK_LEAST (100 * SLU_MS)
#define LOOK_MOST  SLU_HOUR

/* ---- Checks ---- */

static bool
has_messages(const struct ledger_queue *q)
{
	for (enum msg_state s = MSG_READY; s < MSG_STATES; s++)
		if (q->count[s])
			return true;
	return false;
}

static bool
has_moved(const struct ledger_queue *q)
{
	const struct queue_moves *v = q->moves;

	return v && (v->epoch || v->batch || v->n_given);
}

static int
check(const struct ledger_queue *q)
{
	if (has_moved(q))
		return SLU_ECONFLICT;
	if (has_messages(q))
		return SLU_ENOTEMPTY;
	return q->purging ? SLU_EBUSY : 0;
}

int
ledger_queue_forget(struct ledger *l, uint32_t queue, slu_time now, struct change *out)
{
	const int rc = check(ledger_queue(l, queue));

	*out = ledger_begin(l, rc ? CHANGE_NONE : CHANGE_FORGET, now);
	out->queue = queue;
	return rc;
}

bool
ledger_queue_may_go(const struct ledger *l, uint32_t queue)
{
	return check(ledger_queue(l, queue)) == 0;
}

/* ---- Emptying ---- */

/* A message that a purge leaves, or SLAB_NONE. */
static uint32_t
first_staying(const struct ledger_queue *q)
{
	if (q->leased != SLAB_NONE)
		return q->leased;
	return q->dead.first != SLAB_NONE ? q->dead.first : q->damaged.first;
}

int
ledger_queue_clear(struct ledger *l, uint32_t queue, slu_time now, struct change *out)
{
	const struct ledger_queue *q = ledger_queue(l, queue);
	const uint32_t waiting = q->count[MSG_READY] + q->count[MSG_DELAYED] + q->count[MSG_HELD];
	const uint32_t h = first_staying(q);
	int rc;

	*out = ledger_begin(l, CHANGE_NONE, now);
	if (has_moved(q))
		return SLU_ECONFLICT;
	if (h != SLAB_NONE) {
		*out = ledger_begin_for(l, CHANGE_DONE, h, now);
		return 0;
	}
	if (!waiting || q->purging)
		return 0;
	rc = ledger_purge(l, queue, now, out);
	out->remember = 0;
	return rc;
}

/* ---- Going ---- */

/* Removes a queue from a list that begins at *first and is linked by the member `next`. */
static void
unlink_queue(struct ledger *l, uint32_t *first, size_t next, uint32_t queue)
{
	uint32_t *at = first;

	while (*at != queue)
		at = (uint32_t *)((char *)ledger_queue(l, *at) + next);
	*at = *(uint32_t *)((char *)ledger_queue(l, queue) + next);
}

static void
leave_lists(struct ledger *l, struct ledger_queue *q)
{
	if (q->leaving)
		unlink_queue(l, &l->leaving, offsetof(struct ledger_queue, next_leaving), q->handle);
	if (q->woken)
		unlink_queue(l, &l->woken, offsetof(struct ledger_queue, next_woken), q->handle);
	if (q->weighed)
		unlink_queue(l, &l->weighed, offsetof(struct ledger_queue, next_weighed), q->handle);
	if (q->pos != HEAP_OUT)
		heap_remove(&l->agenda, q->pos);
	if (l->found == q->handle)
		l->found = SLAB_NONE;
	l->rated -= q->policy->max_rate > 0;
}

/* LEDGERQUEUE-2 */
static void
drop_kept(struct ledger *l, struct ledger_queue *q)
{
	uint32_t from = 0;

	idem_drop_all(&l->idem, q->handle, &q->remembered);
	while (q->results > 0)
		ledger_drop(l, results_remove_of(&l->results, q->handle, &from));
}

void
ledger_put_forgotten(struct ledger *l, const struct change *c)
{
	struct ledger_queue *q = ledger_queue(l, c->queue);

	assert(check(q) == 0);
	assert(q->keys[KEYS_PLAIN] == SLAB_NONE && q->keys[KEYS_LINED] == SLAB_NONE);
	drop_kept(l, q);
	leave_lists(l, q);
	ledger_add_totals(&l->forgotten, &q->totals); /* LEDGERQUEUE-4 */
	ledger_queue_release(l, q);
}

/* ---- Idle ones ---- */

void
ledger_queue_use(struct ledger *l, uint32_t queue, slu_time now)
{
	struct ledger_queue *q = ledger_queue(l, queue);

	q->used = now > q->used ? now : q->used;
}

slu_time
ledger_next_look(const struct ledger *l)
{
	if (!l->limits.idle || l->queues.used == 0)
		return SLU_NEVER;
	return l->look == 0 ? l->look_at : 0;
}

/* LEDGERQUEUE-3. Names with a leading dot are reserved. */
static bool
is_idle(const struct ledger *l, const struct ledger_queue *q, slu_time now)
{
	return check(q) == 0 && !q->has_policy && !q->remembered && !q->results &&
	       q->name[0] != '.' && now - q->used >= l->limits.idle;
}

static bool
look_at(struct ledger *l, uint32_t queue, slu_time now, struct change *out)
{
	struct ledger_queue *q = ledger_has_queue(l, queue) ? ledger_queue(l, queue) : NULL;

	if (!q)
		return false;
	if (!q->used)
		q->used = now; /* the last use is unknown */
	return is_idle(l, q, now) && !ledger_queue_forget(l, queue, now, out);
}

bool
ledger_look_for_idle(struct ledger *l, slu_time now, uint32_t *budget, struct change *out)
{
	const slu_time wait = l->limits.idle / LOOKS;

	--*budget;
	for (int n = 0; n < LOOK_STEP && l->look < l->queues.fresh; n++)
		if (look_at(l, l->look++, now, out))
			return true;
	if (l->look < l->queues.fresh)
		return false;
	l->look = 0;
	l->look_at = now + (wait < LOOK_LEAST ? LOOK_LEAST : wait > LOOK_MOST ? LOOK_MOST
									      : wait);
	return false;
}
