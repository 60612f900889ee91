/*
 * ledger_pick.c - which messages of a queue go next to another shard: V6 of engine/move.h.
 *
 *      ready, best first      an unkeyed one alone; a head with all that has its key
 *      delayed, earliest first    the same, unless a key's head is leased
 *      dead, oldest first         unless others of its key stay
 *
 * What is delayed and has the key of another that goes is found by looking at all that is
 * delayed, once, and comes last: behind the line of its key, in the order in which it would
 * join it.
 */
#include "core/ledger_in.h"

#include "base/mem.h"

#include <stdlib.h>

struct pick {
	struct ledger *l;
	struct topic *t;
	const struct ledger_bound *bound;
	uint32_t *msgs;
	uint32_t n, room;
	uint64_t bytes;
	bool scattered; /* some key has delayed ones, too */
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
	if (p->n == p->room) {
		const uint32_t room = p->room ? 2 * p->room : 64;
		uint32_t *msgs = mem_realloc(p->msgs, room * sizeof *msgs);

		p->no_memory |= !msgs;
		if (!msgs)
			return;
		p->msgs = msgs;
		p->room = room;
	}
	p->msgs[p->n++] = h;
	if (p->bound->size)
		p->bytes += p->bound->size(p->bound->arg, ledger_msg(p->l, h)->where);
}

/* All of it, but for what is delayed and not the head. */
static void
add_key(struct pick *p, struct key *k)
{
	uint32_t n = k->refs - k->idle;

	k->picked = true;
	if (k->head != SLAB_NONE) {
		add(p, k->head);
		n--;
	}
	for (uint32_t h = k->line.first; h != SLAB_NONE; h = chain_next(&p->l->msgs, h)) {
		add(p, h);
		n--;
	}
	p->scattered |= n > 0;
}

static bool
may_go(const struct ledger *l, const struct key *k)
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
pick_first(struct pick *p, const struct heap *heap)
{
	const uint32_t max = p->bound->max < LEDGER_PEEK_MAX ? p->bound->max : LEDGER_PEEK_MAX;
	uint32_t msgs[LEDGER_PEEK_MAX];
	uint32_t n = 0;

	if (heap->n == 0 || is_full(p))
		return;
	p->no_memory |= ledger_peek_heap(heap, msgs, max, &n) != 0;
	for (uint32_t i = 0; i < n && !is_full(p); i++)
		add_message(p, msgs[i]);
}

/* When all that falls due first is bound by leases. */
static void
pick_any(struct pick *p, const struct heap *heap)
{
	for (uint32_t i = 0; i < heap->n && !is_full(p); i++)
		add_message(p, heap->nodes[i].handle);
}

/* One that is redriven joins the line of its key: it is where that is. */
static bool
stays_with_its_key(const struct ledger *l, const struct msg *m)
{
	const struct key *k = m->flags & MSG_KEYED ? ledger_key_of(l, m) : NULL;

	return k && !k->picked && k->refs > k->idle;
}

static void
pick_dead(struct pick *p)
{
	for (uint32_t h = p->t->dead.first; h != SLAB_NONE && !is_full(p);
	     h = chain_next(&p->l->msgs, h))
		if (!stays_with_its_key(p->l, ledger_msg(p->l, h)))
			add(p, h);
}

/* qsort has no argument for the ledger: sort what is compared. */
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
	const struct heap *timed = &p->t->queue.timed;
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

/* Without memory it is not known which keys were picked. */
static void
unmark(struct pick *p)
{
	for (uint32_t i = 0; i < p->n; i++) {
		const struct msg *m = ledger_msg(p->l, p->msgs[i]);

		if (m->flags & MSG_KEYED)
			ledger_key_of(p->l, m)->picked = false;
	}
	for (uint32_t k = ledger_key_next(p->l, p->t, SLAB_NONE); p->no_memory && k != SLAB_NONE;
	     k = ledger_key_next(p->l, p->t, k))
		ledger_key(p->l, k)->picked = false;
}

int
ledger_pick(struct ledger *l, uint32_t queue, const struct ledger_bound *bound,
	    uint32_t **msgs, uint32_t *n)
{
	struct pick p = { .l = l, .t = ledger_topic(l, queue), .bound = bound };

	if (p.t->purging)
		return SLU_EBUSY;
	pick_first(&p, &p.t->queue.ready);
	pick_first(&p, &p.t->queue.timed);
	if (p.n == 0 && !p.scattered)
		pick_any(&p, &p.t->queue.timed);
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
