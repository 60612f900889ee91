/*
 * state.c - changes the state of messages, and frees them.
 */
#include "core/ledger/ledger_kind.h"
#include "core/ledger/ledger_private.h"

#include "core/ledger/letters.h"

#include <assert.h>

/* Time to live */

slu_time
ledger_expires(const struct ledger *l, const struct msg *m)
{
	if (msg_state(m) == MSG_LEASED)
		return ledger_lease(l, m)->expires;
	if (m->flags & MSG_TAKEN)
		return ledger_batch_of(ledger_queue_of(l, m))->items[m->q.pos].expires;
	return m->q.own32 == HEAP_OUT ? SLU_NEVER : node_time(heap_at(&l->ttls, m->q.own32));
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
list_lease(const struct ledger *l, struct ledger_queue *q, uint32_t h)
{
	struct lease *lease = ledger_lease(l, ledger_msg(l, h));

	lease->prev = SLAB_NONE;
	lease->next = q->leased;
	if (lease->next != SLAB_NONE)
		ledger_lease(l, ledger_msg(l, lease->next))->prev = h;
	q->leased = h;
}

static void
unlist_lease(const struct ledger *l, struct ledger_queue *q, uint32_t h)
{
	const struct lease *lease = ledger_lease(l, ledger_msg(l, h));

	if (lease->prev == SLAB_NONE)
		q->leased = lease->next;
	else
		ledger_lease(l, ledger_msg(l, lease->prev))->next = lease->next;
	if (lease->next != SLAB_NONE)
		ledger_lease(l, ledger_msg(l, lease->next))->prev = lease->prev;
}

static void
end_lease(struct ledger *l, struct ledger_queue *q, uint32_t h)
{
	struct msg *m = ledger_msg(l, h);
	const slu_time expires = ledger_lease(l, m)->expires;

	holders_drop(&l->holders, ledger_lease(l, m)->holder);
	unlist_lease(l, q, h);
	if (m->flags & MSG_AT_SPOT)
		ledger_spot_lease(l, q, m, false);
	if (q->policy->concurrency || q->policy->share_concurrency)
		ledger_mark_woken(l, q);
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

/* A key counts its dead and damaged messages. */
static void
count_idle(const struct ledger *l, const struct msg *m, enum msg_state state, uint32_t by)
{
	if (state >= MSG_DEAD && (m->flags & MSG_KEYED))
		ledger_key_of(l, m)->idle += by;
}

void
ledger_heap_enter(struct ledger *l, struct ledger_queue *q, uint32_t h)
{
	const slu_time due = ledger_msg(l, h)->q.due;

	if (q->shares)
		ledger_share_enter(l, q, h);
	else
		queue_wait(&q->heaps, h, due, due);
}

void
ledger_heap_leave(struct ledger *l, struct ledger_queue *q, uint32_t h)
{
	if (q->shares)
		ledger_share_leave(l, q, h);
	else
		queue_take(&q->heaps, h);
}

void
ledger_front_enter(struct ledger *l, struct ledger_queue *q, uint32_t h)
{
	const uint32_t kind = q->kinds ? ledger_kind_of(l, ledger_msg(l, h)) : SLAB_NONE;

	if (kind != SLAB_NONE)
		ledger_kind_enter(l, q, kind, h);
	else
		ledger_heap_enter(l, q, h);
}

void
ledger_front_leave(struct ledger *l, struct ledger_queue *q, uint32_t h)
{
	const uint32_t kind = q->kinds ? ledger_kind_of(l, ledger_msg(l, h)) : SLAB_NONE;

	if (kind != SLAB_NONE)
		ledger_kind_leave(l, q, kind, h);
	else
		ledger_heap_leave(l, q, h);
}

void
ledger_unqueue(struct ledger *l, struct ledger_queue *q, uint32_t h)
{
	const struct msg *m = ledger_msg(l, h);
	const uint32_t strand = q->values ? ledger_strand_of(l, m) : SLAB_NONE;

	if (m->flags & MSG_PARKED)
		ledger_gate_unpark(l, q, h);
	else if (msg_state(m) != MSG_READY)
		queue_take(&q->heaps, h);
	else if (strand != SLAB_NONE)
		ledger_value_leave(l, q, strand, h);
	else
		ledger_front_leave(l, q, h);
}

static void
leave_dead(struct ledger *l, struct ledger_queue *q, uint32_t h)
{
	chain_remove(&q->dead, &l->msgs, h);
	ledger_msg(l, h)->flags &= (uint8_t)~MSG_STAYS;
}

void
ledger_leave(struct ledger *l, struct ledger_queue *q, uint32_t h)
{
	struct msg *m = ledger_msg(l, h);
	const enum msg_state from = msg_state(m);

	assert(!(m->flags & MSG_TAKEN));
	count_idle(l, m, from, UINT32_MAX); /* one less */

	if (from == MSG_READY || from == MSG_DELAYED)
		ledger_unqueue(l, q, h);
	else if (from == MSG_LEASED)
		end_lease(l, q, h);
	else if (from == MSG_HELD)
		ledger_line_remove(l, q, h);
	else if (from == MSG_DEAD)
		leave_dead(l, q, h);
	else if (from == MSG_DAMAGED)
		chain_remove(&q->damaged, &l->msgs, h);
	if (m->more != SLAB_NONE)
		ledger_member_leave(l, q, m);
	assert(q->count[from] > 0);
	q->count[from]--;
	l->count[from]--;
	ledger_weigh(l, q);
}

void
ledger_mark_woken(struct ledger *l, struct ledger_queue *q)
{
	if (q->woken)
		return;
	q->woken = true;
	q->next_woken = l->woken;
	l->woken = q->handle;
}

void
ledger_mark_leaving(struct ledger *l, struct ledger_queue *q)
{
	if (q->leaving || !q->policy->dead_letter_queue[0] || q->dead.first == SLAB_NONE)
		return;
	q->leaving = true;
	q->next_leaving = l->leaving;
	l->leaving = q->handle;
}

uint32_t
ledger_leaving(struct ledger *l, uint32_t queue)
{
	uint32_t *at = queue == SLAB_NONE ? &l->leaving : &ledger_queue(l, queue)->next_leaving;

	while (*at != SLAB_NONE) {
		struct ledger_queue *q = ledger_queue(l, *at);

		if (q->policy->dead_letter_queue[0] && ledger_leaving_first(l, q->handle) != SLAB_NONE)
			return *at;
		q->leaving = false;
		*at = q->next_leaving;
	}
	return SLAB_NONE;
}

/* Messages that stay are before those that leave: a message that cannot leave now stops the others behind it. */
uint32_t
ledger_leaving_first(const struct ledger *l, uint32_t queue)
{
	const struct chain *const dead = &ledger_queue(l, queue)->dead;
	uint32_t h = dead->first, before = dead->last;

	if (h == SLAB_NONE || !(ledger_msg(l, h)->flags & MSG_STAYS))
		return h;
	for (h = SLAB_NONE; !(ledger_msg(l, before)->flags & MSG_STAYS); before = ledger_msg(l, before)->link)
		h = before;
	return h;
}

void
ledger_stay(struct ledger *l, uint32_t msg)
{
	ledger_msg(l, msg)->flags |= MSG_STAYS;
}

uint32_t
ledger_woken(struct ledger *l)
{
	const uint32_t queue = l->woken;

	if (queue != SLAB_NONE) {
		l->woken = ledger_queue(l, queue)->next_woken;
		ledger_queue(l, queue)->woken = false;
	}
	return queue;
}

/* The message still has the state it left. Every change of state goes through here. */
static void
set_state(struct ledger *l, struct ledger_queue *q, struct msg *m, enum msg_state to)
{
	assert(msg_may_change(msg_state(m), to));
	m->q.own8 = (uint8_t)to;
	q->count[to]++;
	l->count[to]++;
	count_idle(l, m, to, 1);
	if (m->more != SLAB_NONE && ledger_is_purgeable(to))
		ledger_member_enter(l, q, m);
	ledger_weigh(l, q);
}

void
ledger_make_ready(struct ledger *l, struct ledger_queue *q, uint32_t h)
{
	const uint32_t strand = q->values ? ledger_strand_of(l, ledger_msg(l, h)) : SLAB_NONE;

	if (q->gates && ledger_gate_parks(l, q, h))
		return;
	if (strand != SLAB_NONE)
		ledger_value_enter(l, q, strand, h);
	else
		ledger_front_enter(l, q, h);
	ledger_mark_woken(l, q);
}

void
ledger_enter(struct ledger *l, struct ledger_queue *q, uint32_t h, enum msg_state to)
{
	struct msg *m = ledger_msg(l, h);
	const slu_time due = m->q.due;

	set_state(l, q, m, to);
	if (to == MSG_READY) {
		ledger_make_ready(l, q, h);
	} else if (to == MSG_DELAYED) {
		queue_wait(&q->heaps, h, due, due - 1);
		ledger_wake(l, q, due);
	} else if (to == MSG_HELD) {
		ledger_line_insert(l, q, h);
	} else if (to == MSG_DEAD) {
		chain_insert(&q->dead, &l->msgs, h);
		ledger_mark_leaving(l, q);
		ledger_wake(l, q, due); /* retention and maximum */
	} else {
		assert(to == MSG_DAMAGED);
		chain_insert(&q->damaged, &l->msgs, h);
	}
}

void
ledger_enter_lease(struct ledger *l, struct ledger_queue *q, uint32_t h,
		   const struct lease *lease, slu_time until)
{
	struct msg *m = ledger_msg(l, h);

	if (m->q.own32 != HEAP_OUT)
		heap_remove(&l->ttls, m->q.own32);
	set_state(l, q, m, MSG_LEASED);
	m->link = slab_new(&l->leases);
	assert(m->link != SLAB_NONE); /* reserved */
	*ledger_lease(l, m) = *lease;
	holders_use(&l->holders, lease->holder);
	list_lease(l, q, h);
	if (m->flags & MSG_AT_SPOT)
		ledger_spot_lease(l, q, m, true);
	push_deadline(l, h, until);
}

/* LEDGER-4: returns whether the queue has due messages that are not ready yet. */
static bool
is_behind(const struct ledger_queue *q, slu_time now)
{
	return queue_next_due(&q->heaps) <= now;
}

void
ledger_settle(struct ledger *l, struct ledger_queue *q, uint32_t h, slu_time now)
{
	const struct msg *m = ledger_msg(l, h);
	const bool joins = (m->flags & MSG_KEYED) && ledger_key_of(l, m)->head != h;

	if (m->q.due > now || (joins && is_behind(q, now)))
		ledger_enter(l, q, h, MSG_DELAYED);
	else if (joins)
		ledger_join(l, q, h);
	else
		ledger_enter(l, q, h, MSG_READY);
}

uint32_t
ledger_promote(struct ledger *l, struct ledger_queue *q, slu_time now, uint32_t max)
{
	uint32_t n = 0;

	while (n < max && q->heaps.timed.n > 0 && queue_next_due(&q->heaps) <= now) {
		const uint32_t h = queue_first_timed(&q->heaps);
		const struct msg *m = ledger_msg(l, h);

		ledger_leave(l, q, h);
		if ((m->flags & MSG_KEYED) && ledger_key_of(l, m)->head != h)
			ledger_join(l, q, h);
		else
			ledger_enter(l, q, h, MSG_READY);
		n++;
	}
	return n;
}

void
ledger_free_key(struct ledger *l, struct msg *m)
{
	struct more *const more = ledger_more(l, m);

	if (more->idem != SLAB_NONE)
		idem_drop(&l->idem, more->idem);
	more->idem = SLAB_NONE;
	m->flags |= MSG_FREED;
}

uint32_t
ledger_key_known(const struct ledger *l, struct idem_mark mark, slu_time now)
{
	const uint32_t known = idem_find(&l->idem, mark, now);
	const struct terms *t;
	uint32_t h;

	if (known == SLAB_NONE || idem_until(&l->idem, known))
		return known;
	h = ledger_find_raw(l, idem_id(&l->idem, known));
	if (h == SLAB_NONE)
		return known;
	t = ledger_terms(l, ledger_msg(l, h));
	if (t->unique && t->unique != UNIQUE_TIME) /* of a purged message that is not freed yet */
		return ledger_is_purged(l, ledger_queue_of(l, ledger_msg(l, h)), ledger_msg(l, h), h) ? SLAB_NONE : known;
	return terms_unique_over(t, now) ? SLAB_NONE : known;
}

/* Until when the key is remembered. A purge says the same of all messages. */
static slu_time
remember_until(const struct ledger *l, const struct msg *m, slu_time remember)
{
	const struct terms *const t = ledger_terms(l, m);

	if (!remember || !t->unique)
		return remember;
	return t->unique_end > l->now ? t->unique_end : 0;
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
	if (more->keep & MORE_TERMS)
		slab_free(&l->terms, more->keep & ~MORE_TERMS);
	slab_free(&l->more, m->more);
}

void
ledger_forget(struct ledger *l, uint32_t h, slu_time remember)
{
	struct msg *m = ledger_msg(l, h);
	struct ledger_queue *q = ledger_queue_of(l, m);

	l->placed = 0;
	if (l->conf.forgot)
		l->conf.forgot(l->conf.forgot_arg, m->id);
	ledger_ttl_stop(l, h);
	ledger_space_add(l, q->space, -1ull, -ledger_record_size(l, m->where), 0);
	ledger_drop(l, m->where);
	if (m->more != SLAB_NONE)
		forget_more(l, m, remember_until(l, m, remember));
	if (m->flags & MSG_KEYED)
		ledger_key_detach(l, q, ledger_key_handle(l, m));
	if (m->flags & MSG_AT_SPOT)
		ledger_spot_detach(l, q, m);
	ledger_unlist(l, h);
	m->q.own8 = MSG_NONE;
	slab_free(&l->msgs, h);
	if (q->shares)
		ledger_share_rest(l, q);
}
