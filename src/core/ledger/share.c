/*
 * share.c - the shares of queues (core/queue/shares.h), and the lanes of messages that have one.
 *
 *      message ── home ──> lane ──> key, or none
 *                               └─> flow: share and priority
 *
 *  LEDGERSHARE-1  A queue has a struct shares from its first message with a share until no such message,
 *                 and no ready message of its priorities, is left. Without one, its heaps are as ever.
 *  LEDGERSHARE-2  Tags change when a claim is applied, never in a replay. So a ledger that was opened, or
 *                 taken over, begins with equal tags.
 */
#include "core/ledger/ledger_private.h"

#include "base/mem.h"

#include <assert.h>

/* ---- Lanes ---- */

static uint64_t
hash_lane(const struct msg_lane *at)
{
	return hash_number((uint64_t)at->flow << 32 | at->key) ^ hash_number(at->queue);
}

static uint64_t
lane_hash(const void *lanes, uint32_t h)
{
	return hash_lane(slab_at(lanes, h));
}

static bool
lane_is(const void *lanes, uint32_t h, const void *key)
{
	const struct msg_lane *a = slab_at(lanes, h), *b = key;

	return a->queue == b->queue && a->key == b->key && a->flow == b->flow;
}

void
ledger_lanes_init(struct ledger *l)
{
	slab_init(&l->lanes, sizeof(struct msg_lane));
	map_init(&l->lane_of, &l->lanes, lane_hash, lane_is);
}

void
ledger_lanes_release(struct ledger *l)
{
	map_release(&l->lane_of);
	slab_release(&l->lanes);
}

static uint32_t
make_lane(struct ledger *l, const struct msg_lane *name)
{
	const uint32_t h = slab_new(&l->lanes);
	int rc;

	assert(h != SLAB_NONE); /* reserved */
	*(struct msg_lane *)slab_at(&l->lanes, h) = *name;
	rc = map_insert(&l->lane_of, hash_lane(name), h);
	assert(rc == 0); /* reserved */
	(void)rc;
	return h;
}

/* ---- Shares ---- */

void
ledger_share_count(struct ledger *l, struct ledger_queue *q)
{
	const uint32_t n = q->shares ? shares_count(q->shares) : 0;

	l->n_shares += n - q->n_shares; /* modulo 2^32: it may be less */
	q->n_shares = n;
	ledger_count_heaps(l, q);
}

/* All plain messages that are ready. Takes 5 ms for a million of them. */
static void
count_plain(struct ledger *l, struct ledger_queue *q)
{
	for (uint32_t i = 0; i < q->heaps.ready.n; i++)
		shares_enter_plain(q->shares, ledger_msg(l, q->heaps.ready.nodes[i].handle)->q.prio);
}

static int
open_shares(struct ledger *l, struct ledger_queue *q)
{
	const int rc = q->shares ? 0 : shares_new(&q->shares, &l->msgs, &q->secret);

	if (!rc)
		shares_limit(q->shares, q->policy.share_concurrency);
	return rc;
}

int
ledger_share_reserve(struct ledger *l, const struct change *c)
{
	struct ledger_queue *q = ledger_queue(l, c->queue);
	const bool first = !q->shares;
	uint32_t flow;
	int rc = open_shares(l, q);

	if (!rc && first)
		count_plain(l, q);
	if (!rc)
		rc = shares_reserve(q->shares, c->share, policy_weight(&q->policy, c->share), c->prio, &flow);
	if (!rc)
		rc = slab_reserve(&l->lanes, 1);
	if (!rc)
		rc = map_reserve(&l->lane_of, 1);
	ledger_share_count(l, q);
	return rc;
}

bool
ledger_share_fits(const struct ledger *l, const struct ledger_queue *q, struct slice share)
{
	return !l->limits.shares || l->n_shares < l->limits.shares ||
	       (q->shares && shares_find(q->shares, share) != SLAB_NONE);
}

void
ledger_share_attach(struct ledger *l, struct ledger_queue *q, struct msg *m, const struct change *c)
{
	struct msg_lane name = { .queue = c->queue, .key = m->flags & MSG_KEYED ? m->home : SLAB_NONE };
	uint32_t h;
	int rc;

	rc = shares_reserve(q->shares, c->share, policy_weight(&q->policy, c->share), c->prio, &name.flow);
	assert(rc == 0); /* reserved */
	(void)rc;
	shares_hold(q->shares, name.flow);
	if (q->gates)
		ledger_gate_share(l, q, name.flow);
	h = map_find(&l->lane_of, hash_lane(&name), &name);
	m->home = h == MAP_NONE ? make_lane(l, &name) : h;
	m->flags |= MSG_SHARED;
	ledger_lane(l, m->home)->refs++;
}

void
ledger_share_detach(struct ledger *l, struct ledger_queue *q, const struct msg *m)
{
	struct msg_lane *lane = ledger_lane(l, m->home);

	shares_drop(q->shares, lane->flow);
	if (--lane->refs == 0) {
		map_remove(&l->lane_of, hash_lane(lane), m->home);
		slab_free(&l->lanes, m->home);
	}
	ledger_share_count(l, q);
}

void
ledger_share_rest(struct ledger *l, struct ledger_queue *q)
{
	if (!shares_are_idle(q->shares))
		return;
	shares_free(q->shares);
	q->shares = NULL;
	ledger_share_count(l, q);
}

struct slice
ledger_share_name(const struct ledger *l, const struct msg *m)
{
	const struct ledger_queue *q = ledger_queue_of(l, m);
	struct share_view v;

	if (!(m->flags & MSG_SHARED))
		return (struct slice){ 0 };
	shares_get(q->shares, shares_of(q->shares, ledger_lane(l, m->home)->flow), &v);
	return v.name;
}

struct slice
ledger_share_of(const struct ledger *l, uint32_t msg)
{
	return ledger_share_name(l, ledger_msg(l, msg));
}

/* ---- Ready messages ---- */

static uint32_t
flow_of(const struct ledger *l, const struct msg *m)
{
	return m->flags & MSG_SHARED ? ledger_lane(l, m->home)->flow : SHARES_PLAIN;
}

void
ledger_share_enter(struct ledger *l, struct ledger_queue *q, uint32_t h)
{
	struct msg *m = ledger_msg(l, h);

	if (m->flags & MSG_SHARED) {
		m->q.place = QUEUE_READY;
		shares_enter(q->shares, flow_of(l, m), h);
		return;
	}
	queue_wait(&q->heaps, h, m->q.due, m->q.due);
	shares_enter_plain(q->shares, m->q.prio);
	ledger_share_count(l, q);
}

void
ledger_share_leave(struct ledger *l, struct ledger_queue *q, uint32_t h)
{
	struct msg *m = ledger_msg(l, h);

	if (m->flags & MSG_SHARED) {
		shares_leave(q->shares, flow_of(l, m), h);
		m->q.place = QUEUE_OUT;
	} else {
		queue_take(&q->heaps, h);
		shares_leave_plain(q->shares, m->q.prio);
	}
	ledger_share_count(l, q);
}

void
ledger_share_charge(struct ledger *l, struct ledger_queue *q, uint32_t h)
{
	const struct msg *m = ledger_msg(l, h);

	shares_charge(q->shares, flow_of(l, m), m->q.prio);
	ledger_share_count(l, q);
}

bool
ledger_share_is_trash(const struct ledger *l, const struct ledger_queue *q, uint32_t h)
{
	return shares_is_trash(q->shares, ledger_lane(l, ledger_msg(l, h)->home)->flow, h);
}

int
ledger_peek_ready(const struct ledger_queue *q, uint32_t *msgs, uint32_t max, uint32_t *n)
{
	return q->shares ? shares_peek(q->shares, &q->heaps.ready, msgs, max, n)
			 : heap_peek(&q->heaps.ready, msgs, max, n);
}

void
ledger_share_lease(struct ledger *l, struct ledger_queue *q, const struct msg *m, bool begins)
{
	shares_lease(q->shares, ledger_lane(l, m->home)->flow, begins);
	ledger_share_count(l, q);
}

void
ledger_share_set(struct ledger *l, struct ledger_queue *q)
{
	struct share_view v;

	shares_limit(q->shares, q->policy.share_concurrency);
	ledger_share_count(l, q);

	for (uint32_t h = shares_next(q->shares, SLAB_NONE); h != SLAB_NONE; h = shares_next(q->shares, h)) {
		shares_get(q->shares, h, &v);
		shares_weigh(q->shares, h, policy_weight(&q->policy, v.name));
	}
}

uint32_t
ledger_share_ahead(const struct ledger_queue *q, uint32_t h, uint32_t most)
{
	uint32_t *msgs = mem_array(most + 1, sizeof *msgs);
	uint32_t n = 0, i = 0;

	if (!msgs || shares_peek(q->shares, &q->heaps.ready, msgs, most + 1, &n)) {
		mem_free(msgs);
		return most + 1;
	}
	while (i < n && msgs[i] != h)
		i++;
	mem_free(msgs);
	return i;
}

/* ---- Limits ---- */

static bool
plain_is_limited(const struct ledger_queue *q)
{
	const uint32_t shared = q->shares ? shares_leased(q->shares) : 0;

	if (ledger_gate_is_closed(q, GATE_SHARE, 0))
		return true;
	return q->policy.share_concurrency && q->count[MSG_LEASED] - shared >= q->policy.share_concurrency;
}

static bool
queue_is_limited(const struct ledger_queue *q)
{
	if (ledger_gate_is_closed(q, GATE_QUEUE, 0))
		return true;
	return q->policy.concurrency && q->count[MSG_LEASED] >= q->policy.concurrency;
}

uint32_t
ledger_best(const struct ledger_queue *q)
{
	const bool limited = plain_is_limited(q);

	if (q->policy.paused || queue_is_limited(q))
		return SLAB_NONE;
	if (!q->shares)
		return limited ? SLAB_NONE : queue_best(&q->heaps);
	shares_block_plain(q->shares, limited);
	return shares_best(q->shares, &q->heaps.ready);
}

uint32_t
ledger_limit_of(const struct ledger *l, const struct ledger_queue *q, const struct msg *m)
{
	const struct policy *p = &q->policy;
	uint32_t leased = q->count[MSG_LEASED] - (q->shares ? shares_leased(q->shares) : 0);
	struct share_view v;

	if (p->concurrency && q->count[MSG_LEASED] >= p->concurrency)
		return p->concurrency;
	if (m->flags & MSG_SHARED) {
		shares_get(q->shares, shares_of(q->shares, ledger_lane(l, m->home)->flow), &v);
		leased = v.leased;
	}
	return p->share_concurrency && leased >= p->share_concurrency ? p->share_concurrency : 0;
}
