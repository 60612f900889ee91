/*
 * ledger_queue.c - queues that go: what holds one back, how it is emptied, when an unused
 * one is forgotten.
 *
 *  Q1  A queue is forgotten only while it has no message in any state, no purge that is
 *      being freed, and no mark, batch or number of a move: all of these are in the log, and
 *      would make it anew.
 *  Q2  What it still has goes with it: policy, spelling, remembered idempotency keys, results.
 *  Q3  By itself it goes only without those, too, and after limits.idle without use.
 *  Q4  Its totals are added to those of the shard.
 */
#include "core/ledger_in.h"

#include "base/mem.h"

#include <assert.h>

/* Idle queues are looked for so often in the time after which they are idle; no more often
 * than LOOK_LEAST, no less than LOOK_MOST. */
enum {
	LOOKS = 8,
	LOOK_STEP = 256 /* queues for a step of the budget */
};

#define LOOK_LEAST (100 * SLU_MS)
#define LOOK_MOST  SLU_HOUR

/* ---- What holds it back ---- */

static bool
has_messages(const struct topic *t)
{
	for (enum msg_state s = MSG_READY; s < MSG_STATES; s++)
		if (t->count[s])
			return true;
	return false;
}

static bool
has_moved(const struct topic *t)
{
	const struct moving *v = t->moving;

	return v && (v->epoch || v->batch || v->n_given);
}

static int
check(const struct topic *t)
{
	if (has_moved(t))
		return SLU_ECONFLICT;
	if (has_messages(t))
		return SLU_ENOTEMPTY;
	return t->purging ? SLU_EBUSY : 0;
}

int
ledger_queue_forget(struct ledger *l, uint32_t queue, slu_time now, struct change *out)
{
	const int rc = check(ledger_topic(l, queue));

	*out = ledger_begin(l, rc ? CHANGE_NONE : CHANGE_FORGET, now);
	out->queue = queue;
	return rc;
}

bool
ledger_queue_may_go(const struct ledger *l, uint32_t queue)
{
	return check(ledger_topic(l, queue)) == 0;
}

/* ---- Emptying ---- */

/* A message that a purge leaves, or SLAB_NONE. */
static uint32_t
first_staying(const struct topic *t)
{
	if (t->leased != SLAB_NONE)
		return t->leased;
	return t->dead.first != SLAB_NONE ? t->dead.first : t->damaged.first;
}

int
ledger_queue_clear(struct ledger *l, uint32_t queue, slu_time now, struct change *out)
{
	const struct topic *t = ledger_topic(l, queue);
	const uint32_t waiting = t->count[MSG_READY] + t->count[MSG_DELAYED] + t->count[MSG_HELD];
	const uint32_t h = first_staying(t);
	int rc;

	*out = ledger_begin(l, CHANGE_NONE, now);
	if (has_moved(t))
		return SLU_ECONFLICT;
	if (h != SLAB_NONE) {
		*out = ledger_begin_for(l, CHANGE_DONE, h, now);
		return 0;
	}
	if (!waiting || t->purging)
		return 0;
	rc = ledger_purge(l, queue, now, out);
	out->remember = 0;
	return rc;
}

/* ---- Going ---- */

/* Out of a list that leads from *first over the member `next`. */
static void
unlink_topic(struct ledger *l, uint32_t *first, size_t next, uint32_t topic)
{
	uint32_t *at = first;

	while (*at != topic)
		at = (uint32_t *)((char *)ledger_topic(l, *at) + next);
	*at = *(uint32_t *)((char *)ledger_topic(l, topic) + next);
}

static void
leave_lists(struct ledger *l, struct topic *t)
{
	if (t->woken)
		unlink_topic(l, &l->woken, offsetof(struct topic, next_woken), t->handle);
	if (t->weighed)
		unlink_topic(l, &l->weighed, offsetof(struct topic, next_weighed), t->handle);
	if (t->pos != HEAP_OUT)
		heap_remove(&l->agenda, t->pos);
	if (l->found == t->handle)
		l->found = SLAB_NONE;
	l->rated -= t->policy.max_rate > 0;
}

/* Q2 */
static void
drop_kept(struct ledger *l, struct topic *t)
{
	uint32_t from = 0;

	idem_drop_all(&l->idem, t->handle, &t->remembered);
	while (t->results > 0)
		ledger_drop(l, results_remove_of(&l->results, t->handle, &from));
}

/* Q4 */
static void
add_totals(struct ledger_totals *sum, const struct ledger_totals *one)
{
	sum->accepted += one->accepted;
	sum->delivered += one->delivered;
	sum->done += one->done;
	sum->failed += one->failed;
	sum->died += one->died;
}

void
ledger_put_forgotten(struct ledger *l, const struct change *c)
{
	struct topic *t = ledger_topic(l, c->queue);

	assert(check(t) == 0);
	assert(t->keys[KEYS_PLAIN] == SLAB_NONE && t->keys[KEYS_LINED] == SLAB_NONE);
	drop_kept(l, t);
	leave_lists(l, t);
	add_totals(&l->forgotten, &t->totals);
	ledger_topic_release(l, t);
}

/* ---- Idle ones ---- */

void
ledger_queue_use(struct ledger *l, uint32_t queue, slu_time now)
{
	struct topic *t = ledger_topic(l, queue);

	t->used = now > t->used ? now : t->used;
}

slu_time
ledger_next_look(const struct ledger *l)
{
	if (!l->limits.idle || l->topics.used == 0)
		return SLU_NEVER;
	return l->look == 0 ? l->look_at : 0;
}

/* Q3. A leading dot is ours. */
static bool
is_idle(const struct ledger *l, const struct topic *t, slu_time now)
{
	return check(t) == 0 && !t->has_policy && !t->remembered && !t->results &&
	       t->name[0] != '.' && now - t->used >= l->limits.idle;
}

static bool
look_at(struct ledger *l, uint32_t topic, slu_time now, struct change *out)
{
	struct topic *t = ledger_has_topic(l, topic) ? ledger_topic(l, topic) : NULL;

	if (!t)
		return false;
	if (!t->used)
		t->used = now; /* nobody has said when it was */
	return is_idle(l, t, now) && !ledger_queue_forget(l, topic, now, out);
}

bool
ledger_look_for_idle(struct ledger *l, slu_time now, uint32_t *budget, struct change *out)
{
	const slu_time wait = l->limits.idle / LOOKS;

	--*budget;
	for (int n = 0; n < LOOK_STEP && l->look < l->topics.fresh; n++)
		if (look_at(l, l->look++, now, out))
			return true;
	if (l->look < l->topics.fresh)
		return false;
	l->look = 0;
	l->look_at = now + (wait < LOOK_LEAST ? LOOK_LEAST : wait > LOOK_MOST ? LOOK_MOST
									      : wait);
	return false;
}
