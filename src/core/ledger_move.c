/*
 * ledger_move.c - messages go from state to state, and out.
 */
#include "core/ledger_in.h"

#include <assert.h>

/* Time to live */

slu_time
ledger_expires(const struct ledger *l, const struct msg *m)
{
	if (msg_state(m) == MSG_LEASED)
		return ledger_lease(l, m)->expires;
	if (m->flags & MSG_TAKEN)
		return ledger_batch_of(ledger_topic_of(l, m))->items[m->q.pos].expires;
	return m->q.own32 == HEAP_OUT ? SLU_NEVER : node_time(&l->ttls, m->q.own32);
}

static void
push_ttl(struct ledger *l, uint32_t h, slu_time expires)
{
	const struct rank rank = { .b = rank_time(expires), .c = ledger_msg(l, h)->q.seq };

	if (expires != SLU_NEVER)
		heap_push(&l->ttls, rank, h);
}

void
ledger_ttl_start(struct ledger *l, uint32_t h, slu_time expires)
{
	ledger_msg(l, h)->q.own32 = HEAP_OUT;
	l->with_ttl += expires != SLU_NEVER;
	push_ttl(l, h, expires);
}

void
ledger_ttl_stop(struct ledger *l, uint32_t h)
{
	const uint32_t pos = ledger_msg(l, h)->q.own32;

	if (pos == HEAP_OUT)
		return;
	heap_remove(&l->ttls, pos);
	l->with_ttl--;
}

/* Leases */

static void
list_lease(const struct ledger *l, struct topic *t, uint32_t h)
{
	struct lease *lease = ledger_lease(l, ledger_msg(l, h));

	lease->prev = SLAB_NONE;
	lease->next = t->leased;
	if (lease->next != SLAB_NONE)
		ledger_lease(l, ledger_msg(l, lease->next))->prev = h;
	t->leased = h;
}

static void
unlist_lease(const struct ledger *l, struct topic *t, uint32_t h)
{
	const struct lease *lease = ledger_lease(l, ledger_msg(l, h));

	if (lease->prev == SLAB_NONE)
		t->leased = lease->next;
	else
		ledger_lease(l, ledger_msg(l, lease->prev))->next = lease->next;
	if (lease->next != SLAB_NONE)
		ledger_lease(l, ledger_msg(l, lease->next))->prev = lease->prev;
}

static void
end_lease(struct ledger *l, struct topic *t, uint32_t h)
{
	struct msg *m = ledger_msg(l, h);
	const slu_time expires = ledger_lease(l, m)->expires;

	owners_drop(&l->owners, ledger_lease(l, m)->owner);
	unlist_lease(l, t, h);
	heap_remove(&l->deadlines, m->q.pos);
	slab_free(&l->leases, m->link);
	m->link = SLAB_NONE;
	push_ttl(l, h, expires);
}

static void
push_deadline(struct ledger *l, uint32_t h, slu_time until)
{
	const struct rank rank = { .b = rank_time(until), .c = ledger_msg(l, h)->q.seq };

	heap_push(&l->deadlines, rank, h);
}

void
ledger_set_deadline(struct ledger *l, uint32_t h, slu_time until)
{
	heap_remove(&l->deadlines, ledger_msg(l, h)->q.pos);
	push_deadline(l, h, until);
}

/* States */

/* A key knows how many of its messages go nowhere by themselves. */
static void
count_idle(const struct ledger *l, const struct msg *m, enum msg_state state, uint32_t by)
{
	if (state >= MSG_DEAD && (m->flags & MSG_KEYED))
		ledger_key_of(l, m)->idle += by;
}

void
ledger_leave(struct ledger *l, struct topic *t, uint32_t h)
{
	struct msg *m = ledger_msg(l, h);
	const enum msg_state from = msg_state(m);

	assert(!(m->flags & MSG_TAKEN));
	count_idle(l, m, from, UINT32_MAX); /* one less */

	if (from == MSG_READY || from == MSG_DELAYED)
		queue_take(&t->queue, h);
	else if (from == MSG_LEASED)
		end_lease(l, t, h);
	else if (from == MSG_HELD)
		ledger_line_remove(l, t, h);
	else if (from == MSG_DEAD)
		chain_remove(&t->dead, &l->msgs, h);
	else if (from == MSG_DAMAGED)
		chain_remove(&t->damaged, &l->msgs, h);
	assert(t->count[from] > 0);
	t->count[from]--;
	ledger_weigh(l, t);
}

void
ledger_mark_woken(struct ledger *l, struct topic *t)
{
	if (t->woken)
		return;
	t->woken = true;
	t->next_woken = l->woken;
	l->woken = t->handle;
}

uint32_t
ledger_woken(struct ledger *l)
{
	const uint32_t queue = l->woken;

	if (queue != SLAB_NONE) {
		l->woken = ledger_topic(l, queue)->next_woken;
		ledger_topic(l, queue)->woken = false;
	}
	return queue;
}

/* The state is still the one that was left: every move goes through here. */
static void
set_state(struct ledger *l, struct topic *t, struct msg *m, enum msg_state to)
{
	assert(msg_may_move(msg_state(m), to));
	m->q.own8 = (uint8_t)to;
	t->count[to]++;
	count_idle(l, m, to, 1);
	ledger_weigh(l, t);
}

void
ledger_enter(struct ledger *l, struct topic *t, uint32_t h, enum msg_state to)
{
	struct msg *m = ledger_msg(l, h);
	const slu_time due = m->q.due;

	set_state(l, t, m, to);
	if (to == MSG_READY) {
		queue_wait(&t->queue, h, due, due);
		ledger_mark_woken(l, t);
	} else if (to == MSG_DELAYED) {
		queue_wait(&t->queue, h, due, due - 1);
		ledger_wake(l, t, due);
	} else if (to == MSG_HELD) {
		ledger_line_insert(l, t, h);
	} else if (to == MSG_DEAD) {
		chain_insert(&t->dead, &l->msgs, h);
		ledger_wake(l, t, due); /* retention and maximum */
	} else {
		assert(to == MSG_DAMAGED);
		chain_insert(&t->damaged, &l->msgs, h);
	}
}

void
ledger_enter_lease(struct ledger *l, struct topic *t, uint32_t h,
		   const struct lease *lease, slu_time until)
{
	struct msg *m = ledger_msg(l, h);

	if (m->q.own32 != HEAP_OUT)
		heap_remove(&l->ttls, m->q.own32);
	set_state(l, t, m, MSG_LEASED);
	m->link = slab_new(&l->leases);
	assert(m->link != SLAB_NONE); /* reserved */
	*ledger_lease(l, m) = *lease;
	owners_use(&l->owners, lease->owner);
	list_lease(l, t, h);
	push_deadline(l, h, until);
}

/* L4: something of the queue is due and has not been moved yet. */
static bool
is_behind(const struct topic *t, slu_time now)
{
	return queue_next_due(&t->queue) <= now;
}

void
ledger_settle(struct ledger *l, struct topic *t, uint32_t h, slu_time now)
{
	const struct msg *m = ledger_msg(l, h);
	const bool joins = (m->flags & MSG_KEYED) && ledger_key_of(l, m)->head != h;

	if (m->q.due > now || (joins && is_behind(t, now)))
		ledger_enter(l, t, h, MSG_DELAYED);
	else if (joins)
		ledger_join(l, t, h);
	else
		ledger_enter(l, t, h, MSG_READY);
}

uint32_t
ledger_promote(struct ledger *l, struct topic *t, slu_time now, uint32_t max)
{
	uint32_t n = 0;

	while (n < max && t->queue.timed.n > 0 && queue_next_due(&t->queue) <= now) {
		const uint32_t h = queue_first_timed(&t->queue);
		const struct msg *m = ledger_msg(l, h);

		ledger_leave(l, t, h);
		if ((m->flags & MSG_KEYED) && ledger_key_of(l, m)->head != h)
			ledger_join(l, t, h);
		else
			ledger_enter(l, t, h, MSG_READY);
		n++;
	}
	return n;
}

static void
forget_more(struct ledger *l, const struct msg *m, slu_time remember)
{
	const struct more *more = ledger_more(l, m);

	if (more->idem != SLAB_NONE && remember)
		idem_end(&l->idem, more->idem, remember, l->now);
	else if (more->idem != SLAB_NONE)
		idem_drop(&l->idem, more->idem);
	ledger_drop(l, more->error);
	slab_free(&l->more, m->more);
}

void
ledger_forget(struct ledger *l, uint32_t h, slu_time remember)
{
	struct msg *m = ledger_msg(l, h);
	struct topic *t = ledger_topic_of(l, m);

	if (l->conf.forgot)
		l->conf.forgot(l->conf.forgot_arg, m->id);
	ledger_ttl_stop(l, h);
	ledger_space_add(l, t->space, -1ull, -ledger_record_size(l, m->where), 0);
	ledger_drop(l, m->where);
	if (m->more != SLAB_NONE)
		forget_more(l, m, remember);
	if (m->flags & MSG_KEYED)
		ledger_key_detach(l, t, m->home);
	ledger_unlist(l, h);
	m->q.own8 = MSG_NONE;
	slab_free(&l->msgs, h);
}
