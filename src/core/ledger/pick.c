/*
 * pick.c - picks the messages of the next batch of a move: MOVE-6 of engine/move.h.
 *
 *      ready, in order            without a key: alone; a head: with all messages of its key
 *      delayed, earliest first    the same, unless the head of the key is leased
 *      dead, oldest first         unless other messages of its key stay
 *
 * Delayed messages with a picked key are found by one scan of all delayed messages, and come last:
 * behind the sequence of their key, in the order in which they would join it.
 */
#include "core/ledger/ledger_private.h"

#include "base/mem.h"

#include <stdlib.h>

struct pick {
	struct ledger *l;
	struct ledger_queue *q;
	const struct ledger_bound *bound;
	uint32_t *msgs;
	uint32_t n, room;
	uint64_t bytes;
	bool scattered; /* a picked key has delayed messages, too */
	bool no_memory;
};

static bool
is_full(const struct pick *p)
{
	return p->no_memory || p->n >= p->bound->max ||
	       (p->bound->max_bytes && p->bytes >= p->bound->max_bytes);
}

static void
add(struct pick *p, uint32_t h)
{
	p->no_memory |= !mem_room(&p->msgs, &p->room, p->n + 1, sizeof *p->msgs);
	if (!p->no_memory)
		p->msgs[p->n++] = h;
	if (p->bound->size)
		p->bytes += p->bound->size(p->bound->arg, ledger_msg(p->l, h)->where);
}

/* All messages of a key, except delayed ones that are not its head. */
static void
add_key(struct pick *p, struct order_key *k)
{
	uint32_t n = k->refs - k->idle;

	k->picked = true;
	if (k->head != SLAB_NONE) {
		add(p, k->head);
		n--;
	}
	for (uint32_t h = k->held.first; h != SLAB_NONE; h = chain_next(&p->l->msgs, h)) {
		add(p, h);
		n--;
	}
	p->scattered |= n > 0;
}

static bool
may_go(const struct ledger *l, const struct order_key *k)
{
	return !k->picked &&
	       (k->head == SLAB_NONE || msg_state(ledger_msg(l, k->head)) != MSG_LEASED);
}

static void
add_message(struct pick *p, uint32_t h)
{
	const struct msg *m = ledger_msg(p->l, h);

	if (!(m->flags & MSG_KEYED))
		add(p, h);
	else if (may_go(p->l, ledger_key_of(p->l, m)))
		add_key(p, ledger_key_of(p->l, m));
}

static void
pick_first(struct pick *p, bool ready)
{
	const uint32_t max = p->bound->max < LEDGER_PEEK_MAX ? p->bound->max : LEDGER_PEEK_MAX;
	uint32_t msgs[LEDGER_PEEK_MAX];
	uint32_t n = 0;

	if (is_full(p))
		return;
	if (ready)
		p->no_memory |= ledger_peek_ready(p->l, p->q, msgs, max, &n) != 0;
	else
		p->no_memory |= heap_peek(&p->q->heaps.timed, msgs, max, &n) != 0;
	for (uint32_t i = 0; i < n && !is_full(p); i++)
		add_message(p, msgs[i]);
}

/* If the keys of all messages that fall due first have leases. */
static void
pick_any(struct pick *p, const struct heap *heap)
{
	for (uint32_t i = 0; i < heap->n && !is_full(p); i++)
		add_message(p, heap->nodes[i].handle);
}

static bool
pick_one(void *arg, uint32_t h)
{
	struct pick *const p = arg;

	if (!is_full(p))
		add_message(p, h);
	return !is_full(p);
}

/* Ready messages that wait behind their value or kind. */
static void
pick_behind(struct pick *p, const struct values *v)
{
	for (uint32_t h = v ? values_strand_next(v, SLAB_NONE) : SLAB_NONE; h != SLAB_NONE && !is_full(p);
	     h = values_strand_next(v, h))
		pick_any(p, values_heap(v, h));
}

/* If a limit holds back all messages that are ready. */
static void
pick_limited(struct pick *p)
{
	const struct shares *s = p->q->shares;

	queue_look(&p->q->heaps, pick_one, p);
	for (uint32_t h = s ? shares_flow_next(s, SLAB_NONE) : SLAB_NONE; h != SLAB_NONE && !is_full(p);
	     h = shares_flow_next(s, h))
		pick_any(p, shares_flow_heap(s, h));
	for (uint32_t h = p->q->gates ? p->q->gates->parked : SLAB_NONE; h != SLAB_NONE && !is_full(p);
	     h = ledger_msg(p->l, h)->q.pos)
		add_message(p, h);
}

/* A redriven message joins the sequence of its key, so it must be on the same shard. */
static bool
stays_with_its_key(const struct ledger *l, const struct msg *m)
{
	const struct order_key *k = m->flags & MSG_KEYED ? ledger_key_of(l, m) : NULL;

	return k && !k->picked && k->refs > k->idle;
}

static void
pick_dead(struct pick *p)
{
	for (uint32_t h = p->q->dead.first; h != SLAB_NONE && !is_full(p);
	     h = chain_next(&p->l->msgs, h))
		if (!stays_with_its_key(p->l, ledger_msg(p->l, h)))
			add(p, h);
}

/* qsort has no argument for the ledger, so the items carry their rank. */
struct sorted {
	slu_time due;
	uint64_t seq;
	uint32_t msg;
};

static int
by_due(const void *a, const void *b)
{
	const struct sorted *x = a, *y = b;

	if (x->due != y->due)
		return x->due < y->due ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static void
sort_from(struct pick *p, uint32_t from)
{
	const uint32_t n = p->n - from;
	struct sorted *s = mem_array(n + 1, sizeof *s);

	p->no_memory |= !s;
	for (uint32_t i = 0; s && i < n; i++) {
		const struct msg *m = ledger_msg(p->l, p->msgs[from + i]);

		s[i] = (struct sorted){ m->q.due, m->q.seq, p->msgs[from + i] };
	}
	if (s)
		qsort(s, n, sizeof *s, by_due);
	for (uint32_t i = 0; s && i < n; i++)
		p->msgs[from + i] = s[i].msg;
	mem_free(s);
}

static void
pick_scattered(struct pick *p)
{
	const struct heap *timed = &p->q->heaps.timed;
	const uint32_t from = p->n;

	for (uint32_t i = 0; i < timed->n && !p->no_memory; i++) {
		const uint32_t h = timed->nodes[i].handle;
		const struct msg *m = ledger_msg(p->l, h);

		if ((m->flags & MSG_KEYED) && ledger_key_of(p->l, m)->picked &&
		    ledger_key_of(p->l, m)->head != h)
			add(p, h);
	}
	sort_from(p, from);
}

/* After a failed allocation the list of picked keys is incomplete. */
static void
unmark(struct pick *p)
{
	for (uint32_t i = 0; i < p->n; i++) {
		const struct msg *m = ledger_msg(p->l, p->msgs[i]);

		if (m->flags & MSG_KEYED)
			ledger_key_of(p->l, m)->picked = false;
	}
	for (uint32_t k = ledger_key_next(p->l, p->q, SLAB_NONE); p->no_memory && k != SLAB_NONE;
	     k = ledger_key_next(p->l, p->q, k))
		ledger_key(p->l, k)->picked = false;
}

int
ledger_pick(struct ledger *l, uint32_t queue, const struct ledger_bound *bound,
	    uint32_t **msgs, uint32_t *n)
{
	struct pick p = { .l = l, .q = ledger_queue(l, queue), .bound = bound };

	if (p.q->purging)
		return SLU_EBUSY;
	pick_first(&p, true);
	pick_behind(&p, p.q->values);
	pick_behind(&p, p.q->kinds);
	if (p.n == 0)
		pick_limited(&p);
	pick_first(&p, false);
	if (p.n == 0 && !p.scattered)
		pick_any(&p, &p.q->heaps.timed);
	pick_dead(&p);
	if (p.scattered)
		pick_scattered(&p);
	unmark(&p);
	if (p.no_memory) {
		mem_free(p.msgs);
		return SLU_ENOMEM;
	}
	*msgs = p.msgs;
	*n = p.n;
	return 0;
}
