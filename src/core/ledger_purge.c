/*
 * ledger_purge.c - all of a queue goes at once; its memory goes in steps (I4).
 *
 * First the lines: what was held is freed key by key, so that only new messages
 * stand behind a head. Then the old heaps, whose heads let those step forward.
 */
#include "core/ledger_in.h"

#include <assert.h>

static bool
is_in(const struct heap *heap, uint32_t pos, uint32_t h)
{
	return pos < heap->n && heap->nodes[pos].handle == h;
}

bool
ledger_is_purged(const struct topic *t, const struct msg *m, uint32_t h)
{
	if (!t->purging)
		return false;
	if (msg_state(m) == MSG_READY)
		return is_in(&t->trash.ready, m->q.pos, h);
	if (msg_state(m) == MSG_DELAYED)
		return is_in(&t->trash.timed, m->q.pos, h);
	/* What was leased at the purge was a head and is never held later. */
	return msg_state(m) == MSG_HELD && m->q.seq <= t->purged;
}

/* What no purge takes. */
static uint32_t
staying(const struct topic *t)
{
	return t->count[MSG_LEASED] + t->count[MSG_DEAD] + t->count[MSG_DAMAGED];
}

int
ledger_purge_reserve(struct ledger *l, struct topic *t)
{
	const uint32_t stay = staying(t);
	int rc;

	rc = heap_reserve(&t->spare.ready, stay);
	if (!rc)
		rc = heap_reserve(&t->spare.timed, stay);
	ledger_count_topic(l, t);
	return rc;
}

void
ledger_purge_start(struct ledger *l, uint32_t topic, const struct change *c)
{
	struct topic *t = ledger_topic(l, topic);
	const struct queue empty = t->trash;

	assert(!t->purging && empty.ready.n + empty.timed.n == 0);
	t->trash = t->queue;
	t->queue = t->spare;
	t->queue.held = staying(t);
	t->spare = empty;
	t->spare.by_arrival = true;
	t->count[MSG_READY] = t->count[MSG_DELAYED] = t->count[MSG_HELD] = 0;
	t->purging = true;
	t->purged = c->number;
	t->purge_key = t->keys[KEYS_LINED];
	t->purge_remember = idem_round(c->remember, c->at);
	ledger_weigh(l, t);
	ledger_wake(l, t, 0);
}

/* One message of the first key that has any to free, or one key without. */
static void
free_held(struct ledger *l, struct topic *t)
{
	struct key *k = ledger_key(l, t->purge_key);
	const uint32_t h = k->line.first;

	if (h != SLAB_NONE && ledger_is_purged(t, ledger_msg(l, h), h)) {
		ledger_line_remove(l, t, h);
		ledger_forget(l, h, t->purge_remember);
		return;
	}
	t->purge_key = k->next;
	ledger_advance(l, t, k);
}

/* The last node of a heap can go without any other moving. */
static void
free_last(struct ledger *l, struct topic *t, struct heap *heap)
{
	const uint32_t h = heap->nodes[heap->n - 1].handle;
	struct msg *m = ledger_msg(l, h);

	heap_remove(heap, heap->n - 1);
	m->q.place = QUEUE_OUT;
	ledger_pass(l, t, h);
	ledger_forget(l, h, t->purge_remember);
}

static bool
free_one(struct ledger *l, struct topic *t)
{
	if (t->purge_key != SLAB_NONE)
		free_held(l, t);
	else if (t->trash.ready.n > 0)
		free_last(l, t, &t->trash.ready);
	else if (t->trash.timed.n > 0)
		free_last(l, t, &t->trash.timed);
	else
		return false;
	return true;
}

void
ledger_purge_some(struct ledger *l, struct topic *t, uint32_t *budget)
{
	while (*budget > 0) {
		--*budget;
		if (free_one(l, t))
			continue;
		queue_release(&t->trash);
		ledger_count_topic(l, t);
		t->purging = false;
		return;
	}
}
