/*
 * lane.c - lanes: the place of messages with a share or a kind, or with a value that their queue limits.
 *
 *      message ── home ──> lane ──> key, or none
 *                               ├─> flow: share and priority; kind; SHARES_PLAIN: neither
 *                               └─> strand: value and flow; or none
 */
#include "core/ledger/ledger_kind.h"
#include "core/ledger/ledger_private.h"

#include <assert.h>

static uint64_t
hash_lane(const struct msg_lane *at)
{
	return hash_number((uint64_t)at->flow << 32 | at->key) ^ hash_number((uint64_t)(at->strand + 1) << 32 | at->queue);
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

	return a->queue == b->queue && a->key == b->key && a->flow == b->flow && a->strand == b->strand;
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

int
ledger_lane_reserve(struct ledger *l, const struct change *c)
{
	struct ledger_queue *q = ledger_queue(l, c->queue);
	uint32_t flow = SHARES_PLAIN;
	int rc = 0;

	if (kind_is(c->share))
		rc = ledger_kind_reserve(l, q, c->share, &flow);
	else if (c->share.n)
		rc = ledger_share_reserve(l, q, c, &flow);
	if (!rc && c->value.n)
		rc = ledger_value_reserve(l, q, c->value, flow);
	if (!rc)
		rc = slab_reserve(&l->lanes, 1);
	if (!rc)
		rc = map_reserve(&l->lane_of, 1);
	ledger_share_count(l, q);
	return rc;
}

void
ledger_lane_attach(struct ledger *l, struct ledger_queue *q, struct msg *m, const struct change *c)
{
	struct msg_lane name = {
		.queue = c->queue,
		.key = m->flags & MSG_KEYED ? m->home : SLAB_NONE,
		.flow = SHARES_PLAIN,
		.strand = SLAB_NONE,
	};
	uint32_t h;

	if (kind_is(c->share))
		name.flow = ledger_kind_attach(q, c->share);
	else if (c->share.n)
		name.flow = ledger_share_attach(l, q, c);
	if (c->value.n)
		name.strand = ledger_value_attach(l, q, c->value, name.flow);
	h = map_find(&l->lane_of, hash_lane(&name), &name);
	m->home = h == MAP_NONE ? make_lane(l, &name) : h;
	m->flags |= MSG_LANED;
	ledger_lane(l, m->home)->refs++;
}

void
ledger_lane_detach(struct ledger *l, struct ledger_queue *q, const struct msg *m)
{
	struct msg_lane *lane = ledger_lane(l, m->home);

	if (lane->strand != SLAB_NONE)
		values_drop(q->values, lane->strand);
	if (lane->flow != SHARES_PLAIN && lane->flow & LANE_KIND)
		ledger_kind_detach(q, lane->flow);
	else if (lane->flow != SHARES_PLAIN)
		shares_drop(q->shares, lane->flow);
	if (--lane->refs == 0) {
		map_remove(&l->lane_of, hash_lane(lane), m->home);
		slab_free(&l->lanes, m->home);
	}
	ledger_value_rest(q);
	ledger_share_count(l, q);
}

/* What names the lane of the message at another priority. The texts belong to the share and to the value, which stay. */
static struct change
lane_at(const struct ledger *l, uint32_t h, int32_t prio)
{
	return (struct change){
		.queue = ledger_home(l, ledger_msg(l, h)),
		.share = ledger_line_of(l, ledger_msg(l, h)),
		.value = ledger_value_of(l, h),
		.prio = prio,
	};
}

/* A flow is of one priority. */
static bool
is_of_priority(const struct ledger *l, const struct msg *m, int32_t prio)
{
	return m->q.prio == prio || ledger_flow_of(l, m) == SHARES_PLAIN;
}

int
ledger_priority_reserve(struct ledger *l, uint32_t h, int32_t prio)
{
	const struct change c = lane_at(l, h, prio);

	return is_of_priority(l, ledger_msg(l, h), prio) ? 0 : ledger_lane_reserve(l, &c);
}

/* Share and value, which count leases, stay the same. */
void
ledger_priority_set(struct ledger *l, struct ledger_queue *q, uint32_t h, int32_t prio)
{
	const struct change c = lane_at(l, h, prio);
	struct msg *m = ledger_msg(l, h);
	const bool stays = is_of_priority(l, m, prio);
	const struct msg before = *m;

	m->q.prio = prio;
	if (stays)
		return;
	m->home = ledger_lane(l, m->home)->key;
	m->flags &= (uint8_t)~MSG_LANED;
	ledger_lane_attach(l, q, m, &c);
	ledger_lane_detach(l, q, &before);
}

void
ledger_lane_lease(struct ledger *l, struct ledger_queue *q, const struct msg *m, bool begins)
{
	const struct msg_lane *lane = ledger_lane(l, m->home);
	const uint32_t flow = ledger_flow_of(l, m), kind = ledger_kind_of(l, m);

	if (flow != SHARES_PLAIN)
		shares_lease(q->shares, flow, begins);
	if (kind != SLAB_NONE)
		(void)values_lease(q->kinds, values_of(q->kinds, kind), begins); /* a kind has no limit */
	if (lane->strand != SLAB_NONE)
		ledger_value_lease(l, q, lane->strand, begins);
	ledger_share_count(l, q);
}
