/*
 * share.c - the shares of queues (core/queue/shares.h).
 *
 *  LEDGERSHARE-1  A queue has a struct shares from its first message with a share until no such message,
 *                 and no ready message of its priorities, is left. Without one, its heaps are as ever.
 *  LEDGERSHARE-2  Tags change when a claim is applied, never in a replay. So a ledger that was opened, or
 *                 taken over, begins with equal tags.
 */
#include "core/ledger/ledger_kind.h"
#include "core/ledger/ledger_private.h"

#include "base/mem.h"

#include <assert.h>

/* ---- Shares ---- */

void
ledger_share_count(struct ledger *l, struct ledger_queue *q)
{
	const uint32_t n = q->shares ? shares_count(q->shares) : 0;
	const bool shares = q->shares && shares_have_changed(q->shares);
	const bool values = q->values && values_have_changed(q->values);
	const bool kinds = q->kinds && values_have_changed(q->kinds);

	l->n_shares += n - q->n_shares; /* modulo 2^32: it may be less */
	q->n_shares = n;
	if (shares || values || kinds)
		ledger_count_heaps(l, q);
}

struct plain_count {
	const struct ledger *l;
	struct shares *s;
};

static bool
count_one(void *arg, uint32_t h)
{
	const struct plain_count *const c = arg;

	shares_enter_plain(c->s, ledger_msg(c->l, h)->q.prio);
	return true;
}

/* All plain messages that are ready. Takes 5 ms for a million of them. */
static void
count_plain(struct ledger *l, struct ledger_queue *q)
{
	queue_look(&q->heaps, count_one, &(struct plain_count){ l, q->shares });
	if (q->values)
		ledger_value_count_plain(l, q, q->values);
	if (q->kinds)
		ledger_value_count_plain(l, q, q->kinds);
}

static int
open_shares(struct ledger *l, struct ledger_queue *q)
{
	int rc;

	if (q->shares)
		return 0;
	rc = shares_new(&q->shares, &l->msgs, &q->secret);
	if (!rc)
		shares_limit(q->shares, q->policy->share_concurrency);
	return rc;
}

int
ledger_share_reserve(struct ledger *l, struct ledger_queue *q, const struct change *c, uint32_t *flow)
{
	const bool first = !q->shares;
	const int rc = open_shares(l, q);

	if (!rc && first)
		count_plain(l, q);
	if (rc)
		return rc;
	if (!shares_is_flow(q->shares, *flow, c->share, c->prio))
		*flow = shares_flow(q->shares, c->share, c->prio);
	return *flow != SLAB_NONE ? shares_room(q->shares, *flow)
				  : shares_reserve(q->shares, c->share, policy_weight(q->policy, c->share), c->prio, flow);
}

bool
ledger_share_fits(const struct ledger *l, const struct ledger_queue *q, struct slice share)
{
	if (kind_is(share))
		return ledger_kind_fits(q, share);
	return !l->limits.shares || l->n_shares < l->limits.shares ||
	       (q->shares && shares_find(q->shares, share) != SLAB_NONE);
}

void
ledger_share_attach(struct ledger *l, struct ledger_queue *q, uint32_t flow)
{
	shares_hold(q->shares, flow);
	if (q->gates && shares_is_new(q->shares, flow))
		ledger_gate_share(l, q, flow);
}

void
ledger_share_rest(struct ledger *l, struct ledger_queue *q)
{
	if (!shares_are_idle(q->shares))
		return;
	shares_free(q->shares);
	q->shares = NULL;
	ledger_share_count(l, q);
	ledger_count_heaps(l, q);
}

struct slice
ledger_share_name(const struct ledger *l, const struct msg *m)
{
	const struct ledger_queue *q = ledger_queue_of(l, m);
	struct share_view v;

	if (ledger_flow_of(l, m) == SHARES_PLAIN)
		return (struct slice){ 0 };
	shares_get(q->shares, shares_of(q->shares, ledger_flow_of(l, m)), &v);
	return v.name;
}

struct slice
ledger_line_of(const struct ledger *l, const struct msg *m)
{
	const struct ledger_queue *q = ledger_queue_of(l, m);
	const uint32_t kind = ledger_kind_of(l, m);
	struct value_view v;

	if (kind == SLAB_NONE)
		return ledger_share_name(l, m);
	values_get(q->kinds, values_of(q->kinds, kind), &v);
	return v.name;
}

struct slice
ledger_share_of(const struct ledger *l, uint32_t msg)
{
	return ledger_share_name(l, ledger_msg(l, msg));
}

/* ---- Ready messages ---- */

void
ledger_share_enter(struct ledger *l, struct ledger_queue *q, uint32_t h)
{
	struct msg *m = ledger_msg(l, h);

	if (ledger_flow_of(l, m) != SHARES_PLAIN) {
		m->q.place = QUEUE_READY;
		shares_enter(q->shares, ledger_flow_of(l, m), h);
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

	if (ledger_flow_of(l, m) != SHARES_PLAIN) {
		shares_leave(q->shares, ledger_flow_of(l, m), h);
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

	shares_charge(q->shares, ledger_flow_of(l, m), m->q.prio);
	ledger_share_count(l, q);
}

bool
ledger_share_is_trash(const struct ledger *l, const struct ledger_queue *q, uint32_t h)
{
	return shares_is_trash(q->shares, ledger_flow_of(l, ledger_msg(l, h)), h);
}

int
ledger_peek_ready(const struct ledger *l, const struct ledger_queue *q, uint32_t *msgs, uint32_t max, uint32_t *n)
{
	if (q->kinds && !q->shares)
		return ledger_kind_peek(l, q, (struct slice){ 0 }, msgs, max, n);
	return q->shares ? shares_peek(q->shares, &q->heaps, msgs, max, n) : queue_peek(&q->heaps, msgs, max, n);
}

void
ledger_share_set(struct ledger *l, struct ledger_queue *q)
{
	struct share_view v;

	shares_limit(q->shares, q->policy->share_concurrency);
	ledger_share_count(l, q);

	for (uint32_t h = shares_next(q->shares, SLAB_NONE); h != SLAB_NONE; h = shares_next(q->shares, h)) {
		shares_get(q->shares, h, &v);
		shares_weigh(q->shares, h, policy_weight(q->policy, v.name));
	}
}

uint32_t
ledger_share_ahead(const struct ledger_queue *q, uint32_t h, uint32_t most)
{
	uint32_t *msgs = mem_array(most + 1, sizeof *msgs);
	uint32_t n = 0, i = 0;

	if (!msgs || shares_peek(q->shares, &q->heaps, msgs, most + 1, &n)) {
		mem_free(msgs);
		return most + 1;
	}
	while (i < n && msgs[i] != h)
		i++;
	mem_free(msgs);
	return i;
}

/* ---- Limits ---- */

bool
ledger_plain_is_limited(const struct ledger_queue *q)
{
	const uint32_t shared = q->shares ? shares_leased(q->shares) : 0;

	if (ledger_gate_is_closed(q, GATE_SHARE, 0))
		return true;
	return q->policy->share_concurrency && q->count[MSG_LEASED] - shared >= q->policy->share_concurrency;
}

static bool
queue_is_limited(const struct ledger_queue *q)
{
	if (ledger_gate_is_closed(q, GATE_QUEUE, 0))
		return true;
	return q->policy->concurrency && q->count[MSG_LEASED] >= q->policy->concurrency;
}

uint32_t
ledger_best(const struct ledger_queue *q)
{
	const bool limited = ledger_plain_is_limited(q);

	if (q->policy->paused || queue_is_limited(q))
		return SLAB_NONE;
	if (!q->shares)
		return limited ? SLAB_NONE : queue_best(&q->heaps);
	shares_block_plain(q->shares, limited);
	return shares_best(q->shares, &q->heaps);
}

/* The leased messages of the share of a message, or without a share. */
static uint32_t
leased_of_share(const struct ledger *l, const struct ledger_queue *q, const struct msg *m)
{
	struct share_view v;

	if (ledger_flow_of(l, m) == SHARES_PLAIN)
		return q->count[MSG_LEASED] - (q->shares ? shares_leased(q->shares) : 0);
	shares_get(q->shares, shares_of(q->shares, ledger_flow_of(l, m)), &v);
	return v.leased;
}

uint32_t
ledger_limit_of(const struct ledger *l, const struct ledger_queue *q, const struct msg *m, enum gate_kind *kind)
{
	const struct policy *p = q->policy;

	*kind = GATE_QUEUE;
	if (p->concurrency && q->count[MSG_LEASED] >= p->concurrency)
		return p->concurrency;
	*kind = GATE_SHARE;
	if (p->share_concurrency && leased_of_share(l, q, m) >= p->share_concurrency)
		return p->share_concurrency;
	*kind = GATE_VALUE;
	return p->attribute_concurrency && ledger_value_leased(l, q, m) >= p->attribute_concurrency ? p->attribute_concurrency : 0;
}
