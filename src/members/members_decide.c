/*
 * members_decide.c - ranks, and what to do with each shard.
 *
 *      owner of the shard         this node ranks    then
 *      ─────────────────────────  ─────────────────  ──────────────────────────────────────────
 *      another node, living       any                nothing
 *      dead, or gave the shard    first              take
 *                                 k-th               take k rank_delay later
 *      this node                  first              nothing
 *                                 not first          hand over, if the first is so for hand_over
 *      this node, it drains       another is first   hand over
 *      this node, it leaves       -                  hand over
 *      this node, higher epoch
 *      elsewhere                  any                lost
 */
#include "members/members_private.h"

#include <assert.h>

/* ---- Ranks ---- */

/* FNV-1a of name and shard, then mixed. All nodes of all versions compute the same. */
static uint64_t
score(const char *name, uint32_t shard)
{
	uint64_t h = 14695981039346656037u;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 1099511628211u;
	for (unsigned i = 0; i < 4; i++)
		h = (h ^ (shard >> 8 * i & 0xff)) * 1099511628211u;
	h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
	h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
	return h ^ h >> 33;
}

/* Whether node a ranks before node b; NULL = this node. */
static bool
ranks_before(const struct members *m, const struct member *a, const struct member *b, uint32_t shard)
{
	const bool a_drains = a ? a->draining : m->draining, b_drains = b ? b->draining : m->draining;
	const uint64_t of_a = score(a ? a->name : m->conf.name, shard);
	const uint64_t of_b = score(b ? b->name : m->conf.name, shard);

	if (a_drains != b_drains)
		return b_drains;
	if (of_a != of_b)
		return of_a > of_b;
	return memcmp(a ? a->life : m->conf.life, b ? b->life : m->conf.life, LINE_LIFE) > 0;
}

static bool
may_own(const struct member *n)
{
	return n->beat > 0 && !n->silent && !n->ended;
}

struct member *
members_first(const struct members *m, uint32_t shard, bool *found)
{
	struct member *first = NULL;

	*found = !m->leaving;
	for (uint32_t i = 0; i < m->n_nodes; i++) {
		struct member *const n = m->nodes[i];

		if (!may_own(n) || (*found && !ranks_before(m, n, first, shard)))
			continue;
		first = n;
		*found = true;
	}
	return first;
}

/* Whether a node lives that does not drain. */
static bool
has_taker(const struct members *m)
{
	for (uint32_t i = 0; i < m->n_nodes; i++)
		if (may_own(m->nodes[i]) && !m->nodes[i]->draining)
			return true;
	return !m->draining;
}

/* 1 = this node ranks first. */
static unsigned
own_rank(const struct members *m, uint32_t shard)
{
	unsigned rank = 1;

	for (uint32_t i = 0; i < m->n_nodes; i++)
		rank += may_own(m->nodes[i]) && ranks_before(m, m->nodes[i], NULL, shard);
	return rank;
}

/* ---- Claims ---- */

/* The higher epoch counts. Of one epoch only one opening is in the line; other nodes that tried
 * to put one have given the shard. */
static bool
counts_more(const struct member_shard *s, const struct members_claim *than)
{
	return s->epoch > than->epoch || (s->epoch > 0 && s->epoch == than->epoch && than->given && !s->given);
}

struct members_claim
members_claim(const struct members *m, uint32_t shard)
{
	const struct members_shard *const own = &m->shards[shard];
	struct members_claim c = { own->epoch, NULL, own->state == MEMBERS_NONE };

	for (uint32_t i = 0; i < m->n_nodes; i++) {
		const struct member_shard *const s = &m->nodes[i]->shards[shard];

		if (counts_more(s, &c))
			c = (struct members_claim){ s->epoch, m->nodes[i], s->given };
	}
	return c;
}

static bool
is_vacant(const struct members_claim *c)
{
	return c->epoch == 0 || c->given || (c->member && (c->member->dead || c->member->ended));
}

enum members_role
members_role(const struct members *m, uint32_t shard)
{
	const struct members_claim c = members_claim(m, shard);

	if (m->shards[shard].state != MEMBERS_NONE || !c.member || is_vacant(&c))
		return MEMBERS_OPEN;
	for (uint32_t i = 0; i < m->n_nodes; i++) {
		const struct member *const n = m->nodes[i];

		if (n != c.member && may_own(n) && ranks_before(m, n, NULL, shard))
			return MEMBERS_OTHER;
	}
	return m->draining ? MEMBERS_OTHER : MEMBERS_NEXT;
}

/* Dead nodes without shards are read rarely: an old read does not count. The claim that the line
 * has just shown makes the next rounds read the node. */
bool
members_may_take(struct members *m, uint32_t shard, const struct line_group *newest, slu_time now)
{
	struct member *n;

	members_watch(m, now);
	if (newest->pinned) {
		m->shards[shard].failures++; /* LINE-12 k */
		return false;
	}
	if (memcmp(newest->life, m->conf.life, LINE_LIFE) == 0)
		return true;
	n = members_know(m, newest->life, now);
	if (!n)
		return false;
	if (newest->epoch > n->shards[shard].epoch)
		n->shards[shard] = (struct member_shard){ newest->epoch, false };
	return n->shards[shard].given || n->ended || (n->dead && now - n->last_read < 2 * members_interval(m));
}

/* ---- The states of a shard ---- */

bool
members_opened(struct members *m, uint32_t shard, uint64_t epoch)
{
	struct members_shard *const s = &m->shards[shard];

	assert(s->state == MEMBERS_TAKING);
	if (epoch <= s->given)
		return false;
	s->state = MEMBERS_OWNED;
	s->failures = 0;
	s->epoch = epoch;
	m->changes++;
	return true;
}

/* How long the node waits before its next attempt (LINE-12 j). */
static slu_time
pause_of(const struct members *m, const struct members_shard *s)
{
	const unsigned doubled = s->failures > 0 ? s->failures - 1 : 0;

	return m->conf.rank_delay << (doubled < MEMBERS_DOUBLINGS ? doubled : MEMBERS_DOUBLINGS);
}

void
members_closed(struct members *m, uint32_t shard, uint64_t epoch, slu_time now)
{
	struct members_shard *const s = &m->shards[shard];

	assert(s->state != MEMBERS_NONE);
	s->failures += s->state == MEMBERS_TAKING && epoch > 0;
	s->state = MEMBERS_NONE;
	s->not_before = now + pause_of(m, s);
	s->vacant_since = s->first_since = SLU_NEVER;
	if (epoch > s->epoch)
		s->epoch = epoch;
	s->given = s->epoch > s->given ? s->epoch : s->given;
	m->changes++;
}

/* ---- Events ---- */

/* LINE-12 k */
static bool
is_pinned(const struct members *m, uint32_t shard)
{
	return m->conf.is_pinned && m->conf.is_pinned(m->conf.arg, shard);
}

static bool
wants_take(struct members *m, uint32_t shard, const struct members_claim *c, slu_time now)
{
	struct members_shard *const s = &m->shards[shard];
	unsigned rank;

	if (!is_vacant(c) || !m->beat_ok || !m->round_ok) {
		s->vacant_since = SLU_NEVER;
		return false;
	}
	if (s->vacant_since == SLU_NEVER)
		s->vacant_since = now;
	rank = is_pinned(m, shard) ? 1 : own_rank(m, shard);
	return !m->leaving && (!m->draining || !has_taker(m)) && now >= s->not_before &&
	       now - s->vacant_since >= (rank > 1 ? rank * m->conf.rank_delay : 0);
}

/* Whether the shard goes to another node now; *to is that node, NULL if no other node lives. */
static bool
wants_hand_over(struct members *m, uint32_t shard, slu_time now, struct member **to)
{
	struct members_shard *const s = &m->shards[shard];
	bool found;

	*to = members_first(m, shard, &found);
	if (is_pinned(m, shard))
		return m->leaving;
	if (m->draining)
		return m->leaving || (*to && !(*to)->draining);
	if (!*to || !m->counting) {
		s->first_since = SLU_NEVER;
		return false;
	}
	if (s->first_since == SLU_NEVER || memcmp(s->first, (*to)->life, LINE_LIFE) != 0) {
		memcpy(s->first, (*to)->life, LINE_LIFE);
		s->first_since = now;
	}
	return now - s->first_since >= m->conf.hand_over;
}

static bool
decide(struct members *m, uint32_t shard, const struct members_claim *c, slu_time now,
       struct members_event *e)
{
	struct members_shard *const s = &m->shards[shard];
	struct member *to = NULL;

	if (s->state == MEMBERS_NONE && wants_take(m, shard, c, now)) {
		s->state = MEMBERS_TAKING;
		*e = (struct members_event){ .kind = MEMBERS_TAKE, .shard = shard };
		return true;
	}
	if (s->state != MEMBERS_OWNED)
		return false;
	if (c->member)
		*e = (struct members_event){ .kind = MEMBERS_LOST, .shard = shard };
	else if (wants_hand_over(m, shard, now, &to))
		*e = (struct members_event){ .kind = MEMBERS_HAND_OVER, .shard = shard };
	else
		return false;
	if (to)
		memcpy(e->life, to->life, LINE_LIFE);
	s->state = MEMBERS_CLOSING;
	return true;
}

/* Whether the owner is another one than in the last MEMBERS_OWNER, or its address is known since. */
static bool
has_news(struct members *m, uint32_t shard, struct members_event *e)
{
	struct members_shard *const s = &m->shards[shard];
	struct members_node owner;
	const uint64_t epoch = members_owner(m, shard, &owner);

	if (epoch == s->told_epoch && memcmp(owner.life, s->told, LINE_LIFE) == 0 &&
	    s->told_address == (owner.beat > 0))
		return false;
	s->told_epoch = epoch;
	s->told_address = owner.beat > 0;
	memcpy(s->told, owner.life, LINE_LIFE);
	*e = (struct members_event){ .kind = MEMBERS_OWNER, .shard = shard };
	return true;
}

slu_time
members_lapses(const struct members *m)
{
	for (uint32_t i = 0; m->has_lease && i < m->n_nodes; i++)
		if (may_own(m->nodes[i]))
			return m->lease_sent + m->conf.lease;
	return SLU_NEVER;
}

static bool
lease_has_changed(struct members *m, slu_time now, struct members_event *e)
{
	const bool lapsed = members_lapses(m) <= now;

	if (lapsed == m->lapsed)
		return false;
	m->lapsed = lapsed;
	*e = (struct members_event){ .kind = MEMBERS_LEASE };
	return true;
}

bool
members_event(struct members *m, slu_time now, struct members_event *e)
{
	members_watch(m, now);
	if (lease_has_changed(m, now, e))
		return true;
	for (uint32_t i = 0; i < m->conf.shards; i++) {
		const struct members_claim c = members_claim(m, i);

		if (c.member && m->shards[i].state == MEMBERS_NONE)
			m->shards[i].epoch = 0; /* another node has it: no beat needs to say that we gave it */
		if (c.member && !is_vacant(&c))
			m->shards[i].failures = 0; /* the shard can be served */
		if (decide(m, i, &c, now, e) || has_news(m, i, e))
			return true;
	}
	return false;
}
