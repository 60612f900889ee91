/*
 * meet.c - who else uses the shard: a field for each node of the hash `<prefix>:nodes`.
 *
 * A node reads what is there, then leaves its own. Whether another one lives is seen by
 * its beats, which rise: no clock has to be trusted, and nothing has to be cleaned up.
 */
#include "engine/redis/redis_in.h"

#include "base/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* "3 1f.. 9a.. 2 117" */
static bool
read_peer(const char *text, struct op_peer *p)
{
	unsigned node;

	if (!text || sscanf(text, "%u %" SCNx64 " %" SCNx64 " %" SCNu64 " %" SCNu64, &node, &p->self,
			    &p->hash, &p->version, &p->beat) != 5)
		return false;
	p->node = node;
	return true;
}

static int
leave(struct redis *r, const char *key, const struct op_peer *me, struct slu_err *err)
{
	redisReply *reply = NULL;
	char field[16], text[96];
	int rc;

	(void)snprintf(field, sizeof field, "%u", me->node);
	(void)snprintf(text, sizeof text, "%u %" PRIx64 " %" PRIx64 " %" PRIu64 " %" PRIu64, me->node,
		       me->self, me->hash, me->version, me->beat);
	rc = redis_ask(r,
		       (const struct slice[]){ SLICE("HSET"), slice_of(key), slice_of(field),
					       slice_of(text) },
		       4, "n", &reply, err);
	if (reply)
		freeReplyObject(reply);
	return rc;
}

int
redis_meet(struct redis *r, struct op_meet *m, struct slu_err *err)
{
	char key[REDIS_PREFIX + 16];
	redisReply *reply = NULL;
	int rc;

	(void)snprintf(key, sizeof key, "%s:nodes", r->conf.prefix);
	rc = redis_ask(r, (const struct slice[]){ SLICE("HVALS"), slice_of(key) }, 2, "[(t)]", &reply,
		       err);
	m->n = 0;
	for (size_t i = 0; !rc && i < reply->elements && m->n < OP_PEERS; i++)
		m->n += read_peer(reply->element[i]->str, &m->peers[m->n]);
	if (reply)
		freeReplyObject(reply);
	return rc ? rc : leave(r, key, &m->me, err);
}

/* How many nodes have ever been here, or this one. */
static uint64_t
count_nodes(struct redis *r)
{
	char key[REDIS_PREFIX + 16];
	redisReply *reply = NULL;
	uint64_t n = 0;

	(void)snprintf(key, sizeof key, "%s:nodes", r->conf.prefix);
	if (!redis_ask(r, (const struct slice[]){ SLICE("HLEN"), slice_of(key) }, 2, "u", &reply, NULL))
		n = (uint64_t)reply_int(reply);
	if (reply)
		freeReplyObject(reply);
	return n ? n : 1;
}

/* Each lane has two connections, one for its calls and one that listens. */
void
redis_tell_clients(struct redis *r)
{
	const uint64_t ours = 2 * (uint64_t)(r->outer.lanes ? r->outer.lanes : 1);
	const uint64_t nodes = r->outer.lane || !r->outer.log ? 0 : count_nodes(r);

	for (uint32_t i = 0; nodes && i < r->nodes.n; i++) {
		char text[24];
		uint64_t most;

		rnode_setting(r->nodes.all[i], "maxclients", text, sizeof text);
		most = strtoull(text, NULL, 10);
		if (most && nodes * ours > most)
			log_warn(r->outer.log, "redis may refuse connections: raise its maxclients, or lower the pool",
				 F_STR("address", r->nodes.all[i]->address), F_U64("maxclients", most),
				 F_U64("nodes", nodes), F_U64("connections_each", ours));
	}
}
