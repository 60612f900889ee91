#include "test.h"

#include "base/hash.h"
#include "base/mem.h"
#include "exec/parking.h"

#include <stdio.h>
#include <stdlib.h>

/* A parking and the slots it speaks of. */
static struct lot {
	struct slab slots;
	struct parking parking;
	uint64_t seq;
} lot;

static int
lot_init(uint32_t max)
{
	lot = (struct lot){ .seq = 0 };
	slab_init_chunked(&lot.slots, sizeof(struct task_slot), 4);
	return parking_init(&lot.parking, &lot.slots, max);
}

static void
lot_release(void)
{
	parking_release(&lot.parking);
	slab_release(&lot.slots);
}

FIXTURE(NULL, lot_release);

static struct task_slot *
at(uint32_t handle)
{
	return slab_at(&lot.slots, handle);
}

static uint32_t
new_task(const char *key)
{
	const uint32_t handle = slab_new(&lot.slots);
	struct task_slot *s;

	CHECK(handle != SLAB_NONE);
	s = at(handle);
	(void)snprintf(s->short_key, sizeof s->short_key, "%s", key);
	s->key = s->short_key;
	s->hash = fnv1a32(key, strlen(key));
	s->seq = ++lot.seq;
	return handle;
}

static uint32_t
find(const char *key)
{
	return parking_find(&lot.parking, key, fnv1a32(key, strlen(key)));
}

static uint32_t
park(const char *key, slu_time due)
{
	const uint32_t handle = new_task(key);

	parking_park(&lot.parking, handle, due);
	return handle;
}

static uint32_t
hold(const char *key)
{
	const uint32_t handle = new_task(key);

	parking_hold(&lot.parking, find(key), handle);
	return handle;
}

/* Take the leader that is due and end it. */
static uint32_t
run_due(slu_time now)
{
	const uint32_t handle = parking_due(&lot.parking, now);

	if (handle == SLAB_NONE)
		return SLAB_NONE;
	parking_take(&lot.parking, handle);
	parking_end(&lot.parking, handle, now);
	return handle;
}

TEST(an_empty_parking_has_nothing_to_wait_for)
{
	CHECK_EQ(0, lot_init(4));
	CHECK(parking_is_empty(&lot.parking));
	CHECK_EQ(SLU_NEVER, parking_next_due(&lot.parking));
	CHECK_EQ(SLAB_NONE, parking_due(&lot.parking, SLU_NEVER));
	CHECK_EQ(SLAB_NONE, find("a"));
	CHECK(parking_bytes(&lot.parking) > 0);
}

TEST(a_parked_key_is_found_until_its_last_task_ended)
{
	uint32_t first, second;

	CHECK_EQ(0, lot_init(4));
	first = park("a", 100);
	second = hold("a");
	CHECK_EQ(first, find("a"));
	CHECK_EQ(SLAB_NONE, find("b"));
	CHECK_EQ(2, lot.parking.tasks);

	CHECK_EQ(first, run_due(100));
	CHECK_EQ(second, find("a"));
	CHECK(at(second)->leads);
	CHECK(!at(first)->leads);

	CHECK_EQ(second, run_due(100));
	CHECK_EQ(SLAB_NONE, find("a"));
	CHECK(parking_is_empty(&lot.parking));
	CHECK_EQ(0, lot.parking.tasks);
}

TEST(a_leader_is_due_at_its_moment_and_not_before)
{
	uint32_t late, soon;

	CHECK_EQ(0, lot_init(4));
	late = park("a", 200);
	soon = park("b", 100);
	CHECK_EQ(100, parking_next_due(&lot.parking));
	CHECK_EQ(SLAB_NONE, parking_due(&lot.parking, 99));
	CHECK_EQ(soon, run_due(100));
	CHECK_EQ(SLAB_NONE, run_due(199));
	CHECK_EQ(late, run_due(200));
}

TEST(leaders_due_together_go_by_acceptance)
{
	uint32_t a, b, c;

	CHECK_EQ(0, lot_init(4));
	a = new_task("a");
	b = new_task("b");
	c = new_task("c");
	parking_park(&lot.parking, c, 100);
	parking_park(&lot.parking, a, 100);
	parking_park(&lot.parking, b, 100);
	CHECK_EQ(a, run_due(100));
	CHECK_EQ(b, run_due(100));
	CHECK_EQ(c, run_due(100));
}

TEST(the_next_of_a_key_is_due_at_once_and_the_rest_stays_behind_it)
{
	uint32_t want[3];

	CHECK_EQ(0, lot_init(8));
	want[0] = park("a", 100);
	want[1] = hold("a");
	want[2] = hold("a");
	CHECK_EQ(2, at(want[0])->held);

	CHECK_EQ(want[0], run_due(150));
	CHECK_EQ(150, parking_next_due(&lot.parking));
	CHECK_EQ(1, at(want[1])->held);
	CHECK_EQ(2, lot.parking.tasks);
	CHECK_EQ(want[1], run_due(150));
	CHECK_EQ(want[2], run_due(150));
	CHECK_EQ(SLAB_NONE, run_due(150));
}

TEST(a_leader_that_fails_again_keeps_its_sequence)
{
	uint32_t first, second;

	CHECK_EQ(0, lot_init(4));
	first = park("a", 100);
	second = hold("a");
	parking_take(&lot.parking, first);
	CHECK_EQ(first, find("a")); /* while it runs, too */
	CHECK_EQ(first, lot.parking.taken);
	CHECK_EQ(1, lot.parking.tasks);
	CHECK_EQ(SLAB_NONE, parking_due(&lot.parking, SLU_NEVER));

	parking_park(&lot.parking, first, 300);
	CHECK_EQ(SLAB_NONE, lot.parking.taken);
	CHECK_EQ(300, parking_next_due(&lot.parking));
	CHECK_EQ(2, lot.parking.tasks);
	CHECK_EQ(first, run_due(300));
	CHECK_EQ(second, run_due(300));
}

TEST(a_task_held_while_the_leader_runs_comes_after_it)
{
	uint32_t first, second;

	CHECK_EQ(0, lot_init(4));
	first = park("a", 100);
	parking_take(&lot.parking, first);
	second = hold("a");
	parking_end(&lot.parking, first, 120);
	CHECK_EQ(second, run_due(120));
}

TEST(a_task_on_its_way_counts_once)
{
	uint32_t first, before, after;

	CHECK_EQ(0, lot_init(8));
	first = new_task("a");
	before = new_task("a"); /* accepted before the first failed */
	parking_park(&lot.parking, first, 100);
	after = new_task("a");
	parking_expect(&lot.parking, first, at(after)->seq, 1);
	CHECK_EQ(1, at(first)->held);
	parking_hold(&lot.parking, first, before);
	CHECK_EQ(2, at(first)->held);
	CHECK_EQ(first, run_due(100)); /* `after` arrives behind the next leader */
	CHECK_EQ(1, at(before)->held);
	parking_hold(&lot.parking, before, after);
	CHECK_EQ(1, at(before)->held);
	CHECK_EQ(before, run_due(100));
	CHECK_EQ(0, at(after)->held);
	CHECK_EQ(after, run_due(100));
}

TEST(keys_with_the_same_hash_are_different_keys)
{
	/* Known collisions of 32-bit FNV-1a. */
	static const char *const twins[][2] = {
		{ "costarring", "liquid" },
		{ "declinate", "macallums" },
		{ "altarage", "zinke" },
	};

	CHECK_EQ(0, lot_init(8));
	EACH(i, twins) {
		const uint32_t one = park(twins[i][0], 100);

		CHECK_EQ(fnv1a32(twins[i][0], strlen(twins[i][0])),
			 fnv1a32(twins[i][1], strlen(twins[i][1])));
		CHECK_EQ(SLAB_NONE, find(twins[i][1]));
		CHECK(park(twins[i][1], 100) != one);
		CHECK_EQ(one, find(twins[i][0]));
	}
	EACH(i, twins) {
		run_due(100);
		CHECK_EQ(SLAB_NONE, find(twins[i][0]));
		CHECK(find(twins[i][1]) != SLAB_NONE);
		run_due(100);
	}
	CHECK(parking_is_empty(&lot.parking));
}

TEST(every_slot_may_lead_a_key_of_its_own)
{
	enum {
		MANY = 1000
	};
	char key[32];

	CHECK_EQ(0, lot_init(MANY));
	slab_reserve(&lot.slots, MANY);
	mem_fail_at(1); /* nothing is allocated from here on */
	for (int i = 0; i < MANY; i++) {
		(void)snprintf(key, sizeof key, "k%d", i);
		park(key, 1000 - i);
	}
	for (int i = MANY - 1; i >= 0; i--) {
		(void)snprintf(key, sizeof key, "k%d", i);
		CHECK_STR(key, at(run_due(SLU_NEVER))->key);
	}
	CHECK_EQ(0, mem_failed());
	mem_fail_at(0);
	CHECK(parking_is_empty(&lot.parking));
}

/* Any mix of park, hold, retry and end: inside a key the order is the order of arrival,
 * and what is counted is what is there. */
struct random_run {
	uint64_t dice;
	uint64_t last_seq[8]; /* of the task of each key that ended last */
	uint32_t there;
	slu_time now;
};

static void
arrive(struct random_run *r)
{
	const char key[] = { (char)('a' + test_random(&r->dice) % 8), 0 };

	if (find(key) == SLAB_NONE)
		park(key, r->now + (slu_time)(test_random(&r->dice) % 100));
	else
		hold(key);
	r->there++;
}

static void
go_on(struct random_run *r)
{
	const uint32_t handle = parking_due(&lot.parking, r->now);
	struct task_slot *s;
	uint64_t *last;

	r->now += 10;
	if (handle == SLAB_NONE)
		return;
	s = at(handle);
	last = &r->last_seq[s->key[0] - 'a'];
	parking_take(&lot.parking, handle);
	CHECK(s->seq > *last);
	if (test_random(&r->dice) % 2) {
		parking_park(&lot.parking, handle, r->now + 50);
		return;
	}
	*last = s->seq;
	parking_end(&lot.parking, handle, r->now);
	slab_free(&lot.slots, handle);
	r->there--;
}

TEST(order_inside_a_key_survives_any_mix)
{
	enum {
		MAX = 64,
		STEPS = 100000
	};
	struct random_run r = { .dice = test_seed() };

	CHECK_EQ(0, lot_init(MAX));
	for (int i = 0; i < STEPS; i++) {
		if (r.there < MAX && test_random(&r.dice) % 2)
			arrive(&r);
		else
			go_on(&r);
		CHECK_EQ(r.there, lot.parking.tasks);
	}
	while (r.there)
		go_on(&r);
	CHECK(parking_is_empty(&lot.parking));
}

TORTURE(parking_without_memory_is_refused_whole)
{
	const int rc = lot_init(500);

	CHECK_EQ(mem_failed() ? SLU_ENOMEM : 0, rc);
	lot_release();
}
