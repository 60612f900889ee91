/*
 * ledger_browse.c - messages of a queue, a namespace or the shard, by state, page by page.
 *
 * A page is in the order of handles, so that its cursor means the same whatever happens
 * between two pages. There are two ways to it:
 *
 *      scan   the slab of messages from the cursor on     costs entries / share of matches
 *      pass   over the heaps, lists and lines that have   costs as many as match
 *             the state in the queue; the lowest handles
 *             from the cursor on stay
 *
 * The cheaper one is taken. So one message beside a million is found by a pass over one, a
 * million beside one by a scan, and what lies between costs at most the square root of
 * (rows asked for * messages of the shard). A scan that finds nothing in SCAN_MAX entries is
 * followed by a pass: the messages of a large queue lie together, further on. That page is the
 * dearest: it costs as many steps as the queue has messages in the state. The pages behind it
 * are scans again.
 */
#include "core/ledger_in.h"

#include <stdlib.h>

enum {
	SCAN_MAX = 8000, /* entries of a scan; a pass over no more is taken in any case */
	LINK_COST = 8    /* following a link, beside reading the next entry of an array */
};

/* The lowest handles from `from` on: a heap, the highest first. */
struct page {
	const struct ledger *l;
	const struct ledger_browse *what;
	uint32_t *msgs;
	uint32_t max;
	uint32_t n;
	uint32_t from;
	bool more; /* others match, which are behind these */
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
offer(struct page *p, uint32_t h)
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
offer_heap(struct page *p, enum msg_state state, const struct heap *heap)
{
	for (uint32_t i = 0; wants(p->what, state) && i < heap->n; i++)
		offer(p, heap->nodes[i].handle);
}

static void
offer_chain(struct page *p, enum msg_state state, const struct chain *c)
{
	for (uint32_t h = wants(p->what, state) ? c->first : SLAB_NONE; h != SLAB_NONE;
	     h = chain_next(&p->l->msgs, h))
		offer(p, h);
}

static void
offer_leased(struct page *p, const struct topic *t)
{
	for (uint32_t h = wants(p->what, MSG_LEASED) ? t->leased : SLAB_NONE; h != SLAB_NONE;
	     h = ledger_lease_next(p->l, h))
		offer(p, h);
}

static void
offer_line(struct page *p, const struct topic *t, const struct key *k)
{
	for (uint32_t h = k->line.first; h != SLAB_NONE; h = chain_next(&p->l->msgs, h))
		if (!ledger_is_purged(t, ledger_msg(p->l, h), h))
			offer(p, h);
}

static void
offer_held(struct page *p, const struct topic *t)
{
	for (uint32_t k = wants(p->what, MSG_HELD) ? t->keys[KEYS_LINED] : SLAB_NONE;
	     k != SLAB_NONE; k = ledger_key(p->l, k)->next)
		offer_line(p, t, ledger_key(p->l, k));
}

/* What is set aside is in its batch alone. */
static void
offer_batch(struct page *p, const struct topic *t)
{
	const struct batch *b = ledger_batch_of(t);

	for (uint32_t i = 0; b && b->what == BATCH_MESSAGES && i < b->n; i++)
		if (wants(p->what, msg_state(ledger_msg(p->l, b->items[i].msg))))
			offer(p, b->items[i].msg);
}

static void
offer_topic(struct page *p, const struct topic *t)
{
	offer_heap(p, MSG_READY, &t->queue.ready);
	offer_heap(p, MSG_DELAYED, &t->queue.timed);
	offer_leased(p, t);
	offer_held(p, t);
	offer_chain(p, MSG_DEAD, &t->dead);
	offer_chain(p, MSG_DAMAGED, &t->damaged);
	offer_batch(p, t);
}

/* The next topic that is asked for; SLAB_NONE starts, and ends. */
static uint32_t
next_topic(const struct ledger *l, const struct ledger_browse *what, uint32_t topic)
{
	if (what->queue != SLAB_NONE)
		return topic == SLAB_NONE ? what->queue : SLAB_NONE;
	do
		topic = ledger_queue_next(l, topic);
	while (topic != SLAB_NONE && what->space != SLAB_NONE &&
	       ledger_topic(l, topic)->space != what->space);
	return topic;
}

static int
by_handle(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static uint32_t
pass(struct page *p, uint32_t *cursor)
{
	for (uint32_t t = next_topic(p->l, p->what, SLAB_NONE); t != SLAB_NONE;
	     t = next_topic(p->l, p->what, t))
		offer_topic(p, ledger_topic(p->l, t));
	qsort(p->msgs, p->n, sizeof *p->msgs, by_handle);
	*cursor = p->more ? p->msgs[p->n - 1] + 1 : LEDGER_SCAN_END;
	return p->n;
}

static bool
matches(const struct page *p, uint32_t h)
{
	const struct msg *m = ledger_msg(p->l, h);
	const struct topic *t = ledger_topic_of(p->l, m);

	return wants(p->what, msg_state(m)) &&
	       (p->what->queue == SLAB_NONE || p->what->queue == t->handle) &&
	       (p->what->space == SLAB_NONE || p->what->space == t->space);
}

static uint32_t
scan(struct page *p, uint32_t *cursor)
{
	for (uint32_t left = SCAN_MAX; left > 0 && p->n < p->max && *cursor != LEDGER_SCAN_END;
	     left--) {
		uint32_t h;

		if (ledger_scan(p->l, cursor, &h, 1) && matches(p, h))
			p->msgs[p->n++] = h;
	}
	return p->n;
}

/* How many messages match, and what a pass over them costs. */
static uint64_t
count(const struct ledger *l, const struct ledger_browse *what, uint64_t *cost)
{
	uint64_t n = 0;

	*cost = 0;
	for (uint32_t h = next_topic(l, what, SLAB_NONE); h != SLAB_NONE;
	     h = next_topic(l, what, h)) {
		const struct topic *t = ledger_topic(l, h);

		for (enum msg_state s = MSG_READY; s < MSG_STATES; s++) {
			const uint64_t have = wants(what, s) ? t->count[s] : 0;

			n += have;
			*cost += have * (s <= MSG_DELAYED ? 1 : LINK_COST);
		}
	}
	return n;
}

uint32_t
ledger_browse(const struct ledger *l, const struct ledger_browse *what, uint32_t *cursor,
	      uint32_t *msgs, uint32_t max)
{
	struct page p = { .l = l, .what = what, .msgs = msgs, .max = max, .from = *cursor };
	uint64_t cost;
	const uint64_t n = count(l, what, &cost);

	if (n == 0 || *cursor >= l->msgs.fresh) {
		*cursor = LEDGER_SCAN_END;
		return 0;
	}
	if (cost <= SCAN_MAX || cost * n <= (uint64_t)max * l->msgs.fresh)
		return pass(&p, cursor);
	if (scan(&p, cursor) || *cursor == LEDGER_SCAN_END)
		return p.n;
	p.from = *cursor; /* they lie together, further on */
	return pass(&p, cursor);
}
