/*
 * browse.c - messages of a queue, a namespace or the shard, by state, page by page.
 *
 * A page is in the order of handles, so that changes between two pages do not affect its
 * cursor. There are two ways to make it:
 *
 *      pass   over the heaps, lists and sequences of the      for a queue with few messages in the
 *             state in the queue, keeping the lowest          state: one page finds them, however many
 *             handles from the cursor on                      messages the shard has
 *      scan   the slab of messages from the cursor on         for all others
 *
 * Both look at most at SCAN_MAX entries, so that no page holds up the shard. A page of a scan may be
 * empty, with a cursor: the messages lie further on.
 */
#include "core/ledger/ledger_private.h"

#include <stdlib.h>

enum {
	SCAN_MAX = 8000, /* entries of a page, in the time of some 30 us */
	LINK_COST = 8    /* of following a link; 1 is reading the next entry of an array */
};

/* The lowest handles from `from` on: a heap, the highest first. */
struct browse_page {
	const struct ledger *l;
	const struct ledger_browse *what;
	uint32_t *msgs;
	uint32_t max;
	uint32_t n;
	uint32_t from;
	bool more; /* more messages match, behind these */
};

static void
swap(uint32_t *a, uint32_t *b)
{
	const uint32_t old = *a;

	*a = *b;
	*b = old;
}

static void
sift_up(uint32_t *v, uint32_t i)
{
	for (; i > 0 && v[i] > v[(i - 1) / 2]; i = (i - 1) / 2)
		swap(&v[i], &v[(i - 1) / 2]);
}

static void
sift_down(uint32_t *v, uint32_t n)
{
	uint32_t i = 0, child;

	while ((child = 2 * i + 1) < n) {
		if (child + 1 < n && v[child + 1] > v[child])
			child++;
		if (v[i] >= v[child])
			return;
		swap(&v[i], &v[child]);
		i = child;
	}
}

static void
offer(struct browse_page *p, uint32_t h)
{
	if (h < p->from)
		return;
	if (p->n < p->max) {
		p->msgs[p->n++] = h;
		sift_up(p->msgs, p->n - 1);
		return;
	}
	p->more = true;
	if (h < p->msgs[0]) {
		p->msgs[0] = h;
		sift_down(p->msgs, p->n);
	}
}

static bool
wants(const struct ledger_browse *what, enum msg_state state)
{
	return what->state == MSG_NONE || what->state == state;
}

static void
offer_heap(struct browse_page *p, enum msg_state state, const struct heap *heap)
{
	for (uint32_t i = 0; wants(p->what, state) && i < heap->n; i++)
		offer(p, heap->nodes[i].handle);
}

static bool
offer_one(void *arg, uint32_t h)
{
	offer(arg, h);
	return true;
}

static void
offer_chain(struct browse_page *p, enum msg_state state, const struct chain *c)
{
	for (uint32_t h = wants(p->what, state) ? c->first : SLAB_NONE; h != SLAB_NONE;
	     h = chain_next(&p->l->msgs, h))
		offer(p, h);
}

static void
offer_leased(struct browse_page *p, const struct ledger_queue *q)
{
	for (uint32_t h = wants(p->what, MSG_LEASED) ? q->leased : SLAB_NONE; h != SLAB_NONE;
	     h = ledger_lease_next(p->l, h))
		offer(p, h);
}

static void
offer_line(struct browse_page *p, const struct ledger_queue *q, const struct order_key *k)
{
	for (uint32_t h = k->held.first; h != SLAB_NONE; h = chain_next(&p->l->msgs, h))
		if (!ledger_is_purged(p->l, q, ledger_msg(p->l, h), h))
			offer(p, h);
}

static void
offer_held(struct browse_page *p, const struct ledger_queue *q)
{
	for (uint32_t k = wants(p->what, MSG_HELD) ? q->keys[KEYS_LINED] : SLAB_NONE;
	     k != SLAB_NONE; k = ledger_key(p->l, k)->next)
		offer_line(p, q, ledger_key(p->l, k));
}

/* A message that is set aside is only in its batch. */
static void
offer_batch(struct browse_page *p, const struct ledger_queue *q)
{
	const struct taken_batch *b = ledger_batch_of(q);

	for (uint32_t i = 0; b && b->what == BATCH_MESSAGES && i < b->n; i++)
		if (wants(p->what, msg_state(ledger_msg(p->l, b->items[i].msg))))
			offer(p, b->items[i].msg);
}

static void
offer_shares(struct browse_page *p, const struct shares *s)
{
	for (uint32_t h = s ? shares_flow_next(s, SLAB_NONE) : SLAB_NONE; h != SLAB_NONE;
	     h = shares_flow_next(s, h))
		offer_heap(p, MSG_READY, shares_flow_heap(s, h));
}

static void
offer_values(struct browse_page *p, const struct values *v)
{
	for (uint32_t h = v ? values_strand_next(v, SLAB_NONE) : SLAB_NONE; h != SLAB_NONE;
	     h = values_strand_next(v, h))
		offer_heap(p, MSG_READY, values_heap(v, h));
}

static void
offer_parked(struct browse_page *p, const struct ledger_queue *q)
{
	for (uint32_t h = q->gates && wants(p->what, MSG_READY) ? q->gates->parked : SLAB_NONE; h != SLAB_NONE;
	     h = ledger_msg(p->l, h)->q.pos)
		offer(p, h);
}

static void
offer_queue(struct browse_page *p, const struct ledger_queue *q)
{
	if (wants(p->what, MSG_READY))
		queue_look(&q->heaps, offer_one, p);
	offer_heap(p, MSG_DELAYED, &q->heaps.timed);
	offer_shares(p, q->shares);
	offer_values(p, q->values);
	offer_values(p, q->kinds);
	offer_parked(p, q);
	offer_leased(p, q);
	offer_held(p, q);
	offer_chain(p, MSG_DEAD, &q->dead);
	offer_chain(p, MSG_DAMAGED, &q->damaged);
	offer_batch(p, q);
}

static int
by_handle(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static uint32_t
pass(struct browse_page *p, const struct ledger_queue *q, uint32_t *cursor)
{
	offer_queue(p, q);
	qsort(p->msgs, p->n, sizeof *p->msgs, by_handle);
	*cursor = p->more ? p->msgs[p->n - 1] + 1 : LEDGER_SCAN_END;
	return p->n;
}

static bool
matches(const struct browse_page *p, uint32_t h)
{
	const struct msg *m = ledger_msg(p->l, h);
	const struct ledger_queue *q = ledger_queue_of(p->l, m);

	return wants(p->what, msg_state(m)) &&
	       (p->what->queue == SLAB_NONE || p->what->queue == q->handle) &&
	       (p->what->space == SLAB_NONE || p->what->space == q->space);
}

static uint32_t
scan(struct browse_page *p, uint32_t *cursor)
{
	for (uint32_t left = SCAN_MAX; left > 0 && p->n < p->max && *cursor != LEDGER_SCAN_END;
	     left--) {
		uint32_t h;

		if (ledger_scan(p->l, cursor, &h, 1) && matches(p, h))
			p->msgs[p->n++] = h;
	}
	return p->n;
}

/* The cost of a pass; 0: nothing matches. */
static uint64_t
cost_of(const struct ledger_queue *q, const struct ledger_browse *what)
{
	uint64_t cost = 0;

	for (enum msg_state s = MSG_READY; s < MSG_STATES; s++)
		if (wants(what, s))
			cost += (uint64_t)q->count[s] * (s <= MSG_DELAYED ? 1 : LINK_COST);
	return cost;
}

uint32_t
ledger_browse(const struct ledger *l, const struct ledger_browse *what, uint32_t *cursor,
	      uint32_t *msgs, uint32_t max)
{
	struct browse_page p = { .l = l, .what = what, .max = max, .from = *cursor };
	const struct ledger_queue *const q = what->queue == SLAB_NONE ? NULL : ledger_queue(l, what->queue);
	const uint64_t cost = q ? cost_of(q, what) : SCAN_MAX + 1;

	p.msgs = msgs;
	if (cost == 0 || *cursor >= l->msgs.fresh) {
		*cursor = LEDGER_SCAN_END;
		return 0;
	}
	return cost <= SCAN_MAX ? pass(&p, q, cursor) : scan(&p, cursor);
}
