/*
 * A node among others, in a store that answers at once: cases that schedules of the simulator
 * rarely reach.
 */
#include "members/members.h"
#include "test.h"

#include <stdio.h>

enum {
	OBJECTS = 16,
	SHARDS = 4
};

#define LEASE (5 * SLU_SEC)

static struct {
	char names[OBJECTS][LINE_NAME_MAX];
	struct buf objects[OBJECTS];
	unsigned n;
	bool down;
	struct members *m;
	slu_time now;
	unsigned takes, hand_overs, losses, owners, leases; /* events */
	uint32_t taken;                                     /* shard of the last MEMBERS_TAKE */
	unsigned removed;
	bool holds; /* reads stay unanswered: the last of them is `held` */
	struct line_request held;
	bool absent; /* reads find nothing, though a listing has named it */
	bool pinned; /* this node has the front folders of all shards */
} world;

static bool
is_pinned(void *arg, uint32_t shard)
{
	(void)arg;
	(void)shard;
	return world.pinned;
}

static void
before(void)
{
	const struct members_conf conf = {
		.life = "me",
		.former = "was",
		.name = "me",
		.address = "me:1",
		.version = "1",
		.shards = SHARDS,
		.format = 1,
		.writes = 5,
		.reads = 5,
		.is_pinned = is_pinned,
	};

	CHECK_EQ(0, members_new(&world.m, &conf));
	world.now = 1000 * SLU_SEC;
}

static void
after(void)
{
	members_free(world.m);
	for (unsigned i = 0; i < world.n; i++)
		buf_release(&world.objects[i]);
}

FIXTURE(before, after);

/* ---- The store ---- */

static struct buf *
place(const char *name)
{
	for (unsigned i = 0; i < world.n; i++)
		if (strcmp(world.names[i], name) == 0)
			return &world.objects[i];
	return NULL;
}

static void
replace(const char *name, struct slice object)
{
	struct buf *b = place(name);

	if (!b) {
		CHECK(world.n < OBJECTS);
		b = &world.objects[world.n];
		buf_init(b, BEAT_MAX);
		snprintf(world.names[world.n++], LINE_NAME_MAX, "%s", name);
	}
	buf_clear(b);
	buf_put(b, object.p, object.n);
}

static void
answer(const struct line_request *r)
{
	const char *names[OBJECTS];
	struct line_answer a = { .result = world.down ? LINE_FAILED : LINE_OK, .names = names };
	const struct buf *const b = place(r->name);

	if (world.holds && r->verb == LINE_GET) {
		world.held = *r;
		return;
	}
	if (world.down) {
		;
	} else if (r->verb == LINE_REPLACE) {
		replace(r->name, r->object);
	} else if (r->verb == LINE_LIST) {
		for (unsigned i = 0; i < world.n; i++)
			names[a.n_names++] = world.names[i];
	} else if (r->verb == LINE_REMOVE) {
		world.removed++;
	} else if (b && !world.absent) {
		a.object = buf_slice(b);
	} else {
		a.result = LINE_ABSENT;
	}
	members_reply(world.m, r->slot, &a, world.now);
}

/* Another node removes the object. */
static void
take_away(const char *life)
{
	char name[LINE_NAME_MAX], padded[LINE_LIFE] = "";
	struct buf *b;

	memcpy(padded, life, strlen(life));
	beat_name(name, (const uint8_t *)padded);
	b = place(name);
	CHECK(b);
	buf_release(b);
	*b = world.objects[--world.n];
	memmove(world.names[b - world.objects], world.names[world.n], LINE_NAME_MAX);
}

/* ---- Other nodes ---- */

struct other {
	const char *name;
	uint64_t number;
	uint32_t reads;
	bool draining;
	struct beat_shard shard; /* epoch 0 = none */
};

static void
beat(const struct other *o)
{
	struct buf shards, object;
	char name[LINE_NAME_MAX];
	struct beat b = {
		.draining = o->draining,
		.number = o->number,
		.writes = o->reads,
		.reads = o->reads,
		.name = slice_of(o->name),
		.address = SLICE("other:1"),
		.n_shards = o->shard.epoch > 0,
	};

	buf_init(&shards, BEAT_MAX);
	buf_init(&object, BEAT_MAX);
	if (o->shard.epoch > 0)
		beat_shard_put(&shards, &o->shard);
	b.shards = buf_slice(&shards);
	memcpy(b.life, o->name, strlen(o->name));
	beat_encode(&b, &object);
	beat_name(name, b.life);
	replace(name, buf_slice(&object));
	buf_release(&shards);
	buf_release(&object);
}

static void
note(const struct members_event *e)
{
	world.takes += e->kind == MEMBERS_TAKE;
	world.hand_overs += e->kind == MEMBERS_HAND_OVER;
	world.losses += e->kind == MEMBERS_LOST;
	world.owners += e->kind == MEMBERS_OWNER;
	world.leases += e->kind == MEMBERS_LEASE;
	if (e->kind == MEMBERS_TAKE)
		world.taken = e->shard;
}

/* Lets time pass. `o`, if any, sends a beat each second. */
static void
pass(slu_time duration, struct other *o)
{
	const slu_time end = world.now + duration;

	for (; world.now < end; world.now += SLU_SEC / 2) {
		struct line_request r;
		struct members_event e;

		if (o && world.now % SLU_SEC == 0) {
			o->number++;
			beat(o);
		}
		while (members_next(world.m, world.now, &r))
			answer(&r);
		while (members_event(world.m, world.now, &e))
			note(&e);
	}
}

static struct line_group
group_of(const char *life, uint64_t epoch)
{
	struct line_group g = { .number = 1, .epoch = epoch };

	memcpy(g.life, life, strlen(life));
	return g;
}

static bool
may_take(uint32_t shard, const char *life, uint64_t epoch)
{
	const struct line_group g = group_of(life, epoch);

	return members_may_take(world.m, shard, &g, world.now);
}

/* ---- Taking ---- */

TEST(the_first_node_of_a_store_takes_every_shard_at_once)
{
	pass(SLU_SEC / 2, NULL);
	CHECK_EQ(SHARDS, world.takes);
	for (uint32_t i = 0; i < SHARDS; i++)
		CHECK(members_opened(world.m, i, 1));
	pass(60 * SLU_SEC, NULL);
	CHECK(world.takes == SHARDS && world.hand_overs == 0 && world.losses == 0);
}

TEST(a_shard_whose_owner_closed_it_is_taken_at_once)
{
	struct other o = { .name = "o", .reads = 5, .draining = true, .shard = { 2, true, 7 } };

	beat(&(struct other){ .name = "o", .number = 1, .reads = 5, .draining = true, .shard = { 2, true, 7 } });
	pass(SLU_SEC, &o);
	CHECK_EQ(SHARDS, world.takes);
	CHECK(may_take(2, "o", 7));
	CHECK(!may_take(2, "o", 8)); /* it has taken the shard again */
}

TEST(LINE_12_a_shard_of_a_living_node_is_not_taken)
{
	struct other o = { .name = "o", .reads = 5, .draining = true, .shard = { 2, false, 7 } };

	beat(&(struct other){ .name = "o", .number = 1, .reads = 5, .draining = true, .shard = { 2, false, 7 } });
	pass(60 * SLU_SEC, &o);
	CHECK_EQ(SHARDS - 1, world.takes);
	CHECK(!may_take(2, "o", 7));
}

/* The role of this node for shard 2 of "o", if a node of that name lives as well. */
static enum members_role
role_beside(const char *name, bool draining)
{
	struct other o = { .name = "o", .number = world.now / SLU_SEC, .reads = 5, .shard = { 2, false, 7 } };

	beat(&o);
	beat(&(struct other){ .name = name, .number = o.number, .reads = 5, .draining = draining });
	pass(SLU_SEC, &o);
	return members_role(world.m, 2);
}

TEST(LINE_12_the_node_that_ranks_first_behind_the_owner_is_next)
{
	static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h" };
	unsigned next = 0, other = 0;

	CHECK_EQ(MEMBERS_OPEN, members_role(world.m, 2)); /* no owner is known yet */
	CHECK_EQ(MEMBERS_NEXT, role_beside("o", false));
	for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
		members_free(world.m);
		before();
		world.now += (slu_time)(i + 1) * SLU_MIN;
		next += role_beside(names[i], false) == MEMBERS_NEXT;
		other += members_role(world.m, 2) == MEMBERS_OTHER;
		CHECK_EQ(MEMBERS_NEXT, role_beside(names[i], true));
	}
	CHECK(next > 0 && other > 0 && next + other == 8);
	members_drain(world.m, true);
	CHECK_EQ(MEMBERS_OTHER, members_role(world.m, 2));
	members_drain(world.m, false);
	pass(2 * LEASE, NULL);
	CHECK_EQ(MEMBERS_OPEN, members_role(world.m, 2)); /* the owner is dead */
}

TEST(LINE_12_shards_of_the_former_life_of_this_node_are_taken_at_once)
{
	beat(&(struct other){ .name = "was", .number = 9, .reads = 5, .shard = { 2, false, 7 } });
	pass(SLU_SEC / 2, NULL);
	CHECK_EQ(SHARDS, world.takes);
	CHECK(may_take(2, "was", 7));
	CHECK(!may_take(3, "x", 7));
}

TEST(LINE_12_an_unknown_owner_in_a_line_is_dead_after_a_lease)
{
	pass(60 * SLU_SEC, NULL);
	CHECK(!may_take(0, "x", 3));
	pass(LEASE - SLU_SEC, NULL);
	CHECK(!may_take(0, "x", 3));
	pass(2 * SLU_SEC, NULL);
	CHECK(may_take(0, "x", 3));
}

TEST(LINE_12_a_dead_node_that_was_not_read_for_long_may_live)
{
	struct other o = { .name = "o", .reads = 5 };

	pass(3 * SLU_SEC, &o);
	pass(8 * SLU_SEC, NULL); /* dead, without shards: it is read rarely now */
	CHECK(!may_take(0, "o", 3));
	pass(SLU_SEC, NULL);
	CHECK(may_take(0, "o", 3));
}

TEST(LINE_12_after_a_failure_a_full_lease_is_counted_anew)
{
	struct other o = { .name = "o", .reads = 5, .shard = { 2, false, 7 } };

	pass(10 * SLU_SEC, &o);
	pass(LEASE - SLU_SEC, NULL);
	world.down = true;
	pass(SLU_SEC, NULL);
	world.down = false;
	pass(LEASE - SLU_SEC, NULL);
	CHECK(!may_take(2, "o", 7));
	pass(2 * SLU_SEC, NULL);
	CHECK(may_take(2, "o", 7));
}

/* The owner may have sent a beat behind the read: only a read that was sent after a lease of silence counts. */
TEST(LINE_12_a_read_counts_for_the_moment_when_it_was_sent)
{
	struct other o = { .name = "o", .reads = 5, .shard = { 2, false, 7 } };

	pass(10 * SLU_SEC, &o);
	pass(3 * SLU_SEC, NULL); /* its last beat is 4 s old */
	world.holds = true;
	pass(3 * SLU_SEC / 2, NULL);
	world.holds = false;
	CHECK_EQ(LINE_GET, world.held.verb);
	answer(&world.held);
	CHECK(!may_take(2, "o", 7));
	pass(SLU_SEC, NULL);
	CHECK(may_take(2, "o", 7));
}

TEST(LINE_12_a_beat_that_does_not_rise_proves_nothing)
{
	struct other o = { .name = "o", .reads = 5, .shard = { 2, false, 7 } };

	pass(10 * SLU_SEC, &o);
	pass(LEASE - SLU_SEC, NULL);
	o.number -= 2;
	beat(&o);
	pass(2 * SLU_SEC, NULL);
	CHECK(may_take(2, "o", 7));
}

/* A node is back after an hour, and its first beat is removed with its old object: nobody has read that beat. */
TEST(LINE_12_l_when_the_object_of_a_node_is_gone_a_full_lease_is_counted_anew)
{
	struct other o = { .name = "o", .reads = 5, .shard = { 2, false, 7 } };

	pass(10 * SLU_SEC, &o);
	pass(8 * SLU_SEC, NULL);
	CHECK(may_take(2, "o", 7));
	take_away("o");
	pass(LEASE, NULL);
	CHECK(!may_take(2, "o", 7));
	pass(2 * SLU_SEC, NULL);
	CHECK(may_take(2, "o", 7));
}

TEST(LINE_12_l_an_object_that_is_gone_between_listing_and_read_is_gone)
{
	struct other o = { .name = "o", .reads = 5, .shard = { 2, false, 7 } };

	pass(10 * SLU_SEC, &o);
	pass(8 * SLU_SEC, NULL);
	world.absent = true;
	pass(SLU_SEC, NULL);
	world.absent = false;
	CHECK(!may_take(2, "o", 7));
	take_away("o");
	pass(LEASE - SLU_SEC, NULL);
	CHECK(!may_take(2, "o", 7));
	pass(2 * SLU_SEC, NULL);
	CHECK(may_take(2, "o", 7));
}

/* ---- Owning ---- */

static void
own_all(void)
{
	pass(SLU_SEC, NULL);
	for (uint32_t i = 0; i < SHARDS; i++)
		CHECK(members_opened(world.m, i, 1));
}

/* Some names rank before "me" for some shards. */
TEST(LINE_12_shards_go_to_the_node_that_ranks_first_for_30_s)
{
	struct other o = { .name = "o", .reads = 5 };
	unsigned early;

	own_all();
	pass(29 * SLU_SEC, &o);
	early = world.hand_overs;
	pass(3 * SLU_SEC, &o);
	CHECK_EQ(0, early);
	CHECK(world.hand_overs > 0 && world.hand_overs < SHARDS);
}

TEST(LINE_12_k_shards_with_a_front_folder_stay)
{
	struct other o = { .name = "o", .reads = 5 };

	own_all();
	world.pinned = true;
	members_drain(world.m, true);
	pass(60 * SLU_SEC, &o);
	CHECK_EQ(0, world.hand_overs);
	members_leave(world.m);
	pass(SLU_SEC, &o);
	CHECK_EQ(SHARDS, world.hand_overs);
}

/* Whatever the rank of this node. */
TEST(LINE_12_k_the_node_with_the_front_folders_takes_at_once)
{
	struct other o = { .name = "o", .reads = 5 };

	world.pinned = true;
	beat(&(struct other){ .name = "o", .number = 1, .reads = 5 });
	pass(SLU_SEC, &o);
	CHECK_EQ(SHARDS, world.takes);
}

TEST(LINE_12_k_other_nodes_try_to_take_a_pinned_shard_ever_more_rarely)
{
	struct line_group g = group_of("uuid of a folder", 7);
	unsigned tries = 0;

	g.pinned = true;
	pass(SLU_SEC, NULL);
	for (const slu_time end = world.now + 200 * SLU_SEC; world.now < end; pass(SLU_SEC / 2, NULL)) {
		if (world.takes == 0)
			continue;
		tries += world.takes;
		world.takes = 0;
		for (uint32_t i = 0; i < SHARDS; i++) {
			CHECK(!members_may_take(world.m, i, &g, world.now));
			members_closed(world.m, i, 0, world.now);
		}
	}
	CHECK(tries >= 2 * SHARDS && tries < 30 * SHARDS);
}

TEST(an_owner_learns_from_a_beat_that_another_node_has_its_shard)
{
	struct other o = { .name = "o", .reads = 5, .shard = { 1, false, 2 } };
	struct members_node owner;

	own_all();
	CHECK_EQ(1, members_owner(world.m, 1, &owner));
	CHECK(owner.self);
	pass(2 * SLU_SEC, &o);
	CHECK_EQ(1, world.losses);
	CHECK_EQ(2, members_owner(world.m, 1, &owner));
	CHECK_STR("other:1", owner.address);
	CHECK(!owner.self && owner.living && owner.shards == 1);
	members_closed(world.m, 1, 1, world.now);
	pass(20 * SLU_SEC, &o);
	CHECK(world.losses == 1 && world.takes == SHARDS);
}

TEST(a_shard_is_not_opened_in_an_epoch_in_which_it_was_given)
{
	pass(SLU_SEC, NULL);
	members_closed(world.m, 1, 3, world.now); /* an opening of epoch 3 may be in the line */
	pass(2 * SLU_SEC, NULL);
	CHECK(world.takes == SHARDS + 1 && world.taken == 1);
	CHECK(!members_opened(world.m, 1, 3));
	members_closed(world.m, 1, 3, world.now);
	pass(3 * SLU_SEC, NULL);
	CHECK(members_opened(world.m, 1, 4));
}

/* Lets the node try for a while, and fail each time behind its opening. Returns how often. */
static unsigned
fail_for(slu_time time)
{
	const slu_time end = world.now + time;
	const unsigned before = world.takes;

	for (uint64_t epoch = 2; world.now < end; epoch++) {
		const unsigned takes = world.takes;

		members_closed(world.m, 1, epoch, world.now);
		while (world.takes == takes && world.now < end)
			pass(SLU_SEC, NULL);
	}
	return world.takes - before;
}

TEST(LINE_12_a_node_that_cannot_serve_a_shard_puts_few_openings)
{
	pass(SLU_SEC, NULL);
	CHECK(world.takes == SHARDS);
	CHECK(fail_for(200 * SLU_SEC) < 20);
	pass(40 * SLU_SEC, NULL);
	CHECK(members_opened(world.m, 1, 100));
	members_closed(world.m, 1, 100, world.now); /* it has served: it may try at once */
	const unsigned takes = world.takes;

	pass(3 * SLU_SEC, NULL);
	CHECK_EQ(takes + 1, world.takes);
}

TEST(LINE_12_a_node_that_drains_keeps_its_shards_while_no_other_node_takes_them)
{
	struct other o = { .name = "o", .reads = 5, .draining = true };

	own_all();
	members_drain(world.m, true);
	pass(60 * SLU_SEC, NULL);
	CHECK_EQ(0, world.hand_overs);
	pass(60 * SLU_SEC, &o);
	CHECK_EQ(0, world.hand_overs);
	o.draining = false;
	pass(2 * SLU_SEC, &o); /* at once, not after hand_over */
	CHECK_EQ(SHARDS, world.hand_overs);
	CHECK(!members_is_drained(world.m));
}

TEST(LINE_12_a_node_that_drains_takes_only_if_all_others_drain)
{
	struct other o = { .name = "o", .reads = 5 };

	beat(&(struct other){ .name = "o", .number = 1, .reads = 5 });
	members_drain(world.m, true);
	pass(60 * SLU_SEC, &o);
	CHECK_EQ(0, world.takes);
	o.draining = true;
	pass(10 * SLU_SEC, &o);
	CHECK_EQ(SHARDS, world.takes);
}

TEST(a_node_that_drains_no_more_takes_its_shards_again)
{
	struct other o = { .name = "o", .reads = 5 };

	own_all();
	members_drain(world.m, true);
	pass(2 * SLU_SEC, &o);
	CHECK_EQ(SHARDS, world.hand_overs);
	for (uint32_t i = 0; i < SHARDS; i++)
		members_closed(world.m, i, 1, world.now);
	members_drain(world.m, false);
	pass(10 * SLU_SEC, &o);
	CHECK_EQ(2 * SHARDS, world.takes);
	members_leave(world.m);
	members_drain(world.m, false); /* a node that leaves does not come back */
	for (uint32_t i = 0; i < SHARDS; i++)
		members_closed(world.m, i, 1, world.now);
	pass(10 * SLU_SEC, &o);
	CHECK_EQ(2 * SHARDS, world.takes);
}

TEST(a_node_that_leaves_may_stop_when_its_beat_says_that_all_is_given)
{
	struct beat b;
	char name[LINE_NAME_MAX];

	own_all();
	members_leave(world.m);
	pass(SLU_SEC, NULL);
	CHECK_EQ(SHARDS, world.hand_overs);
	for (uint32_t i = 0; i < SHARDS; i++) {
		CHECK(!members_is_drained(world.m));
		members_closed(world.m, i, 1, world.now);
	}
	CHECK(!members_is_drained(world.m));
	pass(SLU_SEC / 2, NULL);
	CHECK(members_is_drained(world.m));
	beat_name(name, (const uint8_t *)"me\0\0\0\0\0\0\0\0\0\0\0\0\0");
	CHECK_EQ(0, beat_decode(&b, buf_slice(place(name)), NULL));
	CHECK(b.draining && b.n_shards == SHARDS && beat_shard(&b, 3).given);
	pass(20 * SLU_SEC, NULL);
	CHECK_EQ(SHARDS, world.takes);
}

TEST(LINE_13_a_node_answers_for_two_thirds_of_a_lease_after_its_last_beat)
{
	const slu_time proved = world.now + LEASE;

	CHECK(!members_is_fresh(world.m, proved, world.now));
	pass(SLU_SEC / 2, NULL);
	world.now -= SLU_SEC / 2; /* of the only beat */
	CHECK(members_is_fresh(world.m, proved, world.now + LEASE * 2 / 3 - SLU_MS));
	CHECK(!members_is_fresh(world.m, proved, world.now + LEASE * 2 / 3 + SLU_MS));
}

TEST(LINE_13_after_a_lease_without_beats_a_put_must_prove_the_shard)
{
	slu_time back;

	pass(2 * SLU_SEC, NULL);
	world.down = true;
	pass(LEASE, NULL);
	world.down = false;
	back = world.now;
	pass(2 * SLU_SEC, NULL);
	CHECK(!members_is_fresh(world.m, back - SLU_MS, world.now));
	CHECK(members_is_fresh(world.m, back + 2 * SLU_SEC, world.now));
}

TEST(LINE_12_m_a_node_without_a_lease_knows_that_another_node_may_have_its_shards)
{
	struct other o = { .name = "o", .reads = 5, .draining = true };

	pass(2 * SLU_SEC, &o);
	CHECK(!members_has_lapsed(world.m));
	world.down = true;
	pass(LEASE - SLU_SEC, NULL);
	CHECK(!members_has_lapsed(world.m));
	CHECK(members_due(world.m) <= world.now + SLU_SEC);
	pass(SLU_SEC, NULL);
	CHECK(members_has_lapsed(world.m));
	CHECK_EQ(1, world.leases);
	world.down = false;
	pass(SLU_SEC, &o);
	CHECK(!members_has_lapsed(world.m));
	CHECK_EQ(2, world.leases);
}

TEST(LINE_12_m_the_shards_of_the_only_node_stay_there)
{
	pass(2 * SLU_SEC, NULL);
	world.down = true;
	pass(10 * LEASE, NULL);
	CHECK(!members_has_lapsed(world.m) && world.leases == 0);
}

/* ---- All nodes ---- */

TEST(LINE_16_the_oldest_living_node_can_read_what_is_written)
{
	struct other o = { .name = "o", .reads = 3 };
	struct members_node oldest;

	CHECK_EQ(1, members_format(world.m));
	pass(SLU_SEC, NULL);
	CHECK_EQ(5, members_format(world.m));
	CHECK(!members_oldest(world.m, 5, &oldest));
	pass(2 * SLU_SEC, &o);
	CHECK_EQ(3, members_format(world.m));
	CHECK(!members_oldest(world.m, 3, &oldest));
	CHECK(members_oldest(world.m, 4, &oldest));
	CHECK_STR("o", oldest.name);
	pass(LEASE + 2 * SLU_SEC, NULL);
	CHECK_EQ(5, members_format(world.m));
	CHECK(!members_oldest(world.m, 5, &oldest));
}

TEST(the_object_of_a_node_that_is_dead_for_an_hour_is_removed)
{
	struct other o = { .name = "o", .reads = 3 };

	pass(2 * SLU_SEC, &o);
	pass(3500 * SLU_SEC, NULL);
	CHECK_EQ(0, world.removed);
	pass(200 * SLU_SEC, NULL);
	CHECK(world.removed > 0);
}

/* Objects of dead nodes are read rarely: the node may be back since the last read, whenever that was. */
TEST(the_object_of_a_node_that_is_back_after_an_hour_is_not_removed)
{
	for (slu_time early = 2 * SLU_SEC; early <= 12 * SLU_SEC; early += SLU_SEC) {
		struct other o = { .name = "o", .reads = 3 };

		pass(2 * SLU_SEC, &o);
		pass(3600 * SLU_SEC - early, NULL);
		o.number++;
		beat(&o);
		pass(early + 20 * SLU_SEC, NULL);
		CHECK_EQ(0, world.removed);
		after();
		memset(&world, 0, sizeof world);
		before();
	}
}

TEST(a_damaged_object_is_no_beat_and_no_failure)
{
	char name[LINE_NAME_MAX];
	struct members_node n;

	beat_name(name, (const uint8_t *)"broken\0\0\0\0\0\0\0\0\0");
	replace(name, SLICE("sluicend, half old, half new"));
	pass(SLU_SEC, NULL);
	CHECK_EQ(SHARDS, world.takes);
	CHECK(members_node(world.m, 1, &n) && n.beat == 0);
	CHECK(!members_node(world.m, 2, &n));
	pass(LEASE + SLU_SEC, NULL);
	CHECK(members_node(world.m, 1, &n) && !n.living);
}

TORTURE(no_memory_is_a_failure_of_the_node_itself)
{
	const struct members_conf conf = { .name = "me", .address = "a", .version = "1", .shards = SHARDS };
	const struct other o = { .name = "o", .number = 1, .reads = 3 };

	world.n = 0;
	world.now = SLU_SEC;
	beat(&o);
	if (members_new(&world.m, &conf) == 0) {
		pass(3 * SLU_SEC, NULL);
		members_free(world.m);
	}
	for (unsigned i = 0; i < world.n; i++)
		buf_release(&world.objects[i]);
}
