/*
 * ids.c - ensures that no id is given twice, whatever the clock of a node does.
 *
 * A node that starts continues after the highest id that was ever given (engine_found). To
 * store each id would cost a write per call. So, like the counter of the log, a ceiling is
 * stored ahead: a field for each node and lane in the hash `<prefix>:ids`, with one writer
 * each. Ids from other shards have the field `given`, which several nodes may write: one may
 * overwrite a higher ceiling of another, but by less than the ceiling is ahead. While the
 * server with the hash is down, the clock is trusted.
 */
#include "engine/redis/redis_private.h"

#include "base/id.h"

#include <inttypes.h>
#include <stdio.h>

/* The ids of ten seconds: how seldom a ceiling is stored, and how far ahead a restart begins. */
#define AHEAD ((uint64_t)10000 << (ID_NODE_BITS + ID_SEQ_BITS))

int
redis_ids_open(struct redis *r, uint64_t *highest, struct slu_err *err)
{
	redisReply *reply;
	const int rc = redis_ask(r, WORDS(SLICE("HVALS"), slice_of(r->ids)), "[(i)]", &reply, err);

	*highest = 0;
	for (size_t i = 0; !rc && i < reply->elements; i++) {
		const uint64_t id = reply_id(reply->element[i]);

		*highest = id > *highest && id <= ID_MAX ? id : *highest;
	}
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
	int64_t added;

	(void)snprintf(text, sizeof text, "%" PRIu64, ceiling);
	return redis_ask_number(r,
				WORDS(SLICE("HSET"), slice_of(r->ids), slice_of(field), slice_of(text)),
				&added, err);
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
		return 0; /* in a cluster this is another server: its loss is no reason to stop */
	r->ids_ceiling = rc ? r->ids_ceiling : ceiling_of(id);
	return rc;
}

int
redis_ids_note_given(struct redis *r, uint64_t id, struct slu_err *err)
{
	uint64_t known = 0;
	redisReply *reply;
	int rc;

	if (id <= r->ids_given)
		return 0;
	rc = redis_ask(r, WORDS(SLICE("HGET"), slice_of(r->ids), SLICE("given")), "i", &reply, err);
	if (!rc)
		known = reply_id(reply);
	freeReplyObject(reply);
	if (!rc && known < id) {
		known = ceiling_of(id);
		rc = note(r, "given", known, err);
	}
	r->ids_given = rc ? r->ids_given : known;
	return rc;
}
