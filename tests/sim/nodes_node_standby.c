/*
 * nodes_node_standby.c - the folders of shards that other nodes own: what server/caches.c does, on the one
 * stack of the node. Lanes stand still meanwhile, so a lane that takes its shard has its folder alone.
 */
#include "nodes_node.h"

#include "base/log.h"
#include "engine/log/standby.h"

#include <stdio.h>

#define PAUSE (2 * SLU_SEC) /* between two looks at a folder, at most */
#define MOST  (2 * SLU_SEC) /* lanes stand still for about so long, at most */

static struct {
	char folder[SIM_NAME]; /* empty = unknown */
	slu_time due;
	slu_time began;
	uint64_t span; /* logengine_standby.span */
} standbys[NODES_SHARDS];

void
node_standby_waits(void *arg, uint32_t lane, const char *folder, bool pinned)
{
	(void)arg;
	CHECK(!pinned);
	snprintf(standbys[lane].folder, sizeof standbys[lane].folder, "%s", folder);
}

/* The folder changes. */
void
node_standby_takes(void *arg, uint32_t lane)
{
	(void)arg;
	standbys[lane].span = 0;
}

slu_time
node_standby_due(void)
{
	slu_time due = SLU_NEVER;

	EACH(i, standbys)
		if (node.start.span_groups && standbys[i].due < due)
			due = standbys[i].due;
	return due;
}

static bool
is_others(uint32_t shard)
{
	return members_role(node.members, shard) != MEMBERS_OPEN;
}

static bool
goes_on(void *arg, uint64_t bytes)
{
	const struct logengine_standby *const s = arg;

	(void)bytes;
	return is_others(s->shard) && node.boot - standbys[s->shard].began < MOST;
}

/* The next owner follows. Other nodes empty the folder, and so does a node whose disk is nearly full. */
static bool
follows(uint32_t shard)
{
	return test_random(&node.random) % (members_role(node.members, shard) == MEMBERS_NEXT ? 8 : 2) != 0;
}

static void
attend(uint32_t shard)
{
	struct logengine_standby s = {
		.store = &node_store,
		.uuid = node.uuid,
		.shard = shard,
		.folder = standbys[shard].folder,
		.disk = &node.disk.disk,
		.boot = node.start.boot,
		.log = node.log,
		.goes_on = goes_on,
		.span = standbys[shard].span,
	};
	struct slu_err err = { 0 };

	s.arg = &s;
	standbys[shard].began = node.boot;
	if (follows(shard)) {
		(void)logengine_standby_follow(&s, &err);
		node.channel->told.followed += s.bytes > 0;
	} else {
		node.channel->told.emptied += logengine_standby_empty(&s, &err) == 0;
	}
	standbys[shard].span = s.span;
	if (err.code)
		log_info(node.log, "folder of another node's shard", F_U64("shard", shard), F_STR("why", err.text));
}

void
node_standby(void)
{
	EACH(i, standbys) {
		if (!node.start.span_groups || standbys[i].due > node.boot)
			continue;
		standbys[i].due = node.boot + (slu_time)(test_random(&node.random) % (PAUSE / SLU_MS)) * SLU_MS;
		if (*standbys[i].folder && is_others((uint32_t)i))
			attend((uint32_t)i);
	}
}
