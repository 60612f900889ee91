/*
 * ids.c - no id is given twice, whatever the clock of a node does.
 *
 * A node that starts goes on behind the highest id that was ever given (engine_found). To
 * note each would cost a write a call; so, as the log does with its counter, a ceiling is
 * noted ahead: a field for each node and lane of the hash `<prefix>:ids`, each of which has
 * one writer. What came from another shard has the field `given`, of which several may write:
 * what one of them takes from the other is less than the ceiling is ahead. While the server
 * that has the hash is down, the clock is trusted.
 */
#include "engine/redis/redis_in.h"

#include "base/id.h"

#include <inttypes.h>
#include <stdio.h>

/* Ids of ten seconds: so seldom it is noted, and so far ahead a restart begins. */
#define AHEAD ((uint64_t)10000 << (ID_NODE_BITS + ID_SEQ_BITS))

int
redis_ids_open(struct redis *r, uint64_t *highest, struct slu_err *err)
{
	redisReply *reply = NULL;
	int rc = redis_ask(r, (const struct slice[]){ SLICE("HVALS"), slice_of(r->ids) }, 2,
			   "[(i)]", &reply, err);

	*highest = 0;
	for (size_t i = 0; !rc && i < reply->elements; i++) {
		const uint64_t id = reply_id(reply->element[i]);

		*highest = id > *highest && id <= ID_MAX ? id : *highest;
	}
	if (reply)
		freeReplyObject(reply);
	return rc;
}

static uint64_t
ceiling_of(uint64_t id)
{
	return id < ID_MAX - AHEAD ? id + AHEAD : ID_MAX;
}

static int
note(struct redis *r, const char *field, uint64_t ceiling, struct slu_err *err)
{
	char text[24];
	redisReply *reply = NULL;
	int rc;

	(void)snprintf(text, sizeof text, "%" PRIu64, ceiling);
	rc = redis_ask(r,
		       (const struct slice[]){ SLICE("HSET"), slice_of(r->ids), slice_of(field),
					       slice_of(text) },
		       4, "n", &reply, err);
	if (reply)
		freeReplyObject(reply);
	return rc;
}

int
redis_ids_note(struct redis *r, uint64_t id, struct slu_err *err)
{
	char field[32];
	int rc;

	if (id <= r->ids_ceiling)
		return 0;
	(void)snprintf(field, sizeof field, "%u.%u", id_node(id), r->outer.lane);
	rc = note(r, field, ceiling_of(id), err);
	if (rc == SLU_EDOWN)
		return 0; /* of a cluster, another server: its loss is no reason to stop */
	r->ids_ceiling = rc ? r->ids_ceiling : ceiling_of(id);
	return rc;
}

int
redis_ids_note_given(struct redis *r, uint64_t id, struct slu_err *err)
{
	uint64_t known = 0;
	redisReply *reply = NULL;
	int rc;

	if (id <= r->ids_given)
		return 0;
	rc = redis_ask(r,
		       (const struct slice[]){ SLICE("HGET"), slice_of(r->ids), SLICE("given") }, 3,
		       "i", &reply, err);
	if (!rc)
		known = reply_id(reply);
	if (reply)
		freeReplyObject(reply);
	if (!rc && known < id) {
		known = ceiling_of(id);
		rc = note(r, "given", known, err);
	}
	r->ids_given = rc ? r->ids_given : known;
	return rc;
}
