/*
 * spot.c - spots: the place of messages with a share or a kind, or with a value that their queue limits.
 *
 *      message ── home ──> spot ──> key, or none
 *                               ├─> flow: share and priority; kind; SHARES_PLAIN: neither
 *                               └─> strand: value and flow; or none
 *
 * A message with all of these would cost a look-up of its share, flow, value, strand and spot, twice. Most messages of a key have
 * the share and the value of the one before, so most look-ups are a look at its spot.
 *
 *  LEDGERSPOT-1  A spot exists while messages name it. Two spots of a queue may be equal.
 *  LEDGERSPOT-2  A new message with a key gets the spot of the last message of its key; one without a key gets the last spot of its strand,
 *          or else of its kind or flow. If that is not the right one, it gets a new one.
 *  LEDGERSPOT-3  The last spot of a strand or flow may be gone or of something else: it is compared with the message before it counts. So
 *          is what deciding has found, if another change was decided or applied before this one is.
 */
#include "core/ledger/ledger_kind.h"
#include "core/ledger/ledger_private.h"

#include <assert.h>

/* LEDGERSPOT-3: the spot, or NULL if it is gone. */
static const struct msg_spot *
spot_if(const struct ledger *l, uint32_t h)
{
	const struct msg_spot *spot = h < l->spots.fresh && slab_has(&l->spots, h) ? ledger_spot(l, h) : NULL;

	return spot && spot->refs ? spot : NULL;
}

/* The spot of the last message of the key, or SLAB_NONE. */
static uint32_t
spot_of_key(const struct ledger *l, uint32_t key)
{
	const struct order_key *k = ledger_key(l, key);
	const uint32_t h = k->held.first != SLAB_NONE ? k->held.last : k->head;

	return h != SLAB_NONE && ledger_msg(l, h)->flags & MSG_AT_SPOT ? ledger_msg(l, h)->home : SLAB_NONE;
}

/* The place to compare a new message with first. */
static struct spot_place
guess(const struct ledger *l, const struct ledger_queue *q, const struct change *c)
{
	const uint32_t key = c->key ? ledger_key_find(l, c->queue, c->key) : SLAB_NONE;
	const struct msg_spot *spot = key == SLAB_NONE ? NULL : spot_if(l, spot_of_key(l, key));

	if (!spot || spot->queue != q->handle)
		return (struct spot_place){ SLAB_NONE, SLAB_NONE };
	return (struct spot_place){ spot->flow, spot->strand };
}

/* Finds the place of a new message, and reserves room for it there. *at: a guess. */
static int
reserve_place(struct ledger *l, struct ledger_queue *q, const struct change *c, struct spot_place *at)
{
	int rc = 0;

	if (kind_is(c->share))
		rc = ledger_kind_reserve(l, q, c->share, &at->flow);
	else if (c->share.n)
		rc = ledger_share_reserve(l, q, c, &at->flow);
	else
		at->flow = SHARES_PLAIN;
	if (!rc && c->value.n)
		return ledger_value_reserve(l, q, c->value, at->flow, &at->strand);
	at->strand = SLAB_NONE;
	return rc;
}

int
ledger_spot_reserve(struct ledger *l, const struct change *c)
{
	struct ledger_queue *q = ledger_queue(l, c->queue);
	int rc;

	l->placed = 0;
	l->place = guess(l, q, c);
	rc = reserve_place(l, q, c, &l->place);
	if (!rc)
		rc = slab_reserve(&l->spots, 1);
	if (!rc)
		l->placed = c->number;
	ledger_share_count(l, q);
	return rc;
}

/* Where the last spot is, of messages without a key. */
static uint32_t *
last_spot(const struct ledger_queue *q, const struct msg_spot *of)
{
	if (of->strand != SLAB_NONE)
		return values_spot(q->values, of->strand);
	return of->flow & SPOT_KIND ? values_spot(q->kinds, of->flow & ~(uint32_t)SPOT_KIND) : shares_spot(q->shares, of->flow);
}

static bool
is_same(const struct msg_spot *a, const struct msg_spot *b)
{
	return a && a->queue == b->queue && a->key == b->key && a->flow == b->flow && a->strand == b->strand;
}

/* LEDGERSPOT-2 */
static uint32_t
find_spot(struct ledger *l, const struct ledger_queue *q, const struct msg_spot *name)
{
	uint32_t of_key = name->key != SLAB_NONE ? spot_of_key(l, name->key) : SLAB_NONE;
	uint32_t *const last = name->key != SLAB_NONE ? &of_key : last_spot(q, name);

	if (is_same(spot_if(l, *last), name))
		return *last;
	*last = slab_new(&l->spots);
	assert(*last != SLAB_NONE); /* reserved */
	*ledger_spot(l, *last) = *name;
	return *last;
}

void
ledger_spot_attach(struct ledger *l, struct ledger_queue *q, struct msg *m, const struct change *c)
{
	struct spot_place at = l->place;
	const int rc = c->number && l->placed == c->number ? 0 : reserve_place(l, q, c, &at);
	const struct msg_spot name = {
		.queue = c->queue,
		.key = m->flags & MSG_KEYED ? m->home : SLAB_NONE,
		.flow = at.flow,
		.strand = at.strand,
		.key_gate = SLAB_NONE,
	};

	assert(rc == 0); /* reserved */
	(void)rc;
	if (kind_is(c->share))
		ledger_kind_attach(q, at.flow);
	else if (c->share.n)
		ledger_share_attach(l, q, at.flow);
	if (c->value.n)
		ledger_value_attach(l, q, at.strand);
	m->home = find_spot(l, q, &name);
	m->flags |= MSG_AT_SPOT;
	ledger_spot(l, m->home)->refs++;
}

void
ledger_spot_detach(struct ledger *l, struct ledger_queue *q, const struct msg *m)
{
	struct msg_spot *spot = ledger_spot(l, m->home);

	if (spot->strand != SLAB_NONE)
		values_drop(q->values, spot->strand);
	if (spot->flow != SHARES_PLAIN && spot->flow & SPOT_KIND)
		ledger_kind_detach(l, q, spot->flow);
	else if (spot->flow != SHARES_PLAIN)
		shares_drop(q->shares, spot->flow);
	if (--spot->refs == 0)
		slab_free(&l->spots, m->home);
	ledger_value_rest(l, q);
	ledger_share_count(l, q);
}

/* What names the spot of the message at another priority. The texts belong to the share and to the value, which stay. */
static struct change
spot_at(const struct ledger *l, uint32_t h, int32_t prio)
{
	const struct msg *m = ledger_msg(l, h);

	return (struct change){
		.queue = ledger_home(l, m),
		.key = m->flags & MSG_KEYED ? ledger_key_of(l, m)->hash : 0,
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
	const struct change c = spot_at(l, h, prio);

	return is_of_priority(l, ledger_msg(l, h), prio) ? 0 : ledger_spot_reserve(l, &c);
}

/* Share and value, which count leases, stay the same. */
void
ledger_priority_set(struct ledger *l, struct ledger_queue *q, uint32_t h, int32_t prio)
{
	const struct change c = spot_at(l, h, prio);
	struct msg *m = ledger_msg(l, h);
	const bool stays = is_of_priority(l, m, prio);
	const struct msg before = *m;

	m->q.prio = prio;
	if (stays)
		return;
	m->home = ledger_spot(l, m->home)->key;
	m->flags &= (uint8_t)~MSG_AT_SPOT;
	ledger_spot_attach(l, q, m, &c);
	ledger_spot_detach(l, q, &before);
}

void
ledger_spot_lease(struct ledger *l, struct ledger_queue *q, const struct msg *m, bool begins)
{
	const struct msg_spot *spot = ledger_spot(l, m->home);
	const uint32_t flow = ledger_flow_of(l, m), kind = ledger_kind_of(l, m);

	if (flow != SHARES_PLAIN)
		shares_lease(q->shares, flow, begins);
	if (kind != SLAB_NONE)
		(void)values_lease(q->kinds, values_of(q->kinds, kind), begins); /* a kind has no limit */
	if (spot->strand != SLAB_NONE)
		ledger_value_lease(l, q, spot->strand, begins);
	ledger_share_count(l, q);
}
