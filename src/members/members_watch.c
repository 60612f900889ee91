/*
 * members_watch.c - reading the other nodes: rounds, counting, which node is dead.
 *
 *      list ─> more pages ─> get each node ─> the round is done
 *
 *      silence of a node:     reply that showed beat 9        read sent, shows beat 9
 *                             ├──────── one lease or more ──────┤  dead
 *      what must not fail:    ├── beats and reads of our own ───┤
 */
#include "members/members_private.h"

#include "base/mem.h"

#include <stdio.h>

/* ---- Counting: LINE-12 c ---- */

void
members_failed(struct members *m)
{
	m->failures++;
	m->beat_ok = m->round_ok = m->counting = false;
	for (uint32_t i = 0; i < m->n_nodes; i++)
		m->nodes[i]->dead = false;
	for (uint32_t i = 0; i < m->conf.shards; i++) {
		m->shards[i].vacant_since = SLU_NEVER;
		m->shards[i].first_since = SLU_NEVER;
	}
}

void
members_watch(struct members *m, slu_time now)
{
	const slu_time gap = m->conf.lease / 2;

	if ((m->beat_ok && now - m->last_beat_ok > gap) || (m->round_ok && now - m->last_round_ok > gap))
		members_failed(m);
}

void
members_succeeded(struct members *m, slu_time now)
{
	if (m->counting || !m->beat_ok || !m->round_ok)
		return;
	m->counting = true;
	m->counting_since = now;
}

/* When a read must be sent that shows whether the node is dead. */
static slu_time
silent_until(const struct members *m, const struct member *n)
{
	const slu_time known = n->since > n->gone ? n->since : n->gone;

	return (known > m->counting_since ? known : m->counting_since) + m->conf.lease;
}

/* A read that was sent at `sent` has shown no higher beat. */
static void
count_silence(struct members *m, struct member *n, slu_time sent)
{
	n->last_read = sent;
	if (m->counting && sent >= silent_until(m, n))
		n->dead = n->silent = true;
}

/* LINE-12 l: the object was there before, and is not there now. */
static void
note_gone(struct member *n, slu_time now)
{
	n->was_listed = false;
	n->dead = false;
	n->gone = now;
}

slu_time
members_round_due(const struct members *m)
{
	slu_time due = m->next_round;

	for (uint32_t i = 0; m->counting && i < m->n_nodes; i++)
		if (!m->nodes[i]->dead && silent_until(m, m->nodes[i]) < due)
			due = silent_until(m, m->nodes[i]);
	return due;
}

/* ---- Nodes ---- */

static struct member *
find(const struct members *m, const uint8_t life[LINE_LIFE])
{
	for (uint32_t i = 0; i < m->n_nodes; i++)
		if (memcmp(m->nodes[i]->life, life, LINE_LIFE) == 0)
			return m->nodes[i];
	return NULL;
}

static bool
make_room(struct members *m)
{
	const uint32_t size = m->size ? 2 * m->size : 8;
	struct member **nodes;

	if (m->n_nodes < m->size)
		return true;
	nodes = mem_realloc(m->nodes, size * sizeof(void *));
	if (!nodes)
		return false;
	m->nodes = nodes;
	m->size = size;
	return true;
}

struct member *
members_know(struct members *m, const uint8_t life[LINE_LIFE], slu_time now)
{
	struct member *n = find(m, life);

	if (n || !make_room(m))
		return n;
	n = mem_zalloc(sizeof *n);
	if (!n)
		return NULL;
	n->shards = mem_array(m->conf.shards, sizeof *n->shards);
	if (!n->shards) {
		mem_free(n);
		return NULL;
	}
	memcpy(n->life, life, LINE_LIFE);
	n->since = now;
	n->ended = memcmp(life, m->conf.former, LINE_LIFE) == 0;
	m->nodes[m->n_nodes++] = n;
	return n;
}

static void
drop(struct members *m, uint32_t i)
{
	mem_free(m->nodes[i]->shards);
	mem_free(m->nodes[i]);
	m->nodes[i] = m->nodes[--m->n_nodes];
}

static void
copy_text(char *to, struct slice text)
{
	memcpy(to, text.p, text.n);
	to[text.n] = '\0';
}

/* A higher beat: the node lives. A lower epoch than before is old news of the same node. */
static void
rise(struct members *m, struct member *n, const struct beat *b, slu_time now)
{
	n->beat = b->number;
	n->since = now;
	n->dead = n->silent = false;
	n->draining = b->draining;
	n->writes = b->writes;
	n->reads = b->reads;
	copy_text(n->name, b->name);
	copy_text(n->address, b->address);
	n->port = b->port;
	copy_text(n->version, b->version);
	for (uint32_t i = 0; i < b->n_shards; i++) {
		const struct beat_shard s = beat_shard(b, i);

		if (s.number < m->conf.shards && s.epoch >= n->shards[s.number].epoch)
			n->shards[s.number] = (struct member_shard){ s.epoch, s.given };
	}
}

/* ---- Rounds ---- */

static void
fail_round(struct members *m)
{
	m->round_failed = true;
	members_failed(m);
	for (uint32_t i = 0; i < m->n_nodes; i++)
		m->nodes[i]->wanted = false;
}

static bool
claims_a_shard(const struct members *m, const struct member *n)
{
	for (uint32_t i = 0; i < m->conf.shards; i++)
		if (members_claim(m, i).member == n)
			return true;
	return false;
}

/* Whether the object of a dead node has been there for so long that it is removed. */
static bool
is_old(const struct members *m, const struct member *n, slu_time now)
{
	return now - n->since >= m->conf.forget;
}

/* Objects of dead nodes stay for long: they are read rarely, and before they are removed. */
static bool
wants_read(const struct members *m, const struct member *n, slu_time now)
{
	return n->listed && (!n->dead || now - n->last_read >= 2 * m->conf.lease || is_old(m, n, now) ||
			     claims_a_shard(m, n));
}

static void
end_listing(struct members *m, slu_time now)
{
	m->listing = false;
	for (uint32_t i = 0; i < m->n_nodes; i++) {
		struct member *const n = m->nodes[i];

		n->wanted = wants_read(m, n, now);
		n->tries = 0;
		if (!n->listed && n->was_listed)
			note_gone(n, now);
		else if (!n->listed)
			count_silence(m, n, m->round_sent);
		n->was_listed = n->listed;
	}
}

/* A node without an object is forgotten after a while: a line may still name it. */
static void
forget(struct members *m, slu_time now)
{
	for (uint32_t i = m->n_nodes; i-- > 0;) {
		const struct member *const n = m->nodes[i];

		if (n->dead && !n->listed && is_old(m, n, now))
			drop(m, i);
	}
}

static void
end_round_if_done(struct members *m, slu_time now)
{
	if (!m->in_round || m->listing)
		return;
	for (unsigned i = MEMBERS_LIST; i < MEMBERS_SLOTS; i++)
		if (i != MEMBERS_REMOVE && m->slots[i].sent)
			return;
	for (uint32_t i = 0; i < m->n_nodes; i++)
		if (m->nodes[i]->wanted)
			return;
	m->in_round = false;
	if (m->round_failed || m->round_failures != m->failures)
		return;
	m->round_ok = m->ever_read = true;
	m->last_round_ok = now;
	members_succeeded(m, now);
	forget(m, now);
}

static void
on_list(struct members *m, const struct line_answer *a, slu_time now)
{
	for (uint32_t i = 0; i < a->n_names; i++) {
		uint8_t life[LINE_LIFE];
		struct member *n;

		if (!beat_life(life, a->names[i]) || memcmp(life, m->conf.life, LINE_LIFE) == 0)
			continue;
		n = members_know(m, life, now);
		if (!n) {
			m->listing = false;
			fail_round(m);
			return;
		}
		n->listed = true;
	}
	if (a->more && a->n_names > 0)
		snprintf(m->after, sizeof m->after, "%s", a->names[a->n_names - 1]);
	else
		end_listing(m, now);
}

/* An object that is being replaced may be read half old, half new: it is read again. */
static void
on_read(struct members *m, const struct members_slot *s, const struct line_answer *a, slu_time now)
{
	struct member *const n = s->member;
	struct beat b;
	const bool valid = a->result == LINE_OK && !beat_decode(&b, a->object, NULL) &&
			   memcmp(b.life, n->life, LINE_LIFE) == 0;

	if (!valid && a->result == LINE_OK && ++n->tries < MEMBERS_TRIES) {
		n->wanted = true;
		return;
	}
	if (valid && b.number > n->beat)
		rise(m, n, &b, now);
	else if (a->result == LINE_ABSENT)
		note_gone(n, now);
	else
		count_silence(m, n, s->sent_at);
}

void
members_watch_reply(struct members *m, unsigned slot, const struct line_answer *a, slu_time now)
{
	if (slot == MEMBERS_REMOVE)
		return; /* the next listing shows whether the object is gone */
	if (a->result == LINE_FAILED) {
		m->listing = false;
		fail_round(m);
	} else if (slot == MEMBERS_LIST) {
		on_list(m, a, now);
	} else {
		on_read(m, &m->slots[slot], a, now);
	}
	end_round_if_done(m, now);
}

/* ---- Requests ---- */

static void
begin_round(struct members *m, slu_time now)
{
	m->in_round = m->listing = true;
	m->round_failed = false;
	m->round_sent = now;
	m->round_failures = m->failures;
	m->next_round = now + members_interval(m);
	m->after[0] = '\0';
	for (uint32_t i = 0; i < m->n_nodes; i++)
		m->nodes[i]->listed = false;
}

static void
send_list(struct members *m, slu_time now)
{
	struct line_request *const r = &members_send(m, MEMBERS_LIST, LINE_LIST, now)->request;

	snprintf(r->name, sizeof r->name, BEAT_PREFIX);
	snprintf(r->after, sizeof r->after, "%s", m->after);
}

static struct member *
next_wanted(const struct members *m)
{
	for (uint32_t i = 0; i < m->n_nodes; i++)
		if (m->nodes[i]->wanted)
			return m->nodes[i];
	return NULL;
}

static bool
send_read(struct members *m, slu_time now, unsigned *slot)
{
	struct member *const n = next_wanted(m);

	for (unsigned i = MEMBERS_READ; n && i < MEMBERS_SLOTS; i++)
		if (!m->slots[i].sent) {
			struct members_slot *const s = members_send(m, i, LINE_GET, now);

			s->member = n;
			beat_name(s->request.name, n->life);
			n->wanted = false;
			*slot = i;
			return true;
		}
	return false;
}

/* Any node removes the object of a node that has been dead for long and owns nothing. The node may be
 * back: the last round has read the object. */
static bool
send_removal(struct members *m, slu_time now)
{
	for (uint32_t i = 0; !m->in_round && i < m->n_nodes; i++) {
		struct member *const n = m->nodes[i];

		if (!n->dead || !n->listed || !is_old(m, n, now) || n->last_read < m->round_sent ||
		    claims_a_shard(m, n))
			continue;
		n->listed = false;
		beat_name(members_send(m, MEMBERS_REMOVE, LINE_REMOVE, now)->request.name, n->life);
		return true;
	}
	return false;
}

bool
members_watch_next(struct members *m, slu_time now, unsigned *slot)
{
	if (!m->in_round && members_round_due(m) <= now)
		begin_round(m, now);
	if (m->listing && !m->slots[MEMBERS_LIST].sent) {
		send_list(m, now);
		*slot = MEMBERS_LIST;
		return true;
	}
	if (send_read(m, now, slot))
		return true;
	*slot = MEMBERS_REMOVE;
	return !m->slots[MEMBERS_REMOVE].sent && send_removal(m, now);
}
