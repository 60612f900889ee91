/*
 * Nodes in one process on one store: threads, a real store, short leases.
 */
#include "members/find.h"
#include "members/membership.h"
#include "test.h"

#include "memstore.h"
#include "store/store.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

enum {
	NODES = 3,
	SHARDS = 4
};

static const struct store_ops *const rows[] = { &store_memory, NULL };

static struct node {
	struct membership *ms;
	struct store *store;
	char name[8];
	uint8_t life[LINE_LIFE];
} nodes[NODES];

/* In place of lines: the newest opening of each shard. */
static struct {
	pthread_mutex_t mtx;
	struct line_group newest[SHARDS];
} lines = { .mtx = PTHREAD_MUTEX_INITIALIZER };

/* ---- What a server does with its shards ---- */

/* Under the mutex of the lines. Returns the epoch; 0 if the shard may not be taken. */
static uint64_t
open_shard(struct node *n, struct members *m, uint32_t shard)
{
	struct line_group *const g = &lines.newest[shard];

	if (g->epoch && !members_may_take(m, shard, g, membership_now()))
		return 0;
	memcpy(g->life, n->life, LINE_LIFE);
	return ++g->epoch;
}

static void
take(struct node *n, struct members *m, uint32_t shard)
{
	uint64_t epoch;

	pthread_mutex_lock(&lines.mtx);
	epoch = open_shard(n, m, shard);
	pthread_mutex_unlock(&lines.mtx);
	if (!epoch || !members_opened(m, shard, epoch))
		members_closed(m, shard, epoch, membership_now());
}

static void
on_event(void *arg, struct membership *ms, const struct members_event *e)
{
	struct node *const n = arg;
	struct members_node self;
	struct members *m;

	if (e->kind == MEMBERS_OWNER || e->kind == MEMBERS_LEASE)
		return;
	m = membership_lock(ms);
	if (e->kind == MEMBERS_TAKE)
		take(n, m, e->shard);
	else
		members_closed(m, e->shard, members_owner(m, e->shard, &self), membership_now());
	membership_unlock(ms);
}

/* ---- Nodes ---- */

static void
start(unsigned i)
{
	static uint8_t lives;
	struct node *const n = &nodes[i];
	struct membership_conf conf = {
		.members = {
			.name = n->name,
			.address = n->name,
			.version = "1",
			.shards = SHARDS,
			.format = 1,
			.writes = 1,
			.reads = 1,
			.lease = 500 * SLU_MS,
			.hand_over = 200 * SLU_MS,
			.rank_delay = 50 * SLU_MS,
		},
		.event = on_event,
		.arg = n,
	};
	struct slu_err err;

	snprintf(n->name, sizeof n->name, "n%u", i);
	n->life[0] = ++lives;
	memcpy(conf.members.life, n->life, LINE_LIFE);
	CHECK_EQ(STORE_OK, store_open(&n->store, rows, &(struct store_conf){ .url = "memory://nodes" }, &err));
	conf.store = n->store;
	CHECK_EQ(0, membership_open(&n->ms, &conf, &err));
}

static void
stop(unsigned i)
{
	membership_close(nodes[i].ms);
	store_close(nodes[i].store);
	nodes[i].ms = NULL;
	nodes[i].store = NULL;
}

static void
before(void)
{
	for (unsigned i = 0; i < NODES; i++)
		start(i);
}

static void
after(void)
{
	for (unsigned i = 0; i < NODES; i++)
		if (nodes[i].ms)
			stop(i);
}

FIXTURE(before, after);

/* ---- Waiting ---- */

static void
wait_for(bool (*is)(unsigned i), unsigned i)
{
	const slu_time end = membership_now() + SLU_MIN;

	while (!is(i)) {
		CHECK(membership_now() < end);
		nanosleep(&(struct timespec){ .tv_nsec = SLU_MS }, NULL);
	}
}

/* All nodes but `except` (NODES = no exception) agree on the owner of every shard, by the newest
 * openings, and `except` owns none. */
static bool
others_own_all(unsigned except)
{
	bool all = true;

	for (unsigned i = 0; i < NODES; i++) {
		struct members *m;

		if (!nodes[i].ms || i == except)
			continue;
		m = membership_lock(nodes[i].ms);
		pthread_mutex_lock(&lines.mtx);
		for (uint32_t k = 0; k < SHARDS; k++) {
			struct members_node owner;

			all = all && members_owner(m, k, &owner) == lines.newest[k].epoch && owner.living &&
			      memcmp(owner.life, lines.newest[k].life, LINE_LIFE) == 0 &&
			      (except == NODES || memcmp(owner.life, nodes[except].life, LINE_LIFE) != 0);
		}
		pthread_mutex_unlock(&lines.mtx);
		membership_unlock(nodes[i].ms);
	}
	return all;
}

static bool
is_drained(unsigned i)
{
	const bool drained = members_is_drained(membership_lock(nodes[i].ms));

	membership_unlock(nodes[i].ms);
	return drained;
}

static bool
is_fresh(unsigned i)
{
	const bool fresh = members_is_fresh(membership_lock(nodes[i].ms), SLU_NEVER, membership_now());

	membership_unlock(nodes[i].ms);
	return fresh;
}

static bool
is_stale(unsigned i)
{
	return !is_fresh(i);
}

TEST(nodes_agree_on_the_owner_of_every_shard)
{
	wait_for(others_own_all, NODES);
}

TEST(the_shards_of_a_node_that_dies_are_taken)
{
	wait_for(others_own_all, NODES);
	for (unsigned i = 0; i < NODES - 1; i++) {
		stop(i);
		wait_for(others_own_all, i);
	}
}

TEST(a_node_that_drains_gives_its_shards_away_before_it_stops)
{
	wait_for(others_own_all, NODES);
	members_drain(membership_lock(nodes[1].ms), true);
	membership_unlock(nodes[1].ms);
	wait_for(is_drained, 1);
	wait_for(others_own_all, 1);
	stop(1);
	start(1);
	wait_for(others_own_all, NODES);
}

TEST(a_node_without_beats_does_not_answer_until_the_store_is_back)
{
	wait_for(is_fresh, 0);
	memstore_fault(nodes[0].store, STORE_PUT, MEMSTORE_LOSE_REQUEST, 1000000);
	wait_for(is_stale, 0);
	memstore_fault(nodes[0].store, STORE_PUT, MEMSTORE_NONE, 0);
	wait_for(is_fresh, 0);
	wait_for(others_own_all, NODES);
}

TEST(a_node_stops_while_the_store_refuses_it)
{
	wait_for(is_fresh, 0);
	memstore_fault(nodes[0].store, STORE_LIST, MEMSTORE_REFUSE, 1000000);
	stop(0);
	wait_for(is_fresh, 1);
}

/* ---- Settings ---- */

static struct store *
open_settings(struct settings *out)
{
	struct store *store;
	struct slu_err err;

	CHECK_EQ(STORE_OK, store_open(&store, rows, &(struct store_conf){ .url = "memory://settings" }, &err));
	CHECK_EQ(0, settings_find(store, SHARDS, SETTINGS_BY_NAMESPACE, SLU_MIN, NULL, out, &err));
	return store;
}

TEST_BARE(LINE_16_two_nodes_that_raise_the_format_of_the_settings_agree)
{
	struct settings one, two, found;
	struct slu_err err = { 0 };
	struct store *const store = open_settings(&one);

	CHECK_EQ(2, one.format);
	two = one;
	memstore_fault(store, STORE_PUT, MEMSTORE_LOSE_ANSWER, 1);
	CHECK_EQ(0, settings_raise(store, &one, 3, SLU_MIN, &err));
	CHECK_EQ(0, settings_raise(store, &two, 3, SLU_MIN, &err));
	CHECK_EQ(2, one.version);
	CHECK_EQ(2, two.version);
	CHECK_EQ(0, settings_find(store, SHARDS, SETTINGS_BY_QUEUE, SLU_MIN, NULL, &found, &err));
	CHECK_EQ(3, found.format);
	CHECK_EQ(SETTINGS_BY_NAMESPACE, found.place);
	CHECK(memcmp(found.uuid, one.uuid, sizeof found.uuid) == 0);
	CHECK(memcmp(found.secret, two.secret, sizeof found.secret) == 0);
	store_close(store);
}

TEST_BARE(a_store_that_fails_keeps_the_format_of_its_settings)
{
	struct settings s;
	struct slu_err err = { 0 };
	struct store *const store = open_settings(&s);

	memstore_fault(store, STORE_PUT, MEMSTORE_LOSE_REQUEST, UINT32_MAX);
	CHECK_EQ(SLU_EDOWN, settings_raise(store, &s, 3, -1, &err));
	memstore_fault(store, STORE_PUT, MEMSTORE_REFUSE, 1);
	CHECK(settings_raise(store, &s, 3, SLU_MIN, &err) != 0);
	CHECK_EQ(2, s.format);
	CHECK_EQ(1, s.version);
	store_close(store);
}
