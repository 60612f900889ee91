/*
 * presence.c - the nodes that use the shard: a field for each in the hash `<prefix>:nodes`.
 *
 * A node reads the fields of all nodes, then writes its own. A node is alive while its counter
 * of beats rises: this needs no trusted clock and no clean-up.
 */
#include "engine/redis/redis_private.h"

#include "base/log.h"
#include "engine/presence.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* "3 1f.. 9a.. 2 117" */
static bool
read_peer(const char *text, struct presence_node *p)
{
	uint64_t node;

	if (!text || !redis_take_u64(&text, 10, &node) || !redis_take_u64(&text, 16, &p->self) ||
	    !redis_take_u64(&text, 16, &p->hash) || !redis_take_u64(&text, 10, &p->version) ||
	    !redis_take_u64(&text, 10, &p->beat))
		return false;
	p->node = (unsigned)node;
	return true;
}

static int
write_entry(struct redis *r, const char *key, const struct presence_node *me, struct slu_err *err)
{
	char field[16], text[96];
	int64_t added;

	(void)snprintf(field, sizeof field, "%u", me->node);
	(void)snprintf(text, sizeof text, "%u %" PRIx64 " %" PRIx64 " %" PRIu64 " %" PRIu64, me->node,
		       me->self, me->hash, me->version, me->beat);
	return redis_ask_number(r, WORDS(SLICE("HSET"), slice_of(key), slice_of(field), slice_of(text)),
				&added, err);
}

int
redis_plan_presence(struct redis *r, struct op *op, struct slu_err *err)
{
	struct op_presence *const m = op->presence;
	char key[REDIS_PREFIX + 16];
	redisReply *reply;
	int rc;

	(void)snprintf(key, sizeof key, "%s:nodes", r->conf.prefix);
	rc = redis_ask(r, WORDS(SLICE("HVALS"), slice_of(key)), "[(t)]", &reply, err);
	m->n = 0;
	for (size_t i = 0; !rc && i < reply->elements && m->n < PRESENCE_NODES; i++)
		m->n += read_peer(reply->element[i]->str, &m->nodes[m->n]);
	freeReplyObject(reply);
	return rc ? rc : write_entry(r, key, &m->me, err);
}

/* The number of nodes that have ever used the shard, at least 1. */
static uint64_t
count_nodes(struct redis *r)
{
	char key[REDIS_PREFIX + 16];
	int64_t n;

	(void)snprintf(key, sizeof key, "%s:nodes", r->conf.prefix);
	(void)redis_ask_number(r, WORDS(SLICE("HLEN"), slice_of(key)), &n, NULL); /* n is 0 then */
	return n > 0 ? (uint64_t)n : 1;
}

/* Each lane has two connections, one for calls and one for notices. */
void
redis_check_clients(struct redis *r)
{
	const uint64_t ours = 2 * (uint64_t)(r->outer.lanes ? r->outer.lanes : 1);
	const uint64_t nodes = r->outer.lane || !r->outer.log ? 0 : count_nodes(r);

	for (uint32_t i = 0; nodes && i < r->nodes.n; i++) {
		char text[24];
		uint64_t most;

		rnode_setting(r->nodes.all[i], "maxclients", text, sizeof text);
		most = strtoull(text, NULL, 10);
		if (most && nodes * ours > most)
			log_warn(r->outer.log, "redis may refuse connections; raise its maxclients, or lower the pool",
				 F_STR("address", r->nodes.all[i]->address), F_U64("maxclients", most),
				 F_U64("nodes", nodes), F_U64("connections_each", ours));
	}
}
