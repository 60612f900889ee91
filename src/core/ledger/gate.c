/*
 * gate.c - the gates of queues (core/queue/gates.h): what a closed gate keeps back, and what an open one lets go.
 *
 *      gate of     closed
 *      queue       ledger_best has no message
 *      share       its flows have no candidates; without a share: plain messages
 *      key         the head of the key is parked: READY, in the list `parked` instead of a heap
 *      value       its messages are not in front: core/queue/values.h
 *
 *  LEDGERGATE-1  A queue has a struct gates while its policy has a rate, or a gate exists (also by a hold). Without one, its
 *                heaps are as ever.
 *  LEDGERGATE-2  Tokens are taken when a claim is applied, never in a replay. Buckets are empty after an open.
 *  LEDGERGATE-3  A parked message is linked by pos (next) and link (previous). Its gate names it, so it
 *                is in the trash if it was parked before the last purge.
 */
#include "core/ledger/ledger_private.h"

#include <assert.h>

/* ---- Parked heads ---- */

static void
park(struct ledger *l, struct ledger_queue *q, struct queue_gate *x, uint32_t h)
{
	struct gates *g = q->gates;
	struct msg *m = ledger_msg(l, h);

	m->flags |= MSG_PARKED;
	m->q.place = QUEUE_OUT;
	m->link = SLAB_NONE;
	m->q.pos = g->parked;
	if (g->parked != SLAB_NONE)
		ledger_msg(l, g->parked)->link = h;
	g->parked = h;
	x->parked = h;
	x->epoch = g->epoch;
}

/* GATES-5: where the hint of a gate of the message is kept; `none` if nowhere. */
static uint32_t *
hint_of(const struct ledger *l, const struct ledger_queue *q, const struct msg *m, enum gate_kind kind, uint32_t *none)
{
	struct msg_spot *spot = m->flags & MSG_AT_SPOT ? ledger_spot(l, m->home) : NULL;

	if (kind == GATE_KEY && spot)
		return &spot->key_gate;
	if (kind == GATE_SHARE && ledger_flow_of(l, m) != SHARES_PLAIN)
		return shares_gate(q->shares, spot->flow);
	if (kind == GATE_VALUE && spot)
		return values_gate(q->values, spot->strand);
	return none;
}

/* The gate at which the message is parked. */
static uint32_t
gate_of(const struct ledger *l, const struct ledger_queue *q, const struct msg *m)
{
	const uint32_t h = gates_find(q->gates, GATE_KEY, ledger_key_of(l, m)->hash);

	assert(h != SLAB_NONE); /* GATES-1 */
	return h;
}

static void
unlink_parked(struct ledger *l, struct gates *g, uint32_t h)
{
	struct msg *m = ledger_msg(l, h);

	if (m->q.pos != SLAB_NONE)
		ledger_msg(l, m->q.pos)->link = m->link;
	if (m->link != SLAB_NONE)
		ledger_msg(l, m->link)->q.pos = m->q.pos;
	else if (g->parked == h)
		g->parked = m->q.pos;
	else
		g->trash = m->q.pos;
	m->flags &= (uint8_t)~MSG_PARKED;
	m->link = SLAB_NONE;
	m->q.pos = SLAB_NONE;
}

static void
release(struct ledger *l, struct ledger_queue *q, struct queue_gate *x)
{
	unlink_parked(l, q->gates, x->parked);
	x->parked = SLAB_NONE;
}

void
ledger_gate_unpark(struct ledger *l, struct ledger_queue *q, uint32_t h)
{
	const uint32_t x = gate_of(l, q, ledger_msg(l, h));

	release(l, q, gate_at(q->gates, x));
	if (gate_at(q->gates, x)->pos == HEAP_OUT)
		(void)gates_rank(q->gates, x, l->now); /* it is open: perhaps only the message needed it */
}

bool
ledger_gate_parks(struct ledger *l, struct ledger_queue *q, uint32_t h)
{
	const struct msg *m = ledger_msg(l, h);
	uint32_t hint = SLAB_NONE, x = SLAB_NONE;

	if ((m->flags & MSG_KEYED) && q->gates->slab.used)
		x = gates_find_at(q->gates, GATE_KEY, ledger_key_of(l, m)->hash, hint_of(l, q, m, GATE_KEY, &hint));
	if (x == SLAB_NONE || !gate_at(q->gates, x)->until)
		return false;
	park(l, q, gate_at(q->gates, x), h);
	return true;
}

bool
ledger_gate_is_trash(const struct ledger *l, const struct ledger_queue *q, const struct msg *m)
{
	return gate_at(q->gates, gate_of(l, q, m))->epoch != q->gates->epoch;
}

void
ledger_gate_purge(struct ledger_queue *q)
{
	assert(q->gates->trash == SLAB_NONE);
	q->gates->trash = q->gates->parked;
	q->gates->parked = SLAB_NONE;
	q->gates->epoch++;
}

uint32_t
ledger_gate_trash_pop(struct ledger *l, struct ledger_queue *q)
{
	const uint32_t h = q->gates ? q->gates->trash : SLAB_NONE;

	if (h != SLAB_NONE)
		ledger_gate_unpark(l, q, h);
	return h;
}

/* ---- Closing and opening ---- */

static void
set_share(struct ledger *l, struct ledger_queue *q, uint64_t name, bool closed)
{
	const uint32_t share = name && q->shares ? shares_find_hash(q->shares, name) : SLAB_NONE;

	if (share == SLAB_NONE)
		return;
	shares_close(q->shares, share, closed);
	ledger_share_count(l, q);
}

/* The head of the key leaves its heap. */
static void
close_key(struct ledger *l, struct ledger_queue *q, struct queue_gate *x)
{
	const uint32_t k = ledger_key_find(l, q->handle, x->name);
	const uint32_t h = k == SLAB_NONE ? SLAB_NONE : ledger_key(l, k)->head;
	const struct msg *m = h == SLAB_NONE ? NULL : ledger_msg(l, h);

	if (!m || msg_state(m) != MSG_READY || (m->flags & (MSG_PARKED | MSG_TAKEN)) || ledger_is_purged(l, q, m, h))
		return;
	ledger_unqueue(l, q, h);
	park(l, q, x, h);
}

static void
open_key(struct ledger *l, struct ledger_queue *q, uint32_t h, const struct queue_gate *was, slu_time now)
{
	if (was->parked == SLAB_NONE || was->epoch != q->gates->epoch)
		return;
	release(l, q, gate_at(q->gates, h));
	(void)gates_rank(q->gates, h, now);
	ledger_make_ready(l, q, was->parked);
}

/* Sets a gate by its bucket, and what it keeps back. */
static void
set_gate(struct ledger *l, struct ledger_queue *q, uint32_t h, slu_time now)
{
	const struct queue_gate was = *gate_at(q->gates, h);
	bool closed;

	ledger_breaker_turn(q, gate_at(q->gates, h), now);
	closed = gates_rank(q->gates, h, now);

	if (!was.until && !closed)
		return; /* as most gates: it was open and is open */
	if (was.kind == GATE_SHARE)
		set_share(l, q, was.name, closed);
	else if (was.kind == GATE_VALUE)
		ledger_value_close(l, q, was.name, closed);
	else if (was.kind == GATE_KEY && closed)
		close_key(l, q, gate_at(q->gates, h));
	else if (was.kind == GATE_KEY)
		open_key(l, q, h, &was, now);
	if (was.until && !closed)
		ledger_mark_woken(l, q);
}

static void
count(struct ledger *l, struct ledger_queue *q)
{
	if (!q->gates->changed)
		return;
	q->gates->changed = false;
	ledger_count_heaps(l, q);
}

static void
rest(struct ledger *l, struct ledger_queue *q)
{
	ledger_wake(l, q, gates_next_due(q->gates));
	if (!gates_are_rated(q->gates) && q->gates->slab.used == 0) {
		gates_free(q->gates);
		q->gates = NULL;
		ledger_count_heaps(l, q);
		return;
	}
	count(l, q);
}

void
ledger_gate_set(struct ledger *l, struct ledger_queue *q, uint32_t gate, slu_time now)
{
	set_gate(l, q, gate, now);
	rest(l, q);
}

uint32_t
ledger_gates_turn(struct ledger *l, struct ledger_queue *q, slu_time now, uint32_t max)
{
	uint32_t n = 0, h;

	while (n < max && (h = gates_due(q->gates, now)) != SLAB_NONE) {
		set_gate(l, q, h, now);
		n++;
	}
	n += gates_sweep(q->gates, now, max - n);
	if (n)
		rest(l, q);
	return n;
}

/* ---- Deliveries ---- */

int
ledger_gates_reserve(struct ledger *l, struct ledger_queue *q)
{
	const int rc = gates_reserve(q->gates, GATE_KINDS);

	count(l, q);
	return rc;
}

static uint64_t
share_hash(const struct ledger *l, const struct ledger_queue *q, const struct msg *m)
{
	return ledger_flow_of(l, m) != SHARES_PLAIN ? shares_hash(q->shares, ledger_flow_of(l, m)) : 0;
}

static void
charge(struct ledger *l, struct ledger_queue *q, const struct msg *m, enum gate_kind kind, slu_time now)
{
	uint32_t none = SLAB_NONE, h;

	if (!q->gates->rules[kind].rate)
		return;
	h = gates_make_at(q->gates, kind, ledger_gate_name(l, q, m, kind), hint_of(l, q, m, kind, &none));
	if (gates_take(q->gates, h, now))
		set_gate(l, q, h, now);
}

void
ledger_gates_charge(struct ledger *l, struct ledger_queue *q, const struct msg *m, slu_time now)
{
	charge(l, q, m, GATE_QUEUE, now);
	charge(l, q, m, GATE_SHARE, now);
	if (m->flags & MSG_KEYED)
		charge(l, q, m, GATE_KEY, now);
	if (ledger_strand_of(l, m) != SLAB_NONE)
		charge(l, q, m, GATE_VALUE, now);
	rest(l, q);
}

void
ledger_gate_share(struct ledger *l, struct ledger_queue *q, uint32_t flow)
{
	set_share(l, q, shares_hash(q->shares, flow), gates_closed(q->gates, GATE_SHARE, shares_hash(q->shares, flow)) != 0);
}

bool
ledger_gate_is_closed(const struct ledger_queue *q, enum gate_kind kind, uint64_t name)
{
	return q->gates && gates_closed(q->gates, kind, name);
}

/* ---- Holds ---- */

static uint64_t
name_of(const struct ledger *l, const struct ledger_queue *q, const struct change *c)
{
	return c->share.n ? ledger_key_hash(l, q->handle, c->share) : 0;
}

int
ledger_hold_reserve(struct ledger *l, const struct change *c)
{
	struct ledger_queue *q = ledger_queue(l, c->queue);
	int rc = q->gates ? 0 : gates_new(&q->gates);

	if (!rc)
		rc = gates_reserve_hold(q->gates, c->share);
	ledger_count_heaps(l, q);
	return rc;
}

void
ledger_put_hold(struct ledger *l, const struct change *c)
{
	struct ledger_queue *q = ledger_queue(l, c->queue);
	const uint32_t h = gates_make(q->gates, (enum gate_kind)c->scope, name_of(l, q, c));

	gates_hold(q->gates, h, c->until);
	set_gate(l, q, h, c->at);
	rest(l, q);
}

slu_time
ledger_hold_end(const struct ledger *l, uint32_t queue, enum gate_kind scope, struct slice name)
{
	const struct ledger_queue *q = ledger_queue(l, queue);
	const struct change c = { .share = name };
	const uint32_t h = q->gates ? gates_find(q->gates, scope, name_of(l, q, &c)) : SLAB_NONE;

	return h == SLAB_NONE ? 0 : gate_at(q->gates, h)->hold;
}

int
ledger_hold(struct ledger *l, uint32_t queue, const struct ledger_scope *scope, slu_time until, slu_time now,
	    struct change *out)
{
	const slu_time before = ledger_hold_end(l, queue, scope->kind, scope->name);
	const slu_time most = l->limits.hold ? l->limits.hold : LEDGER_HOLD_MAX;
	struct change c = ledger_begin(l, CHANGE_HOLD, now);

	*out = ledger_begin(l, CHANGE_NONE, now);
	if (until > time_add(c.at, most))
		until = time_add(c.at, most);
	if (until ? until <= c.at || until <= before : !before)
		return 0;
	c.queue = queue;
	c.scope = (uint8_t)scope->kind;
	c.share = scope->name;
	c.until = until;
	return ledger_promise(l, &c, out);
}

/* ---- Settings ---- */

static void
read_rules(const struct policy *p, struct gates *g)
{
	const struct bucket_rule rules[GATE_KINDS] = {
		[GATE_QUEUE] = { p->rate, p->rate_burst },
		[GATE_SHARE] = { p->share_rate, p->share_rate_burst },
		[GATE_KEY] = { p->key_rate, p->key_rate_burst },
		[GATE_VALUE] = { p->attribute_rate, p->attribute_rate_burst },
	};

	gates_set_rules(g, rules);
}

int
ledger_gates_make(struct ledger *l, struct ledger_queue *q, const struct policy *p)
{
	const bool rated = p->rate || p->share_rate || p->key_rate || p->attribute_rate;
	int rc = 0;

	if (rated && !q->gates)
		rc = gates_new(&q->gates);
	if (!rc && q->gates)
		rc = gates_reserve(q->gates, 1);
	ledger_count_heaps(l, q);
	return rc;
}

void
ledger_gates_set(struct ledger *l, struct ledger_queue *q, slu_time now)
{
	read_rules(q->policy, q->gates);
	if (gates_are_rated(q->gates))
		(void)gates_make(q->gates, GATE_QUEUE, 0); /* closed if a bucket has no token since the start */
	else
		q->gates->start = 0;
	for (uint32_t h = gates_next(q->gates, SLAB_NONE); h != SLAB_NONE; h = gates_next(q->gates, h))
		set_gate(l, q, h, now);
	rest(l, q);
}

void
ledger_gates_open(struct ledger *l, struct ledger_queue *q, slu_time now)
{
	struct gates *g = q->gates;

	if (!gates_are_rated(g))
		return;
	g->start = now;
	for (uint32_t h = gates_next(g, SLAB_NONE); h != SLAB_NONE; h = gates_next(g, h))
		gates_empty(g, h);
	ledger_gates_set(l, q, now);
}

/* ---- Looks ---- */

uint64_t
ledger_gate_name(const struct ledger *l, const struct ledger_queue *q, const struct msg *m, enum gate_kind kind)
{
	if (kind == GATE_SHARE)
		return share_hash(l, q, m);
	if (kind == GATE_KEY)
		return m->flags & MSG_KEYED ? ledger_key_of(l, m)->hash : 0;
	return kind == GATE_VALUE ? ledger_value_hash(l, q, m) : 0;
}

/* The end of the time for which a gate is closed, by one cause. */
static slu_time
end_of(const struct ledger_queue *q, enum gate_kind kind, uint64_t name, enum gate_cause cause)
{
	const uint32_t h = q->gates ? gates_find(q->gates, kind, name) : SLAB_NONE;
	const struct queue_gate *x = h == SLAB_NONE ? NULL : gate_at(q->gates, h);

	if (!x)
		return 0;
	if (cause == GATE_BY_RATE)
		return x->until > x->hold && x->until > x->broken ? x->until : 0;
	return cause == GATE_BY_HOLD ? x->hold : x->broken;
}

slu_time
ledger_gate_wait(const struct ledger *l, const struct ledger_queue *q, const struct msg *m, enum gate_cause cause, enum gate_kind *kind)
{
	slu_time latest = 0;

	for (int k = 0; k < GATE_KINDS; k++) {
		const uint64_t name = ledger_gate_name(l, q, m, (enum gate_kind)k);
		const bool has = name || k == GATE_QUEUE || k == GATE_SHARE;
		const slu_time until = has ? end_of(q, (enum gate_kind)k, name, cause) : 0;

		if (until > latest) {
			latest = until;
			*kind = (enum gate_kind)k;
		}
	}
	return latest;
}
