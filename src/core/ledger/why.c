/*
 * why.c - the reasons that the ledger knows for which a message is not running now.
 */
#include "core/ledger/ledger_private.h"

enum {
	CHILDREN = 4 /* of a node; base/heap.h has the picture */
};

/* The message, and the moment of the question. */
struct why_look {
	const struct ledger *l;
	const struct ledger_queue *q;
	const struct msg *m;
	slu_time now;
	uint32_t msg;
};

static bool
is_waiting(const struct why_look *k)
{
	const enum msg_state s = msg_state(k->m);

	return (s == MSG_READY || s == MSG_DELAYED || s == MSG_HELD) && !(k->m->flags & MSG_TAKEN);
}

/* ---- Counting ---- */

static bool
is_before(const struct heap_node *x, const struct heap_node *y)
{
	if (x->a != y->a)
		return x->a < y->a;
	return x->b != y->b ? x->b < y->b : x->c < y->c;
}

/* The node behind the subtree of i in preorder, or 0 at the end. */
static uint64_t
next_beside(uint64_t i)
{
	while (i > 0 && i % CHILDREN == 0)
		i = (i - 1) / CHILDREN;
	return i > 0 ? i + 1 : 0;
}

/* How many nodes go before `own`, at most WHY_COUNT + 1. They are the top of the heap: a child of a node behind `own` is
 * behind it, too. */
static uint32_t
count_before(const struct heap *h, const struct heap_node *own)
{
	uint32_t n = 0;
	uint64_t i = 0;

	do {
		const bool before = i < h->n && is_before(&h->nodes[i], own);

		n += before;
		i = before && i * CHILDREN + 1 < h->n ? i * CHILDREN + 1 : next_beside(i);
	} while (i > 0 && n <= WHY_COUNT);
	return n;
}

/* How many ready messages of the queue go before msg, at most WHY_COUNT + 1. */
static uint32_t
count_ready_before(const struct queue *q, uint32_t msg)
{
	const struct rank rank = queue_rank(q, msg);
	const struct heap_node own = { .a = rank.a, .b = rank.b, .c = rank.c };
	uint32_t n = 0;

	for (uint32_t i = 0; i < fifo_span(&q->fifo) && n <= WHY_COUNT; i++) {
		const uint32_t h = fifo_slot(&q->fifo, i);
		const struct rank other = h == FIFO_NONE ? rank : queue_rank(q, h);

		if (h != FIFO_NONE && !is_before(&(struct heap_node){ .a = other.a, .b = other.b, .c = other.c }, &own))
			break;
		n += h != FIFO_NONE;
	}
	n += count_before(&q->ready, &own);
	return n > WHY_COUNT ? WHY_COUNT + 1 : n;
}

/* How many messages of its key go before a held one, with the head. */
static uint32_t
count_of_key(const struct ledger *l, const struct msg *m)
{
	uint32_t n = 1;

	for (uint32_t h = ledger_key_of(l, m)->held.first; ledger_msg(l, h) != m && n <= WHY_COUNT;
	     h = chain_next(&l->msgs, h))
		n++;
	return n;
}

/* The messages of its value and share, or of its kind, before a message that waits behind them: at least so many go before it. */
static uint32_t
count_behind(const struct why_look *k, const struct values *v, uint32_t strand)
{
	return count_before(values_heap(v, strand), heap_at(values_heap(v, strand), k->m->q.pos)) + (values_front(v, strand) != SLAB_NONE);
}

static bool
is_second(const struct why_look *k, const struct values *v, uint32_t strand)
{
	return strand != SLAB_NONE && values_front(v, strand) != k->msg;
}

/* ---- Reasons: each returns whether it holds, and fills in the fields of its own ---- */

static bool
is_moving(const struct why_look *k, struct why_fact *f)
{
	(void)f;
	return k->m->flags & MSG_TAKEN;
}

static bool
is_leased(const struct why_look *k, struct why_fact *f)
{
	if (msg_state(k->m) != MSG_LEASED)
		return false;
	f->until = node_time(heap_at(&k->l->deadlines, k->m->q.pos));
	return true;
}

static bool
is_dead(const struct why_look *k, struct why_fact *f)
{
	f->n = k->m->reason;
	f->until = k->m->q.due;
	return msg_state(k->m) == MSG_DEAD && !(k->m->flags & MSG_TAKEN);
}

static bool
is_damaged(const struct why_look *k, struct why_fact *f)
{
	(void)f;
	return msg_state(k->m) == MSG_DAMAGED;
}

static bool
is_paused(const struct why_look *k, struct why_fact *f)
{
	f->until = k->q->policy->pause.until;
	return k->q->policy->paused && is_waiting(k);
}

static bool
is_delayed(const struct why_look *k, struct why_fact *f)
{
	f->until = k->m->q.due;
	return msg_state(k->m) == MSG_DELAYED && !k->m->q.own16 && is_waiting(k);
}

static bool
is_retried(const struct why_look *k, struct why_fact *f)
{
	f->n = k->m->q.own16;
	f->until = k->m->q.due;
	return msg_state(k->m) == MSG_DELAYED && k->m->q.own16 && is_waiting(k);
}

static bool
is_behind(const struct why_look *k, struct why_fact *f)
{
	const struct msg *head;

	if (msg_state(k->m) != MSG_HELD || !is_waiting(k) || ledger_key_of(k->l, k->m)->head == SLAB_NONE)
		return false;
	head = ledger_msg(k->l, ledger_key_of(k->l, k->m)->head);
	f->id = head->id;
	f->state = msg_state(head);
	f->until = f->state == MSG_LEASED ? node_time(heap_at(&k->l->deadlines, head->q.pos)) : head->q.due;
	f->n = count_of_key(k->l, k->m);
	return true;
}

static bool
has_ahead(const struct why_look *k, struct why_fact *f)
{
	const uint32_t strand = ledger_strand_of(k->l, k->m), kind = ledger_kind_of(k->l, k->m);

	if (msg_state(k->m) != MSG_READY || !is_waiting(k) || (k->m->flags & MSG_PARKED))
		return false;
	if (is_second(k, k->q->values, strand))
		f->n = count_behind(k, k->q->values, strand);
	else if (is_second(k, k->q->kinds, kind))
		f->n = count_behind(k, k->q->kinds, kind);
	else if (k->q->shares)
		f->n = ledger_share_ahead(k->q, k->msg, WHY_COUNT);
	else
		f->n = count_ready_before(&k->q->heaps, k->msg);
	return f->n > 0;
}

static bool
is_limited(const struct why_look *k, struct why_fact *f)
{
	enum gate_kind kind = GATE_QUEUE;

	f->n = msg_state(k->m) == MSG_READY && is_waiting(k) ? ledger_limit_of(k->l, k->q, k->m, &kind) : 0;
	f->state = kind;
	return f->n > 0;
}

static bool
is_rated(const struct why_look *k, struct why_fact *f)
{
	const struct policy *p = k->q->policy;
	const uint32_t rates[GATE_KINDS] = { p->rate, p->share_rate, p->key_rate, p->attribute_rate };
	enum gate_kind kind = GATE_QUEUE;

	if (msg_state(k->m) != MSG_READY || !is_waiting(k))
		return false;
	f->until = ledger_gate_wait(k->l, k->q, k->m, GATE_BY_RATE, &kind);
	f->n = rates[kind];
	f->state = kind;
	return f->until > k->now;
}

static bool
is_held(const struct why_look *k, struct why_fact *f)
{
	enum gate_kind kind = GATE_QUEUE;

	f->until = is_waiting(k) ? ledger_gate_wait(k->l, k->q, k->m, GATE_BY_HOLD, &kind) : 0;
	f->state = kind;
	return f->until > k->now;
}

static bool
is_broken(const struct why_look *k, struct why_fact *f)
{
	enum gate_kind kind = GATE_QUEUE;
	const slu_time until = is_waiting(k) ? ledger_gate_wait(k->l, k->q, k->m, GATE_BY_BREAKER, &kind) : 0;

	f->until = until == SLU_NEVER ? 0 : until;
	f->state = kind;
	return until > k->now;
}

static const struct {
	enum why why;
	bool (*holds)(const struct why_look *k, struct why_fact *f);
} checks[] = {
	{ WHY_LEASED, is_leased },
	{ WHY_DEAD, is_dead },
	{ WHY_DAMAGED, is_damaged },
	{ WHY_MOVING, is_moving },
	{ WHY_PAUSED, is_paused },
	{ WHY_HOLD, is_held },
	{ WHY_BREAKER, is_broken },
	{ WHY_LIMIT, is_limited },
	{ WHY_RATE, is_rated },
	{ WHY_DELAYED, is_delayed },
	{ WHY_RETRY, is_retried },
	{ WHY_BEHIND, is_behind },
	{ WHY_AHEAD, has_ahead },
};

/* A delayed message is expected at its due time. A ready one comes after the messages ahead, at the recent pace. */
static slu_time
estimate(const struct why_look *k, const struct why_fact *f)
{
	slu_time wait;

	if (f->why == WHY_DELAYED || f->why == WHY_RETRY || f->why == WHY_RATE || f->why == WHY_HOLD || f->why == WHY_BREAKER || f->why == WHY_PAUSED)
		return f->until;
	if (msg_state(k->m) != MSG_READY || (f->why != WHY_NEXT && f->why != WHY_AHEAD) || f->n > WHY_COUNT)
		return 0;
	wait = pace_time(&k->q->pace, (uint32_t)f->n + 1, k->now);
	return wait ? k->now + wait : 0;
}

void
ledger_why(const struct ledger *l, uint32_t msg, slu_time now, struct why_facts *out)
{
	const struct msg *const m = ledger_msg(l, msg);
	const struct why_look k = { l, ledger_queue_of(l, m), m, now, msg };

	*out = (struct why_facts){ 0 };
	for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
		struct why_fact f = { .why = checks[i].why };

		if (checks[i].holds(&k, &f))
			why_add(out, &f);
	}
	out->estimate = estimate(&k, &out->facts[0]);
}
