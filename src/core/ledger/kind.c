/*
 * kind.c - the kinds of messages (core/queue/kind.h).
 *
 *  LEDGERKIND-1  A queue has kinds, a struct values, while a message has a kind. Without one, its heaps are as ever.
 *  LEDGERKIND-2  A kind is one strand. The best of its ready messages is in front: in the heap of the queue. So a claim without
 *                kinds looks at the heap as ever, and a claim of kinds looks at the front of each of its kinds.
 *  LEDGERKIND-3  For the shares of the queue, a message with a kind is a message without a share.
 *
 * Below the values of limit_attribute: what is in front of its value is in front of its kind, or waits behind it.
 */
#include "core/ledger/ledger_kind.h"
#include "core/ledger/ledger_private.h"

#include "base/mem.h"

#include <assert.h>

int
ledger_kind_reserve(struct ledger *l, struct ledger_queue *q, struct slice kind, uint32_t *flow)
{
	int rc = q->kinds ? 0 : values_new(&q->kinds, &l->msgs, &q->secret);
	uint32_t strand = *flow & ~(uint32_t)SPOT_KIND;

	if (!rc && values_is_strand(q->kinds, strand, kind, SHARES_PLAIN))
		rc = values_room(q->kinds, strand);
	else if (!rc)
		rc = values_reserve(q->kinds, kind, SHARES_PLAIN, &strand);
	*flow = strand | SPOT_KIND;
	return rc;
}

void
ledger_kind_attach(struct ledger_queue *q, uint32_t flow)
{
	values_hold(q->kinds, flow & ~(uint32_t)SPOT_KIND);
}

void
ledger_kind_detach(struct ledger *l, struct ledger_queue *q, uint32_t flow)
{
	values_drop(q->kinds, flow & ~(uint32_t)SPOT_KIND);
	if (values_count(q->kinds))
		return;
	values_free(q->kinds);
	q->kinds = NULL;
	ledger_count_heaps(l, q);
}

bool
ledger_kind_fits(const struct ledger_queue *q, struct slice kind)
{
	return !q->kinds || values_count(q->kinds) < KINDS_OF_QUEUE || values_strand(q->kinds, kind, SHARES_PLAIN) != SLAB_NONE;
}

struct slice
ledger_kind_name(const struct ledger *l, uint32_t msg)
{
	return kind_of_line(ledger_line_of(l, ledger_msg(l, msg)));
}

/* ---- Ready messages ---- */

/* What comes to the front comes before what leaves it, as in value.c. */
void
ledger_kind_enter(struct ledger *l, struct ledger_queue *q, uint32_t strand, uint32_t h)
{
	const uint32_t was = values_front(q->kinds, strand);

	if (!values_leads(q->kinds, strand, h)) {
		ledger_wait_behind(l, q, h);
		values_push(q->kinds, strand, h);
		return;
	}
	values_lead(q->kinds, strand, h);
	ledger_heap_enter(l, q, h);
	if (was == SLAB_NONE)
		return;
	ledger_wait_behind(l, q, was);
	ledger_heap_leave(l, q, was);
	values_push(q->kinds, strand, was);
}

void
ledger_kind_leave(struct ledger *l, struct ledger_queue *q, uint32_t strand, uint32_t h)
{
	uint32_t next;

	if (values_front(q->kinds, strand) != h) {
		values_pull(q->kinds, strand, h);
		ledger_unwait(l, q, h);
		ledger_share_count(l, q);
		return;
	}
	next = values_pop(q->kinds, strand);
	values_lead(q->kinds, strand, next);
	if (next != SLAB_NONE) {
		ledger_heap_enter(l, q, next);
		ledger_unwait(l, q, next);
	}
	ledger_heap_leave(l, q, h);
}

bool
ledger_kind_is_trash(const struct ledger *l, const struct ledger_queue *q, uint32_t h)
{
	const uint32_t strand = ledger_kind_of(l, ledger_msg(l, h));

	return strand != SLAB_NONE && values_is_trash(q->kinds, strand, h);
}

/* ---- Claims: KIND-2 ---- */

/* The strand of the next of the kinds that has messages; false: no more. */
static bool
next_strand(const struct ledger_queue *q, struct slice *kinds, uint32_t *strand)
{
	struct slice kind;

	*strand = SLAB_NONE;
	while (q->kinds && *strand == SLAB_NONE && kinds_next(kinds, &kind))
		*strand = values_strand(q->kinds, kind, SHARES_PLAIN);
	return *strand != SLAB_NONE;
}

static bool
is_before(const struct ledger *l, uint32_t a, uint32_t b)
{
	return values_before(&ledger_msg(l, a)->q, &ledger_msg(l, b)->q);
}

uint32_t
ledger_kind_best(const struct ledger *l, const struct ledger_queue *q, struct slice kinds)
{
	uint32_t best = SLAB_NONE, strand;

	if (ledger_best(q) == SLAB_NONE || ledger_plain_is_limited(q))
		return SLAB_NONE;
	while (next_strand(q, &kinds, &strand)) {
		const uint32_t h = values_front(q->kinds, strand);

		if (h != SLAB_NONE && (best == SLAB_NONE || is_before(l, h, best)))
			best = h;
	}
	return best;
}

/* ---- Looking ---- */

struct kind_peek {
	const struct ledger *l;
	uint32_t *msgs; /* the best ones in order, up to max */
	uint32_t *some; /* room for max messages of one heap */
	uint32_t n, max;
};

static void
add(struct kind_peek *p, uint32_t h)
{
	uint32_t i = p->n;

	if (i == p->max && !is_before(p->l, h, p->msgs[i - 1]))
		return;
	if (i == p->max)
		i--;
	else
		p->n++;
	for (; i > 0 && is_before(p->l, h, p->msgs[i - 1]); i--)
		p->msgs[i] = p->msgs[i - 1];
	p->msgs[i] = h;
}

static void
add_some(struct kind_peek *p, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		add(p, p->some[i]);
}

static int
add_heap(struct kind_peek *p, const struct heap *heap)
{
	uint32_t n = 0;
	const int rc = heap_peek(heap, p->some, p->max, &n);

	add_some(p, n);
	return rc;
}

static int
add_kinds(struct kind_peek *p, const struct ledger_queue *q, struct slice kinds)
{
	uint32_t strand;
	int rc = 0;

	while (!rc && next_strand(q, &kinds, &strand)) {
		if (values_front(q->kinds, strand) != SLAB_NONE)
			add(p, values_front(q->kinds, strand));
		rc = add_heap(p, values_heap(q->kinds, strand));
	}
	return rc;
}

/* Every message: those in front are in the heap of the queue. */
static int
add_all(struct kind_peek *p, const struct ledger_queue *q)
{
	uint32_t n = 0;
	int rc = queue_peek(&q->heaps, p->some, p->max, &n);

	add_some(p, n);
	for (uint32_t s = SLAB_NONE; !rc && (s = values_strand_next(q->kinds, s)) != SLAB_NONE;)
		rc = add_heap(p, values_heap(q->kinds, s));
	return rc;
}

int
ledger_kind_peek(const struct ledger *l, const struct ledger_queue *q, struct slice kinds, uint32_t *msgs, uint32_t max,
		 uint32_t *n)
{
	struct kind_peek p = { .l = l, .msgs = msgs, .max = max };
	int rc;

	*n = 0;
	if (!q->kinds || !max)
		return 0;
	p.some = mem_array(max, sizeof *p.some);
	if (!p.some)
		return SLU_ENOMEM;
	rc = kinds.n ? add_kinds(&p, q, kinds) : add_all(&p, q);
	mem_free(p.some);
	*n = p.n;
	return rc;
}
