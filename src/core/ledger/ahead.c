#include "core/ledger/ahead.h"

#include "core/ledger/ledger_private.h"

#include "base/cpu.h"

enum {
	RUN = 4 /* slots of a map that are looked at */
};

/* ---- Puts: the steps in the order of the distance ---- */

static void
load_keys(const struct ledger *l, uint64_t hash)
{
	uint32_t found[RUN];
	const unsigned n = map_run(&l->key_hashes, hash, found, RUN);

	for (unsigned i = 0; i < n; i++)
		cpu_prefetch(ledger_key(l, found[i]));
}

static uint32_t
spot_of(const struct ledger *l, uint32_t msg)
{
	return msg != SLAB_NONE && ledger_msg(l, msg)->flags & MSG_AT_SPOT ? ledger_msg(l, msg)->home : SLAB_NONE;
}

static void
load_spot(const struct ledger *l, const struct ledger_queue *q, uint32_t h, bool deep)
{
	const struct msg_spot *const spot = ledger_spot(l, h);

	if (q->shares && spot->flow < SPOT_KIND)
		shares_load(q->shares, spot->flow, deep);
	if (q->values && spot->strand != SLAB_NONE)
		values_load(q->values, spot->strand, deep);
}

static void
find_key(const struct ledger *l, uint32_t queue, struct ledger_ahead_of *of)
{
	const struct order_key *k;

	of->key = ledger_key_find(l, queue, of->hash);
	k = of->key == SLAB_NONE ? NULL : ledger_key(l, of->key);
	of->h = !k ? SLAB_NONE : k->held.first != SLAB_NONE ? k->held.last
							    : k->head;
	if (of->h != SLAB_NONE)
		cpu_prefetch(ledger_msg(l, of->h));
}

/* The put that came `age` puts before. */
static struct ledger_ahead_of *
before(struct ledger_ahead *a, uint32_t age)
{
	return &a->of[(a->n - age) % LEDGER_AHEAD_ROOM];
}

void
ledger_ahead_begin(struct ledger_ahead *a, uint32_t queue)
{
	a->queue = queue;
	a->n = 0;
	for (uint32_t i = 0; i < LEDGER_AHEAD_ROOM; i++)
		a->of[i] = (struct ledger_ahead_of){ .h = SLAB_NONE, .key = SLAB_NONE };
}

void
ledger_ahead_put(const struct ledger *l, struct ledger_ahead *a, struct slice key)
{
	const struct ledger_queue *const q = ledger_queue(l, a->queue);
	struct ledger_ahead_of *of = before(a, 0);

	*of = (struct ledger_ahead_of){ .h = SLAB_NONE, .key = SLAB_NONE };
	if (key.n) {
		of->hash = ledger_key_hash(l, a->queue, key);
		map_prefetch(&l->key_hashes, of->hash);
	}
	if (before(a, 1)->hash)
		load_keys(l, before(a, 1)->hash);
	if (before(a, 2)->hash)
		find_key(l, a->queue, before(a, 2));
	of = before(a, 3);
	of->h = spot_of(l, of->h);
	if (of->h != SLAB_NONE)
		cpu_prefetch(ledger_spot(l, of->h));
	if (before(a, 4)->h != SLAB_NONE)
		load_spot(l, q, before(a, 4)->h, false);
	if (before(a, 5)->h != SLAB_NONE)
		load_spot(l, q, before(a, 5)->h, true);
	a->n++;
}

uint64_t
ledger_ahead_use(struct ledger *l, const struct ledger_ahead *a, uint32_t i)
{
	const struct ledger_ahead_of *const of = &a->of[i % LEDGER_AHEAD_ROOM];

	if (i >= a->n || i + LEDGER_AHEAD_ROOM < a->n)
		return 0;
	if (of->key != SLAB_NONE)
		l->found_key = of->key;
	return of->hash;
}

/* ---- Claims ---- */

static void
load_beside(const struct ledger *l, const struct ledger_queue *q, const struct msg_spot *spot, bool deep)
{
	if (spot->key != SLAB_NONE && !deep)
		cpu_prefetch(ledger_key(l, spot->key));
	if (q->values && spot->strand != SLAB_NONE)
		values_load(q->values, spot->strand, deep);
	if (q->gates && spot->key_gate < q->gates->slab.fresh && !deep)
		cpu_prefetch(gate_at(q->gates, spot->key_gate));
}

void
ledger_ahead_claim(const struct ledger *l, uint32_t queue)
{
	const struct ledger_queue *const q = ledger_queue(l, queue);
	uint32_t msgs[SHARES_AHEAD], h;

	if (!q->shares || !shares_ahead(q->shares, msgs))
		return;
	cpu_prefetch(ledger_msg(l, msgs[3]));
	h = spot_of(l, msgs[2]);
	if (h != SLAB_NONE)
		cpu_prefetch(ledger_spot(l, h));
	h = spot_of(l, msgs[1]);
	if (h != SLAB_NONE)
		load_beside(l, q, ledger_spot(l, h), false);
	h = spot_of(l, msgs[0]);
	if (h != SLAB_NONE)
		load_beside(l, q, ledger_spot(l, h), true);
}
