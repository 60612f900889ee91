/*
 * meet.c - who else uses the shard: a field for each node of the hash `<prefix>:nodes`.
 *
 * A node reads what is there, then leaves its own. Whether another one lives is seen by
 * its beats, which rise: no clock has to be trusted, and nothing has to be cleaned up.
 */
#include "engine/redis/redis_in.h"

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
		       4, &reply, err);
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
	rc = redis_ask(r, (const struct slice[]){ SLICE("HVALS"), slice_of(key) }, 2, &reply, err);
	m->n = 0;
	for (size_t i = 0; !rc && i < reply->elements && m->n < OP_PEERS; i++)
		m->n += read_peer(reply->element[i]->str, &m->peers[m->n]);
	if (reply)
		freeReplyObject(reply);
	return rc ? rc : leave(r, key, &m->me, err);
}
