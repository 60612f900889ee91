#include "server/peers.h"

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/presence.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

enum {
	MISSED = 3 /* checks without a beat until a node is gone */
};

/* Another node. */
struct known_peer {
	uint64_t self, beat, hash, version;
	unsigned missed;
	bool seen, lives, told;
};

/* A shared shard. */
struct meeting {
	struct meeting *next;
	uint32_t lane;
	_Atomic bool asked; /* the op is not answered yet */
	bool left;          /* our entry has been written */
	bool twin, told_twin;
	struct op op;
	struct op_presence presence;
	struct known_peer known[PRESENCE_NODES]; /* by number */
};

struct peers {
	uint64_t self, beat;
	struct meeting *meetings;
};

/* Called on the thread of the lane. */
static void
answered(struct op *op)
{
	struct meeting *const m = op->owner;

	atomic_store_explicit(&m->asked, false, memory_order_release);
}

static struct presence_node
self_of(const struct node *n)
{
	const struct shardmap *const map = broker_map(broker_routes(n->broker));

	return (struct presence_node){
		.node = n->conf->node_id,
		.self = n->peers->self,
		.beat = n->peers->beat,
		.hash = map ? shardmap_hash(map) : 0,
		.version = map ? shardmap_version(map) : 0,
	};
}

static void
ask(struct node *n, struct meeting *m)
{
	int rc;

	op_init(&m->op, OP_PRESENCE, (struct slice){ 0 }, (struct slice){ 0 }, answered, m);
	m->op.cursor = (uint64_t)m->lane << BROKER_CURSOR_BITS;
	m->op.presence = &m->presence;
	m->presence.me = self_of(n);
	m->presence.n = 0;
	atomic_store(&m->asked, true);
	rc = broker_post(n->broker, &m->op);
	if (!rc)
		return; /* the lane has the op */
	m->op.rc = rc;
	atomic_store(&m->asked, false);
}

/* ---- Entries of other nodes ---- */

/* PRESENCE-3 */
static void
hear_twin(struct node *n, struct meeting *m, const struct presence_node *p)
{
	m->twin = m->left && p->self != n->peers->self;
	if (m->twin && !m->told_twin)
		log_error(n->log, "duplicate node.id: stop one of the servers and change its node.id",
			  F_U64("node", p->node),
			  F_STR("shard", broker_shard_name(n->broker, m->lane)));
	m->told_twin = m->twin;
}

/* PRESENCE-2 */
static void
compare_maps(struct node *n, struct known_peer *k, const struct presence_node *p, const struct presence_node *me)
{
	const bool differs = k->lives && (p->hash != me->hash || p->version != me->version);
	const bool news = differs && (!k->told || k->hash != p->hash || k->version != p->version);
	char ours[17], theirs[17];

	(void)snprintf(ours, sizeof ours, "%016" PRIx64, me->hash);
	(void)snprintf(theirs, sizeof theirs, "%016" PRIx64, p->hash);
	if (news)
		log_error(n->log, "nodes disagree on the shard map", F_U64("node", p->node),
			  F_U64("version", p->version), F_STR("hash", theirs),
			  F_U64("our_version", me->version), F_STR("our_hash", ours));
	else if (k->told && !differs)
		log_info(n->log, "nodes agree on the shard map", F_U64("node", p->node));
	k->told = differs;
	k->hash = p->hash;
	k->version = p->version;
}

/* PRESENCE-1 */
static void
hear_peer(struct node *n, struct known_peer *k, const struct presence_node *p, const struct presence_node *me)
{
	const bool beats = p->self != k->self || p->beat != k->beat;

	k->missed = beats ? 0 : k->missed + 1;
	k->lives = k->seen && (beats || (k->lives && k->missed < MISSED));
	k->seen = true;
	k->self = p->self;
	k->beat = p->beat;
	compare_maps(n, k, p, me);
}

static void
hear(struct node *n, struct meeting *m)
{
	const struct presence_node me = self_of(n);

	if (m->op.rc || !m->op.done)
		return;
	for (unsigned i = 0; i < m->presence.n; i++) {
		const struct presence_node *const p = &m->presence.nodes[i];

		if (p->node == me.node)
			hear_twin(n, m, p);
		else if (p->node < PRESENCE_NODES)
			hear_peer(n, &m->known[p->node], p, &me);
	}
	m->left = true;
}

/* ---- All shards ---- */

static struct meeting *
find(const struct peers *p, uint32_t lane)
{
	struct meeting *m = p->meetings;

	while (m && m->lane != lane)
		m = m->next;
	return m;
}

/* Adds new shards. Without memory the next tick tries again. */
static void
begin(struct node *n)
{
	for (uint32_t i = 0; i < broker_lanes(n->broker); i++) {
		struct meeting *m;

		if (broker_lane_number(n->broker, i) != 0 || !broker_lane_shared(n->broker, i) ||
		    find(n->peers, i))
			continue;
		m = mem_zalloc(sizeof *m);
		if (!m)
			continue;
		m->lane = i;
		m->next = n->peers->meetings;
		n->peers->meetings = m;
	}
}

static void
count(struct node *n)
{
	uint32_t disagree = 0, twins = 0;

	for (unsigned i = 0; i < PRESENCE_NODES; i++) {
		bool told = false;

		for (const struct meeting *m = n->peers->meetings; m; m = m->next)
			told = told || m->known[i].told;
		disagree += told;
	}
	for (const struct meeting *m = n->peers->meetings; m; m = m->next)
		twins |= m->twin;
	atomic_store(&n->api.disagreements, disagree);
	atomic_store(&n->api.twins, twins);
}

static bool
is_open(struct node *n)
{
	if (!n->peers)
		n->peers = mem_zalloc(sizeof *n->peers);
	if (n->peers && !n->peers->self && hash_random(&n->peers->self, sizeof n->peers->self, NULL))
		n->peers->self = 0; /* the next tick tries again */
	return n->peers && n->peers->self;
}

bool
peers_tick(struct node *n)
{
	if (!is_open(n))
		return true; /* no memory: the next tick tries again */
	begin(n);
	n->peers->beat++;
	for (struct meeting *m = n->peers->meetings; m; m = m->next) {
		if (atomic_load_explicit(&m->asked, memory_order_acquire))
			continue; /* the shard hangs */
		hear(n, m);
		ask(n, m);
	}
	count(n);
	return n->peers->meetings;
}

void
peers_close(struct node *n)
{
	struct meeting *m = n->peers ? n->peers->meetings : NULL;

	while (m) {
		struct meeting *const next = m->next;

		assert(!m->asked);
		mem_free(m);
		m = next;
	}
	mem_free(n->peers);
	n->peers = NULL;
}
