/*
 * purge.c - removes the messages of a queue at once, and frees their memory in steps
 * (LEDGERHEAP-4).
 *
 * First the sequences: held messages are freed key by key, so that only new messages are behind
 * a head. Then the old heaps: freeing a head lets the next message of its key follow.
 */
#include "core/ledger/ledger_kind.h"
#include "core/ledger/ledger_private.h"

#include <assert.h>

bool
ledger_is_purged(const struct ledger *l, const struct ledger_queue *q, const struct msg *m, uint32_t h)
{
	if (!q->purging)
		return false;
	if (m->flags & MSG_PARKED)
		return ledger_gate_is_trash(l, q, m);
	if (msg_state(m) == MSG_READY && q->values && ledger_value_is_trash(l, q, h))
		return true;
	if (msg_state(m) == MSG_READY && q->kinds && ledger_kind_is_trash(l, q, h))
		return true;
	if (msg_state(m) == MSG_READY && ledger_flow_of(l, m) != SHARES_PLAIN)
		return ledger_share_is_trash(l, q, h);
	if (msg_state(m) == MSG_READY)
		return queue_has_ready(&q->trash, h);
	if (msg_state(m) == MSG_DELAYED)
		return heap_has(&q->trash.timed, m->q.pos, h);
	/* A message that was leased at the purge was a head, and is never held later. */
	return msg_state(m) == MSG_HELD && m->q.seq <= q->purged;
}

/* The messages that a purge leaves. */
static uint32_t
staying(const struct ledger_queue *q)
{
	return q->count[MSG_LEASED] + q->count[MSG_DEAD] + q->count[MSG_DAMAGED];
}

int
ledger_purge_reserve(struct ledger *l, struct ledger_queue *q)
{
	const uint32_t stay = staying(q);
	int rc;

	rc = heap_reserve(&q->spare.ready, stay);
	if (!rc)
		rc = heap_reserve(&q->spare.timed, stay);
	if (!rc && q->shares)
		rc = shares_purge_reserve(q->shares);
	if (!rc && q->values)
		rc = values_purge_reserve(q->values);
	if (!rc && q->kinds)
		rc = values_purge_reserve(q->kinds);
	ledger_count_heaps(l, q);
	return rc;
}

void
ledger_purge_start(struct ledger *l, uint32_t queue, const struct change *c)
{
	struct ledger_queue *q = ledger_queue(l, queue);
	const struct queue empty = q->trash;

	assert(!q->purging && queue_ready(&empty) + empty.timed.n == 0);
	q->trash = q->heaps;
	q->heaps = q->spare;
	q->heaps.held = staying(q);
	q->spare = empty;
	q->spare.by_arrival = true;
	if (q->shares)
		shares_purge(q->shares);
	if (q->values)
		values_purge(q->values);
	if (q->kinds)
		values_purge(q->kinds);
	if (q->gates)
		ledger_gate_purge(q);
	ledger_members_purge(l, q);
	ledger_count_heaps(l, q);
	l->count[MSG_READY] -= q->count[MSG_READY];
	l->count[MSG_DELAYED] -= q->count[MSG_DELAYED];
	l->count[MSG_HELD] -= q->count[MSG_HELD];
	q->count[MSG_READY] = q->count[MSG_DELAYED] = q->count[MSG_HELD] = 0;
	q->purging = true;
	q->purged = c->number;
	q->purge_key = q->keys[KEYS_LINED];
	q->purge_remember = idem_round(c->remember, c->at);
	ledger_weigh(l, q);
	ledger_wake(l, q, 0);
}

/* Frees one message of the first key that has any to free, or skips one key. */
static void
free_held(struct ledger *l, struct ledger_queue *q)
{
	struct order_key *k = ledger_key(l, q->purge_key);
	const uint32_t h = k->held.first;

	if (h != SLAB_NONE && ledger_is_purged(l, q, ledger_msg(l, h), h)) {
		ledger_line_remove(l, q, h);
		ledger_forget(l, h, q->purge_remember);
		return;
	}
	q->purge_key = k->next;
	ledger_advance(l, q, k);
}

static void
free_message(struct ledger *l, struct ledger_queue *q, uint32_t h)
{
	ledger_msg(l, h)->q.place = QUEUE_OUT;
	ledger_pass(l, q, h);
	ledger_forget(l, h, q->purge_remember);
}

/* Frees a ready message that is parked, waits behind a value or kind, or has a share. Returns false if no such message is left. */
static bool
free_shared(struct ledger *l, struct ledger_queue *q)
{
	uint32_t h = ledger_gate_trash_pop(l, q);

	if (h == SLAB_NONE && q->values)
		h = values_trash_pop(q->values);
	if (h == SLAB_NONE && q->kinds)
		h = values_trash_pop(q->kinds);
	if (h == SLAB_NONE && q->shares)
		h = shares_trash_pop(q->shares);
	if (q->shares || q->values || q->kinds)
		ledger_count_heaps(l, q);
	if (h != SLAB_NONE)
		free_message(l, q, h);
	return h != SLAB_NONE;
}

static bool
free_one(struct ledger *l, struct ledger_queue *q)
{
	if (q->purge_key != SLAB_NONE)
		free_held(l, q);
	else if (queue_ready(&q->trash) > 0)
		free_message(l, q, queue_pop_any(&q->trash));
	else if (q->trash.timed.n > 0)
		free_message(l, q, heap_drop_last(&q->trash.timed));
	else
		return free_shared(l, q);
	return true;
}

void
ledger_purge_some(struct ledger *l, struct ledger_queue *q, uint32_t *budget)
{
	while (*budget > 0) {
		--*budget;
		if (free_one(l, q))
			continue;
		queue_release(&q->trash);
		ledger_count_heaps(l, q);
		q->purging = false;
		return;
	}
}
