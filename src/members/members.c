/*
 * members.c - memory, slots, own beats, and questions.
 */
#include "members/members_private.h"

#include "base/mem.h"

#include <assert.h>
#include <stdio.h>

/* ---- Memory ---- */

static slu_time
or_default(slu_time t, slu_time otherwise)
{
	return t ? t : otherwise;
}

int
members_new(struct members **out, const struct members_conf *conf)
{
	struct members *const m = mem_zalloc(sizeof *m);

	assert(conf->shards > 0 && conf->shards <= BEAT_SHARDS_MAX);
	assert(*conf->name && strlen(conf->name) <= BEAT_NAME_MAX);
	assert(*conf->address && strlen(conf->address) <= BEAT_ADDRESS_MAX);
	assert(strlen(conf->version) <= BEAT_VERSION_MAX);
	if (!m)
		return SLU_ENOMEM;
	m->conf = *conf;
	m->conf.lease = or_default(conf->lease, 5 * SLU_SEC);
	m->conf.hand_over = or_default(conf->hand_over, 30 * SLU_SEC);
	m->conf.rank_delay = or_default(conf->rank_delay, SLU_SEC);
	m->conf.forget = or_default(conf->forget, SLU_HOUR);
	m->changes = 1;
	buf_init(&m->out, BEAT_MAX);
	buf_init(&m->out_shards, BEAT_MAX);
	m->shards = mem_array(conf->shards, sizeof *m->shards);
	if (!m->shards) {
		members_free(m);
		return SLU_ENOMEM;
	}
	for (uint32_t i = 0; i < conf->shards; i++)
		m->shards[i].vacant_since = m->shards[i].first_since = SLU_NEVER;
	*out = m;
	return 0;
}

void
members_free(struct members *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; i < m->n_nodes; i++) {
		mem_free(m->nodes[i]->shards);
		mem_free(m->nodes[i]);
	}
	mem_free(m->nodes);
	mem_free(m->shards);
	buf_release(&m->out);
	buf_release(&m->out_shards);
	mem_free(m);
}

slu_time
members_interval(const struct members *m)
{
	return m->conf.lease / 5;
}

/* ---- Own beats ---- */

static void
write_shards(struct members *m, struct beat *b)
{
	buf_clear(&m->out_shards);
	for (uint32_t i = 0; i < m->conf.shards; i++) {
		const struct members_shard *const s = &m->shards[i];
		const struct beat_shard written = { i, s->state == MEMBERS_NONE, s->epoch };

		if (s->epoch == 0 || s->state == MEMBERS_TAKING)
			continue;
		beat_shard_put(&m->out_shards, &written);
		b->n_shards++;
	}
	b->shards = buf_slice(&m->out_shards);
}

/* Writes the next beat to m->out. Returns false if there is no memory. */
static bool
write_beat(struct members *m)
{
	struct beat b = {
		.draining = m->draining,
		.number = m->beat + 1,
		.writes = m->conf.writes,
		.reads = m->conf.reads,
		.name = slice_of(m->conf.name),
		.address = slice_of(m->conf.address),
		.port = m->conf.port,
		.version = slice_of(m->conf.version),
	};

	memcpy(b.life, m->conf.life, LINE_LIFE);
	write_shards(m, &b);
	buf_clear(&m->out);
	beat_encode(&b, &m->out);
	return !m->out.failed && !m->out_shards.failed;
}

/* A change is sent at once, but not sooner than a failed beat is repeated. */
static slu_time
beat_due(const struct members *m)
{
	return m->changes != m->sent_changes ? 0 : m->next_beat;
}

static bool
next_beat(struct members *m, slu_time now)
{
	struct members_slot *const s = &m->slots[MEMBERS_BEAT];

	if (s->sent || beat_due(m) > now)
		return false;
	m->next_beat = now + members_interval(m);
	m->sent_changes = m->changes;
	if (!write_beat(m)) {
		members_failed(m);
		return false;
	}
	m->beat++;
	(void)members_send(m, MEMBERS_BEAT, LINE_REPLACE, now);
	beat_name(s->request.name, m->conf.life);
	s->request.object = buf_slice(&m->out);
	return true;
}

/* A lease that ran out before this reply has left a gap in which another node may have taken our
 * shards: a new chain begins. */
static void
on_beat(struct members *m, const struct line_answer *a, slu_time now)
{
	const struct members_slot *const s = &m->slots[MEMBERS_BEAT];

	if (a->result != LINE_OK) {
		members_failed(m);
		return;
	}
	if (!m->has_lease || now - m->lease_sent >= m->conf.lease)
		m->lease_since = now;
	m->has_lease = true;
	m->lease_sent = s->sent_at;
	m->stored_changes = m->sent_changes;
	if (s->failures != m->failures)
		return;
	m->beat_ok = true;
	m->last_beat_ok = now;
	members_succeeded(m, now);
}

bool
members_is_fresh(const struct members *m, slu_time proved, slu_time now)
{
	return m->has_lease && now - m->lease_sent < m->conf.lease / 3 * 2 && proved >= m->lease_since;
}

bool
members_has_lapsed(const struct members *m)
{
	return m->lapsed;
}

/* ---- Slots ---- */

struct members_slot *
members_send(struct members *m, unsigned slot, enum line_verb verb, slu_time now)
{
	struct members_slot *const s = &m->slots[slot];

	assert(!s->sent);
	s->sent = true;
	s->sent_at = now;
	s->failures = m->failures;
	s->request = (struct line_request){ .verb = verb, .slot = slot };
	return s;
}

bool
members_next(struct members *m, slu_time now, struct line_request *r)
{
	unsigned slot = MEMBERS_BEAT;

	members_watch(m, now);
	if (!next_beat(m, now) && !members_watch_next(m, now, &slot))
		return false;
	*r = m->slots[slot].request;
	return true;
}

void
members_reply(struct members *m, unsigned slot, const struct line_answer *a, slu_time now)
{
	assert(slot < MEMBERS_SLOTS && m->slots[slot].sent);
	members_watch(m, now);
	m->slots[slot].sent = false;
	if (slot == MEMBERS_BEAT)
		on_beat(m, a, now);
	else
		members_watch_reply(m, slot, a, now);
}

slu_time
members_due(const struct members *m)
{
	slu_time due = SLU_NEVER;

	if (!m->slots[MEMBERS_BEAT].sent)
		due = beat_due(m);
	if (!m->in_round && members_round_due(m) < due)
		due = members_round_due(m);
	if (!m->lapsed && members_lapses(m) < due)
		due = members_lapses(m);
	return due;
}

/* ---- Draining ---- */

void
members_drain(struct members *m, bool drain)
{
	if (m->draining == drain || m->leaving)
		return;
	m->draining = drain;
	m->changes++;
}

void
members_leave(struct members *m)
{
	members_drain(m, true);
	m->leaving = true;
}

bool
members_is_drained(const struct members *m)
{
	for (uint32_t i = 0; i < m->conf.shards; i++)
		if (m->shards[i].state != MEMBERS_NONE)
			return false;
	return m->draining && m->stored_changes == m->changes;
}

/* ---- Questions ---- */

/* Whether the node may take a shard and read its log. */
static bool
counts(const struct member *n)
{
	return n->beat > 0 && !n->dead && !n->ended;
}

uint32_t
members_format(const struct members *m)
{
	uint32_t format = m->conf.writes;

	if (!m->ever_read)
		return m->conf.format;
	for (uint32_t i = 0; i < m->n_nodes; i++) {
		const struct member *const n = m->nodes[i];

		if (counts(n) && n->reads < format)
			format = n->reads;
	}
	return format > m->conf.format ? format : m->conf.format;
}

static uint32_t
count_owned(const struct members *m, const struct member *n)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < m->conf.shards; i++) {
		const struct members_claim c = members_claim(m, i);

		count += c.epoch > 0 && !c.given && c.member == n;
	}
	return count;
}

/* n: NULL = this node. */
static void
describe(const struct members *m, const struct member *n, struct members_node *out)
{
	*out = (struct members_node){
		.name = n ? n->name : m->conf.name,
		.address = n ? n->address : m->conf.address,
		.port = n ? n->port : m->conf.port,
		.version = n ? n->version : m->conf.version,
		.beat = n ? n->beat : m->beat,
		.since = n ? n->since : m->lease_sent,
		.shards = count_owned(m, n),
		.self = !n,
		.living = !n || !(n->silent || n->ended),
		.draining = n ? n->draining : m->draining,
	};
	memcpy(out->life, n ? n->life : m->conf.life, LINE_LIFE);
}

bool
members_oldest(const struct members *m, uint32_t format, struct members_node *out)
{
	for (uint32_t i = 0; i < m->n_nodes; i++)
		if (counts(m->nodes[i]) && m->nodes[i]->reads < format) {
			describe(m, m->nodes[i], out);
			return true;
		}
	return false;
}

bool
members_node(const struct members *m, uint32_t i, struct members_node *out)
{
	if (i > m->n_nodes)
		return false;
	describe(m, i ? m->nodes[i - 1] : NULL, out);
	return true;
}

uint64_t
members_owner(const struct members *m, uint32_t shard, struct members_node *out)
{
	const struct members_claim c = members_claim(m, shard);
	struct member *first;
	bool found;

	if (c.epoch > 0 && !c.given && !(c.member && (c.member->silent || c.member->ended))) {
		describe(m, c.member, out);
		return c.epoch;
	}
	first = members_first(m, shard, &found);
	describe(m, first, out);
	return 0;
}

bool
members_next_owner(const struct members *m, uint32_t shard, struct members_node *out)
{
	bool found;
	struct member *const first = members_first(m, shard, &found);

	if (found)
		describe(m, first, out);
	return found;
}
